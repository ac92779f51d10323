#include "collectives/launch/world_private.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* After trouble: how long to collect what else went wrong. Deaths and errors of other nodes come
 * within a round trip; when all that came is errors that another rank's end would explain, that
 * rank is waited for until its silence counts. */
#define RUN_GRACE_NS      300000000ULL
#define RUN_ECHO_GRACE_NS (WORLD_SILENT_NS + 1000000000ULL)

/* Time to answer an order to stop. A rank that is not there any more is lost by its silence before
 * that; one that still speaks only waits for its worker to die. */
#define RUN_STOP_NS (WORLD_SILENT_NS + 3000000000ULL)

static struct shk_job_slot *run_slot(const struct hub_member *member)
{
    return &member->group->job->slots[member->index];
}

static void run_release(const struct shk_world *world, struct hub_group *group)
{
    struct world_release_frame release = {.run = group->run, .epoch = group->released + 1};

    for (unsigned i = 0; i < group->size; i++) {
        uint64_t value = group->job->slots[i].value[release.epoch & 1];

        release.max = value > release.max ? value : release.max;
    }
    hub_spread_add(group);
    release.puts = group->puts_count;
    hub_spread_turn(world, group);
    group->released = release.epoch;
    group->arrived = 0;
    for (unsigned i = 0; i < group->size; i++)
        (void)shk_link_send(&group->members[i]->link, SHK_FRAME_RELEASE, &release, sizeof release);
}

static void run_state(const struct shk_world *world, struct hub_member *member,
                      const struct shk_frame *frame)
{
    struct hub_group *group = member->group;
    struct shk_job_slot *slot = run_slot(member);
    struct crew_watch *watch = &group->crew.watch[member->index];
    struct world_state_frame state;
    uint64_t before = atomic_load(&slot->epoch);

    if (frame->len != sizeof state)
        return;
    memcpy(&state, frame->data, sizeof state);
    if (state.run != group->run)
        return;
    slot->value[state.epoch & 1] = state.value;
    atomic_store(&slot->epoch, state.epoch);
    atomic_store(&slot->bytes, state.bytes);
    atomic_store(&slot->phase, state.phase);
    atomic_store(&slot->op, state.op);
    atomic_store(&slot->waiting, state.waiting);
    group->result.ranks[member->index].pid = state.pid;
    watch->stopsig = state.stopsig;
    watch->stopped_ns =
        state.stopped_ms < 0 ? 0 : shk_job_now_ns() - (uint64_t)state.stopped_ms * 1000000U;
    if (before <= group->released && state.epoch > group->released)
        group->arrived++;
    if (group->arrived == group->size)
        run_release(world, group);
}

static void run_put(struct hub_member *member, const struct shk_frame *frame)
{
    struct shk_job_slot *slot = run_slot(member);
    uint32_t used = atomic_load(&slot->used);
    uint32_t run = 0;

    memcpy(&run, frame->data, frame->len >= 4 ? 4 : 0);
    if (run == member->group->run && frame->len >= 4 && frame->len - 4 <= SHK_JOB_SPACE - used) {
        memcpy(slot->space + used, frame->data + 4, frame->len - 4);
        atomic_store(&slot->used, used + frame->len - 4);
    }
}

static void run_result(struct hub_member *member, const struct shk_frame *frame)
{
    uint32_t run = 0;

    memcpy(&run, frame->data, frame->len >= 4 ? 4 : 0);
    if (run == member->group->run && frame->len >= 4 &&
        frame->len - 4 <= member->group->job->result_bytes) {
        memcpy(shk_job_result(member->group->job, member->index), frame->data + 4, frame->len - 4);
    }
}

static void run_text(const json_t *doc, const char *name, char *buf, size_t size)
{
    const char *text = json_string_value(json_object_get(doc, name));

    snprintf(buf, size, "%s", text ? text : "");
}

static uint64_t run_ago(const json_t *doc, const char *name)
{
    json_int_t ms = json_integer_value(json_object_get(doc, name));

    return shk_job_now_ns() - (ms > 0 ? (uint64_t)ms * 1000000U : 0);
}

