/* Probes that share a child: all answers arrive, and one that crashes or hangs costs the others
 * nothing. */
#include "probes/run/run_private.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

TestSuite(batch, .timeout = 60);

static int fine(struct shk_probe_context *ctx, struct shk_error *err)
{
    (void)err;
    return shk_facts_int(ctx->facts, "shm.size", (long long)getpid(), NULL, "test");
}

static int fails(struct shk_probe_context *ctx, struct shk_error *err)
{
    (void)shk_facts_int(ctx->facts, "shm.free", 1, NULL, "test");
    return shk_error_set(err, EIO, "the disk is gone");
}

static int dies(struct shk_probe_context *ctx, struct shk_error *err)
{
    (void)ctx, (void)err;
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
    return 0;
}

static int hangs(struct shk_probe_context *ctx, struct shk_error *err)
{
    (void)ctx, (void)err;
    while (pause() < 0)
        continue;
    return 0;
}

static const struct shk_probe probes[] = {
    {.name = "fine", .run = fine},
    {.name = "fails", .run = fails},
    {.name = "other", .run = fine},
    {.name = "dies", .run = dies},
    {.name = "hangs", .run = hangs},
    {.name = "apart", .run = fine, .apart = true},
    {.name = "here", .run = fine, .derives = true},
    {.name = "not here", .run = fails, .derives = true},
};
enum { FINE, FAILS, OTHER, DIES, HANGS, APART, HERE, NOT_HERE, COUNT };

static json_int_t pid_of(const struct shk_isolate_result *result)
{
    const json_t *facts = json_object_get(result->result, "facts");
    return json_integer_value(json_object_get(json_object_get(facts, "shm.size"), "value"));
}

static void run(const int *which, size_t n, struct shk_isolate_result *results)
{
    struct run_unit units[COUNT];
    struct shk_host *host = NULL;
    struct shk_error err = {""};
    cr_assert_eq(shk_host_open(&host, NULL, &err), 0, "%s", err.text);
    for (size_t i = 0; i < n; i++)
        units[i] = (struct run_unit){.probe = &probes[which[i]],
                                     .host = host,
                                     .deadline_ms = which[i] == HANGS ? 300 : 20000,
                                     .apart = probes[which[i]].apart};
    cr_assert_eq(run_units(units, results, n, &err), 0, "%s", err.text);
    shk_host_close(host);
}

Test(batch, together)
{
    static const int which[] = {FINE, FAILS, OTHER, APART};
    struct shk_isolate_result r[4] = {{.code = 0}};
    run(which, 4, r);
    cr_expect_eq(r[0].outcome, SHK_CHILD_OK);
    cr_expect_eq(r[1].outcome, SHK_CHILD_FAILED);
    cr_expect_str_eq(r[1].error.text, "the disk is gone");
    cr_expect_not_null(r[1].result, "facts from before the error are kept");
    cr_expect_eq(r[2].outcome, SHK_CHILD_OK);
    cr_expect_eq(r[3].outcome, SHK_CHILD_OK);
    cr_expect_neq(pid_of(&r[3]), pid_of(&r[0]), "apart means a child of its own");
    for (int i = 0; i < 4; i++)
        shk_isolate_result_clear(&r[i]);
}

Test(batch, what_only_derives_has_no_child)
{
    static const int which[] = {HERE, FINE, NOT_HERE, DIES};
    struct shk_isolate_result r[4] = {{.code = 0}};
    run(which, 4, r);
    cr_expect_eq(r[0].outcome, SHK_CHILD_OK);
    cr_expect_eq(pid_of(&r[0]), (json_int_t)getpid());
    cr_expect_eq(r[1].outcome, SHK_CHILD_OK);
    cr_expect_neq(pid_of(&r[1]), (json_int_t)getpid());
    cr_expect_eq(r[2].outcome, SHK_CHILD_FAILED);
    cr_expect_str_eq(r[2].error.text, "the disk is gone");
    cr_expect_eq(r[3].outcome, SHK_CHILD_SIGNALED);
    for (int i = 0; i < 4; i++)
        shk_isolate_result_clear(&r[i]);
}

Test(batch, one_dies)
{
    static const int which[] = {FINE, DIES, OTHER};
    struct shk_isolate_result r[3] = {{.code = 0}};
    run(which, 3, r);
    cr_expect_eq(r[0].outcome, SHK_CHILD_OK);
    cr_expect_eq(r[1].outcome, SHK_CHILD_SIGNALED);
    cr_expect_eq(r[1].code, SIGSEGV);
    cr_expect_eq(r[2].outcome, SHK_CHILD_OK);
    for (int i = 0; i < 3; i++)
        shk_isolate_result_clear(&r[i]);
}

Test(batch, one_hangs)
{
    static const int which[] = {HANGS, FINE};
    struct shk_isolate_result r[2] = {{.code = 0}};
    run(which, 2, r);
    cr_expect_eq(r[0].outcome, SHK_CHILD_TIMEOUT);
    cr_expect_eq(r[1].outcome, SHK_CHILD_OK);
    for (int i = 0; i < 2; i++)
        shk_isolate_result_clear(&r[i]);
}
