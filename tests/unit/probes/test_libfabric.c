#include "libs_support.h"
#include "probes/base/registry.h"
#include "probes/fabric/libfabric_ask.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

TestSuite(libfabric, .init = capture_begin, .fini = capture_end, .timeout = 300);

static struct shk_facts *ask(const char *fake, const char *filter)
{
    char path[512];
    snprintf(path, sizeof path, FAKES "/%s/libfabric.so.1", fake);
    setenv(SHK_LIBFABRIC_OVERRIDE, path, 1);
    if (filter)
        setenv("FI_PROVIDER", filter, 1);
    else
        unsetenv("FI_PROVIDER");
    unsetenv("FI_PROVIDER_PATH");
    return probe_facts(&shk_probe_libfabric, NULL, NULL, false, 0);
}

static bool mentions(const struct shk_facts *facts, const char *key, const char *text)
{
    return strstr(fact_text(facts, key), text) != NULL;
}

Test(libfabric, providers_domains_and_parameters)
{
    struct shk_facts *facts = ask("fabric_new", NULL);
    cr_expect(mentions(facts, "fabric.path", "/fabric_new/libfabric.so.1"));
    cr_expect_str_eq(fact_text(facts, "fabric.version"), "\"2.7.0\"");
    cr_expect_str_eq(fact_text(facts, "fabric.api"), "\"2.7\"");
    cr_expect_str_eq(fact_text(facts, "fabric.providers"), "[\"cxi\"]");
    cr_expect_str_eq(fact_text(facts, "fabric.core_providers"), "[\"cxi\"]");
    json_t *domain = json_array_get(shk_facts_get_array(facts, "fabric.domains"), 1);
    cr_assert_not_null(domain);
    cr_expect_str_eq(json_string_value(json_object_get(domain, "domain")), "cxi1");
    cr_expect_str_eq(json_string_value(json_object_get(domain, "pci")), "0000:c8:00.0");
    cr_expect_str_eq(json_string_value(json_object_get(domain, "link")), "up");
    cr_expect_eq(json_integer_value(json_object_get(domain, "speed")), 200000000000);
    cr_expect_eq(json_integer_value(json_object_get(domain, "mtu")), 2048);
    cr_expect_eq(json_array_size(json_object_get(domain, "caps")), 3);
    cr_expect(mentions(facts, "fabric.params",
                       "\"name\":\"FI_FAKE_LIMIT\",\"type\":\"size\","
                       "\"value\":\"7\""));
    cr_expect_str_eq(fact_text(facts, "fabric.filter"), "absent: not there");
    cr_expect_str_eq(fact_text(facts, "fabric.unfiltered"), "missing");
    cr_expect_str_eq(fact_text(facts, "fabric.problem"), "missing");
    shk_facts_destroy(facts);
}

Test(libfabric, hints_name_the_one_that_removes_a_provider)
{
    struct shk_facts *facts = ask("fabric_new", "cxi");
    const json_t *rows = shk_facts_get_array(facts, "fabric.hints"), *row;
    size_t i;
    bool seen = false;
    json_array_foreach(rows, i, row)
    {
        json_t *steps = json_object_get(row, "steps");
        const char *provider = json_string_value(json_object_get(row, "provider"));
        cr_assert_eq(json_array_size(steps), 7);
        json_t *first = json_array_get(steps, 0), *last = json_array_get(steps, 6);
        if (strcmp(provider, "cxi") == 0) {
            cr_expect_eq(json_integer_value(json_object_get(first, "count")), 2);
            cr_expect_str_eq(json_string_value(json_object_get(last, "hint")), "FI_HMEM");
            seen = true;
        } else {
            cr_expect_eq(json_integer_value(json_object_get(first, "count")), 0);
        }
        cr_expect_eq(json_integer_value(json_object_get(last, "rc")), -61);
    }
    cr_expect(seen);
    shk_facts_destroy(facts);
}

