#include "config/schema/schema.h"
#include "core/text/prose.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Items of one list: of texts (the longest in use has about 30), of mappings (about 40). Keeps what
 * is quadratic in them cheap. */
enum { SCHEMA_MAX_TEXTS = 256, SCHEMA_MAX_RECORDS = 1000 };

typedef int schema_read_f(const struct shk_fill *fill, const struct shk_field *field,
                          const struct shk_yaml_node *node, void *member, void *extra);

static const char *const schema_kind_names[] = {
    [SHK_YAML_TEXT] = "a text",
    [SHK_YAML_LIST] = "a list",
    [SHK_YAML_MAPPING] = "a mapping",
};

const char *shk_excerpt(char buf[SHK_EXCERPT + 4], const char *text)
{
    size_t len = strnlen(text, SHK_EXCERPT + 1);
    bool cut = len > SHK_EXCERPT;
    if (cut)
        for (len = SHK_EXCERPT; len && ((unsigned char)text[len] & 0xc0) == 0x80;)
            len--;
    memcpy(buf, text, len);
    strcpy(buf + len, cut ? "..." : "");
    return buf;
}

const char *shk_hint(char buf[SHK_HINT], const char *word, const char *const *names, size_t count)
{
    const char *near = shk_nearest(word, names, count);
    char shown[SHK_EXCERPT + 4];
    buf[0] = '\0';
    if (near)
        snprintf(buf, SHK_HINT, ", did you mean \"%s\"?", shk_excerpt(shown, near));
    return buf;
}

static void schema_key_path(const struct shk_fill *fill, const char *key, char *buf, size_t size)
{
    char parent[96] = "";
    if (fill->parent)
        schema_key_path(fill->parent, fill->key, parent, sizeof parent);
    snprintf(buf, size, "%s%s%s", parent, *parent ? "." : "", key);
}

static unsigned schema_key_line(const struct shk_yaml_node *node, const char *key)
{
    if (node->kind == SHK_YAML_MAPPING)
        for (const struct shk_yaml_node *k = node->first; k; k = k->next->next)
            if (strcmp(k->text, key) == 0)
                return k->line;
    return node->line;
}

static int schema_verror(const struct shk_fill *fill, unsigned line, const char *key,
                         const char *fmt, va_list args)
{
    char path[128], what[512];
    schema_key_path(fill, key, path, sizeof path);
    vsnprintf(what, sizeof what, fmt, args);
    return shk_yaml_error(fill->err, EINVAL, fill->file, line, path, "%s", what);
}

int shk_fill_error(const struct shk_fill *fill, const struct shk_yaml_node *node, const char *key,
                   const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int rc = schema_verror(fill, schema_key_line(node, key), key, fmt, args);
    va_end(args);
    return rc;
}

static int schema_error(const struct shk_fill *fill, unsigned line, const char *key,
                        const char *fmt, ...) SHK_PRINTF(4, 5);
static int schema_error(const struct shk_fill *fill, unsigned line, const char *key,
                        const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int rc = schema_verror(fill, line, key, fmt, args);
    va_end(args);
    return rc;
}

static int schema_no_memory(const struct shk_fill *fill)
{
    return shk_error_set(fill->err, ENOMEM, "out of memory");
}

static int schema_want(const struct shk_fill *fill, const struct shk_field *field,
                       const struct shk_yaml_node *node, enum shk_yaml_kind kind)
{
    if (node->kind == kind)
        return 0;
    return schema_error(fill, node->line, field->key, "must be %s, not %s", schema_kind_names[kind],
                        schema_kind_names[node->kind]);
}

/* ASCII and C1 control characters: they would reach terminals. */
static bool schema_has_control(const char *text, size_t len, bool lines)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (lines && (c == '\n' || c == '\t'))
            continue;
        if (c < 0x20 || c == 0x7f)
            return true;
        if (c == 0xc2 && i + 1 < len && (unsigned char)text[i + 1] < 0xa0)
            return true;
    }
    return false;
}

/* Length of a usable text, without the line break that a block scalar ends with. */
static int schema_text_len(const struct shk_fill *fill, const struct shk_field *field,
                           const struct shk_yaml_node *node, bool lines, size_t *len_p)
{
    int rc = schema_want(fill, field, node, SHK_YAML_TEXT);
    if (rc < 0)
        return rc;
    size_t len = node->len;
    while (len && (node->text[len - 1] == '\n' || node->text[len - 1] == ' '))
        len--;
    if (!len)
        return schema_error(fill, node->line, field->key, "is empty");
    if (!lines && memchr(node->text, '\n', len))
        return schema_error(fill, node->line, field->key, "must be one line");
    if (schema_has_control(node->text, len, lines))
        return schema_error(fill, node->line, field->key, "has a control character in it");
    *len_p = len;
    return 0;
}

