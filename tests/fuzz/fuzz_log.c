/* Logs from a stranger: our reader of NCCL's log, and the scan for signatures with captures. */
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
    {.id = "system", .pattern = "unhandled system error|Call to [a-z_]+ failed", .origins = true},
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nccl_log log = {0};
    struct shk_error err = {""};
    struct shk_logscan *scan = NULL;
    struct shk_facts *facts = shk_facts_create();
    size_t count = sizeof log_patterns / sizeof *log_patterns;

    nccl_log_parse(&log, (const char *)data, size);
    nccl_log_find(&log, size);
    if (!facts || shk_logscan_create(&scan, log_patterns, count, NULL, &err) != 0 ||
        shk_logscan_text(scan, "fuzz", (const char *)data, size / 2, &err) != 0 ||
        shk_logscan_text(scan, "fuzz", (const char *)data + size / 2, size - size / 2, &err) != 0 ||
        shk_logscan_facts(scan, facts) != 0)
        abort();
    shk_logscan_destroy(scan);
    shk_facts_destroy(facts);
    return 0;
}
