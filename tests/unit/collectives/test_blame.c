/* Who is to blame does not depend on who noticed first, nor on which message came first. */
#include "collectives/ranks/agree.h"
#include "collectives/ranks/crew_private.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define RANKS_MAX 8U

/* A run over, as rank 0 of a job sees it. */
struct seen {
    struct shk_crew how;
    struct shk_crew_result result;
    struct crew_run run;
    struct crew_watch watch[RANKS_MAX];
};

static void seen_begin(struct seen *seen, const char *const *hosts, unsigned ranks)
{
    unsigned i = 0;

    memset(seen, 0, sizeof(*seen));
    cr_assert_eq(shk_job_create(&seen->run.job, ranks, 0, NULL), 0);
    seen->result.rank = -1;
    seen->result.ranks = calloc(ranks, sizeof(*seen->result.ranks));
    seen->run.crew = &seen->how;
    seen->run.result = &seen->result;
    seen->run.watch = seen->watch;
    seen->how.deadline_ms = 1000;
    for (i = 0; i < ranks; i++) {
        seen->result.ranks[i].id = i;
        snprintf(seen->result.ranks[i].host, sizeof(seen->result.ranks[i].host), "%s", hosts[i]);
        seen->watch[i].alive = true;
        atomic_store(&seen->run.job->slots[i].phase, SHK_PHASE_EXCHANGE);
        atomic_store(&seen->run.job->slots[i].waiting, -1);
    }
}

static void seen_end(struct seen *seen)
{
    shk_crew_result_clear(&seen->result);
    shk_job_destroy(seen->run.job);
}

static void publish(struct seen *seen, unsigned rank, const char *what, const char *value)
{
    shk_job_join(seen->run.job, rank);
    cr_assert_eq(shk_agree_put(seen->run.job, what, value, NULL), 0);
}

/* The rank finds a difference, and gives up. */
static void notice(struct seen *seen, unsigned rank)
{
    struct shk_error err = {{0}};

    shk_job_join(seen->run.job, rank);
    cr_assert_eq(shk_agree_check(seen->run.job, &err), -EPROTO);
    cr_expect_not_null(strstr(err.text, "differs: rank"), "%s", err.text);
}

static const char *const three[] = {"n1", "n2", "n3"};
static const char *const six[] = {"n1", "n1", "n2", "n2", "n3", "n3"};
static const char *const two[] = {"n1", "n2"};
static const char *const here[] = {"", "", ""};
static const char *const uneven[] = {"n1", "n1", "n1", "n1", "n2", "n3"};

static const struct mismatch {
    const char *name;
    const char *const *hosts;
    unsigned ranks;
    const char *value[RANKS_MAX]; /* NULL: it did not get that far */
    int odd;                      /* rank to blame; -1 nobody */
    const char *nodes;            /* named */
    const char *reason;
} mismatches[] = {
    {"one of three", three, 3, {"a", "b", "a"}, 1, "n2", "b on n2 (rank 1); a on 2 of 3 nodes"},
    {"the first of three", three, 3, {"b", "a", "a"}, 0, "n1", "b on n1 (rank 0); a on 2 of 3"},
    {"the last of three", three, 3, {"a", "a", "b"}, 2, "n3", "b on n3"},
    {"one rank of a node", six, 6, {"a", "a", "a", "a", "a", "b"}, 5, "n3", "b on n3 (rank 5)"},
    {"both ranks of a node", six, 6, {"a", "a", "b", "b", "a", "a"}, 2, "n2", "b on n2"},
    {"many ranks of one node", uneven, 6, {"b", "b", "b", "b", "a", "a"}, 0, "n1", "b on n1"},
    {"one of each node", six, 6, {"a", "b", "a", "b", "a", "b"}, -1, "n1 n2 n3", "no majority"},
    {"two nodes",
     two,
     2,
     {"a", "b"},
     -1,
     "n1 n2",
     "a on n1 (rank 0), b on n2 (rank 1); no majority"},
    {"all different", three, 3, {"a", "b", "c"}, -1, "n1 n2 n3", "no majority"},
    {"ranks of one host", here, 3, {"a", "a", "b"}, 2, "", "b at rank 2; a on 2 of 3 ranks"},
    {"one did not get that far", three, 3, {"a", "b", NULL}, -1, "n1 n2", "no majority"},
};

