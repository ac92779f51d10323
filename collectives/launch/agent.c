#include "collectives/launch/world_private.h"
#include "core/facts/pack.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The worker's deadline is rank 0's to keep; without word from it the worker ends this much later.
 */
#define AGENT_SPARE_MS 3000U

/* How long the frames that a release names may take over the tree; then rank 0 is asked for them.
 * A parent that dies is noticed at once, one that is stopped, or whose host is, after this. */
#define AGENT_PATIENCE_NS 3000000000ULL

/* A rank that serves rank 0, and its worker while it has one. */
struct agent {
    const struct shk_world *world;
    struct shk_link link;
    unsigned rank;
    bool leader; /* of the ranks of its node */
    struct agent_facts facts;
    struct agent_tree tree;

    const struct shk_transport *transport;
    struct shk_collective_options options;
    char provider[64];
    uint32_t run;
    unsigned self;
    struct shk_job *job;
    struct crew_run crew;
    struct shk_crew how;
    struct shk_crew_result result;
    uint32_t put;                    /* bytes of the slot's space that were sent */
    uint32_t puts;                   /* of the run, that came */
    struct world_release_frame held; /* until the puts are here; epoch 0: none */
    uint64_t held_ns;
    struct world_state_frame told;
    uint64_t told_ns;
    bool running;
    struct agent_net net;
    int code;
    bool bye;
};

static int agent_send_json(struct agent *agent, uint32_t type, json_t *value)
{
    char *text = value ? json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    int rc = text ? shk_link_send(&agent->link, type, text, strlen(text)) : -ENOMEM;

    free(text);
    json_decref(value);
    return rc;
}

static int agent_hello(struct agent *agent, unsigned local_rank)
{
    return agent_send_json(agent, SHK_FRAME_HELLO,
                           json_pack("{s:s, s:s, s:i, s:s, s:i, s:i}", "token", agent->world->token,
                                     "version", agent->world->options->version, "rank",
                                     (int)agent->rank, "host", agent->world->host, "pid",
                                     (int)getpid(), "local_rank", (int)local_rank));
}

static int agent_work(struct shk_job *job, void *arg, struct shk_error *err)
{
    struct agent *agent = arg;

    /* Others see by their end that the supervisor is gone. */
    close(agent->link.fd);
    agent_tree_close(&agent->tree);
    return agent->transport->work(job, &agent->options, err);
}

static const struct shk_transport *agent_transport(const char *name)
{
    size_t count = 0;
    const struct shk_transport *const *all = shk_transports(&count);

    for (size_t i = 0; name && i < count; i++) {
        if (strcmp(all[i]->name, name) == 0 && all[i]->work)
            return all[i];
    }
    return NULL;
}

static void agent_tell(struct agent *agent, bool must)
{
    struct shk_job_slot *slot = &agent->job->slots[agent->self];
    struct crew_watch *watch = &agent->crew.watch[agent->self];
    uint64_t now = shk_job_now_ns();
    struct world_state_frame state = {
        .run = agent->run,
        .epoch = atomic_load_explicit(&slot->epoch, memory_order_acquire),
        .phase = atomic_load(&slot->phase),
        .bytes = atomic_load(&slot->bytes),
        .op = atomic_load(&slot->op),
        .waiting = atomic_load(&slot->waiting),
        .pid = (int32_t)agent->crew.result->ranks[agent->self].pid,
        .stopped_ms = watch->stopped_ns != 0 ? (int32_t)((now - watch->stopped_ns) / 1000000U) : -1,
        .stopsig = watch->stopsig,
    };
    uint32_t used = atomic_load_explicit(&slot->used, memory_order_acquire);

    state.value = slot->value[state.epoch & 1];
    if (used > agent->put && used <= SHK_JOB_SPACE) {
        unsigned char buf[4 + SHK_JOB_SPACE];

        memcpy(buf, &agent->run, 4);
        memcpy(buf + 4, slot->space + agent->put, used - agent->put);
        (void)shk_link_send(&agent->link, SHK_FRAME_PUT, buf, 4 + used - agent->put);
        agent->put = used;
    }
    if (must || state.epoch != agent->told.epoch || now - agent->told_ns > WORLD_BEAT_NS) {
        (void)shk_link_send(&agent->link, SHK_FRAME_STATE, &state, sizeof state);
        agent->told = state;
        agent->told_ns = now;
    }
}

static void agent_send_result(struct agent *agent)
{
    const unsigned char *result = shk_job_result(agent->job, agent->self);
    size_t len = agent->job->result_bytes;
    unsigned char *buf = NULL;

    while (len > 0 && result[len - 1] == 0)
        len--;
    buf = malloc(4 + len);
    if (buf) {
        memcpy(buf, &agent->run, 4);
        memcpy(buf + 4, result, len);
        (void)shk_link_send(&agent->link, SHK_FRAME_RESULT, buf, 4 + len);
    }
    free(buf);
}

