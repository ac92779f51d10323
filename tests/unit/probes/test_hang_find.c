/* Which processes `shakedown hang` takes for the ranks of a job: a made-up /proc. */
#include "hosttree.h"
#include "probes/hang/hang_private.h"

#include <errno.h>
#include <stdlib.h>

TREE_SUITE(hang_find);

static struct shk_host *host;
static struct hang_process *found;
static size_t count;
static bool partial;

/* `variables`: "A=1 B=2". */
static void process(long pid, long parent, const char *name, const char *variables)
{
    char path[64], text[512];
    size_t length = strlen(variables);
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    tree_put(path,
             "%ld (%s) S %ld 1 1 0 -1 0 0 0 0 0 10 5 0 0 20 0 1 0 %ld 0 0 0 0 0 0 0 0 0 0 0 0 0 0 "
             "0 0 0 17 1 0 0\n",
             pid, name, parent, pid);
    cr_assert_lt(length, sizeof text);
    for (size_t i = 0; i <= length; i++)
        text[i] = (char)(variables[i] == ' ' ? '\0' : variables[i]);
    snprintf(path, sizeof path, "/proc/%ld/environ", pid);
    tree_put_bytes(path, text, length + 1);
    snprintf(path, sizeof path, "/proc/%ld/maps", pid);
    tree_put(path, "\n");
}

static void maps(long pid, const char *library)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/maps", pid);
    tree_put(path, "7f0000000000-7f0000001000 r-xp 00000000 08:01 1 %s\n", library);
}

static int find(const struct shk_hang_want *want, struct shk_error *err)
{
    cr_assert_eq(shk_host_open(&host, tree_folder(), NULL), 0);
    int rc = hang_find(host, want, &found, &count, &partial, err);
    shk_host_close(host);
    return rc;
}

static void expect_ranks(const long *pids, size_t expected)
{
    static const char *const libraries[] = {"libmpi.so", "libtorch_cpu.so", NULL};
    const struct shk_hang_want want = {.libraries = libraries};
    struct shk_error err = {""};
    cr_assert_eq(find(&want, &err), 0, "%s", err.text);
    cr_assert_eq(count, expected);
    for (size_t i = 0; i < count; i++) {
        cr_expect_eq(found[i].pid, pids[i], "rank %ld is process %ld", found[i].rank, found[i].pid);
        cr_expect_eq(found[i].rank, (long)i);
    }
    hang_find_free(found, count);
}

#define SLURM "SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=1"

/* srun started orted on the node; the ranks are what that started. */
Test(hang_find, the_daemon_of_mpirun_in_a_slurm_step_is_no_rank)
{
    process(10, 1, "slurmstepd", "");
    process(11, 10, "orted", SLURM);
    for (long i = 0; i < 2; i++) {
        char text[200];
        snprintf(text, sizeof text,
                 SLURM " OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=%ld PMIX_NAMESPACE=99", i);
        process(20 + i, 11, "train", text);
    }
    expect_ranks((const long[]){20, 21}, 2);
}

/* The agent of torchrun has all libraries of the ranks. */
Test(hang_find, torchrun_in_a_slurm_step_is_no_rank)
{
    process(11, 10, "torchrun", SLURM);
    maps(11, "/opt/torch/libtorch_cpu.so");
    for (long i = 0; i < 2; i++) {
        char text[200];
        snprintf(text, sizeof text,
                 SLURM " TORCHELASTIC_RUN_ID=r1 WORLD_SIZE=2 RANK=%ld MASTER_PORT=29500", i);
        process(20 + i, 11, "python3", text);
        maps(20 + i, "/opt/torch/libtorch_cpu.so");
    }
    expect_ranks((const long[]){20, 21}, 2);
}

/* A rank that started a job of its own is still one, as the other ranks are: which job is meant
 * has to be said. */
