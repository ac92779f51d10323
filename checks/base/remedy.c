#include "checks/base/remedy.h"

#include "core/text/quote.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { REMEDY_VALUES = 8 };

enum remedy_use { REMEDY_COMMAND, REMEDY_WORDS, REMEDY_RAW };

struct remedy_hole {
    size_t len; /* of "{name}" in the template; 0: none here */
    const char *value;
    bool words, expands, variable; /* variable: {name} stands for the name of one */
};

/* "{name}", "{name*}" or "{name$}" at `at`, which does not follow a '$'. */
static struct remedy_hole remedy_hole(const char *start, const char *at,
                                      const struct shk_fix_value *values, size_t count)
{
    struct remedy_hole hole = {0};
    if (*at != '{' || (at > start && at[-1] == '$'))
        return hole;
    size_t len = strspn(at + 1, "abcdefghijklmnopqrstuvwxyz");
    const char *end = at + 1 + len;
    hole.words = *end == '*';
    hole.expands = *end == '$';
    end += hole.words || hole.expands;
    if (!len || *end != '}')
        return hole;
    hole.len = (size_t)(end + 1 - at);
    hole.variable = strncmp(at, "{name}", 6) == 0;
    for (size_t i = 0; i < count; i++)
        if (strlen(values[i].name) == len && strncmp(values[i].name, at + 1, len) == 0)
            hole.value = values[i].value;
    return hole;
}

static bool remedy_word(struct shk_strbuf *out, const struct remedy_hole *hole, const char *value,
                        bool begins)
{
    bool refused =
        !value || (begins && *value == '-') || (hole->variable && !shk_quote_is_name(value));
    char *word = refused         ? NULL
                 : hole->expands ? shk_quote_expanding(SHK_QUOTE_SH, value)
                                 : shk_quote(SHK_QUOTE_SH, value);
    if (word)
        shk_strbuf_puts(out, word);
    bool good = word != NULL;
    free(word);
    return good;
}

static bool remedy_words(struct shk_strbuf *out, const struct remedy_hole *hole)
{
    char *copy = hole->value ? strdup(hole->value) : NULL, *save = NULL;
    bool good = copy != NULL && copy[strspn(copy, " ")];
    size_t n = 0;
    for (char *word = good ? strtok_r(copy, " ", &save) : NULL; word && good;
         word = strtok_r(NULL, " ", &save)) {
        shk_strbuf_puts(out, n++ ? " " : "");
        good = remedy_word(out, hole, word, true);
    }
    free(copy);
    return good;
}

/* A value in prose. */
static void remedy_tell(struct shk_strbuf *out, const char *value)
{
    shk_strbuf_puts(out, value && shk_quote_shows(value) ? value : "…");
}

static char *remedy_expand(const char *template, enum remedy_use use,
                           const struct shk_fix_value *values, size_t count)
{
    struct shk_strbuf out = SHK_STRBUF_INIT;
    bool good = true;
    for (const char *p = template; good && *p;) {
        struct remedy_hole hole = remedy_hole(template, p, values, count);
        bool begins = p == template || p[-1] == ' ';
        if (!hole.len)
            shk_strbuf_putc(&out, *p);
        else if (use == REMEDY_WORDS)
            remedy_tell(&out, hole.value);
        else if (use == REMEDY_RAW)
            shk_strbuf_puts(&out, hole.value ? hole.value : "");
        else
            good = hole.words ? remedy_words(&out, &hole)
                              : remedy_word(&out, &hole, hole.value, begins);
        p += hole.len ? hole.len : 1;
    }
    if (good)
        return shk_strbuf_take(&out);
    shk_strbuf_free(&out);
    return NULL;
}

char *shk_remedy_command(const char *fix, const struct shk_fix_value *values, size_t count)
{
    return remedy_expand(fix, REMEDY_COMMAND, values, count);
}

char *shk_remedy_words(const char *advice, const struct shk_fix_value *values, size_t count)
{
    return remedy_expand(advice, REMEDY_WORDS, values, count);
}

/* One blank-separated word of a template without the quotes around parts of it: a new string.
 * *next_p: where the next one begins. Blanks within quotes belong to it. */
static char *remedy_next(const char *p, const char **next_p)
{
    struct shk_strbuf out = SHK_STRBUF_INIT;
    char quote = 0;
    p += strspn(p, " ");
    for (; *p && (quote || *p != ' '); p++) {
        if (quote ? *p == quote : *p == '"' || *p == '\'')
            quote = quote ? 0 : *p;
        else
            shk_strbuf_putc(&out, *p);
    }
    *next_p = p;
    return out.len ? shk_strbuf_take(&out) : NULL;
}

