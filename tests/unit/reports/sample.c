#include "sample.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static struct shk_facts *sample_facts(struct sample *s, const char *name)
{
    struct shk_facts *f = shk_facts_create();
    cr_assert_not_null(f);
    shk_facts_text(f, "host.name", name, "uname");
    shk_facts_text(f, "host.os", "SUSE Linux Enterprise Server 15 SP5", "/etc/os-release");
    shk_facts_text(f, "host.kernel", "5.14.21-150500.55.49_13.0.56-cray_shasta_c", "uname");
    shk_facts_text(f, "host.arch", "x86_64", "uname");
    shk_facts_text(f, "fabric.version", "1.15.2.0", "fi_version");
    shk_facts_text(f, "fabric.path", "/opt/cray/libfabric/1.15.2.0/lib64/libfabric.so.1",
                   "link map");
    shk_facts_text(f, "job.launcher", "slurm", "environment");
    shk_facts_text(f, "env.NCCL_SOCKET_IFNAME", "hsn0,hsn1,hsn2,hns3", "environment");
    shk_facts_text(f, "env.FI_PROVIDER", "cxi", "environment");
    s->facts = realloc(s->facts, (s->report.nodes + 1) * sizeof(struct shk_facts *));
    cr_assert_not_null(s->facts);
    s->facts[s->report.nodes] = f;
    s->report.nodes++;
    s->report.facts = (const struct shk_facts *const *)s->facts;
    return f;
}

static void sample_base(struct sample *s)
{
    memset(s, 0, sizeof *s);
    s->findings = shk_findings_create();
    cr_assert_not_null(s->findings);
    s->report = (struct shk_report){
        .version = "0.1.0",
        .command = "shakedown --profile auto",
        .profile = "lumi-g",
        .profile_why = "env.SLURM_CLUSTER_NAME is lumi, 4 cxi devices",
        .findings = s->findings,
        .diagnoses = &s->diagnoses,
        .elapsed_s = 1.24,
    };
    s->options = (struct shk_report_options){.width = 100, .unicode = true};
}

static void sample_done(struct sample *s)
{
    cr_assert_eq(shk_findings_status(s->findings), 0);
    shk_findings_sort(s->findings);
    s->report.coverage = shk_findings_coverage(s->findings);
}

static void sample_collective(struct shk_facts *f)
{
    shk_facts_text(f, "collective.fabric.status", "ok", "fabric");
    shk_facts_int(f, "collective.fabric.ranks", 2, NULL, "fabric");
    shk_facts_text(f, "collective.fabric.provider", "tcp;ofi_rxm", "fabric");
    shk_facts_text(f, "collective.fabric.domain", "hsn0", "fabric");
    shk_facts_text(f, "collective.fabric.library", "/opt/cray/libfabric/lib64/libfabric.so.1", "");
    shk_facts_text(f, "collective.fabric.version", "1.15.2.0", "");
    shk_facts_present(f, "collective.fabric.evidence",
                      json_pack("[s]", "fi_write into the peer's heap, 2 x 16 MiB registered"),
                      NULL, "");
    json_t *sizes = json_array();
    double us = 11.2;
    for (long long bytes = 4; bytes <= 16 << 20; bytes *= 16, us *= 2.5)
        json_array_append_new(sizes, json_pack("{s:I,s:I,s:s,s:s,s:s,s:i,s:f,s:f,s:f,s:i}", "bytes",
                                               bytes, "count", bytes / 4, "type", "float", "redop",
                                               "sum", "algorithm", "ring", "iterations", 20,
                                               "time_us", us, "algbw", (double)bytes / us / 1e3,
                                               "busbw", (double)bytes / us / 1e3, "wrong", 0));
    shk_facts_present(f, "collective.fabric.sizes", sizes, NULL, "fabric");
}

