#include "../chain_support.h"
#include "checks/fabric/plugin.h"
#include "core/run/isolate.h"
#include "core/text/strbuf.h"
#include "libs_support.h"
#include "probes/base/registry.h"
#include "probes/nccl/ncclnet.h"
#include "probes/nccl/plugin_child.h"
#include "probes/nccl/plugin_try.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

TestSuite(plugin, .init = capture_begin, .fini = capture_end, .timeout = 600);

/* What 2.28 accepts; the fakes are measured against it. */
static const struct shk_nccl_abis nccl_228 = {
    .set = {[SHK_ABI_NET] = 0xfc0, [SHK_ABI_TUNER] = 0x3c}};

static const struct shk_plugin_deadlines quickly = {
    .load_ms = 2000, .init_ms = 700, .loopback_ms = 1500};

static void inspect(struct shk_plugin *p, const char *fake, enum shk_nccl_abi kind)
{
    struct shk_host *host;
    struct shk_ldsearch *search;
    cr_assert_eq(shk_host_open(&host, NULL, NULL), 0);
    cr_assert_eq(shk_ldsearch_create(&search, host, NULL), 0);
    *p = (struct shk_plugin){.kind = kind, .considered = true};
    snprintf(p->name, sizeof p->name, FAKES "/%s/lib%s.so", fake,
             kind == SHK_ABI_NET ? "nccl-net" : "nccl-tuner");
    const struct shk_plugin_scene scene = {.search = search, .accepts = &nccl_228};
    cr_assert_eq(shk_plugin_inspect(p, &scene, "a test", NULL), 0);
    shk_ldsearch_destroy(search);
    shk_host_close(host);
}

static double now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

/* The chain that the checks make of a row, kept in the row. */
static const json_t *chain_of(json_t *row)
{
    struct shk_chain chain;
    shk_plugin_chain(row, &chain);
    json_object_set_new(row, "chain", chain_rows(&chain));
    shk_chain_clear(&chain);
    return json_object_get(row, "chain");
}

static const json_t *steps_of(const struct shk_plugin *p)
{
    return chain_of(p->row);
}

Test(plugin, every_version_passes_the_whole_chain)
{
    static const char *const steps[] = {"file", "format", "abi",     "dependencies", "versions",
                                        "load", "init",   "devices", "properties",   "loopback"};
    struct shk_plugin list[6];
    for (int v = 6; v <= 11; v++) {
        char fake[16];
        snprintf(fake, sizeof fake, "good_v%d", v);
        inspect(&list[v - 6], fake, SHK_ABI_NET);
        cr_expect_eq(list[v - 6].version, v);
    }
    cr_assert_eq(shk_plugin_try(list, 6, &quickly, false, NULL), 0);
    for (int v = 6; v <= 11; v++) {
        struct shk_plugin *p = &list[v - 6];
        for (size_t s = 0; s < sizeof steps / sizeof steps[0]; s++)
            cr_expect_eq(strncmp(step_text(steps_of(p), steps[s]), "ok: ", 4), 0, "v%d %s: %s", v,
                         steps[s], step_text(steps_of(p), steps[s]));
        json_t *device =
            json_array_get(json_object_get(json_object_get(p->row, "devices"), "rows"), 1);
        cr_expect_str_eq(json_string_value(json_object_get(device, "name")), "fake0");
        cr_expect_eq(json_integer_value(json_object_get(device, "speed")), 200000);
        cr_expect_str_eq(json_string_value(json_object_get(device, "guid")), "0x1122334455667788");
        cr_expect(json_is_true(json_object_get(device, "gdr")));
        json_t *loop = json_object_get(p->row, "loopback");
        cr_expect_eq(json_integer_value(json_object_get(loop, "bytes")), 1 << 20);
        cr_expect_eq(json_integer_value(json_object_get(loop, "wrong")), 0);
        json_decref(p->row);
    }
}

