/* Grammars and readers in words. */
#include "config/config.h"
#include "core/text/strbuf.h"

static const char *const describe_types[] = {
    [SHK_VALUE_STRING] = "any text",
    [SHK_VALUE_BOOL] = "0 or 1, off or on, false or true, no or yes",
    [SHK_VALUE_FLAG] = "any value: being set is what counts",
    [SHK_VALUE_INT] = "whole number",
    [SHK_VALUE_SIZE] = "size in bytes, suffix k, m or g allowed",
    [SHK_VALUE_ENUM] = "one of",
    [SHK_VALUE_LIST] = "list",
    [SHK_VALUE_INTERFACES] = "comma-separated interface name prefixes; '=' before the list means "
                             "exact names, '^' all but these",
    [SHK_VALUE_HCAS] = "comma-separated devices, each with an optional :port; '=' before the list "
                       "means exact names, '^' all but these",
    [SHK_VALUE_PATH] = "path",
    [SHK_VALUE_PATHS] = "directories separated by ':'",
    [SHK_VALUE_HOST_PORT] = "host:port",
    [SHK_VALUE_DEVICES] = "comma-separated device numbers, ranges or UUIDs",
};

static void describe_words(struct shk_strbuf *out, const char *before, const char *const *words)
{
    if (!words || !*words)
        return;
    shk_strbuf_puts(out, before);
    for (size_t i = 0; words[i]; i++)
        shk_strbuf_printf(out, "%s%s", i ? ", " : "", words[i]);
}

static void describe_range(struct shk_strbuf *out, const struct shk_grammar *grammar)
{
    if (grammar->has_min && grammar->has_max)
        shk_strbuf_printf(out, ", %lld to %lld", grammar->min, grammar->max);
    else if (grammar->has_min)
        shk_strbuf_printf(out, ", at least %lld", grammar->min);
    else if (grammar->has_max)
        shk_strbuf_printf(out, ", at most %lld", grammar->max);
}

char *shk_grammar_text(const struct shk_grammar *grammar)
{
    struct shk_strbuf out = SHK_STRBUF_INIT;
    bool path = grammar->type == SHK_VALUE_PATH;
    shk_strbuf_puts(&out, path && grammar->directory ? "path of a directory"
                                                     : describe_types[grammar->type]);
    if (grammar->type == SHK_VALUE_LIST)
        shk_strbuf_printf(&out, " separated by '%c'",
                          grammar->separator ? grammar->separator : ',');
    describe_range(&out, grammar);
    describe_words(&out,
                   grammar->type == SHK_VALUE_ENUM   ? " "
                   : grammar->type == SHK_VALUE_LIST ? " of "
                                                     : ", or ",
                   grammar->values);
    if (grammar->negation)
        shk_strbuf_puts(&out, "; '^' in front excludes");
    if (grammar->must_exist)
        shk_strbuf_puts(&out, "; must exist");
    if (grammar->ignore_case)
        shk_strbuf_puts(&out, "; upper or lower case");
    describe_words(&out, "; wrong although it looks right: ", grammar->wrong);
    return shk_strbuf_take(&out);
}

char *shk_readers_text(const struct shk_setting *setting)
{
    struct shk_strbuf out = SHK_STRBUF_INIT;
    if (!setting->readers_count)
        shk_strbuf_puts(&out, "no library");
    for (size_t i = 0; i < setting->readers_count; i++) {
        const struct shk_reader *reader = &setting->readers[i];
        shk_strbuf_printf(&out, "%s%s", i ? ", " : "", reader->library);
        if (reader->since && reader->until)
            shk_strbuf_printf(&out, " %s to %s", reader->since, reader->until);
        else if (reader->since)
            shk_strbuf_printf(&out, " since %s", reader->since);
        else if (reader->until)
            shk_strbuf_printf(&out, " until %s", reader->until);
        if (reader->file)
            shk_strbuf_printf(&out, " (%s)", reader->file);
    }
    return shk_strbuf_take(&out);
}
