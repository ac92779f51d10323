/* The judgement in lines, for every form. */
#include "reports/hang/hang_private.h"

#include <stdlib.h>
#include <string.h>

/* How deep a tree is drawn, and with how many lines. */
enum { LINES_DEPTH = 32, LINES_MOST = 400 };

const char hang_audit_title[] = "Libraries and variables of the ranks";
const char hang_check_title[] = "Checks of the suspect nodes";

const char *hang_word(const json_t *object, const char *member)
{
    const char *text = json_string_value(json_object_get(object, member));
    return text ? text : "";
}

static int lines_order(const void *a, const void *b)
{
    long long x = *(const long long *)a, y = *(const long long *)b;
    return x < y ? -1 : x > y;
}

void hang_ranks(struct shk_strbuf *out, const json_t *ranks, const json_t *instead)
{
    size_t n = json_array_size(ranks), count = 0, others = 0;
    long long *numbers = calloc(n + 1, sizeof *numbers);
    out->failed |= !numbers;
    for (size_t i = 0; numbers && i < n; i++)
        if (json_is_integer(json_array_get(ranks, i)))
            numbers[count++] = json_integer_value(json_array_get(ranks, i));
    if (count)
        qsort(numbers, count, sizeof *numbers, lines_order);
    for (size_t i = 0; i < count; i++) {
        size_t last = i;
        while (last + 1 < count && numbers[last + 1] <= numbers[last] + 1)
            last++;
        shk_strbuf_printf(out, "%s%lld", i ? "," : count > 1 ? "ranks " : "rank ", numbers[i]);
        if (numbers[last] > numbers[i])
            shk_strbuf_printf(out, "-%lld", numbers[last]);
        i = last;
    }
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(ranks, i), *other = json_array_get(instead, i);
        if (json_is_integer(item))
            continue;
        if (json_is_string(item))
            shk_strbuf_printf(out, "%s%s", count || others++ ? ", " : "", json_string_value(item));
        else if (json_is_integer(other))
            shk_strbuf_printf(out, "%sprocess %lld", count || others++ ? ", " : "",
                              (long long)json_integer_value(other));
    }
    free(numbers);
}

void hang_frames(struct shk_strbuf *out, const json_t *frames)
{
    size_t k, n = json_array_size(frames);
    json_t *frame;
    json_array_foreach(frames, k, frame)
    {
        const char *text = json_string_value(frame);
        if (n > 6 && k == 3) /* the ends tell most */
            shk_strbuf_printf(out, " > (%zu more)", n - 6);
        if (text && (n <= 6 || k < 3 || k >= n - 3))
            shk_strbuf_printf(out, "%s%s", k ? " > " : "", text);
    }
}

static void lines_tree(struct shk_strbuf *out, const json_t *branches, unsigned depth,
                       size_t *lines)
{
    size_t i;
    json_t *branch;
    json_array_foreach(branches, i, branch)
    {
        if (depth > LINES_DEPTH || ++*lines > LINES_MOST)
            return;
        for (unsigned d = 0; d < depth; d++)
            shk_strbuf_puts(out, "  ");
        hang_ranks(out, json_object_get(branch, "ranks"), NULL);
        shk_strbuf_puts(out, ": ");
        hang_frames(out, json_object_get(branch, "frames"));
        shk_strbuf_putc(out, '\n');
        lines_tree(out, json_object_get(branch, "children"), depth + 1, lines);
    }
}

void hang_tree_lines(struct shk_strbuf *out, const json_t *tree)
{
    size_t lines = 0;
    lines_tree(out, tree, 0, &lines);
}

/* What could not be read is unknown. */
static void lines_add(json_t *lines, const char *key, struct shk_strbuf *text, const json_t *of)
{
    const char *fix = hang_word(of, "fix"), *verdict = hang_word(of, "verdict");
    const char *without = *hang_word(of, "unread") ? "unknown" : "warn";
    json_t *line = json_pack("{s:s,s:o,s:s}", "key", key, "text",
                             json_stringn_nocheck(shk_strbuf_text(text), text->len), "verdict",
                             *verdict ? verdict : without);
    if (*fix)
        json_object_set_new(line, "fix", json_string_nocheck(fix));
    json_array_append_new(lines, line);
    shk_strbuf_free(text);
}

/* "2.28.9 in /opt/libnccl.so.2 (ranks 0-2)"; builds of one number are told by their fingerprint. */
static void lines_version(struct shk_strbuf *out, const json_t *version)
{
    const char *number = hang_word(version, "version"), *id = hang_word(version, "build_id");
    shk_strbuf_printf(out, "%s%s%s", number, *number ? " in " : "", hang_word(version, "path"));
    if (*id)
        shk_strbuf_printf(out, ", build %.8s", id);
    shk_strbuf_puts(out, " (");
    hang_ranks(out, json_object_get(version, "ranks"), NULL);
    shk_strbuf_puts(out, ")");
}

