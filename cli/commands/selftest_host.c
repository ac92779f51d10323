/* Faults of this host's own making: children, files, output. */
#include "cli/commands/selftest.h"
#include "cli/output.h"
#include "core/host/host.h"
#include "core/run/isolate.h"
#include "core/text/strbuf.h"
#include "core/text/uses.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int host_segv(void *arg, json_t **result_p, struct shk_error *err)
{
    (void)arg, (void)result_p, (void)err;
    shk_crumb_call("planted crash");
    raise(SIGSEGV);
    return 0;
}

static int host_abort(void *arg, json_t **result_p, struct shk_error *err)
{
    (void)arg, (void)result_p, (void)err;
    shk_crumb_call("planted abort");
    raise(SIGABRT);
    return 0;
}

static int host_exit(void *arg, json_t **result_p, struct shk_error *err)
{
    (void)arg, (void)result_p, (void)err;
    shk_crumb_call("planted exit");
    _exit(0);
}

static int host_hang(void *arg, json_t **result_p, struct shk_error *err)
{
    (void)arg, (void)result_p, (void)err;
    shk_crumb_call("planted hang");
    while (getppid() > 0)
        pause();
    return 0;
}

/* Volatile: a compiler leaves out an allocation that nothing can see. */
static char *volatile host_block;

static int host_memory(void *arg, json_t **result_p, struct shk_error *err)
{
    (void)arg, (void)result_p, (void)err;
    shk_crumb_call("planted allocation");
    while (getppid() > 0) {
        host_block = malloc((size_t)16 << 20);
        if (host_block)
            memset(host_block, 1, (size_t)16 << 20);
    }
    return 0;
}

void shk_selftest_isolation(struct shk_selftest_report *report)
{
    static const struct {
        const char *what;
        int (*fn)(void *arg, json_t **result_p, struct shk_error *err);
        enum shk_isolate_outcome outcome;
        unsigned deadline_ms;
    } faults[] = {
        {"segmentation fault", host_segv, SHK_CHILD_SIGNALED, 10000},
        {"abort", host_abort, SHK_CHILD_SIGNALED, 10000},
        {"exit(0)", host_exit, SHK_CHILD_EXITED, 10000},
        {"endless wait", host_hang, SHK_CHILD_TIMEOUT, 500},
        {"endless allocation", host_memory, SHK_CHILD_MEMORY, 10000},
    };
    report->area = "isolation";
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        struct shk_error err = {""};
        struct shk_isolate_result result = {0};
        const struct shk_isolate_job job = {.name = "selftest",
                                            .fn = faults[i].fn,
                                            .deadline_ms = faults[i].deadline_ms,
                                            .memory_limit = (size_t)256 << 20};
        int rc = shk_isolate_run(&job, &result, 1, 0, &err);
        shk_selftest_count(report, "child", faults[i].what,
                           rc == 0 && result.outcome == faults[i].outcome &&
                               strstr(result.error.text, "planted"),
                           rc ? err.text : result.error.text);
        shk_isolate_result_clear(&result);
    }
}

static int file_fifo(const char *path)
{
    return mkfifo(path, 0600);
}

static int file_dangling(const char *path)
{
    return symlink("/nowhere/at/all", path);
}

static int file_loop(const char *path)
{
    return symlink("file", path);
}

static int file_folder(const char *path)
{
    return mkdir(path, 0700);
}

static int file_huge(const char *path)
{
    FILE *f = fopen(path, "w");
    int rc = f ? ftruncate(fileno(f), (off_t)1 << 33) : -1;
    if (f)
        fclose(f);
    return rc;
}

static int file_escape(const char *path)
{
    return symlink("../../../../../../../../etc/passwd", path);
}

static void files_try(struct shk_selftest_report *report, const char *dir, const char *what,
                      int (*make)(const char *path))
{
    struct shk_host *host = NULL;
    struct shk_error err = {""};
    char *text = NULL, *path = shk_strf("%s/file", dir);
    bool made = path && make(path) == 0;
    int rc = made ? shk_host_open(&host, dir, &err) : -EIO;
    if (rc == 0)
        rc = shk_host_read(host, "/file", &text, NULL, &err);
    shk_selftest_count(report, "file", what, made && host && rc < 0,
                       made ? "it could be read" : "it could not be made");
    free(text);
    shk_host_close(host);
    if (path)
        remove(path);
    free(path);
}

void shk_selftest_files(struct shk_selftest_report *report)
{
    static const struct {
        const char *what;
        int (*make)(const char *path);
    } files[] = {
        {"a FIFO", file_fifo},           {"a dangling link", file_dangling},
        {"a link to itself", file_loop}, {"a folder", file_folder},
        {"a file of 8 GiB", file_huge},  {"a link out of the tree", file_escape},
    };
    const char *base = getenv(shk_variable("temporary-files"));
    char *dir = shk_strf("%s/shakedown-selftest-XXXXXX", base && *base ? base : "/tmp");
    report->area = "files";
    if (dir && mkdtemp(dir)) {
        for (size_t i = 0; i < sizeof files / sizeof *files; i++)
            files_try(report, dir, files[i].what, files[i].make);
        rmdir(dir);
    } else {
        shk_selftest_count(report, "file", "any", false, "no temporary folder can be made");
    }
    free(dir);
}

void shk_selftest_output(struct shk_selftest_report *report)
{
    struct shk_output out;
    struct shk_error err = {""};
    report->area = "output";
    int rc = shk_output_begin(&out, &err);
    if (rc == 0) {
        fputs("selftest\n", out.stream);
        rc = shk_output_finish(&out, "/dev/full", &err);
    }
    shk_selftest_count(report, "report", "no space left on the device", rc < 0,
                       "the write was reported as successful");
}
