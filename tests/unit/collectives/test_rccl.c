/* RCCL on HIP against stand-in libraries: each fault has its name, as with NCCL on CUDA. */
#include "collectives/gpu/gpu.h"
#include "core/facts/facts.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAKE(name_) SHK_BUILD_DIR "/tests/fakes/" name_

static const char *const hip[] = {FAKE("gpu/libamdhip64.so"), NULL};
static const char *const hip_old[] = {FAKE("gpu_old/libamdhip64.so"), NULL};
static const char *const rccl[] = {FAKE("gpu/librccl.so.1"), NULL};
static const char *const rccl_old[] = {FAKE("gpu_old/librccl.so.1"), NULL};
static const char *const missing[] = {"libshk-there-is-no-such-library.so.1", NULL};

struct fault {
    const char *const *driver;
    const char *const *library;
    const char *variable, *value;
    const char *status, *cause, *reason;
};

static const char *text(const struct shk_facts *facts, const char *member)
{
    char key[64];
    const char *value = NULL;

    snprintf(key, sizeof(key), "collective.rccl.%s", member);
    value = shk_facts_get_text(facts, key);
    return value != NULL ? value : "";
}

static struct shk_facts *run_with(const struct shk_gpu_tweaks *tweaks, unsigned deadline_ms)
{
    const struct shk_collective_options options = {
        .ranks = 2, .min_bytes = 8, .max_bytes = 1024, .deadline_ms = deadline_ms, .brief = true};
    struct shk_facts *facts = shk_facts_create();
    struct shk_error err = {{0}};

    cr_assert_eq(shk_gpu_run(&shk_transport_rccl, &options, tweaks, facts, &err), 0, "%s",
                 err.text);
    return facts;
}

static void expect(const struct shk_facts *facts, const char *status, const char *cause,
                   const char *reason)
{
    cr_expect_str_eq(text(facts, "status"), status, "%s %s: %s: %s", status, reason,
                     text(facts, "status"), text(facts, "reason"));
    cr_expect_str_eq(text(facts, "cause"), cause, "%s: %s", reason, text(facts, "cause"));
    cr_expect_not_null(strstr(text(facts, "reason"), reason), "%s: %s", reason,
                       text(facts, "reason"));
}

static const struct fault faults[] = {
    {missing, rccl, NULL, NULL, "na", "", "libshk-there-is-no-such-library"},
    {hip, missing, NULL, NULL, "na", "", "libshk-there-is-no-such-library"},
    {hip_old, rccl, NULL, NULL, "failed", "driver-old", "hipGraphInstantiateWithFlags"},
    {hip, rccl_old, NULL, NULL, "failed", "nccl-error", "ncclAllReduce"},
    {hip, rccl, "SHK_FAKE_FAULT", "init", "failed", "driver-mismatch", "error 803"},
    {hip, rccl, "SHK_FAKE_FAULT", "no-device", "na", "", "no GPU on this node"},
    {hip, rccl, "SHK_FAKE_FAULT", "memory", "failed", "nccl-error", "ncclMemAlloc"},
    {hip, rccl, "HIP_VISIBLE_DEVICES", "", "failed", "visible-devices", "HIP_VISIBLE_DEVICES="},
    {hip, rccl, "HIP_VISIBLE_DEVICES", "0", "na", "", "1 GPU is visible"},
    {hip, rccl, "SHK_FAKE_NCCL_FAULT", "init", "failed", "nccl-error", "socket interface"},
    {hip, rccl, "SHK_FAKE_NCCL_FAULT", "corrupt", "wrong", "wrong-result", "with RCCL 2."},
    {hip, rccl, "SHK_FAKE_NCCL_FAULT", "narrow", "wrong", "wrong-result", "instead of"},
    {hip, rccl, "SHK_FAKE_NCCL_FAULT", "crash", "crashed", "rank-ended", "rank 1"},
};

Test(rccl, every_fault_has_its_name, .timeout = 1200)
{
    size_t i = 0;

    for (i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        const struct fault *fault = &faults[i];
        const struct shk_gpu_tweaks tweaks = {.driver_names = fault->driver,
                                              .nccl_names = fault->library};
        struct shk_facts *facts = NULL;

        if (fault->variable != NULL) {
            setenv(fault->variable, fault->value, 1);
        }
        facts = run_with(&tweaks, 60000);
        expect(facts, fault->status, fault->cause, fault->reason);
        if (fault->variable != NULL) {
            unsetenv(fault->variable);
        }
        shk_facts_destroy(facts);
    }
}

Test(rccl, hang_ends_at_the_deadline, .timeout = 300)
{
    const struct shk_gpu_tweaks tweaks = {.driver_names = hip, .nccl_names = rccl};
    struct shk_facts *facts = NULL;

    setenv("SHK_FAKE_NCCL_FAULT", "hang", 1);
    facts = run_with(&tweaks, 10000);
    expect(facts, "timeout", "all-hang", "ncclCommInitRank");
    shk_facts_destroy(facts);
}

/* What only one rank has. */
static void set_on_rank_1(struct shk_job *job, enum shk_phase phase, void *arg)
{
    const char *const *setting = arg;

    if (phase == SHK_PHASE_START && shk_job_rank(job) == 1) {
        setenv(setting[0], setting[1], 1);
    }
}

Test(rccl, ranks_that_differ, .timeout = 600)
{
    static const char *settings[][2] = {{"SHK_FAKE_NCCL_VERSION", "22203"},
                                        {"HIP_VISIBLE_DEVICES", "1,0"}};
    struct shk_gpu_tweaks tweaks = {
        .driver_names = hip, .nccl_names = rccl, .at_phase = set_on_rank_1};
    struct shk_facts *facts = NULL;

    tweaks.arg = settings[0];
    facts = run_with(&tweaks, 60000);
    expect(facts, "failed", "nccl-versions", "2.22.3 at rank 1");
    shk_facts_destroy(facts);

    tweaks.arg = settings[1];
    facts = run_with(&tweaks, 60000);
    expect(facts, "failed", "same-gpu", "ranks 0 and 1 both use GPU");
    shk_facts_destroy(facts);
}
