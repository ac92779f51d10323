/* How the ranks of a job meet: the first way that is there. collectives/meet has the ways. */
#include "collectives/launch/world_private.h"
#include "collectives/meet/connect.h"
#include "collectives/meet/folder.h"
#include "collectives/meet/hosts.h"
#include "collectives/meet/pmi.h"
#include "core/text/uses.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

void world_descriptors(struct shk_world *world)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    if (limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
    world->descriptors = limit.rlim_cur < INT_MAX ? (int)limit.rlim_cur : INT_MAX;
    if (world->size > (unsigned)world->descriptors - WORLD_SPARE_FILES)
        (void)shk_error_set(&world->problem, EMFILE,
                            "rank 0 is limited to %d open files (ulimit -Hn), too few for %u ranks",
                            world->descriptors, world->size);
}

/* The ways that pass on a card. */
static bool join_has_card(enum shk_meet_way way)
{
    return way != SHK_MEET_NONE && way != SHK_MEET_ADDRESS;
}

/* From where the key of a card comes, for the report. */
static const char *join_channel(enum shk_meet_way way)
{
    switch (way) {
    case SHK_MEET_PMIX: return "PMIx";
    case SHK_MEET_PMI: return "PMI";
    case SHK_MEET_FOLDER: return "the folder";
    case SHK_MEET_SSH: return "ssh";
    default: return "the launcher";
    }
}

/* The joining failed: several tasks of which each is on its own. */
static void join_not(struct shk_world *world, const char *why)
{
    struct shk_meet *meet = &world->meet;
    if (meet->way != SHK_MEET_PMIX) /* job.pmix.problem says it */
        snprintf(meet->why_not, sizeof meet->why_not, "%.199s", why);
    meet->way = SHK_MEET_NONE;
    if (world->listen_fd >= 0)
        close(world->listen_fd);
    world->listen_fd = -1;
}

/* What PMIx told, as any other way would have. */
static int join_take_pmix(struct shk_world *world, struct shk_error *err)
{
    struct shk_meet *meet = &world->meet;
    struct shk_pmix *pmix = &world->pmix;
    meet->rank = pmix->rank;
    meet->size = pmix->size;
    meet->local_rank = (int)pmix->local_rank;
    meet->local_size = pmix->local_size;
    meet->by = "pmix";
    meet->why = "offered";
    meet->card = pmix->card;
    pmix->card = NULL;
    meet->hosts = pmix->hosts ? json_array() : NULL;
    for (unsigned i = 0; pmix->hosts && i < pmix->size; i++)
        if (json_array_append_new(meet->hosts, json_string(pmix->hosts[i])))
            return shk_error_set(err, ENOMEM, "out of memory");
    return 0;
}

/* Hands rank 0's card (NULL: this is another rank) to the launcher, or takes it from there. */
static int join_exchange(struct shk_world *world, const char *card, unsigned start_ms,
                         struct shk_error *reason)
{
    struct shk_meet *meet = &world->meet;
    if (meet->way == SHK_MEET_PMIX) {
        shk_pmix_join(&world->pmix, card, start_ms, NULL);
        if (world->pmix.status == SHK_PMIX_OK)
            return join_take_pmix(world, reason);
        *reason = world->pmix.reason;
        return -EPROTO;
    }
    if (meet->way == SHK_MEET_PMI) {
        struct shk_pmi pmi = {.rank = meet->rank, .size = meet->size};
        /* half of the time: when a task is missing, there is another way to find out which */
        int rc = shk_pmi_join(&pmi, card, start_ms / 2, reason);
        world->late = pmi.late;
        snprintf(world->space, sizeof world->space, "%s", pmi.space);
        meet->card = pmi.card;
        meet->size = pmi.size;
        return rc;
    }
    if (meet->way == SHK_MEET_FOLDER && card)
        return shk_folder_put(meet->folder, meet->job, card, reason);
    if (meet->way == SHK_MEET_SSH)
        return card ? shk_hosts_tell(card, reason) : shk_hosts_card(&meet->card, start_ms, reason);
    return 0;
}

static int join_members(struct shk_world *world, struct shk_error *err)
{
    const struct shk_meet *meet = &world->meet;
    world->size = meet->size;
    world->members = calloc(world->size, sizeof *world->members);
    if (!world->members)
        return shk_error_set(err, ENOMEM, "out of memory");
    for (unsigned i = 0; i < world->size; i++) {
        const char *host = json_string_value(json_array_get(meet->hosts, i));
        struct hub_member *member = &world->members[i];
        member->rank = i;
        member->link.fd = -1;
        snprintf(member->host, sizeof member->host, "%.63s", host ? host : "");
    }
    snprintf(world->members[0].host, sizeof world->members[0].host, "%.63s", world->host);
    world->members[0].greeted = true;
    world_descriptors(world);
    world->role = SHK_WORLD_ROOT;
    return 0;
}

