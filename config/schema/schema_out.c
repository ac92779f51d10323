/* The other direction: rows as C initialisers, records as documentation. */
#include "config/schema/schema.h"

#include <ctype.h>
#include <limits.h>
#include <string.h>

static void out_c_text(struct shk_strbuf *out, const char *text)
{
    shk_strbuf_putc(out, '"');
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\' || c == '?')
            shk_strbuf_printf(out, "\\%c", c);
        else if (c < 0x20 || c >= 0x7f)
            shk_strbuf_printf(out, "\\%03o", c);
        else
            shk_strbuf_putc(out, (char)c);
    }
    shk_strbuf_putc(out, '"');
}

static void out_record(struct shk_strbuf *out, const struct shk_record *record, const char *row);

static void out_texts(struct shk_strbuf *out, const char *const *texts)
{
    shk_strbuf_puts(out, "(const char *const[]){");
    for (; *texts; texts++) {
        out_c_text(out, *texts);
        shk_strbuf_puts(out, ", ");
    }
    shk_strbuf_puts(out, "NULL}");
}

static void out_records(struct shk_strbuf *out, const struct shk_field *field, const char *rows,
                        size_t count)
{
    shk_strbuf_printf(out, "(const %s[]){", field->record->type);
    for (size_t i = 0; i < count; i++) {
        out_record(out, field->record, rows + i * field->record->size);
        shk_strbuf_puts(out, ", ");
    }
    shk_strbuf_printf(out, "}, .%s = %zu", field->extra_member, count);
}

static void out_int64(struct shk_strbuf *out, long long value)
{
    if (value == LLONG_MIN) /* has no literal of its own */
        shk_strbuf_printf(out, "-%lldLL - 1", LLONG_MAX);
    else
        shk_strbuf_printf(out, "%lldLL", value);
}

static bool out_is_zero(const struct shk_field *field, const char *row)
{
    const void *at = row + field->offset;
    switch (field->kind) {
    case SHK_FIELD_TEXT:
    case SHK_FIELD_LINES:
    case SHK_FIELD_WORD:
    case SHK_FIELD_TEXTS:
    case SHK_FIELD_RECORDS: return *(const void *const *)at == NULL;
    case SHK_FIELD_BOOL: return !*(const bool *)at;
    case SHK_FIELD_CHAR: return !*(const char *)at;
    case SHK_FIELD_INT: return !*(const int *)at;
    case SHK_FIELD_ENUM: return !*(const unsigned *)at;
    case SHK_FIELD_INT64: return !*(const bool *)(row + field->extra_offset);
    case SHK_FIELD_RECORD: return false;
    }
    return false;
}

static void out_field(struct shk_strbuf *out, const struct shk_field *field, const char *row)
{
    const void *at = row + field->offset;
    if (out_is_zero(field, row))
        return;
    shk_strbuf_printf(out, ".%s = ", field->member);
    switch (field->kind) {
    case SHK_FIELD_TEXT:
    case SHK_FIELD_LINES:
    case SHK_FIELD_WORD: out_c_text(out, *(const char *const *)at); break;
    case SHK_FIELD_TEXTS: out_texts(out, *(const char *const *const *)at); break;
    case SHK_FIELD_BOOL: shk_strbuf_puts(out, "true"); break;
    case SHK_FIELD_CHAR: shk_strbuf_printf(out, "%d", *(const char *)at); break;
    case SHK_FIELD_INT: shk_strbuf_printf(out, "%d", *(const int *)at); break;
    case SHK_FIELD_ENUM: shk_strbuf_printf(out, "%u", *(const unsigned *)at); break;
    case SHK_FIELD_RECORD: out_record(out, field->record, at); break;
    case SHK_FIELD_RECORDS:
        out_records(out, field, *(const char *const *)at,
                    *(const size_t *)(const void *)(row + field->extra_offset));
        break;
    case SHK_FIELD_INT64:
        out_int64(out, *(const long long *)at);
        shk_strbuf_printf(out, ", .%s = true", field->extra_member);
        break;
    }
    shk_strbuf_puts(out, ", ");
}

static void out_record(struct shk_strbuf *out, const struct shk_record *record, const char *row)
{
    shk_strbuf_puts(out, "{");
    for (size_t i = 0; i < record->fields_count; i++)
        out_field(out, &record->fields[i], row);
    if (record->place_offset) {
        shk_strbuf_puts(out, ".place = ");
        out_c_text(out, *(const char *const *)(const void *)(row + record->place_offset));
    }
    shk_strbuf_puts(out, "}");
}

void shk_schema_emit(struct shk_strbuf *out, const struct shk_record *record, const void *rows,
                     size_t count, const char *symbol)
{
    if (!count)
        return;
    shk_strbuf_printf(out, "static const %s %s[] = {\n", record->type, symbol);
    for (size_t i = 0; i < count; i++) {
        out_record(out, record, (const char *)rows + i * record->size);
        shk_strbuf_puts(out, ",\n");
    }
    shk_strbuf_puts(out, "};\n");
}

static void out_names(struct shk_strbuf *out, const struct shk_field *field)
{
    for (size_t i = 0; i < field->names_count; i++)
        shk_strbuf_printf(out, "%s`%s`", i ? " " : "", field->names[i]);
}

static void out_value_column(struct shk_strbuf *out, const struct shk_field *field)
{
    switch (field->kind) {
    case SHK_FIELD_TEXT: shk_strbuf_puts(out, "text"); break;
    case SHK_FIELD_LINES: shk_strbuf_puts(out, "text, several lines allowed"); break;
    case SHK_FIELD_TEXTS: shk_strbuf_puts(out, "list of texts"); break;
    case SHK_FIELD_BOOL: shk_strbuf_puts(out, "`true` `false`"); break;
    case SHK_FIELD_CHAR: shk_strbuf_puts(out, "one character"); break;
    case SHK_FIELD_INT:
        shk_strbuf_printf(out, "whole number, %lld to %lld", field->min, field->max);
        break;
    case SHK_FIELD_INT64: shk_strbuf_puts(out, "whole number"); break;
    case SHK_FIELD_WORD:
    case SHK_FIELD_ENUM: out_names(out, field); break;
    case SHK_FIELD_RECORD: shk_strbuf_printf(out, "mapping: %s", field->record->what); break;
    case SHK_FIELD_RECORDS:
        shk_strbuf_printf(out, "list of mappings: %s", field->record->what);
        break;
    }
}

void shk_schema_markdown(struct shk_strbuf *out, const struct shk_record *record)
{
    shk_strbuf_printf(out,
                      "Keys of a %s:\n\n| key | needed | value | meaning |\n|---|---|---|---|\n",
                      record->what);
    for (size_t i = 0; i < record->fields_count; i++) {
        const struct shk_field *field = &record->fields[i];
        shk_strbuf_printf(out, "| `%s` | %s | ", field->key, field->required ? "yes" : "");
        out_value_column(out, field);
        shk_strbuf_printf(out, " | %s |\n", field->doc);
    }
    for (size_t i = 0; i < record->fields_count; i++)
        if (record->fields[i].record && !record->fields[i].record->apart) {
            shk_strbuf_putc(out, '\n');
            shk_schema_markdown(out, record->fields[i].record);
        }
}
