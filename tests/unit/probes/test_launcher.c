#include "hosttree.h"

#include <stdlib.h>

TREE_SUITE(launcher);

/* Values of environment variables of the tree, as one JSON object. */
static void environment(const char *json)
{
    char calls[4096];
    snprintf(calls, sizeof calls, "{\"environ\":%s}", json);
    tree_hostcalls(calls);
}

#define STEP                                                                                       \
    "\"SLURM_JOB_ID\":\"42\",\"SLURM_JOB_NUM_NODES\":\"4\",\"SLURM_STEP_NUM_NODES\":\"2\","        \
    "\"SLURM_STEP_NUM_TASKS\":\"16\",\"SLURM_PROCID\":\"3\",\"SLURM_LOCALID\":\"3\""

Test(launcher, kinds)
{
    enum { NONE = -1 };
    static const struct {
        const char *environment, *launcher, *scheduler;
        int nodes, ranks, rank, local_rank;
    } rows[] = {
        {"{}", "local", NULL, 1, 1, NONE, NONE},
        {"{" STEP "}", "slurm", "slurm", 2, 16, 3, 3},
        /* an allocation without a step */
        {"{\"SLURM_JOB_ID\":\"42\",\"SLURM_NNODES\":\"4\",\"SLURM_NTASKS\":\"32\"}", "slurm",
         "slurm", 4, 32, NONE, NONE},
        /* mpirun inside a step: the ranks are mpirun's */
        {"{" STEP ",\"OMPI_COMM_WORLD_SIZE\":\"8\",\"OMPI_COMM_WORLD_RANK\":\"5\","
         "\"OMPI_COMM_WORLD_LOCAL_RANK\":\"1\"}",
         "ompi", "slurm", NONE, 8, 5, 1},
        {"{" STEP ",\"TORCHELASTIC_RUN_ID\":\"none\",\"WORLD_SIZE\":\"64\",\"RANK\":\"9\","
         "\"LOCAL_RANK\":\"1\",\"GROUP_WORLD_SIZE\":\"8\"}",
         "torchrun", "slurm", 8, 64, 9, 1},
        /* WORLD_SIZE alone is exported by many scripts */
        {"{\"WORLD_SIZE\":\"64\"}", "local", NULL, 1, 1, NONE, NONE},
        {"{\"PMIX_NAMESPACE\":\"prterun-1\",\"PMIX_RANK\":\"2\"}", "pmix", NULL, NONE, NONE, 2,
         NONE},
        {"{" STEP ",\"PMIX_NAMESPACE\":\"slurm.pmix.42.0\",\"PMIX_RANK\":\"3\"}", "slurm", "slurm",
         2, 16, 3, 3},
        {"{\"PMI_RANK\":\"1\",\"PMI_SIZE\":\"4\",\"MPI_LOCALRANKID\":\"1\"}", "pmi", NULL, NONE, 4,
         1, 1},
        {"{\"PALS_RANKID\":\"7\",\"PALS_LOCAL_RANKID\":\"1\",\"PMI_SIZE\":\"24\","
         "\"PMI_RANK\":\"7\",\"PBS_JOBID\":\"9.host\"}",
         "pals", "pbs", NONE, 24, 7, 1},
        {"{\"FLUX_JOB_ID\":\"f1\",\"FLUX_TASK_RANK\":\"2\",\"FLUX_JOB_SIZE\":\"8\","
         "\"FLUX_JOB_NNODES\":\"2\",\"FLUX_TASK_LOCAL_ID\":\"2\"}",
         "flux", "flux", 2, 8, 2, 2},
        {"{\"RANK\":\"3\",\"WORLD_SIZE\":\"8\",\"LOCAL_RANK\":\"1\"}", "torch", NULL, NONE, 8, 3,
         1},
        {"{" STEP ",\"RANK\":\"3\",\"WORLD_SIZE\":\"16\"}", "slurm", "slurm", 2, 16, 3, 3},
        {"{\"MV2_COMM_WORLD_RANK\":\"1\",\"MV2_COMM_WORLD_SIZE\":\"4\"}", "mvapich", NULL, NONE, 4,
         1, NONE},
        {"{\"JSM_NAMESPACE_RANK\":\"1\",\"JSM_NAMESPACE_SIZE\":\"6\",\"LSB_JOBID\":\"5\"}", "jsrun",
         "lsf", NONE, 6, 1, NONE},
        {"{\"HOROVOD_RANK\":\"1\",\"HOROVOD_SIZE\":\"4\",\"HOROVOD_LOCAL_RANK\":\"1\"}", "horovod",
         NULL, NONE, 4, 1, 1},
        {"{\"SLURM_NTASKS\":\"4\"}", "slurm", NULL, NONE, 4, NONE, NONE},
        {"{\"SLURM_JOB_ID\":\"\",\"LSB_JOBID\":\"5\"}", "local", "lsf", 1, 1, NONE, NONE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct {
            const char *key;
            int want;
        } numbers[] = {{"job.nodes", rows[i].nodes},
                       {"job.ranks", rows[i].ranks},
                       {"job.rank", rows[i].rank},
                       {"job.local_rank", rows[i].local_rank}};
        cr_log_info("%s", rows[i].environment);
        environment(rows[i].environment);
        tree_run(&shk_probe_launcher);
        expect_text("job.launcher", rows[i].launcher);
        if (rows[i].scheduler)
            expect_text("job.scheduler", rows[i].scheduler);
        else
            expect_absent("job.scheduler");
        for (size_t j = 0; j < 4; j++) {
            if (numbers[j].want == NONE)
                expect_absent(numbers[j].key);
            else
                expect_int(numbers[j].key, numbers[j].want);
        }
    }
}

Test(launcher, numbers_that_are_none)
{
    static const char *const values[] = {"abc", "16(x2)", "-1", "+3", " 4", "99999999999999999999",
                                         "1.5"};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "{\"SLURM_JOB_ID\":\"42\",\"SLURM_NTASKS\":\"%s\",\"SLURM_NNODES\":\"2\"}",
                 values[i]);
        environment(text);
        tree_run(&shk_probe_launcher);
        expect_failed("job.ranks", "SLURM_NTASKS");
        expect_int("job.nodes", 2);
    }
}

