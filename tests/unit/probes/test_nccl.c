#include "core/text/strbuf.h"
#include "libs_support.h"
#include "probes/base/registry.h"
#include "probes/nccl/nccl_search.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(nccl, .init = capture_begin, .fini = capture_end);

Test(nccl, version_and_interfaces_from_the_file)
{
    capture_environ("{\"LD_LIBRARY_PATH\": \"/mod/lib\"}");
    capture_copy("mod/lib/libnccl.so.2", FAKES "/nccl/libnccl.so.2");
    struct shk_facts *facts = probe_facts(&shk_probe_nccl, capture_root, NULL, false, 0);
    cr_expect_str_eq(fact_text(facts, "nccl.path"), "\"/mod/lib/libnccl.so.2\"");
    cr_expect_str_eq(fact_text(facts, "nccl.via"), "\"LD_LIBRARY_PATH\"");
    cr_expect_str_eq(fact_text(facts, "nccl.version"), "\"2.19.3\"");
    cr_expect_str_eq(fact_text(facts, "nccl.built_for"), "\"cuda12.2\"");
    /* version 9 appears only inside a log text */
    cr_expect_str_eq(fact_text(facts, "nccl.net_abi"), "[5,6,7]");
    cr_expect_str_eq(fact_text(facts, "nccl.collnet_abi"), "[7]");
    cr_expect_str_eq(fact_text(facts, "nccl.tuner_abi"), "[1]");
    cr_expect_str_eq(fact_text(facts, "nccl.profiler_abi"), "[]");
    cr_expect_str_eq(fact_text(facts, "nccl.env_names"),
                     "[\"NCCL_NET\",\"NCCL_NET_PLUGIN\",\"NCCL_SOCKET_IFNAME\"]");
    cr_expect_str_eq(fact_text(facts, "nccl.plugin_names"), "[\"libnccl-net\"]");
    cr_expect_str_eq(fact_text(facts, "rccl.path"), "failed: the capture holds no such library");
    cr_expect_str_eq(fact_text(facts, "rccl.net_abi"), "failed: the capture holds no such library");
    cr_expect_str_eq(fact_text(facts, "rccl.copies"), "failed: the capture holds no such library");
    shk_facts_destroy(facts);
}

static void expect_228(const struct shk_facts *facts)
{
    cr_expect_str_eq(fact_text(facts, "nccl.net_abi"), "[6,7,8,9,10,11]");
    cr_expect_str_eq(fact_text(facts, "nccl.collnet_abi"), "[6,7,8,9,10,11]");
    cr_expect_str_eq(fact_text(facts, "nccl.tuner_abi"), "[2,3,4,5]");
    cr_expect_str_eq(fact_text(facts, "nccl.profiler_abi"), "[1,2,3,4,5]");
    cr_expect_str_eq(fact_text(facts, "nccl.env_abi"), "[1]");
    cr_expect_str_eq(fact_text(facts, "nccl.gin_abi"), "[11]");
}

Test(nccl, interfaces_of_228_from_a_stand_in)
{
    capture_environ("{\"LD_LIBRARY_PATH\": \"/l\"}");
    capture_copy("l/libnccl.so.2", FAKES "/nccl_228/libnccl.so.2");
    struct shk_facts *facts = probe_facts(&shk_probe_nccl, capture_root, NULL, false, 0);
    cr_expect_str_eq(fact_text(facts, "nccl.version"), "\"2.28.9\"");
    expect_228(facts);
    shk_facts_destroy(facts);
}

/* The real library, where it is installed: what its file says against the table of releases
 * (src/plugin/net.cc of each tag). Nothing of it is executed. */
