/* Asks PyTorch's flight recorder for a dump, by the pipe that it reads where
 * TORCH_NCCL_DEBUG_INFO_PIPE_FILE has the beginning of its name: that, the number of the rank and
 * ".pipe" (torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp). This writes to the job: only with
 * --intrusive. */
#include "core/run/isolate.h"
#include "probes/hang/hang_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { ASK_MS = 5000 };

struct ask {
    const struct shk_host *host;
    const struct hang_process *processes;
    size_t count;
};

/* A pipe that the rank itself has made and reads. 0 or a negative errno. */
static int ask_one(const struct shk_host *host, const struct hang_process *process)
{
    struct stat owner;
    char folder[64];
    snprintf(folder, sizeof folder, "/proc/%ld", process->pid);
    char *path = shk_strf("%s/root%s%ld.pipe", folder, process->pipe, process->rank);
    int rc = !path ? -ENOMEM : stat(folder, &owner) ? -errno : 0;
    rc = rc ? rc : shk_host_poke(host, path, owner.st_uid);
    free(path);
    return rc;
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
        int rc = ask_one(ask->host, process);
        json_array_append_new(
            *result_p, rc ? json_sprintf("rank %ld: no dump of the flight recorder was asked "
                                         "for: %s",
                                         process->rank, strerror(-rc))
                          : json_null());
    }
    return 0;
}

void hang_ask(const struct shk_host *host, const struct hang_process *processes, size_t count,
              json_t *unread)
{
    struct ask ask = {.host = host, .processes = processes, .count = count};
    struct shk_isolate_job job = {
        .name = "pipes of the flight recorder", .fn = ask_run, .arg = &ask, .deadline_ms = ASK_MS};
    struct shk_isolate_result result = {0};
    struct shk_error err = {""};
    size_t i;
    json_t *one;
    if (shk_isolate_run(&job, &result, 1, 1, &err))
        json_array_append_new(unread, json_string(err.text));
    else if (result.outcome != SHK_CHILD_OK)
        json_array_append_new(unread, shk_json_text(result.error.text, strlen(result.error.text)));
    json_array_foreach(result.result, i, one)
    {
        if (json_is_string(one))
            json_array_append(unread, one);
    }
    shk_isolate_result_clear(&result);
}
