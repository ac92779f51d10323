#include "collectives/other/neuron.h"
#include "core/run/dynlib.h"
#include "core/run/isolate.h"
#include "core/text/strbuf.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NEURON_BIN  "/opt/aws/neuron/bin"
#define OUTPUT_KEPT 2000

/* nccom-test's own warm-up and compilation of a program per size make small steps dear. */
#define STEP_FACTOR       "4"
#define STEP_FACTOR_BRIEF "64"

/* nccom-test compiles and checks on the host, for all ranks: only a runaway is stopped. */
#define NEURON_MEMORY ((size_t)1 << 40)

struct neuron {
    const struct shk_collective_options *options;
    const struct shk_neuron_tweaks *tweaks;
    char tool[512];
    char min[24], max[24], ranks[12];
    const char *argv[16];
};

struct neuron_out {
    struct shk_facts *facts;
    int rc;
};

static void out_text(struct neuron_out *out, const char *key, const char *text)
{
    int rc = text ? shk_facts_text(out->facts, key, text, "nccom-test") : 0;

    out->rc = out->rc != 0 ? out->rc : rc;
}

static void out_status(struct neuron_out *out, const char *status, const char *reason)
{
    out_text(out, "collective.neuron.status", status);
    out_text(out, "collective.neuron.reason", reason);
}

static bool tool_in(struct neuron *neuron, const char *dir, size_t len)
{
    int n = snprintf(neuron->tool, sizeof neuron->tool, "%.*s/nccom-test", (int)len, dir);

    return len > 0 && dir[0] == '/' && n > 0 && (size_t)n < sizeof neuron->tool &&
           access(neuron->tool, X_OK) == 0;
}

static bool tool_find(struct neuron *neuron)
{
    const char *path = getenv("PATH");

    if (neuron->tweaks->tool) {
        snprintf(neuron->tool, sizeof neuron->tool, "%s", neuron->tweaks->tool);
        return access(neuron->tool, X_OK) == 0;
    }
    while (path && *path != '\0') {
        size_t len = strcspn(path, ":");

        if (tool_in(neuron, path, len))
            return true;
        path += len;
        path += *path == ':';
    }
    return tool_in(neuron, NEURON_BIN, strlen(NEURON_BIN));
}

/* In a child: is the runtime there, and does it load? */
static int runtime_open(void *arg, json_t **result_p, struct shk_error *err)
{
    static const char *const names[] = {"libnrt.so.1", "/opt/aws/neuron/lib/libnrt.so.1", NULL};
    const struct neuron *neuron = arg;
    const struct shk_library desc = {.names = neuron->tweaks->nrt_names ? neuron->tweaks->nrt_names
                                                                        : names};
    struct shk_dynlib lib = {0};
    int rc = shk_dynlib_open(&lib, &desc, NULL, err);

    if (rc == 0)
        *result_p = json_string(lib.path);
    return rc;
}

/* In a child, which becomes nccom-test. It finds neuron-bench beside itself through PATH; root's
 * PATH is cut to where only root installs. */
static int tool_exec(void *arg, json_t **result_p, struct shk_error *err)
{
    const struct neuron *neuron = arg;
    const char *old = geteuid() == 0 ? NULL : getenv("PATH");
    int dir = (int)(strrchr(neuron->tool, '/') - neuron->tool);
    char *path = shk_strf("%.*s:" NEURON_BIN ":%s", dir, neuron->tool,
                          old ? old : "/usr/sbin:/usr/bin:/sbin:/bin");
    char *argv[sizeof neuron->argv / sizeof neuron->argv[0]];

    (void)result_p;
    if (!path || setenv("PATH", path, 1) != 0) {
        free(path);
        return shk_error_sys(err, ENOMEM, "PATH");
    }
    free(path);
    shk_crumb_library("nccom-test");
    shk_crumb_call("allr");
    memcpy(argv, neuron->argv, sizeof argv);
    execv(neuron->tool, argv);
    return shk_error_sys(err, errno, "%s", neuron->tool);
}

static void tool_arguments(struct neuron *neuron)
{
    const struct shk_collective_options *options = neuron->options;
    /* --check comes last: later versions take a mode after it. */
    const char *const argv[] = {neuron->tool,   "allr",
                                "--nworkers",   neuron->ranks,
                                "--minbytes",   neuron->min,
                                "--maxbytes",   neuron->max,
                                "--stepfactor", options->brief ? STEP_FACTOR_BRIEF : STEP_FACTOR,
                                "--datatype",   "fp32",
                                "--check",      NULL};

    snprintf(neuron->ranks, sizeof neuron->ranks, "%u", options->ranks);
    snprintf(neuron->min, sizeof neuron->min, "%zu", options->min_bytes);
    snprintf(neuron->max, sizeof neuron->max, "%zu", options->max_bytes);
    memcpy(neuron->argv, argv, sizeof argv);
}

static void out_command(struct neuron_out *out, const struct neuron *neuron)
{
    struct shk_strbuf text = SHK_STRBUF_INIT;

    for (size_t i = 0; neuron->argv[i] != NULL; i++)
        shk_strbuf_printf(&text, "%s%s", i > 0 ? " " : "", neuron->argv[i]);
    out_text(out, "collective.neuron.command", shk_strbuf_text(&text));
    shk_strbuf_free(&text);
}

