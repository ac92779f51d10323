/* Layers of the GPU all-reduce, and what a cause is called. */
#include "core/text/strbuf.h"
#include "support.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LAYER(name, status, gbs)                                                                   \
    "'collective." name ".status': '" status "', 'collective." name                                \
    ".ranks': 2, 'collective." name                                                                \
    ".sizes': [{'bytes': 8, 'type': 'float32', 'busbw': 0.001, 'wrong': 0},"                       \
    "{'bytes': 8388608, 'type': 'float32', 'busbw': " gbs ", 'wrong': 0}]"
#define COPY(gbs) "'collective.peer.copy': {'one_way_gbs': " gbs ", 'both_ways_gbs': " gbs "}"
/* The layer ran on GPU 1 of this node; another program is on that one. */
#define HELD(n)                                                                                    \
    "'host.name': 'a', 'collective.peer.devices': [{'pci': '0000:01:00.0', 'host': 'a'}], "        \
    "'nvml.health': [{'pci': '0000:0" n ":00.0', 'processes': [{'pid': 7, 'state': 'running'}]}]"
#define NAME      "layers of the all-reduce"
#define UNALIGNED "symmetric window, unaligned 16-bit data"

static const struct layers_case {
    const char *facts;
    int verdict; /* -1: no row */
    const char *says;
} cases[] = {
    {LAYER("fabric", "ok", "3.2"), -1, NULL},
    {LAYER("peer", "ok", "258"), -1, NULL},
    {LAYER("peer", "ok", "258") "," COPY("389"), SHK_PASS, "peer right"},
    {LAYER("fabric", "ok", "3.2") "," LAYER("peer", "ok", "258"), SHK_PASS, "fabric, peer right"},
    /* The host's memory is faster than PCIe: on one node that proves nothing. */
    {LAYER("fabric", "ok", "90") "," LAYER("nccl", "ok", "6"), SHK_PASS, "fabric, nccl right"},
    {LAYER("fabric", "ok", "90") "," LAYER("nccl", "ok", "6") ",'job.nodes': 2", SHK_WARN,
     "suspect: nccl, 6.00 GB/s at 8 MiB"},
    {LAYER("peer", "ok", "100") "," COPY("389"), SHK_WARN, "suspect: peer"},
    {LAYER("peer", "ok", "258") "," LAYER("lsa", "ok", "257") "," LAYER("nccl", "ok", "50"),
     SHK_WARN, "of lsa"},
    {LAYER("peer", "ok", "100") "," COPY("389") ", 'host.affinity': '3'", SHK_WARN,
     "2 ranks take turns on 1 processor"},
    {LAYER("peer", "ok", "100") "," COPY("389") ", 'host.affinity': '3-4'", SHK_WARN,
     "drops: to 0.26 of"},
    {LAYER("peer", "ok", "100") "," COPY("389") "," HELD("1"), SHK_WARN, "gpu-shared"},
    {LAYER("peer", "ok", "100") "," COPY("389") "," HELD("2"), SHK_WARN,
     "drops: to 0.26 of the layer below it"},
    {LAYER("peer", "wrong", "258") "," LAYER("nccl", "failed", "0"), SHK_FAIL,
     "suspect: peer (wrong)"},
    {LAYER("fabric", "ok", "3") "," LAYER("peer", "ok", "258") "," LAYER("lsa", "crashed", "0"),
     SHK_FAIL, "right below it: fabric, peer"},
    {LAYER("peer", "ok", "258") ", 'collective.lsa.status': 'na'", -1, NULL},
    {LAYER("nccl-window", "ok", "250") "," LAYER("multimem", "ok", "240"), SHK_PASS,
     "nccl-window, multimem right"},
    {LAYER("nccl-window", "ok", "250") "," LAYER("multimem", "ok", "60"), SHK_WARN,
     "suspect: multimem, 60.00 GB/s"},
    {LAYER("peer", "ok", "258") "," LAYER("nccl-window", "ok", "250") "," LAYER("multimem",
                                                                                "failed", "0"),
     SHK_FAIL, "right below it: peer, nccl-window"},
    {LAYER("nccl-window", "crashed", "250") "," LAYER("multimem", "wrong", "240"), SHK_FAIL,
     "suspect: nccl-window (crashed)"},
    /* Each kind stands on the fabric and on its own, not on the others. */
    {LAYER("nccl", "ok", "250") "," LAYER("rccl", "ok", "20"), SHK_PASS, "nccl, rccl right"},
    {LAYER("nccl", "ok", "250") "," LAYER("rccl", "wrong", "20"), SHK_FAIL,
     "right below it: none was run"},
    {LAYER("fabric", "ok", "3") "," LAYER("nccl", "ok", "250") "," LAYER("rccl", "timeout", "0"),
     SHK_FAIL, "right below it: fabric"},
    {LAYER("fabric", "ok", "90") "," LAYER("rccl", "ok", "6") ",'job.nodes': 2", SHK_WARN,
     "suspect: rccl, 6.00 GB/s"},
    {LAYER("fabric", "ok", "90") "," LAYER("neuron", "ok", "6") ",'job.nodes': 2", SHK_WARN,
     "suspect: neuron, 6.00 GB/s"},
    {LAYER("fabric", "ok", "90") "," LAYER("neuron", "failed", "0"), SHK_FAIL, "suspect: neuron"},
    {LAYER("peer", "ok", "258") "," LAYER("nvshmem", "ok", "0"), SHK_PASS, "peer, nvshmem right"},
    {LAYER("peer", "ok", "258") "," LAYER("nvshmem", "crashed", "0"), SHK_FAIL,
     "suspect: nvshmem (crashed)"},
    {LAYER("rccl", "ok", "20"), -1, NULL},
    /* GPU memory over the fabric is slow at nobody's expense, and stands below nothing. */
    {LAYER("fabric", "ok", "90") "," LAYER("fabric-hmem", "ok", "2") ",'job.nodes': 2", SHK_PASS,
     "fabric, fabric-hmem right"},
    {LAYER("fabric-hmem", "ok", "90") "," LAYER("peer", "ok", "2"), SHK_PASS,
     "fabric-hmem, peer right"},
    {LAYER("fabric", "ok", "90") "," LAYER("fabric-hmem", "crashed", "2"), SHK_FAIL,
     "suspect: fabric-hmem (crashed)"},
    {LAYER("fabric", "ok", "90") ", 'collective.fabric-hmem.status': 'na'", -1, NULL},
    {LAYER("peer", "ok", "258") "," LAYER("nccl", "odd", "50"), SHK_UNKNOWN, "unknown status"},
    {LAYER("peer", "ok",
           "258") ", 'collective.nccl.status': {'state': 'failed', 'reason': 'no space'}",
     SHK_UNKNOWN, "nccl: no space"},
    {LAYER("peer", "ok", "258") ", 'collective.nccl.status': 'ok'", SHK_UNKNOWN, "sizes"},
};