Test(hang_find, a_rank_that_started_another_job_is_no_starter)
{
    struct shk_error err = {""};
    const struct shk_hang_want want = {.libraries = (const char *const[]){"libmpi.so", NULL}};
    process(20, 11, "train", "OMPI_COMM_WORLD_SIZE=1 OMPI_COMM_WORLD_RANK=0 PMIX_NAMESPACE=99");
    maps(20, "/usr/lib/libmpi.so.40");
    process(30, 20, "mpirun", "PMIX_NAMESPACE=99");
    process(31, 30, "part", "OMPI_COMM_WORLD_SIZE=1 OMPI_COMM_WORLD_RANK=0 PMIX_NAMESPACE=100");
    cr_expect_eq(find(&want, &err), -EMLINK, "%s", err.text);
}

/* A shell of `srun --pty`, in which a job is started by srun. */
Test(hang_find, a_shell_that_started_the_step_is_no_rank)
{
    process(11, 10, "bash", "SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=1 SLURM_PROCID=0");
    process(20, 11, "train",
            "SLURM_JOB_ID=7 SLURM_STEP_ID=1 SLURM_STEP_NUM_TASKS=1 SLURM_PROCID=0");
    expect_ranks((const long[]){20}, 1);
}

/* Slurm tells the tasks of all nodes in one list. */
Test(hang_find, how_many_ranks_slurm_put_on_the_node)
{
    const struct shk_hang_want want = {.job = "7"};
    struct shk_error err = {""};
    process(20, 1, "train",
            SLURM " SLURM_STEP_TASKS_PER_NODE=4(x2),1 SLURM_NODEID=1 SLURM_LOCALID=3");
    cr_assert_eq(find(&want, &err), 0, "%s", err.text);
    cr_assert_eq(count, 1);
    cr_expect_eq(found[0].local_ranks, 4);
    cr_expect_eq(found[0].local_rank, 3);
    hang_find_free(found, count);
}

static void title(long pid, const char *text)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/cmdline", pid);
    tree_put_bytes(path, text, strlen(text) + 1);
}

/* An established TCP connection of the process between two ports of this host. */
static void connection_of(long pid, unsigned inode, unsigned local, unsigned peer)
{
    char path[64], target[32];
    snprintf(path, sizeof path, "/proc/%ld/fd/7", pid);
    snprintf(target, sizeof target, "socket:[%u]", inode);
    tree_link(path, target);
    snprintf(path, sizeof path, "/proc/%ld/net/tcp", pid);
    tree_put(path,
             "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  "
             "timeout inode\n"
             "   0: 0100007F:%04X 0100007F:%04X 01 00000000:00000000 00:00000000 00000000     0    "
             "    0 %u 1 0 0 20 4 30 10 -1\n",
             local, peer, inode);
}

static void connection(long pid, unsigned inode)
{
    connection_of(pid, inode, inode, 80);
}

static const char *const torch[] = {"libtorch_cpu.so", NULL};

static void expect_below(long pid, const long *pids, size_t expected)
{
    const struct shk_hang_want want = {.libraries = torch, .pids = &pid, .pids_count = 1};
    struct shk_error err = {""};
    cr_assert_eq(find(&want, &err), 0, "%s", err.text);
    cr_assert_eq(count, expected, "%zu found", count);
    for (size_t i = 0; i < count; i++)
        cr_expect_eq(found[i].pid, pids[i], "%ld", found[i].pid);
    hang_find_free(found, count);
}

/* A rank of torch.multiprocessing with its own connection. */
static void torch_rank(long pid, long parent, unsigned inode)
{
    process(pid, parent, "python3", "");
    maps(pid, "/opt/torch/libtorch_cpu.so");
    if (inode)
        connection(pid, inode);
}

/* The starter has the library and no connection, a forked loader the connection of its rank, a
 * spawned one none. */
Test(hang_find, ranks_of_multiprocessing_without_variables)
{
    torch_rank(10, 1, 0);
    torch_rank(20, 10, 501);
    torch_rank(21, 10, 502);
    torch_rank(30, 20, 501);
    torch_rank(31, 21, 0);
    expect_below(10, (const long[]){20, 21}, 2);
}

Test(hang_find, the_starter_that_keeps_the_store_is_no_rank)
{
    torch_rank(10, 1, 500);
    torch_rank(20, 10, 501);
    torch_rank(21, 10, 502);
    expect_below(10, (const long[]){20, 21}, 2);
}

