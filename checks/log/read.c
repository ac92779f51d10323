/* What logs prove or refute about settings: the evidence "log" of the matrix. */
#include "checks/log/log.h"
#include "checks/value/grammar.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* The first signature that was seen and has `name` in its list; *place_p: where (free()). */
static const struct shk_signature *seen_for(const struct shk_check_context *ctx, const char *name,
                                            bool refutes, char **place_p)
{
    size_t count;
    const struct shk_signature *sigs = shk_config_signatures(ctx->config, &count);
    for (size_t i = 0; i < count; i++) {
        const char *const *list = refutes ? sigs[i].refutes : sigs[i].proves;
        if (!list || !shk_list_has(list, name))
            continue;
        *place_p = shk_log_place(ctx->facts, sigs[i].id);
        if (*place_p)
            return &sigs[i];
    }
    return NULL;
}

/* Appends `text` in capitals. */
static void put_upper(struct shk_strbuf *sb, const char *text)
{
    for (; *text; text++)
        shk_strbuf_putc(sb, (char)toupper((unsigned char)*text));
}

static bool has_prefix(const struct shk_signature *sig, const char *name)
{
    for (const char *const *p = sig->prefixes; *p; p++)
        if (strncmp(name, *p, strlen(*p)) == 0)
            return true;
    return false;
}

const struct shk_signature *shk_log_reads(const struct shk_config *config, const char *name)
{
    size_t count;
    const struct shk_signature *sigs = shk_config_signatures(config, &count);
    for (size_t i = 0; i < count; i++)
        if (sigs[i].reads && has_prefix(&sigs[i], name))
            return &sigs[i];
    return NULL;
}

char *shk_log_read_name(const struct shk_signature *sig, const json_t *tuple)
{
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    for (const char *p = sig->reads; *p; p++) {
        size_t len = strcspn(p, "}");
        if (*p != '{' || !p[len]) {
            shk_strbuf_putc(&sb, *p);
            continue;
        }
        char *group = strndup(p + 1, len - 1);
        const char *text = group ? shk_log_captured(tuple, group) : NULL;
        free(group);
        if (!text) {
            shk_strbuf_free(&sb);
            return NULL;
        }
        put_upper(&sb, text);
        p += len;
    }
    char *name = shk_strbuf_take(&sb);
    if (name && has_prefix(sig, name))
        return name;
    free(name);
    return NULL;
}

/* The value of a line that says that the variable was read; NULL: it says so of another one. */
static const char *read_value(const struct shk_signature *sig, const json_t *tuple,
                              const char *name)
{
    char *read = shk_log_read_name(sig, tuple);
    bool same = read && strcmp(read, name) == 0;
    free(read);
    return same ? shk_log_captured(tuple, "value") : NULL;
}

/* The values that processes of the log have read: *only_p the only one, NULL when there is none or
 * when they differ. Did one of them read `value` (NULL: none is asked for)? */
static bool was_read(const struct shk_config *config, const struct shk_facts *facts,
                     const char *name, const char *value, const char **only_p)
{
    size_t count, i;
    const struct shk_signature *sigs = shk_config_signatures(config, &count);
    const struct shk_setting *setting = value ? shk_config_setting(config, name) : NULL;
    bool hit = false, differ = false;
    json_t *tuple;
    *only_p = NULL;
    for (size_t s = 0; s < count; s++) {
        json_t *entry = sigs[s].reads ? shk_log_seen(facts, sigs[s].id) : NULL;
        json_array_foreach(json_object_get(entry, "captures"), i, tuple)
        {
            const char *got = read_value(&sigs[s], tuple, name);
            if (!got)
                continue;
            differ |= *only_p && strcmp(*only_p, got) != 0;
            *only_p = got;
            hit |= value && (strcmp(value, got) == 0 ||
                             (setting && shk_grammar_same(&setting->grammar, value, got)));
        }
    }
    if (differ)
        *only_p = NULL;
    return hit;
}

const char *shk_log_env(const struct shk_config *config, const struct shk_facts *facts,
                        const char *name)
{
    const char *value = shk_env_get(facts, name);
    if (!value && shk_log_given(facts))
        was_read(config, facts, name, NULL, &value);
    return value;
}

bool shk_log_refute(const struct shk_check_context *ctx, const char *name, struct shk_row *row)
{
    char *place = NULL;
    const struct shk_signature *sig =
        shk_log_given(ctx->facts) ? seen_for(ctx, name, true, &place) : NULL;
    if (!sig)
        return false;
    shk_row_verdict(row, SHK_WARN, SHK_LOG);
    shk_row_text(&row->why, "set, and a log shows it without effect: %s (%s)", sig->meaning, place);
    free(place);
    return true;
}

/* A refutation counts more than a proof: a fallback is printed after the attempt. */
bool shk_log_judge(const struct shk_check_context *ctx, const char *name, const char *value,
                   struct shk_row *row)
{
    const char *only;
    char *place = NULL;
    if (!shk_log_given(ctx->facts))
        return false;
    if (shk_log_refute(ctx, name, row))
        return true;
    const struct shk_signature *sig = seen_for(ctx, name, false, &place);
    if (sig) {
        shk_row_verdict(row, SHK_PASS, SHK_LOG);
        shk_row_text(&row->why, "seen in a log: %s (%s)", sig->meaning, place ? place : "");
    } else if (was_read(ctx->config, ctx->facts, name, value, &only)) {
        shk_row_verdict(row, SHK_PASS, SHK_LOG);
        shk_row_text(&row->why, "a log says that the library has read this value");
    }
    free(place);
    return row->evidence == SHK_LOG;
}
