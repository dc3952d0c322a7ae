/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "runc/container.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "support/test.h"
#include "util/cleanup.h"
#include "util/paths.h"
#include "util/spawn.h"

/* ms; generous for a loaded machine, nothing waits for it when all is well. */
#define SOON_MS 10000
/* ms without a beat that count as stopped: a beat comes every 0.5 ms. */
#define STILL_MS 60

const char *container_runc(void)
{
	const char *chosen = getenv("DMIGRATE_TEST_RUNC");
	return chosen ? chosen : "runc";
}

static void run(const char *const *argv)
{
	struct dmig_error *err = NULL;
	assert_ok(dmig_run(argv, NULL, SOON_MS, NULL, &err), err);
}

static void write_text(const char *dir, const char *name, const char *text, mode_t mode)
{
	cleanup_free char *path = dmig_asprintf("%s/%s", dir, name);
	struct dmig_error *err = NULL;
	assert_ok(dmig_write_file_atomic(path, text, strlen(text), mode, &err), err);
}

static const char config[] =
	"{\"ociVersion\": \"1.0.2\", \"hostname\": \"beat\", \"root\": {\"path\": \"rootfs\"},"
	"\"process\": {\"terminal\": %s, \"user\": {\"uid\": 0, \"gid\": 0}, \"args\": "
	"[\"/beat-program\"], \"cwd\": \"/\","
	" \"capabilities\": {\"bounding\": [\"CAP_NET_ADMIN\"], \"effective\": [\"CAP_NET_ADMIN\"], "
	"\"permitted\": [\"CAP_NET_ADMIN\"]}},"
	"\"mounts\": [{\"destination\": \"/proc\", \"type\": \"proc\", \"source\": \"proc\"},"
	" {\"destination\": \"/dev\", \"type\": \"tmpfs\", \"source\": \"tmpfs\", \"options\": [\"nosuid\", "
	"\"mode=755\"]},"
	" {\"destination\": \"/dev/pts\", \"type\": \"devpts\", \"source\": \"devpts\", \"options\": "
	"[\"nosuid\", \"noexec\", \"newinstance\", \"ptmxmode=0666\", \"mode=0620\"]},"
	" {\"destination\": \"/beat\", \"type\": \"bind\", \"source\": \"%s/beat\", \"options\": [\"rbind\", "
	"\"rw\"]}],"
	"\"linux\": {\"cgroupsPath\": \"/%s\", \"namespaces\": [{\"type\": \"pid\"}, {\"type\": "
	"\"network\"}, {\"type\": \"ipc\"},"
	" {\"type\": \"uts\"}, {\"type\": \"mount\"}]}}";

static void make_bundle(struct container *c, bool tty)
{
	cleanup_free char *rootfs = dmig_asprintf("%s/rootfs", c->bundle);
	cleanup_free char *program = dmig_asprintf("%s/rootfs/beat-program", c->bundle);
	cleanup_free char *beat = dmig_asprintf("%s/beat", c->dir);
	cleanup_free char *text = dmig_asprintf(config, tty ? "true" : "false", c->dir, c->id);
	char page[4096] = "";
	assert_int_equal(dmig_mkdir_p(rootfs, 0755), 0);
	assert_int_equal(mkdir(beat, 0755), 0);
	run((const char *[]){"cp", BEAT, program, NULL});
	write_text(c->bundle, "config.json", text, 0644);
	cleanup_free char *counter = dmig_asprintf("%s/counter", beat);
	int fd = open(counter, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	assert_int_equal(write(fd, page, sizeof(page)), sizeof(page));
	c->counter = mmap(NULL, sizeof(page), PROT_READ, MAP_SHARED, fd, 0);
	assert_true(c->counter != MAP_FAILED);
	close(fd);
}

static int listen_console(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(fd, 1), 0);
	return fd;
}

/* runc sends the master of the container's terminal. */
static int take_master(int console)
{
	char name[64];
	size_t n = 0;
	int master = -1;
	cleanup_fd int fd = accept(console, NULL, NULL);
	assert_true(fd >= 0);
	assert_true(dmig_recv_fds(fd, name, sizeof(name), &master, 1, &n) >= 0);
	assert_int_equal(n, 1);
	return master;
}