Test(layers, first_that_fails_or_falls_off)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct shk_findings *all = support_run(support_config(), "single-node", cases[i].facts);
        const struct shk_finding *row = support_find(all, "collective.layers", NAME);
        if (cases[i].verdict < 0) {
            cr_expect_null(row, "case %zu", i);
        } else {
            cr_assert_not_null(row, "case %zu", i);
            char *text = support_text(row);
            cr_expect_eq((int)row->verdict, cases[i].verdict, "case %zu: %s", i, text);
            cr_expect_not_null(strstr(text, cases[i].says), "case %zu: %s", i, text);
            free(text);
        }
        shk_findings_destroy(all);
    }
}

Test(layers, causes_have_diagnoses)
{
    static const char *const causes[][2] = {
        {"driver", "driver-library-fails"},
        {"driver-mismatch", "driver-runtime-version-mismatch"},
        {"driver-not-ready", "fabric-manager-down"},
        {"gpu-busy", "device-in-use"},
        {"gpu-memory", "gpu-memory-errors"},
        {"gpu-call", "all-reduce-failed"},
        {"driver-old", "cuda-driver-too-old"},
        {"visible-devices", "visible-devices-mismatch"},
        {"same-gpu", "duplicate-gpu"},
        {"no-peer-access", "gpu-cgroup-isolation"},
        {"out-of-memory", "gpu-memory-exhausted"},
        {"illegal-access", "gpu-illegal-access"},
        {"late-peer", "peer-rank-died"},
        {"nccl-versions", "nccl-version-differs-across-ranks"},
        {"no-symmetric-memory", "symm-mem-unsupported"},
        {"no-multicast", "nvls-fabric-manager-state"},
        {"nccl-error", "nccl-call-failed"},
        {"unequal-buffers", "unequal-buffers-across-ranks"},
        {"wrong-result", "gpu-wrong-result"},
        {"hmem-interface", "hmem-interface-not-started"},
        {"hmem-registration", "hmem-registration-refused"},
        {"hmem-wrong", "hmem-wrong-result"},
        {"hmem-failed", "hmem-failed"},
    };
    for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
        char facts[256];
        snprintf(facts, sizeof(facts),
                 "'collective.lsa.status': 'failed', 'collective.lsa.cause': '%s',"
                 "'collective.lsa.reason': 'because'",
                 causes[i][0]);
        struct shk_findings *all = support_run(support_config(), "single-node", facts);
        const struct shk_finding *row =
            support_find(all, "collective.allreduce", "all-reduce (lsa)");
        cr_assert_not_null(row);
        cr_expect_eq(row->verdict, SHK_FAIL);
        cr_assert_not_null(row->diagnosis, "%s", causes[i][0]);
        cr_expect_str_eq(row->diagnosis, causes[i][1]);
        cr_expect_not_null(shk_config_diagnosis(support_config(), row->diagnosis), "%s",
                           row->diagnosis);
        shk_findings_destroy(all);
    }
}