static void run_ended(struct hub_member *member, const struct shk_frame *frame)
{
    struct hub_group *group = member->group;
    struct shk_job_slot *slot = run_slot(member);
    struct crew_watch *watch = &group->crew.watch[member->index];
    json_t *doc = json_loadb((const char *)frame->data, frame->len, 0, NULL);
    json_t *errnum = json_object_get(doc, "errnum");

    if (json_integer_value(json_object_get(doc, "run")) != (json_int_t)group->run) {
        json_decref(doc);
        return;
    }
    run_text(doc, "library", slot->library, sizeof slot->library);
    run_text(doc, "call", slot->call, sizeof slot->call);
    run_text(doc, "output", group->result.ranks[member->index].output, SHK_CREW_OUTPUT);
    if (errnum) {
        slot->fail_errnum = (int)json_integer_value(errnum);
        slot->fail_by_peer = json_is_true(json_object_get(doc, "by_peer"));
        slot->fail_disagrees = json_is_true(json_object_get(doc, "disagrees"));
        slot->fail_ns = run_ago(doc, "fail_ago_ms");
        run_text(doc, "fail", slot->fail.text, sizeof slot->fail.text);
        atomic_store(&slot->failed, 1);
    }
    watch->starved =
        json_unpack(json_object_get(doc, "starved"), "{s:F, s:F, s:F}", "still", &watch->still_ms,
                    "ran", &watch->ran_ms, "waited", &watch->waited_ms) == 0;
    watch->alive = json_is_true(json_object_get(doc, "alive"));
    watch->code = (int)json_integer_value(json_object_get(doc, "code"));
    watch->status = (int)json_integer_value(json_object_get(doc, "status"));
    watch->ended_ns = run_ago(doc, "ago_ms");
    json_decref(group->net[member->index]);
    group->net[member->index] = json_incref(json_object_get(doc, "net"));

    watch->seen_ns = json_object_get(doc, "seen_ms") ? run_ago(doc, "seen_ms") : 0;
    member->state = MEMBER_IDLE;
    member->group = NULL;
    json_decref(doc);
}

void hub_run_frame(struct shk_world *world, struct hub_member *member,
                   const struct shk_frame *frame)
{
    if (member->state != MEMBER_RUNNING)
        return;
    switch (frame->type) {
    case SHK_FRAME_STATE: run_state(world, member, frame); break;
    case SHK_FRAME_PUT: run_put(member, frame); break;
    case SHK_FRAME_RESULT: run_result(member, frame); break;
    case SHK_FRAME_ENDED: run_ended(member, frame); break;
    default: break;
    }
}

void hub_run_lost(struct hub_member *member, enum crew_loss loss)
{
    struct crew_watch *watch = &member->group->crew.watch[member->index];

    watch->lost = true;
    watch->loss = loss;
    watch->alive = false;
    watch->ended_ns = member->link.heard_ns;
    member->group = NULL;
}

static size_t run_node(const struct shk_world *world, const struct hub_member *member)
{
    const json_t *known = json_object_get(world->nodes_known, member->host);

    return known ? (size_t)json_integer_value(known) : world->nodes_count;
}

/* How many of them are on each node, by its index; last: on none that is known. */
static unsigned *run_local(const struct shk_world *world, struct hub_member *const *members,
                           unsigned count)
{
    unsigned *local = calloc(world->nodes_count + 1, sizeof *local);

    for (unsigned i = 0; local && i < count; i++)
        local[run_node(world, members[i])]++;
    return local;
}