static const struct shk_finding_in sample_rows[] = {
    {.id = "env.value",
     .family = "nccl",
     .setting = "NCCL_SOCKET_IFNAME",
     .verdict = SHK_FAIL,
     .evidence = SHK_TESTED,
     .observed = "hsn0,hsn1,hsn2,hns3",
     .expected = "interfaces that exist and are up",
     .why = "hns3 is no interface of this node; did you mean hsn3?",
     .fix = "export NCCL_SOCKET_IFNAME=hsn0,hsn1,hsn2,hsn3",
     .diagnosis = "socket-ifname-missing",
     .source = "NVIDIA/nccl:src/misc/socket.cc",
     .fact = "env.NCCL_SOCKET_IFNAME",
     .required = 1},
    {.id = "env.value",
     .family = "nccl",
     .setting = "NCCL_DEBUG",
     .verdict = SHK_WARN,
     .evidence = SHK_EFFECT,
     .observed = "TRACE",
     .expected = "WARN in production",
     .why = "TRACE writes a line for each operation and slows small messages.",
     .fix = "export NCCL_DEBUG=WARN"},
    {.id = "env.value",
     .family = "nccl",
     .setting = "NCCL_NET_GDR_LEVEL",
     .verdict = SHK_PASS,
     .evidence = SHK_DECLARED,
     .observed = "PHB"},
    {.id = "env.value",
     .family = "nccl",
     .setting = "NCCL_CROSS_NIC",
     .verdict = SHK_PASS,
     .evidence = SHK_DECLARED,
     .observed = "1"},
    {.id = "fabric.provider",
     .family = "libfabric",
     .setting = "provider cxi",
     .verdict = SHK_PASS,
     .evidence = SHK_TESTED,
     .observed = "4 domains: cxi0, cxi1, cxi2, cxi3"},
    {.id = "env.value",
     .family = "libfabric",
     .setting = "FI_MR_CACHE_MONITOR",
     .verdict = SHK_PASS,
     .evidence = SHK_DECLARED,
     .observed = "userfaultfd"},
    {.id = "env.value",
     .family = "libfabric",
     .setting = "FI_CXI_RX_MATCH_MODE",
     .verdict = SHK_UNKNOWN,
     .evidence = SHK_NOT_COVERED,
     .why = "needs a job with more than one node"},
    {.id = "env.value",
     .family = "libfabric",
     .setting = "FI_CXI_RDZV_THRESHOLD",
     .verdict = SHK_UNKNOWN,
     .evidence = SHK_NOT_COVERED,
     .why = "needs a job with more than one node"},
    {.id = "limits.memlock",
     .family = "limits",
     .setting = "memlock",
     .verdict = SHK_PASS,
     .evidence = SHK_TESTED,
     .observed = "unlimited"},
    {.id = "kernel.iommu",
     .family = "kernel",
     .setting = "iommu",
     .verdict = SHK_UNKNOWN,
     .evidence = SHK_NOT_COVERED,
     .why = "/sys/kernel/iommu_groups: permission denied",
     .required = 1},
    {.id = "efa.module",
     .family = "kernel",
     .setting = "efa module",
     .verdict = SHK_NA,
     .evidence = SHK_NOT_COVERED,
     .why = "no EFA device"},
};

static char *sample_dup(const char *text)
{
    char *copy = strdup(text);
    cr_assert_not_null(copy);
    return copy;
}

static void sample_diagnosis(struct sample *s, const char *key, const char *title, const char *fix,
                             const char *evidence)
{
    s->diagnoses.rows = calloc(1, sizeof *s->diagnoses.rows);
    cr_assert_not_null(s->diagnoses.rows);
    s->diagnoses.count = 1;
    s->diagnoses.rows[0] = (struct shk_diagnosis_row){
        .key = sample_dup(key),
        .title = sample_dup(title),
        .explanation = sample_dup(title),
        .fix = sample_dup(fix),
        .who = sample_dup("user"),
        .confidence = sample_dup("confirmed"),
        .evidence = calloc(2, sizeof(char *)),
        .score = 7.5,
        .verdict = SHK_FAIL,
    };
    s->diagnoses.rows[0].evidence[0] = sample_dup(evidence);
}

void sample_failing(struct sample *s)
{
    sample_base(s);
    struct shk_facts *f = sample_facts(s, "nid001234");
    sample_collective(f);
    shk_facts_text(f, "probe.host.status", "ok", "run");
    shk_facts_present(f, "probe.host.ms", json_real(2.25), "ms", "run");
    shk_facts_text(f, "probe.libfabric.status", "crashed", "run");
    shk_facts_text(f, "probe.libfabric.reason", "SIGSEGV in libfabric.so.1: fi_getinfo", "run");
    for (size_t i = 0; i < sizeof sample_rows / sizeof *sample_rows; i++)
        shk_findings_add(s->findings, &sample_rows[i]);
    sample_diagnosis(s, "socket-ifname-missing",
                     "The interface named in NCCL_SOCKET_IFNAME does not exist",
                     "Set it to interfaces that exist and are up on every node, or unset it.",
                     "NCCL_SOCKET_IFNAME: hns3 is no interface of this node; did you mean hsn3?");
    sample_done(s);
}