static json_t *agent_text(const char *text, size_t size)
{
    return shk_json_text(text, strnlen(text, size));
}

/* How the worker is, for good. */
static void agent_ended(struct agent *agent)
{
    struct shk_job_slot *slot = &agent->job->slots[agent->self];
    struct crew_watch *watch = &agent->crew.watch[agent->self];
    struct shk_crew_rank *rank = &agent->crew.result->ranks[agent->self];
    uint64_t now = shk_job_now_ns();
    bool failed = atomic_load_explicit(&slot->failed, memory_order_acquire) != 0;
    json_t *doc = json_pack("{s:i, s:b, s:i, s:i, s:i, s:i, s:o, s:o, s:o}", "run", (int)agent->run,
                            "alive", watch->alive, "code", watch->code, "status", watch->status,
                            "ago_ms", watch->alive ? 0 : (int)((now - watch->ended_ns) / 1000000U),
                            "seen_ms", (int)((now - watch->seen_ns) / 1000000U), "library",
                            agent_text(slot->library, sizeof slot->library), "call",
                            agent_text(slot->call, sizeof slot->call), "output",
                            agent_text(rank->output, sizeof rank->output));

    shk_crew_share_end(&agent->crew, agent->self);
    if (watch->starved && doc) {
        json_object_set_new(doc, "starved",
                            json_pack("{s:f, s:f, s:f}", "still", watch->still_ms, "ran",
                                      watch->ran_ms, "waited", watch->waited_ms));
    }
    if (failed && doc) {
        json_object_set_new(doc, "errnum", json_integer(slot->fail_errnum));
        json_object_set_new(doc, "by_peer", json_boolean(slot->fail_by_peer));
        json_object_set_new(doc, "disagrees", json_boolean(slot->fail_disagrees));
        json_object_set_new(doc, "fail", agent_text(slot->fail.text, sizeof slot->fail.text));
        json_object_set_new(doc, "fail_ago_ms",
                            json_integer((json_int_t)((now - slot->fail_ns) / 1000000U)));
    }
    if (doc) {
        json_t *net = agent_net_json(&agent->net, agent->job, watch->alive ? rank->pid : 0);

        agent_path(json_object_get(json_object_get(net, "flows"), "rows"));
        (void)json_object_set_new(doc, "net", net);
    }
    agent_tell(agent, true);
    agent_send_result(agent);
    (void)agent_send_json(agent, SHK_FRAME_ENDED, doc);
}

static void agent_end_run(struct agent *agent, bool tell)
{
    if (!agent->running)
        return;
    if (tell)
        agent_ended(agent);
    shk_crew_end(&agent->crew);
    shk_crew_result_clear(&agent->result);
    shk_job_destroy(agent->job);
    agent->job = NULL;
    agent_net_end(&agent->net);
    agent->running = false;
}

static int agent_options(struct agent *agent, const json_t *doc, unsigned *size_p,
                         unsigned *local_p)
{
    const char *transport = NULL;
    const char *provider = "";
    json_int_t min = 0;
    json_int_t max = 0;
    json_int_t large = 0;
    int run = 0;
    int index = 0;
    int size = 0;
    int local = 0;
    int deadline = 0;
    int pairs = 0;
    int brief = 0;
    int proof = 0;
    int rails = 0;
    int stress = 0;

    if (json_unpack((json_t *)doc,
                    "{s:i, s:i, s:i, s:i, s:i, s:b, s:b, s:b, s:i, s:i, s:s, s:s, s:I, s:I, s:I}",
                    "run", &run, "index", &index, "size", &size, "local", &local, "deadline_ms",
                    &deadline, "pairs", &pairs, "brief", &brief, "proof", &proof, "rails", &rails,
                    "stress_ms", &stress, "transport", &transport, "provider", &provider, "min",
                    &min, "max", &max, "large", &large) != 0 ||
        index < 0 || index >= size || deadline < 0 || rails < 0 || stress < 0) {
        return -EPROTO;
    }
    agent->transport = agent_transport(transport);
    snprintf(agent->provider, sizeof agent->provider, "%s", provider);
    agent->options = (struct shk_collective_options){
        .ranks = (unsigned)size,
        .min_bytes = (size_t)min,
        .max_bytes = (size_t)max,
        .large_bytes = (size_t)large,
        .deadline_ms = (unsigned)deadline,
        .pairs = pairs != 0,
        .brief = brief != 0,
        .proof = proof != 0,
        .rails = (unsigned)rails,
        .stress_ms = (unsigned)stress,
        .provider = agent->provider[0] != '\0' ? agent->provider : NULL,
    };
    agent->run = (uint32_t)run;
    agent->self = (unsigned)index;
    *size_p = (unsigned)size;
    *local_p = (unsigned)local;
    return agent->transport ? 0 : -EPROTO;
}