Test(libfabric, a_filter_is_told_from_a_missing_provider)
{
    struct shk_facts *facts = ask("fabric_new", "efa");
    cr_expect_str_eq(fact_text(facts, "fabric.filter"), "\"efa\"");
    cr_expect_str_eq(fact_text(facts, "fabric.providers"), "[]");
    cr_expect(mentions(facts, "fabric.getinfo", "\"rc\":-61"));
    json_t *plain = shk_facts_get_object(facts, "fabric.unfiltered");
    cr_assert_not_null(plain);
    cr_expect_str_eq(json_string_value(json_array_get(json_object_get(plain, "providers"), 0)),
                     "cxi");
    cr_expect_eq(json_array_size(json_object_get(plain, "domains")), 2);
    shk_facts_destroy(facts);
}

Test(libfabric, each_fault_has_its_own_cause)
{
    static const struct {
        const char *fake, *outcome, *call, *text;
    } cases[] = {
        {.fake = "fabric_segv",
         .outcome = "crashed",
         .call = "dlopen",
         .text = "died of SIGSEGV in"},
        {.fake = "fabric_no_symbol",
         .outcome = "failed",
         .call = "",
         .text = "no symbol fi_dupinfo"},
        {.fake = "nowhere", .outcome = "failed", .call = "", .text = "/nowhere/libfabric.so.1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct shk_facts *facts = ask(cases[i].fake, NULL);
        const json_t *problem = shk_facts_get_object(facts, "fabric.problem");
        cr_assert_not_null(problem, "%s", cases[i].fake);
        const char *text = json_string_value(json_object_get(problem, "text"));
        const char *call = json_string_value(json_object_get(problem, "call"));
        cr_expect_str_eq(json_string_value(json_object_get(problem, "outcome")), cases[i].outcome,
                         "%s: %s", cases[i].fake, text);
        cr_expect_not_null(strstr(text, cases[i].text), "%s: '%s'", cases[i].fake, text);
        cr_expect(!*cases[i].call || strcmp(call, cases[i].call) == 0, "%s", call);
        /* unknown, not "no providers" */
        cr_expect(mentions(facts, "fabric.providers", "failed: "), "%s", cases[i].fake);
        cr_expect(mentions(facts, "fabric.domains", "failed: "), "%s", cases[i].fake);
        shk_facts_destroy(facts);
    }
}

Test(libfabric, a_hang_ends_at_the_deadline_and_names_the_call)
{
    struct shk_facts *facts = ask("fabric_getinfo_hang", NULL);
    const json_t *problem = shk_facts_get_object(facts, "fabric.problem");
    cr_assert_not_null(problem);
    cr_expect_str_eq(json_string_value(json_object_get(problem, "outcome")), "timeout");
    cr_expect_str_eq(json_string_value(json_object_get(problem, "call")),
                     "fi_getinfo(FI_PROV_ATTR_ONLY)");
    cr_expect(mentions(facts, "fabric.providers", "no answer after"));
    shk_facts_destroy(facts);
}

Test(libfabric, copies_are_told_apart_by_file)
{
    capture_environ("{\"LD_LIBRARY_PATH\": \"/mod\"}");
    capture_copy("mod/libfabric.so.1", FAKES "/fabric_old/libfabric.so.1");
    capture_copy("opt/cray/libfabric/2.7/lib64/libfabric.so.1", FAKES "/fabric_new/libfabric.so.1");
    capture_text("mod/libfabric/libcxi-fi.so", "a provider");
    struct shk_facts *facts = probe_facts(&shk_probe_libfabric, capture_root, NULL, false, 0);
    cr_expect_str_eq(fact_text(facts, "fabric.path"), "\"/mod/libfabric.so.1\"");
    cr_expect_str_eq(
        fact_text(facts, "fabric.copies"),
        "[{\"abi\":\"FABRIC_1.6\",\"links\":[],\"loader\":true,\"path\":\"/mod/"
        "libfabric.so.1\",\"releases\":\"1.14 to 1.19\",\"version\":\"1.17.0\",\"via\":"
        "\"LD_LIBRARY_PATH\"},{\"abi\":\"FABRIC_1.10\",\"links\":[],\"loader\":false,"
        "\"path\":\"/opt/cray/libfabric/2.7/lib64/libfabric.so.1\",\"releases\":\"later than "
        "2.6\",\"version\":"
        "\"2.7.0\",\"via\":\"directory\"}]");
    cr_expect_str_eq(fact_text(facts, "fabric.dl_providers"),
                     "[{\"name\":\"cxi\",\"path\":\"/mod/libfabric/libcxi-fi.so\",\"problem\":"
                     "\"/mod/libfabric/libcxi-fi.so: text file (\\\"a provider\\\"), not a shared "
                     "object\"}]");
    cr_expect_null(strstr(fact_text(facts, "fabric.core_providers"), "cxi"));
    /* a captured library is never executed */
    cr_expect(mentions(facts, "fabric.providers", "failed: a captured library is not executed"));
    shk_facts_destroy(facts);
}

/* Each form of FI_PROVIDER_PATH, and what libfabric does without it. */
Test(libfabric, providers_that_are_files)
{
    static const struct {
        const char *path, *names;
    } cases[] = {
        {.path = "/p", .names = "cxi! efa verbs!"},
        {.path = "@/p", .names = "cxi! efa verbs!"},
        {.path = "/none:/p", .names = "cxi! efa verbs!"},
        {.path = "/none", .names = ""},
        {.path = "+/p/libefa-fi.so", .names = "efa tcp"}, /* one file, then the default */
        {.path = "+/p/gone-fi.so:/none", .names = ""},
        {.path = NULL, .names = "tcp"},
    };
    capture_copy("mod/libfabric.so.1", FAKES "/fabric_old/libfabric.so.1");
    capture_copy("mod/libfabric/libtcp-fi.so", FAKES "/provider_dl/libefa-fi.so");
    capture_copy("p/libefa-fi.so", FAKES "/provider_dl/libefa-fi.so");
    capture_copy("p/libcxi-fi.so", FAKES "/provider_dl/libcxi-fi.so");
    capture_copy("p/libverbs-fi.so", FAKES "/provider_dl/libverbs-fi.so");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char environ[256], names[128] = "";
        size_t k;
        json_t *row;
        snprintf(environ, sizeof environ, "{\"LD_LIBRARY_PATH\": \"/mod\"%s%s%s}",
                 cases[i].path ? ", \"FI_PROVIDER_PATH\": \"" : "",
                 cases[i].path ? cases[i].path : "", cases[i].path ? "\"" : "");
        capture_environ(environ);
        struct shk_facts *facts = probe_facts(&shk_probe_libfabric, capture_root, NULL, false, 0);
        json_array_foreach(shk_facts_get_array(facts, "fabric.dl_providers"), k, row)
        {
            size_t n = strlen(names);
            bool bad = !json_is_null(json_object_get(row, "problem"));
            snprintf(names + n, sizeof names - n, "%s%s%s", n ? " " : "",
                     json_string_value(json_object_get(row, "name")), bad ? "!" : "");
        }
        cr_expect_str_eq(names, cases[i].names, "%s: %s", environ, names);
        shk_facts_destroy(facts);
    }
}