/* One row per fake: the first broken step, and a text that only this fault gives. */
static const struct {
    const char *fake, *step, *text;
} faults[] = {
    {.fake = "nowhere", .step = "file", .text = "nowhere/libnccl-net.so: no such file"},
    {.fake = "empty_file", .step = "format", .text = "empty file"},
    {.fake = "text_file", .step = "format", .text = "text file (\"GROUP"},
    {.fake = "truncated", .step = "format", .text = "dies of SIGBUS"},
    {.fake = "executable", .step = "format", .text = "not a shared object"},
    {.fake = "wrong_machine", .step = "format", .text = "this machine is"},
    {.fake = "no_symbol", .step = "abi", .text = "exports no net plugin symbol"},
    {.fake = "too_old", .step = "abi", .text = "exports net versions 4, 5, none of which"},
    {.fake = "too_new", .step = "abi", .text = "exports net versions 40, none of which"},
    {.fake = "good_v12", .step = "abi", .text = "exports net versions 12, none of which"},
    {.fake = "missing_dependency",
     .step = "dependencies",
     .text = "libshk-gone.so, which is not in the search path"},
    {.fake = "needs_new_fabric", .step = "versions", .text = "FABRIC_1.10 of libfabric.so.1"},
    {.fake = "undefined_symbol", .step = "load", .text = "shk_symbol_that_no_library_has"},
    {.fake = "segv_constructor", .step = "load", .text = "died of SIGSEGV"},
    {.fake = "no_init", .step = "load", .text = "has no init"},
    {.fake = "null_slots",
     .step = "init",
     .text = "init succeeded, but ncclNetPlugin_v8 has no connect"},
    {.fake = "late_gap", .step = "init", .text = "has no connect, accept"},
    {.fake = "license", .step = "init", .text = "NET/FAKE : LICENSE CHECK FAILED"},
    {.fake = "segv_init", .step = "init", .text = "died of SIGSEGV in libnccl-net.so: init"},
    {.fake = "abort_init", .step = "init", .text = "died of SIGABRT in libnccl-net.so: init"},
    {.fake = "exit_init", .step = "init", .text = "called exit("},
    {.fake = "hang_init", .step = "init", .text = "no answer after 700 ms"},
    {.fake = "error_init",
     .step = "init",
     .text = "NET/FAKE : No NIC in slot 7; NET/FAKE : no eligible device, error -61"},
    {.fake = "no_devices", .step = "devices", .text = "0 devices"},
    {.fake = "segv_devices", .step = "devices", .text = "died of SIGSEGV"},
    {.fake = "bad_properties", .step = "properties", .text = "device 0: name: pointer 0x10"},
    {.fake = "segv_properties", .step = "properties", .text = "getProperties(0)"},
    {.fake = "corrupt_data", .step = "loopback", .text = "1 of 1048576 bytes arrived wrong"},
    {.fake = "overrun", .step = "loopback", .text = "1 of 1024 bytes arrived wrong"},
    {.fake = "never_connects", .step = "loopback", .text = "still pending after 750 ms"},
};
enum { FAULTS = sizeof faults / sizeof faults[0] };

Test(plugin, every_fault_has_its_own_cause)
{
    static struct shk_plugin list[FAULTS];
    for (size_t i = 0; i < FAULTS; i++)
        inspect(&list[i], faults[i].fake, SHK_ABI_NET);
    cr_assert_eq(shk_plugin_try(list, FAULTS, &quickly, false, NULL), 0);
    for (size_t i = 0; i < FAULTS; i++) {
        const json_t *steps = steps_of(&list[i]);
        cr_expect_str_eq(first_broken(steps), faults[i].step, "%s: broken at %s: %s",
                         faults[i].fake, first_broken(steps),
                         step_text(steps, first_broken(steps)));
        cr_expect_not_null(strstr(step_text(steps, faults[i].step), faults[i].text), "%s: '%s'",
                           faults[i].fake, step_text(steps, faults[i].step));
        for (size_t k = 0; k < i; k++)
            cr_expect(strcmp(step_text(steps_of(&list[k]), faults[k].step),
                             step_text(steps, faults[i].step)) != 0 ||
                          strcmp(faults[k].fake, "null_slots") == 0,
                      "%s and %s look the same", faults[i].fake, faults[k].fake);
    }
    for (size_t i = 0; i < FAULTS; i++)
        json_decref(list[i].row);
}

