/* By which way did the tasks of the launcher find each other, and was it guarded? */
#include "checks/base/coded.h"
#include "checks/base/read.h"
#include "checks/base/remedy.h"
#include "core/text/strbuf.h"

#include <string.h>

struct joined_word {
    const char *key, *text;
};

/* Any program that reaches rank 0's port could have taken part. */
static void joined_open(struct shk_row *row)
{
    row->verdict = SHK_NOTE;
    shk_row_text(&row->expected, "a key");
    shk_row_text(&row->why,
                 "this launcher passes no secret on to its tasks, so they trusted each other: "
                 "whoever reaches the port of rank 0 can impersonate a rank, or rank 0, and make "
                 "up what this report says");
    shk_row_fix(row, "rendezvous-key", NULL);
}

/* What a document says by key; one that has no entry here is shown as it is. */
static const char *joined_word(const struct joined_word *words, const char *key)
{
    while (words->key && strcmp(words->key, key) != 0)
        words++;
    return words->key ? words->text : key;
}

static void joined_by(struct shk_strbuf *sb, const json_t *joined, const char *by)
{
    static const struct joined_word words[] = {
        {"pmix", "PMIx"},
        {"pmi", "PMI"},
        {"ssh", "--hosts, over ssh"},
        {"tcp", "--rendezvous tcp://..."},
        {"folder", "--rendezvous file://..."},
        {"variables", "the variables"},
        {NULL, NULL},
    };
    const char *launcher = NULL, *variable = NULL;
    shk_strbuf_printf(sb, "joined by %s", joined_word(words, by));
    if (shk_look_member_text(joined, "launcher", &launcher) == SHK_LOOK_PRESENT)
        shk_strbuf_printf(sb, " of %s", launcher);
    if (shk_look_member_text(joined, "variable", &variable) == SHK_LOOK_PRESENT)
        shk_strbuf_printf(sb, ": %s", variable);
    else if (strcmp(by, "variables") == 0)
        shk_strbuf_puts(sb, ": all tasks are on this node");
}

static void joined_why(struct shk_row *row, const json_t *joined)
{
    static const struct joined_word words[] = {
        {"offered", "the launcher offers it, and it passes on a key that no one else can see"},
        {"no-pmix",
         "there is no PMIx, and the process manager passes on a key that no one else can see"},
        {"no-pmi", "there is neither PMIx nor PMI"},
        {"pmi-late", "a task of the job did not reach the PMI barrier in time"},
        {"asked", "it was requested"},
        {NULL, NULL},
    };
    const char *why = NULL;
    if (shk_look_member_text(joined, "why", &why) == SHK_LOOK_PRESENT)
        shk_row_text(&row->why, "%s", joined_word(words, why));
}

static void eval_joined(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_job_joined, "rendezvous");
    json_t *joined = NULL;
    const char *by = NULL, *key = NULL;
    bool keyed = false, loopback = false;
    row.fact = "job.joined";
    if (shk_look(ctx->facts, row.fact, NULL) == SHK_LOOK_MISSING &&
        shk_look(ctx->facts, "job.layout", NULL) == SHK_LOOK_MISSING)
        return; /* not a job of several ranks */
    if (shk_read_object(&row, row.fact, &joined) != SHK_LOOK_PRESENT) {
        shk_row_unread(findings, &row, ctx->facts, row.fact);
        return;
    }
    if (shk_read_member_text(&row, row.fact, joined, "by", &by) == SHK_LOOK_PRESENT &&
        shk_read_member_bool(&row, row.fact, joined, "keyed", &keyed) == SHK_LOOK_PRESENT &&
        shk_read_member_bool(&row, row.fact, joined, "loopback", &loopback) == SHK_LOOK_PRESENT) {
        struct shk_strbuf how = SHK_STRBUF_INIT;
        (void)shk_look_member_text(joined, "key", &key);
        shk_row_verdict(&row, SHK_PASS, SHK_TESTED);
        joined_by(&how, joined, by);
        shk_row_text(&row.observed, "%s; %s%s%s", shk_strbuf_text(&how),
                     keyed ? "the key is that of " : "no key",
                     keyed ? (key ? key : "the launcher") : "",
                     !keyed && loopback ? ", on this host only" : "");
        shk_strbuf_free(&how);
        joined_why(&row, joined);
        if (!keyed && !loopback)
            joined_open(&row);
    }
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_job_joined = {
    .id = "job.joined",
    .scope = SHK_SCOPE_LAUNCH,
    .family = "launcher",
    .title = "The launcher's tasks met and know each other",
    .eval = eval_joined,
    .of_job = true,
    .doc = "Facts: job.joined; job.layout says that there is a job.\nHow the ranks of the job "
           "found rank 0: PMIx, PMI, the launcher's "
           "variables, or what --rendezvous says. Each proves to rank 0, and rank 0 to it, that "
           "both have the key of the job. Without one it is a note, unless all are on one host.",
};
