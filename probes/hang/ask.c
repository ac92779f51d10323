/* Asks PyTorch's flight recorder for a dump, by the pipe that it reads where
 * TORCH_NCCL_DEBUG_INFO_PIPE_FILE has the beginning of its name: that, the number of the rank and
 * ".pipe" (torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp). This writes to the job: only with
 * --intrusive. */
#include "core/run/isolate.h"
#include "probes/hang/hang_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ASK_MS = 5000 };

struct ask {
    const struct hang_process *processes;
    size_t count;
};

/* A pipe that the rank itself can read, and made by it: it is written to without waiting for a
 * reader. 0 or errno. */
static int ask_one(const struct hang_process *process)
{
    struct stat pipe, owner;
    char folder[64];
    int error = 0;
    snprintf(folder, sizeof folder, "/proc/%ld", process->pid);
    char *path = shk_strf("%s/root%s%ld.pipe", folder, process->pipe, process->rank);
    int fd = path ? open(path, O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC) : -1;
    error = !path ? ENOMEM : fd < 0 ? errno : 0;
    free(path);
    if (fd < 0)
        return error;
    if (fstat(fd, &pipe) || stat(folder, &owner))
        error = errno;
    else if (!S_ISFIFO(pipe.st_mode) || pipe.st_uid != owner.st_uid)
        error = EPERM;
    else if (write(fd, "1", 1) != 1)
        error = errno;
    close(fd);
    return error;
}

static int ask_run(void *arg, json_t **result_p, struct shk_error *err)
{
    const struct ask *ask = arg;
    *result_p = json_array();
    (void)err;
    for (size_t i = 0; i < ask->count; i++) {
        const struct hang_process *process = &ask->processes[i];
        if (!process->pipe || *process->pipe != '/' || process->rank < 0)
            continue;
        int error = ask_one(process);
        json_array_append_new(
            *result_p, error ? json_sprintf("rank %ld: no dump of the flight recorder was asked "
                                            "for: %s",
                                            process->rank, strerror(error))
                             : json_null());
    }
    return 0;
}

void hang_ask(const struct hang_process *processes, size_t count,
              json_t *unread)
{
    struct ask ask = {.processes = processes, .count = count};
    struct shk_isolate_job job = {
        .name = "pipes of the flight recorder", .fn = ask_run, .arg = &ask, .deadline_ms = ASK_MS};
    struct shk_isolate_result result = {0};
    struct shk_error err = {""};
    size_t i;
    json_t *one;
    if (shk_isolate_run(&job, &result, 1, 1, &err))
        json_array_append_new(unread, json_string(err.text));
    else if (result.outcome != SHK_CHILD_OK)
        json_array_append_new(unread,
                              shk_json_text(result.error.text, strlen(result.error.text)));
    json_array_foreach(result.result, i, one)
    {
        if (json_is_string(one))
            json_array_append(unread, one);
    }
    shk_isolate_result_clear(&result);
}
