/* A rank 0 that lies to a rank: the input is what it sends. The rank's worker is a real one, of a
 * transport that only exchanges values. */
#include "collectives/launch/world_private.h"
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* What the others published may be anything; it must not be more than was asked for. */
static int agent_exchange(struct shk_job *job, const struct shk_collective_options *options,
                          struct shk_error *err)
{
    char value[64] = "";
    size_t len = 0;
    int rc = shk_job_put(job, "address", "here", 4, err);

    (void)options;
    shk_job_set_phase(job, SHK_PHASE_EXCHANGE, 0);
    rc = rc ? rc : shk_job_fence(job, 100, err);
    for (unsigned i = 0; rc == 0 && i < shk_job_size(job); i++)
        if (shk_job_get(job, i, "address", value, sizeof(value), &len, NULL) == 0 &&
            len > sizeof(value))
            abort();
    return rc;
}

static int agent_facts(const struct shk_job *job, struct shk_crew_result *result,
                       const struct shk_collective_options *options, struct shk_facts *facts,
                       struct shk_error *err)
{
    (void)job, (void)result, (void)options, (void)facts, (void)err;
    return 0;
}

static const struct shk_transport agent_only = {.name = "fuzz",
                                                .doc = "exchanges values",
                                                .work = agent_exchange,
                                                .result_bytes = 256,
                                                .facts = agent_facts};

/* In place of collectives/registry.c. */
const struct shk_transport *const *shk_transports(size_t *count_p)
{
    static const struct shk_transport *const all[] = {&agent_only};

    *count_p = 1;
    return all;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct shk_world_options options = {.version = "fuzz"};
    struct shk_world world = {
        .options = &options, .listen_fd = -1, .meet = {.loopback = true}}; /* dials nobody else */
    struct shk_error err = {""};
    int fds[2];

    if (size > 65536 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
        return 0;
    (void)!send(fds[1], data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    shutdown(fds[1], SHUT_WR);
    int rc = agent_serve(&world, fds[0], 1, size > 0 && data[0] & 1, &err);
    if (rc < 0 && *err.text == '\0')
        abort();
    close(fds[1]);
    return 0;
}
