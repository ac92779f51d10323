#include "checks/log/log.h"

#include <stdlib.h>
#include <string.h>

bool shk_log_given(const struct shk_facts *facts)
{
    json_t *files;
    return shk_look_list(facts, "log.files", &files) == SHK_LOOK_PRESENT;
}

const char *shk_log_captured(const json_t *tuple, const char *group)
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
    const char *file = base_name(shk_log_captured(entry, "file"));
    const char *text = shk_log_captured(entry, "text");
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

/* Lines that a library prints when all ranks have come together. */
static const char *const starts[] = {"nccl-init-complete"};

bool shk_log_started(const struct shk_facts *facts)
{
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (shk_log_seen(facts, starts[i]))
            return true;
    return false;
}
