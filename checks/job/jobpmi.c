/* Do the tasks of the launcher find each other, and if not, why? */
#include "checks/base/coded.h"
#include "checks/base/read.h"
#include "checks/base/remedy.h"
#include "core/text/uses.h"

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

/* What every row of tasks that did not find each other says of the test. */
#define PMI_UNTESTED "nothing between the ranks was tested"

/* Tasks of srun without PMIx. */
static void pmi_srun(struct shk_row *row, long long tasks, const char *reason)
{
    const char *type = NULL, *fd = NULL;
    if (shk_read_text(row, "job.slurm.mpi_type", &type) != SHK_LOOK_PRESENT &&
        shk_read_env(row, shk_variable("pmi2-socket"), &fd) == SHK_LOOK_PRESENT)
        type = "pmi2"; /* a wrapper that dropped SLURM_* */
    type = type ? type : "none";
    shk_row_text(&row->observed, "%lld tasks of Slurm with --mpi=%s, no PMIx", tasks, type);
    if (strncmp(type, "pmix", 4) == 0) {
        row->diagnosis = "pmix-variables-lost";
        shk_row_text(&row->why,
                     "srun offers PMIx (--mpi=%s), but %s and %s did not reach "
                     "the program: a container, sudo, env -i or a wrapper removed them; each "
                     "node was tested on its own, " PMI_UNTESTED,
                     type, shk_variable("pmix-namespace"), shk_variable("pmix-rank"));
        shk_row_fix(row, "pmix-variables", NULL);
        return;
    }
    row->diagnosis = "pmi-flavour-mismatch";
    shk_row_text(&row->why, "%s%s%s; without PMIx each node was tested on its own, " PMI_UNTESTED,
                 pmi_flavour(type)->why, reason ? "; " : "", reason ? reason : "");
    shk_row_fix(row, "pmix-launcher", NULL);
}

/* One process in an allocation of several tasks: on one node its own ranks are all there is. */
static void pmi_allocation(struct shk_row *row, const json_t *alone, long long tasks)
{
    long long nodes = 0;
    bool one = shk_look_member_int(alone, "nodes", &nodes) == SHK_LOOK_PRESENT && nodes == 1;
    row->verdict = one ? SHK_NOTE : SHK_WARN;
    shk_row_text(&row->observed, "a job of %lld tasks, started as one process", tasks);
    shk_row_text(&row->expected, "one task for each rank of the job");
    shk_row_text(&row->why,
                 "shakedown was not started by srun: it tested this node with its own ranks; "
                 "nothing was tested between the job's ranks%s",
                 one ? "" : ", and nothing on the other nodes");
    shk_row_fix(row, "pmix-srun", NULL);
    row->diagnosis = one ? NULL : "launcher-not-joined";
}

/* What a launcher that is not Slurm lacks. */
static void pmi_other(struct shk_row *row, const char *name, const char *launcher)
{
    bool pmix = strcmp(name, "ompi") == 0 || strcmp(name, "jsrun") == 0;
    bool pmi = strcmp(name, "pmi") == 0;
    row->diagnosis = pmix  ? "pmix-variables-lost"
                     : pmi ? "pmi-flavour-mismatch"
                           : "launcher-not-joined";
    if (pmi)
        shk_row_text(&row->why,
                     "the launcher (mpiexec of MPICH or Intel MPI) uses PMI (%s, "
                     "%s), not PMIx; each node was tested on its own, " PMI_UNTESTED,
                     shk_variable("pmi-rank"), shk_variable("pmi-size"));
    else if (pmix)
        shk_row_text(&row->why,
                     "variables of %s are set, but %s and %s are not: a "
                     "container or wrapper removed them, or it offers no PMIx; each "
                     "node was tested on its own, " PMI_UNTESTED,
                     launcher, shk_variable("pmix-namespace"), shk_variable("pmix-rank"));
    else
        shk_row_text(&row->why,
                     "shakedown's tasks find each other through PMIx, which %s does not offer; "
                     "each node was tested on its own, " PMI_UNTESTED,
                     launcher);
    shk_row_fix(row, "pmix-other-launcher", NULL);
}

/* There are other ways than PMIx, and why none of them was open is known. */
static void pmi_not_met(struct shk_row *row, const char *reason)
{
    shk_row_text(&row->why, "%s; each node was tested on its own, " PMI_UNTESTED, reason);
    shk_row_fix(row, "rendezvous-given", NULL);
}

/* Built without pmix.h: no launcher could be joined, whatever it offers. */
static bool pmi_not_built(struct shk_row *row)
{
    if (shk_read(row, "job.pmix.built", NULL) != SHK_LOOK_ABSENT)
        return false;
    row->diagnosis = "pmix-not-built";
    shk_row_text(&row->expected, "built with PMIx");
    shk_row_text(&row->why, "this shakedown was built without PMIx, so it joins the tasks of no "
                            "launcher; each node was tested on its own, " PMI_UNTESTED);
    shk_row_fix(row, "pmix-build", NULL);
    return true;
}

/* The launcher's name in the catalogue; documents of 0.2.0 and before have it in job.launcher. */
static const char *pmi_launcher(const struct shk_facts *facts, const json_t *alone)
{
    const char *name = "";
    if (shk_look_member_text(alone, "name", &name) != SHK_LOOK_PRESENT)
        (void)shk_look_text(facts, "job.launcher", &name);
    return name;
}