/* NAME=VALUE or NAME, both of which may be holes. */
static bool remedy_edit(json_t *edits, bool exports, char *word, const struct shk_fix_value *values,
                        size_t count)
{
    char *equals = strchr(word, '=');
    if (exports != (equals != NULL))
        return false;
    if (equals)
        *equals = '\0';
    char *name = remedy_expand(word, REMEDY_RAW, values, count);
    char *value = equals ? remedy_expand(equals + 1, REMEDY_RAW, values, count) : NULL;
    bool hole = equals && strchr(equals + 1, '{'), expands = equals && strchr(equals + 1, '$');
    bool whole = hole && expands && strchr(equals + 1, '}') == equals + strlen(equals + 1) &&
                 equals[1] == '{' && strstr(equals + 1, "$}");
    bool good =
        name && shk_quote_is_name(name) && (!equals || value) && !(hole && expands && !whole) &&
        json_array_append_new(edits, equals ? json_pack("{s:s,s:s,s:b}", "name", name, "value",
                                                        value, "expands", (int)(whole || !hole))
                                            : json_pack("{s:s}", "name", name)) == 0;
    free(name);
    free(value);
    return good;
}

/* One command of the line; *p_p moves behind it and what joins it to the next. */
static bool remedy_command(json_t *edits, const char **p_p, const struct shk_fix_value *values,
                           size_t count)
{
    bool exports = strncmp(*p_p, "export ", 7) == 0;
    if (!exports && strncmp(*p_p, "unset ", 6) != 0)
        return false;
    const char *p = *p_p + (exports ? 7 : 6);
    for (bool more = true, good; more;) {
        char *word = remedy_next(p, &p);
        size_t len = word ? strlen(word) : 0;
        bool ends = len && word[len - 1] == ';';
        bool joins = len && strcmp(word, "&&") == 0;
        if (ends)
            word[len - 1] = '\0';
        good = !len || joins || remedy_edit(edits, exports, word, values, count);
        free(word);
        if (!good)
            return false;
        more = len && !ends && !joins;
    }
    *p_p = p + strspn(p, " ");
    return true;
}

json_t *shk_remedy_edits(const char *fix, const struct shk_fix_value *values, size_t count)
{
    json_t *edits = json_array();
    bool good = edits != NULL;
    for (const char *p = fix; good && *p;) {
        const char *before = p;
        good = remedy_command(edits, &p, values, count);
        if (p == before)
            break;
    }
    if (good && json_array_size(edits))
        return edits;
    json_decref(edits);
    return NULL;
}

void shk_row_no_remedy(struct shk_row *row)
{
    free(row->fix);
    free(row->advice);
    json_decref(row->edits);
    row->fix = row->advice = NULL;
    row->edits = NULL;
}

/* No line can be given: the template tells what it would have been. */
static char *remedy_instead(const char *fix, const struct shk_fix_value *values, size_t count)
{
    char *line = shk_remedy_words(fix, values, count);
    char *text = line ? shk_strf("no line can be given for these values; by hand: %s", line) : NULL;
    free(line);
    return text;
}

static void remedy_put(struct shk_row *row, const char *fix, const char *advice,
                       const struct shk_fix_value *values, size_t count)
{
    shk_row_no_remedy(row);
    if (advice)
        row->advice = shk_remedy_words(advice, values, count);
    if (!fix)
        return;
    row->fix = shk_remedy_command(fix, values, count);
    if (row->fix)
        row->edits = shk_remedy_edits(fix, values, count);
    else if (!row->advice)
        row->advice = remedy_instead(fix, values, count);
}

void shk_row_remedy(struct shk_row *row, const char *fix, const char *advice)
{
    remedy_put(row, fix, advice, NULL, 0);
}

void shk_row_fix(struct shk_row *row, const char *key, ...)
{
    struct shk_fix_value values[REMEDY_VALUES];
    size_t count = 0;
    va_list ap;
    va_start(ap, key);
    for (const char *name; count < REMEDY_VALUES && (name = va_arg(ap, const char *)); count++)
        values[count] = (struct shk_fix_value){name, va_arg(ap, const char *)};
    va_end(ap);
    const struct shk_fix *entry = shk_config_fix(row->ctx->config, key);
    if (entry)
        remedy_put(row, entry->fix, entry->advice, values, count);
    else
        shk_row_no_remedy(row);
}