Test(libfabric, no_library_at_all)
{
    static const char empty_cache[] =
        "glibc-ld.so.cache1.1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    capture_environ("{}");
    struct shk_facts *facts = probe_facts(&shk_probe_libfabric, capture_root, NULL, false, 0);
    /* a capture without the loader's cache does not hold the libraries: that tells nothing */
    cr_expect(mentions(facts, "fabric.path", "failed: the capture holds no libfabric"));
    cr_expect(mentions(facts, "fabric.providers", "failed: the capture holds no libfabric"));
    shk_facts_destroy(facts);
    capture_put("etc/ld.so.cache", empty_cache, sizeof empty_cache - 1);
    facts = probe_facts(&shk_probe_libfabric, capture_root, NULL, false, 0);
    cr_expect(mentions(facts, "fabric.path", "absent: not found in"));
    cr_expect(mentions(facts, "fabric.providers", "absent: libfabric.so.1 not found"));
    cr_expect_str_eq(fact_text(facts, "fabric.copies"), "[]");
    shk_facts_destroy(facts);
}

Test(libfabric, a_dependency_of_the_library_is_missing)
{
    /* stands for a libfabric that was built with a provider library which this node lacks */
    capture_environ("{\"LD_LIBRARY_PATH\": \"/mod\"}");
    capture_copy("mod/libfabric.so.1", FAKES "/missing_dependency/libnccl-net.so");
    struct shk_facts *facts = probe_facts(&shk_probe_libfabric, capture_root, NULL, false, 0);
    cr_expect(mentions(facts, "fabric.problems",
                       "needs libshk-gone.so, which is not in the search path ("));
    shk_facts_destroy(facts);
}