static void pmi_alone(struct shk_row *row, const json_t *alone)
{
    const char *launcher = "a launcher", *reason = NULL;
    const char *name = pmi_launcher(row->ctx->facts, alone);
    long long tasks = 0;
    bool allocation = false;
    row->fact = "job.alone";
    shk_row_verdict(row, SHK_WARN, SHK_TESTED);
    shk_read_member_int(row, row->fact, alone, "tasks", &tasks);
    (void)shk_look_member_text(alone, "launcher", &launcher);
    (void)shk_look_member_bool(alone, "allocation", &allocation);
    if (allocation) {
        pmi_allocation(row, alone, tasks);
        return;
    }
    (void)shk_look_member_text(alone, "why", &reason);
    shk_row_text(&row->expected, "tasks that find each other");
    if (!reason && pmi_not_built(row)) {
        shk_row_text(&row->observed, "%lld tasks of %s, each on its own", tasks, launcher);
    } else if (strcmp(name, "slurm") == 0) {
        pmi_srun(row, tasks, reason);
    } else {
        shk_row_text(&row->observed, "%lld tasks of %s, no PMIx", tasks, launcher);
        pmi_other(row, name, launcher);
        if (reason)
            pmi_not_met(row, reason);
    }
}

/* "OpenPMIx 4.2.2rc2 (…)" and "4.2.2rc2" -> 4; -1 when there is no number. */
static long pmi_major(const char *version)
{
    while (version && *version && !isdigit((unsigned char)*version))
        version++;
    return version && *version ? strtol(version, NULL, 10) : -1;
}

/* A library was loaded, or could not be, and the server that the launcher offers was not reached.
 */
static void pmi_refused(struct shk_row *row, const char *server, const char *client,
                        const char *reason)
{
    bool differ = server && client && pmi_major(server) != pmi_major(client);
    row->diagnosis = differ || !server || !client ? "pmix-version-mismatch" : NULL;
    shk_row_text(&row->observed, "server %s, library %s: failed", server ? server : "unknown",
                 client ? client : "unknown");
    shk_row_fix(row, differ ? "pmix-same" : "pmix-server", NULL);
    shk_row_text(&row->why, "%s%s", reason,
                 differ ? "; server and library are of different generations" : "");
}

/* PMIx is offered and could not be joined. */
static void pmi_failed(struct shk_row *row, const char *reason)
{
    const struct shk_facts *facts = row->ctx->facts;
    json_t *offer = NULL;
    const char *server = NULL, *client = NULL, *cause = "";
    (void)shk_look_text(facts, "job.pmix.cause", &cause);
    if (shk_look_object(facts, "job.pmix", &offer) == SHK_LOOK_PRESENT)
        (void)shk_look_member_text(offer, "version", &server);
    (void)shk_look_text(facts, "job.pmix.version", &client);
    row->fact = "job.pmix.problem";
    shk_row_verdict(row, SHK_FAIL, SHK_TESTED);
    shk_row_text(&row->expected, "a library that the launcher's server understands");
    if (pmi_not_built(row)) {
        shk_row_text(&row->observed, "the launcher offers PMIx%s%s", server ? " " : "",
                     server ? server : "");
    } else if (strcmp(cause, "no-library") == 0) {
        row->diagnosis = "pmix-library-missing";
        shk_row_text(&row->observed, "the launcher offers PMIx%s%s, no library here",
                     server ? " " : "", server ? server : "");
        shk_row_text(&row->why, "%s", reason);
        shk_row_fix(row, "pmix-library", NULL);
    } else {
        pmi_refused(row, server, client, reason);
    }
}

static void eval_pmix(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_job_pmix, "PMIx");
    const char *library = NULL, *problem = NULL, *version = "joined";
    json_t *alone = NULL;
    bool asked = shk_look(ctx->facts, "job.pmix.library", NULL) != SHK_LOOK_MISSING ||
                 shk_look(ctx->facts, "job.pmix.problem", NULL) != SHK_LOOK_MISSING ||
                 shk_look(ctx->facts, "job.alone", NULL) != SHK_LOOK_MISSING;
    if (!asked)
        return; /* one task */
    row.fact = "job.pmix.library";
    if (shk_look_text(ctx->facts, "job.pmix.problem", &problem) == SHK_LOOK_PRESENT) {
        pmi_failed(&row, problem);
    } else if (shk_look_object(ctx->facts, "job.alone", &alone) == SHK_LOOK_PRESENT) {
        pmi_alone(&row, alone);
    } else if (shk_read_text(&row, "job.pmix.library", &library) == SHK_LOOK_PRESENT) {
        (void)shk_look_text(ctx->facts, "job.pmix.version", &version);
        shk_row_verdict(&row, SHK_PASS, SHK_TESTED);
        shk_row_text(&row.observed, "%s", version);
    } else {
        shk_row_unread(findings, &row, ctx->facts, row.fact);
        return;
    }
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_job_pmix = {
    .id = "job.pmix",
    .diagnosis = "launcher-not-joined",
    .scope = SHK_SCOPE_LAUNCH,
    .family = "launcher",
    .title = "The tasks of the launcher find each other",
    .eval = eval_pmix,
    .of_job = true,
    .doc =
        "Facts: job.pmix.library, job.pmix.problem, job.pmix.cause, job.pmix.version, job.pmix, "
        "job.alone, "
        "job.pmix.built, job.slurm.mpi_type, env.{pmi2-socket}.\nPMIx that is offered and fails is "
        "FAIL: "
        "no "
        "library, one of another generation than the server, or a shakedown that was built "
        "without PMIx. Several tasks without PMIx are WARN, since each node is then tested on its "
        "own: srun with --mpi=none, pmi2 or another flavour, torchrun, a launcher of MPICH, or "
        "PMIx whose variables did not reach the program, where no other way of meeting was open "
        "either. One process in an allocation of several "
        "tasks is WARN, and a note when that has one node.",
};