static void run_order(const struct hub_group *group, const struct shk_transport *transport,
                      const struct shk_collective_options *options, unsigned i, unsigned local)
{
    struct hub_member *member = group->members[i];
    json_t *doc =
        json_pack("{s:i, s:i, s:i, s:i, s:i, s:b, s:b, s:b, s:i, s:i, s:s, s:s, s:I, s:I, s:I}",
                  "run", (int)group->run, "index", (int)i, "size", (int)group->size, "local",
                  (int)local, "deadline_ms", (int)options->deadline_ms, "pairs", options->pairs,
                  "brief", options->brief, "proof", options->proof, "rails", (int)options->rails,
                  "stress_ms", (int)options->stress_ms, "transport", transport->name, "provider",
                  options->provider ? options->provider : "", "min", (json_int_t)options->min_bytes,
                  "max", (json_int_t)options->max_bytes, "large", (json_int_t)options->large_bytes);
    char *text = doc ? json_dumps(doc, JSON_COMPACT) : NULL;

    if (text)
        (void)shk_link_send(&member->link, SHK_FRAME_RUN, text, strlen(text));
    free(text);
    json_decref(doc);
}

static int run_prepare(struct hub_group *group, const struct shk_transport *transport,
                       struct shk_error *err)
{
    int rc = shk_job_create(&group->job, group->size, transport->result_bytes, err);

    if (rc == 0) {
        group->crew.job = group->job;
        rc = shk_crew_begin(&group->crew, err);
    }
    group->spread = calloc(group->size, sizeof *group->spread);
    group->fed = calloc(group->size, sizeof *group->fed);
    group->net = calloc(group->size, sizeof(json_t *));
    if (rc == 0 && (!group->spread || !group->fed || !group->net))
        rc = shk_error_set(err, ENOMEM, "out of memory");
    return rc;
}

struct hub_group *hub_group_start(struct shk_world *world, struct hub_member **members,
                                  unsigned count, const struct shk_transport *transport,
                                  const struct shk_collective_options *options,
                                  struct shk_error *err)
{
    struct hub_group *group = calloc(1, sizeof *group);
    unsigned *local = run_local(world, members, count);

    if (!group || !local) {
        (void)shk_error_set(err, ENOMEM, "out of memory");
        free(group);
        free(local);
        return NULL;
    }
    group->run = ++world->runs;
    group->size = count;
    group->members = calloc(count, sizeof *group->members);
    group->how = (struct shk_crew){
        .name = transport->name,
        .deadline_ms = options->deadline_ms,
        .progress = options->progress,
        .progress_arg = options->progress_arg,
    };
    group->result.rank = -1;
    group->crew =
        (struct crew_run){.crew = &group->how, .result = &group->result, .janitor = {.fd = -1}};
    if (!group->members || run_prepare(group, transport, err) < 0) {
        hub_group_free(group);
        free(local);
        return NULL;
    }
    memcpy(group->members, members, count * sizeof *members);
    for (unsigned i = 0; i < count; i++) {
        struct shk_crew_rank *rank = &group->result.ranks[i];

        members[i]->state = MEMBER_RUNNING;
        members[i]->group = group;
        members[i]->index = i;
        members[i]->link.heard_ns = shk_job_now_ns();
        rank->id = members[i]->rank;
        rank->status = SHK_RANK_RUNNING;
        snprintf(rank->host, sizeof rank->host, "%s", members[i]->host);
        group->crew.watch[i].alive = true;
        run_order(group, transport, options, i, local[run_node(world, members[i])]);
    }
    free(local);
    hub_tree_begin(world, group);
    return group;
}

/* A rank that has entered the barrier waits for the first that has not. */
static void run_barrier_waits(struct hub_group *group)
{
    unsigned missing = 0;

    while (missing < group->size &&
           atomic_load(&group->job->slots[missing].epoch) > group->released) {
        missing++;
    }
    for (unsigned i = 0; i < group->size && missing < group->size; i++) {
        if (atomic_load(&group->job->slots[i].epoch) > group->released)
            atomic_store(&group->job->slots[i].waiting, (int)missing);
    }
}

static void run_stop(struct hub_group *group)
{
    group->over = true;
    group->over_ns = shk_job_now_ns();
    for (unsigned i = 0; i < group->size; i++) {
        if (group->members[i]->group == group) {
            (void)shk_link_send(&group->members[i]->link, SHK_FRAME_STOP, &group->run,
                                sizeof group->run);
        }
    }
}

static bool run_anyone_left(const struct hub_group *group)
{
    for (unsigned i = 0; i < group->size; i++) {
        if (group->members[i]->group == group)
            return true;
    }
    return false;
}

