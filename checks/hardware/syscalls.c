/* System calls that libraries make and this process is refused. */
#include "checks/base/coded.h"
#include "checks/base/read.h"
#include "checks/base/remedy.h"

#include <string.h>

static const char syscalls_key[] = "kernel.syscalls";

/* What a library does without each, by its own source. userfaultfd is judged where it is asked for
 * (FI_MR_CACHE_MONITOR's row). */
static const struct {
    const char *name, *why;
    bool nvidia; /* matters only with such GPUs */
} calls[] = {
    {"get_mempolicy", "NCCL allocates host memory through /dev/shm instead of the driver", true},
    {"mbind", "libraries cannot place memory next to a device", false},
    {"process_vm_readv", "ranks of a node copy every message twice, through shared memory", false},
};

static void eval(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_syscalls, "system calls");
    struct shk_strbuf seen = SHK_STRBUF_INIT, why = SHK_STRBUF_INIT;
    json_t *all = NULL;
    const char *first = NULL;
    unsigned good = 0;
    bool kills = false;
    row.fact = syscalls_key;
    row.source = "NVIDIA/nccl:src/misc/cudawrap.cc; process_vm_readv(2); seccomp(2); Docker "
                 "documentation: Seccomp security profiles";
    (void)shk_read_object(&row, syscalls_key, &all);
    for (size_t i = 0; all && i < sizeof calls / sizeof *calls; i++) {
        const char *answer = NULL;
        if (!shk_read_told_text(&row, syscalls_key, all, calls[i].name, &answer))
            continue;
        bool ok = strcmp(answer, "ok") == 0;
        if (ok || (calls[i].nvidia && shk_read_device_count(&row, "gpu-nvidia") == 0)) {
            good += ok;
            continue;
        }
        kills |= strcmp(answer, "kills") == 0;
        first = first ? first : calls[i].name;
        shk_strbuf_printf(&seen, "%s%s: %s", seen.len ? ", " : "", calls[i].name, answer);
        shk_strbuf_printf(&why, "%s%s", why.len ? "; " : "", calls[i].why);
    }
    if (first) {
        shk_row_verdict(&row, kills ? SHK_FAIL : SHK_NOTE, SHK_TESTED);
        row.diagnosis = kills ? "seccomp-kills" : NULL;
        shk_row_text(&row.observed, "%s", shk_strbuf_text(&seen));
        shk_row_text(&row.expected, "allowed");
        shk_row_text(&row.why, "%s",
                     kills ? "the filter ends the program that makes the call"
                           : shk_strbuf_text(&why));
        shk_row_fix(&row, "allow-syscall", "name", first, NULL);
    } else if (all) {
        shk_row_verdict(&row, SHK_PASS, SHK_TESTED);
        shk_row_text(&row.observed, "%u tried, none refused", good);
    }
    shk_row_end(findings, &row);
    shk_strbuf_free(&seen);
    shk_strbuf_free(&why);
}

const struct shk_check shk_check_syscalls = {
    .id = "kernel.syscalls",
    .family = "kernel",
    .title = "The kernel permits the system calls that libraries make",
    .eval = eval,
    .doc = "Facts: kernel.syscalls, pci.count.gpu-nvidia.\n"
           "get_mempolicy (with NVIDIA GPUs), mbind or process_vm_readv that is refused, by the "
           "seccomp profile of a container as a rule, is a note: libraries go another way. A "
           "filter that ends the process is FAIL.",
};
