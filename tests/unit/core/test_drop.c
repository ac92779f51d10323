/* What a child may still do when it has given up its rights. */
#include "core/run/drop.h"
#include "core/run/isolate.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

/* Opens a file, gives up its rights, and says what then works. */
static int drop_run(void *arg, json_t **result_p, struct shk_error *err)
{
    char byte = 0;
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    (void)arg;
    int rc = shk_drop_rights(5, err);
    if (rc)
        return rc;
    bool reads = pread(fd, &byte, 1, 0) == 1;
    bool opens = open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0;
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    *result_p = json_pack("{s:b,s:b,s:b,s:i}", "reads", (int)reads, "opens", (int)opens, "forks",
                          child >= 0 && getuid() != 0, "user", (int)geteuid());
    return 0;
}

Test(drop, keeps_what_is_open_and_nothing_else)
{
    struct shk_isolate_job job = {.name = "drop", .fn = drop_run, .deadline_ms = 10000};
    struct shk_isolate_result result = {0};
    struct shk_error err = {""};
    cr_assert_eq(shk_isolate_run(&job, &result, 1, 1, &err), 0, "%s", err.text);
    cr_assert_eq(result.outcome, SHK_CHILD_OK, "%s", result.error.text);
    cr_expect(json_is_true(json_object_get(result.result, "reads")));
    cr_expect(json_is_false(json_object_get(result.result, "opens")));
    cr_expect(json_is_false(json_object_get(result.result, "forks")));
    cr_expect_neq(json_integer_value(json_object_get(result.result, "user")), 0);
    shk_isolate_result_clear(&result);
}

/* Mounts need the right that goes; files do not. */
static int drop_admin_run(void *arg, json_t **result_p, struct shk_error *err)
{
    (void)arg, (void)err;
    bool before = unshare(CLONE_NEWNS) == 0;
    uid_t user = geteuid();
    shk_drop_admin();
    bool after = unshare(CLONE_NEWNS) == 0;
    int again = errno;
    bool opens = open("/proc/1/status", O_RDONLY | O_CLOEXEC) >= 0;
    *result_p = json_pack("{s:b,s:b,s:b,s:b}", "before", (int)before, "refused",
                          !after && again == EPERM, "opens", (int)opens, "same", geteuid() == user);
    return 0;
}

Test(drop, administers_no_longer_and_reads_as_before)
{
    struct shk_isolate_job job = {.name = "admin", .fn = drop_admin_run, .deadline_ms = 10000};
    struct shk_isolate_result result = {0};
    struct shk_error err = {""};
    cr_assert_eq(shk_isolate_run(&job, &result, 1, 1, &err), 0, "%s", err.text);
    cr_assert_eq(result.outcome, SHK_CHILD_OK, "%s", result.error.text);
    if (!json_is_true(json_object_get(result.result, "before")))
        cr_log_warn("without the right from the start: nothing was taken away");
    cr_expect(json_is_true(json_object_get(result.result, "refused")));
    cr_expect(json_is_true(json_object_get(result.result, "opens")));
    cr_expect(json_is_true(json_object_get(result.result, "same")));
    shk_isolate_result_clear(&result);
}
