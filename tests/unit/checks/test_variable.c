/* Variables that differ between the ranks of a job: which of them say something. */
#include "checks/cause/clue.h"
#include "support.h"

#include <criterion/criterion.h>

static const char *cause(const char *name)
{
    int weight = 0;
    return shk_clue_variable(support_config(), name, &weight);
}

Test(variable, launchers_give_each_process_its_own)
{
    static const char *const own[] = {"PMIX_RANK",
                                      "PMIX_HOSTNAME",
                                      "SLURM_PROCID",
                                      "SLURM_NODEID",
                                      "SLURM_LOCALID",
                                      "RANK",
                                      "LOCAL_RANK",
                                      "PMI_RANK",
                                      "GROUP_RANK",
                                      "NO_SUCH_VARIABLE",
                                      "SLURM_GTIDS",
                                      "OMPI_COMM_WORLD_RANK",
                                      "CUDA_VISIBLE_DEVICES",
                                      "SLURM_CPUS_ON_NODE",
                                      "SLURM_CPU_BIND_LIST",
                                      "SLURM_STEP_GPUS"};
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        cr_expect_null(cause(own[i]), "%s: %s", own[i], cause(own[i]));
}

Test(variable, settings_of_the_job_are_compared)
{
    static const char *const equal[] = {"NCCL_ALGO", "NCCL_MIN_NCHANNELS", "FI_PROVIDER",
                                        "OMPI_MCA_pml"};
    for (size_t i = 0; i < sizeof(equal) / sizeof(equal[0]); i++)
        cr_expect_str_eq(cause(equal[i]) ? cause(equal[i]) : "nothing", "env-differs-across-ranks",
                         "%s", equal[i]);
    cr_expect_str_eq(cause("NCCL_SOCKET_IFNAME"), "socket-ifname-differs-across-nodes");
}
