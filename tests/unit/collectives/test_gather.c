#include "collectives/launch/world_private.h"
#include "collectives/meet/card.h"
#include "core/facts/pack.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

TestSuite(gather, .timeout = 300);

enum { NODES_MAX = 100 };

static const struct shk_diff_rule rules[] = {
    {.path = "host.name", .differs = SHK_DIFF_NODE},
    {.path = "clock.offset", .differs = SHK_DIFF_TIME},
    {.path = "host.memory", .differs = SHK_DIFF_NOISE, .percent = 5},
};

enum manner {
    HONEST,
    DIES,            /* when it is asked for sections */
    DIES_ASKED_LIST, /* when it is asked for the list */
    MUTE,            /* never answers */
    WRONG_TEXT,      /* another section than it said */
    CUT,             /* bytes are missing */
    WRONG_INDEX,     /* answers what was not asked */
    WRONG_LIST,      /* another list */
    BROKEN_LIST,     /* its digest is right, the list is none */
    BROKEN_SECTION,  /* its digest is right, the text is none */
    BROKEN_OWN,      /* what is its own does not fit */
    SHORT,           /* half a digest */
    FAILED,          /* could not probe */
};

/* A node as rank 0 sees it: the real agent's side of the facts, served in turns with rank 0's. */
struct fake {
    enum manner manner;
    unsigned odd;    /* value of one fact */
    unsigned memory; /* more than 1000 */
    struct shk_link link;
    struct agent_facts facts;
    unsigned wanted, most, lists; /* sections it was asked for, all and at once; lists */
};

static struct fake fakes[NODES_MAX];
static struct hub_member members[NODES_MAX];
static struct shk_world_options options = {
    .deadline_ms = 60000, .rules = rules, .rules_count = sizeof(rules) / sizeof(rules[0])};
static struct shk_world world;

static int fake_probe(void *arg, struct shk_facts **facts_p, struct shk_error *err)
{
    const struct fake *fake = arg;
    struct shk_facts *facts = shk_facts_create();
    char name[16];
    int i = 0;

    if (fake->manner == FAILED) {
        shk_facts_destroy(facts);
        return shk_error_set(err, EIO, "no /proc");
    }
    snprintf(name, sizeof(name), "n%u", (unsigned)(fake - fakes));
    (void)shk_facts_text(facts, "host.name", name, "uname");
    (void)shk_facts_int(facts, "clock.offset", (long long)(fake - fakes), "us", "adjtimex");
    (void)shk_facts_int(facts, "host.memory", 1000 + fake->memory, "B", "/proc/meminfo");
    (void)shk_facts_int(facts, "odd.value", fake->odd, NULL, "test");
    for (i = 0; i < 50; i++) {
        char key[32];

        snprintf(key, sizeof(key), "env.NAME_%d", i);
        (void)shk_facts_text(facts, key, "a value that all nodes have", "environment");
    }
    *facts_p = facts;
    return 0;
}

static void fake_break(struct agent_facts *facts, enum manner manner)
{
    struct shk_factpart *part = &facts->parts.sections[facts->parts.count - 1];

    if (manner == BROKEN_SECTION) {
        free(part->text);
        part->text = strdup("{\"odd.value\":{\"state\":\"strange\"}}");
        part->len = strlen(part->text);
        part->digest = shk_digest_of(part->text, part->len);
        memcpy(facts->list.data + facts->list.len - 3 - 5 - sizeof(part->digest), &part->digest,
               sizeof(part->digest));
        memcpy(facts->list.data + facts->list.len - 3 - 5, &(uint32_t){(uint32_t)part->len}, 4);
    } else if (manner == BROKEN_LIST) {
        facts->list.len--;
    } else if (manner == BROKEN_OWN) {
        free(facts->parts.own);
        facts->parts.own = strdup("[1]");
        facts->parts.own_len = 3;
    }
}

static void world_make(unsigned count)
{
    unsigned i = 0;

    world =
        (struct shk_world){.options = &options, .listen_fd = -1, .members = members, .size = count};
    for (i = 0; i < count; i++) {
        struct fake *fake = &fakes[i];
        struct shk_world_options mine = options;
        int fds[2];

        mine.probe = fake_probe;
        mine.probe_arg = fake;
        if (agent_facts_make(&fake->facts, &mine) == 0) {
            fake_break(&fake->facts, fake->manner);
        }
        cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
        shk_link_open(&fake->link, fds[0]);
        shk_link_open(&members[i].link, fds[1]);
        members[i].rank = i;
        members[i].state = MEMBER_IDLE;
        snprintf(members[i].host, sizeof(members[i].host), "n%u", i);
        hub_node_of(&world, members[i].host)->leader = i;
        if (fake->manner == SHORT) {
            cr_assert_eq(shk_link_send(&fake->link, SHK_FRAME_NODE, "12345678", 8), 0);
        } else {
            cr_assert_eq(agent_facts_tell(&fake->facts, &fake->link), 0);
        }
    }
}

