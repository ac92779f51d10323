/* Jobs on GPUs that hang: stacks as PyTorch's and CUDA's have them, what NCCL's RAS service and
 * PyTorch's flight recorder say beside them. */
#include "checks/hang/hang.h"

#include <criterion/criterion.h>
#include <string.h>

static struct shk_config *config;

static void begin(void)
{
    cr_assert_eq(shk_config_load(&config, NULL, NULL, NULL), 0);
}

static void end(void)
{
    shk_config_free(config);
}

TestSuite(hang_gpu, .init = begin, .fini = end);

/* A rank of a program in Python. The frames are functions and libraries in turns, from outside;
 * `still` of them did not change. */
static json_t *rank_in(int number, int ranks, const char *state, const char *const *frames,
                       int still)
{
    json_t *list = json_array();
    json_array_append_new(
        list, json_pack("{s:s,s:s}", "function", "Py_RunMain", "library", "python3.12"));
    for (; *frames; frames += 2)
        json_array_append_new(list,
                              json_pack("{s:s,s:s}", "function", frames[0], "library", frames[1]));
    json_t *thread = json_pack("{s:i,s:s,s:o,s:b,s:i,s:b}", "tid", 100 + number, "state", state,
                               "frames", list, "cut", 0, "still", still, "blocked", *state == 'S');
    return json_pack("{s:i,s:i,s:i,s:i,s:s,s:[o]}", "pid", 100 + number, "rank", number, "ranks",
                     ranks, "local_ranks", ranks, "state", state, "threads", thread);
}

static const char *const launch[] = {"_ZN2at4_ops3sum4callE",
                                     "libtorch_cpu.so",
                                     "cudaLaunchKernel",
                                     "libcudart.so.13",
                                     "cuLaunchKernel",
                                     "libcuda.so.1",
                                     NULL},
                         *const sync_gpu[] = {"cudaDeviceSynchronize", "libcudart.so.13",
                                              "cuCtxSynchronize_v2", "libcuda.so.1", NULL},
                         *const nap[] = {"clock_nanosleep", "libc.so.6", NULL},
                         *const reads[] = {"PyFile_GetLine", "python3.12", "read", "libc.so.6",
                                           NULL};

static json_t *nodes_of(json_t *a, json_t *b)
{
    return json_pack("[{s:s,s:f,s:i,s:[o,o]}]", "host", "node9", "seconds", 5.0, "samples", 5,
                     "ranks", a, b);
}

static json_t *judge(json_t *nodes, enum shk_hang_outcome expected)
{
    json_t *judgement = NULL;
    enum shk_hang_outcome outcome = SHK_HANG_PROGRESS;
    struct shk_error err = {""};
    cr_assert_eq(shk_hang_judge(config, nodes, &judgement, &outcome, &err), 0, "%s", err.text);
    const char *headline = json_string_value(json_object_get(judgement, "headline"));
    cr_expect_eq(outcome, expected, "%d: %s", outcome, headline);
    json_decref(nodes);
    return judgement;
}

static void expect_named(json_t *judgement, int rank, const char *kind, const char *words)
{
    const json_t *one = json_array_get(json_object_get(judgement, "named"), 0);
    const char *headline = json_string_value(json_object_get(judgement, "headline"));
    cr_expect_eq(json_array_size(json_object_get(judgement, "named")), 1, "%s", headline);
    cr_expect_eq(json_integer_value(json_object_get(one, "rank")), rank, "%s", headline);
    cr_expect_str_eq(json_string_value(json_object_get(one, "kind")), kind, "%s", headline);
    cr_expect_not_null(strstr(headline, words), "%s", headline);
    json_decref(judgement);
}

static void expect_confidence(const json_t *judgement, const char *confidence)
{
    const json_t *one = json_array_get(json_object_get(judgement, "named"), 0);
    cr_expect_str_eq(json_string_value(json_object_get(one, "confidence")), confidence);
}