static void agent_begin_run(struct agent *agent, const json_t *doc)
{
    struct shk_error err = {{0}};
    unsigned size = 0;
    unsigned local = 0;
    int rc = agent_options(agent, doc, &size, &local);

    if (rc == 0)
        rc = shk_job_create(&agent->job, size, agent->transport->result_bytes, &err);
    if (rc == 0)
        rc = shk_job_make_remote(agent->job, local, &err);
    agent->how = (struct shk_crew){
        .name = "rank",
        .deadline_ms = agent->options.deadline_ms + AGENT_SPARE_MS,
        .work = agent_work,
        .arg = agent,
    };
    agent->crew = (struct crew_run){.crew = &agent->how,
                                    .job = agent->job,
                                    .result = &agent->result,
                                    .first = agent->self,
                                    .last = agent->self + 1,
                                    .janitor = {.fd = -1}};
    agent->put = agent->puts = 0;
    agent->held = (struct world_release_frame){0};
    agent->told = (struct world_state_frame){0};
    agent->told_ns = 0;
    if (rc == 0) {
        agent_net_begin(&agent->net, agent->world->options, agent->leader);
        rc = shk_crew_begin(&agent->crew, &err);
        agent->running = rc == 0;
    }
    if (rc < 0) {
        (void)agent_send_json(agent, SHK_FRAME_ENDED,
                              json_pack("{s:i, s:b, s:i, s:s}", "run", (int)agent->run, "alive", 1,
                                        "errnum", -rc, "fail",
                                        err.text[0] != '\0' ? err.text : "malformed order"));
        shk_crew_end(&agent->crew);
        shk_crew_result_clear(&agent->result);
        shk_job_destroy(agent->job);
        agent->job = NULL;
        agent_net_end(&agent->net);
    }
}

/* The barrier is over for this rank when it has what the others published before it. */
static void agent_go_on(struct agent *agent)
{
    const struct world_release_frame *held = &agent->held;

    if (agent->running && held->run == agent->run && held->epoch != 0 &&
        agent->puts >= held->puts) {
        shk_job_release(agent->job, agent->self, held->epoch, held->max);
        agent->held.epoch = 0;
    }
}

static void agent_release(struct agent *agent, const struct shk_frame *frame)
{
    if (frame->len == sizeof agent->held) {
        memcpy(&agent->held, frame->data, sizeof agent->held);
        agent->held_ns = shk_job_now_ns();
        agent_go_on(agent);
    }
}

/* What other ranks published: appended to their slots. */
static void agent_publish(struct agent *agent, const char *data, size_t len)
{
    size_t at = 0;
    uint32_t head[2];

    while (at + sizeof head <= len) {
        struct shk_job_slot *slot = NULL;
        uint32_t used = 0;

        memcpy(head, data + at, sizeof head);
        at += sizeof head;
        if (head[0] >= agent->job->ranks || head[1] > len - at)
            return;
        slot = &agent->job->slots[head[0]];
        used = atomic_load(&slot->used);
        if (head[0] != agent->self && head[1] <= SHK_JOB_SPACE - used) {
            memcpy(slot->space + used, data + at, head[1]);
            atomic_store_explicit(&slot->used, used + head[1], memory_order_release);
        }
        at += head[1];
    }
}

/* From rank 0 or the parent: in their order, each once. */
static void agent_puts(struct agent *agent, const struct shk_frame *frame)
{
    struct world_puts_frame puts;
    struct shk_error err = {{0}};
    char *data = NULL;
    size_t len = 0;

    agent_tree_pass(&agent->tree, frame);
    if (!agent->running || frame->len < sizeof puts)
        return;
    memcpy(&puts, frame->data, sizeof puts);
    if (puts.run != agent->run || puts.number != agent->puts + 1 ||
        shk_unpack(frame->data + sizeof puts, frame->len - sizeof puts,
                   agent->job->ranks * (SHK_JOB_SPACE + 2 * sizeof(uint32_t)), &data, &len,
                   &err) < 0) {
        return;
    }
    agent_publish(agent, data, len);
    free(data);
    agent->puts++;
    agent_go_on(agent);
}

/* The parent is gone or does not do its part: rank 0 does, from here on. */
static void agent_orphan(struct agent *agent)
{
    struct world_puts_frame have = {.run = agent->run, .number = agent->puts};

    agent_tree_leave(&agent->tree);
    agent->held_ns = shk_job_now_ns();
    (void)shk_link_send(&agent->link, SHK_FRAME_WANT_PUTS, &have, sizeof have);
}