static int schema_add_ref(const struct shk_fill *fill, const struct shk_field *field, unsigned line,
                          const char *name)
{
    if (!field->refers || !fill->refs)
        return 0;
    struct shk_ref *ref = shk_arena_alloc(fill->arena, sizeof *ref);
    char path[128];
    schema_key_path(fill, field->key, path, sizeof path);
    char *key = shk_arena_text(fill->arena, path, strlen(path));
    if (!ref || !key)
        return schema_no_memory(fill);
    *ref = (struct shk_ref){
        .file = fill->file, .line = line, .key = key, .section = field->section, .name = name};
    if (!fill->refs->tail)
        fill->refs->tail = &fill->refs->first;
    *fill->refs->tail = ref;
    fill->refs->tail = &ref->next;
    return 0;
}

/* Keys whose texts are sentences for people. */
static bool schema_is_prose(const char *key)
{
    static const char *const keys[] = {"why",    "title", "symptom", "meaning", "explanation",
                                       "effect", "cost",  "confirm", "advice"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (strcmp(key, keys[i]) == 0)
            return true;
    return false;
}

static int schema_take_text(const struct shk_fill *fill, const struct shk_field *field,
                            const struct shk_yaml_node *node, bool lines, const char **text_p)
{
    size_t len;
    int rc = schema_text_len(fill, field, node, lines, &len);
    if (rc < 0)
        return rc;
    char *text = shk_arena_text(fill->arena, node->text, len);
    if (!text)
        return schema_no_memory(fill);
    if (schema_is_prose(field->key))
        shk_prose(text);
    struct shk_why why;
    char shown[SHK_EXCERPT + 4];
    if (field->check && !field->check(text, &why))
        return schema_error(fill, node->line, field->key, "\"%s\": %s", shk_excerpt(shown, text),
                            why.text);
    *text_p = text;
    return schema_add_ref(fill, field, node->line, text);
}

static int schema_read_text(const struct shk_fill *fill, const struct shk_field *field,
                            const struct shk_yaml_node *node, void *member, void *extra)
{
    (void)extra;
    return schema_take_text(fill, field, node, field->kind == SHK_FIELD_LINES, member);
}

static int schema_read_texts(const struct shk_fill *fill, const struct shk_field *field,
                             const struct shk_yaml_node *node, void *member, void *extra)
{
    (void)extra;
    int rc = schema_want(fill, field, node, SHK_YAML_LIST);
    size_t count = 0;
    const struct shk_yaml_node *item;
    for (item = node->first; !rc && item; item = item->next)
        count++;
    if (rc || !count)
        return rc;
    if (count > SCHEMA_MAX_TEXTS)
        return schema_error(fill, node->line, field->key, "more than %d values", SCHEMA_MAX_TEXTS);
    const char **texts = shk_arena_array(fill->arena, count + 1, sizeof *texts);
    if (!texts)
        return schema_no_memory(fill);
    size_t n = 0;
    for (item = node->first; item; item = item->next, n++) {
        if (shk_yaml_is_null(item))
            return schema_error(fill, item->line, field->key, "has an item without a value");
        if ((rc = schema_take_text(fill, field, item, false, &texts[n])) < 0)
            return rc;
        for (size_t i = 0; i < n; i++) {
            char shown[SHK_EXCERPT + 4];
            if (strcmp(texts[i], texts[n]) == 0)
                return schema_error(fill, item->line, field->key, "\"%s\" is given twice",
                                    shk_excerpt(shown, texts[n]));
        }
    }
    *(const char *const **)member = texts;
    return 0;
}

/* Index of a word in field->names. */
static int schema_find_word(const struct shk_fill *fill, const struct shk_field *field,
                            const struct shk_yaml_node *node, size_t *index_p)
{
    size_t len;
    int rc = schema_text_len(fill, field, node, false, &len);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < field->names_count; i++)
        if (strcmp(field->names[i], node->text) == 0) {
            *index_p = i;
            return 0;
        }
    char shown[SHK_EXCERPT + 4], hint[SHK_HINT], known[256] = "";
    shk_hint(hint, node->text, field->names, field->names_count);
    for (size_t i = 0, at = 0; !*hint && i < field->names_count && at < sizeof known; i++)
        at += (size_t)snprintf(known + at, sizeof known - at, "%s%s", i ? ", " : "; known are ",
                               field->names[i]);
    return schema_error(fill, node->line, field->key, "unknown value \"%s\"%s%s",
                        shk_excerpt(shown, node->text), hint, known);
}