static void lines_library(json_t *lines, const json_t *library)
{
    struct shk_strbuf text = SHK_STRBUF_INIT;
    size_t i;
    json_t *version;
    const json_t *versions = json_object_get(library, "versions"),
                 *replaced = json_object_get(library, "replaced");
    const char *name = hang_word(library, "library"), *why = hang_word(library, "why");
    if (json_array_size(versions) > 1) {
        shk_strbuf_printf(&text, "%s %s", name,
                          json_is_true(json_object_get(library, "differs"))
                              ? "differs between ranks:"
                              : "is loaded more than once in each rank:");
        json_array_foreach(versions, i, version)
        {
            shk_strbuf_puts(&text, i ? "; " : " ");
            lines_version(&text, version);
        }
        shk_strbuf_printf(&text, "%s%s", *why ? ": " : "", why);
        if (*hang_word(library, "diagnosis"))
            shk_strbuf_printf(&text, " (shakedown explain %s)", hang_word(library, "diagnosis"));
        lines_add(lines, "library", &text, library);
    }
    if (replaced) {
        shk_strbuf_printf(&text, "%s was replaced on disk after ", name);
        hang_ranks(&text, replaced, NULL);
        shk_strbuf_puts(&text, " had loaded it: ranks that start now load another one");
        lines_add(lines, "library", &text, library);
    }
}

static void lines_setting(json_t *lines, const json_t *setting)
{
    struct shk_strbuf text = SHK_STRBUF_INIT;
    const char *value = hang_word(setting, "value"), *why = hang_word(setting, "why");
    shk_strbuf_printf(&text, "%s%s%s (", hang_word(setting, "name"), *value ? "=" : "", value);
    hang_ranks(&text, json_object_get(setting, "ranks"), NULL);
    shk_strbuf_printf(&text, ")%s%s", *why ? ": " : "", why);
    lines_add(lines, "setting", &text, setting);
}

static void lines_difference(json_t *lines, const json_t *difference)
{
    struct shk_strbuf text = SHK_STRBUF_INIT;
    size_t i;
    json_t *value;
    shk_strbuf_printf(&text, "%s differs between ranks:", hang_word(difference, "name"));
    json_array_foreach(json_object_get(difference, "values"), i, value)
    {
        const char *is = json_string_value(json_object_get(value, "value"));
        shk_strbuf_printf(&text, "%s %s%s%s (", i ? ";" : "", is && !*is ? "\"" : "",
                          is ? is : "not set", is && !*is ? "\"" : "");
        hang_ranks(&text, json_object_get(value, "ranks"), NULL);
        shk_strbuf_puts(&text, ")");
    }
    lines_add(lines, "difference", &text, difference);
}

/* "FI_HMEM=1: why" of a bad row. */
static void lines_row(json_t *lines, const json_t *row)
{
    struct shk_strbuf text = SHK_STRBUF_INIT;
    const char *observed = hang_word(row, "observed"), *why = hang_word(row, "why");
    shk_strbuf_printf(&text, "%s: %s%s%s%s", hang_word(row, "verdict"), hang_word(row, "name"),
                      *observed ? " is " : "", observed, *why ? ": " : "");
    shk_strbuf_puts(&text, why);
    lines_add(lines, "row", &text, row);
}

static void lines_hosts(struct shk_strbuf *out, const json_t *hosts)
{
    size_t i;
    json_t *host;
    json_array_foreach(hosts, i, host)
    {
        const char *name = json_string_value(host);
        shk_strbuf_printf(out, "%s%s", i ? ", " : "", name ? name : "?");
    }
}

json_t *hang_check_lines(const json_t *judgement)
{
    size_t i, k;
    json_t *check, *item, *lines = json_array();
    json_array_foreach(json_object_get(judgement, "checks"), i, check)
    {
        struct shk_strbuf text = SHK_STRBUF_INIT;
        bool network = strcmp(hang_word(check, "what"), "network") == 0;
        shk_strbuf_puts(&text, network ? "network between " : "");
        lines_hosts(&text, json_object_get(check, "hosts"));
        if (*hang_word(check, "unread"))
            shk_strbuf_printf(&text, "%snot checked: %s",
                              json_array_size(json_object_get(check, "hosts")) ? ": " : "",
                              hang_word(check, "unread"));
        else
            shk_strbuf_printf(&text, ": %s", hang_word(check, "verdict"));
        lines_add(lines, "check", &text, check);
        json_array_foreach(json_object_get(check, "causes"), k, item)
        {
            shk_strbuf_printf(&text, "%s: %s (shakedown explain %s)", hang_word(item, "confidence"),
                              hang_word(item, "title"), hang_word(item, "key"));
            lines_add(lines, "cause", &text, item);
        }
        json_array_foreach(json_object_get(check, "rows"), k, item) lines_row(lines, item);
    }
    return lines;
}

json_t *hang_audit_lines(const json_t *judgement)
{
    size_t i;
    json_t *item, *lines = json_array();
    json_array_foreach(json_object_get(judgement, "libraries"), i, item) lines_library(lines, item);
    json_array_foreach(json_object_get(judgement, "differences"), i, item)
        lines_difference(lines, item);
    json_array_foreach(json_object_get(judgement, "settings"), i, item) lines_setting(lines, item);
    return lines;
}