/* The stdio of `runc run --detach` becomes the container's: /dev/null, and no pipe that would keep somebody
 * waiting. */
static void start(struct container *c, bool tty)
{
	cleanup_free char *pid_file = dmig_asprintf("%s/pid", c->dir);
	cleanup_free char *console_path = dmig_asprintf("%s/console.sock", c->dir);
	cleanup_fd int console = tty ? listen_console(console_path) : -1;
	const char *argv[] = {container_runc(), "--root", c->root, "run", "--detach", "--bundle", c->bundle,
		"--pid-file", pid_file, c->id, NULL, NULL, NULL};
	if (tty) {
		argv[9] = "--console-socket";
		argv[10] = console_path;
		argv[11] = c->id;
	}
	struct dmig_spawn s = DMIG_SPAWN_INIT;
	struct dmig_error *err = NULL;
	s.argv = argv;
	pid_t runc = dmig_spawn(&s, NULL, &err);
	assert_ok(runc, err);
	c->master = tty ? take_master(console) : -1;
	assert_int_equal(dmig_wait_pid(runc, -1, SOON_MS), 0);
	char *text = NULL;
	assert_int_equal(dmig_read_file(pid_file, 64, &text, NULL), 0);
	c->init = (pid_t)strtol(text, NULL, 10);
	free(text);
}

void container_start(struct container *c, bool tty)
{
	static int count;
	c->dir = test_mkdir();
	c->root = dmig_asprintf("%s/runc", c->dir);
	c->bundle = dmig_asprintf("%s/bundle", c->dir);
	c->images = dmig_asprintf("%s/images", c->dir);
	c->run = dmig_asprintf("%s/run", c->dir);
	c->id = dmig_asprintf("dmig-test-%d-%d", (int)getpid(), count++);
	make_bundle(c, tty);
	start(c, tty);
	assert_true(container_runs(c));
	container_new_run(c);
}

void container_new_run(struct container *c)
{
	assert_int_equal(dmig_remove_tree(c->images), 0);
	assert_int_equal(dmig_remove_tree(c->run), 0);
	assert_int_equal(mkdir(c->images, 0700), 0);
	assert_int_equal(mkdir(c->run, 0700), 0);
}

void container_end(struct container *c)
{
	dmig_run((const char *[]){container_runc(), "--root", c->root, "delete", "--force", c->id, NULL},
		NULL, SOON_MS, NULL, NULL);
	dmig_closep(&c->master);
	munmap((void *)(uintptr_t)c->counter, 4096);
	test_rmdir(c->dir);
	free(c->root);
	free(c->bundle);
	free(c->images);
	free(c->run);
	free(c->id);
}

bool container_runs(const struct container *c)
{
	uint32_t before = *c->counter;
	int64_t deadline = dmig_now_ms() + SOON_MS;
	while (dmig_now_ms() < deadline) {
		/* The first change may be a store that was already on its way. */
		if (*c->counter - before >= 3)
			return true;
		usleep(1000);
	}
	return false;
}

bool container_stands(const struct container *c)
{
	uint32_t before = *c->counter;
	usleep(STILL_MS * 1000);
	return *c->counter == before;
}

bool container_dead(const struct container *c)
{
	cleanup_free char *path = dmig_asprintf("/proc/%d/stat", (int)c->init);
	cleanup_free char *text = NULL;
	return dmig_read_file(path, 4096, &text, NULL) < 0 || strstr(text, ") Z ") != NULL;
}

void container_require(void)
{
	cleanup_free char *criu = dmig_libexec_path("criu");
	if (geteuid() != 0)
		test_skip_program("not root");
	if (access(criu, X_OK) < 0)
		test_skip_program("CRIU is not built");
	if (dmig_run((const char *[]){container_runc(), "--version", NULL}, NULL, SOON_MS, NULL, NULL) < 0)
		test_skip_program("runc is not installed");
}
