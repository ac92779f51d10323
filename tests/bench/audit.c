/* CPU time of the whole audit of the environment: catalogue, environment and its files, names asked
 * from the libraries, all checks, diagnosis; each round in a new process, as users start it.
 *
 *   audit CAPTURE [ROUNDS [LIMIT]]
 *       CAPTURE: facts of the machine that are not the audit's own. LIMIT: fails above so many ms.
 *
 * The environment is full: every variable of the catalogue that the loaded profile or a guide could
 * set, with a value that its grammar allows. Prints the median of each part and of the whole.
 * Asking libfabric starts it and all its providers, which costs the same in fi_info and is done
 * once for everything that wants to know about the fabric: shown, and not counted. */
#include "checks/base/check.h"
#include "probes/base/probe.h"
#include "tests/names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum part { CATALOGUE, ENVIRONMENT, LIBRARIES, LIBFABRIC, CHECKS, DIAGNOSIS, PARTS };

static const char *const titles[PARTS] = {
    [CATALOGUE] = "catalogue",
    [ENVIRONMENT] = "environment, files, paths",
    [LIBRARIES] = "names in the libraries",
    [LIBFABRIC] = "start of libfabric itself",
    [CHECKS] = "all checks",
    [DIAGNOSIS] = "diagnosis",
};

struct result {
    double ms[PARTS];
    size_t variables, findings;
    bool done;
};

static double cpu_ms(void)
{
    double sum = 0;
    static const int who[] = {RUSAGE_SELF, RUSAGE_CHILDREN};
    for (int i = 0; i < 2; i++) {
        struct rusage u;
        getrusage(who[i], &u);
        sum += (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e3 +
               (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e3;
    }
    return sum;
}

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "audit: %s: %s\n", what, why);
    exit(1);
}

static void run_probe(const char *name, const struct shk_host *host, struct shk_facts *facts)
{
    size_t count;
    struct shk_error err = {""};
    const struct shk_probe *const *probes = shk_probes(&count);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(probes[i]->name, name) != 0)
            continue;
        struct shk_probe_context ctx = {.host = host,
                                        .names = catalogue_names(),
                                        .known = facts,
                                        .facts = facts,
                                        .quick = true,
                                        .executes = true};
        if (probes[i]->run(&ctx, &err) < 0)
            fail(name, err.text);
        return;
    }
    fail(name, "no such probe");
}

/* Facts of the capture, without those that the audit gathers itself. */
static json_t *machine(const char *capture)
{
    static const char *const own[] = {"env.", "path.", "nccl.", "rccl.", "fabric.", "probe."};
    struct shk_host *host = NULL;
    struct shk_error err = {""};
    struct shk_facts *facts = shk_facts_create();
    const struct shk_probe_options options = {.quick = true, .names = catalogue_names()};
    if (shk_host_open(&host, capture, &err) < 0 || shk_probes_run(host, &options, facts, &err) < 0)
        fail(capture, err.text);
    json_t *doc = shk_facts_to_json(facts), *all = json_object_get(doc, "facts"), *fact;
    const char *key;
    void *next;
    json_object_foreach_safe(all, next, key, fact)
    {
        for (size_t i = 0; i < sizeof own / sizeof *own; i++)
            if (strncmp(key, own[i], strlen(own[i])) == 0) {
                json_object_del(all, key);
                break;
            }
    }
    shk_facts_destroy(facts);
    shk_host_close(host);
    return doc;
}

static const char *value_of(const struct shk_grammar *g)
{
    if (g->values)
        return g->values[0];
    switch (g->type) {
    case SHK_VALUE_INTERFACES: return "hsn0,hsn1,hsn2,hsn3";
    case SHK_VALUE_HCAS: return "mlx5_0,mlx5_1";
    case SHK_VALUE_PATH: return "/tmp";
    case SHK_VALUE_PATHS: return "/usr/lib:/usr/lib64:/opt/lib";
    case SHK_VALUE_HOST_PORT: return "10.0.0.1:29500";
    default: return "1";
    }
}

/* Every third variable of the catalogue: more than any job sets. */
static void fill_environment(void)
{
    size_t count;
    struct shk_config *config = NULL;
    struct shk_error err = {""};
    if (shk_config_load(&config, NULL, NULL, &err) < 0)
        fail("catalogue", err.text);
    const struct shk_setting *settings = shk_config_settings(config, &count);
    for (size_t i = 0; i < count; i += 3)
        if (settings[i].variable && strncmp(settings[i].name, "LD_", 3) != 0 &&
            strncmp(settings[i].name, "FI_", 3) != 0)
            setenv(settings[i].name, value_of(&settings[i].grammar), 0);
    shk_config_free(config);
}

