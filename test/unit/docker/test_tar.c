/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <fcntl.h>
#include <sys/mman.h>

#include "support.h"

/* An archive being written: entries of the kinds that `docker save` of any version makes. */
struct tar {
	int fd;
};

static struct tar tar_new(void)
{
	struct tar t = {memfd_create("tar", MFD_CLOEXEC)};
	assert_true(t.fd >= 0);
	return t;
}

static void put(struct tar *t, const void *data, size_t len)
{
	assert_int_equal(dmig_write_full(t->fd, data, len), 0);
}

static void pad(struct tar *t, size_t len)
{
	static const char zero[512];
	put(t, zero, (512 - len % 512) % 512);
}

static void header(struct tar *t, char type, const char *name, const char *link, size_t size)
{
	char h[512] = {0}, octal[32];
	snprintf(h, 100, "%s", name);
	snprintf(h + 100, 8, "%07o", 0644);
	snprintf(octal, sizeof(octal), "%011zo", size);
	memcpy(h + 124, octal, 11);
	memset(h + 148, ' ', 8);
	h[156] = type;
	snprintf(h + 157, 100, "%s", link ? link : "");
	memcpy(h + 257, "ustar", 6);
	memcpy(h + 263, "00", 2);
	unsigned sum = 0;
	for (size_t i = 0; i < sizeof(h); i++)
		sum += (unsigned char)h[i];
	snprintf(h + 148, 8, "%06o", sum);
	put(t, h, sizeof(h));
}

static void file(struct tar *t, const char *name, const char *data)
{
	header(t, '0', name, NULL, strlen(data));
	put(t, data, strlen(data));
	pad(t, strlen(data));
}

static void end(struct tar *t)
{
	static const char zero[1024];
	put(t, zero, sizeof(zero));
}

/* Names of the entries, joined by spaces. */
static char *listing(int fd)
{
	char h[512], *list = strdup("");
	for (off_t at_offset = 0;;) {
		assert_int_equal(pread(fd, h, sizeof(h), at_offset), sizeof(h));
		if (!h[0])
			return list;
		char *longer = dmig_asprintf("%s%s%.100s", list, *list ? " " : "", h);
		free(list);
		list = longer;
		off_t size = strtol(h + 124, NULL, 8);
		at_offset += 512 + (size + 511) / 512 * 512;
	}
}

static void contains(int fd, const char *wanted)
{
	char *list = listing(fd);
	assert_string_equal(list, wanted);
	free(list);
	close(fd);
}

static struct tar oci_layout(void)
{
	struct tar t = tar_new();
	header(&t, '5', "blobs/", NULL, 0);
	file(&t, "blobs/sha256/l1", "first layer");
	file(&t, "blobs/sha256/l2", "second");
	file(&t, "blobs/sha256/l3", "third");
	file(&t, "blobs/sha256/config", "{}");
	file(&t, "manifest.json",
		"[{\"Config\":\"blobs/sha256/config\",\"Layers\":[\"blobs/sha256/l1\",\"blobs/sha256/"
		"l2\",\"blobs/sha256/"
		"l1\",\"blobs/sha256/l3\"]}]");
	file(&t, "oci-layout", "{}");
	end(&t);
	return t;
}

static void lower_layers_are_dropped(void **state)
{
	struct tar t = oci_layout();
	struct dmig_error *err = NULL;
	(void)state;
	/* l1 is needed again as the third layer. */
	assert_ok(dmig_docker__tar_drop_layers(t.fd, 2, &err), err);
	contains(t.fd, "blobs/ blobs/sha256/l1 blobs/sha256/l3 blobs/sha256/config manifest.json oci-layout");
}

static void all_of_them(void **state)
{
	struct tar t = oci_layout();
	struct dmig_error *err = NULL;
	(void)state;
	assert_ok(dmig_docker__tar_drop_layers(t.fd, 99, &err), err);
	contains(t.fd, "blobs/ blobs/sha256/config manifest.json oci-layout");
}

static void none_of_them(void **state)
{
	struct tar t = oci_layout();
	struct dmig_error *err = NULL;
	char *before = listing(t.fd);
	(void)state;
	assert_ok(dmig_docker__tar_drop_layers(t.fd, 0, &err), err);
	contains(t.fd, before);
	free(before);
}

