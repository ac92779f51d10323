/* A build without a CUDA compiler: linked with the image that such a build has, none. */
#include "collectives/gpu/gpu.h"
#include "collectives/layers.h"
#include "core/facts/facts.h"
#include "tests/unit/collectives/gpu_measure.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const cuda[] = {SHK_BUILD_DIR "/tests/fakes/gpu/libcuda.so.1", NULL};
static const char *const nccl[] = {SHK_BUILD_DIR "/tests/fakes/gpu/libnccl.so.2", NULL};

static const char *text(const struct shk_facts *facts, const char *layer, const char *member)
{
    char key[64];
    const char *value = NULL;

    snprintf(key, sizeof(key), "collective.%s.%s", layer, member);
    value = shk_facts_get_text(facts, key);
    return value != NULL ? value : "";
}

/* What needs our kernels does not apply and says why; NCCL is run and verified on the host. */
Test(no_kernels, layers, .timeout = 600)
{
    static const char *const own[] = {"peer", "lsa", "multimem"};
    const struct shk_gpu_tweaks tweaks = {.driver_names = cuda, .nccl_names = nccl};
    const struct shk_collective_options options = {
        .ranks = 3, .min_bytes = 8, .max_bytes = 1024, .deadline_ms = 60000, .brief = true};
    struct shk_measure measure = {.run = gpu_measure, .arg = (void *)&tweaks};
    struct shk_facts *facts = shk_facts_create();
    struct shk_error err = {{0}};
    size_t i = 0;

    setenv("SHK_FAKE_GPUS", "3", 1);
    setenv("SHK_FAKE_MULTICAST", "1", 1);
    cr_assert_eq(shk_layers_run(&options, &measure, facts, &err), 0, "%s", err.text);
    for (i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        cr_expect_str_eq(text(facts, own[i], "status"), "na", "%s: %s", own[i],
                         text(facts, own[i], "status"));
        cr_expect_not_null(strstr(text(facts, own[i], "reason"), "without a CUDA compiler"), "%s",
                           text(facts, own[i], "reason"));
    }
    cr_expect_str_eq(text(facts, "nccl", "status"), "ok", "%s", text(facts, "nccl", "reason"));
    cr_expect_str_eq(text(facts, "nccl-window", "status"), "ok", "%s",
                     text(facts, "nccl-window", "reason"));
    cr_expect_gt(json_array_size(shk_facts_get_array(facts, "collective.nccl.sizes")), 1);
    shk_facts_destroy(facts);
}
