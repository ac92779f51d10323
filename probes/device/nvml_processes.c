/* Processes that hold memory of a GPU, and what /proc says of them. */
#include "probes/device/nvml_processes.h"

#include "core/text/strbuf.h"
#include "probes/base/gather.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The initial namespace of process numbers, include/linux/proc_ns.h (PROC_PID_INIT_INO): NVML gives
 * numbers of that one. */
static const char initial_namespace[] = "pid:[4026531836]";

static bool processes_visible(const struct shk_host *host)
{
    char *link = NULL;
    bool same = shk_host_readlink(host, &link, NULL, "/proc/self/ns/pid") == 0 &&
                strcmp(link, initial_namespace) == 0;
    free(link);
    return same;
}

/* The rest of the line "NAME:\t…" of /proc/PID/status, NULL when there is none. */
static char *status_word(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    at = at ? at + strlen(name) : NULL;
    at = at ? at + strspn(at, " \t") : NULL;
    return at ? strndup(at, strcspn(at, "\n\t ")) : NULL;
}

/* "…/job_1234/step_0/…" of Slurm's control groups. */
static json_t *process_job(const struct shk_host *host, unsigned pid)
{
    char path[64], *text = NULL, job[24] = "";
    snprintf(path, sizeof path, "/proc/%u/cgroup", pid);
    if (shk_host_read(host, path, &text, NULL, NULL) == 0) {
        const char *at = strstr(text, "/job_");
        if (at)
            snprintf(job, sizeof job, "%.*s", (int)strspn(at + 5, "0123456789"), at + 5);
    }
    free(text);
    return *job ? json_string(job) : json_null();
}

/* Field 22 of /proc/PID/stat in ticks after boot; the name before may hold blanks and brackets. */
static json_t *process_started(const struct shk_host *host, unsigned pid)
{
    char path[64], *text = NULL;
    unsigned long long ticks = 0;
    json_t *seconds = NULL;
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    if (shk_host_read(host, path, &text, NULL, NULL) == 0) {
        const char *at = strrchr(text, ')');
        for (int field = 2; at && field < 22; field++)
            at = strchr(at + 1, ' ');
        if (at && sscanf(at, "%llu", &ticks) == 1)
            seconds = json_integer((json_int_t)(ticks / 100)); /* USER_HZ */
    }
    free(text);
    return seconds ? seconds : json_null();
}

static const char *process_state(char letter)
{
    return letter == 'Z' || letter == 'X' ? "zombie" : letter == 'D' ? "blocked" : "running";
}

json_t *shk_nvml_process(const struct shk_host *host, unsigned pid, unsigned long long bytes)
{
    char path[64], *text = NULL;
    json_t *row = json_pack("{s:I, s:I}", "pid", (json_int_t)pid, "memory", (json_int_t)bytes);
    snprintf(path, sizeof path, "/proc/%u/status", pid);
    int rc = shk_host_read(host, path, &text, NULL, NULL);
    if (rc) {
        json_object_set_new(row, "state",
                            processes_visible(host) ? json_string("gone") : json_null());
        return row;
    }
    char *state = status_word(text, "State:"), *name = status_word(text, "Name:");
    char *uid = status_word(text, "Uid:");
    json_object_set_new(row, "state", json_string(process_state(state ? *state : '?')));
    json_object_set_new(row, "name", shk_gather_str(name));
    json_object_set_new(row, "uid", uid ? json_integer(strtoll(uid, NULL, 10)) : json_null());
    json_object_set_new(row, "started_s", process_started(host, pid));
    json_object_set_new(row, "job", process_job(host, pid));
    free(state);
    free(name);
    free(uid);
    free(text);
    return row;
}