static void fake_answer(struct fake *fake, const struct shk_frame *frame)
{
    static const char text[] = "{\"odd.value\":1}";
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    uint32_t index = 0;

    if (frame->len > 0) {
        memcpy(&index, frame->data, sizeof(index));
    }
    switch (fake->manner) {
    case MUTE: break;
    case WRONG_TEXT:
    case CUT:
        if (frame->len > 0) {
            shk_strbuf_add(&sb, &index, sizeof(index));
            shk_pack(&sb, text, sizeof(text) - 1);
            sb.len -= fake->manner == CUT ? 2 : 0;
            (void)shk_link_send(&fake->link, SHK_FRAME_SECTION, sb.data, sb.len);
            shk_strbuf_free(&sb);
            break;
        }
        agent_facts_want(&fake->facts, &fake->link, frame);
        break;
    case WRONG_INDEX:
        index = 77;
        if (frame->len > 0) {
            (void)shk_link_send(&fake->link, SHK_FRAME_SECTION, &index, sizeof(index));
            break;
        }
        agent_facts_want(&fake->facts, &fake->link, frame);
        break;
    case WRONG_LIST: (void)shk_link_send(&fake->link, SHK_FRAME_LIST, "odd", 3); break;
    default: agent_facts_want(&fake->facts, &fake->link, frame); break;
    }
}

static void fake_turn(struct fake *fake)
{
    struct shk_frame frame;

    (void)shk_link_fill(&fake->link);
    while (shk_link_next(&fake->link, &frame)) {
        unsigned count = frame.len / 4;

        cr_assert_eq(frame.type, SHK_FRAME_WANT);
        fake->lists += count == 0;
        fake->wanted += count;
        fake->most = count > fake->most ? count : fake->most;
        if ((fake->manner == DIES && count > 0) || fake->manner == DIES_ASKED_LIST) {
            shk_link_close(&fake->link);
            return;
        }
        fake_answer(fake, &frame);
    }
    (void)shk_link_flush(&fake->link);
}

/* Turns until no more is to come, or `turns` of them. */
static void gather(unsigned turns)
{
    unsigned i = 0;

    while (!hub_facts_complete(&world) && turns-- > 0) {
        hub_turn(&world, 1);
        hub_facts_turn(&world);
        for (i = 0; i < world.size; i++) {
            fake_turn(&fakes[i]);
        }
    }
}

/* What rank 0 has of a node is what it found out. */
static void expect_facts(unsigned i)
{
    struct shk_facts *given = NULL;
    struct shk_facts *got = hub_facts_take(&world, &world.nodes[i]);
    struct shk_error err = {{0}};
    json_t *a = NULL;
    json_t *b = NULL;

    cr_assert_not_null(got, "node %u: %s", i, world.nodes[i].why.text);
    cr_assert_eq(fake_probe(&fakes[i], &given, &err), 0);
    a = shk_facts_to_json(given);
    b = shk_facts_to_json(got);
    cr_expect(json_equal(a, b), "node %u", i);
    json_decref(a);
    json_decref(b);
    shk_facts_destroy(given);
    shk_facts_destroy(got);
}

static void expect_failed(unsigned i, const char *why)
{
    cr_expect_null(hub_facts_take(&world, &world.nodes[i]), "node %u", i);
    cr_expect_not_null(strstr(world.nodes[i].why.text, why), "node %u: %s", i,
                       world.nodes[i].why.text);
}

static void world_clear(void)
{
    unsigned i = 0;

    for (i = 0; i < world.size; i++) {
        shk_link_close(&fakes[i].link);
        shk_link_close(&members[i].link);
        agent_facts_clear(&fakes[i].facts);
    }
    hub_facts_free(&world);
    free(world.nodes);
    json_decref(world.nodes_known);
}