static void contents_move_whole(void **state)
{
	char *big = malloc(3000001), *got = malloc(3000000);
	struct tar t = tar_new();
	struct dmig_error *err = NULL;
	(void)state;
	for (size_t i = 0; i < 3000000; i++)
		big[i] = (char)('a' + i % 23);
	big[3000000] = '\0';
	file(&t, "low", "dropped");
	file(&t, "high", big);
	file(&t, "manifest.json", "[{\"Layers\":[\"low\",\"high\"]}]");
	end(&t);
	assert_ok(dmig_docker__tar_drop_layers(t.fd, 1, &err), err);
	assert_int_equal(pread(t.fd, got, 3000000, 512), 3000000);
	assert_memory_equal(got, big, 3000000);
	free(big);
	free(got);
	contains(t.fd, "high manifest.json");
}

/* Up to Docker 24: a folder for each layer, and a link where the same contents come again. */
static void links_between_layers(void **state)
{
	struct tar t = tar_new();
	struct dmig_error *err = NULL;
	(void)state;
	file(&t, "aa/layer.tar", "one");
	header(&t, '2', "bb/layer.tar", "../cc/layer.tar", 0);
	file(&t, "cc/layer.tar", "two");
	file(&t, "manifest.json", "[{\"Layers\":[\"aa/layer.tar\",\"cc/layer.tar\",\"bb/layer.tar\"]}]");
	end(&t);
	assert_ok(dmig_docker__tar_drop_layers(t.fd, 2, &err), err);
	contains(t.fd, "bb/layer.tar cc/layer.tar manifest.json");
}

static void long_names(void **state)
{
	struct tar t = tar_new();
	struct dmig_error *err = NULL;
	const char *pax =
		"22 path=a-long-layer1\n30 mtime=1700000000.123456789\n"; /* lengths count themselves */
	(void)state;
	header(&t, 'g', "pax_global_header", NULL, 0);
	header(&t, 'x', "PaxHeaders/x", NULL, strlen(pax));
	put(&t, pax, strlen(pax));
	pad(&t, strlen(pax));
	file(&t, "shortened", "one");
	header(&t, 'L', "././@LongLink", NULL, 6);
	put(&t, "gnu-2", 6);
	pad(&t, 6);
	file(&t, "also-short", "two");
	file(&t, "manifest.json", "[{\"Layers\":[\"a-long-layer1\",\"gnu-2\"]}]");
	end(&t);
	assert_ok(dmig_docker__tar_drop_layers(t.fd, 1, &err), err);
	contains(t.fd,
		"././@LongLink also-short manifest.json"); /* and the headers of the first are gone with it */
}

static void refuses(struct tar t)
{
	struct dmig_error *err = NULL;
	assert_fails(dmig_docker__tar_drop_layers(t.fd, 1, &err), err, EBADMSG);
	close(t.fd);
}

static void what_is_no_image_is_refused(void **state)
{
	static const char *const manifests[] = {
		"", "{", "{}", "[]", "[{}]", "[{\"Layers\":{}}]", "[{\"Layers\":[]},{}]"};
	struct tar t = tar_new();
	struct dmig_error *err = NULL;
	(void)state;
	end(&t);
	refuses(t);
	for (size_t i = 0; i < sizeof(manifests) / sizeof(*manifests); i++) {
		t = tar_new();
		file(&t, "manifest.json", manifests[i]);
		end(&t);
		assert_true(dmig_docker__tar_drop_layers(t.fd, 1, &err) < 0);
		assert_non_null(err);
		dmig_error_freep(&err);
		close(t.fd);
	}
}

static void damaged_archives_are_refused(void **state)
{
	struct tar t = oci_layout();
	(void)state;
	assert_int_equal(
		pwrite(t.fd, "X", 1, 512 + 10), 1); /* the checksum of the second header is wrong now */
	refuses(t);
	t = oci_layout();
	assert_int_equal(ftruncate(t.fd, 512 * 3), 0);
	refuses(t);
	t = tar_new();
	header(&t, '0', "huge", NULL, 077777777777);
	end(&t);
	refuses(t);
	t = tar_new();
	header(&t, 'x', "bad", NULL, 5);
	put(&t, "99 a=", 5);
	pad(&t, 5);
	end(&t);
	refuses(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lower_layers_are_dropped),
		cmocka_unit_test(all_of_them),
		cmocka_unit_test(none_of_them),
		cmocka_unit_test(contents_move_whole),
		cmocka_unit_test(links_between_layers),
		cmocka_unit_test(long_names),
		cmocka_unit_test(what_is_no_image_is_refused),
		cmocka_unit_test(damaged_archives_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