void sample_healthy(struct sample *s)
{
    sample_base(s);
    sample_facts(s, "nid001234");
    for (size_t i = 0; i < sizeof sample_rows / sizeof *sample_rows; i++)
        if (sample_rows[i].verdict == SHK_PASS)
            shk_findings_add(s->findings, &sample_rows[i]);
    sample_done(s);
}

static const struct shk_finding_in sample_notes[] = {
    {.id = "env.value",
     .family = "nccl",
     .setting = "NCCL_CHECKS_DISABLE",
     .verdict = SHK_NOTE,
     .evidence = SHK_DECLARED,
     .observed = "1",
     .expected = "not set",
     .why = "NCCL retired it; nothing reads it.",
     .fix = "unset NCCL_CHECKS_DISABLE"},
    {.id = "nccl.version",
     .family = "limits",
     .setting = "symmetric window, unaligned 16-bit data",
     .verdict = SHK_NOTE,
     .evidence = SHK_EFFECT,
     .observed = "NCCL 2.28.9",
     .why = "Only sums at odd elements of a window are wrong."},
};

void sample_noted(struct sample *s)
{
    sample_healthy(s);
    for (size_t i = 0; i < sizeof sample_notes / sizeof *sample_notes; i++)
        shk_findings_add(s->findings, &sample_notes[i]);
    sample_done(s);
}

void sample_cluster(struct sample *s)
{
    static const char *const names[] = {"nid001234", "nid001235", "nid001236"};
    sample_base(s);
    for (size_t i = 0; i < 3; i++)
        sample_facts(s, names[i]);
    sample_collective(s->facts[0]);
    sample_collective(s->facts[1]);
    shk_facts_text(s->facts[1], "collective.fabric.status", "failed", "fabric");
    shk_facts_text(s->facts[1], "collective.fabric.reason", "rank 1 died of SIGKILL in warmup", "");
    shk_facts_text(s->facts[2], "fabric.version", "1.20.1", "fi_version");
    shk_findings_add(s->findings, &sample_rows[0]);
    cr_assert_eq(shk_findings_set_nodes(s->findings, 0, &names[1], 2), 0);
    sample_done(s);
}

/* Adds a row for nodes first … first + count - 1. */
static void sample_row_on(struct sample *s, const struct shk_finding_in *row, size_t first,
                          size_t count)
{
    const char **nodes = calloc(count, sizeof *nodes);
    cr_assert_not_null(nodes);
    for (size_t i = 0; i < count; i++)
        nodes[i] = shk_facts_get_text(s->facts[first + i], "host.name");
    shk_findings_add(s->findings, row);
    cr_assert_eq(
        shk_findings_set_nodes(s->findings, shk_findings_count(s->findings) - 1, nodes, count), 0);
    free(nodes);
}

