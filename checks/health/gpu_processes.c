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

void shk_gpu_judge_processes(struct shk_gpu_view *view, const json_t *gpu,
                             struct shk_gpu_word *word)
{
    struct shk_strbuf dead = SHK_STRBUF_INIT, others = SHK_STRBUF_INIT;
    json_t *list = NULL, *process;
    size_t i;
    (void)view;
    enum shk_look look = shk_look_member_array(gpu, "processes", &list);
    word->verdict = look == SHK_LOOK_PRESENT  ? SHK_PASS
                    : look == SHK_LOOK_ABSENT ? SHK_NA
                                              : SHK_UNKNOWN;
    json_array_foreach(list, i, process)
    {
        const char *state = shk_member_words(process, "state");
        bool gone = state && (strcmp(state, "zombie") == 0 || strcmp(state, "gone") == 0);
        say(gone ? &dead : &others, process);
        if (gone)
            shk_strbuf_printf(&dead, " (%s)", state);
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
