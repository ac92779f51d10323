/* Which ranks of a job have no process, by what its nodes say. */
#include "checks/hang/hang.h"

#include <criterion/criterion.h>

static struct shk_config *config;

static void begin(void)
{
    cr_assert_eq(shk_config_load(&config, NULL, NULL, NULL), 0);
}

static void end(void)
{
    shk_config_free(config);
}

TestSuite(hang_absent, .init = begin, .fini = end);

/* A node of a job of six ranks, with `count` ranks from `first` on that wait; `local`: how many
 * they say there should be, -1: nothing. */
static json_t *node(const char *host, int first, int count, int local)
{
    json_t *ranks = json_array();
    for (int i = first; i < first + count; i++) {
        json_t *rank = json_pack("{s:i,s:i,s:i,s:s,s:[{s:i,s:s,s:[{s:s},{s:s}],s:i,s:i,s:b}]}",
                                 "pid", 100 + i, "rank", i, "ranks", 6, "state", "R", "threads",
                                 "tid", 100 + i, "state", "R", "frames", "function", "main",
                                 "function", "MPI_Allreduce", "cut", 0, "still", 2, "blocked", 0);
        if (local >= 0)
            json_object_set_new(rank, "local_ranks", json_integer(local));
        json_array_append_new(ranks, rank);
    }
    return json_pack("{s:s,s:f,s:i,s:o}", "host", host, "seconds", 5.0, "samples", 5, "ranks",
                     ranks);
}

/* The job has the node, as its batch system says, and no rank is there. */
static json_t *empty(const char *host)
{
    return json_pack("{s:s,s:[],s:b}", "host", host, "ranks", "empty", 1);
}

/* "3 node2, 4 node2": what is named, all of it absent. Takes the nodes. */
static void expect_absent(json_t *nodes, enum shk_hang_outcome expected, const char *named)
{
    struct shk_error err = {""};
    enum shk_hang_outcome outcome = SHK_HANG_PROGRESS;
    json_t *judgement = NULL, *one;
    char text[256] = "";
    size_t i, length = 0;
    cr_assert_eq(shk_hang_judge(config, nodes, &judgement, &outcome, &err), 0, "%s", err.text);
    cr_expect_eq(outcome, expected, "%s",
                 json_string_value(json_object_get(judgement, "headline")));
    json_array_foreach(json_object_get(judgement, "named"), i, one)
    {
        const char *host = json_string_value(json_object_get(one, "host"));
        cr_expect_str_eq(json_string_value(json_object_get(one, "kind")), "absent");
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%d %s", i ? ", " : "",
                                   (int)json_integer_value(json_object_get(one, "rank")),
                                   host ? host : "?");
    }
    cr_expect_str_eq(text, named);
    json_decref(judgement);
    json_decref(nodes);
}

Test(hang_absent, of_a_node_that_lacks_one)
{
    expect_absent(
        json_pack("[o,o,o]", node("n1", 0, 2, 2), node("n2", 2, 1, 2), node("n3", 4, 2, 2)),
        SHK_HANG_NAMED, "3 n2");
}

/* All that ran on it are gone: one rank a node, or a node that was out of memory. */
Test(hang_absent, of_a_node_of_the_job_without_any_rank)
{
    expect_absent(json_pack("[o,o,o]", node("n1", 0, 2, 2), empty("n2"), node("n3", 4, 2, 2)),
                  SHK_HANG_NAMED, "2 n2, 3 n2");
}

Test(hang_absent, of_one_node_of_two_that_are_empty)
{
    expect_absent(json_pack("[o,o,o]", node("n1", 0, 4, 4), empty("n2"), empty("n3")),
                  SHK_HANG_NAMED, "4 ?, 5 ?");
}

/* The step runs on two of the job's three nodes. */
Test(hang_absent, a_node_that_the_step_does_not_use)
{
    expect_absent(json_pack("[o,o,o]", node("n1", 0, 3, 3), node("n2", 3, 3, 3), empty("n3")),
                  SHK_HANG_UNDECIDED, "");
    expect_absent(json_pack("[o,o,o]", node("n1", 0, 3, 3), node("n2", 3, 2, 3), empty("n3")),
                  SHK_HANG_NAMED, "5 n2");
}

/* The daemon of mpirun is a task of Slurm's step. */
Test(hang_absent, of_a_node_where_only_the_daemon_is_left)
{
    json_t *nodes =
        json_pack("[o,o,o]", node("n1", 0, 2, 2), node("n2", 1, 1, 1), node("n3", 4, 2, 2));
    for (size_t n = 0; n < 3; n++) {
        json_t *ranks = json_object_get(json_array_get(nodes, n), "ranks");
        for (size_t i = 0; i < json_array_size(ranks); i++)
            json_object_set_new(json_array_get(ranks, i), "launcher",
                                json_string(n == 1 ? "slurm" : "ompi"));
    }
    expect_absent(nodes, SHK_HANG_NAMED, "2 n2, 3 n2");
}

/* What the node without an answer has is not known, nor is how many the others should have. */
Test(hang_absent, where_a_node_gave_no_answer)
{
    json_t *lost = json_pack("{s:s,s:[],s:[s]}", "host", "n4", "ranks", "unread", "not looked at");
    expect_absent(json_pack("[o,o,o]", node("n1", 0, 2, 2), empty("n2"), lost), SHK_HANG_UNDECIDED,
                  "");
    expect_absent(json_pack("[o,o]", node("n1", 0, 2, -1), empty("n2")), SHK_HANG_UNDECIDED, "");
}

Test(hang_absent, of_a_document_that_is_given_twice)
{
    expect_absent(json_pack("[o,o,o,o]", node("n1", 0, 2, 2), node("n2", 2, 1, 2),
                            node("n2", 2, 1, 2), node("n3", 4, 2, 2)),
                  SHK_HANG_NAMED, "3 n2");
}