/* HPC-X's plugin has name and init alone until it is started. */
Test(plugin, a_table_that_init_fills_is_whole)
{
    struct shk_plugin p;
    inspect(&p, "late_table", SHK_ABI_NET);
    cr_assert_eq(shk_plugin_try(&p, 1, &quickly, false, NULL), 0);
    cr_expect_str_eq(first_broken(steps_of(&p)), "nothing");
    json_t *load = json_object_get(p.row, "load"), *init = json_object_get(p.row, "init");
    cr_expect_str_eq(json_string_value(json_object_get(load, "name")), "Fake before init");
    cr_expect_str_eq(json_string_value(json_object_get(init, "name")), "Fake late");
    json_decref(p.row);
}

Test(plugin, hangs_end_at_their_deadline)
{
    static const char *const slow[] = {"hang_init", "never_connects"};
    for (size_t i = 0; i < 2; i++) {
        struct shk_plugin p;
        inspect(&p, slow[i], SHK_ABI_NET);
        double start = now_ms();
        cr_assert_eq(shk_plugin_try(&p, 1, &quickly, false, NULL), 0);
        cr_expect_lt(now_ms() - start, quickly.loopback_ms + 20000, "%s", slow[i]);
        json_decref(p.row);
    }
}

/* Under a short overall deadline a plugin that hangs must not eat the time of the others. */
struct hurried {
    struct shk_plugin list[3];
};

static int hurry(void *arg, json_t **result_p, struct shk_error *err)
{
    static const struct shk_plugin_deadlines normal = SHK_PLUGIN_DEADLINES;
    struct hurried *h = arg;
    int rc = shk_plugin_try(h->list, 3, &normal, false, err);
    *result_p =
        json_pack("[O, O, O]", steps_of(&h->list[0]), steps_of(&h->list[1]), steps_of(&h->list[2]));
    return rc;
}

Test(plugin, time_is_shared_among_the_steps)
{
    struct hurried h;
    struct shk_isolate_result r;
    struct shk_isolate_job job = {.name = "hurry", .fn = hurry, .arg = &h, .deadline_ms = 6000};
    inspect(&h.list[0], "hang_init", SHK_ABI_NET);
    inspect(&h.list[1], "never_connects", SHK_ABI_NET);
    inspect(&h.list[2], "good_v8", SHK_ABI_NET);
    cr_assert_eq(shk_isolate_run(&job, &r, 1, 0, NULL), 0);
    cr_assert_eq(r.outcome, SHK_CHILD_OK, "%s", r.error.text);
    cr_expect_not_null(strstr(step_text(json_array_get(r.result, 0), "init"), "no answer after"));
    cr_expect_not_null(
        strstr(step_text(json_array_get(r.result, 1), "loopback"), "still pending after"));
    cr_expect_eq(strncmp(step_text(json_array_get(r.result, 2), "loopback"), "ok: ", 4), 0, "%s",
                 step_text(json_array_get(r.result, 2), "loopback"));
    shk_isolate_result_clear(&r);
    for (size_t i = 0; i < 3; i++)
        json_decref(h.list[i].row);
}

Test(plugin, runaway_memory_ends_at_the_limit)
{
    struct shk_plugin p;
    struct shk_plugin_deadlines patient = quickly;
    patient.init_ms = 20000;
    inspect(&p, "memory", SHK_ABI_NET);
    cr_assert_eq(shk_plugin_try(&p, 1, &patient, false, NULL), 0);
    cr_expect_not_null(strstr(step_text(steps_of(&p), "init"), "more than 1024 MiB"), "%s",
                       step_text(steps_of(&p), "init"));
    json_decref(p.row);
}

Test(plugin, quick_stops_before_init)
{
    struct shk_plugin p;
    inspect(&p, "hang_init", SHK_ABI_NET);
    cr_assert_eq(shk_plugin_try(&p, 1, &quickly, true, NULL), 0);
    cr_expect_str_eq(step_text(steps_of(&p), "load"), "ok: dlopen");
    cr_expect_str_eq(step_text(steps_of(&p), "init"), "unknown: not tried");
    cr_expect_null(json_object_get(p.row, "init"));
    json_decref(p.row);
}

Test(plugin, tuner_is_only_loaded)
{
    struct shk_plugin p;
    inspect(&p, "tuner", SHK_ABI_TUNER);
    cr_assert_eq(shk_plugin_try(&p, 1, &quickly, false, NULL), 0);
    cr_expect_str_eq(step_text(steps_of(&p), "abi"), "ok: tuner versions 3, in common: 3");
    cr_expect_str_eq(step_text(steps_of(&p), "load"), "ok: dlopen");
    cr_expect_str_eq(step_text(steps_of(&p), "init"), "");
    json_decref(p.row);
}

