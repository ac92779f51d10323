/* Frames of Python, by py-spy where it is installed: read from outside, without a stop
 * (--nonblocking). It runs as we do, so it is taken only from a place that nobody but root can
 * change. */
#include "core/host/trust.h"
#include "core/run/command.h"
#include "core/run/isolate.h"
#include "probes/hang/hang_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { PYTHON_MS = 15000, PYTHON_FRAMES = 128 };
#define PYTHON_OUTPUT ((size_t)16 << 20)

struct python_call {
    const char *program;
    long pid;
};

/* Nobody but root can change it. */
static bool python_trusted(const char *path)
{
    return !shk_trust_path(path, NULL);
}

/* "load() at /src/train.py:42" of each frame, the outermost first. */
static json_t *python_frames(const json_t *frames)
{
    json_t *list = json_array();
    size_t count = json_array_size(frames);
    for (size_t i = count < PYTHON_FRAMES ? count : PYTHON_FRAMES; i-- > 0;) {
        const json_t *frame = json_array_get(frames, i);
        const char *name = json_string_value(json_object_get(frame, "name")),
                   *file = json_string_value(json_object_get(frame, "filename"));
        long long line = json_integer_value(json_object_get(frame, "line"));
        char *text =
            shk_strf("%.200s() at %.400s:%lld", name ? name : "?", file ? file : "?", line);
        if (text)
            json_array_append_new(list, shk_json_text(text, strlen(text)));
        free(text);
    }
    return list;
}

json_t *hang_python_parse(const char *text, size_t length)
{
    size_t i;
    json_t *thread, *all = json_loadb(text, length, 0, NULL), *threads = json_object();
    json_array_foreach(all, i, thread)
    {
        char key[24];
        json_int_t tid = json_integer_value(json_object_get(thread, "os_thread_id"));
        json_t *frames = json_object_get(thread, "frames");
        snprintf(key, sizeof key, "%lld", (long long)tid);
        if (tid > 0 && json_array_size(frames))
            json_object_set_new(threads, key, python_frames(frames));
    }
    json_decref(all);
    return threads;
}

static int python_run(void *arg, json_t **result_p, struct shk_error *err)
{
    const struct python_call *call = arg;
    struct shk_strbuf out = SHK_STRBUF_INIT;
    char pid[24];
    int status = 0;
    snprintf(pid, sizeof pid, "%ld", call->pid);
    const char *const argv[] = {"py-spy", "dump", "--nonblocking", "--json", "--pid", pid, NULL};
    int rc = shk_command_output(call->program, argv, PYTHON_OUTPUT, &out, &status, err);
    if (!rc && WIFEXITED(status) && !WEXITSTATUS(status))
        *result_p = hang_python_parse(shk_strbuf_text(&out), out.len);
    shk_strbuf_free(&out);
    return rc || *result_p ? rc : shk_error_set(err, EIO, "py-spy could not read it");
}

static bool python_is(const struct shk_host *host, long pid)
{
    struct hang_maps maps = {0};
    bool is = false;
    if (!hang_maps_read(host, pid, &maps, NULL))
        for (size_t i = 0; i < maps.count && !is; i++) {
            const char *slash = strrchr(maps.regions[i].path, '/');
            is = slash &&
                 (strncmp(slash + 1, "python", 6) == 0 || strncmp(slash + 1, "libpython", 9) == 0);
        }
    hang_maps_free(&maps);
    return is;
}

void hang_python(const struct shk_host *host, const struct hang_process *processes, size_t count,
                 json_t *ranks)
{
    char *program = shk_command_find("py-spy", python_trusted);
    struct shk_isolate_job *jobs = calloc(count + 1, sizeof *jobs);
    struct shk_isolate_result *results = calloc(count + 1, sizeof *results);
    struct python_call *calls = calloc(count + 1, sizeof *calls);
    size_t *index = calloc(count + 1, sizeof *index), n = 0;
    bool able = program && jobs && results && calls && index;
    for (size_t i = 0; able && i < count; i++) {
        if (processes[i].state == 'Z' || !python_is(host, processes[i].pid))
            continue;
        calls[n] = (struct python_call){.program = program, .pid = processes[i].pid};
        jobs[n] = (struct shk_isolate_job){
            .name = "py-spy", .fn = python_run, .arg = &calls[n], .deadline_ms = PYTHON_MS};
        index[n++] = i;
    }
    if (n && !shk_isolate_run(jobs, results, n, 0, NULL))
        for (size_t k = 0; k < n; k++) {
            json_t *rank = json_array_get(ranks, index[k]), *thread;
            size_t t;
            json_array_foreach(json_object_get(rank, "threads"), t, thread)
            {
                char key[24];
                snprintf(key, sizeof key, "%lld",
                         (long long)json_integer_value(json_object_get(thread, "tid")));
                json_t *frames = json_object_get(results[k].result, key);
                if (frames)
                    json_object_set(thread, "python", frames);
            }
            if (results[k].outcome != SHK_CHILD_OK)
                json_object_set_new(rank, "python_unread", json_string(results[k].error.text));
        }
    for (size_t k = 0; results && k < n; k++)
        shk_isolate_result_clear(&results[k]);
    free(index);
    free(calls);
    free(results);
    free(jobs);
    free(program);
}
