/* How many GPUs the driver shows: from the facts where they have it, else from the driver. */
#include "collectives/collective.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdlib.h>

/* A stand-in with three GPUs is what a child that asks for libcuda.so.1 gets. */
static void driver_of_three(void)
{
    cr_assert_not_null(dlopen(SHK_BUILD_DIR "/tests/fakes/gpu/libcuda.so.1", RTLD_NOW));
    setenv("SHK_FAKE_GPUS", "3", 1);
}

static struct shk_facts *facts_of(int devices, bool answers)
{
    struct shk_facts *facts = shk_facts_create();
    json_t *rows = json_array();

    for (int i = 0; i < devices; i++) {
        json_array_append_new(rows, json_pack("{s:i}", "index", i));
    }
    cr_assert_eq(shk_facts_present(facts, "cuda.devices", rows, NULL, "test"), 0);
    cr_assert_eq(answers ? shk_facts_absent(facts, "cuda.error", "test", "it answers")
                         : shk_facts_present(facts, "cuda.error", json_pack("{s:i}", "code", 101),
                                             NULL, "test"),
                 0);
    return facts;
}

static unsigned visible(struct shk_facts *facts)
{
    unsigned count = shk_gpus_visible(facts);

    shk_facts_destroy(facts);
    return count;
}

Test(visible, as_the_probe_found_them)
{
    driver_of_three();
    cr_expect_eq(visible(facts_of(2, true)), 2);
    cr_expect_eq(visible(facts_of(8, true)), 8);
}

Test(visible, the_driver_is_asked_where_the_facts_do_not_tell)
{
    struct shk_facts *unread = shk_facts_create();

    driver_of_three();
    cr_expect_eq(shk_gpus_visible(NULL), 3);
    cr_expect_eq(visible(shk_facts_create()), 3, "no probe ran");
    cr_expect_eq(shk_facts_failed(unread, "cuda.devices", "test", "not asked in a quick run"), 0);
    cr_expect_eq(visible(unread), 3, "not read");
    cr_expect_eq(visible(facts_of(0, true)), 3, "none: there may be GPUs of another kind");
    cr_expect_eq(visible(facts_of(2, false)), 3, "one has no row");
    cr_expect_eq(visible(facts_of(64, true)), 3, "as many as there are rows at most");
    setenv("SHAKEDOWN_CUDA", "/somewhere/libcuda.so.1", 1);
    cr_expect_eq(visible(facts_of(2, true)), 3, "another library than the one that ranks load");
}
