/* Upkeep of the node: time source, mounts, caches, munge. */
#include "checks/base/coded.h"
#include "checks/base/remedy.h"
#include "checks/base/tally.h"

#include <string.h>

/* A word of "tsc hpet acpi_pm"? */
static bool has_word(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = list; p && *p; p += strspn(p, " ")) {
        size_t len = strcspn(p, " ");
        if (len == n && strncmp(p, word, n) == 0)
            return true;
        p += len;
    }
    return false;
}

static void time_source(struct shk_row *row, struct shk_findings *findings)
{
    static const char *const slow[] = {"hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit"};
    const char *now = NULL, *all = NULL;
    bool bad = false;
    row->fact = "clock.source";
    row->source = "torvalds/linux:Documentation/virt/kvm/x86/timekeeping.rst; "
                  "torvalds/linux:arch/x86/kernel/tsc.c";
    enum shk_look look = shk_read_text(row, "clock.source", &now);
    (void)shk_look_text(row->ctx->facts, "clock.sources", &all);
    if (look == SHK_LOOK_ABSENT) {
        shk_row_na(findings, row, "this kernel has no choice of time sources");
        return;
    }
    for (size_t i = 0; now && i < sizeof slow / sizeof *slow; i++)
        bad |= strcmp(now, slow[i]) == 0;
    if (now) {
        shk_row_verdict(row, bad ? SHK_WARN : SHK_PASS, SHK_EFFECT);
        shk_row_text(&row->observed, "%s", now);
    }
    if (bad) {
        shk_row_text(&row->expected,
                     has_word(all, "tsc") ? "tsc" : "tsc, or that of the hypervisor");
        shk_row_text(
            &row->why,
            "every look at the clock is a system call and a slow read of a device; polling "
            "loops and profilers look millions of times. The kernel takes this source when "
            "it finds the processors' counters unreliable");
        shk_row_fix(row, "time-source", NULL);
    }
    shk_row_end(findings, row);
}

static void mounts(struct shk_row *row, struct shk_findings *findings)
{
    static const char key[] = "mounts.remote";
    struct shk_tally tally = SHK_TALLY_INIT;
    json_t *list = NULL, *item;
    size_t i;
    row->fact = key;
    row->source = "statvfs(3) with a deadline of 2 s";
    (void)shk_read_array(row, key, &list);
    json_array_foreach(list, i, item)
    {
        bool answers = false;
        const char *mount = shk_member_name(item, "mount");
        if (shk_look_member_bool(item, "answers", &answers) != SHK_LOOK_PRESENT)
            shk_tally_unread(&tally, "%s", mount);
        else if (!answers)
            shk_tally_bad(&tally, "%s (%s)", mount, shk_member_name(item, "type"));
        else
            shk_tally_good(&tally);
    }
    if (list && !json_array_size(list)) {
        shk_row_na(findings, row, "no file system over a network is mounted");
        return;
    }
    if (shk_tally_judge(&tally, row, SHK_WARN, SHK_TESTED, key, "mounts") && tally.bad) {
        row->diagnosis = "mount-hangs";
        shk_row_text(&row->observed, "no response within 2 s: %s",
                     shk_strbuf_text(&tally.bad_names));
        shk_row_text(&row->expected, "a response");
        shk_row_text(&row->why,
                     "a process that touches it blocks and cannot be killed meanwhile: a "
                     "rank that never starts, a node that Slurm cannot clean up");
        shk_row_fix(row, "mount-hangs", NULL);
    } else if (tally.good) {
        shk_row_text(&row->observed, "%u respond", tally.good);
    }
    shk_row_end(findings, row);
    shk_tally_free(&tally);
}

/* What is left there stops a compiler from writing a single kernel. */
static const long long full_bytes = 16ll << 20;