static const char *const whats[] = {"libfabric provider", "layout of the heap", "NCCL version"};

static void names_of(const json_t *row, char *buf, size_t size)
{
    const json_t *name = NULL;
    size_t i = 0;

    *buf = '\0';
    json_array_foreach(json_object_get(row, "odd"), i, name)
    {
        snprintf(buf + strlen(buf), size - strlen(buf), "%s%s", i > 0 ? " " : "",
                 json_string_value(name));
    }
}

static void check_mismatch(const struct mismatch *m, const char *what, unsigned first, bool all)
{
    struct seen seen;
    char names[64];
    unsigned i = 0;

    seen_begin(&seen, m->hosts, m->ranks);
    for (i = 0; i < m->ranks; i++) {
        if (m->value[i] != NULL) {
            publish(&seen, i, what, m->value[i]);
        }
    }
    notice(&seen, first);
    for (i = 0; i < m->ranks && all; i++) {
        if (i != first && m->value[i] != NULL) {
            notice(&seen, i);
        }
    }
    shk_crew_blame(&seen.run, false);
    names_of(json_array_get(seen.result.disagree, 0), names, sizeof(names));
    cr_expect_eq(seen.result.outcome, SHK_CREW_FAILED, "%s", m->name);
    cr_expect_eq(seen.result.rank, m->odd, "%s, %s, rank %u first: blames %d: %s", m->name, what,
                 first, seen.result.rank, seen.result.reason.text);
    cr_expect_str_eq(names, m->nodes, "%s, rank %u first: %s", m->name, first, names);
    cr_expect_not_null(strstr(seen.result.reason.text, m->reason), "%s, rank %u first: %s", m->name,
                       first, seen.result.reason.text);
    cr_expect_not_null(strstr(seen.result.reason.text, what), "%s", seen.result.reason.text);
    seen_end(&seen);
}

Test(blame, a_mismatch_is_nobodys_who_noticed_it)
{
    size_t m = 0;
    size_t w = 0;
    unsigned first = 0;

    for (m = 0; m < sizeof(mismatches) / sizeof(mismatches[0]); m++) {
        for (w = 0; w < sizeof(whats) / sizeof(whats[0]); w++) {
            for (first = 0; first < mismatches[m].ranks; first++) {
                if (mismatches[m].value[first] != NULL) {
                    check_mismatch(&mismatches[m], whats[w], first, false);
                    check_mismatch(&mismatches[m], whats[w], first, true);
                }
            }
        }
    }
}

Test(blame, what_explains_a_difference_is_told_beside_it)
{
    struct seen seen;
    const json_t *row = NULL;
    unsigned i = 0;

    seen_begin(&seen, three, 3);
    for (i = 0; i < 3; i++) {
        publish(&seen, i, "libfabric provider", i == 1 ? "udp" : "tcp");
        cr_assert_eq(shk_agree_note(seen.run.job, "FI_PROVIDER", i == 1 ? "udp" : NULL, NULL), 0);
        cr_assert_eq(shk_agree_note(seen.run.job, "libfabric version", "1.17", NULL), 0);
    }
    notice(&seen, 0);
    shk_crew_blame(&seen.run, false);
    cr_expect_eq(json_array_size(seen.result.disagree), 2);
    row = json_array_get(seen.result.disagree, 1);
    cr_expect_str_eq(json_string_value(json_object_get(row, "what")), "FI_PROVIDER");
    cr_expect_str_eq(json_string_value(json_object_get(row, "majority")), "not set");
    cr_expect_not(json_is_true(json_object_get(row, "must")));
    seen_end(&seen);
}

