#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# check_install.sh BUILD: what `make install` puts somewhere is complete and works there.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cmake --install "$1" --prefix "$folder" >/dev/null

for file in bin/dmigrate sbin/dmigrated libexec/dmigrate/dmigrate-runc libexec/dmigrate/dmigrate-hook \
	libexec/dmigrate/criu libexec/docker/cli-plugins/docker-dmigrate lib/systemd/system/dmigrated.service \
	lib/systemd/system/dmigrate-recover.service share/man/man1/dmigrate.1 share/man/man8/dmigrated.8 \
	share/man/man5/dmigrate-report.5 share/bash-completion/completions/dmigrate share/zsh/site-functions/_dmigrate \
	share/fish/vendor_completions.d/dmigrate.fish; do
	[ -s "$folder/$file" ] || { echo "$file is not installed"; exit 1; }
done

"$folder/bin/dmigrate" version
"$folder/sbin/dmigrated" --version
"$folder/libexec/dmigrate/criu" --version >/dev/null
"$folder/libexec/docker/cli-plugins/docker-dmigrate" docker-cli-plugin-metadata >/dev/null
# The programs find each other where they are, wherever that is.
export DOCKER_HOST=unix:///nonexistent
"$folder/bin/dmigrate" setup --dry-run --daemon-json "$folder/daemon.json" |
	grep -q "\"$folder/libexec/dmigrate/dmigrate-runc\""
