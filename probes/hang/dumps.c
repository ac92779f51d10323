/* Dumps of PyTorch's flight recorder that the processes of this look have written. */
#include "core/run/drop.h"
#include "core/run/isolate.h"
#include "probes/dumps/flight.h"
#include "probes/hang/hang_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { DUMPS_MS = 20000, DUMPS_CPU_S = 15, DUMPS_MAX = 256, DUMPS_LINES = 64 };

struct dumps {
    const struct shk_host *host;
    const struct hang_process *processes;
    size_t count;
    time_t since; /* the beginning of this look */
};

struct dumps_file {
    bool fresh;
    int fd;
    size_t size;
    char name[40];
};

/* When the process started, in seconds since 1970; 0: not known. */
static long long dumps_started(const struct shk_host *host, const struct hang_process *process)
{
    char *text = NULL;
    long long booted = 0;
    if (shk_host_read(host, "/proc/stat", &text, NULL, NULL))
        return 0;
    const char *line = strstr(text, "\nbtime ");
    if (line)
        booted = strtoll(line + 7, NULL, 10);
    free(text);
    return booted ? booted + (long long)process->start / sysconf(_SC_CLK_TCK) : 0;
}

/* What earlier versions of PyTorch take where no variable has the name. */
#define DUMPS_EARLIER "/tmp/nccl_trace_rank_"

static int dumps_file_of(const struct dumps *dumps, const struct hang_process *process,
                         const char *beginning)
{
    int fd = -1;
    char *path = shk_strf("/proc/%ld/root%s%ld", process->pid, beginning, process->rank);
    if (path)
        (void)!shk_host_open_file(dumps->host, path, &fd, NULL);
    free(path);
    return fd;
}

/* The dump of a rank, as its process sees the path; one of an earlier job does not count. */
static bool dumps_open(const struct dumps *dumps, const struct hang_process *process,
                       struct dumps_file *file)
{
    struct stat st;
    long long started = dumps_started(dumps->host, process);
    if (!process->dump || *process->dump != '/' || process->rank < 0 || !started)
        return false;
    file->fd = dumps_file_of(dumps, process, process->dump);
    if (file->fd < 0)
        file->fd = dumps_file_of(dumps, process, DUMPS_EARLIER);
    if (file->fd < 0)
        return false;
    if (fstat(file->fd, &st) || st.st_mtime < started || st.st_size <= 0 ||
        (size_t)st.st_size > SHK_FLIGHT_FILE_MAX) {
        close(file->fd);
        return false;
    }
    file->size = (size_t)st.st_size;
    file->fresh = st.st_mtime >= dumps->since;
    snprintf(file->name, sizeof file->name, "dump_%ld", process->rank);
    return true;
}

static int dumps_add(struct shk_flight *flight, const struct dumps_file *file,
                     struct shk_error *err)
{
    char *data = malloc(file->size);
    size_t got = 0;
    ssize_t n = 0;
    while (data && got < file->size && (n = read(file->fd, data + got, file->size - got)) > 0)
        got += (size_t)n;
    close(file->fd);
    int rc = data ? shk_flight_add(flight, file->name, data, got, err) : -ENOMEM;
    free(data);
    return rc == -ENOMEM ? rc : 0; /* what is no dump is left out */
}

/* {lines, findings}; of dumps that are older than the look nothing is found for now. */
static json_t *dumps_told(const struct shk_flight *flight, bool fresh)
{
    struct shk_strbuf text = SHK_STRBUF_INIT;
    json_t *lines = json_array(), *findings = fresh ? json_array() : NULL;
    shk_flight_compare(flight, &text, findings);
    char *all = shk_strbuf_take(&text), *save = NULL;
    for (char *line = all ? strtok_r(all, "\n", &save) : NULL;
         line && json_array_size(lines) < DUMPS_LINES; line = strtok_r(NULL, "\n", &save))
        json_array_append_new(lines, shk_json_text(line, strlen(line)));
    free(all);
    return json_pack("{s:o,s:o*}", "lines", lines, "findings", findings);
}

/* In a child: opens all, gives up its rights, reads. */
static int dumps_run(void *arg, json_t **result_p, struct shk_error *err)
{
    const struct dumps *dumps = arg;
    struct dumps_file *files = calloc(DUMPS_MAX, sizeof *files);
    struct shk_flight *flight = shk_flight_create();
    size_t count = 0;
    bool fresh = true;
    int rc = files && flight ? 0 : shk_error_sys(err, ENOMEM, "dumps");
    for (size_t i = 0; !rc && i < dumps->count && count < DUMPS_MAX; i++)
        count += dumps_open(dumps, &dumps->processes[i], &files[count]);
    if (!rc && count)
        rc = shk_drop_rights(DUMPS_CPU_S, err);
    for (size_t i = 0; !rc && i < count; i++) {
        rc = dumps_add(flight, &files[i], err);
        fresh = fresh && files[i].fresh;
    }
    if (!rc)
        *result_p = dumps_told(flight, fresh);
    shk_flight_destroy(flight);
    free(files);
    return rc;
}

void hang_add_dumps(const struct shk_host *host, const struct hang_process *processes, size_t count,
                    time_t since, json_t *node)
{
    struct dumps dumps = {.host = host, .processes = processes, .count = count, .since = since};
    struct shk_isolate_job job = {
        .name = "dumps", .fn = dumps_run, .arg = &dumps, .deadline_ms = DUMPS_MS};
    struct shk_isolate_result result = {0};
    struct shk_error err = {""};
    bool any = false;
    json_t *lines = NULL, *findings = NULL;
    for (size_t i = 0; i < count; i++)
        any = any || processes[i].dump;
    if (any && !shk_isolate_run(&job, &result, 1, 1, &err)) {
        if (result.outcome == SHK_CHILD_OK) {
            lines = json_incref(json_object_get(result.result, "lines"));
            findings = json_object_get(result.result, "findings");
        } else {
            lines = json_pack("[o]", json_sprintf("dumps: %s", result.error.text));
        }
    }
    if (json_array_size(lines))
        json_object_set(node, "dumps", lines);
    if (json_array_size(findings))
        json_object_set(node, "flight", findings);
    json_decref(lines);
    shk_isolate_result_clear(&result);
}