Test(blame, agreement_says_nothing)
{
    struct seen seen;
    unsigned i = 0;

    seen_begin(&seen, three, 3);
    for (i = 0; i < 3; i++) {
        publish(&seen, i, "libfabric provider", "tcp");
    }
    for (i = 0; i < 3; i++) {
        shk_job_join(seen.run.job, i);
        cr_expect_eq(shk_agree_check(seen.run.job, NULL), 0);
    }
    cr_expect_not(shk_crew_has_cause(&seen.run));
    seen_end(&seen);
}

/* What happened to the rank at fault; the others noticed. */
struct end {
    const char *name;
    void (*happen)(struct seen *seen, unsigned rank, uint64_t when_ns);
    const char *cause;
    const char *reason;
};

static void be_killed(struct seen *seen, unsigned rank, uint64_t when_ns)
{
    seen->watch[rank].alive = false;
    seen->watch[rank].code = CLD_KILLED;
    seen->watch[rank].status = SIGKILL;
    seen->watch[rank].seen_ns = when_ns;
    seen->watch[rank].ended_ns = when_ns + 500000000ULL; /* noticed late */
}

static void be_stopped(struct seen *seen, unsigned rank, uint64_t when_ns)
{
    seen->watch[rank].stopped_ns = when_ns;
    seen->watch[rank].stopsig = SIGSTOP;
}

static void be_cut_off(struct seen *seen, unsigned rank, uint64_t when_ns)
{
    seen->watch[rank].alive = false;
    seen->watch[rank].lost = true;
    seen->watch[rank].loss = CREW_LOSS_WAY;
    seen->watch[rank].ended_ns = when_ns;
}

static void be_mute(struct seen *seen, unsigned rank, uint64_t when_ns)
{
    be_cut_off(seen, rank, when_ns);
    seen->watch[rank].loss = CREW_LOSS_MUTE;
}

static void be_silent(struct seen *seen, unsigned rank, uint64_t when_ns)
{
    be_cut_off(seen, rank, when_ns);
    seen->watch[rank].loss = CREW_LOSS_SILENT;
}

static void be_closed(struct seen *seen, unsigned rank, uint64_t when_ns)
{
    be_cut_off(seen, rank, when_ns);
    seen->watch[rank].loss = CREW_LOSS_CLOSED;
}

static const struct end ends[] = {
    {"killed", be_killed, "rank-ended", "killed by SIGKILL"},
    {"stopped", be_stopped, "rank-stopped", "stopped by SIGSTOP"},
    {"cut off", be_cut_off, "node-unreachable", "acknowledges nothing"},
    {"mute", be_mute, "rank-stopped", "runs other processes"},
    {"silent", be_silent, "rank-silent", "does not show whether"},
    {"closed", be_closed, "rank-ended", "its connection was closed"},
};

static void echo(struct seen *seen, unsigned rank)
{
    shk_job_join(seen->run.job, rank);
    shk_job_fail(seen->run.job, ECONNRESET, true, "connection was reset");
}

static void check_end(const struct end *end, unsigned culprit, bool echo_first, unsigned echoes)
{
    struct seen seen;
    uint64_t now = shk_job_now_ns();
    unsigned i = 0;

    seen_begin(&seen, three, 3);
    if (!echo_first) {
        end->happen(&seen, culprit, now - 1000000000ULL);
    }
    for (i = 0; i < 3; i++) {
        if (i != culprit && (echoes >> i & 1U) != 0) {
            echo(&seen, i);
        }
    }
    if (echo_first) {
        cr_expect_not(shk_crew_has_cause(&seen.run), "an echo is a cause");
        end->happen(&seen, culprit, shk_job_now_ns());
    }
    cr_expect(shk_crew_has_cause(&seen.run), "%s is none", end->name);
    shk_crew_blame(&seen.run, false);
    cr_expect_eq(seen.result.rank, (int)culprit, "%s: blames %d: %s", end->name, seen.result.rank,
                 seen.result.reason.text);
    cr_expect_str_eq(seen.result.cause, end->cause, "%s: %s", end->name, seen.result.cause);
    cr_expect_not_null(strstr(seen.result.reason.text, end->reason), "%s: %s", end->name,
                       seen.result.reason.text);
    seen_end(&seen);
}