static void expect_reason(json_t *judgement, const char *reason)
{
    cr_expect_str_eq(json_string_value(json_object_get(judgement, "reason")), reason);
    cr_expect_eq(json_array_size(json_object_get(judgement, "named")), 0);
    json_decref(judgement);
}

static json_t *napping(int number, int ranks)
{
    json_t *rank = rank_in(number, ranks, "S", nap, 2);
    json_object_set_new(json_array_get(json_object_get(rank, "threads"), 0), "syscall",
                        json_pack("{s:s}", "name", "nanosleep"));
    return rank;
}

Test(hang_gpu, a_rank_that_sleeps_while_another_waits_in_a_launch)
{
    expect_named(judge(nodes_of(rank_in(0, 2, "R", launch, 4), napping(1, 2)), SHK_HANG_NAMED), 1,
                 "sleep",
                 "1 of 2 ranks waits for the GPU; rank 1 (node9, process 101) sleeps in its own "
                 "code: Python code, in clock_nanosleep() of libc.so.6");
}

Test(hang_gpu, one_wait_for_the_gpu_after_the_other_is_work)
{
    expect_reason(judge(nodes_of(rank_in(0, 2, "R", sync_gpu, 1), rank_in(1, 2, "R", launch, 1)),
                        SHK_HANG_PROGRESS),
                  "works");
    json_t *j = judge(nodes_of(rank_in(0, 2, "R", launch, 4), rank_in(1, 2, "R", sync_gpu, 1)),
                      SHK_HANG_NAMED);
    expect_confidence(j, "possible");
    expect_named(j, 1, "user-code", "runs in its own code: cudaDeviceSynchronize()");
}

static json_t *at_prompt(const char *path, int fd)
{
    json_t *rank = rank_in(1, 2, "S", reads, 3);
    json_object_set_new(json_array_get(json_object_get(rank, "threads"), 0), "syscall",
                        json_pack("{s:s,s:i,s:s}", "name", "read", "fd", fd, "path", path));
    return rank;
}

