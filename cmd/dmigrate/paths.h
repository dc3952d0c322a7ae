/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_COMMAND_PATHS_H
#define DMIG_COMMAND_PATHS_H

#define DMIG_KEY_FILE "/etc/dmigrate/key"
#define DMIG_DAEMON_JSON "/etc/docker/daemon.json"
#define DMIG_RUNTIME_NAME "dmigrate" /* of the entry in daemon.json and HostConfig.Runtime */

#endif
