/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "docker/internal.h"
#include "util/io.h"

#define CONNECT_TIMEOUT_MS 5000 /* a unix socket answers at once or never */
#define MAX_ERROR_BODY 65536    /* bytes kept of an answer that is not a success */
#define MAX_SAID 400            /* bytes of the daemon's own words in a message */

/* One transfer while it runs; the callbacks' view. */
struct transfer {
	struct dmig_docker *d;
	const struct dmig_docker__request *rq;
	struct dmig_docker__answer *answer;
	size_t cap, max;
	int failed; /* negative errno of a callback */
};

void dmig_docker__answer_clear(struct dmig_docker__answer *a)
{
	/* An inspect answer holds the environment with its secrets. */
	if (a->text)
		explicit_bzero(a->text, a->len);
	free(a->text);
	*a = (struct dmig_docker__answer){0};
}

char *dmig_docker__escape(const char *text)
{
	static const char digits[] = "0123456789ABCDEF", plain[] = "-._~/:@";
	char *out = malloc(strlen(text) * 3 + 1), *p = out;
	if (!out)
		return NULL;
	for (const unsigned char *s = (const unsigned char *)text; *s; s++) {
		bool letter =
			(*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || (*s >= '0' && *s <= '9');
		if (letter || strchr(plain, *s)) {
			*p++ = (char)*s;
			continue;
		}
		*p++ = '%';
		*p++ = digits[*s >> 4];
		*p++ = digits[*s & 15];
	}
	*p = '\0';
	return out;
}

/* Grow the text so that len + more + 1 bytes fit. The old block is wiped: see dmig_docker__answer_clear(). */
static int grow(struct transfer *t, size_t more)
{
	struct dmig_docker__answer *a = t->answer;
	size_t limit = a->status / 100 == 2 ? t->max : MAX_ERROR_BODY;
	if (more > limit || a->len > limit - more)
		return -EFBIG;
	if (a->len + more + 1 <= t->cap)
		return 0;
	size_t cap = t->cap ? t->cap * 2 : 8192;
	while (cap < a->len + more + 1)
		cap *= 2;
	char *bigger = malloc(cap);
	if (!bigger)
		return -ENOMEM;
	if (a->text) {
		memcpy(bigger, a->text, a->len);
		explicit_bzero(a->text, a->len);
		free(a->text);
	}
	a->text = bigger;
	t->cap = cap;
	return 0;
}

static size_t on_body(char *data, size_t size, size_t n, void *opaque)
{
	struct transfer *t = opaque;
	size_t len = size * n;
	if (t->answer->status == 0)
		curl_easy_getinfo(t->d->curl, CURLINFO_RESPONSE_CODE, &t->answer->status);
	if (t->rq->download && t->answer->status == 200) {
		t->failed = dmig_write_full(t->rq->download_fd, data, len);
		return t->failed ? 0 : len;
	}
	t->failed = grow(t, len);
	if (t->failed)
		return 0;
	memcpy(t->answer->text + t->answer->len, data, len);
	t->answer->len += len;
	return len;
}

static size_t on_upload(char *data, size_t size, size_t n, void *opaque)
{
	struct transfer *t = opaque;
	ssize_t got;
	do
		got = read(t->rq->upload_fd, data, size * n);
	while (got < 0 && errno == EINTR);
	if (got >= 0)
		return (size_t)got;
	t->failed = -errno;
	return CURL_READFUNC_ABORT;
}

static void take_header(const char *line, size_t len, const char *name, char *ret, size_t size)
{
	size_t n = strlen(name);
	if (len <= n || strncasecmp(line, name, n))
		return;
	for (line += n, len -= n; len && (*line == ' ' || *line == '\t'); line++)
		len--;
	while (len && (line[len - 1] == '\r' || line[len - 1] == '\n' || line[len - 1] == ' '))
		len--;
	if (len < size)
		snprintf(ret, size, "%.*s", (int)len, line);
}

static size_t on_header(char *data, size_t size, size_t n, void *opaque)
{
	struct transfer *t = opaque;
	take_header(data, size * n, "Api-Version:", t->answer->api, sizeof(t->answer->api));
	take_header(data, size * n, "Ostype:", t->answer->os, sizeof(t->answer->os));
	return size * n;
}

/* What the daemon said, as one printable line; "" if it said nothing. */
static void said(const struct dmig_docker__answer *a, char *ret, size_t size)
{
	json_error_t ignored;
	cleanup_json json_t *root = a->text ? json_loadb(a->text, a->len, 0, &ignored) : NULL;
	const char *text = dmig_docker__text(root, "message");
	size_t n = 0;
	for (; *text && n + 1 < size; text++) {
		bool space = (unsigned char)*text <= ' ' || *text == 127;
		if (!space)
			ret[n++] = *text;
		else if (n && ret[n - 1] != ' ')
			ret[n++] = ' ';
	}
	while (n && (ret[n - 1] == ' ' || ret[n - 1] == '.'))
		n--;
	ret[n] = '\0';
}

static int errno_of_status(long status)
{
	switch (status) {
	case 400:
		return EINVAL;
	case 401:
	case 403:
		return EPERM;
	case 404:
		return ENOENT;
	case 409:
		return EBUSY;
	case 501:
		return EOPNOTSUPP;
	default:
		return EIO;
	}
}

static int status_error(const struct dmig_docker__answer *a, struct dmig_error **err)
{
	char text[MAX_SAID];
	said(a, text, sizeof(text));
	int code = errno_of_status(a->status);
	if (text[0])
		return dmig_error_set(err, code, "Docker says: %s", text);
	return dmig_error_set(err, code, "Docker answered with status %ld", a->status);
}

static int transport_error(struct transfer *t, CURLcode c, struct dmig_error **err)
{
	struct dmig_docker *d = t->d;
	if (c == CURLE_ABORTED_BY_CALLBACK)
		return dmig_error_set(err, ECANCELED, "a call to Docker was broken off");
	if (t->failed == -EFBIG)
		return dmig_error_set(err, EFBIG, "the answer of Docker is larger than %zu bytes", t->max);
	if (t->failed)
		return dmig_error_set(err, -t->failed, "data from or to Docker: %s", strerror(-t->failed));
	if (c == CURLE_OPERATION_TIMEDOUT)
		return dmig_error_set(err, ETIMEDOUT, "Docker did not answer in time");
	if (c == CURLE_COULDNT_CONNECT)
		return dmig_error_set(
			err, ECONNREFUSED, "cannot reach Docker at %s: is it running?", d->socket);
	if (c == CURLE_OUT_OF_MEMORY)
		return dmig_docker__oom(err);
	return dmig_error_set(
		err, EIO, "talking to Docker: %s", d->error[0] ? d->error : curl_easy_strerror(c));
}

/* libcurl asks once a second while nothing moves. */
static int is_cancelled(void *opaque, curl_off_t total, curl_off_t now, curl_off_t up_total, curl_off_t up_now)
{
	const struct dmig_docker *d = opaque;
	(void)total;
	(void)now;
	(void)up_total;
	(void)up_now;
	return dmig_poll_one(d->cancel_fd, POLLIN, 0) == 1;
}

static void set_transport(struct transfer *t, const char *url, int timeout_ms)
{
	CURL *c = t->d->curl;
	curl_easy_reset(c); /* keeps the connection */
	curl_easy_setopt(c, CURLOPT_ERRORBUFFER, t->d->error);
	curl_easy_setopt(c, CURLOPT_UNIX_SOCKET_PATH, t->d->socket);
	curl_easy_setopt(c, CURLOPT_URL, url);
	curl_easy_setopt(c, CURLOPT_PATH_AS_IS, 1L);
	curl_easy_setopt(c, CURLOPT_PROXY, ""); /* http_proxy in the environment is not for this */
	curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http");
	curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
	curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, t);
	curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(c, CURLOPT_HEADERDATA, t);
	if (t->d->cancel_fd >= 0) {
		curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
		curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, is_cancelled);
		curl_easy_setopt(c, CURLOPT_XFERINFODATA, t->d);
	}
}

