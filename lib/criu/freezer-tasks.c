/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "criu/freezer-internal.h"
#include "criu/freezer.h"
#include "util/cleanup.h"
#include "util/io.h"

/* Bytes of one cgroup.procs: a million processes. A container may make cgroups of its own, so the walk is
 * bounded. */
#define MAX_PROCS_FILE (8u << 20)
#define MAX_DEPTH 32
#define MAX_PIDS (1u << 20)
#define MAX_STAT 4096
/* What one error line can name. */
#define MAX_NAMED 5
/* v1 has no cgroup.kill: a task that forks faster than we kill is found again this often. */
#define MAX_KILL_PASSES 100
/* Generations between a task and init. */
#define MAX_CHAIN 4096

int dmig_freezer__parse_stat(const char *text, struct dmig_proc_stat *ret)
{
	const char *open = strchr(text, '('), *close = strrchr(text, ')');
	if (!open || !close || close < open)
		return -EBADMSG;
	size_t n = (size_t)(close - open - 1);
	if (n >= sizeof(ret->name))
		n = sizeof(ret->name) - 1;
	for (size_t i = 0; i < n; i++)
		ret->name[i] = isprint((unsigned char)open[1 + i]) ? open[1 + i] : '?';
	ret->name[n] = '\0';
	char *end;
	if (close[1] != ' ' || !isalpha((unsigned char)close[2]) || close[3] != ' ')
		return -EBADMSG;
	ret->state = close[2];
	errno = 0;
	long parent = strtol(close + 4, &end, 10);
	if (errno || end == close + 4 || parent < 0 || parent > INT_MAX)
		return -EBADMSG;
	ret->parent = (pid_t)parent;
	return 0;
}

static int read_stat(pid_t pid, struct dmig_proc_stat *ret)
{
	char path[64];
	cleanup_free char *text = NULL;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	int r = dmig_read_file(path, MAX_STAT, &text, NULL);
	return r < 0 ? r : dmig_freezer__parse_stat(text, ret);
}

pid_t dmig_freezer__parent(pid_t pid)
{
	struct dmig_proc_stat s;
	return read_stat(pid, &s) < 0 ? 0 : s.parent;
}

int dmig_freezer__parse_procs(const char *text, pid_t **pids, size_t *n)
{
	while (*text) {
		char *end;
		errno = 0;
		long pid = strtol(text, &end, 10);
		if (errno || end == text || pid < 0 || pid > INT_MAX || (*end != '\n' && *end != '\0'))
			return -EBADMSG;
		text = end + (*end == '\n');
		if (*n >= MAX_PIDS)
			return -E2BIG;
		if ((*n & (*n - 1)) == 0) { /* full at each power of two */
			pid_t *bigger = realloc(*pids, (*n ? *n * 2 : 1) * sizeof(**pids));
			if (!bigger)
				return -ENOMEM;
			*pids = bigger;
		}
		(*pids)[(*n)++] = (pid_t)pid;
	}
	return 0;
}

static int collect(int dir, int depth, pid_t **pids, size_t *n);

