/* Logs from a stranger: our reader of NCCL's log, and the scan for signatures with captures, which
 * finds the same whether it leaves out lines that differ in numbers only or not, by each engine. */
#include "collectives/gpu/nccl/nccl_log.h"
#include "fuzz.h"
#include "probes/log/logscan.h"

#include <stdlib.h>

static const struct shk_log_pattern log_patterns[] = {
    {.id = "interface",
     .pattern = "Bootstrap *: *Using",
     .capture = "Using (?<iface>[^:]+):(?<addr>[0-9.]+)",
     .origins = true},
    {.id = "no-interface", .pattern = "no socket interface found", .origins = true},
    {.id = "table",
     .pattern = "WARN ",
     .texts = "Failed to open %s for %d bytes\n%s : %s of %s closed by %s\nPoll failed: %s\n",
     .origins = true},
    {.id = "loose", .texts = "The daemon on node %s went away after %d s\n"},
    {.id = "some", .pattern = "\\b(code|line):? [1-4]\\b|[^05] of"},
    {.id = "word", .pattern = "\\bbad [a-z]|ead$|:[a-f]"},
    {.id = "system", .pattern = "unhandled system error|Call to [a-z_]+ failed", .origins = true},
};

enum { PATTERNS = sizeof log_patterns / sizeof *log_patterns };

static struct shk_facts *log_scan(const struct shk_log_database *ready, const char *text,
                                  size_t size)
{
    struct shk_error err = {""};
    struct shk_logscan *scan = NULL;
    struct shk_facts *facts = shk_facts_create();
    if (!facts || shk_logscan_create(&scan, log_patterns, PATTERNS, ready, &err) != 0 ||
        shk_logscan_text(scan, "fuzz", text, size / 2, &err) != 0 ||
        shk_logscan_text(scan, "fuzz", text + size / 2, size - size / 2, &err) != 0 ||
        shk_logscan_facts(scan, facts) != 0)
        abort();
    shk_logscan_destroy(scan);
    return facts;
}

static void log_same(const struct shk_log_engine *engine, struct shk_log_database *ready,
                     const char *text, size_t size)
{
    struct shk_error err = {""};
    if (!ready->data &&
        (shk_logscan_compile(log_patterns, PATTERNS, engine, ready, &err) || !ready->wide))
        abort();
    struct shk_log_database plain = *ready;
    plain.wide = NULL;
    struct shk_facts *facts = log_scan(ready, text, size), *same = log_scan(&plain, text, size);
    json_t *found = shk_facts_to_json(facts), *all = shk_facts_to_json(same);
    if (!found || !json_equal(found, all))
        abort();
    json_decref(found);
    json_decref(all);
    shk_facts_destroy(facts);
    shk_facts_destroy(same);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct shk_log_database vectorscan, pcre2;
    struct nccl_log log = {0};
    nccl_log_add(&log, (const char *)data, size, NCCL_LOG_ALL);
    nccl_log_find(&log, size);
    if (shk_log_engine_vectorscan())
        log_same(shk_log_engine_vectorscan(), &vectorscan, (const char *)data, size);
    log_same(shk_log_engine_pcre2(), &pcre2, (const char *)data, size);
    return 0;
}
