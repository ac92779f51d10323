/* What strangers send while ranks meet. The first byte says to whom: rank 0, that waits for a
 * proof; a rank, that waits for a challenge and a welcome; the client of PMI; the readers of cards,
 * lists of hosts and files of keys. Rank 0 must take nobody without the key, a rank nobody as its
 * rank 0. */
#include "collectives/launch/world_private.h"
#include "collectives/meet/pmi.h"
#include "fuzz.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MEET_RANKS = 3 };

static struct shk_greet_self meet_self(unsigned rank)
{
    struct shk_greet_self self = {.rank = rank, .size = MEET_RANKS, .host = "n", .version = "fuzz"};
    shk_greet_job(self.job, "fuzz");
    shk_key_mix(&self.key, "a key that the fuzzer does not have", "fuzz");
    return self;
}

/* Rank 0's frames: {bytes} as they come from a socket. */
static void meet_hub(const uint8_t *data, size_t size)
{
    static const struct shk_world_options options = {.version = "fuzz", .deadline_ms = 1000};
    struct hub_member members[MEET_RANKS] = {{.rank = 0}};
    struct shk_world world = {.options = &options,
                              .listen_fd = -1,
                              .self = meet_self(0),
                              .greets = true,
                              .members = members,
                              .size = MEET_RANKS};
    int fds[2];
    for (unsigned i = 0; i < MEET_RANKS; i++)
        members[i] = (struct hub_member){.rank = i, .link = {.fd = -1}};
    world.strangers = calloc(1, sizeof *world.strangers);
    if (!world.strangers || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
        abort();
    shk_link_open(&world.strangers[0], fds[0]);
    world.strangers[0].limit = 4096;
    world.strangers_count = 1;
    hub_greet(&world, &world.strangers[0]);
    (void)!send(fds[1], data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    for (unsigned i = 0; i < 4; i++)
        hub_turn(&world, 0);
    for (unsigned i = 0; i < MEET_RANKS; i++)
        if (members[i].state != MEMBER_ABSENT || members[i].greeted)
            abort(); /* it came in without the key */
    close(fds[1]);
    for (size_t i = 0; i < world.strangers_count; i++)
        shk_link_close(&world.strangers[i]);
    free(world.strangers);
}

/* A rank, of which the challenge has the right job so that inputs get past it. */
static void meet_rank(const uint8_t *data, size_t size)
{
    struct shk_greet_self self = meet_self(1);
    struct shk_greet_challenge challenge = {.magic = "shkmeet1", .keyed = 1}, seen;
    struct shk_greet_proof proof;
    struct shk_greet_welcome welcome;
    struct shk_error err = {""};
    (void)shk_greet_answer(&self, data, size, &seen, &proof);
    memcpy(challenge.job, self.job, sizeof challenge.job);
    if (shk_greet_answer(&self, &challenge, sizeof challenge, &seen, &proof) != SHK_GREET_WELCOME)
        abort();
    enum shk_greet_verdict verdict = shk_greet_end(&self, &seen, &proof, data, size, &welcome);
    if (verdict == SHK_GREET_WELCOME)
        abort(); /* it took one without the key for rank 0 */
    (void)shk_greet_refused(&self, verdict, &welcome, &err);
}

static void meet_pmi(const uint8_t *data, size_t size)
{
    struct shk_pmi pmi = {.rank = size > 0 ? data[0] & 1U : 0, .size = 2};
    struct shk_error err = {""};
    int fds[2];
    if (size == 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
        return;
    (void)!send(fds[1], data + 1, size - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)shutdown(fds[1], SHUT_WR);
    (void)!shk_pmi_exchange(fds[0], data[0] & 2 ? 1 : -1, "card", 200, &pmi, &err);
    free(pmi.card);
    close(fds[0]);
    close(fds[1]);
}

static void meet_texts(const char *text)
{
    char key[SHK_CARD_KEY + 1];
    unsigned port = 0;
    json_t *addresses = NULL, *hosts = shk_meet_hostlist(text, SHK_MEET_HOSTS);
    if (!hosts || json_array_size(hosts) > SHK_MEET_HOSTS)
        abort();
    (void)shk_launch_tasks_of(text, 3);
    if (!shk_card_read(text, key, &port, &addresses) && (port == 0 || port > 65535))
        abort();
    json_decref(addresses);
    json_decref(hosts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || size > 16384)
        return 0;
    if (data[0] % 4 == 0)
        meet_hub(data + 1, size - 1);
    else if (data[0] % 4 == 1)
        meet_rank(data + 1, size - 1);
    else if (data[0] % 4 == 2)
        meet_pmi(data + 1, size - 1);
    char *text = strndup((const char *)data + 1, size - 1);
    if (text && data[0] % 4 == 3)
        meet_texts(text);
    free(text);
    return 0;
}