/* The request's own part. body: text of rq->body, or NULL. Returns its headers. */
static struct curl_slist *set_request(struct transfer *t, const char *body)
{
	CURL *c = t->d->curl;
	const struct dmig_docker__request *rq = t->rq;
	struct curl_slist *headers = NULL;
	if (rq->upload) {
		curl_easy_setopt(c, CURLOPT_UPLOAD, 1L);
		curl_easy_setopt(c, CURLOPT_READFUNCTION, on_upload);
		curl_easy_setopt(c, CURLOPT_READDATA, t);
		headers = curl_slist_append(headers, "Content-Type: application/x-tar");
	} else if (!strcmp(rq->method, "POST")) {
		curl_easy_setopt(c, CURLOPT_POST, 1L);
		curl_easy_setopt(c, CURLOPT_POSTFIELDS, body ? body : "");
		curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)(body ? strlen(body) : 0));
		headers =
			curl_slist_append(headers, body ? "Content-Type: application/json" : "Content-Type:");
	}
	headers = curl_slist_append(headers, "Expect:");
	curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, rq->method);
	return headers;
}

static int run(struct transfer *t, const char *url, const char *body, struct dmig_error **err)
{
	struct dmig_docker *d = t->d;
	struct dmig_docker__answer *a = t->answer;
	set_transport(t, url, t->rq->timeout_ms ? t->rq->timeout_ms : d->timeout_ms);
	struct curl_slist *headers = set_request(t, body);
	d->error[0] = '\0';
	CURLcode c = curl_easy_perform(d->curl);
	curl_slist_free_all(headers);
	if (c != CURLE_OK)
		return transport_error(t, c, err);
	curl_easy_getinfo(d->curl, CURLINFO_RESPONSE_CODE, &a->status);
	int r = grow(t, 0);
	if (r < 0)
		return dmig_docker__oom(err);
	a->text[a->len] = '\0';
	/* 304: it already is what was asked for. */
	return a->status / 100 == 2 || a->status == 304 ? 0 : status_error(a, err);
}