Test(nccl, interfaces_of_the_installed_library)
{
    struct shk_facts *facts = probe_facts(&shk_probe_nccl, NULL, NULL, false, 0);
    const char *version = shk_facts_get_text(facts, "nccl.version");
    if (!version) {
        cr_skip_test("no NCCL is installed here: %s", fact_text(facts, "nccl.version"));
    } else if (shk_version_cmp(version, "2.28.7") >= 0 && shk_version_cmp(version, "2.29") < 0) {
        expect_228(facts);
    } else {
        cr_expect_gt(json_array_size(shk_facts_get_array(facts, "nccl.net_abi")), 0, "%s: %s",
                     version, fact_text(facts, "nccl.net_abi"));
    }
    cr_expect_null(dlopen("libnccl.so.2", RTLD_NOW | RTLD_NOLOAD), "it was loaded");
    shk_facts_destroy(facts);
}

Test(nccl, copies_in_toolkits_and_python_environments)
{
    capture_environ(
        "{\"VIRTUAL_ENV\": \"/home/u/venv\", \"PYTHONPATH\": \"relative:/site::/more\"}");
    capture_copy("usr/local/cuda-12.2/lib64/libnccl.so.2", FAKES "/nccl/libnccl.so.2");
    capture_copy("home/u/venv/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2",
                 FAKES "/nccl_silent/libnccl.so.2");
    capture_copy("more/torch/lib/librccl.so.1", FAKES "/rccl/librccl.so.1");
    struct shk_facts *facts = probe_facts(&shk_probe_nccl, capture_root, NULL, false, 0);
    cr_expect_str_eq(
        fact_text(facts, "nccl.copies"),
        "[{\"built_for\":\"cuda12.2\",\"loader\":false,\"path\":\"/usr/local/cuda-12.2/lib64/"
        "libnccl.so.2\",\"version\":\"2.19.3\",\"via\":\"directory\"},{\"loader\":false,\"path\":"
        "\"/home/u/venv/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2\",\"via\":"
        "\"directory\"}]");
    cr_expect_str_eq(fact_text(facts, "nccl.path"), "\"/usr/local/cuda-12.2/lib64/libnccl.so.2\"");
    cr_expect_str_eq(fact_text(facts, "nccl.loader"), "false");
    cr_expect_str_eq(fact_text(facts, "rccl.path"), "\"/more/torch/lib/librccl.so.1\"");
    cr_expect_str_eq(fact_text(facts, "rccl.version"), "\"2.20.5\"");
    cr_expect_str_eq(fact_text(facts, "rccl.built_for"), "\"hip6.2\"");
    cr_expect_str_eq(fact_text(facts, "rccl.net_abi"), "[5,6]");
    shk_facts_destroy(facts);
}

Test(nccl, a_library_that_tells_nothing_is_unknown_not_empty)
{
    capture_environ("{\"LD_LIBRARY_PATH\": \"/l\"}");
    capture_copy("l/libnccl.so.2", FAKES "/nccl_silent/libnccl.so.2");
    struct shk_facts *facts = probe_facts(&shk_probe_nccl, capture_root, NULL, false, 0);
    cr_expect_not_null(strstr(fact_text(facts, "nccl.version"), "failed: no version text"));
    cr_expect_not_null(strstr(fact_text(facts, "nccl.net_abi"), "failed: no plugin symbol names"));
    shk_facts_destroy(facts);
}

Test(nccl, a_broken_file_in_front_is_what_the_loader_takes)
{
    capture_environ("{\"LD_LIBRARY_PATH\": \"/l\"}");
    capture_text("l/libnccl.so.2", "version https://git-lfs.github.com/spec/v1\n");
    capture_copy("usr/lib/libnccl.so.2", FAKES "/nccl/libnccl.so.2");
    struct shk_facts *facts = probe_facts(&shk_probe_nccl, capture_root, NULL, false, 0);
    cr_expect_str_eq(fact_text(facts, "nccl.path"), "\"/l/libnccl.so.2\"");
    cr_expect_not_null(strstr(fact_text(facts, "nccl.version"), "failed: /l/libnccl.so.2: text"));
    cr_expect_not_null(strstr(fact_text(facts, "nccl.copies"), "\"version\":\"2.19.3\""));
    shk_facts_destroy(facts);
}