Test(hang_gpu, a_forgotten_breakpoint)
{
    static const struct {
        const char *path, *kind;
        int fd;
    } cases[] = {{"pipe:[20534]", "input", 0},
                 {"/dev/pts/3", "input", 5},
                 {"pipe:[20534]", "socket", 7},
                 {"/scratch/list", "io", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_named(
            judge(nodes_of(rank_in(0, 2, "R", launch, 4), at_prompt(cases[i].path, cases[i].fd)),
                  SHK_HANG_NAMED),
            1, cases[i].kind, "rank 1");
}

static json_t *with_flight(json_t *nodes, json_t *findings)
{
    json_object_set_new(json_array_get(nodes, 0), "flight", findings);
    return nodes;
}

static json_t *finding(const char *code, const char *call, int rank)
{
    return json_pack("{s:s,s:s,s:i,s:[i]}", "code", code, "call", call, "collective", 6, "ranks",
                     rank);
}

static json_t *both_wait(void)
{
    return nodes_of(rank_in(0, 2, "R", launch, 4), rank_in(1, 2, "R", launch, 4));
}

Test(hang_gpu, what_the_flight_recorder_knows)
{
    expect_reason(judge(both_wait(), SHK_HANG_UNDECIDED), "all-in-one-call");
    json_t *j =
        judge(with_flight(both_wait(), json_pack("[o]", finding("unbegun", "all_reduce", 1))),
              SHK_HANG_NAMED);
    expect_confidence(j, "likely");
    expect_named(j, 1, "behind", "all_reduce, collective 6, has not begun on its GPU");
    expect_named(
        judge(with_flight(both_wait(), json_pack("[o]", finding("behind", "all_reduce", 0))),
              SHK_HANG_NAMED),
        0, "behind", "it has not called all_reduce, collective 6");
    /* of two ranks none is the wrong one, and a rank that waits elsewhere is not to blame */
    expect_reason(
        judge(with_flight(both_wait(), json_pack("[o,o]", finding("order", "all_reduce", 0),
                                                 finding("order", "broadcast", 1))),
              SHK_HANG_UNDECIDED),
        "different-calls");
    expect_reason(
        judge(with_flight(both_wait(), json_pack("[o]", finding("waits", "all_reduce", 1))),
              SHK_HANG_UNDECIDED),
        "all-in-one-call");
}

/* Rank 0 launched AllReduce up to 6, rank 1 up to 7. */
static json_t *with_counts(json_t *nodes)
{
    static const char *const when[] = {"ras_first", "ras"};
    for (size_t i = 0; i < 2; i++)
        json_object_set_new(
            json_array_get(nodes, 0), when[i],
            json_pack("[{s:i,s:{s:[{s:s,s:s,s:[{s:i,s:i,s:[]},{s:i,s:i,s:[{s:i,s:i}]}]}],s:[]}}]",
                      "port", 28028, "answer", "counts", "communicator", "abc", "operation",
                      "AllReduce", "groups", "count", 7, "ranks", 1, "known", "count", 6, "ranks",
                      1, "known", "rank", 0, "pid", 100, "dead"));
    return nodes;
}

Test(hang_gpu, a_rank_that_waits_in_what_it_launched_is_not_behind)
{
    json_t *j = judge(with_counts(both_wait()), SHK_HANG_NAMED);
    expect_confidence(j, "possible");
    expect_named(j, 0, "behind", "it launched AllReduce up to operation 6, others up to 7");
    expect_reason(judge(with_flight(with_counts(both_wait()),
                                    json_pack("[o]", finding("open", "all_reduce", 0))),
                        SHK_HANG_UNDECIDED),
                  "all-in-one-call");
    expect_reason(judge(with_flight(with_counts(both_wait()),
                                    json_pack("[o,o]", finding("size", "all_reduce", 0),
                                              finding("size", "all_reduce", 1))),
                        SHK_HANG_UNDECIDED),
                  "different-calls");
}

static json_t *counts_row(const char *communicator, int ahead, int behind, int count)
{
    return json_pack("{s:s,s:s,s:[{s:i,s:i,s:[{s:i,s:i}]},{s:i,s:i,s:[{s:i,s:i}]}]}",
                     "communicator", communicator, "operation", "AllReduce", "groups", "count",
                     count, "ranks", 1, "known", "rank", ahead, "pid", 100 + ahead, "count",
                     count - 1, "ranks", 1, "known", "rank", behind, "pid", 100 + behind);
}

static json_t *with_rows(json_t *nodes, json_t *counts)
{
    static const char *const when[] = {"ras_first", "ras"};
    for (size_t i = 0; i < 2; i++)
        json_object_set_new(
            json_array_get(nodes, 0), when[i],
            json_pack("[{s:i,s:{s:O,s:[]}}]", "port", 28028, "answer", "counts", counts, "dead"));
    json_decref(counts);
    return nodes;
}

/* Each is behind in the communicator in which the other waits: the program is wrong, no rank. */
Test(hang_gpu, two_communicators_in_a_different_order_name_nobody)
{
    expect_reason(judge(with_rows(both_wait(), json_pack("[o,o]", counts_row("abc", 0, 1, 6),
                                                         counts_row("def", 1, 0, 2))),
                        SHK_HANG_UNDECIDED),
                  "different-calls");
    json_t *j = judge(with_rows(both_wait(), json_pack("[o,o]", counts_row("abc", 0, 1, 6),
                                                       counts_row("def", 0, 1, 2))),
                      SHK_HANG_NAMED);
    expect_named(j, 1, "behind", "it launched AllReduce up to operation 5, others up to 6");
}

Test(hang_gpu, strange_findings_name_nobody)
{
    json_t *strange = json_pack("[n,i,{},{s:s},{s:s,s:s,s:s},{s:s,s:s,s:[s,n]}]", 5, "code",
                                "behind", "code", "order", "call", "x", "ranks", "all", "code",
                                "unbegun", "call", "x", "ranks", "1");
    json_decref(judge(with_flight(both_wait(), strange), SHK_HANG_UNDECIDED));
}
