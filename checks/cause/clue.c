#include "checks/cause/clue.h"

#include "checks/base/row.h"

#include <stdlib.h>
#include <string.h>

void shk_clue_add(struct shk_clues *clues, const char *key, int weight, bool specific, char *text)
{
    if (!text)
        clues->failed = true;
    if (!text || !key || !weight) {
        free(text);
        return;
    }
    if (clues->count == clues->cap) {
        size_t cap = clues->cap ? clues->cap * 2 : 16;
        struct shk_clue *more = reallocarray(clues->items, cap, sizeof *more);
        if (!more) {
            clues->failed = true;
            free(text);
            return;
        }
        clues->items = more;
        clues->cap = cap;
    }
    clues->items[clues->count++] =
        (struct shk_clue){.key = key, .weight = weight, .specific = specific, .text = text};
}

void shk_clue_seen(struct shk_clues *clues, const json_t *entry)
{
    if (clues->count)
        clues->items[clues->count - 1].seen = entry;
}

void shk_clues_free(struct shk_clues *clues)
{
    for (size_t i = 0; i < clues->count; i++)
        free(clues->items[i].text);
    free(clues->items);
    *clues = (struct shk_clues){0};
}

bool shk_log_given(const struct shk_facts *facts)
{
    json_t *files;
    return shk_look_list(facts, "log.files", &files) == SHK_LOOK_PRESENT;
}

const char *shk_clue_capture(const json_t *tuple, const char *group)
{
    const char *text = NULL;
    (void)shk_look_member_text(tuple, group, &text);
    return text;
}

json_t *shk_log_seen(const struct shk_facts *facts, const char *id)
{
    char *key = shk_strf("log.sig.%s", id);
    json_t *entry = NULL;
    if (key)
        (void)shk_look_object(facts, key, &entry);
    free(key);
    return entry;
}

const char *shk_log_env(const struct shk_facts *facts, const char *name)
{
    const char *value = shk_env_get(facts, name);
    json_t *tuple;
    size_t i;
    if (value)
        return value;
    json_array_foreach(json_object_get(shk_log_seen(facts, "nccl-env-read"), "captures"), i, tuple)
    {
        const char *read = shk_clue_capture(tuple, "name"),
                   *here = shk_clue_capture(tuple, "value");
        if (!read || !here || strcmp(read, name) != 0)
            continue;
        if (value && strcmp(value, here) != 0)
            return NULL;
        value = here;
    }
    return value;
}

/* Last part of a path: logs are named by their users. */
static const char *base_name(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash && slash[1] ? slash + 1 : path;
}

static void say_names(struct shk_strbuf *sb, const json_t *entry, const char *names,
                      const char *count, const char *what)
{
    json_t *array = json_object_get(entry, names);
    long long all = 0;
    (void)shk_look_member_int(entry, count, &all);
    if (!json_array_size(array))
        return;
    shk_strbuf_puts(sb, sb->len ? "; " : "");
    shk_strbuf_array(sb, array, 3);
    if (all > 3)
        shk_strbuf_printf(sb, " (%lld %s)", all, what);
}

char *shk_log_place(const struct shk_facts *facts, const char *id)
{
    json_t *entry = shk_log_seen(facts, id);
    if (!entry)
        return NULL;
    struct shk_strbuf sb = SHK_STRBUF_INIT, who = SHK_STRBUF_INIT;
    const char *file = base_name(shk_clue_capture(entry, "file"));
    const char *text = shk_clue_capture(entry, "text");
    long long lines = 1, line = 0;
    (void)shk_look_member_int(entry, "lines", &lines);
    (void)shk_look_member_int(entry, "line", &line);
    say_names(&who, entry, "origins", "origin_count", "processes");
    shk_strbuf_printf(&sb, "%s:%lld", file ? file : "log", line);
    if (who.len)
        shk_strbuf_printf(&sb, " [%s]", shk_strbuf_text(&who));
    if (lines > 1)
        shk_strbuf_printf(&sb, " (%lld lines)", lines);
    while (text && (*text == ' ' || *text == '\t'))
        text++;
    shk_strbuf_printf(&sb, ": %s", text ? text : "");
    shk_strbuf_free(&who);
    return shk_strbuf_take(&sb);
}