/* Every section travels once, from one node; the others send little. */
Test(gather, alike)
{
    unsigned wanted = 0;
    unsigned lists = 0;
    unsigned i = 0;

    world_make(20);
    gather(200);
    hub_facts_end(&world);
    for (i = 0; i < 20; i++) {
        bool asked = fakes[i].wanted > 0 || fakes[i].lists > 0;

        expect_facts(i);
        wanted += fakes[i].wanted;
        lists += fakes[i].lists;
        cr_expect(asked || members[i].link.received + members[i].link.sent < 200, "node %u: %zu", i,
                  (size_t)(members[i].link.received + members[i].link.sent));
    }
    cr_expect_eq(lists, 1);
    cr_expect_eq(wanted, 4);
    world_clear();
}

/* Nodes that say the same are one, but for what is their own; an odd fact, or memory that is far
 * off, is another. */
Test(gather, like)
{
    static const size_t like[] = {0, 0, 0, 3, 0, 5, 0, 3};
    unsigned i = 0;

    fakes[3].odd = fakes[7].odd = 1;
    fakes[4].memory = 40;
    fakes[5].memory = 400;
    world_make(8);
    gather(200);
    hub_facts_end(&world);
    for (i = 0; i < 8; i++) {
        cr_expect_eq(shk_world_like(&world, i), like[i], "node %u: %zu", i,
                     shk_world_like(&world, i));
    }
    world_clear();
}

/* One odd section: only it travels, with the list. */
Test(gather, one_odd_section)
{
    unsigned i = 0;

    fakes[7].odd = 3;
    world_make(20);
    gather(200);
    hub_facts_end(&world);
    for (i = 0; i < 20; i++) {
        expect_facts(i);
    }
    cr_expect_eq(fakes[7].lists, 1);
    cr_expect_eq(fakes[7].wanted, 1);
    cr_expect_lt(members[7].link.received, 600);
    world_clear();
}

/* A hundred different nodes: no more than some are asked at once, and all come. */
Test(gather, all_different)
{
    unsigned asked = 0;
    unsigned i = 0;

    for (i = 0; i < NODES_MAX; i++) {
        fakes[i].odd = i;
    }
    world_make(NODES_MAX);
    hub_turn(&world, 1);
    hub_facts_turn(&world);
    for (i = 0; i < NODES_MAX; i++) {
        fake_turn(&fakes[i]);
        asked += fakes[i].lists;
    }
    cr_expect_eq(asked, 32);
    gather(2000);
    hub_facts_end(&world);
    for (i = 0; i < NODES_MAX; i++) {
        expect_facts(i);
        cr_expect_leq(fakes[i].wanted, 4);
    }
    world_clear();
}

/* A node that is asked does not do as it should: it is named with the cause, never with wrong
 * facts, and another one is asked. */
Test(gather, bad_node)
{
    static const struct {
        enum manner manner;
        const char *why;
    } cases[] = {
        {DIES, NULL},
        {DIES_ASKED_LIST, NULL},
        {WRONG_TEXT, "clock.*: not what its digest says"},
        {CUT, "clock.*: damaged"},
        {WRONG_INDEX, "not requested"},
        {WRONG_LIST, "the list of its facts is not what its digest says"},
        {BROKEN_LIST, "the list of its facts is malformed"},
        {BROKEN_SECTION, "odd.*: facts: odd.value: state 'strange'"},
        {BROKEN_OWN, "its own part is shorter"},
        {SHORT, "malformed facts"},
        {FAILED, "no /proc"},
    };
    size_t i = 0;
    unsigned k = 0;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        memset(fakes, 0, sizeof(fakes));
        memset(members, 0, sizeof(members));
        fakes[0].manner = cases[i].manner;
        world_make(5);
        gather(200);
        cr_expect(hub_facts_complete(&world), "case %zu", i);
        hub_facts_end(&world);
        for (k = 1; k < 5; k++) {
            expect_facts(k);
        }
        if (cases[i].why != NULL) {
            expect_failed(0, cases[i].why);
        } else {
            /* The others said the same: nothing is missing of what it found out. */
            cr_expect_eq(members[0].state, MEMBER_LOST, "case %zu", i);
            expect_facts(0);
        }
        world_clear();
    }
}

/* It dies with facts that only it has: named. */
Test(gather, dies_with_its_facts)
{
    fakes[2].manner = DIES;
    fakes[2].odd = 5;
    world_make(5);
    gather(200);
    hub_facts_end(&world);
    cr_expect_eq(members[2].state, MEMBER_LOST);
    expect_failed(2, "it was lost while it sent its facts");
    expect_facts(0);
    expect_facts(4);
    world_clear();
}