static int schema_read_word(const struct shk_fill *fill, const struct shk_field *field,
                            const struct shk_yaml_node *node, void *member, void *extra)
{
    (void)extra;
    size_t i;
    int rc = schema_find_word(fill, field, node, &i);
    if (!rc)
        *(const char **)member = field->names[i];
    return rc;
}

static int schema_read_enum(const struct shk_fill *fill, const struct shk_field *field,
                            const struct shk_yaml_node *node, void *member, void *extra)
{
    (void)extra;
    size_t i;
    int rc = schema_find_word(fill, field, node, &i);
    if (!rc)
        *(unsigned *)member = (unsigned)i;
    return rc;
}

_Static_assert(sizeof(enum shk_section) == sizeof(unsigned), "enums are stored as unsigned");

static int schema_read_bool(const struct shk_fill *fill, const struct shk_field *field,
                            const struct shk_yaml_node *node, void *member, void *extra)
{
    (void)extra;
    int rc = schema_want(fill, field, node, SHK_YAML_TEXT);
    if (rc < 0)
        return rc;
    bool yes = strcmp(node->text, "true") == 0;
    char shown[SHK_EXCERPT + 4];
    if (!node->plain || (!yes && strcmp(node->text, "false") != 0))
        return schema_error(fill, node->line, field->key, "must be true or false, not %s\"%s\"",
                            node->plain ? "" : "the text ", shk_excerpt(shown, node->text));
    *(bool *)member = yes;
    return 0;
}

static int schema_integer(const struct shk_fill *fill, const struct shk_field *field,
                          const struct shk_yaml_node *node, long long *value_p)
{
    int rc = schema_want(fill, field, node, SHK_YAML_TEXT);
    if (rc < 0)
        return rc;
    const char *digits = node->text + (*node->text == '-');
    size_t len = strlen(digits);
    char shown[SHK_EXCERPT + 4];
    shk_excerpt(shown, node->text);
    if (!len || strspn(digits, "0123456789") != len || (*digits == '0' && len > 1))
        return schema_error(fill, node->line, field->key, "must be a whole number, not \"%s\"",
                            shown);
    errno = 0;
    *value_p = strtoll(node->text, NULL, 10);
    if (errno)
        return schema_error(fill, node->line, field->key, "%s does not fit into 64 bits", shown);
    return 0;
}

static int schema_read_int(const struct shk_fill *fill, const struct shk_field *field,
                           const struct shk_yaml_node *node, void *member, void *extra)
{
    (void)extra;
    long long value = 0;
    int rc = schema_integer(fill, field, node, &value);
    if (rc < 0)
        return rc;
    if (value < field->min || value > field->max)
        return schema_error(fill, node->line, field->key, "must be %lld to %lld, not %lld",
                            field->min, field->max, value);
    *(int *)member = (int)value;
    return 0;
}

static int schema_read_int64(const struct shk_fill *fill, const struct shk_field *field,
                             const struct shk_yaml_node *node, void *member, void *extra)
{
    int rc = schema_integer(fill, field, node, member);
    if (!rc)
        *(bool *)extra = true;
    return rc;
}

static int schema_read_char(const struct shk_fill *fill, const struct shk_field *field,
                            const struct shk_yaml_node *node, void *member, void *extra)
{
    (void)extra;
    int rc = schema_want(fill, field, node, SHK_YAML_TEXT);
    if (rc < 0)
        return rc;
    if (node->len != 1 || schema_has_control(node->text, 1, false) ||
        (unsigned char)*node->text >= 0x80)
        return schema_error(fill, node->line, field->key, "must be one ASCII character");
    *(char *)member = *node->text;
    return 0;
}

static int schema_read_record(const struct shk_fill *fill, const struct shk_field *field,
                              const struct shk_yaml_node *node, void *member, void *extra)
{
    (void)extra;
    struct shk_fill nested = *fill;
    nested.parent = fill;
    nested.key = field->key;
    int rc = schema_want(fill, field, node, SHK_YAML_MAPPING);
    return rc ? rc : shk_schema_fill(&nested, field->record, node, member);
}

