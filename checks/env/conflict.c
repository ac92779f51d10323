/* Settings that do not go together: the conflicts of the catalogue. */
#include "checks/base/remedy.h"
#include "checks/env/env.h"
#include "checks/readers/readers_together.h"
#include "checks/when/term.h"

#include <stdlib.h>
#include <string.h>

/* 1 holds, 0 does not, -1 could not be read. */
static int both(int a, int b)
{
    return a == 0 || b == 0 ? 0 : a < 0 || b < 0 ? -1 : 1;
}

/* Of all terms together. */
static int terms_hold(const struct shk_check_context *ctx, const struct shk_conflict *conflict)
{
    const struct shk_term_scope scope = {.config = ctx->config, .facts = ctx->facts};
    int holds = conflict->when_count > 0;
    for (size_t i = 0; i < conflict->when_count; i++)
        holds = both(holds, shk_term_holds(&scope, &conflict->when[i]));
    return holds;
}

enum { SETTINGS_MOST = 8 };

struct readership {
    const struct shk_setting *settings[SETTINGS_MOST];
    size_t count;
};

/* A variable that is not set needs no reader. */
static void add_setting(const struct shk_check_context *ctx, const char *name,
                        struct readership *set)
{
    const char *value = NULL;
    const struct shk_setting *setting = name ? shk_config_setting(ctx->config, name) : NULL;
    if (setting && set->count < SETTINGS_MOST &&
        shk_look_env(ctx->facts, name, &value) != SHK_LOOK_ABSENT)
        set->settings[set->count++] = setting;
}

/* Does somebody read what is set, all of it? *unread_p as of shk_readers_together(). */
static int is_read(const struct shk_check_context *ctx, const struct shk_conflict *conflict,
                   struct shk_readers *readers, const char **unread_p)
{
    struct readership set = {.count = 0};
    for (size_t i = 0; i < conflict->when_count; i++) {
        add_setting(ctx, conflict->when[i].setting, &set);
        add_setting(ctx, conflict->when[i].differs_from, &set);
    }
    switch (shk_readers_together(readers, set.settings, set.count, unread_p)) {
    case SHK_READS_YES: return 1;
    case SHK_READS_UNKNOWN: return -1;
    default: return 0;
    }
}

static void say_term(const struct shk_check_context *ctx, const char *name, bool first,
                     struct shk_strbuf *names, struct shk_strbuf *values)
{
    const char *value = NULL;
    enum shk_look look = shk_look_setting(ctx, name, &value);
    shk_strbuf_printf(names, "%s%s", first ? "" : " + ", name);
    shk_strbuf_printf(values, "%s%s%s%s", first ? "" : ", ", name,
                      look == SHK_LOOK_PRESENT ? "=" : " ",
                      look == SHK_LOOK_PRESENT  ? value
                      : look == SHK_LOOK_ABSENT ? "not set"
                                                : "not known");
}

static void say_terms(const struct shk_check_context *ctx, const struct shk_conflict *conflict,
                      struct shk_strbuf *names, struct shk_strbuf *values)
{
    for (size_t i = 0; i < conflict->when_count; i++) {
        const struct shk_term *term = &conflict->when[i];
        if (term->setting)
            say_term(ctx, term->setting, i == 0, names, values);
        if (term->differs_from)
            say_term(ctx, term->differs_from, false, names, values);
    }
}

static enum shk_verdict verdict_of(const struct shk_conflict *conflict)
{
    return strcmp(conflict->verdict, "fail") == 0   ? SHK_FAIL
           : strcmp(conflict->verdict, "warn") == 0 ? SHK_WARN
                                                    : SHK_NOTE;
}

/* What makes a conflict: each holds (1) or is not known (-1). */
struct judged {
    int terms, condition, read;
    const char *unread; /* why it is not known who reads them */
};