/* Asked and silent: with signs of life it is given up after a while, without it is lost. */
Test(gather, silent_node)
{
    fakes[1].manner = MUTE;
    fakes[1].odd = 5;
    world_make(4);
    gather(50);
    cr_expect_not(hub_facts_complete(&world));
    cr_assert_eq(world.nodes[1].wanted, 1);
    world.nodes[1].asked_ns -= 60000000000ULL;
    members[1].link.heard_ns = shk_job_now_ns();
    gather(1);
    cr_expect(hub_facts_complete(&world));
    expect_failed(1, "it did not send its facts within 10 s");
    world_clear();

    memset(members, 0, sizeof(members));
    world_make(4);
    gather(50);
    members[1].link.heard_ns -= 60000000000ULL;
    gather(1);
    cr_expect(hub_facts_complete(&world));
    cr_expect_eq(members[1].state, MEMBER_LOST);
    hub_facts_end(&world);
    expect_failed(1, "it was lost while it sent its facts");
    expect_facts(0);
    world_clear();
}

/* The time is over while something is missing: that is named, the rest is used. */
Test(gather, too_late)
{
    fakes[3].manner = MUTE;
    fakes[3].odd = 9;
    world_make(4);
    gather(50);
    hub_facts_end(&world);
    expect_failed(3, "did not arrive in time");
    expect_facts(1);
    world_clear();
}

static void few_hello(struct shk_link *client, unsigned port, unsigned rank)
{
    struct sockaddr_in to = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    char hello[160];
    int len = snprintf(hello, sizeof(hello),
                       "{\"token\":\"t\",\"version\":\"1\",\"rank\":%u,\"host\":\"n%u\",\"pid\":1,"
                       "\"local_rank\":0}",
                       rank, rank);

    to.sin_port = htons((uint16_t)port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    cr_assert_eq(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    shk_link_open(client, fd);
    (void)shk_link_send(client, SHK_FRAME_HELLO, hello, (size_t)len);
}

/* More ranks than files: as many as fit come, and the report tells why not the others. */
Test(gather, few_files)
{
    enum { CLIENTS = 60 };
    struct rlimit limit = {.rlim_cur = 160, .rlim_max = 160};
    struct shk_facts *facts = shk_facts_create();
    struct shk_link clients[CLIENTS];
    const char *why = NULL;
    unsigned port = 0;
    unsigned came = 0;
    unsigned i = 0;

    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    cr_assert_eq(setenv("PMIX_NAMESPACE", "test", 1) + setenv("PMIX_RANK", "0", 1), 0);
    options.version = "1";
    world = (struct shk_world){.options = &options,
                               .listen_fd = -1,
                               .members = members,
                               .size = NODES_MAX,
                               .role = SHK_WORLD_ROOT,
                               .pmix = {.status = SHK_PMIX_OK},
                               .token = "t"};
    for (i = 0; i < NODES_MAX; i++) {
        members[i].rank = i;
        members[i].link.fd = -1;
    }
    world.listen_fd = shk_card_listen(NULL, 0, false, &port, NULL);
    cr_assert_geq(world.listen_fd, 0);
    world_descriptors(&world);
    for (i = 0; i < CLIENTS; i++) {
        few_hello(&clients[i], port, i);
    }
    for (i = 0; i < 20; i++) {
        hub_turn(&world, 10);
    }
    for (i = 0; i < NODES_MAX; i++) {
        came += members[i].state == MEMBER_IDLE;
    }
    cr_expect_gt(came, 0);
    cr_expect_lt(came, CLIENTS);
    cr_assert_eq(shk_world_facts(&world, facts), 0);
    cr_expect_eq(json_array_size(shk_facts_get_array(facts, "job.missing")), NODES_MAX - came);
    why = json_string_value(
        json_object_get(json_array_get(shk_facts_get_array(facts, "job.missing"), 0), "why"));
    cr_assert_not_null(why);
    cr_expect_str_eq(why,
                     "rank 0 is limited to 160 open files (ulimit -Hn), too few for 100 ranks");
    shk_facts_destroy(facts);
    for (i = 0; i < NODES_MAX; i++) {
        shk_link_close(&members[i].link);
    }
    for (i = 0; i < CLIENTS; i++) {
        shk_link_close(&clients[i]);
    }
    free(world.strangers);
    free(world.nodes);
    json_decref(world.nodes_known);
    close(world.listen_fd);
}
