/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "netns/netns.h"
#include "util/cleanup.h"
#include "util/io.h"
#include "util/spawn.h"

/* nft answers within milliseconds; a host with ten thousands of rules takes longer. */
#define NFT_MS 10000

/* These become part of nft's language. */
static bool is_word(const char *s)
{
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && *s != '_')
			return false;
	return true;
}

static bool is_mac(const char *s)
{
	if (strlen(s) != 17)
		return false;
	for (int i = 0; i < 17; i++)
		if (i % 3 == 2 ? s[i] != ':' : !isxdigit((unsigned char)s[i]))
			return false;
	return true;
}

static int nft(const char *commands, struct dmig_error **err)
{
	const char *argv[] = {"nft", commands, NULL};
	return dmig_run(argv, NULL, NFT_MS, NULL, err);
}

static char *join(const char *const *macs, size_t n)
{
	char *text = strdup("");
	for (size_t i = 0; text && i < n; i++) {
		char *longer = dmig_asprintf("%s%s%s", text, i ? ", " : "", macs[i]);
		free(text);
		text = longer;
	}
	return text;
}

/* Hooked before the bridge learns addresses: the switch ports must not learn the MAC here while the source has it. */
int dmig_gate_close(const char *id, const char *const *macs, size_t n_macs, struct dmig_error **err)
{
	for (size_t i = 0; i < n_macs; i++)
		if (!is_mac(macs[i]))
			return dmig_error_set(err, EINVAL, "not a MAC address: %s", macs[i]);
	if (!is_word(id) || n_macs == 0)
		return dmig_error_set(err, EINVAL, "no name or address for the gate");
	cleanup_free char *list = join(macs, n_macs);
	cleanup_free char *text = !list ? NULL : dmig_asprintf(
		"add table bridge dmigrate_%1$s; "
		"add chain bridge dmigrate_%1$s hold { type filter hook prerouting priority -300; }; "
		"add rule bridge dmigrate_%1$s hold ether saddr { %2$s } drop", id, list);
	if (!text)
		return dmig_error_set(err, ENOMEM, "out of memory");
	return nft(text, err) < 0 ? dmig_error_wrap(err, "cannot hold the container's address back") : 0;
}

int dmig_gate_open(const char *id, struct dmig_error **err)
{
	if (!is_word(id))
		return dmig_error_set(err, EINVAL, "no name for the gate");
	/* Adding first makes the deletion of a missing table fine. */
	cleanup_free char *text = dmig_asprintf("add table bridge dmigrate_%1$s; delete table bridge dmigrate_%1$s", id);
	return text ? nft(text, err) : dmig_error_set(err, ENOMEM, "out of memory");
}