/* NCCL 2.18.3 has it so; a message that ends with a name does not say that it is read. */
Test(nccl, names_glued_to_another_string)
{
    capture_environ("{\"LD_LIBRARY_PATH\": \"/l\"}");
    capture_copy("l/libnccl.so.2", FAKES "/nccl_glued/libnccl.so.2");
    struct shk_facts *facts = probe_facts(&shk_probe_nccl, capture_root, NULL, false, 0);
    cr_expect_str_eq(fact_text(facts, "nccl.env_names"), "[\"NCCL_DEBUG\",\"NCCL_NET_PLUGIN\"]");
    shk_facts_destroy(facts);
}

Test(nccl, names_in_search_order)
{
    static const struct {
        enum shk_nccl_owner owner;
        const char *version, *value;
        enum shk_nccl_abi kind;
        const char *names; /* joined by blanks; "none", "program" for those */
    } cases[] = {
        {.version = "2.28.9", .value = NULL, .names = "libnccl-net.so"},
        {.version = "2.12.7", .value = NULL, .names = "libnccl-net.so"},
        {.version = "", .value = NULL, .names = "libnccl-net.so"},
        {.version = "2.18.3", .value = "ofi", .names = "libnccl-net-ofi.so"},
        {.version = "2.18.3", .value = "/a/lib.so", .names = "libnccl-net-/a/lib.so.so"},
        {.version = "2.18.3", .value = "none", .names = "libnccl-net-none.so"},
        {.version = "2.18.3", .value = "", .names = "libnccl-net.so"},
        {.version = "2.21.5", .value = "ofi", .names = "ofi libnccl-net-ofi.so"},
        {.version = "2.21.5", .value = "/a/lib.so", .names = "/a/lib.so libnccl-net-/a/lib.so.so"},
        {.version = "2.21.5",
         .value = "STATIC_PLUGIN",
         .names = "STATIC_PLUGIN libnccl-net-STATIC_PLUGIN.so"},
        {.version = "2.22.3", .value = "static_plugin", .names = "program"},
        {.version = "2.10.3", .value = "ofi", .names = "libnccl-net.so unread"},
        {.version = "2.11.4", .value = "ofi", .names = "libnccl-net-ofi.so"},
        {.version = "2.26.2", .value = "/a/lib.so", .names = "/a/lib.so libnccl-net-/a/lib.so.so"},
        {.version = "2.26.2", .value = "libfoo.so", .names = "libfoo.so libnccl-net-libfoo.so.so"},
        {.version = "2.26.2", .value = "a,b", .names = "a,b libnccl-net-a,b.so"},
        {.version = "2.27.3",
         .value = "a,libb.so,,c",
         .names = "libnccl-net-a.so libb.so libnccl-net-c.so"},
        {.version = "2.27.3", .value = "/a/lib.so", .names = "libnccl-net-/a/lib.so.so"},
        {.version = "2.27.3", .value = "none", .names = "libnccl-net-none.so"},
        {.version = "2.27.5",
         .value = "a,libb.so,,c,/d",
         .names = "a libnccl-net-a.so libb.so c libnccl-net-c.so /d"},
        {.version = "2.27.7", .value = "none", .names = "none libnccl-net-none.so"},
        {.version = "2.27.3", .value = "", .names = "none"},
        {.version = "2.28.3", .value = "NONE", .names = "none"},
        {.version = "2.28.3", .value = "s", .names = "program"},
        {.version = "2.28.3",
         .value = "ofi",
         .kind = SHK_ABI_TUNER,
         .names = "ofi libnccl-tuner-ofi.so"},
        {.owner = SHK_OWNER_RCCL, .version = "2.20.5", .value = NULL, .names = "librccl-net.so"},
        {.version = "2.28.3",
         .value = "a,b",
         .kind = SHK_ABI_TUNER,
         .names = "a,b libnccl-tuner-a,b.so"},
        {.version = "2.19.3", .value = "/a/t.so", .kind = SHK_ABI_TUNER, .names = "/a/t.so"},
        {.owner = SHK_OWNER_RCCL,
         .version = "2.10.3",
         .value = "x",
         .names = "librccl-net.so unread"},
        {.owner = SHK_OWNER_RCCL, .version = "2.13.4", .value = "x", .names = "librccl-net-x.so"},
        {.owner = SHK_OWNER_RCCL, .version = "2.20.5", .value = "x", .names = "librccl-net-x.so"},
        {.owner = SHK_OWNER_RCCL, .version = "2.21.5", .value = "x", .names = "x librccl-net-x.so"},
        {.owner = SHK_OWNER_RCCL,
         .version = "2.22.3",
         .value = "librccl-anp.so",
         .names = "librccl-anp.so librccl-net-librccl-anp.so.so"},
        {.owner = SHK_OWNER_RCCL, .version = "2.26.6", .value = NULL, .names = "librccl-net.so"},
        {.owner = SHK_OWNER_RCCL,
         .version = "2.27.7",
         .value = "librccl-anp.so",
         .names = "librccl-anp.so"},
        {.owner = SHK_OWNER_RCCL, .version = "2.28.3", .value = "none", .names = "none"},
        {.owner = SHK_OWNER_RCCL,
         .version = "2.22.3",
         .value = NULL,
         .kind = SHK_ABI_TUNER,
         .names = "librccl-tuner.so"},
        {.owner = SHK_OWNER_RCCL,
         .version = "2.27.7",
         .value = NULL,
         .names = "libnccl-net.so librccl-net.so"},
        {.owner = SHK_OWNER_RCCL,
         .version = "2.27.7",
         .value = NULL,
         .kind = SHK_ABI_TUNER,
         .names = "libnccl-tuner.so"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static struct shk_nccl_names names;
        char got[1024] = "";
        shk_nccl_search(&names, &(struct shk_nccl_request){.owner = cases[i].owner,
                                                           .version = cases[i].version,
                                                           .kind = cases[i].kind,
                                                           .value = cases[i].value});
        for (size_t k = 0; k < names.count; k++) {
            strcat(got, k ? " " : "");
            strcat(got, names.list[k].name);
            cr_expect_neq(names.list[k].reason[0], '\0');
        }
        if (names.none || names.program)
            strcat(got, names.none ? "none" : "program");
        strcat(got, names.unread ? " unread" : "");
        cr_expect_str_eq(got, cases[i].names, "%zu (%s, %s): got '%s'", i, cases[i].version,
                         cases[i].value ? cases[i].value : "unset", got);
    }
}

Test(nccl, rccl_says_itself_which_file_is_its_default)
{
    static const char *const lists[][2] = {
        {"[\"libnccl-net.so\",\"librccl-net\"]", "libnccl-net.so"},
        {"[\"librccl-net\",\"librccl-net.so\"]", "librccl-net.so"},
    };
    for (size_t i = 0; i < 2; i++) {
        static struct shk_nccl_names names;
        json_t *strings = json_loads(lists[i][0], 0, NULL);
        shk_nccl_search(&names, &(struct shk_nccl_request){.owner = SHK_OWNER_RCCL,
                                                           .version = "2.27.7",
                                                           .names = strings});
        cr_assert_eq(names.count, 1);
        cr_expect_str_eq(names.list[0].name, lists[i][1]);
        json_decref(strings);
    }
}

Test(nccl, endless_values_are_cut_and_counted)
{
    static struct shk_nccl_names names;
    char value[4096];
    memset(value, 'x', 300);
    value[300] = '\0';
    shk_nccl_search(&names, &(struct shk_nccl_request){.version = "2.28.9", .value = value});
    cr_expect_eq(names.count, 0);
    cr_expect_eq(names.skipped, 1);
    cr_expect_not(names.none);
    value[0] = '\0';
    for (int i = 0; i < 40; i++)
        sprintf(value + strlen(value), "%sp%d", i ? "," : "", i);
    shk_nccl_search(&names, &(struct shk_nccl_request){.version = "2.28.9", .value = value});
    cr_expect_eq(names.count, 28); /* 14 elements, two names each */
    cr_expect_eq(names.skipped, 26);
    cr_expect_eq(names.list[27].entry, 13);
}