Test(launcher, slurm_facts)
{
    environment("{" STEP ",\"SLURM_CLUSTER_NAME\":\"lumi\",\"SLURM_JOB_NODELIST\":\"nid[1-4]\","
                "\"SLURM_TASKS_PER_NODE\":\"8(x2)\",\"SLURM_NETWORK\":\"disable_rdzv_get\"}");
    tree_run(&shk_probe_launcher);
    expect_int("job.slurm.job_id", 42);
    expect_text("job.slurm.cluster", "lumi");
    expect_text("job.slurm.nodelist", "nid[1-4]");
    expect_text("job.slurm.tasks_per_node", "8(x2)");
    expect_text("job.slurm.network", "disable_rdzv_get");
    expect_absent("job.slurm.mpi_type");
    environment("{}");
    tree_run(&shk_probe_launcher);
    cr_expect_eq(tree_state("job.slurm.job_id"), TREE_NOTHING);
}

Test(launcher, pmix)
{
    environment("{\"PMIX_NAMESPACE\":\"slurm.pmix.118.0\",\"PMIX_RANK\":\"0\","
                "\"PMIX_SERVER_URI41\":\"pmix-server.1;tcp4://127.0.0.1:4\"}");
    tree_run(&shk_probe_launcher);
    expect_json("job.pmix", "{\"namespace\":\"slurm.pmix.118.0\",\"rank\":\"0\",\"version\":null,"
                            "\"servers\":[\"PMIX_SERVER_URI41\"]}");
    environment("{}");
    tree_run(&shk_probe_launcher);
    expect_absent("job.pmix");
}

/* Replaying a capture inside another job must not describe that job. */
Test(launcher, own_job_says_nothing_about_a_captured_node)
{
    environment("{\"SLURM_JOB_ID\":\"42\",\"SLURM_NNODES\":\"2\"}");
    setenv("SLURM_NNODES", "7", 1);
    tree_run(&shk_probe_launcher);
    expect_int("job.nodes", 2);
}

Test(launcher, captures)
{
    tree_copy_capture("slingshot-amd");
    tree_run(&shk_probe_launcher);
    expect_text("job.launcher", "slurm");
    expect_int("job.nodes", 2);
    expect_int("job.ranks", 16);
    expect_absent("job.pmix");
    tree_end();
    tree_begin();
    tree_copy_capture("efa-no-provider");
    tree_run(&shk_probe_launcher);
    expect_text("job.launcher", "slurm");
    cr_expect_eq(tree_state("job.pmix"), SHK_FACT_PRESENT);
}