int dmig_docker__http(struct dmig_docker *d, const struct dmig_docker__request *rq,
	struct dmig_docker__answer *ret, struct dmig_error **err)
{
	cleanup_free char *url = NULL;
	char *body = NULL;
	*ret = (struct dmig_docker__answer){0};
	if (rq->no_version)
		url = dmig_asprintf("http://docker%s", rq->path);
	else
		url = dmig_asprintf("http://docker/v%s%s", d->api, rq->path);
	if (!url)
		return dmig_docker__oom(err);
	if (rq->body && !(body = json_dumps(rq->body, JSON_COMPACT)))
		return dmig_docker__oom(err);
	struct transfer t = {.d = d, .rq = rq, .answer = ret, .max = rq->max ? rq->max : MAX_ANSWER};
	int r = run(&t, url, body, err);
	if (body)
		explicit_bzero(body, strlen(body));
	free(body);
	if (r < 0)
		dmig_docker__answer_clear(ret);
	return r;
}

/* Send, and read the answer as JSON when somebody wants it. */
static int call(
	struct dmig_docker *d, const struct dmig_docker__request *rq, json_t **ret, struct dmig_error **err)
{
	cleanup_answer struct dmig_docker__answer a = {0};
	int r = dmig_docker__http(d, rq, &a, err);
	if (r < 0 || !ret)
		return r;
	return dmig_docker__json("answer of Docker", a.text, a.len, MAX_ANSWER, ret, err);
}

int dmig_docker__get(struct dmig_docker *d, json_t **ret, struct dmig_error **err, const char *fmt, ...)
{
	va_list ap;
	cleanup_free char *path = NULL;
	va_start(ap, fmt);
	int r = vasprintf(&path, fmt, ap);
	va_end(ap);
	if (r < 0) {
		path = NULL;
		return dmig_docker__oom(err);
	}
	return call(d, &(struct dmig_docker__request){.method = "GET", .path = path}, ret, err);
}

int dmig_docker__post(struct dmig_docker *d, const json_t *body, int timeout_ms, json_t **ret,
	struct dmig_error **err, const char *fmt, ...)
{
	va_list ap;
	cleanup_free char *path = NULL;
	va_start(ap, fmt);
	int r = vasprintf(&path, fmt, ap);
	va_end(ap);
	if (r < 0) {
		path = NULL;
		return dmig_docker__oom(err);
	}
	struct dmig_docker__request rq = {
		.method = "POST", .path = path, .body = body, .timeout_ms = timeout_ms};
	return call(d, &rq, ret, err);
}

int dmig_docker__delete(struct dmig_docker *d, struct dmig_error **err, const char *fmt, ...)
{
	va_list ap;
	cleanup_free char *path = NULL;
	va_start(ap, fmt);
	int r = vasprintf(&path, fmt, ap);
	va_end(ap);
	if (r < 0) {
		path = NULL;
		return dmig_docker__oom(err);
	}
	cleanup_error struct dmig_error *e = NULL;
	r = call(d, &(struct dmig_docker__request){.method = "DELETE", .path = path}, NULL, &e);
	if (r == 0 || r == -ENOENT)
		return 0;
	return dmig_error_set_class(
		err, e ? e->class : DMIG_ERR_FAILED, -r, "%s", e && e->message ? e->message : "");
}