static int schema_read_records(const struct shk_fill *fill, const struct shk_field *field,
                               const struct shk_yaml_node *node, void *member, void *extra)
{
    int rc = schema_want(fill, field, node, SHK_YAML_LIST);
    size_t count = 0, size = field->record->size;
    const struct shk_yaml_node *item;
    for (item = node->first; !rc && item; item = item->next)
        count++;
    if (rc || !count)
        return rc;
    if (count > SCHEMA_MAX_RECORDS)
        return schema_error(fill, node->line, field->key, "more than %d items", SCHEMA_MAX_RECORDS);
    char *rows = shk_arena_array(fill->arena, count, size);
    if (!rows)
        return schema_no_memory(fill);
    char *row = rows;
    for (item = node->first; item; item = item->next, row += size)
        if ((rc = schema_read_record(fill, field, item, row, NULL)) < 0)
            return rc;
    *(void **)member = rows;
    *(size_t *)extra = count;
    return 0;
}

static schema_read_f *const schema_readers[] = {
    [SHK_FIELD_TEXT] = schema_read_text,       [SHK_FIELD_LINES] = schema_read_text,
    [SHK_FIELD_WORD] = schema_read_word,       [SHK_FIELD_TEXTS] = schema_read_texts,
    [SHK_FIELD_BOOL] = schema_read_bool,       [SHK_FIELD_INT] = schema_read_int,
    [SHK_FIELD_INT64] = schema_read_int64,     [SHK_FIELD_CHAR] = schema_read_char,
    [SHK_FIELD_ENUM] = schema_read_enum,       [SHK_FIELD_RECORD] = schema_read_record,
    [SHK_FIELD_RECORDS] = schema_read_records,
};

static int schema_unknown_key(const struct shk_fill *fill, const struct shk_record *record,
                              const struct shk_yaml_node *key)
{
    const char *names[SHK_MAX_FIELDS];
    char shown[SHK_EXCERPT + 4], hint[SHK_HINT];
    for (size_t i = 0; i < record->fields_count; i++)
        names[i] = record->fields[i].key;
    return schema_error(fill, key->line, shk_excerpt(shown, key->text), "unknown key of a %s%s",
                        record->what, shk_hint(hint, key->text, names, record->fields_count));
}

/* One "key: value" pair. lines[] holds where each field was given, 0 when not yet. */
static int schema_fill_pair(const struct shk_fill *fill, const struct shk_record *record,
                            const struct shk_yaml_node *key, void *row,
                            unsigned lines[SHK_MAX_FIELDS])
{
    size_t i = 0;
    while (i < record->fields_count && strcmp(record->fields[i].key, key->text) != 0)
        i++;
    if (i == record->fields_count)
        return schema_unknown_key(fill, record, key);
    const struct shk_field *field = &record->fields[i];
    if (lines[i])
        return schema_error(fill, key->line, field->key, "given twice, first on line %u", lines[i]);
    lines[i] = key->line;
    if (shk_yaml_is_null(key->next))
        return schema_error(fill, key->line, field->key, "has no value");
    return schema_readers[field->kind](fill, field, key->next, (char *)row + field->offset,
                                       (char *)row + field->extra_offset);
}

int shk_schema_fill(const struct shk_fill *fill, const struct shk_record *record,
                    const struct shk_yaml_node *node, void *row)
{
    unsigned lines[SHK_MAX_FIELDS] = {0};
    if (node->kind != SHK_YAML_MAPPING)
        return shk_yaml_error(fill->err, EINVAL, fill->file, node->line, record->what,
                              "must be a mapping, not %s", schema_kind_names[node->kind]);
    if (record->defaults)
        memcpy(row, record->defaults, record->size);
    else
        memset(row, 0, record->size);
    for (const struct shk_yaml_node *key = node->first; key; key = key->next->next) {
        int rc = schema_fill_pair(fill, record, key, row, lines);
        if (rc < 0)
            return rc;
    }
    for (size_t i = 0; i < record->fields_count; i++)
        if (record->fields[i].required && !lines[i])
            return schema_error(fill, node->line, record->fields[i].key, "missing in this %s",
                                record->what);
    return record->check ? record->check(fill, node, row) : 0;
}