static void conflict_row(const struct shk_check_context *ctx, struct shk_findings *findings,
                         const struct shk_conflict *conflict, const struct judged *judged)
{
    struct shk_strbuf names = SHK_STRBUF_INIT, values = SHK_STRBUF_INIT;
    say_terms(ctx, conflict, &names, &values);
    struct shk_row row = shk_row_begin(ctx, &shk_check_env_conflict, shk_strbuf_text(&names));
    const struct shk_setting *first = shk_config_setting(ctx->config, conflict->when[0].setting);
    row.family = first ? first->family : row.family;
    row.source = conflict->source;
    row.fact = "env.*";
    shk_row_text(&row.observed, "%s", shk_strbuf_text(&values));
    if (judged->terms < 0) {
        shk_row_lacks(&row, "env.*", "not all of the values are known, which may conflict: %s",
                      conflict->why);
    } else if (judged->condition < 0) {
        shk_row_lacks(&row, "env.*", "a conflict when %s, which is not known here: %s",
                      conflict->condition, conflict->why);
    } else if (judged->read < 0) {
        shk_row_lacks(
            &row, judged->unread,
            "a conflict only for a library that reads what is set here, which %s does not say: "
            "%s",
            judged->unread, conflict->why);
    } else {
        shk_row_was_read(&row);
        shk_row_verdict(&row, verdict_of(conflict),
                        conflict->condition ? SHK_EFFECT : SHK_DECLARED);
        row.diagnosis = row.verdict == SHK_NOTE ? NULL : conflict->diagnosis;
        shk_row_text(&row.why, "%s", conflict->why);
        shk_row_remedy(&row, conflict->fix, conflict->advice);
    }
    shk_row_end(findings, &row);
    shk_strbuf_free(&names);
    shk_strbuf_free(&values);
}

/* 1 a conflict, 0 none, -1 not known. */
static int judge(const struct shk_check_context *ctx, const struct shk_conflict *conflict,
                 struct shk_readers *readers, struct judged *judged)
{
    *judged = (struct judged){.terms = terms_hold(ctx, conflict)};
    if (judged->terms)
        judged->condition = shk_condition_holds(conflict->condition, ctx->facts);
    if (both(judged->terms, judged->condition))
        judged->read = is_read(ctx, conflict, readers, &judged->unread);
    return both(both(judged->terms, judged->condition), judged->read);
}

static void eval(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    size_t count, found = 0;
    const struct shk_conflict *conflicts = shk_config_conflicts(ctx->config, &count);
    struct shk_row row = shk_row_begin(ctx, &shk_check_env_conflict, "conflicts");
    row.fact = "env.*";
    bool known = shk_env_known(ctx->facts);
    if (known)
        shk_row_was_read(&row);
    else
        shk_row_lacks(&row, "probe.env.status", "the environment was not read");
    struct shk_readers readers = {.facts = ctx->facts, .config = ctx->config};
    for (size_t i = 0; i < count; i++) {
        const struct shk_conflict *conflict = &conflicts[i];
        struct judged judged;
        int sure = judge(ctx, conflict, &readers, &judged);
        if (sure == 0 || (judged.terms < 0 && !known))
            continue; /* one row says that nothing was read */
        found += sure > 0;
        if (sure < 0)
            shk_row_lacks(&row, "env.*", "whether %s applies could not be decided", conflict->name);
        conflict_row(ctx, findings, conflict, &judged);
    }
    shk_readers_clear(&readers);
    if (!found && count) {
        shk_row_verdict(&row, SHK_PASS, SHK_DECLARED);
        if (!shk_row_lacking(&row))
            shk_row_text(&row.observed, "none found (%zu known conflicts checked)", count);
        shk_row_end(findings, &row);
    } else {
        free(row.unread_why);
    }
}

const struct shk_check shk_check_env_conflict = {
    .id = "env.conflict",
    .diagnosis = "settings-conflict",
    .scope = SHK_SCOPE_LAUNCH,
    .family = "environment",
    .title = "No two settings conflict",
    .eval = eval,
    .doc = "Facts: env.*, env.file.*, what the libraries read, and what the conditions of the "
           "conflicts ask.\n"
           "The known conflicts are data (config/conflicts); verdict and reason are theirs. One "
           "counts only when a library on this node reads all that is set of it. When a value, the "
           "condition or the reader of one is not known the row is UNKNOWN, and so is the sum.",
};