/* Who this process is to those that it greets. */
static void join_self(struct shk_world *world)
{
    const struct shk_meet *meet = &world->meet;
    struct shk_greet_self *self = &world->self;
    self->key = meet->key;
    memcpy(self->job, meet->job, sizeof self->job);
    self->rank = meet->rank;
    self->size = meet->size;
    self->local_rank = meet->local_rank;
    snprintf(self->host, sizeof self->host, "%.63s", world->host);
    snprintf(self->version, sizeof self->version, "%.31s", world->options->version);
}

static int join_root(struct shk_world *world, unsigned start_ms, struct shk_error *err)
{
    struct shk_meet *meet = &world->meet;
    struct shk_error reason = {""};
    char *card = NULL;
    int rc = shk_card_listen(meet->port, meet->ports, meet->loopback, &world->port, &reason);
    world->listen_fd = rc < 0 ? -1 : rc;
    if (rc >= 0 && (rc = shk_card_key(world->token)))
        (void)shk_error_set(&reason, EIO, "rank 0 has no random bytes for a key");
    if (rc >= 0 && join_has_card(meet->way)) {
        char key[SHK_CARD_KEY + 1];
        rc = shk_card_key(key);
        card = rc ? NULL : shk_card_write(key, world->port, meet->loopback, SHK_PMI_CARD);
        if (!rc)
            shk_key_mix(&meet->key, key, join_channel(meet->way));
        rc = card ? join_exchange(world, card, start_ms, &reason)
                  : shk_error_set(&reason, ENOMEM, "no memory for the address of rank 0");
        explicit_bzero(key, sizeof key);
    }
    free(card);
    if (rc < 0) {
        if (world->meet.way == SHK_MEET_PMIX && !world->pmix.tried) {
            world->pmix.status = SHK_PMIX_FAILED;
            world->pmix.reason = reason;
            world->pmix.tried = true;
        }
        join_not(world, reason.text);
        return 0;
    }
    if (meet->size < 2) {
        join_not(world, "");
        return 0;
    }
    join_self(world);
    world->greets = true;
    return join_members(world, err);
}

static void join_member(struct shk_world *world, unsigned start_ms)
{
    struct shk_error reason = {""};
    if (join_exchange(world, NULL, start_ms, &reason)) {
        join_not(world, reason.text);
        return;
    }
    join_self(world);
    world->role = SHK_WORLD_MEMBER;
}

/* By PMIx, when it is offered. True: nothing else is to be tried. */
static bool join_pmix(struct shk_world *world, unsigned rank, unsigned start_ms, int *rc_p,
                      struct shk_error *err)
{
    world->meet.way = SHK_MEET_PMIX;
    if (rank == 0)
        *rc_p = join_root(world, start_ms, err);
    else
        join_member(world, start_ms);
    /* A server that was spoken to and failed leaves the ranks at different points, and most of the
     * time is used up; what was never there does so for all of them alike, and at once. */
    return *rc_p || world->meet.way == SHK_MEET_PMIX ||
           (shk_pmix_built() && !world->pmix.missing) || world->pmix.status == SHK_PMIX_OK;
}

/* By the way that was chosen. */
static int join_chosen(struct shk_world *world, unsigned start_ms, struct shk_error *err)
{
    if (world->meet.way == SHK_MEET_NONE)
        return 0;
    if (world->meet.way == SHK_MEET_SSH) {
        int rc = shk_hosts_hear(&world->meet, start_ms, err);
        if (rc)
            return rc;
    }
    if (world->meet.rank == 0)
        return join_root(world, start_ms, err);
    join_member(world, start_ms);
    return 0;
}

/* The launcher's variables, after PMI left all that came waiting at its barrier. When they do not
 * help, what PMI said stands. */
static int join_late(struct shk_world *world, const struct shk_launch *launch, unsigned start_ms,
                     struct shk_error *err)
{
    struct shk_meet late;
    int rc = shk_meet_choose(&late, NULL, launch, world_variable, NULL, 1U << SHK_MEET_PMI,
                             world->space, err);
    if (rc || late.way != SHK_MEET_ADDRESS) {
        shk_meet_clear(&late);
        return rc;
    }
    late.key = world->given;
    shk_meet_clear(&world->meet);
    world->meet = late;
    return join_chosen(world, start_ms, err);
}

