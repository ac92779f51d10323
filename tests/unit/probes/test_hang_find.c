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
