/* A known defect of a release: the release and the sign together are a cause. */
#include "checks/base/check.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static const char catalogue[] =
    "- {name: t-own, library: nccl, title: hangs, meaning: It hangs., releases: [{from: \"2.5\", "
    "fixed-in: \"2.5.7\"}, {from: \"2.6\", fixed-in: \"2.6.2\"}], pattern: \"t-own sign\", "
    "specific: true, fix: export NCCL_P2P_DISABLE=1, source: s}\n"
    "- {name: t-shared, library: libfabric, title: fails, meaning: It fails., releases: [{from: "
    "\"1.5\"}], signs: [nccl-using-network-socket], advice: Wait., source: s}\n"
    "- {name: t-node, library: kernel, title: is slow, meaning: It is slow., releases: "
    "[{fixed-in: \"5.10\"}], pattern: \"t-node sign\", when: [{fact: host.virt, is: [kvm]}], "
    "specific: true, source: s}\n"
    "- {name: t-key, library: nvshmem, title: x, meaning: It waits., releases: [{fixed-in: "
    "\"3.2\"}], pattern: \"t-key sign\", diagnosis: nvshmem-version-bug, source: s}\n";

static struct shk_config *config;
static struct shk_facts *facts;

static void setup(void)
{
    struct shk_error err = {""};
    cr_assert_eq(
        shk_config_load_buffer(&config, "defects", "t.yaml", catalogue, strlen(catalogue), &err), 0,
        "%s", err.text);
    facts = shk_facts_create();
    cr_assert_eq(
        shk_facts_present(facts, "log.files", json_pack("[{s:s}]", "path", "a.log"), NULL, "--log"),
        0);
}

static void teardown(void)
{
    shk_facts_destroy(facts);
    shk_config_free(config);
}

TestSuite(defects, .init = setup, .fini = teardown);

/* A line that was seen; version: that it names, NULL. */
static void saw(const char *id, const char *version)
{
    char key[128];
    snprintf(key, sizeof key, "log.sig.%s", id);
    json_t *entry = json_pack("{s:i, s:s, s:i, s:s}", "lines", 1, "file", "a.log", "line", 7,
                              "text", "the line");
    if (version)
        json_object_set_new(entry, "captures",
                            json_pack("[{s:s, s:i}]", "version", version, "lines", 1));
    cr_assert_eq(shk_facts_present(facts, key, entry, NULL, "a.log"), 0);
}

static void fact(const char *key, const char *text)
{
    cr_assert_eq(shk_facts_present(facts, key, json_string(text), NULL, "probe"), 0);
}

static struct shk_diagnoses diagnose(void)
{
    struct shk_diagnoses out = {0};
    struct shk_error err = {""};
    struct shk_findings *none = shk_findings_create();
    const struct shk_facts *list[] = {facts};
    cr_assert_eq(shk_diagnose(config, none, list, 1, &out, &err), 0, "%s", err.text);
    shk_findings_destroy(none);
    return out;
}

/* The row of the key says so; confidence NULL: there is none. */
static void expect(const char *key, const char *confidence, const char *title, const char *advice)
{
    struct shk_diagnoses d = diagnose();
    const struct shk_diagnosis_row *row = NULL;
    for (size_t i = 0; i < d.count && !row; i++)
        if (strcmp(d.rows[i].key, key) == 0)
            row = &d.rows[i];
    cr_expect_eq(row != NULL, confidence != NULL, "%s", key);
    if (row && confidence) {
        cr_expect_str_eq(row->confidence, confidence);
        cr_expect(strstr(row->title, title), "%s", row->title);
        cr_expect(row->advice && strstr(row->advice, advice), "%s", row->advice);
        cr_expect_eq(row->scope, SHK_SCOPE_LAUNCH);
    }
    shk_diagnoses_free(&d);
}

static const char key[] = "release-defect";

Test(defects, a_release_without_the_sign_is_nothing)
{
    fact("nccl.version", "2.5.1");
    saw("release-of-nccl", "2.5.1");
    expect(key, NULL, NULL, NULL);
}

Test(defects, the_release_of_the_facts_and_its_own_sign)
{
    fact("nccl.version", "2.5.1");
    saw("t-own", NULL);
    expect(key, "likely", "NCCL 2.5.1: hangs", "Go to NCCL 2.5.7 or a later release: 2.5.1 has");
}

Test(defects, the_branch_of_the_release_names_what_to_go_to)
{
    saw("release-of-nccl", "2.6.1");
    saw("t-own", NULL);
    struct shk_diagnoses d = diagnose();
    cr_assert_eq(d.count, 1);
    cr_expect(strstr(d.rows[0].advice, "NCCL 2.6.2"), "%s", d.rows[0].advice);
    cr_expect_str_eq(d.rows[0].fix, "export NCCL_P2P_DISABLE=1");
    cr_expect_str_eq(d.rows[0].explanation, "It hangs.");
    cr_expect(strstr(d.rows[0].evidence[0], "NCCL 2.6.1 (a.log:7"), "%s", d.rows[0].evidence[0]);
    shk_diagnoses_free(&d);
}

Test(defects, a_good_release_is_nothing)
{
    static const char *const good[] = {"2.4.9", "2.5.7", "2.5.12", "2.6.2", "2.20"};
    saw("t-own", NULL);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        fact("nccl.version", good[i]);
        expect(key, NULL, NULL, NULL);
    }
}

Test(defects, what_the_job_loaded_counts_and_not_what_the_node_has)
{
    fact("nccl.version", "2.5.1");
    saw("release-of-nccl", "2.20.5");
    saw("t-own", NULL);
    expect(key, NULL, NULL, NULL);
}

Test(defects, its_own_sign_alone_is_a_guess)
{
    saw("t-own", NULL);
    expect(key, "possible", "NCCL: hangs",
           "Find out which release of NCCL is in use: those from 2.5 before 2.5.7, from 2.6 before "
           "2.6.2 have this defect.");
}

Test(defects, a_release_that_could_not_be_read_is_not_known)
{
    cr_assert_eq(shk_facts_failed(facts, "nccl.version", "no symbol", "probe"), 0);
    saw("t-own", NULL);
    expect(key, "possible", "NCCL: hangs", "Find out");
}

Test(defects, a_shared_sign_is_a_guess_and_without_a_release_nothing)
{
    saw("nccl-using-network-socket", NULL);
    expect(key, NULL, NULL, NULL);
    fact("fabric.version", "1.6.0");
    expect(
        key, "possible", "libfabric 1.6.0: fails",
        "libfabric 1.6.0 has this defect, and no later release is known to be without it.\nWait.");
}

Test(defects, what_must_hold_besides)
{
    fact("host.kernel", "5.4.0-150-generic");
    saw("t-node", NULL);
    expect(key, NULL, NULL, NULL); /* not known is not enough */
    fact("host.virt", "none");
    expect(key, NULL, NULL, NULL);
    fact("host.virt", "kvm");
    expect(key, "likely", "Linux 5.4.0-150-generic: is slow", "Go to Linux 5.10");
}

Test(defects, a_cause_of_its_own_keeps_its_title)
{
    fact("nvshmem.version", "3.1.7");
    saw("t-key", NULL);
    expect("nvshmem-version-bug", "possible", "This release of NVSHMEM has a bug",
           "Go to NVSHMEM 3.2 or a later release: 3.1.7 has this defect.\nUpdate NVSHMEM");
    expect(key, NULL, NULL, NULL);
}