static void agent_take(struct agent *agent)
{
    struct agent_tree *tree = &agent->tree;
    struct shk_frame frame;

    agent_tree_turn(tree, &agent->link);
    while (agent_tree_next(tree, &frame))
        agent_puts(agent, &frame);
    if ((tree->joined && tree->parent.fd < 0) ||
        (agent->running && agent->held.epoch != 0 &&
         shk_job_now_ns() - agent->held_ns > AGENT_PATIENCE_NS)) {
        agent_orphan(agent);
    }
}

static void agent_frame(struct agent *agent, const struct shk_frame *frame)
{
    json_t *doc = NULL;
    uint32_t run = 0;

    switch (frame->type) {
    case SHK_FRAME_RUN:
        doc = json_loadb((const char *)frame->data, frame->len, 0, NULL);
        agent_end_run(agent, false);
        agent_begin_run(agent, doc);
        json_decref(doc);
        break;
    case SHK_FRAME_RELEASE: agent_release(agent, frame); break;
    case SHK_FRAME_PUTS: agent_puts(agent, frame); break;
    case SHK_FRAME_STOP:
        memcpy(&run, frame->data, frame->len >= 4 ? 4 : 0);
        if (run == agent->run)
            agent_end_run(agent, true);
        break;
    case SHK_FRAME_WANT: agent_facts_want(&agent->facts, &agent->link, frame); break;
    case SHK_FRAME_CLOCK: world_clock_answer(&agent->link, frame); break;
    case SHK_FRAME_RELAY:
    case SHK_FRAME_PARENT: agent_tree_frame(&agent->tree, &agent->link, frame); break;
    case SHK_FRAME_BYE:
        memcpy(&agent->code, frame->data, frame->len >= 4 ? 4 : 0);
        agent->bye = true;
        break;
    default: break;
    }
}

/* The worker's side of one turn. */
static void agent_worker(struct agent *agent)
{
    uint64_t count = 0;
    bool expired = false;

    (void)!read(agent->job->wake_fd, &count, sizeof count);
    agent_tell(agent, false);
    agent_net_turn(&agent->net, agent->job, agent->result.ranks[agent->self].pid);
    if (!agent->crew.watch[agent->self].alive ||
        (agent->crew.deadline_ns != 0 && shk_job_now_ns() > agent->crew.deadline_ns)) {
        expired = agent->crew.watch[agent->self].alive;
        agent_end_run(agent, !expired || agent->link.fd >= 0);
    }
}

static void agent_turn(struct agent *agent)
{
    struct pollfd fds[CREW_EXTRA] = {
        {.fd = agent->link.fd, .events = (short)(POLLIN | (agent->link.out.len > 0 ? POLLOUT : 0))},
        {.fd = agent->tree.epoll, .events = POLLIN},
    };
    struct shk_frame frame;

    if (agent->running) {
        fds[2] = (struct pollfd){.fd = agent->job->wake_fd, .events = POLLIN};
        shk_crew_turn(&agent->crew, fds, 3);
    } else {
        (void)poll(fds, 2, (int)(WORLD_BEAT_NS / 1000000U));
    }
    if (fds[0].revents & POLLOUT)
        (void)shk_link_flush(&agent->link);
    if (fds[0].revents & (POLLIN | POLLHUP | POLLERR))
        (void)shk_link_fill(&agent->link);
    while (shk_link_next(&agent->link, &frame))
        agent_frame(agent, &frame);
    agent_take(agent);
    if (agent->running) {
        agent_worker(agent);
    } else if (shk_job_now_ns() - agent->told_ns > WORLD_BEAT_NS) {
        (void)shk_link_send(&agent->link, SHK_FRAME_ALIVE, NULL, 0);
        agent->told_ns = shk_job_now_ns();
    }
}

int agent_serve(const struct shk_world *world, int fd, unsigned rank, unsigned local_rank,
                struct shk_error *err)
{
    struct agent agent = {.world = world, .rank = rank, .leader = local_rank == 0};
    int rc = 0;

    shk_link_open(&agent.link, fd);
    agent_tree_open(&agent.tree, world);
    rc = agent_hello(&agent, local_rank);
    if (rc == 0 && local_rank == 0) {
        (void)agent_facts_make(&agent.facts, world->options);
        rc = agent_facts_tell(&agent.facts, &agent.link);
    }
    while (!agent.bye && agent.link.fd >= 0)
        agent_turn(&agent);
    agent_end_run(&agent, false);
    agent_facts_clear(&agent.facts);
    agent_tree_close(&agent.tree);
    shk_link_close(&agent.link);
    if (!agent.bye) {
        return shk_error_set(err, rc < 0 ? -rc : EPIPE,
                             "rank %u: rank 0 is gone or no longer reachable", rank);
    }
    if (agent.code < 0) {
        return shk_error_set(err, EPROTO, "rank %u: rank 0 ended the connection with code %d", rank,
                             agent.code);
    }
    return agent.code;
}
