/* NVSHMEM with several PEs against stand-in libraries, whole and with one fault. */
#include "collectives/other/nvshmem.h"
#include "core/facts/facts.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAKE(case_) SHK_BUILD_DIR "/tests/fakes/" case_ "/libnvshmem_host.so.3"

struct fault_case {
    const char *library, *status, *phase, *reason;
};

static const struct fault_case faults[] = {
    {FAKE("nvshmem_pes"), "ok", "", ""},
    {FAKE("nvshmem_pes_init_exit"), "crashed", "open",
     "exited by itself with status 255 in phase open"},
    {FAKE("nvshmem_pes_init_hang"), "timeout", "open", "nvshmemx_hostlib_init_attr"},
    {FAKE("nvshmem_pes_alone"), "failed", "open", "NVSHMEM says PE 0 of 1"},
    {FAKE("nvshmem_pes_no_heap"), "failed", "register", "no symmetric memory"},
    {FAKE("nvshmem_pes_asymmetric"), "failed", "register", "heap is not symmetric"},
    {FAKE("nvshmem_pes_no_pointer"), "failed", "register", "nvshmem_ptr of the PE itself"},
    {FAKE("nvshmem_pes_no_peer"), "failed", "exchange", "cannot be reached by load and store"},
    {FAKE("nvshmem_pes_elsewhere"), "failed", "exchange", "leads elsewhere"},
    {FAKE("nvshmem_pes_put_segv"), "crashed", "verify", "nvshmem_putmem of 8 B"},
    {FAKE("nvshmem_pes_put_loses"), "wrong", "verify", "6 bytes"},
    {FAKE("nvshmem_pes_put_self"), "wrong", "verify", "did not arrive"},
    {FAKE("nvshmem_pes_no_gpu"), "na", "", "cuInit: error 100"},
    {FAKE("nvshmem"), "na", "", "nvshmemx_vendor_get_version_info"}, /* strings, no functions */
    {"libshk-there-is-no-such-library.so.3", "na", "", "libshk-there-is-no-such-library"},
};

static const char *text_of(const struct shk_facts *facts, const char *member)
{
    char key[64];
    const char *value = NULL;

    snprintf(key, sizeof(key), "collective.nvshmem.%s", member);
    value = shk_facts_get_text(facts, key);
    return value != NULL ? value : "";
}

static struct shk_facts *run_with(const char *library, unsigned ranks, unsigned deadline_ms)
{
    const char *const names[] = {library, NULL};
    const struct shk_nvshmem_tweaks tweaks = {.names = names, .driver_names = names};
    const struct shk_collective_options options = {.ranks = ranks, .deadline_ms = deadline_ms};
    struct shk_facts *facts = shk_facts_create();
    struct shk_error err = {{0}};

    cr_assert_eq(shk_nvshmem_run(&options, &tweaks, facts, &err), 0, "%s", err.text);
    return facts;
}

Test(nvshmem, faults, .timeout = 1200)
{
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        const struct fault_case *c = &faults[i];
        bool hangs = strcmp(c->status, "timeout") == 0;
        struct shk_facts *facts = run_with(c->library, 2, hangs ? 12000 : 60000);
        const char *reason = text_of(facts, "reason");

        cr_expect_str_eq(text_of(facts, "status"), c->status, "%s: %s: %s", c->library,
                         text_of(facts, "status"), reason);
        cr_expect(strncmp(text_of(facts, "phase"), c->phase, strlen(c->phase)) == 0 &&
                      (*c->phase != '\0') == (text_of(facts, "phase")[0] != '\0'),
                  "%s: phase %s", c->library, text_of(facts, "phase"));
        cr_expect_not_null(strstr(reason, c->reason), "%s: %s", c->library, reason);
        if (strstr(c->library, "init_exit") != NULL) {
            cr_expect_eq(shk_facts_get_int(facts, "collective.nvshmem.rank", -1), 1);
            cr_expect_not_null(strstr(text_of(facts, "output"), "setup connections failed"));
        }
        cr_expect_eq(strcmp(c->status, "ok") == 0, text_of(facts, "self")[0] != '\0', "%s",
                     c->library);
        shk_facts_destroy(facts);
    }
}

/* As many PEs as ranks are asked for, but no more than GPUs. */
Test(nvshmem, figures, .timeout = 600)
{
    static const struct {
        unsigned ranks;
        const char *gpus, *self;
        int pes;
    } cases[] = {{4, "4", "4 PEs", 4}, {3, "2", "2 PEs", 2}, {2, "1", "1 PE: ", 1}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct shk_facts *facts = NULL;
        json_t *sizes = NULL;
        json_t *row = NULL;
        size_t k = 0;

        setenv("SHK_FAKE_GPUS", cases[i].gpus, 1);
        facts = run_with(FAKE("nvshmem_pes"), cases[i].ranks, 60000);
        sizes = shk_facts_get_array(facts, "collective.nvshmem.sizes");
        cr_expect_str_eq(text_of(facts, "status"), "ok", "%s", text_of(facts, "reason"));
        cr_expect_str_eq(text_of(facts, "version"), "3.4.5");
        cr_expect_eq(shk_facts_get_int(facts, "collective.nvshmem.ranks", -1), cases[i].pes);
        cr_expect(strncmp(text_of(facts, "self"), cases[i].self, strlen(cases[i].self)) == 0, "%s",
                  text_of(facts, "self"));
        cr_expect_eq(json_array_size(sizes), 3);
        json_array_foreach(sizes, k, row)
        {
            cr_expect_gt(json_number_value(json_object_get(row, "time_us")), 0.0);
            cr_expect_eq(json_integer_value(json_object_get(row, "wrong")), 0);
        }
        shk_facts_destroy(facts);
    }
}