Test(blame, the_order_of_echo_and_cause_does_not_matter)
{
    size_t e = 0;
    unsigned culprit = 0;
    unsigned echoes = 0;

    for (e = 0; e < sizeof(ends) / sizeof(ends[0]); e++) {
        for (culprit = 0; culprit < 3; culprit++) {
            for (echoes = 0; echoes < 8; echoes++) {
                check_end(&ends[e], culprit, true, echoes);
                check_end(&ends[e], culprit, false, echoes);
            }
        }
    }
}

/* A rank that was seen alive before another reported its error, and dead after it, may have died
 * first: a death is stronger than an error that could be its consequence. */
Test(blame, a_death_that_was_seen_late)
{
    struct seen seen;
    uint64_t now = shk_job_now_ns();

    seen_begin(&seen, three, 3);
    be_killed(&seen, 1, now - 1000000ULL);
    shk_job_join(seen.run.job, 0);
    shk_job_fail(seen.run.job, EIO, false, "no answer from rank 1");
    shk_crew_blame(&seen.run, false);
    cr_expect_eq(seen.result.rank, 1, "%s", seen.result.reason.text);
    seen_end(&seen);
}

Test(blame, echoes_alone_blame_nobody)
{
    struct seen seen;

    seen_begin(&seen, three, 3);
    echo(&seen, 0);
    echo(&seen, 2);
    shk_crew_blame(&seen.run, false);
    cr_expect_eq(seen.result.rank, -1, "%s", seen.result.reason.text);
    seen_end(&seen);
}

/* At the deadline a rank that the others wait for is the cause, whoever gave up before. */
Test(blame, a_rank_that_hangs_comes_before_an_echo)
{
    struct seen seen;

    seen_begin(&seen, three, 3);
    echo(&seen, 0);
    atomic_store(&seen.run.job->slots[2].waiting, 1);
    shk_crew_blame(&seen.run, true);
    cr_expect_eq(seen.result.rank, 1, "%s", seen.result.reason.text);
    cr_expect_str_eq(seen.result.cause, "rank-hung");
    seen_end(&seen);
}

/* What an agent said of its worker, of the rank that all wait for and of another. */
Test(blame, a_rank_without_a_processor_is_no_hang)
{
    struct seen seen;
    unsigned starved = 0;

    for (starved = 0; starved < 3; starved++) {
        seen_begin(&seen, three, 3);
        atomic_store(&seen.run.job->slots[0].waiting, 1);
        atomic_store(&seen.run.job->slots[2].waiting, 1);
        seen.watch[starved].starved = true;
        seen.watch[starved].waited_ms = 900;
        shk_crew_blame(&seen.run, true);
        cr_expect_eq(seen.result.outcome, starved == 1 ? SHK_CREW_STARVED : SHK_CREW_TIMEOUT);
        cr_expect_eq(seen.result.rank, starved == 1 ? -1 : 1, "%s", seen.result.reason.text);
        seen_end(&seen);
    }
}

Test(blame, all_that_wait_for_one_that_gave_up_tell_no_more)
{
    struct seen seen;

    seen_begin(&seen, three, 3);
    echo(&seen, 0);
    cr_expect_not(shk_crew_settled(&seen.run), "ranks 1 and 2 may still end");
    atomic_store(&seen.run.job->slots[2].waiting, 0);
    cr_expect_not(shk_crew_settled(&seen.run), "rank 1 may still end");
    atomic_store(&seen.run.job->slots[1].waiting, 2);
    cr_expect(shk_crew_settled(&seen.run));
    seen_end(&seen);
}
