/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <fcntl.h>
#include <gnutls/crypto.h>
#include <string.h>
#include <sys/stat.h>

#include "net/internal.h"
#include "util/cleanup.h"
#include "util/io.h"

#define MAGIC "dmigrate-key-1 "
#define MAX_FILE 512 /* bytes: a key line has at most 146 */
#define IDENTITY_BYTES 8

static const char identity_chars[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
static const char hex_chars[] = "0123456789abcdef";

static void to_hex(const uint8_t *from, size_t len, char *to)
{
	for (size_t i = 0; i < len; i++) {
		*to++ = hex_chars[from[i] >> 4];
		*to++ = hex_chars[from[i] & 15];
	}
	*to = '\0';
}

static int hex_value(char c)
{
	const char *at = c ? strchr(hex_chars, c) : NULL;
	return at ? (int)(at - hex_chars) : -1;
}

int dmig_key_generate(struct dmig_key **ret, struct dmig_error **err)
{
	uint8_t identity[IDENTITY_BYTES];
	struct dmig_key *key = calloc(1, sizeof(*key));
	if (!key)
		return dmig_error_set(err, ENOMEM, "out of memory");
	if (gnutls_rnd(GNUTLS_RND_KEY, key->secret, sizeof(key->secret)) < 0 ||
		gnutls_rnd(GNUTLS_RND_NONCE, identity, sizeof(identity)) < 0) {
		dmig_key_free(key);
		return dmig_error_set(err, EIO, "no random numbers for a key");
	}
	to_hex(identity, sizeof(identity), key->identity);
	*ret = key;
	return 0;
}

static int parse_secret(const char *text, uint8_t secret[NET_KEY_LEN])
{
	for (size_t i = 0; i < NET_KEY_LEN; i++) {
		int high = hex_value(text[2 * i]), low = hex_value(text[2 * i + 1]);
		if (high < 0 || low < 0)
			return -EINVAL;
		secret[i] = (uint8_t)(high << 4 | low);
	}
	return 0;
}

/* The message never shows what was read: it could be a key with a typing error. */
static int bad_key(struct dmig_error **err)
{
	return dmig_error_set_class(err, DMIG_ERR_USAGE, EINVAL,
		"not a dmigrate key (one line: dmigrate-key-1 IDENTITY and 64 hexadecimal digits)");
}

int dmig_key_parse(const char *text, size_t len, struct dmig_key **ret, struct dmig_error **err)
{
	const size_t magic = strlen(MAGIC);
	if (len && text[len - 1] == '\n')
		len--;
	if (len <= magic + 1 + 2 * NET_KEY_LEN || memcmp(text, MAGIC, magic))
		return bad_key(err);
	text += magic;
	len -= magic;
	size_t identity_len = len - 2 * NET_KEY_LEN - 1;
	if (identity_len > NET_IDENTITY_MAX || text[identity_len] != ' ')
		return bad_key(err);
	for (size_t i = 0; i < identity_len; i++)
		if (!text[i] || !strchr(identity_chars, text[i]))
			return bad_key(err);
	struct dmig_key *key = calloc(1, sizeof(*key));
	if (!key)
		return dmig_error_set(err, ENOMEM, "out of memory");
	memcpy(key->identity, text, identity_len);
	if (parse_secret(text + identity_len + 1, key->secret) < 0) {
		dmig_key_free(key);
		return bad_key(err);
	}
	*ret = key;
	return 0;
}

char *dmig_key_format(const struct dmig_key *key)
{
	char hex[2 * NET_KEY_LEN + 1];
	to_hex(key->secret, NET_KEY_LEN, hex);
	char *text = dmig_asprintf(MAGIC "%s %s\n", key->identity, hex);
	explicit_bzero(hex, sizeof(hex));
	return text;
}

void dmig_key_free(struct dmig_key *key)
{
	if (!key)
		return;
	explicit_bzero(key, sizeof(*key));
	free(key);
}

static int check_key_file(int fd, const char *path, struct dmig_error **err)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return dmig_error_set(err, errno, "cannot look at %s: %m", path);
	if (!S_ISREG(st.st_mode))
		return dmig_error_set_class(err, DMIG_ERR_USAGE, EINVAL, "%s is not a regular file", path);
	if (st.st_uid != geteuid())
		return dmig_error_set_class(err, DMIG_ERR_USAGE, EPERM,
			"key file %s belongs to user %u, not to us", path, (unsigned)st.st_uid);
	mode_t mode = st.st_mode & 07777;
	if (mode != 0600 && mode != 0400)
		return dmig_error_set_class(err, DMIG_ERR_USAGE, EPERM,
			"key file %s has mode %04o: others may read it (chmod 600)", path, (unsigned)mode);
	if (st.st_size > MAX_FILE)
		return dmig_error_set_class(err, DMIG_ERR_USAGE, EINVAL, "%s is not a dmigrate key", path);
	return 0;
}

int dmig_key_load(const char *path, struct dmig_key **ret, struct dmig_error **err)
{
	char text[MAX_FILE];
	/* NONBLOCK: a fifo must not stop us before it is refused. */
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return dmig_error_set_class(err, DMIG_ERR_USAGE, errno, "cannot open key file %s: %m", path);
	int r = check_key_file(fd, path, err);
	if (r < 0)
		return r;
	ssize_t n = read(fd, text, sizeof(text));
	if (n < 0)
		return dmig_error_set(err, errno, "cannot read %s: %m", path);
	r = dmig_key_parse(text, (size_t)n, ret, err);
	explicit_bzero(text, sizeof(text));
	return r < 0 ? dmig_error_wrap(err, "%s", path) : 0;
}

int dmig_key_save(const struct dmig_key *key, const char *path, struct dmig_error **err)
{
	cleanup_fd int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return dmig_error_set_class(
			err, DMIG_ERR_USAGE, errno, "cannot create key file %s: %m", path);
	char *text = dmig_key_format(key);
	int r = text ? dmig_write_full(fd, text, strlen(text)) : -ENOMEM;
	if (r == 0 && (fchmod(fd, 0600) < 0 || fsync(fd) < 0))
		r = -errno;
	if (text)
		explicit_bzero(text, strlen(text));
	free(text);
	if (r == 0)
		return 0;
	unlink(path);
	return dmig_error_set(err, -r, "cannot write key file %s: %s", path, strerror(-r));
}
