/* Processes that hold a GPU. */
#include "checks/health/gpu_health.h"

#include <string.h>

/* "4711 python (user 1000, job 77, since 3600 s after boot)" */
static void say(struct shk_strbuf *seen, const json_t *process)
{
    long long pid = 0, uid = -1, since = -1;
    const char *job = shk_member_words(process, "job");
    (void)shk_look_member_int(process, "pid", &pid);
    (void)shk_look_member_int(process, "uid", &uid);
    (void)shk_look_member_int(process, "started_s", &since);
    const char *name = shk_member_words(process, "name");
    shk_strbuf_printf(seen, "%s%lld%s%s", seen->len ? "; " : "", pid, name ? " " : "",
                      name ? name : "");
    if (uid >= 0)
        shk_strbuf_printf(seen, " of user %lld", uid);
    if (job)
        shk_strbuf_printf(seen, ", job %s", job);
    if (since >= 0)
        shk_strbuf_printf(seen, ", since %lld s after boot", since);
}

static bool has_ended(const json_t *process)
{
    const char *state = shk_member_words(process, "state");
    return state && (strcmp(state, "zombie") == 0 || strcmp(state, "gone") == 0);
}

char *shk_gpu_holder(const struct shk_facts *facts, const char *pci, long long *pid_p)
{
    struct shk_strbuf seen = SHK_STRBUF_INIT;
    json_t *all = NULL, *gpu, *list = NULL, *process;
    size_t i, k;
    *pid_p = 0;
    (void)shk_look_array(facts, "nvml.health", &all);
    json_array_foreach(all, i, gpu)
    {
        if (strcmp(shk_member_name(gpu, "pci"), pci) != 0 ||
            shk_look_member_array(gpu, "processes", &list) != SHK_LOOK_PRESENT)
            continue;
        json_array_foreach(list, k, process)
        {
            if (has_ended(process) || seen.len)
                continue;
            say(&seen, process);
            (void)shk_look_member_int(process, "pid", pid_p);
        }
    }
    char *text = seen.len ? shk_strf("%s", shk_strbuf_text(&seen)) : NULL;
    shk_strbuf_free(&seen);
    return text;
}

void shk_gpu_judge_processes(struct shk_gpu_view *view, const json_t *gpu,
                             struct shk_gpu_word *word)
{
    struct shk_strbuf dead = SHK_STRBUF_INIT, others = SHK_STRBUF_INIT;
    json_t *list = NULL, *process;
    size_t i;
    (void)view;
    enum shk_look look = shk_look_member_objects(gpu, "processes", &list);
    word->verdict = look == SHK_LOOK_PRESENT  ? SHK_PASS
                    : look == SHK_LOOK_ABSENT ? SHK_NA
                                              : SHK_UNKNOWN;
    json_array_foreach(list, i, process)
    {
        bool ended = has_ended(process);
        say(ended ? &dead : &others, process);
        if (ended)
            shk_strbuf_printf(&dead, " (%s)", shk_member_name(process, "state"));
    }
    if (dead.len) {
        word->verdict = SHK_WARN;
        word->diagnosis = "gpu-held-by-dead-process";
        word->expected = "no process that has ended";
        word->why =
            "the process has ended and still holds memory of the GPU: a thread of it hangs in "
            "the driver, or its parent does not wait for it";
        word->fix = "gpu-held-dead";
        shk_row_text(&word->seen, "%s", shk_strbuf_text(&dead));
    } else if (others.len) {
        word->verdict = SHK_NOTE;
        word->expected = "none but this job's";
        word->why = "another process holds memory of the GPU, and may use it";
        word->fix = "gpu-held-other";
        shk_row_text(&word->seen, "%s", shk_strbuf_text(&others));
    }
    shk_strbuf_free(&dead);
    shk_strbuf_free(&others);
}
