#include "collectives/fabric/fabric_private.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *busy_text(int errnum)
{
    (void)errnum;
    return "busy";
}

Test(leftover, busy_shm_provider_names_the_file)
{
    struct fi_fabric_attr attr = {.prov_name = (char[]){"shm"}};
    struct fi_info info = {.fabric_attr = &attr};
    struct fabric_lib lib = {.api = {.strerror = busy_text}};
    struct shk_error err = {{0}};
    char name[64];
    int fd = 0;

    cr_expect_eq(fabric_ep_error(&lib, &info, "fi_enable", -FI_EBUSY, &err), -FI_EBUSY);
    snprintf(name, sizeof(name), "/dev/shm/%d:%u:0", (int)getpid(), (unsigned)geteuid());
    cr_expect_not_null(strstr(err.text, name), "%s", err.text);
    cr_expect_not_null(strstr(err.text, "run again"), "%s", err.text);
    fd = open(name, O_CREAT | O_EXCL | O_WRONLY, 0600);
    cr_assert_geq(fd, 0);
    (void)fabric_ep_error(&lib, &info, "fi_enable", -FI_EBUSY, &err);
    (void)unlink(name);
    close(fd);
    cr_expect_not_null(strstr(err.text, "remove it"), "%s", err.text);

    (void)fabric_ep_error(&lib, &info, "fi_enable", -FI_ENOMEM, &err);
    cr_expect_str_eq(err.text, "fi_enable: busy");
    attr.prov_name = (char[]){"cxi"};
    (void)fabric_ep_error(&lib, &info, "fi_enable", -FI_EBUSY, &err);
    cr_expect_str_eq(err.text, "fi_enable: busy");
}

Test(leftover, death_in_phase_open_names_the_file_of_the_rank)
{
    struct shk_crew_rank ranks[2] = {{.id = 0, .pid = 77}, {.id = 1, .pid = 7}};
    struct shk_crew_result result = {
        .outcome = SHK_CREW_CRASHED, .rank = 1, .phase = "open", .ranks = ranks};
    struct shk_job *job = NULL;
    struct shk_error err = {{0}};
    char dir[] = "/tmp/shk-leftover-XXXXXX";
    char name[64];

    cr_assert_not_null(mkdtemp(dir));
    cr_assert_eq(shk_job_create(&job, 2, 0, &err), 0);
    (void)shk_error_set(&result.reason, 5, "killed by SIGBUS");
    cr_expect_not(fabric_leftover(dir, job, &result));
    snprintf(name, sizeof(name), "%s/777:0:0", dir);
    close(open(name, O_CREAT | O_WRONLY, 0600));
    cr_expect_not(fabric_leftover(dir, job, &result), "another process's number");
    unlink(name);
    snprintf(name, sizeof(name), "%s/7:0:0", dir);
    close(open(name, O_CREAT | O_WRONLY, 0600));
    snprintf(result.phase, sizeof(result.phase), "connect");
    cr_expect_not(fabric_leftover(dir, job, &result), "the endpoint was open");
    snprintf(result.phase, sizeof(result.phase), "open");
    result.outcome = SHK_CREW_FAILED;
    cr_expect_not(fabric_leftover(dir, job, &result), "the rank itself said why");
    result.outcome = SHK_CREW_CRASHED;
    cr_expect(fabric_leftover(dir, job, &result));
    cr_expect_not_null(strstr(result.reason.text, name), "%s", result.reason.text);
    cr_expect_not_null(strstr(result.reason.text, "killed by SIGBUS"), "%s", result.reason.text);
    snprintf(name, sizeof(name), "%s/77:0:0", dir); /* of rank 0; rank 1 is to blame */
    close(open(name, O_CREAT | O_WRONLY, 0600));
    (void)shk_error_set(&result.reason, 5, "killed by SIGBUS");
    cr_expect(fabric_leftover(dir, job, &result));
    cr_expect_not_null(strstr(result.reason.text, "/7:0:0"), "%s", result.reason.text);
    unlink(name);
    snprintf(name, sizeof(name), "%s/7:0:0", dir);
    unlink(name);
    rmdir(dir);
    cr_expect_not(fabric_leftover(dir, job, &result), "no such folder");
    shk_job_destroy(job);
}