/* Right in ranks of its own, and not in those that others had used before. */
Test(layers, trouble_after_others_is_not_forgotten)
{
    static const struct {
        const char *shared;
        enum shk_verdict verdict;
        const char *says;
    } rows[] = {
        {"", SHK_PASS, "sizes verified"},
        {", 'collective.nccl.shared': {'status': 'crashed', 'reason': 'rank 1 was killed'}",
         SHK_WARN, "but crashed before, after other transports"},
        {", 'collective.nccl.shared': {'status': 'crashed'}", SHK_UNKNOWN, "reason"},
        {", 'collective.nccl.shared': {'reason': 'rank 1 was killed'}", SHK_UNKNOWN, "status"},
        {", 'collective.nccl.shared': {'state': 'failed', 'reason': 'no space'}", SHK_UNKNOWN,
         "no space"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *facts = shk_strf("%s%s", LAYER("nccl", "ok", "258"), rows[i].shared);
        struct shk_findings *all = support_run(support_config(), "single-node", facts);
        const struct shk_finding *row =
            support_find(all, "collective.allreduce", "all-reduce (nccl)");
        cr_assert_not_null(row);
        char *text = support_text(row);
        cr_expect_eq(row->verdict, rows[i].verdict, "row %zu: %s", i, text);
        cr_expect_not_null(strstr(text, rows[i].says), "row %zu: %s", i, text);
        free(text);
        free(facts);
        shk_findings_destroy(all);
    }
}

/* A fault of the library in windows is a note until something shows that windows are used. */
#define WINDOW                                                                                     \
    LAYER("nccl-window", "ok", "203")                                                              \
    ",'collective.nccl-window.version': '2.28.9', 'collective.nccl-window.unaligned':"             \
    "{'wrong': 48, 'cases': 96, 'text': 'element 1 is 0'}"
static const struct {
    const char *more;
    enum shk_verdict verdict;
    const char *says;
} unaligned[] = {
    {"", SHK_NOTE, "nothing here needs windows"},
    {",'collective.asked': 'nccl-window'", SHK_WARN, "--transport nccl-window"},
    {",'collective.asked': 'nccl'", SHK_NOTE, "nothing here"},
    {",'env.NCCL_SYM_KERNEL': 'AllReduce_RSxLD_AGxST'", SHK_WARN, "NCCL_SYM_KERNEL requests"},
    {",'env.VLLM_USE_NCCL_SYMM_MEM': '1'", SHK_WARN, "VLLM_USE_NCCL_SYMM_MEM requests"},
    {",'env.VLLM_USE_NCCL_SYMM_MEM': '0'", SHK_NOTE, "nothing here"},
    {",'env.NVSHMEM_SYMMETRIC_SIZE': '1G'", SHK_NOTE, "nothing here"},
    {",'env.TORCH_SYMM_MEM_DISABLE_MULTICAST': '1'", SHK_NOTE, "nothing here"},
    {",'env.NCCL_WIN_ENABLE': '1'", SHK_NOTE, "nothing here"},
    {",'log.files': ['x'], 'log.sig.nccl-symmetric-kernel': {'count': 1, 'first': {'file': 'x', "
     "'line': 1, 'text': 'y'}}",
     SHK_WARN, "a log shows"},
};

Test(layers, unaligned_data_in_windows_nobody_uses_is_a_note)
{
    for (size_t i = 0; i < sizeof unaligned / sizeof *unaligned; i++) {
        char facts[4096];
        snprintf(facts, sizeof facts, "%s%s", WINDOW, unaligned[i].more);
        struct shk_findings *all = support_run(support_config(), "single-node", facts);
        const struct shk_finding *row = support_find(all, "collective.allreduce", UNALIGNED);
        cr_assert_not_null(row);
        char *text = support_text(row);
        cr_expect_eq(row->verdict, unaligned[i].verdict, "%zu: %s", i, text);
        cr_expect_not_null(strstr(text, "2.28.9"), "%s", text);
        cr_expect_not_null(strstr(text, "4-byte aligned"), "%s", text);
        cr_expect_not_null(strstr(text, unaligned[i].says), "%zu: %s", i, text);
        cr_expect_not_null(shk_config_diagnosis(support_config(), row->diagnosis));
        free(text);
        row = support_find(all, "collective.allreduce", "all-reduce (nccl-window)");
        cr_assert_not_null(row);
        cr_expect_eq(row->verdict, SHK_PASS);
        shk_findings_destroy(all);
    }
}

Test(layers, unaligned_data_that_was_not_read)
{
    static const char *const facts[] = {
        LAYER("nccl-window", "ok", "203"),
        LAYER("nccl-window", "ok", "203") ",'collective.nccl-window.unaligned': 7",
        LAYER("nccl-window", "ok", "203") ",'collective.nccl-window.unaligned': {'cases': 3}"};
    for (size_t i = 0; i < 3; i++) {
        struct shk_findings *all = support_run(support_config(), "single-node", facts[i]);
        const struct shk_finding *row = support_find(all, "collective.allreduce", UNALIGNED);
        cr_assert_not_null(row, "%zu", i);
        cr_expect_eq(row->verdict, SHK_UNKNOWN, "%zu", i);
        shk_findings_destroy(all);
    }
}

#define NO_DEVICES                                                                                 \
    "'pci.count.gpu-nvidia': 0, 'pci.count.gpu-amd': %d, 'pci.count.neuron': 0,"                   \
    "'collective.rccl.status': 'failed', 'collective.rccl.cause': '%s',"                           \
    "'collective.rccl.reason': 'start of the driver libamdhip64.so.5: failed (error 101)'"

/* A library without a device to drive is no fault; with one it is, and so is any other cause. */
Test(layers, driver_without_a_device_is_no_fault)
{
    static const struct {
        int devices;
        const char *cause;
        int verdict;
    } nodes[] = {
        {0, "driver", SHK_NA},          {0, "visible-devices", SHK_NA},
        {8, "driver", SHK_FAIL},        {8, "visible-devices", SHK_FAIL},
        {0, "out-of-memory", SHK_FAIL},
    };
    for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
        char facts[512];
        snprintf(facts, sizeof(facts), NO_DEVICES, nodes[i].devices, nodes[i].cause);
        struct shk_findings *all = support_run(support_config(), "single-node", facts);
        const struct shk_finding *row =
            support_find(all, "collective.allreduce", "all-reduce (rccl)");
        cr_assert_not_null(row);
        char *text = support_text(row);
        cr_expect_eq((int)row->verdict, nodes[i].verdict, "case %zu: %s", i, text);
        cr_expect_not_null(strstr(text, "error 101"), "%s", text);
        free(text);
        shk_findings_destroy(all);
    }
}

