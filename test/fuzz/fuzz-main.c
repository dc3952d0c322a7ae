/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs a fuzz target over files and the files of folders, once each: for compilers without libFuzzer. */
#include "fuzz/fuzz.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "util/cleanup.h"
#include "util/io.h"

#define MAX_FILE (4u << 20) /* bytes; libFuzzer's own inputs stay below 1 MiB */

static int run_file(const char *path)
{
	cleanup_free char *data = NULL;
	size_t len;
	int r = dmig_read_file(path, MAX_FILE, &data, &len);
	if (r < 0) {
		fprintf(stderr, "%s: %s\n", path, strerror(-r));
		return r;
	}
	/* A copy of the exact size, so that a sanitizer sees a read behind its end. */
	cleanup_free uint8_t *exact = malloc(len ? len : 1);
	if (!exact)
		return -ENOMEM;
	memcpy(exact, data, len);
	LLVMFuzzerTestOneInput(exact, len);
	return 0;
}

static int run_folder(const char *path, int *count)
{
	cleanup_dir DIR *d = opendir(path);
	if (!d) {
		perror(path);
		return -errno;
	}
	struct dirent *e;
	while ((e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		cleanup_free char *file = dmig_asprintf("%s/%s", path, e->d_name);
		int r = file ? run_file(file) : -ENOMEM;
		if (r < 0)
			return r;
		++*count;
	}
	return 0;
}

int main(int argc, char **argv)
{
	int count = 0;
	for (int i = 1; i < argc; i++) {
		struct stat st;
		int r = stat(argv[i], &st) < 0 ? -errno : 0;
		if (r == 0 && S_ISDIR(st.st_mode))
			r = run_folder(argv[i], &count);
		else if (r == 0 && (r = run_file(argv[i])) == 0)
			count++;
		if (r < 0) {
			fprintf(stderr, "%s: %s\n", argv[i], strerror(-r));
			return 1;
		}
	}
	printf("%d inputs\n", count);
	return count ? 0 : 1;
}