static int collect_below(int dir, int depth, pid_t **pids, size_t *n)
{
	int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_dir DIR *d = copy < 0 ? NULL : fdopendir(copy);
	if (!d) {
		int saved = errno;
		if (copy >= 0)
			close(copy);
		return -saved;
	}
	struct dirent *e;
	while ((e = readdir(d))) {
		if (e->d_type != DT_DIR || e->d_name[0] == '.')
			continue;
		cleanup_fd int sub = openat(dir, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (sub < 0 && errno == ENOENT)
			continue; /* removed meanwhile: it was empty */
		int r = sub < 0 ? -errno : collect(sub, depth + 1, pids, n);
		if (r < 0)
			return r;
	}
	return 0;
}

static int collect(int dir, int depth, pid_t **pids, size_t *n)
{
	if (depth > MAX_DEPTH)
		return -ELOOP;
	cleanup_free char *text = NULL;
	int r = dmig_read_file_at(dir, "cgroup.procs", MAX_PROCS_FILE, &text, NULL);
	if (r == -EOPNOTSUPP)
		r = 0; /* v2 threaded cgroup: its processes stand in the domain above */
	else if (r == -ENODEV || r == -ENOENT)
		return 0; /* removed meanwhile */
	else if (r == 0)
		r = dmig_freezer__parse_procs(text, pids, n);
	return r < 0 ? r : collect_below(dir, depth, pids, n);
}

int dmig_freezer_pids(struct dmig_freezer *f, pid_t **ret, size_t *ret_n, struct dmig_error **err)
{
	cleanup_free pid_t *pids = NULL;
	size_t n = 0;
	int r = collect(f->dir, 0, &pids, &n);
	if (r < 0)
		return dmig_error_set(err, -r, "cannot list the processes of %s: %s", f->path, strerror(-r));
	*ret = steal_ptr(&pids);
	*ret_n = n;
	return 0;
}

static int by_pid(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;
	return (x > y) - (x < y);
}

/* Kills what is listed; true if somebody was not in the (sorted) list of the pass before. */
static bool kill_listed(const pid_t *pids, size_t n, const pid_t *before, size_t n_before)
{
	bool new = false;
	for (size_t i = 0; i < n; i++) {
		if (pids[i] <= 0)
			continue; /* kill(0) would be our own group */
		bool seen = n_before && bsearch(&pids[i], before, n_before, sizeof(*before), by_pid);
		if (kill(pids[i], SIGKILL) == 0 && !seen)
			new = true;
	}
	return new;
}

/* A pass that finds nobody new is the last: who is listed then has its SIGKILL, and a frozen or dead task
 * forks nothing. */
static int kill_by_list(struct dmig_freezer *f, struct dmig_error **err)
{
	cleanup_free pid_t *before = NULL;
	size_t n_before = 0;
	for (int pass = 0; pass < MAX_KILL_PASSES; pass++) {
		pid_t *pids = NULL;
		size_t n;
		int r = dmig_freezer_pids(f, &pids, &n, err);
		if (r < 0)
			return r;
		if (n)
			qsort(pids, n, sizeof(*pids), by_pid);
		bool again = kill_listed(pids, n, before, n_before);
		free(before);
		before = pids;
		n_before = n;
		if (!again)
			return 0;
	}
	return dmig_error_set(err, EBUSY, "the processes of %s fork faster than they can be killed", f->path);
}

int dmig_freezer_kill(struct dmig_freezer *f, struct dmig_error **err)
{
	if (f->v2 && dmig_freezer__write(f, "cgroup.kill", "1") == 0)
		return 0;
	return kill_by_list(f, err); /* v1, and v2 before Linux 5.14 */
}

struct task {
	pid_t pid;
	struct dmig_proc_stat stat;
};

/* Every stat file once, sorted by pid: this runs while the container is frozen. Dead tasks are left out. */
static size_t read_tasks(pid_t *pids, size_t n, struct task *tasks)
{
	size_t out = 0;
	if (n)
		qsort(pids, n, sizeof(*pids), by_pid);
	for (size_t i = 0; i < n; i++) {
		struct task *t = &tasks[out];
		t->pid = pids[i];
		t->stat = (struct dmig_proc_stat){.name = "of another pid namespace"};
		/* A zombie has nothing that could be lost: its parent only has to reap it. */
		if (t->pid > 0 &&
			(read_stat(t->pid, &t->stat) < 0 || t->stat.state == 'Z' || t->stat.state == 'X'))
			continue;
		out++;
	}
	return out;
}

/* The parent may be a zombie or live in another cgroup; then /proc says who it is. */
static pid_t parent_in(pid_t pid, const struct task *tasks, size_t n)
{
	const struct task *t = bsearch(&pid, tasks, n, sizeof(*tasks), by_pid); /* pid is the first member */
	return t ? t->stat.parent : dmig_freezer__parent(pid);
}

/* A chain is never longer than MAX_CHAIN in practice; the bound is for one that changes while we look. */
static bool descends_from(pid_t pid, pid_t init_pid, const struct task *tasks, size_t n)
{
	for (int i = 0; i < MAX_CHAIN && pid > 0; i++) {
		if (pid == init_pid)
			return true;
		pid = parent_in(pid, tasks, n);
	}
	return false;
}

static void append_name(char **who, pid_t pid, const char *name)
{
	char *more = dmig_asprintf("%s%s%d (%s)", *who ? *who : "", *who ? ", " : "", (int)pid, name);
	if (!more)
		return;
	free(*who);
	*who = more;
}

int dmig_freezer_foreign(struct dmig_freezer *f, pid_t init_pid, char **ret_who, struct dmig_error **err)
{
	cleanup_free pid_t *pids = NULL;
	cleanup_free char *who = NULL;
	size_t n;
	int found = 0;
	int r = dmig_freezer_pids(f, &pids, &n, err);
	if (r < 0)
		return r;
	cleanup_free struct task *tasks = calloc(n + 1, sizeof(*tasks));
	if (!tasks)
		return dmig_error_set(err, ENOMEM, "out of memory");
	n = read_tasks(pids, n, tasks);
	for (size_t i = 0; i < n; i++)
		if (!descends_from(tasks[i].pid, init_pid, tasks, n) && found++ < MAX_NAMED)
			append_name(&who, tasks[i].pid, tasks[i].stat.name);
	if (ret_who)
		*ret_who = steal_ptr(&who);
	return found;
}
