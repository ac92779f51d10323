/* shakedown's own host all-reduce for tests/bench/allreduce.py: its ranks may live in different
 * network namespaces. Prints the facts collective.fabric.* as one JSON object.
 *
 * usage: fabric_allreduce RANKS PROVIDER MIN_BYTES MAX_BYTES [NETNS...]
 * Of the environment: BENCH_RAILS, devices to use at most; BENCH_NOTIFY=message, no CQ data;
 * BENCH_DEADLINE in seconds.
 * PROVIDER "own": the transport shm, shared memory without libfabric.
 * Ranks are dealt out to the namespaces in blocks; a namespace is a file such as /run/netns/a. */
#include "collectives/fabric/fabric.h"
#include "collectives/other/shm.h"
#include "core/facts/facts.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#define BENCH_DEADLINE_MS 300000U

struct bench_spaces {
    char **paths;
    unsigned count;
};

/* What /sys/class/net shows belongs to the namespace in which it was mounted. */
static int bench_sysfs(void)
{
    if (unshare(CLONE_NEWNS) != 0 || mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) {
        return -1;
    }
    return mount("sysfs", "/sys", "sysfs", 0, NULL);
}

/* Before a rank opens libfabric. */
static void bench_enter(struct shk_job *job, enum shk_phase phase, void *arg)
{
    const struct bench_spaces *spaces = arg;
    int fd = -1;

    if (phase != SHK_PHASE_START || spaces->count == 0) {
        return;
    }
    fd = open(spaces->paths[shk_job_rank(job) * spaces->count / shk_job_size(job)],
              O_RDONLY | O_CLOEXEC);
    if (fd < 0 || setns(fd, CLONE_NEWNET) != 0 || bench_sysfs() != 0) {
        shk_job_fail(job, errno, false, "cannot enter the network namespace");
        _exit(1);
    }
    close(fd);
}

static const char *bench_key(char *buf, size_t size, const char *transport, const char *member)
{
    snprintf(buf, size, "collective.%s.%s", transport, member);
    return buf;
}

static int bench_print(const struct shk_facts *facts, const char *transport)
{
    static const char *const texts[] = {"status", "provider", "version"};
    static const char *const lists[] = {"sizes", "rails", "evidence"};
    char key[64];
    const char *status = shk_facts_get_text(facts, bench_key(key, sizeof key, transport, "status"));
    const char *reason = shk_facts_get_text(facts, bench_key(key, sizeof key, transport, "reason"));
    json_t *out = json_object();
    int rc = 0;

    if (status == NULL || strcmp(status, "ok") != 0) {
        fprintf(stderr, "fabric_allreduce: %s: %s\n", status != NULL ? status : "no status",
                reason != NULL ? reason : "");
        rc = 1;
    }
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *text =
            shk_facts_get_text(facts, bench_key(key, sizeof key, transport, texts[i]));

        json_object_set_new(out, texts[i], text != NULL ? json_string(text) : json_null());
    }
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        json_object_set(
            out, lists[i],
            shk_facts_get_array(facts, bench_key(key, sizeof key, transport, lists[i])));
    }
    json_object_set(out, "roofline",
                    shk_facts_get_object(facts, bench_key(key, sizeof key, transport, "roofline")));
    json_dumpf(out, stdout, JSON_COMPACT);
    json_decref(out);
    putchar('\n');
    return rc;
}

int main(int argc, char **argv)
{
    struct bench_spaces spaces = {0};
    struct shk_fabric_tweaks tweaks = {.at_phase = bench_enter, .at_phase_arg = &spaces};
    struct shk_collective_options options = {.deadline_ms = BENCH_DEADLINE_MS};
    struct shk_error err = {{0}};
    struct shk_facts *facts = NULL;
    bool own = false;
    int rc = 0;

    if (getenv("BENCH_DEADLINE") != NULL) {
        options.deadline_ms = 1000 * (unsigned)atoi(getenv("BENCH_DEADLINE"));
    }
    if (getenv("BENCH_NOTIFY") != NULL && strcmp(getenv("BENCH_NOTIFY"), "message") == 0) {
        tweaks.notify = SHK_NOTIFY_DELIVERY;
    }
    if (argc < 5) {
        fprintf(stderr, "usage: fabric_allreduce RANKS PROVIDER MIN_BYTES MAX_BYTES [NETNS...]\n");
        return 2;
    }
    options.ranks = (unsigned)strtoul(argv[1], NULL, 10);
    options.provider = argv[2];
    options.rails = getenv("BENCH_RAILS") != NULL ? (unsigned)atoi(getenv("BENCH_RAILS")) : 0;
    options.min_bytes = strtoull(argv[3], NULL, 10);
    options.max_bytes = strtoull(argv[4], NULL, 10);
    spaces.paths = argv + 5;
    spaces.count = (unsigned)argc - 5;
    facts = shk_facts_create();
    own = strcmp(argv[2], "own") == 0;
    rc = facts == NULL ? -1
         : own         ? shk_shm_run(&options, NULL, facts, &err)
                       : shk_fabric_run(&options, &tweaks, facts, &err);
    if (rc != 0) {
        fprintf(stderr, "fabric_allreduce: %s\n", err.text);
        rc = 1;
    } else {
        rc = bench_print(facts, own ? "shm" : "fabric");
    }
    shk_facts_destroy(facts);
    return rc;
}
