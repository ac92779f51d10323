/* What `shakedown hang` reads of a process: its variables, and which builds of libraries it has
 * loaded. */
#include "libs_support.h"
#include "probes/hang/hang_private.h"
#include "probes/library/elf.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct shk_name_set *names(void)
{
    struct shk_name_set *set = shk_name_set_create();
    const struct shk_name_rule rule = {.name = "XY_", .family = "nccl", .prefix = true};
    cr_assert_not_null(set);
    cr_assert_eq(shk_name_set_add(set, &rule), 0);
    return set;
}

static const char *value_of(const struct hang_process *process, const char *name)
{
    return json_string_value(json_object_get(process->environment, name));
}

Test(hang_files, variables_of_a_process)
{
    static const char text[] = "XY_A=1\0HOME=/root\0XY_A=2\0XY_EMPTY=\0XY_TOKEN=hunter2hunter2\0"
                               "=x\0XY_B C=3\0XY_NONE\0XY_LAST=end";
    struct shk_name_set *set = names();
    struct hang_process process = {0};
    hang_environment_parse(text, sizeof text - 1, set, &process);
    cr_expect_str_eq(value_of(&process, "XY_A"), "1");
    cr_expect_str_eq(value_of(&process, "XY_EMPTY"), "");
    cr_expect_str_eq(value_of(&process, "XY_LAST"), "end");
    cr_expect_eq(json_object_size(process.environment), 3);
    cr_expect_eq(json_array_size(process.withheld), 1);
    json_decref(process.environment);
    json_decref(process.withheld);
    shk_name_set_destroy(set);
}

Test(hang_files, a_process_that_may_not_be_read_has_no_variables)
{
    struct shk_name_set *set = names();
    struct hang_process process = {.pid = 1 << 30, .state = 'S'};
    struct shk_host *host = NULL;
    cr_assert_eq(shk_host_open(&host, NULL, NULL), 0);
    hang_environment(host, set, &process);
    cr_expect(process.unreadable);
    cr_expect_null(process.environment);
    shk_host_close(host);
    shk_name_set_destroy(set);
}

Test(hang_files, the_fingerprint_of_a_library)
{
    struct shk_elf *elf = NULL;
    char id[SHK_ELF_BUILD_ID] = "";
    int fd = open(FAKES "/with_build_id/libnccl-net.so", O_RDONLY | O_CLOEXEC);
    cr_assert_geq(fd, 0);
    cr_assert_eq(shk_elf_open_fd(&elf, fd, "a library", NULL), 0);
    cr_expect(shk_elf_build_id(elf, id));
    cr_expect_str_eq(id, "0123456789abcdef");
    shk_elf_close(elf);
}

Test(hang_files, what_is_no_library_is_refused)
{
    struct shk_elf *elf = NULL;
    struct shk_error err = {""};
    int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    cr_assert_geq(fd, 0);
    cr_expect_lt(shk_elf_open_fd(&elf, fd, "a library", &err), 0);
    cr_expect_null(elf);
    cr_expect_lt(fcntl(fd, F_GETFD), 0, "the file is closed");
}

static struct hang_maps maps_of(const char *line)
{
    struct hang_maps maps = {0};
    char *text = strdup(line);
    cr_assert_not_null(text);
    cr_assert_eq(hang_maps_parse(text, &maps), 0);
    free(text);
    return maps;
}

Test(hang_files, a_file_that_took_the_place_of_another)
{
    static const char *const wanted[] = {"libnccl", NULL};
    struct hang_maps maps =
        maps_of("7f0000000000-7f0000001000 r-xp 00000000 08:01 1 /x/libnccl.so.2 (deleted)\n"
                "7f0000002000-7f0000003000 r-xp 00000000 08:01 2 /x/libother.so\n");
    struct hang_module modules[4];
    struct shk_host *host = NULL;
    cr_assert_eq(shk_host_open(&host, NULL, NULL), 0);
    cr_assert_eq(hang_modules_open(host, getpid(), &maps, wanted, modules, 4), 1);
    cr_expect_eq(modules[0].fd, -1);
    cr_expect_eq(modules[0].error, ESTALE);
    cr_expect_eq(hang_modules_open(host, getpid(), &maps, NULL, modules, 4), 0);
    shk_host_close(host);
    hang_maps_free(&maps);
}
