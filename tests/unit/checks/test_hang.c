/* Who holds the others up: documents of ranks as probes/hang writes them, with a known answer. */
#include "checks/hang/hang.h"

#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct shk_config *config;

static void begin(void)
{
    cr_assert_eq(shk_config_load(&config, NULL, NULL, NULL), 0);
}

static void end(void)
{
    shk_config_free(config);
}

TestSuite(hang, .init = begin, .fini = end);

/* Functions from outside inwards, with a blank between. */
static json_t *frames_of(const char *functions)
{
    json_t *frames = json_array();
    char *copy = strdup(functions), *save = NULL;
    for (char *f = strtok_r(copy, " ", &save); f; f = strtok_r(NULL, " ", &save))
        json_array_append_new(frames, json_pack("{s:s,s:s}", "function", f, "library", "job"));
    free(copy);
    return frames;
}

/* A rank whose first thread is in these functions; `still` outermost frames did not change. */
static json_t *rank_in(int number, int ranks, const char *state, const char *functions, int still)
{
    json_t *thread =
        json_pack("{s:i,s:s,s:o,s:b,s:i,s:b}", "tid", 100 + number, "state", state, "frames",
                  frames_of(functions), "cut", 0, "still", still, "blocked", 0);
    return json_pack("{s:i,s:i,s:i,s:i,s:s,s:[o]}", "pid", 100 + number, "rank", number, "ranks",
                     ranks, "local_ranks", ranks, "state", state, "threads", thread);
}

static json_t *waiter(int number, int ranks)
{
    return rank_in(number, ranks, "R", "_start main PMPI_Allreduce opal_progress", 3);
}

static json_t *in_syscall(json_t *rank, const char *name, const char *path, double blocked_s)
{
    json_t *thread = json_array_get(json_object_get(rank, "threads"), 0);
    json_t *call = json_pack("{s:s}", "name", name);
    if (path)
        json_object_update_new(call, json_pack("{s:s,s:s,s:s}", "path", path, "file_system", "nfs4",
                                               "mount", "/scratch"));
    json_object_update_new(
        thread, json_pack("{s:o,s:b,s:f}", "syscall", call, "blocked", 1, "blocked_s", blocked_s));
    return rank;
}

/* Takes the ranks (NULL at the end) as one node. */
static json_t *node_of(json_t *rank, ...)
{
    json_t *list = json_array();
    va_list args;
    va_start(args, rank);
    for (; rank; rank = va_arg(args, json_t *))
        json_array_append_new(list, rank);
    va_end(args);
    return json_pack("[{s:s,s:f,s:i,s:o}]", "host", "node9", "seconds", 5.0, "samples", 5, "ranks",
                     list);
}

/* Judges and frees the nodes. */
static json_t *judge(json_t *nodes, enum shk_hang_outcome expected)
{
    json_t *judgement = NULL;
    enum shk_hang_outcome outcome = SHK_HANG_PROGRESS;
    struct shk_error err = {""};
    cr_assert_eq(shk_hang_judge(config, nodes, &judgement, &outcome, &err), 0, "%s", err.text);
    cr_expect_eq(outcome, expected, "%d: %s", outcome,
                 json_string_value(json_object_get(judgement, "headline")));
    json_decref(nodes);
    return judgement;
}

static const char *text_of(const json_t *object, const char *member)
{
    const char *text = json_string_value(json_object_get(object, member));
    return text ? text : "";
}

/* Exactly this rank is named, as of the kind. */
static void expect_named(json_t *judgement, int number, const char *kind)
{
    const json_t *named = json_object_get(judgement, "named"), *one = json_array_get(named, 0);
    cr_expect_eq(json_array_size(named), 1);
    cr_expect_eq(json_integer_value(json_object_get(one, "rank")), number);
    cr_expect_str_eq(text_of(one, "kind"), kind);
}

static void expect_reason(json_t *judgement, const char *reason)
{
    cr_expect_str_eq(text_of(judgement, "reason"), reason, "%s", text_of(judgement, "headline"));
    cr_expect_eq(json_array_size(json_object_get(judgement, "named")), 0);
    json_decref(judgement);
}

