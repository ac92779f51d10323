/* NVSHMEM with one PE against stand-in libraries, whole and with one fault. */
#include "collectives/nvshmem.h"
#include "core/facts.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#define FAKE(case_) SHK_BUILD_DIR "/tests/fakes/" case_ "/libnvshmem_host.so.3"

struct fault_case {
    const char *library, *status, *phase, *reason;
};

static const struct fault_case faults[] = {
    {FAKE("nvshmem_one"), "ok", "", ""},
    {FAKE("nvshmem_one_init_exit"), "failed", "", "nvshmemx_hostlib_init_attr"},
    {FAKE("nvshmem_one_init_hang"), "timeout", "", "nvshmemx_hostlib_init_attr"},
    {FAKE("nvshmem_one_no_heap"), "failed", "register", "no symmetric memory"},
    {FAKE("nvshmem_one_no_pointer"), "failed", "register", "nvshmem_ptr"},
    {FAKE("nvshmem_one_put_segv"), "crashed", "", "nvshmem_putmem of 8 B"},
    {FAKE("nvshmem_one_put_loses"), "wrong", "teardown", "3 bytes"},
    {FAKE("nvshmem_one_no_gpu"), "na", "", "cuInit: error 100"},
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

static struct shk_facts *run_with(const char *library)
{
    const char *const names[] = {library, NULL};
    const struct shk_nvshmem_tweaks tweaks = {.names = names, .driver_names = names};
    const struct shk_collective_options options = {.ranks = 2, .deadline_ms = 3000};
    struct shk_facts *facts = shk_facts_create();
    struct shk_error err = {{0}};

    cr_assert_eq(shk_nvshmem_run(&options, &tweaks, facts, &err), 0, "%s", err.text);
    return facts;
}

Test(nvshmem, faults)
{
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        const struct fault_case *c = &faults[i];
        struct shk_facts *facts = run_with(c->library);

        cr_expect_str_eq(text_of(facts, "status"), c->status, "%s: %s: %s", c->library,
                         text_of(facts, "status"), text_of(facts, "reason"));
        cr_expect_str_eq(text_of(facts, "phase"), c->phase, "%s", c->library);
        cr_expect(strstr(text_of(facts, "reason"), c->reason) != NULL, "%s: %s", c->library,
                  text_of(facts, "reason"));
        cr_expect_eq(strcmp(c->status, "ok") == 0, text_of(facts, "self")[0] != '\0', "%s",
                     c->library);
        shk_facts_destroy(facts);
    }
}

Test(nvshmem, figures)
{
    struct shk_facts *facts = run_with(FAKE("nvshmem_one"));
    json_t *sizes = shk_facts_get_array(facts, "collective.nvshmem.sizes");

    cr_expect_str_eq(text_of(facts, "version"), "3.4.5");
    cr_expect_eq(json_array_size(sizes), 3);
    cr_expect_gt(json_number_value(json_object_get(json_array_get(sizes, 2), "time_us")), 0.0);
    cr_expect_eq(json_integer_value(json_object_get(json_array_get(sizes, 2), "wrong")), 0);
    shk_facts_destroy(facts);
}