static bool has_option(const char *options, const char *want)
{
    size_t n = strlen(want);
    for (const char *p = options; p && *p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
        if (strncmp(p, want, n) == 0 && (p[n] == ',' || p[n] == '\0'))
            return true;
    return false;
}

static void caches(struct shk_row *row, struct shk_findings *findings)
{
    static const char key[] = "caches";
    struct shk_tally full = SHK_TALLY_INIT;
    struct shk_strbuf fixed = SHK_STRBUF_INIT;
    json_t *list = NULL, *item;
    size_t i;
    row->fact = key;
    row->source = "NVIDIA CUDA C++ Programming Guide: Environment Variables; statvfs(3)";
    (void)shk_read_array(row, key, &list);
    json_array_foreach(list, i, item)
    {
        const char *options = NULL, *mount = NULL, *what = shk_member_name(item, "for");
        long long left = -1;
        enum shk_look seen = shk_look_member_text(item, "mount", &mount);
        (void)shk_look_member_text(item, "options", &options);
        enum shk_look room = shk_look_member_int(item, "free", &left);
        if (seen != SHK_LOOK_PRESENT || (room != SHK_LOOK_PRESENT && !has_option(options, "ro")))
            shk_tally_unread(&full, "%s", what);
        else if (has_option(options, "ro"))
            shk_strbuf_printf(&fixed, "%s%s on %s", fixed.len ? ", " : "", what, mount);
        else if (left < full_bytes)
            shk_tally_bad(&full, "%s on %s", what, mount);
        else
            shk_tally_good(&full);
    }
    bool judged = shk_tally_judge(&full, row, SHK_WARN, SHK_EFFECT, key, "places");
    if (full.bad) {
        row->diagnosis = "cache-full";
        shk_row_text(&row->observed, "full: %s", shk_strbuf_text(&full.bad_names));
        shk_row_text(&row->expected, "more than 16 MiB");
        shk_row_text(&row->why,
                     "kernels that are compiled at run time cannot be kept; some libraries "
                     "fail, others recompile at every start, on every rank");
        shk_row_fix(row, "cache-full", NULL);
    } else if (fixed.len) {
        if (!full.unread)
            shk_row_verdict(row, SHK_NOTE, SHK_EFFECT);
        shk_row_text(&row->observed, "read only: %s", shk_strbuf_text(&fixed));
        shk_row_text(&row->why, "kernels that are compiled at run time are recompiled at every "
                                "start");
    } else if (judged && full.good) {
        shk_row_text(&row->observed, "%u places with room", full.good);
    }
    shk_row_end(findings, row);
    shk_strbuf_free(&fixed);
    shk_tally_free(&full);
}

/* Does the Slurm of this node ask at that socket: is there a slurm.conf, and does it name no other
 * socket or kind of credentials? */
static bool munge_needed(struct shk_row *row, const json_t *socket)
{
    json_t *lines = NULL, *line;
    size_t i;
    enum shk_look look = shk_look_member_texts(socket, "slurm", &lines);
    if (look != SHK_LOOK_PRESENT && look != SHK_LOOK_ABSENT)
        shk_row_lacks(row, "munge.socket", "whether Slurm uses it was not read");
    json_array_foreach(lines, i, line)
    {
        const char *text = json_string_value(line);
        if (strcasestr(text, "socket=") || strcasestr(text, "auth/slurm"))
            return false;
    }
    return look == SHK_LOOK_PRESENT;
}

static void munge(struct shk_row *row, struct shk_findings *findings)
{
    static const char key[] = "munge.socket";
    json_t *socket = NULL;
    bool connects = false;
    const char *scheduler = NULL;
    row->fact = key;
    row->source = "munged(8), munge.socket.2; Slurm: auth/munge";
    enum shk_look look = shk_read_object(row, key, &socket);
    if (look == SHK_LOOK_ABSENT) {
        shk_row_na(findings, row, "munge is not installed");
        return;
    }
    if (socket && shk_read_told_bool(row, key, socket, "connects", &connects)) {
        /* what started this job has its credentials from somewhere else */
        bool job = !connects && shk_read_text(row, "job.scheduler", &scheduler) == SHK_LOOK_PRESENT;
        bool needed = !connects && !job && munge_needed(row, socket);
        shk_row_verdict(row, connects ? SHK_PASS : needed ? SHK_WARN : SHK_NOTE, SHK_TESTED);
        shk_row_text(&row->observed, "%s", connects ? "answers" : shk_member_name(socket, "error"));
        if (!connects && !needed) {
            shk_row_text(&row->why, "nothing here is known to need it: %s",
                         scheduler ? "this job was started without it"
                                   : "no Slurm daemon on this node uses this socket");
        } else if (!connects) {
            row->diagnosis = "munge-unreachable";
            shk_row_text(&row->expected, "munged responds at %s", shk_member_name(socket, "path"));
            shk_row_text(&row->why,
                         "without a credential of munge srun, scontrol and sbatch fail on "
                         "this node");
            shk_row_fix(row, "munge-restart", NULL);
        }
    }
    shk_row_end(findings, row);
}

static void eval(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    static const struct {
        const char *setting, *key;
        void (*judge)(struct shk_row *row, struct shk_findings *findings);
    } rows[] = {
        {"time source", "clock.source", time_source},
        {"network file systems", "mounts.remote", mounts},
        {"places for caches", "caches", caches},
        {"munge", "munge.socket", munge},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct shk_row row = shk_row_begin(ctx, &shk_check_upkeep, rows[i].setting);
        rows[i].judge(&row, findings);
    }
}

const struct shk_check shk_check_upkeep = {
    .id = "node.upkeep",
    .family = "kernel",
    .title = "Clock, mounts, caches and authentication of the node work",
    .eval = eval,
    .doc =
        "Facts: clock.source, mounts.remote, caches, munge.socket.\n"
        "Time source: hpet, acpi_pm, pit or jiffies is WARN. A network file system that does not "
        "answer within 2 s is WARN. A place of a cache with less than 16 MiB left is WARN, one "
        "that is read only a note. munge that is installed and cannot be connected to is WARN "
        "where this node's slurm.conf relies on it and no job is running, else a note.",
};