Test(plugin, text_at_any_address)
{
    char buf[8];
    char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(page, MAP_FAILED);
    cr_assert_eq(munmap(page + 4096, 4096), 0);
    memcpy(page + 4092, "abc", 4);
    cr_expect(shk_plugin_text_at(page + 4092, buf, sizeof buf));
    cr_expect_str_eq(buf, "abc");
    memset(page + 4092, 'x', 4); /* runs into the hole */
    cr_expect_not(shk_plugin_text_at(page + 4092, buf, sizeof buf));
    cr_expect_not(shk_plugin_text_at("longer than the buffer", buf, sizeof buf));
    cr_expect_not(shk_plugin_text_at((const char *)16, buf, sizeof buf));
    cr_expect_not(shk_plugin_text_at(NULL, buf, sizeof buf));
    munmap(page, 4096);
}

static const char empty_cache[] =
    "glibc-ld.so.cache1.1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

/* The facts that the NCCL probe would have left. */
static struct shk_facts *known_nccl(const char *version)
{
    struct shk_facts *known = shk_facts_create();
    shk_facts_text(known, "nccl.version", version, "test");
    shk_facts_text(known, "nccl.path", "/l/libnccl.so.2", "test");
    shk_facts_present(known, "nccl.net_abi", json_pack("[i, i, i]", 6, 7, 8), NULL, "test");
    return known;
}

static const char *candidate(const struct shk_facts *facts, size_t i, const char *member)
{
    json_t *row = json_array_get(shk_facts_get_array(facts, "plugin.candidates"), i);
    json_t *value = json_object_get(row, member);
    return json_is_string(value) ? json_string_value(value)
           : json_is_true(value) ? "true"
           : json_is_null(value) ? "null"
                                 : "";
}

static const json_t *candidate_steps(const struct shk_facts *facts, size_t i)
{
    return chain_of(json_array_get(shk_facts_get_array(facts, "plugin.candidates"), i));
}

Test(plugin, search_order_on_a_capture)
{
    struct shk_facts *known = known_nccl("2.28.9");
    capture_environ(
        "{\"NCCL_NET_PLUGIN\": \"none-such,/p/old.so,ofi\", \"LD_LIBRARY_PATH\": \"/p\"}");
    capture_copy("l/libnccl.so.2", FAKES "/nccl/libnccl.so.2");
    capture_copy("p/old.so", FAKES "/too_old/libnccl-net.so");
    capture_copy("p/libnccl-net-ofi.so", FAKES "/good_v8/libnccl-net.so");
    capture_copy("usr/lib/libc.so.6", FAKES "/link_time_only/libshk-gone.so");
    capture_copy("opt/amazon/ofi-nccl/lib64/libnccl-net.so", FAKES "/good_v9/libnccl-net.so");
    struct shk_facts *facts = probe_facts(&shk_probe_plugin, capture_root, known, false, 0);
    static const struct {
        const char *name, *path, *considered;
    } rows[] = {
        {.name = "none-such", .path = "null", .considered = "true"},
        {.name = "libnccl-net-none-such.so", .path = "null", .considered = "true"},
        {.name = "/p/old.so", .path = "/p/old.so", .considered = "true"},
        {.name = "ofi", .path = "null", .considered = "true"},
        {.name = "libnccl-net-ofi.so", .path = "/p/libnccl-net-ofi.so", .considered = "true"},
        {.name = "/opt/amazon/ofi-nccl/lib64/libnccl-net.so",
         .path = "/opt/amazon/ofi-nccl/lib64/libnccl-net.so",
         .considered = ""},
    };
    size_t n = sizeof rows / sizeof rows[0];
    cr_assert_eq(json_array_size(shk_facts_get_array(facts, "plugin.candidates")), n, "%s",
                 fact_text(facts, "plugin.candidates"));
    for (size_t i = 0; i < n; i++) {
        cr_expect_str_eq(candidate(facts, i, "name"), rows[i].name);
        cr_expect_str_eq(candidate(facts, i, "path"), rows[i].path);
        cr_expect_str_eq(candidate(facts, i, "considered"), rows[i].considered);
    }
    cr_expect_str_eq(fact_text(facts, "plugin.requested"), "\"none-such,/p/old.so,ofi\"");
    cr_expect_str_eq(fact_text(facts, "plugin.chosen"), "\"/p/libnccl-net-ofi.so\"");
    cr_expect_str_eq(step_text(candidate_steps(facts, 2), "abi"),
                     "broken: exports net versions 4, 5, none of which the library accepts");
    cr_expect_str_eq(step_text(candidate_steps(facts, 4), "load"), "unknown: not tried");
    shk_facts_destroy(facts);
    shk_facts_destroy(known);
}

