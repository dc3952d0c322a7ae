/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fuzz/fuzz.h"

#include <assert.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "docker/internal.h"
#include "util/io.h"

/* Checksums would keep nearly every change out: make them right. */
static void repair(int fd, size_t size)
{
	unsigned char h[512];
	for (size_t at = 0; at + sizeof(h) <= size; at += sizeof(h)) {
		unsigned sum = 0;
		char text[8];
		if (pread(fd, h, sizeof(h), (off_t)at) != sizeof(h) || memcmp(h + 257, "ustar", 5))
			continue;
		for (size_t i = 0; i < sizeof(h); i++)
			sum += i >= 148 && i < 156 ? ' ' : h[i];
		snprintf(text, sizeof(text), "%06o", sum & 0777777);
		dmig_pwrite_full(fd, text, sizeof(text), at + 148);
	}
}

/* First byte: how many layers go, and whether checksums are repaired. The rest: an archive. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	cleanup_fd int fd = memfd_create("tar", MFD_CLOEXEC);
	assert(fd >= 0 && dmig_write_full(fd, data + 1, size - 1) == 0);
	if (data[0] & 0x80)
		repair(fd, size - 1);
	int r = dmig_docker__tar_drop_layers(fd, data[0] & 0x7f, NULL);
	off_t after = lseek(fd, 0, SEEK_END);
	/* Never longer than before, but for the end mark that it always gets. */
	assert(r < 0 || after <= (off_t)size - 1 + 1024);
	return 0;
}
