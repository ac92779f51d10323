/* Do the tasks of the launcher find each other, and if not, why? */
#include "checks/coded.h"

#include <ctype.h>
#include <string.h>

/* What srun offered instead of PMIx. */
static const struct pmi_flavour {
    const char *type; /* SLURM_MPI_TYPE, as srun --mpi; NULL: any other */
    const char *why;
} pmi_flavours[] = {
    {"none",
     "srun offered nothing to find each other by (--mpi=none, or MpiDefault of slurm.conf)"},
    {"pmi2", "srun offered PMI-2, which programs of MPICH know; this one, and Open MPI from 5 on, "
             "need PMIx"},
    {"cray_shasta", "srun offered Cray's PMI, which programs of Cray MPICH know; this one needs "
                    "PMIx"},
    {"openmpi", "--mpi=openmpi is what old versions of Slurm called none; newer ones refuse it"},
    {NULL, "srun offered something else than PMIx"},
};

static const struct pmi_flavour *pmi_flavour(const char *type)
{
    const struct pmi_flavour *f = pmi_flavours;
    while (f->type && strcmp(f->type, type) != 0)
        f++;
    return f;
}

/* Tasks of srun without PMIx. */
static void pmi_srun(const struct shk_check_context *ctx, struct shk_row *row, long long tasks)
{
    const char *type = shk_facts_get_text(ctx->facts, "job.slurm.mpi_type");
    if (!type && shk_env_get(ctx->facts, "PMI_FD"))
        type = "pmi2"; /* a wrapper that dropped SLURM_* */
    type = type ? type : "none";
    shk_row_text(&row->observed, "%lld tasks of Slurm with --mpi=%s, no PMIx", tasks, type);
    if (strncmp(type, "pmix", 4) == 0) {
        row->diagnosis = "pmix-variables-lost";
        shk_row_text(&row->why,
                     "srun offers PMIx (--mpi=%s), but PMIX_NAMESPACE and PMIX_RANK did not reach "
                     "the program: a container, sudo, env -i or a wrapper took them away; each "
                     "node was tested on its own",
                     type);
        shk_row_text(&row->fix, "let PMIX_* pass: apptainer without --cleanenv, sudo -E, "
                                "docker --env; mount PMIX_SERVER_TMPDIR");
        return;
    }
    row->diagnosis = "pmi-flavour-mismatch";
    shk_row_text(&row->why,
                 "%s; without PMIx each node was tested on its own, and nothing between "
                 "nodes",
                 pmi_flavour(type)->why);
    shk_row_text(&row->fix, "srun --mpi=pmix shakedown; srun --mpi=list shows what there is, "
                            "MpiDefault=pmix in slurm.conf makes it the default");
}

static void pmi_alone(const struct shk_check_context *ctx, struct shk_row *row, const json_t *alone)
{
    const char *launcher = shk_member_text(alone, "launcher");
    long long tasks = shk_member_int(alone, "tasks", 0);
    bool pmi = launcher && strcmp(launcher, "PMI") == 0;
    bool torchrun = launcher && strcmp(launcher, "torchrun") == 0;
    row->fact = "job.alone";
    shk_row_verdict(row, SHK_WARN, SHK_TESTED);
    shk_row_text(&row->expected, "tasks that find each other");
    if (launcher && strcmp(launcher, "Slurm") == 0) {
        pmi_srun(ctx, row, tasks);
        return;
    }
    row->diagnosis = pmi || torchrun ? "pmi-flavour-mismatch" : "pmix-variables-lost";
    shk_row_text(&row->observed, "%lld tasks of %s, no PMIx", tasks,
                 launcher ? launcher : "a launcher");
    shk_row_text(&row->why,
                 pmi ? "the launcher (mpiexec of MPICH or Intel MPI) speaks PMI (PMI_RANK, "
                       "PMI_SIZE), not PMIx; each node was tested on its own, and nothing between "
                       "nodes"
                 : torchrun
                     ? "%s starts processes and offers no PMIx; each node was tested on its own, "
                       "and nothing between nodes"
                     : "variables of %s are there, but PMIX_NAMESPACE and PMIX_RANK are not: a "
                       "container or wrapper took them away, or it offers no PMIx; each node was "
                       "tested on its own",
                 launcher ? launcher : "the launcher");
    shk_row_text(&row->fix, "start with a launcher that offers PMIx: srun --mpi=pmix, prterun, "
                            "mpirun of Open MPI; let PMIX_* pass");
}