static void out_table(struct neuron_out *out, const struct neuron *neuron,
                      const struct shk_isolate_result *result)
{
    const char *status = "failed";
    struct shk_error why = {{0}};
    char *text = strdup(result->output ? result->output : "");
    size_t len = text ? strlen(text) : 0;
    json_t *sizes = NULL;
    int rc = 0;

    if (!text) {
        out->rc = -ENOMEM;
        return;
    }
    sizes = shk_neuron_table(text, result->code, neuron->options->ranks, &status, &why);
    out_status(out, status, why.text[0] != '\0' ? why.text : NULL);
    if (strcmp(status, "ok") != 0)
        out_text(out, "collective.neuron.phase", "allreduce");
    if (strcmp(status, "ok") != 0 && result->output) {
        out_text(out, "collective.neuron.output",
                 result->output + (len > OUTPUT_KEPT ? len - OUTPUT_KEPT : 0));
    }
    rc = sizes ? shk_facts_present(out->facts, "collective.neuron.sizes", sizes, NULL, "nccom-test")
               : -ENOMEM;
    out->rc = out->rc != 0 ? out->rc : rc;
    free(text);
}

static int run_tool(struct neuron *neuron, struct neuron_out *out, struct shk_error *err)
{
    struct shk_isolate_job job = {.name = "nccom-test",
                                  .fn = tool_exec,
                                  .arg = neuron,
                                  .deadline_ms = neuron->options->deadline_ms,
                                  .memory_limit = NEURON_MEMORY};
    struct shk_isolate_result result = {0};
    int rc = 0;

    tool_arguments(neuron);
    out_command(out, neuron);
    rc = shk_isolate_run(&job, &result, 1, 1, err);
    if (rc != 0)
        return rc;
    if (result.outcome == SHK_CHILD_EXITED) {
        out_table(out, neuron, &result);
    } else {
        out_status(out,
                   result.outcome == SHK_CHILD_TIMEOUT    ? "timeout"
                   : result.outcome == SHK_CHILD_STARVED  ? "starved"
                   : result.outcome == SHK_CHILD_SIGNALED ? "crashed"
                                                          : "failed",
                   result.error.text);
        out_text(out, "collective.neuron.phase", "allreduce");
    }
    shk_isolate_result_clear(&result);
    return 0;
}

/* Writes the status itself and returns 1 when there is nothing to run. */
static int run_gate(struct neuron *neuron, struct neuron_out *out, struct shk_error *err)
{
    struct shk_isolate_job job = {
        .name = "libnrt", .fn = runtime_open, .arg = neuron, .deadline_ms = 10000};
    struct shk_isolate_result result = {0};
    struct shk_error why = {{0}};
    int rc = 0;

    if (!tool_find(neuron)) {
        out_status(out, "na", "nccom-test is not in PATH or " NEURON_BIN);
        return 1;
    }
    if (neuron->options->ranks < 2) {
        out_status(out, "na", "an all-reduce needs at least two ranks: use --ranks 2 or more");
        return 1;
    }
    if (shk_dynlib_permitted(neuron->tool, &why) != 0) {
        out_status(out, "na", why.text);
        return 1;
    }
    rc = shk_isolate_run(&job, &result, 1, 1, err);
    if (rc == 0 && result.outcome == SHK_CHILD_OK) {
        out_text(out, "collective.neuron.library", json_string_value(result.result));
    } else if (rc == 0 && result.outcome == SHK_CHILD_FAILED) {
        out_status(out, "na", result.error.text);
        rc = 1;
    } else if (rc == 0) {
        out_status(out,
                   result.outcome == SHK_CHILD_TIMEOUT   ? "timeout"
                   : result.outcome == SHK_CHILD_STARVED ? "starved"
                                                         : "failed",
                   result.error.text);
        out_text(out, "collective.neuron.phase", "open");
        rc = 1;
    }
    shk_isolate_result_clear(&result);
    return rc;
}

int shk_neuron_run(const struct shk_collective_options *options,
                   const struct shk_neuron_tweaks *tweaks, struct shk_facts *facts,
                   struct shk_error *err)
{
    static const struct shk_neuron_tweaks none = {0};
    struct neuron neuron = {.options = options, .tweaks = tweaks ? tweaks : &none};
    struct neuron_out out = {.facts = facts};
    int rc = run_gate(&neuron, &out, err);

    if (rc == 0) {
        out.rc = shk_facts_int(facts, "collective.neuron.ranks", (long long)options->ranks, NULL,
                               "nccom-test");
        rc = run_tool(&neuron, &out, err);
    }
    if (rc >= 0 && out.rc != 0)
        return shk_error_sys(err, -out.rc, "facts of nccom-test");
    return rc < 0 ? rc : 0;
}

static int run_neuron(const struct shk_collective_options *options, struct shk_facts *facts,
                      struct shk_error *err)
{
    return shk_neuron_run(options, NULL, facts, err);
}

const struct shk_transport shk_transport_neuron = {
    .name = "neuron",
    .doc = "all-reduce on AWS Neuron devices by nccom-test, run and judged",
    .run = run_neuron,
};