Test(hang, a_rank_in_its_own_code)
{
    json_t *j = judge(node_of(waiter(0, 4), waiter(1, 4),
                              rank_in(2, 4, "R", "_start main solve", 2), waiter(3, 4), NULL),
                      SHK_HANG_NAMED);
    expect_named(j, 2, "user-code");
    cr_expect_str_eq(text_of(j, "headline"), "3 of 4 ranks wait in all_reduce; rank 2 (node9, "
                                             "process 102) runs in its own code: solve() of job");
    json_decref(j);
}

Test(hang, a_file_system_that_does_not_answer)
{
    json_t *io = in_syscall(rank_in(1, 2, "D", "", 0), "open", "/scratch/x", 612);
    json_t *j = judge(node_of(waiter(0, 2), io, NULL), SHK_HANG_NAMED);
    expect_named(j, 1, "io");
    cr_expect_str_eq(
        text_of(j, "headline"),
        "1 of 2 ranks waits in all_reduce; rank 1 (node9, process 101) is in open() on "
        "/scratch/x (nfs4 at /scratch) for 612 s");
    json_decref(j);
}

/* What a look interrupts goes on as restart_syscall(), of which the functions of libc have no
 * names; the kernel's name for what it sleeps in tells, or the function around it. */
Test(hang, a_call_that_goes_on_after_a_look)
{
    static const struct {
        const char *wchan, *functions, *kind;
    } cases[] = {{"futex_wait_queue", "_start main", "own-thread"},
                 {NULL, "_start main pthread_cond_clockwait ?", "own-thread"},
                 {"hrtimer_nanosleep", "_start main", "sleep"},
                 {"poll_schedule_timeout.constprop.0", "_start main", "socket"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *odd =
            in_syscall(rank_in(1, 3, "S", cases[i].functions, 2), "restart_syscall", NULL, 9);
        json_t *thread = json_array_get(json_object_get(odd, "threads"), 0);
        json_t *frames = json_object_get(thread, "frames");
        if (json_array_size(frames) == 4)
            json_object_del(json_array_get(frames, 3), "function");
        if (cases[i].wchan)
            json_object_set_new(thread, "wchan", json_string(cases[i].wchan));
        json_t *j = judge(node_of(waiter(0, 3), odd, waiter(2, 3), NULL), SHK_HANG_NAMED);
        expect_named(j, 1, cases[i].kind);
        json_decref(j);
    }
}

/* As the linker has the names of PyTorch's classes. */
Test(hang, a_receive_of_gloo)
{
    json_t *odd =
        rank_in(1, 4, "R", "_start main _ZN4c10d16ProcessGroupGloo8RecvWork4waitENSt6chrono", 3);
    json_t *j = judge(node_of(waiter(0, 4), odd, waiter(2, 4), waiter(3, 4), NULL), SHK_HANG_NAMED);
    expect_named(j, 1, "call");
    json_decref(j);
}

Test(hang, a_file_that_moves_on_is_progress)
{
    json_t *io = in_syscall(rank_in(1, 2, "D", "", 0), "write", "/scratch/x", 0);
    json_object_set_new(io, "written", json_integer(400 << 20));
    expect_reason(judge(node_of(waiter(0, 2), io, NULL), SHK_HANG_PROGRESS), "file-moves");
}

Test(hang, another_collective)
{
    json_t *j = judge(node_of(waiter(0, 3), rank_in(1, 3, "R", "_start main MPI_Barrier poll", 3),
                              waiter(2, 3), NULL),
                      SHK_HANG_NAMED);
    expect_named(j, 1, "call");
    json_decref(j);
}

Test(hang, two_that_go_on_while_the_others_wait)
{
    expect_reason(judge(node_of(waiter(0, 5), waiter(1, 5), waiter(2, 5),
                                rank_in(3, 5, "R", "_start main MPI_Sendrecv p", 2),
                                rank_in(4, 5, "R", "_start main MPI_Sendrecv p", 2), NULL),
                        SHK_HANG_PROGRESS),
                  "moves");
}

Test(hang, another_call_may_wait_for_ranks_that_were_not_looked_at)
{
    json_t *nodes = node_of(waiter(0, 8), rank_in(1, 8, "R", "_start main MPI_Recv poll", 3),
                            waiter(2, 8), NULL);
    json_object_set_new(json_array_get(nodes, 0), "partial", json_true());
    expect_reason(judge(nodes, SHK_HANG_UNDECIDED), "ranks-not-looked-at");
}

Test(hang, two_collectives_of_as_many_ranks)
{
    expect_reason(
        judge(node_of(waiter(0, 2), rank_in(1, 2, "R", "_start main MPI_Barrier p", 3), NULL),
              SHK_HANG_UNDECIDED),
        "tie");
}

Test(hang, a_stopped_rank)
{
    json_t *stopped = rank_in(0, 2, "T", "_start main PMPI_Allreduce p", 4);
    json_t *j = judge(node_of(stopped, waiter(1, 2), NULL), SHK_HANG_NAMED);
    expect_named(j, 0, "stopped");
    json_decref(j);
}

Test(hang, a_rank_without_a_process)
{
    json_t *j = judge(node_of(waiter(0, 3), waiter(2, 3), NULL), SHK_HANG_NAMED);
    expect_named(j, 1, "absent");
    json_decref(j);
}

Test(hang, ranks_that_were_chosen_do_not_make_others_absent)
{
    json_t *nodes = node_of(waiter(0, 3), waiter(2, 3), NULL);
    json_object_set_new(json_array_get(nodes, 0), "partial", json_true());
    expect_reason(judge(nodes, SHK_HANG_UNDECIDED), "ranks-not-looked-at");
}

Test(hang, a_job_that_ends_loses_its_ranks)
{
    expect_reason(
        judge(node_of(rank_in(0, 2, "R", "_start main work f", 1), NULL), SHK_HANG_PROGRESS),
        "works");
}

Test(hang, ranks_of_nodes_that_were_not_looked_at)
{
    json_t *a = waiter(0, 8), *b = waiter(1, 8);
    json_object_set_new(a, "local_ranks", json_integer(2));
    json_object_set_new(b, "local_ranks", json_integer(2));
    json_t *j = judge(node_of(a, b, NULL), SHK_HANG_UNDECIDED);
    cr_expect_eq(json_array_size(json_object_get(j, "unknown")), 1);
    expect_reason(j, "ranks-not-looked-at");
}

Test(hang, waiting_that_moves_is_progress)
{
    json_t *a = rank_in(0, 3, "R", "_start main PMPI_Allreduce opal_progress", 2);
    expect_reason(judge(node_of(a, waiter(1, 3), rank_in(2, 3, "R", "_start main f", 2), NULL),
                        SHK_HANG_PROGRESS),
                  "moves");
}

Test(hang, waiting_that_was_seen_once_only)
{
    json_t *a = waiter(0, 3);
    json_object_del(json_array_get(json_object_get(a, "threads"), 0), "still");
    expect_reason(judge(node_of(a, waiter(1, 3), rank_in(2, 3, "R", "_start main f", 2), NULL),
                        SHK_HANG_UNDECIDED),
                  "stillness-unseen");
}

Test(hang, a_stack_that_is_cut_names_nobody)
{
    json_t *a = rank_in(2, 3, "R", "f", 0);
    json_object_set_new(json_array_get(json_object_get(a, "threads"), 0), "cut", json_true());
    expect_reason(judge(node_of(waiter(0, 3), waiter(1, 3), a, NULL), SHK_HANG_UNDECIDED),
                  "ranks-unseen");
}

Test(hang, most_ranks_at_work_are_no_hang)
{
    expect_reason(judge(node_of(waiter(0, 3), rank_in(1, 3, "R", "_start main f", 2),
                                rank_in(2, 3, "R", "_start main f", 2), NULL),
                        SHK_HANG_PROGRESS),
                  "most-work");
}

Test(hang, work_in_a_function_that_may_wait)
{
    json_t *asleep = in_syscall(rank_in(2, 3, "S", "_start main nap", 3), "nanosleep", NULL, 9);
    expect_reason(judge(node_of(rank_in(0, 3, "R", "_start main meet", 2),
                                rank_in(1, 3, "R", "_start main meet", 2), asleep, NULL),
                        SHK_HANG_UNDECIDED),
                  "may-wait");
}

Test(hang, asleep_at_shared_memory_is_waiting)
{
    json_t *ranks[3];
    for (int i = 0; i < 2; i++) {
        ranks[i] = in_syscall(rank_in(i, 3, "S", "_start main meet", 3), "futex", NULL, 9);
        json_t *thread = json_array_get(json_object_get(ranks[i], "threads"), 0);
        json_object_set_new(json_object_get(thread, "syscall"), "shared", json_true());
    }
    json_t *j = judge(node_of(ranks[0], ranks[1], rank_in(2, 3, "R", "_start main solve", 2), NULL),
                      SHK_HANG_NAMED);
    expect_named(j, 2, "user-code");
    json_decref(j);
}

Test(hang, all_in_one_call)
{
    expect_reason(judge(node_of(waiter(0, 2), waiter(1, 2), NULL), SHK_HANG_UNDECIDED),
                  "all-in-one-call");
}

Test(hang, data_that_nobody_acknowledges)
{
    json_t *a = waiter(0, 2), *b = waiter(1, 2);
    static const char *const ends[] = {"192.0.2.1:4000", "192.0.2.2:5000"};
    for (int i = 0; i < 2; i++)
        json_object_set_new(i ? b : a, "sockets",
                            json_pack("[{s:s,s:s,s:s,s:i,s:i,s:i}]", "local", ends[i], "peer",
                                      ends[1 - i], "state", "established", "send_queue", 64,
                                      "receive_queue", 0, "retransmits", i ? 0 : 7));
    json_t *j = judge(node_of(a, b, NULL), SHK_HANG_UNDECIDED);
    const json_t *said = json_object_get(j, "said");
    cr_assert_eq(json_array_size(said), 1);
    cr_expect_str_eq(json_string_value(json_array_get(said, 0)),
                     "rank 0 (node9, process 100) has 64 bytes that are not acknowledged, sent "
                     "again 7 times, to 192.0.2.2:5000 of rank 1 (node9, process 101)");
    json_decref(j);
}

Test(hang, a_node_given_twice_counts_once)
{
    json_t *nodes = node_of(waiter(0, 2), waiter(1, 2), NULL);
    json_array_append(nodes, json_array_get(nodes, 0));
    json_t *j = judge(nodes, SHK_HANG_UNDECIDED);
    cr_expect_eq(json_integer_value(json_object_get(j, "seen")), 2);
    json_decref(j);
}

Test(hang, libraries_that_differ)
{
    json_t *a = waiter(0, 2), *b = waiter(1, 2);
    json_object_set_new(a, "libraries", json_pack("[s]", "/opt/a/libnccl.so.2.28.9"));
    json_object_set_new(b, "libraries", json_pack("[s]", "/opt/b/libnccl.so.2.21.5"));
    json_t *j = judge(node_of(a, b, NULL), SHK_HANG_UNDECIDED);
    const json_t *library = json_array_get(json_object_get(j, "libraries"), 0);
    cr_expect_str_eq(text_of(library, "library"), "libnccl");
    cr_expect_eq(json_array_size(json_object_get(library, "versions")), 2);
    json_decref(j);
}

/* Adds what NCCL's service said before the first look and after the last. */
static json_t *with_ras(json_t *nodes, int first, int last)
{
    static const char *const when[] = {"ras_first", "ras"};
    for (int i = 0; i < 2; i++) {
        json_t *groups =
            json_pack("[{s:i,s:i,s:[]},{s:i,s:i,s:[{s:i,s:i}]}]", "count", 31, "ranks", 2, "known",
                      "count", i ? last : first, "ranks", 1, "known", "rank", 1, "pid", 101);
        json_t *counts = json_pack("[{s:s,s:s,s:o}]", "communicator", "abc", "operation",
                                   "AllReduce", "groups", groups);
        json_object_set_new(
            json_array_get(nodes, 0), when[i],
            json_pack("[{s:i,s:{s:o,s:[]}}]", "port", 28028, "answer", "counts", counts, "dead"));
    }
    return nodes;
}

static json_t *gpu_waiter(int number, int ranks)
{
    return rank_in(number, ranks, "R", "_start main cudaStreamSynchronize f", 3);
}

Test(hang, a_rank_that_nccl_knows_to_be_behind)
{
    json_t *j =
        judge(with_ras(node_of(gpu_waiter(0, 3), gpu_waiter(1, 3), gpu_waiter(2, 3), NULL), 1, 1),
              SHK_HANG_NAMED);
    expect_named(j, 1, "behind");
    cr_expect_eq(json_array_size(json_object_get(j, "said")), 1);
    json_decref(j);
}

Test(hang, counts_that_go_on_name_nobody)
{
    expect_reason(
        judge(with_ras(node_of(gpu_waiter(0, 3), gpu_waiter(1, 3), gpu_waiter(2, 3), NULL), 1, 2),
              SHK_HANG_UNDECIDED),
        "all-in-one-call");
}

/* What these do is no answer for those that were not looked at. */
Test(hang, a_part_that_works_is_no_progress_of_the_whole)
{
    for (int ranks = 2; ranks < 4; ranks++) {
        json_t *a = rank_in(0, ranks, "R", "_start main meet", 2),
               *b = rank_in(1, ranks, "R", "_start main meet", 2);
        json_object_set_new(a, "local_ranks", json_integer(2));
        json_object_set_new(b, "local_ranks", json_integer(2));
        bool part = ranks > 2;
        expect_reason(judge(node_of(a, b, NULL), part ? SHK_HANG_UNDECIDED : SHK_HANG_PROGRESS),
                      part ? "part-works" : "works");
    }
}

static json_t *ras_row(const char *operation, int most, int ranks, int behind)
{
    return json_pack("{s:s,s:s,s:[{s:i,s:i,s:[]},{s:i,s:i,s:[{s:i,s:i}]}]}", "communicator", "abc",
                     "operation", operation, "groups", "count", most, "ranks", ranks, "known",
                     "count", most - 1, "ranks", 1, "known", "rank", behind, "pid", 100 + behind);
}

/* Rank 1 has launched Broadcast where the other ranks have launched AllReduce. */
static json_t *with_two_calls(json_t *nodes, int others)
{
    static const char *const when[] = {"ras_first", "ras"};
    for (int i = 0; i < 2; i++) {
        json_t *broadcast =
            others == 1 ? ras_row("Broadcast", 1, 1, 0)
                        : json_pack("{s:s,s:s,s:[{s:i,s:i,s:[]},{s:i,s:i,s:[]}]}", "communicator",
                                    "abc", "operation", "Broadcast", "groups", "count", 1, "ranks",
                                    1, "known", "count", 0, "ranks", others, "known");
        json_object_set_new(json_array_get(nodes, 0), when[i],
                            json_pack("[{s:i,s:{s:[o,o],s:[]}}]", "port", 28028, "answer", "counts",
                                      ras_row("AllReduce", 2, others, 1), broadcast, "dead"));
    }
    return nodes;
}

Test(hang, one_of_many_in_another_collective_of_a_communicator)
{
    json_t *j = judge(
        with_two_calls(node_of(gpu_waiter(0, 3), gpu_waiter(1, 3), gpu_waiter(2, 3), NULL), 2),
        SHK_HANG_NAMED);
    char *text = json_dumps(j, 0);
    expect_named(j, 1, "behind");
    cr_expect_not_null(strstr(text, "it launched Broadcast where others launched AllReduce"));
    free(text);
    json_decref(j);
}

Test(hang, one_of_two_in_another_collective_is_not_the_wrong_one)
{
    expect_reason(judge(with_two_calls(node_of(gpu_waiter(0, 2), gpu_waiter(1, 2), NULL), 1),
                        SHK_HANG_UNDECIDED),
                  "different-calls");
}

/* 512 ranks with 60 threads each, 40 frames deep. */
Test(hang, many_ranks_in_two_seconds)
{
    char deep[600] = "_start main";
    for (int i = 0; i < 37; i++)
        snprintf(deep + strlen(deep), 16, " call%d", i);
    json_t *ranks = json_array();
    for (int r = 0; r < 512; r++) {
        json_t *rank = r == 37 ? rank_in(r, 512, "R", "_start main solve", 2) : waiter(r, 512);
        for (int t = 0; t < 59; t++)
            json_array_append_new(json_object_get(rank, "threads"),
                                  json_pack("{s:i,s:s,s:o,s:i}", "tid", 100000 + t, "state", "S",
                                            "frames", frames_of(deep), "still", 39));
        json_array_append_new(ranks, rank);
    }
    json_t *nodes = json_pack("[{s:s,s:f,s:o}]", "host", "node9", "seconds", 5.0, "ranks", ranks);
    struct timespec a, b;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
    json_t *j = judge(json_incref(nodes), SHK_HANG_NAMED);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
    expect_named(j, 37, "user-code");
    double s = (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9;
    cr_expect_lt(s, 2, "%.2f s", s);
    cr_log_info("512 ranks: %.3f s", s);
    json_decref(j);
    json_decref(nodes);
}

Test(hang, hostile_documents)
{
    static const char *const texts[] = {
        "[{}]",
        "[1, null, \"x\"]",
        "[{\"ranks\": {}}]",
        "[{\"ranks\": [1, [], {\"rank\": -5}]}]",
        "[{\"host\": 3, \"ranks\": [{\"pid\": 1, \"rank\": 0, \"ranks\": 1073741824, "
        "\"local_ranks\": 1073741824}]}]",
        "[{\"ranks\": [{\"pid\": 1, \"threads\": [{\"tid\": 1, \"frames\": [{}, 1], \"still\": -3, "
        "\"syscall\": {\"path\": \"/\"}}], \"libraries\": [1, \"\"]}]}]",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        json_t *nodes = json_loads(texts[i], 0, NULL), *j = NULL;
        enum shk_hang_outcome outcome;
        cr_assert_not_null(nodes);
        if (!shk_hang_judge(config, nodes, &j, &outcome, NULL))
            cr_expect_neq(outcome, SHK_HANG_NAMED, "%s", texts[i]);
        json_decref(j);
        json_decref(nodes);
    }
}

/* Adds what NVML said of one GPU for each process, at both looks. */
static json_t *with_gpus(json_t *nodes, const int *busy, size_t count, bool unread)
{
    static const char *const when[] = {"gpus_first", "gpus"};
    for (int look = 0; look < 2; look++) {
        json_t *list = json_array();
        for (size_t i = 0; i < count; i++)
            json_array_append_new(list,
                                  json_pack("{s:i,s:o,s:i,s:[i]}", "index", (int)i, "pci",
                                            json_sprintf("0000:%02zx:00.0", i), "busy",
                                            busy[2 * i + (size_t)look], "processes", 100 + (int)i));
        json_t *gpus = json_pack("{s:o}", "list", list);
        if (unread)
            json_object_set_new(gpus, "unread", json_string("no answer"));
        json_object_set_new(json_array_get(nodes, 0), when[look], gpus);
    }
    return nodes;
}

static json_t *three_gpu_waiters(void)
{
    return node_of(gpu_waiter(0, 3), gpu_waiter(1, 3), gpu_waiter(2, 3), NULL);
}

Test(hang, gpus_that_are_busy_or_idle_all_the_time)
{
    static const int busy[] = {100, 100, 0, 0, 100, 40};
    json_t *j = judge(with_gpus(three_gpu_waiters(), busy, 3, false), SHK_HANG_UNDECIDED);
    const json_t *said = json_object_get(j, "said");
    cr_assert_eq(json_array_size(said), 2);
    const char *first = json_string_value(json_array_get(said, 0)),
               *second = json_string_value(json_array_get(said, 1));
    cr_expect(strstr(first, "rank 0") && strstr(first, "busy at 100 %"), "%s", first);
    cr_expect(!strstr(first, "rank 1") && !strstr(first, "rank 2"), "%s", first);
    cr_expect(strstr(second, "rank 1") && strstr(second, "idle"), "%s", second);
    json_decref(j);
}

/* One GPU of three that NVML does not tell of. */
Test(hang, a_gpu_without_an_answer_is_said)
{
    static const int busy[] = {0, 0, 0, 0, 0, 0};
    json_t *nodes = with_gpus(three_gpu_waiters(), busy, 3, false);
    json_t *gpus = json_object_get(json_array_get(nodes, 0), "gpus");
    json_t *gpu = json_array_get(json_object_get(gpus, "list"), 1);
    json_object_del(gpu, "busy");
    json_object_set_new(gpu, "unread", json_string("NVML error 15"));
    json_t *j = judge(nodes, SHK_HANG_UNDECIDED);
    char *unknown = json_dumps(json_object_get(j, "unknown"), 0);
    const char *said = json_string_value(json_array_get(json_object_get(j, "said"), 0));
    cr_expect(strstr(unknown, "GPU 0000:01:00.0 of") && strstr(unknown, "NVML error 15"), "%s",
              unknown);
    cr_expect(said && strstr(said, "rank 0") && !strstr(said, "rank 1"), "%s", said);
    free(unknown);
    json_decref(j);
}

Test(hang, gpus_that_were_not_read_are_not_idle)
{
    static const int busy[] = {0, 0, 0, 0, 0, 0};
    json_t *j = judge(with_gpus(three_gpu_waiters(), busy, 3, true), SHK_HANG_UNDECIDED);
    cr_expect_eq(json_array_size(json_object_get(j, "said")), 0);
    char *unknown = json_dumps(json_object_get(j, "unknown"), 0);
    cr_expect(strstr(unknown, "no answer"), "%s", unknown);
    free(unknown);
    json_decref(j);
}