/* "OpenPMIx 4.2.2rc2 (…)" and "4.2.2rc2" -> 4; -1 when there is no number. */
static long pmi_major(const char *version)
{
    while (version && *version && !isdigit((unsigned char)*version))
        version++;
    return version && *version ? strtol(version, NULL, 10) : -1;
}

/* PMIx is offered and could not be joined. */
static void pmi_failed(const struct shk_check_context *ctx, struct shk_row *row, const char *reason)
{
    struct shk_fact offer;
    bool offered = shk_look(ctx->facts, "job.pmix", &offer) == SHK_LOOK_PRESENT;
    const char *server = offered ? shk_member_text(offer.value, "version") : NULL;
    const char *client = shk_facts_get_text(ctx->facts, "job.pmix.version");
    bool differ = server && client && pmi_major(server) != pmi_major(client);
    shk_row_verdict(row, SHK_FAIL, SHK_TESTED);
    if (strstr(reason, "not found")) {
        row->diagnosis = "pmix-library-missing";
        shk_row_text(&row->observed, "the launcher offers PMIx%s%s, no library here",
                     server ? " " : "", server ? server : "");
        shk_row_text(&row->fix, "install libpmix.so.2 of the launcher's version on every node, or "
                                "add its directory to LD_LIBRARY_PATH");
    } else {
        row->diagnosis = differ || !server || !client ? "pmix-version-mismatch" : NULL;
        shk_row_text(&row->observed, "server %s, library %s: failed", server ? server : "unknown",
                     client ? client : "unknown");
        shk_row_text(&row->fix, "%s",
                     differ ? "load the PMIx that the launcher was built with (srun --mpi=list "
                              "shows pmix_vN), or export PMIX_MCA_gds=hash"
                            : "is PMIX_SERVER_TMPDIR there (mounted, readable by this user)? unset "
                              "PMIX_MCA_*; the launcher's log says more");
    }
    if (differ)
        shk_row_text(&row->why, "%s; server and library are of different generations", reason);
    else
        shk_row_text(&row->why, "%s", reason);
    shk_row_text(&row->expected, "a library that the launcher's server understands");
}

static void eval_pmix(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_start(&shk_check_job_pmix, "PMIx");
    json_t *alone = shk_facts_get_object(ctx->facts, "job.alone");
    struct shk_fact fact;
    enum shk_look look = shk_look(ctx->facts, "job.pmix.library", &fact);
    row.fact = "job.pmix.library";
    if (look == SHK_LOOK_PRESENT) {
        const char *version = shk_facts_get_text(ctx->facts, "job.pmix.version");
        shk_row_verdict(&row, SHK_PASS, SHK_TESTED);
        shk_row_text(&row.observed, "%s", version ? version : "joined");
    } else if (look == SHK_LOOK_FAILED) {
        pmi_failed(ctx, &row, fact.reason ? fact.reason : "no reason was recorded");
    } else if (alone) {
        pmi_alone(ctx, &row, alone);
    } else {
        return; /* one task */
    }
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_job_pmix = {
    .id = "job.pmix",
    .scope = SHK_SCOPE_LAUNCH,
    .family = "launcher",
    .title = "The tasks of the launcher find each other",
    .eval = eval_pmix,
    .of_job = true,
    .doc =
        "Facts: job.pmix.library, job.pmix.version, job.pmix, job.alone, job.slurm.mpi_type, "
        "env.PMI_FD.\nPMIx that is offered and fails is FAIL: no library, or one of another "
        "generation than the server. Several tasks without PMIx are WARN, since each node is then "
        "tested on its own: srun with --mpi=none, pmi2 or another flavour, a launcher of MPICH, or "
        "PMIx whose variables did not reach the program.",
};
