/* Shared memory that ended programs left behind. */
#include "checks/base/coded.h"
#include "checks/base/read.h"
#include "checks/base/remedy.h"

#include <string.h>

static const char leftover_key[] = "shm.leftover";

/* The share of memory by which a node may fall short of what it should have: mej/nhc:nhc.conf,
 * "check_hw_physmem 32gb 32gb 5%". */
enum { LEFTOVER_PERCENT = 5, LEFTOVER_SHOWN = 3 };

/* Of one owner: "290 files of user 1000, 1.1 GiB, last written 2026-11-28T02:11:00Z
 * (vader_segment.n1.0)". False: it does not say what it is of. */
static bool leftover_one(struct shk_strbuf *seen, const json_t *item, long long *bytes_p, bool show)
{
    long long count = 0, bytes = 0, uid = -1;
    const char *kind = NULL;
    if (shk_look_member_text(item, "kind", &kind) != SHK_LOOK_PRESENT ||
        shk_look_member_int(item, "count", &count) != SHK_LOOK_PRESENT ||
        shk_look_member_int(item, "bytes", &bytes) != SHK_LOOK_PRESENT)
        return false;
    (void)shk_look_member_int(item, "uid", &uid);
    *bytes_p += bytes > 0 ? bytes : 0;
    if (!show)
        return true;
    char *size = shk_bytes_text(bytes);
    const char *since = shk_member_words(item, "since"), *name = shk_member_words(item, "name");
    shk_strbuf_printf(seen, "%s%lld %s%s of user %lld, %s", seen->len ? "; " : "", count, kind,
                      count == 1 ? "" : "s", uid, size ? size : "?");
    if (since)
        shk_strbuf_printf(seen, ", since %s", since);
    if (name)
        shk_strbuf_printf(seen, " (%s)", name);
    free(size);
    return true;
}

static void leftover_judge(struct shk_row *row, const json_t *list)
{
    struct shk_strbuf seen = SHK_STRBUF_INIT;
    long long bytes = 0, memory = 0;
    const json_t *item;
    size_t i;
    json_array_foreach(list, i, item) if (!leftover_one(&seen, item, &bytes, i < LEFTOVER_SHOWN))
        shk_row_lacks(row, leftover_key, "an entry does not say how much it is");
    if (json_array_size(list) > LEFTOVER_SHOWN)
        shk_strbuf_printf(&seen, "; of %zu more", json_array_size(list) - LEFTOVER_SHOWN);
    bool much = json_array_size(list) &&
                shk_read_int(row, "host.memory", &memory) == SHK_LOOK_PRESENT &&
                bytes >= memory / 100 * LEFTOVER_PERCENT;
    shk_row_verdict(row,
                    !json_array_size(list) ? SHK_PASS
                    : much                 ? SHK_WARN
                                           : SHK_NOTE,
                    SHK_TESTED);
    shk_row_text(&row->observed, "%s", json_array_size(list) ? shk_strbuf_text(&seen) : "none");
    if (json_array_size(list)) {
        row->diagnosis = much ? "shm-left-over" : NULL;
        shk_row_text(&row->expected, "none, or less than a twentieth of memory");
        shk_row_text(&row->why,
                     "memory that no process uses and the next job cannot use: the programs "
                     "that made it have ended without removing it");
        shk_row_fix(row, "shm-left-over", NULL);
    }
    shk_strbuf_free(&seen);
}

static void eval(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_leftover, "leftover shared memory");
    json_t *value = NULL, *list = NULL;
    long long unread = 0;
    row.fact = leftover_key;
    row.source = "fcntl(2), F_SETLEASE; shmctl(2); mej/nhc:nhc.conf, check_hw_physmem";
    if (shk_read_object(&row, leftover_key, &value) == SHK_LOOK_PRESENT) {
        enum shk_look look = shk_look_member_objects(value, "left", &list);
        if (look != SHK_LOOK_PRESENT)
            shk_row_lacks(&row, leftover_key, "what is left over was not read");
        if (shk_read_told_int(&row, leftover_key, value, "unread", &unread) && unread > 0)
            shk_row_lacks(&row, leftover_key,
                          "whether %lld of other users are in use is visible to root only", unread);
        if (look == SHK_LOOK_PRESENT)
            leftover_judge(&row, list);
    }
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_leftover = {
    .id = "shm.leftover",
    .family = "limits",
    .title = "No shared memory left behind by ended programs",
    .eval = eval,
    .doc = "Facts: shm.leftover, host.memory.\n"
           "Files in /dev/shm that no process has open or mapped and that a communication library "
           "made, or whose owner runs nothing here, and System V segments that nobody is attached "
           "to and whose maker has ended, are a note; 5 % of the node's memory or more is WARN "
           "(Node Health Check's own example of how far memory may fall short).",
};