/* Nothing came on, and no rank ended or was stopped. */
static bool run_stands_still(const struct hub_group *group)
{
    const struct shk_crew_result *result = &group->result;
    const char *cause = result->cause ? result->cause : "";
    bool hangs = strcmp(cause, "rank-hung") == 0 || strcmp(cause, "all-hang") == 0;

    return result->outcome != SHK_CREW_OK && !result->moving &&
           (hangs ||
            (result->rank < 0 && *cause == '\0' && json_array_size(result->disagree) == 0));
}

/* True when the group has its result. */
static bool run_group_turn(struct shk_world *world, struct hub_group *group)
{
    struct crew_grace grace = {.cause_ns = RUN_GRACE_NS,
                               .echo_ns = group->hasty ? RUN_GRACE_NS : RUN_ECHO_GRACE_NS};

    if (group->done)
        return true;
    hub_spread_turn(world, group);
    shk_crew_follow(&group->crew);
    if (!group->over && shk_crew_over(&group->crew, &grace, &group->expired))
        run_stop(group);
    if (!group->over ||
        (run_anyone_left(group) && shk_job_now_ns() - group->over_ns < RUN_STOP_NS)) {
        return false;
    }
    for (unsigned i = 0; i < group->size; i++) {
        if (group->members[i]->group == group) {
            hub_lose(world, group->members[i], hub_loss(world, group->members[i]),
                     "it does not answer");
        }
    }
    run_barrier_waits(group);
    shk_crew_blame(&group->crew, group->expired);
    hub_cut_blame(world, group);
    hub_silent_blame(group);
    if (!group->undecided && run_stands_still(group))
        group->undecided = hub_path(world, group);
    group->done = true;
    return true;
}

void hub_groups_finish(struct shk_world *world, struct hub_group **groups, size_t count)
{
    bool done = false;

    while (!done) {
        hub_turn(world, 20);
        done = true;
        for (size_t i = 0; i < count; i++) {
            if (groups[i] && !run_group_turn(world, groups[i]))
                done = false;
        }
    }
}

void hub_group_free(struct hub_group *group)
{
    if (!group)
        return;
    shk_crew_end(&group->crew);
    shk_crew_result_clear(&group->result);
    shk_job_destroy(group->job);
    for (unsigned i = 0; group->net && i < group->size; i++)
        json_decref(group->net[i]);
    free(group->net);
    hub_spread_free(group);
    json_decref(group->undecided);
    free(group->members);
    free(group);
}

enum shk_phase hub_group_phase(const struct hub_group *group)
{
    int least = SHK_PHASE_DONE;

    for (unsigned i = 0; i < group->size; i++) {
        int phase = atomic_load(&group->job->slots[i].phase);

        least = phase < least ? phase : least;
    }
    return (enum shk_phase)least;
}

bool hub_group_late(const struct hub_group *group, enum shk_phase hang)
{
    enum shk_crew_outcome outcome = group->result.outcome;
    bool spoke = hub_group_phase(group) >= SHK_PHASE_EXCHANGE;

    return outcome == SHK_CREW_STARVED ||
           (outcome == SHK_CREW_TIMEOUT &&
            (hang == SHK_PHASE_DONE || (!spoke && hang >= SHK_PHASE_EXCHANGE)));
}

bool hub_group_failed(struct hub_group *group, const struct shk_transport *transport,
                      const struct shk_collective_options *options)
{
    struct shk_facts *facts = NULL;
    char *key = NULL;
    const char *reason = NULL;

    if (group->result.outcome != SHK_CREW_OK)
        return !group->result.moving;
    facts = shk_facts_create();
    key = shk_strf("collective.%s.reason", transport->name);
    if (facts && key && transport->facts(group->job, &group->result, options, facts, NULL) == 0) {
        reason = shk_facts_get_text(facts, key);
    }
    if (reason && *reason != '\0')
        (void)shk_error_set(&group->result.reason, EILSEQ, "%.400s", reason);
    free(key);
    shk_facts_destroy(facts);
    return group->result.reason.text[0] != '\0';
}