static void capture_link(const char *target, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", capture_root, name);
    cr_assert_eq(symlink(target, path), 0);
}

/* The file is there, and something is in the way: never "no such file". */
Test(plugin, states_of_a_file_are_told_apart)
{
    struct shk_facts *known = known_nccl("2.28.9");
    capture_environ("{\"NCCL_NET_PLUGIN\": "
                    "\"/p/dangling.so,/p/loop.so,/p/dir.so,/p/gone.so,/p/text.so,/p/cut.so,link\","
                    " \"LD_LIBRARY_PATH\": \"/q:/r\"}");
    capture_copy("l/libnccl.so.2", FAKES "/nccl/libnccl.so.2");
    capture_text("p/text.so", "GROUP ( libx.so )");
    capture_text("p/dir.so/readme", "");
    capture_link("nowhere.so", "p/dangling.so");
    capture_link("loop.so", "p/loop.so");
    capture_copy("p/cut.so", FAKES "/truncated/libnccl-net.so");
    capture_text("q/readme", "");
    capture_link("nowhere.so", "q/libnccl-net-link.so");
    capture_copy("r/libnccl-net-link.so", FAKES "/good_v8/libnccl-net.so");
    struct shk_facts *facts = probe_facts(&shk_probe_plugin, capture_root, known, false, 0);
    static const struct {
        const char *step, *text;
    } rows[] = {
        {"file", "broken: /p/dangling.so: a link to nowhere.so, which does not exist"},
        {"file", "broken: /p/loop.so: symbolic links in a circle"},
        {"format", "broken: /p/dir.so: a directory, not a file"},
        {"file", "broken: /p/gone.so: no such file"},
        {"format", "broken: /p/text.so: text file (\"GROUP ( libx.so )\"), not a shared object"},
        {"format", "broken: /p/cut.so: ELF file that is cut off"},
        {"file", "broken: link: no such file"},
        {"file", "ok: /r/libnccl-net-link.so (LD_LIBRARY_PATH) | passed over: "
                 "/q/libnccl-net-link.so: a link to nowhere.so, which does not exist"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *text = step_text(candidate_steps(facts, i), rows[i].step);
        cr_expect_eq(strncmp(text, rows[i].text, strlen(rows[i].text)), 0, "%zu: %s", i, text);
    }
    cr_expect_str_eq(candidate(facts, 5, "cut_off"), "true");
    shk_facts_destroy(facts);
    shk_facts_destroy(known);
}

Test(plugin, none_asks_for_nothing)
{
    struct shk_facts *known = known_nccl("2.28.9");
    capture_environ("{\"NCCL_NET_PLUGIN\": \"none\"}");
    struct shk_facts *facts = probe_facts(&shk_probe_plugin, capture_root, known, false, 0);
    cr_expect_str_eq(fact_text(facts, "plugin.candidates"), "[]");
    cr_expect_not_null(strstr(fact_text(facts, "plugin.requests"), "\"none\":true"));
    cr_expect_not_null(strstr(fact_text(facts, "plugin.chosen"), "absent: "));
    shk_facts_destroy(facts);
    shk_facts_destroy(known);
}

Test(plugin, a_capture_without_libraries_tells_nothing)
{
    struct shk_facts *known = known_nccl("2.28.9");
    capture_environ("{}");
    struct shk_facts *facts = probe_facts(&shk_probe_plugin, capture_root, known, false, 0);
    cr_expect_str_eq(fact_text(facts, "plugin.candidates"),
                     "failed: the capture holds no libraries");
    cr_expect_str_eq(fact_text(facts, "plugin.chosen"), "failed: the capture holds no libraries");
    shk_facts_destroy(facts);
    shk_facts_destroy(known);
}

Test(plugin, the_configuration_file_counts_as_well)
{
    struct shk_facts *known = known_nccl("2.20.5");
    shk_facts_text(known, "env.file.NCCL_NET_PLUGIN", "aws", "/etc/nccl.conf");
    capture_environ("{}");
    capture_put("etc/ld.so.cache", empty_cache, sizeof empty_cache - 1);
    struct shk_facts *facts = probe_facts(&shk_probe_plugin, capture_root, known, false, 0);
    cr_expect_str_eq(candidate(facts, 0, "name"), "libnccl-net-aws.so");
    cr_expect_not_null(
        strstr(fact_text(facts, "plugin.requests"), "\"source\":\"/etc/nccl.conf\""));
    shk_facts_destroy(facts);
    shk_facts_destroy(known);
}

Test(plugin, a_file_for_another_machine_in_the_search_path)
{
    struct shk_facts *known = known_nccl("2.28.9");
    capture_environ("{\"LD_LIBRARY_PATH\": \"/p\"}");
    capture_copy("l/libnccl.so.2", FAKES "/nccl/libnccl.so.2");
    capture_copy("p/libnccl-net.so", FAKES "/wrong_machine/libnccl-net.so");
    struct shk_facts *facts = probe_facts(&shk_probe_plugin, capture_root, known, false, 0);
    cr_expect_str_eq(candidate(facts, 0, "passed_over"), "/p/libnccl-net.so");
    cr_expect_not_null(strstr(step_text(candidate_steps(facts, 0), "format"),
                              "the loader silently passes over such a file"));
    shk_facts_destroy(facts);
    shk_facts_destroy(known);
}

Test(plugin, rccl_has_its_own_names)
{
    struct shk_facts *known = shk_facts_create();
    shk_facts_text(known, "rccl.version", "2.18.3", "test");
    shk_facts_text(known, "rccl.path", "/l/librccl.so.1", "test");
    capture_environ("{}");
    capture_put("etc/ld.so.cache", empty_cache, sizeof empty_cache - 1);
    struct shk_facts *facts = probe_facts(&shk_probe_plugin, capture_root, known, false, 0);
    cr_expect_str_eq(candidate(facts, 0, "name"), "librccl-net.so");
    cr_expect_str_eq(candidate(facts, 0, "owner"), "rccl");
    cr_expect_eq(json_array_size(shk_facts_get_array(facts, "plugin.candidates")), 1);
    shk_facts_destroy(facts);
    shk_facts_destroy(known);
}

Test(plugin, live_probe_tries_what_is_asked_for)
{
    setenv("NCCL_NET_PLUGIN", FAKES "/good_v8/libnccl-net.so," FAKES "/segv_init/libnccl-net.so",
           1);
    struct shk_facts *known = known_nccl("2.28.9");
    struct shk_facts *facts = probe_facts(&shk_probe_plugin, NULL, known, false, 0);
    cr_expect_eq(strncmp(step_text(candidate_steps(facts, 0), "loopback"), "ok: ", 4), 0, "%s",
                 step_text(candidate_steps(facts, 0), "loopback"));
    cr_expect_not_null(strstr(step_text(candidate_steps(facts, 1), "init"), "died of SIGSEGV"));
    cr_expect_str_eq(fact_text(facts, "plugin.chosen"), "\"" FAKES "/good_v8/libnccl-net.so\"");
    shk_facts_destroy(facts);
    shk_facts_destroy(known);
}

Test(plugin, sizes_of_the_interface)
{
    cr_expect_eq(shk_ncclnet_size(6), 17 * sizeof(void *));
    cr_expect_eq(shk_ncclnet_size(8), 19 * sizeof(void *));
    cr_expect_eq(shk_ncclnet_size(12), 22 * sizeof(void *));
    cr_expect_eq(shk_ncclnet_size(5), 0);
    cr_expect_eq(shk_ncclnet_size(13), 0);
    cr_expect_str_eq(shk_nccl_result_name(2), "ncclSystemError");
    cr_expect_str_eq(shk_nccl_result_name(-1), "unknown result");
    cr_expect_str_eq(shk_nccl_result_name(8), "unknown result");
}
