#include "core/job/launch.h"

#include <stddef.h>

/* The innermost launcher decides: mpirun inside a Slurm step sets both kinds of variables, and the
 * ranks are mpirun's. */
static const struct shk_launch launches[] = {
    {
        .name = "torchrun",
        .title = "torchrun",
        .inherits = true,
        .needs = {"TORCHELASTIC_RUN_ID", "WORLD_SIZE"},
        .nodes = {"GROUP_WORLD_SIZE"},
        .ranks = {"WORLD_SIZE"},
        .rank = {"RANK"},
        .local_rank = {"LOCAL_RANK"},
        .local_ranks = {"LOCAL_WORLD_SIZE"},
    },
    {
        .name = "horovod",
        .title = "horovodrun",
        .inherits = true,
        .needs = {"HOROVOD_RANK", "HOROVOD_SIZE"},
        .ranks = {"HOROVOD_SIZE"},
        .rank = {"HOROVOD_RANK"},
        .local_rank = {"HOROVOD_LOCAL_RANK"},
        .local_ranks = {"HOROVOD_LOCAL_SIZE"},
    },
    {
        .name = "ompi",
        .title = "Open MPI",
        .needs = {"OMPI_COMM_WORLD_SIZE"},
        .ranks = {"OMPI_COMM_WORLD_SIZE"},
        .rank = {"OMPI_COMM_WORLD_RANK"},
        .local_rank = {"OMPI_COMM_WORLD_LOCAL_RANK"},
        .local_ranks = {"OMPI_COMM_WORLD_LOCAL_SIZE"},
    },
    {
        .name = "jsrun",
        .title = "jsrun",
        .needs = {"JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE"},
        .ranks = {"JSM_NAMESPACE_SIZE"},
        .rank = {"JSM_NAMESPACE_RANK"},
        .local_rank = {"JSM_NAMESPACE_LOCAL_RANK"},
        .local_ranks = {"JSM_NAMESPACE_LOCAL_SIZE"},
    },
    {
        .name = "mvapich",
        .title = "MVAPICH",
        .needs = {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
        .ranks = {"MV2_COMM_WORLD_SIZE"},
        .rank = {"MV2_COMM_WORLD_RANK"},
        .local_rank = {"MV2_COMM_WORLD_LOCAL_RANK"},
        .local_ranks = {"MV2_COMM_WORLD_LOCAL_SIZE"},
    },
    {
        .name = "pals",
        .title = "PALS",
        .needs = {"PALS_RANKID"},
        .ranks = {"PMI_SIZE"},
        .rank = {"PALS_RANKID"},
        .local_rank = {"PALS_LOCAL_RANKID"},
        .local_ranks = {"PALS_LOCAL_SIZE", "PMI_LOCAL_SIZE"},
    },
    {
        .name = "flux",
        .title = "Flux",
        .needs = {"FLUX_JOB_ID", "FLUX_TASK_RANK"},
        .nodes = {"FLUX_JOB_NNODES"},
        .ranks = {"FLUX_JOB_SIZE"},
        .rank = {"FLUX_TASK_RANK"},
        .local_rank = {"FLUX_TASK_LOCAL_ID"},
    },
    {
        .name = "slurm",
        .title = "Slurm",
        .needs = {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID"},
        .nodes = {"SLURM_STEP_NUM_NODES", "SLURM_JOB_NUM_NODES", "SLURM_NNODES"},
        .ranks = {"SLURM_STEP_NUM_TASKS"},
        .rank = {"SLURM_PROCID"},
        .local_rank = {"SLURM_LOCALID"},
    },
    {
        .name = "pmix",
        .title = "PMIx",
        .needs = {"PMIX_NAMESPACE", "PMIX_RANK"},
        .rank = {"PMIX_RANK"},
    },
    {
        .name = "pmi",
        .title = "PMI",
        .needs = {"PMI_RANK", "PMI_SIZE"},
        .ranks = {"PMI_SIZE"},
        .rank = {"PMI_RANK"},
        .local_rank = {"PMI_LOCAL_RANK", "MPI_LOCALRANKID"},
        .local_ranks = {"PMI_LOCAL_SIZE", "MPI_LOCALNRANKS"},
    },
    {
        /* python -m torch.distributed.launch, operators of Kubernetes, scripts of a site */
        .name = "torch",
        .title = "RANK and WORLD_SIZE",
        .needs = {"RANK", "WORLD_SIZE"},
        .ranks = {"WORLD_SIZE"},
        .rank = {"RANK"},
        .local_rank = {"LOCAL_RANK"},
        .local_ranks = {"LOCAL_WORLD_SIZE"},
    },
    {
        /* inside an allocation, but not started by srun: one process of what may become many */
        .name = "slurm",
        .title = "Slurm",
        .allocation = true,
        .needs = {"SLURM_JOB_ID"},
        .nodes = {"SLURM_JOB_NUM_NODES", "SLURM_NNODES"},
        .ranks = {"SLURM_NTASKS", "SLURM_NPROCS"},
    },
    {
        /* a wrapper that kept only some of SLURM_* */
        .name = "slurm",
        .title = "Slurm",
        .allocation = true,
        .needs = {"SLURM_NTASKS"},
        .nodes = {"SLURM_JOB_NUM_NODES", "SLURM_NNODES"},
        .ranks = {"SLURM_NTASKS"},
    },
};

const struct shk_launch *shk_launch_find(shk_launch_get *get, void *arg)
{
    for (size_t i = 0; i < sizeof launches / sizeof *launches; i++) {
        const struct shk_launch *launch = &launches[i];
        bool holds = true;
        for (size_t j = 0; j < SHK_LAUNCH_NAMES && launch->needs[j] && holds; j++) {
            const char *value = get(launch->needs[j], arg);
            holds = value && *value;
        }
        if (holds)
            return launch;
    }
    return NULL;
}