/* Told, not judged: what the provider answers, and how host memory does. */
Test(layers, gpu_memory_over_the_fabric_is_told_beside_host_memory)
{
    const char *facts = LAYER("fabric", "ok", "22.1") ",'collective.fabric.provider': 'tcp'," LAYER(
        "fabric-hmem", "ok", "4.5") ",'collective.fabric-hmem.provider': 'shm',"
                                    "'collective.fabric-hmem.hmem': {'iface': 'FI_HMEM_CUDA',"
                                    "'sums': 'on the GPU', 'effective': {'p2p': 'not told',"
                                    "'answer': 'Protocol not available'}}";
    struct shk_findings *all = support_run(support_config(), "single-node", facts);
    const struct shk_finding *row =
        support_find(all, "collective.allreduce", "all-reduce (fabric-hmem)");
    cr_assert_not_null(row);
    cr_expect_eq(row->verdict, SHK_PASS);
    cr_expect_str_eq(row->observed,
                     "2 ranks over shm, 2 sizes verified; best 4.50 GB/s busbw at 8 MiB; "
                     "FI_HMEM_CUDA, sums on the GPU; peer to peer: effective not told (asked to "
                     "require it: Protocol not available); host memory over tcp: best 22.10 GB/s");
    shk_findings_destroy(all);
}