/* Their connections go to where the data are, those of the ranks to each other. */
Test(hang_find, spawned_loaders_with_connections_are_no_ranks)
{
    torch_rank(10, 1, 0);
    torch_rank(20, 10, 0);
    torch_rank(21, 10, 0);
    connection_of(20, 501, 4000, 5000);
    connection_of(21, 502, 5000, 4000);
    for (long i = 0; i < 4; i++)
        torch_rank(30 + i, 20 + i / 2, (unsigned)(600 + i));
    expect_below(10, (const long[]){20, 21}, 2);
}

Test(hang_find, one_process_stands_for_itself)
{
    torch_rank(10, 1, 500);
    torch_rank(30, 10, 500);
    expect_below(10, (const long[]){10}, 1);
}

/* A program that forks its ranks, and a helper that only sleeps. */
Test(hang_find, forked_ranks_have_the_name_of_the_program)
{
    process(10, 1, "bench", "");
    process(20, 10, "bench", "");
    process(21, 10, "bench", "");
    process(22, 10, "sh", "");
    expect_below(10, (const long[]){20, 21}, 2);
}

/* os.environ["RANK"] of a rank is seen in the loaders that it spawned, not in itself. */
Test(hang_find, loaders_of_a_rank_that_set_its_variables_itself)
{
    static const char spawned[] = "python3\0-c\0spawn_main()\0--multiprocessing-fork";
    for (long i = 0; i < 2; i++) {
        char text[120];
        torch_rank(20 + i, 10, (unsigned)(500 + i));
        snprintf(text, sizeof text, "RANK=%ld WORLD_SIZE=2 MASTER_PORT=29500", i);
        for (long loader = 30 + 10 * i; loader < 32 + 10 * i; loader++) {
            char path[64];
            process(loader, 20 + i, "python3", text);
            maps(loader, "/opt/torch/libtorch_cpu.so");
            snprintf(path, sizeof path, "/proc/%ld/cmdline", loader);
            tree_put_bytes(path, spawned, sizeof spawned);
        }
    }
    const struct shk_hang_want want = {.libraries = torch};
    struct shk_error err = {""};
    cr_assert_eq(find(&want, &err), 0, "%s", err.text);
    cr_assert_eq(count, 2);
    for (size_t i = 0; i < count; i++) {
        cr_expect_eq(found[i].pid, 20 + (long)i);
        cr_expect_eq(found[i].rank, (long)i);
        cr_expect_eq(found[i].ranks, 2);
    }
    hang_find_free(found, count);
}

/* Titles overwrite what /proc has of the variables; a forked loader has that of its rank. */
Test(hang_find, workers_of_vllm_are_known_by_their_titles)
{
    process(10, 1, "VLLM::EngineCor", "");
    for (long i = 0; i < 2; i++) {
        char text[40];
        snprintf(text, sizeof text, "VLLM::Worker_TP%ld", i);
        process(20 + i, 10, "VLLM::Worker_TP", "");
        title(20 + i, text);
        process(30 + i, 20 + i, "VLLM::Worker_TP", "");
        title(30 + i, text);
    }
    const struct shk_hang_want want = {.libraries = torch};
    struct shk_error err = {""};
    cr_assert_eq(find(&want, &err), 0, "%s", err.text);
    cr_assert_eq(count, 2);
    cr_expect_eq(found[0].pid, 20);
    cr_expect_str_eq(found[1].name, "VLLM::Worker_TP1");
    hang_find_free(found, count);
}

Test(hang_find, actors_of_ray_that_train)
{
    process(10, 1, "raylet", "");
    static const char *const titles[] = {"ray::_RayTrainWorker__execute.get_next",
                                         "ray::RayWorkerWrapper.execute_method", "ray::IDLE",
                                         "ray::_MapWorker.submit"};
    for (long i = 0; i < 4; i++) {
        process(20 + i, 10, "ray::", "");
        title(20 + i, titles[i]);
    }
    const struct shk_hang_want want = {.libraries = torch};
    struct shk_error err = {""};
    cr_assert_eq(find(&want, &err), 0, "%s", err.text);
    cr_assert_eq(count, 2);
    cr_expect_eq(found[1].pid, 21);
    hang_find_free(found, count);
}
