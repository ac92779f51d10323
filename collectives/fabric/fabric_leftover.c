#include "collectives/fabric/fabric_private.h"
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The file of a rank in a folder, by the names that libfabric's shm provider gives: PID:UID:N. */
static bool leftover_of(const char *dir, pid_t pid, char *name, size_t size)
{
    DIR *stream = opendir(dir);
    struct dirent *entry = NULL;
    char start[16];
    bool found = false;

    snprintf(start, sizeof start, "%d:", (int)pid);
    while (stream && !found && (entry = readdir(stream)) != NULL) {
        found = strncmp(entry->d_name, start, strlen(start)) == 0;
        if (found)
            snprintf(name, size, "%s/%s", dir, entry->d_name);
    }
    if (stream)
        closedir(stream);
    return found;
}

int fabric_ep_error(const struct fabric_lib *lib, const struct fi_info *info, const char *call,
                    int rc, struct shk_error *err)
{
    const char *provider = info->fabric_attr->prov_name;
    char name[64];

    if (rc != -FI_EBUSY || strncmp(provider, "shm", 3) != 0)
        return fabric_error(lib, call, rc, err);
    snprintf(name, sizeof name, "/dev/shm/%d:%u:0", (int)getpid(), (unsigned)geteuid());
    return shk_error_set(err, FI_EBUSY,
                         "%s: %s: provider %s found %s, which a process with the same "
                         "number left behind when it was killed; %s",
                         call, lib->api.strerror(FI_EBUSY), provider, name,
                         access(name, F_OK) == 0 ? "remove it"
                                                 : "libfabric has removed it now, run again");
}

bool fabric_leftover(const char *dir, const struct shk_job *job, struct shk_crew_result *result)
{
    unsigned size = shk_job_size(job);
    unsigned first = result->rank > 0 ? (unsigned)result->rank : 0; /* the one to blame */
    struct shk_error was = result->reason;
    char name[300];

    if (result->outcome != SHK_CREW_CRASHED || strcmp(result->phase, "open") != 0)
        return false;
    for (unsigned i = 0; i < size; i++) {
        unsigned rank = (first + i) % size;
        pid_t pid = result->ranks[rank].pid;

        if (pid > 0 && leftover_of(dir, pid, name, sizeof name)) {
            (void)shk_error_set(&result->reason, EBUSY,
                                "%s of an earlier process that was killed is in the way of rank "
                                "%u, which has its process number: remove it (%s)",
                                name, rank, was.text);
            return true;
        }
    }
    return false;
}
