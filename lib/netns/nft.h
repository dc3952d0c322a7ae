/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef DMIG_NETNS_NFT_H
#define DMIG_NETNS_NFT_H

#include <stddef.h>
#include <stdint.h>

/*
 * One nftables transaction of the bridge family, spoken to the kernel directly: it takes 40 us (measured) and
 *starts no program, so it can be used in the frozen window, and the nft command need not be installed.
 *close(2) of the socket waits for the kernel to be rid of what was deleted (5-15 ms): open it before the
 *window and close it after. Only what this module needs:
 *
 *	sock = netns__nft_socket();
 *	netns__nft_begin(&b);
 *	netns__nft_new_table(&b, "name");        replaces a table of that name
 *	netns__nft_hook(&b, "in", ...);          or netns__nft_chain() for one that is jumped to
 *	netns__nft_rule(&b, "in", matches, n, NETNS_DROP);
 *	r = netns__nft_commit(&b, sock);         all or nothing; frees b
 */
struct netns_nft {
	uint8_t *bytes;
	size_t len, size;
	uint32_t seq;
	const char *table;
	int error; /* the first; reported by commit */
};
/* In our network namespace. fd or -errno. */
int netns__nft_socket(void);
void netns__nft_begin(struct netns_nft *b);
void netns__nft_new_table(struct netns_nft *b, const char *table);
/* Missing is fine. */
void netns__nft_delete_table(struct netns_nft *b, const char *table);

/* Before and behind everything else of the bridge family (include/uapi/linux/netfilter_bridge.h). */
#define NETNS_PRIORITY_FIRST (-400)
#define NETNS_PRIORITY_LAST 400
/* hook: NF_BR_PRE_ROUTING, NF_BR_POST_ROUTING. */
void netns__nft_hook(struct netns_nft *b, const char *chain, uint32_t hook, int32_t priority);
void netns__nft_chain(struct netns_nft *b, const char *chain);

enum netns_match_kind { NETNS_IN_LINK, NETNS_OUT_LINK, NETNS_SOURCE_MAC };
struct netns_match {
	enum netns_match_kind kind;
	uint32_t link; /* index */
	uint8_t mac[6];
};
enum netns_verdict { NETNS_DROP, NETNS_RETURN, NETNS_JUMP };
/* All matches must hold. to: chain for NETNS_JUMP. */
void netns__nft_rule(struct netns_nft *b, const char *chain, const struct netns_match *m, size_t n,
	enum netns_verdict verdict, const char *to);

/* -EOPNOTSUPP and the like: the kernel has no nftables for bridges. */
int netns__nft_commit(struct netns_nft *b, int sock);
void netns__nft_cancel(struct netns_nft *b);

#endif