static void audit(const json_t *doc, struct result *result)
{
    struct shk_config *config = NULL;
    struct shk_facts *facts = NULL;
    struct shk_host *host = NULL;
    struct shk_error err = {""};
    struct shk_diagnoses diagnoses = {0};
    if (shk_facts_from_json(&facts, doc, &err) < 0 || shk_host_open(&host, NULL, &err) < 0)
        fail("facts", err.text);
    double at[PARTS + 1] = {cpu_ms()};
    if (shk_config_load(&config, NULL, NULL, &err) < 0)
        fail("catalogue", err.text);
    at[CATALOGUE + 1] = cpu_ms();
    run_probe("env", host, facts);
    run_probe("conffile", host, facts);
    run_probe("paths", host, facts);
    at[ENVIRONMENT + 1] = cpu_ms();
    run_probe("nccl", host, facts);
    run_probe("runtimes", host, facts);
    at[LIBRARIES + 1] = cpu_ms();
    run_probe("libfabric", host, facts);
    at[LIBFABRIC + 1] = cpu_ms();
    shk_facts_freeze(facts);
    char *why = NULL;
    struct shk_check_context ctx = {
        .facts = facts, .config = config, .profile = shk_profile_detect(config, facts, &why, NULL)};
    struct shk_findings *findings = shk_findings_create();
    if (shk_checks_run(&ctx, findings, &err) < 0)
        fail("checks", err.text);
    at[CHECKS + 1] = cpu_ms();
    if (shk_diagnose(config, findings, NULL, 0, &diagnoses, &err) < 0)
        fail("diagnosis", err.text);
    at[DIAGNOSIS + 1] = cpu_ms();
    for (int i = 0; i < PARTS; i++)
        result->ms[i] = at[i + 1] - at[i];
    struct shk_fact names;
    if (shk_facts_get(facts, "env.names_of", &names))
        result->variables = json_object_size(names.value);
    result->findings = shk_findings_count(findings);
    result->done = true;
    _exit(0);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const struct result *results, int rounds, int part)
{
    double ms[256];
    for (int i = 0; i < rounds; i++) {
        ms[i] = part < PARTS ? results[i].ms[part] : 0;
        for (int k = 0; part == PARTS && k < PARTS; k++)
            ms[i] += k == LIBFABRIC ? 0 : results[i].ms[k];
    }
    qsort(ms, (size_t)rounds, sizeof *ms, by_value);
    return ms[rounds / 2];
}

int main(int argc, char **argv)
{
    int rounds = argc > 2 ? atoi(argv[2]) : 15;
    double limit = argc > 3 ? atof(argv[3]) : 1e9;
    if (argc < 2 || rounds < 1 || rounds > 256) {
        fprintf(stderr, "usage: audit CAPTURE [ROUNDS [LIMIT]]\n");
        return 2;
    }
    struct result *results = mmap(NULL, sizeof *results * (size_t)rounds, PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (results == MAP_FAILED)
        fail("memory", strerror(errno));
    json_t *doc = machine(argv[1]);
    fill_environment();
    for (int i = 0; i < rounds; i++) {
        pid_t pid = fork();
        if (pid == 0)
            audit(doc, &results[i]);
        if (pid < 0 || waitpid(pid, NULL, 0) != pid || !results[i].done)
            fail("round", "the process did not finish");
    }
    printf("audit of %zu variables, %zu rows; CPU (user and system), median of %d processes\n",
           results[0].variables, results[0].findings, rounds);
    double whole = median(results, rounds, PARTS);
    for (int i = 0; i < PARTS; i++)
        if (i != LIBFABRIC)
            printf("  %-28s %7.2f ms\n", titles[i], median(results, rounds, i));
    printf("  %-28s %7.2f ms\n", "whole", whole);
    printf("  %-28s %7.2f ms\n", titles[LIBFABRIC], median(results, rounds, LIBFABRIC));
    json_decref(doc);
    munmap(results, sizeof *results * (size_t)rounds);
    if (whole > limit)
        fprintf(stderr, "audit: %.2f ms are more than %.0f ms\n", whole, limit);
    return whole > limit;
}