void sample_thousand(struct sample *s)
{
    static const struct shk_finding_in link[] = {
        {.id = "cxi.link",
         .family = "cxi",
         .setting = "cxi2 link",
         .verdict = SHK_WARN,
         .evidence = SHK_TESTED,
         .observed = "100 Gb/s",
         .expected = "200 Gb/s",
         .why = "The link trained at half its speed.",
         .fix = "reseat the cable of cxi2"},
        {.id = "cxi.link",
         .family = "cxi",
         .setting = "cxi2 link",
         .verdict = SHK_PASS,
         .evidence = SHK_TESTED,
         .observed = "200 Gb/s"},
        {.id = "kernel.iommu",
         .family = "kernel",
         .setting = "iommu",
         .verdict = SHK_UNKNOWN,
         .evidence = SHK_NOT_COVERED,
         .why = "/sys: permission denied",
         .required = 1},
        {.id = "kernel.iommu",
         .family = "kernel",
         .setting = "iommu",
         .verdict = SHK_PASS,
         .evidence = SHK_EFFECT,
         .observed = "identity"},
    };
    struct shk_finding_in good = sample_rows[0];
    sample_base(s);
    for (int i = 0; i < 1000; i++) {
        char name[32];
        snprintf(name, sizeof name, "nid%06d", 1000 + i);
        sample_facts(s, name);
    }
    sample_row_on(s, &sample_rows[0], 17, 2);
    good.verdict = SHK_PASS;
    good.observed = "hsn0,hsn1,hsn2,hsn3";
    good.why = good.fix = good.diagnosis = NULL;
    sample_row_on(s, &good, 19, 981);
    sample_row_on(s, &link[0], 18, 30);
    sample_row_on(s, &link[1], 48, 952);
    sample_row_on(s, &link[2], 999, 1);
    sample_row_on(s, &link[3], 0, 999);
    for (size_t i = 2; i < 6; i++)
        shk_findings_add(s->findings, &sample_rows[i]);
    sample_collective(s->facts[0]);
    sample_diagnosis(s, "socket-ifname-missing",
                     "The interface named in NCCL_SOCKET_IFNAME does not exist",
                     "Set it to interfaces that exist and are up on every node, or unset it.",
                     "NCCL_SOCKET_IFNAME on nid[001017-001018]: hns3 is no interface");
    sample_done(s);
}

void sample_hostile(struct sample *s, const char *text)
{
    sample_base(s);
    struct shk_facts *f = sample_facts(s, "x");
    static const char *const keys[] = {"host.name",
                                       "host.os",
                                       "fabric.version",
                                       "fabric.path",
                                       "job.launcher",
                                       "env.FI_PROVIDER",
                                       "collective.fabric.status",
                                       "collective.fabric.reason",
                                       "collective.fabric.provider",
                                       "collective.fabric.domain",
                                       "collective.fabric.library",
                                       "collective.fabric.version",
                                       "probe.host.status",
                                       "probe.host.reason"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        shk_facts_present(f, keys[i], shk_json_text(text, strlen(text)), NULL, "test");
    json_t *row = json_object();
    static const char *const members[] = {"bytes", "count", "type", "redop", "algorithm", "wrong"};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        json_object_set_new(row, members[i], shk_json_text(text, strlen(text)));
    shk_facts_present(f, "collective.fabric.sizes", json_pack("[o]", row), NULL, "test");
    shk_facts_present(f, "collective.fabric.evidence",
                      json_pack("[o]", shk_json_text(text, strlen(text))), NULL, "test");
    for (int v = 0; v < SHK_VERDICT_COUNT; v++)
        shk_findings_add(s->findings, &(struct shk_finding_in){.id = text,
                                                               .family = text,
                                                               .setting = text,
                                                               .verdict = (enum shk_verdict)v,
                                                               .evidence = SHK_DECLARED,
                                                               .observed = text,
                                                               .expected = text,
                                                               .why = text,
                                                               .fix = text,
                                                               .diagnosis = text,
                                                               .source = text,
                                                               .fact = text});
    shk_findings_add(s->findings, &(struct shk_finding_in){.id = text,
                                                           .family = text,
                                                           .setting = text,
                                                           .why = text,
                                                           .verdict = SHK_UNKNOWN,
                                                           .evidence = SHK_NOT_COVERED});
    sample_diagnosis(s, text, text, text, text);
    s->report.command = s->report.profile = s->report.profile_why = s->report.version = text;
    sample_done(s);
}

void sample_empty(struct sample *s)
{
    memset(s, 0, sizeof *s);
    s->report.elapsed_s = -1;
}

void sample_free(struct sample *s)
{
    for (size_t i = 0; i < s->report.nodes; i++)
        shk_facts_destroy(s->facts[i]);
    free(s->facts);
    shk_findings_destroy(s->findings);
    shk_diagnoses_free(&s->diagnoses);
}

char *sample_render(const struct sample *s, const char *format)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    cr_assert_not_null(out);
    const struct shk_format *f = shk_format_find(format);
    cr_assert_not_null(f, "no format %s", format);
    cr_assert_eq(f->render(&s->report, &s->options, out), 0, "%s does not render", format);
    cr_assert_eq(fclose(out), 0);
    cr_assert_eq(strlen(text), len, "%s: NUL in the output", format);
    return text;
}