int world_join(struct shk_world *world, struct shk_error *err)
{
    const struct shk_world_options *options = world->options;
    const struct shk_launch *launch = shk_launch_find(world_variable, NULL);
    const char *asked = options->rendezvous;
    unsigned start_ms = options->deadline_ms / 3, rank = 0;
    bool automatic = !asked || strcmp(asked, "auto") == 0;
    int rc = shk_key_get(&world->given, options->key_file, launch && !launch->inherits, err);
    if (rc)
        return rc;
    world->meet.local_rank = -1;
    world->meet.key = world->given;
    if (automatic && world_offered(&rank) && join_pmix(world, rank, start_ms, &rc, err))
        return rc;
    shk_meet_clear(&world->meet);
    rc = shk_meet_choose(&world->meet, asked, launch, world_variable, NULL, 0, NULL, err);
    world->meet.key = world->given;
    if (!rc && asked && strncmp(asked, "tcp://", 6) == 0 && !world->meet.loopback &&
        !world->given.there)
        return shk_error_set(err, EACCES,
                             "--rendezvous %s needs a key that only the ranks of the job have: set "
                             "%s to 16 characters or more, or give --key-file FILE",
                             asked, shk_variable("rendezvous-key"));
    rc = rc ? rc : join_chosen(world, start_ms, err);
    return rc || !world->late ? rc : join_late(world, launch, start_ms, err);
}

/* With what a card says. */
static int connect_by_card(struct shk_world *world, const char *card, uint64_t end_ns,
                           struct shk_greet_welcome *welcome, struct shk_error *err)
{
    char key[SHK_CARD_KEY + 1];
    unsigned port = 0;
    json_t *addresses = NULL;
    if (shk_card_read(card, key, &port, &addresses))
        return shk_error_set(err, EPROTO, "what rank 0 published is not an address");
    world->self.key = world->meet.key;
    shk_key_mix(&world->self.key, key, join_channel(world->meet.way));
    explicit_bzero(key, sizeof key);
    struct shk_connect how = {
        .self = &world->self, .hosts = addresses, .port = &port, .ports = 1, .end_ns = end_ns};
    int rc = shk_connect(&how, welcome, err);
    json_decref(addresses);
    return rc;
}

/* A card in a folder may be that of an earlier run: it is read again until rank 0 answers. */
static int connect_by_folder(struct shk_world *world, uint64_t end_ns,
                             struct shk_greet_welcome *welcome, struct shk_error *err)
{
    struct timespec nap = {.tv_nsec = 100000000};
    int rc = shk_error_set(err, EHOSTUNREACH, "rank %u of %u: rank 0 wrote nothing to %s in time",
                           world->self.rank, world->self.size, world->meet.folder);
    char *last = NULL;
    for (uint64_t now = shk_job_now_ns(); now < end_ns; now = shk_job_now_ns()) {
        char *card = NULL;
        uint64_t until = now + 2000000000ULL;
        int got = shk_folder_get(world->meet.folder, world->meet.job, &card, err);
        bool again = got || (card && last && strcmp(card, last) == 0);
        if (got)
            rc = got;
        if (card)
            rc = connect_by_card(world, card, until < end_ns ? until : end_ns, welcome, err);
        free(last);
        last = card;
        if (rc >= 0 || (again && rc != -EHOSTUNREACH))
            break;
        (void)nanosleep(&nap, NULL);
    }
    free(last);
    return rc;
}

int world_connect(struct shk_world *world, unsigned start_ms, int *fd_p, struct shk_error *err)
{
    const struct shk_meet *meet = &world->meet;
    uint64_t end_ns = world->start_ns + start_ms * 1000000ULL;
    struct shk_greet_welcome welcome = {0};
    struct shk_connect how = {.self = &world->self,
                              .hosts = meet->addresses,
                              .port = meet->port,
                              .ports = meet->ports,
                              .end_ns = end_ns};
    int rc = meet->way == SHK_MEET_FOLDER ? connect_by_folder(world, end_ns, &welcome, err)
             : meet->card ? connect_by_card(world, meet->card, end_ns, &welcome, err)
                          : shk_connect(&how, &welcome, err);
    if (rc < 0)
        return rc;
    world->self.local_rank = welcome.local_rank >= 0 ? welcome.local_rank : 0;
    *fd_p = rc;
    return 0;
}

json_t *world_joined_fact(const struct shk_world *world)
{
    const struct shk_meet *meet = &world->meet;
    json_t *joined =
        json_pack("{s:s*, s:s*, s:s*, s:s*, s:b, s:b, s:i}", "by", meet->by, "why", meet->why,
                  "launcher", meet->launcher, "variable", meet->variable, "keyed", meet->key.there,
                  "loopback", meet->loopback, "port", (int)world->port);
    if (joined && meet->key.there)
        json_object_set_new(joined, "key", shk_json_text(meet->key.from, strlen(meet->key.from)));
    return joined;
}
