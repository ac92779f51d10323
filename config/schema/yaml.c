#include "config/schema/yaml.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

struct yaml_level {
    struct shk_yaml_node *node;
    const struct shk_yaml_node **tail; /* where the next child goes */
    unsigned children;
};

struct yaml_reader {
    yaml_parser_t parser;
    struct shk_arena *arena;
    const char *name;
    const char *data;
    size_t size;
    struct yaml_level levels[SHK_YAML_MAX_DEPTH];
    unsigned depth;
    unsigned nodes;
    unsigned documents;
    const struct shk_yaml_node *root;
    struct shk_error *err;
};

int shk_yaml_error(struct shk_error *err, int errnum, const char *file, unsigned line,
                   const char *key, const char *fmt, ...)
{
    enum { PATH_SHOWN = 200 };
    size_t len = strlen(file);
    const char *cut = len > PATH_SHOWN ? "..." : "";
    if (len > PATH_SHOWN)
        file += len - PATH_SHOWN;
    char what[512], where[16] = "";
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    if (line)
        snprintf(where, sizeof where, ":%u", line);
    return shk_error_set(err, errnum, "%s%s%s: %s%s%s", cut, file, where, key ? key : "",
                         key ? ": " : "", what);
}

const struct shk_yaml_node *shk_yaml_get(const struct shk_yaml_node *mapping, const char *key)
{
    if (mapping->kind != SHK_YAML_MAPPING)
        return NULL;
    for (const struct shk_yaml_node *k = mapping->first; k; k = k->next->next)
        if (strcmp(k->text, key) == 0)
            return k->next;
    return NULL;
}

bool shk_yaml_is_null(const struct shk_yaml_node *node)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};
    if (node->kind != SHK_YAML_TEXT || !node->plain)
        return false;
    for (size_t i = 0; i < sizeof nulls / sizeof nulls[0]; i++)
        if (strcmp(node->text, nulls[i]) == 0)
            return true;
    return false;
}

static unsigned yaml_line_at(const struct yaml_reader *reader, size_t offset)
{
    unsigned line = 1;
    for (size_t i = 0; i < offset && i < reader->size; i++)
        line += reader->data[i] == '\n';
    return line;
}

/* libyaml's column counts characters, not bytes. */
static bool yaml_is_tab(const struct yaml_reader *reader, const yaml_mark_t *mark)
{
    size_t at = 0, line = 0, column = 0;
    for (; at < reader->size && line < mark->line; at++)
        line += reader->data[at] == '\n';
    for (; at < reader->size && column < mark->column; column++)
        do
            at++;
        while (at < reader->size && ((unsigned char)reader->data[at] & 0xc0) == 0x80);
    return at < reader->size && reader->data[at] == '\t';
}

/* libyaml's own words, with the line that they are about. */
static int yaml_syntax_error(struct yaml_reader *reader)
{
    const yaml_parser_t *p = &reader->parser;
    if (p->error == YAML_MEMORY_ERROR)
        return shk_error_set(reader->err, ENOMEM, "out of memory");
    const char *problem = p->problem ? p->problem : "not valid";
    if (p->error == YAML_READER_ERROR)
        return shk_yaml_error(reader->err, EINVAL, reader->name,
                              yaml_line_at(reader, p->problem_offset), "YAML", "%s", problem);
    unsigned line = (unsigned)p->problem_mark.line + 1;
    if (yaml_is_tab(reader, &p->problem_mark))
        return shk_yaml_error(reader->err, EINVAL, reader->name, line, "YAML",
                              "a tab: indent with spaces (%s)", problem);
    if (p->context)
        return shk_yaml_error(reader->err, EINVAL, reader->name, line, "YAML",
                              "%s (%s from line %u)", problem, p->context,
                              (unsigned)p->context_mark.line + 1);
    return shk_yaml_error(reader->err, EINVAL, reader->name, line, "YAML", "%s", problem);
}

static int yaml_refuse(struct yaml_reader *reader, const yaml_event_t *event, int errnum,
                       const char *what)
{
    return shk_yaml_error(reader->err, errnum, reader->name, (unsigned)event->start_mark.line + 1,
                          "YAML", "%s", what);
}

/* Links a new node below the current level. */
static int yaml_add(struct yaml_reader *reader, const yaml_event_t *event, enum shk_yaml_kind kind,
                    struct shk_yaml_node **node_p)
{
    if (++reader->nodes > SHK_YAML_MAX_NODES)
        return yaml_refuse(reader, event, EFBIG, "too many values in one file");
    struct shk_yaml_node *node = shk_arena_alloc(reader->arena, sizeof *node);
    if (!node)
        return shk_error_set(reader->err, ENOMEM, "out of memory");
    node->kind = kind;
    node->line = (unsigned)event->start_mark.line + 1;
    if (reader->depth) {
        struct yaml_level *level = &reader->levels[reader->depth - 1];
        bool is_key = level->node->kind == SHK_YAML_MAPPING && level->children % 2 == 0;
        if (is_key && kind != SHK_YAML_TEXT)
            return yaml_refuse(reader, event, EINVAL, "a list or mapping as a key");
        *level->tail = node;
        level->tail = &node->next;
        level->children++;
    } else {
        reader->root = node;
    }
    *node_p = node;
    return 0;
}

static int yaml_open(struct yaml_reader *reader, const yaml_event_t *event, enum shk_yaml_kind kind)
{
    struct shk_yaml_node *node = NULL;
    if (reader->depth == SHK_YAML_MAX_DEPTH)
        return yaml_refuse(reader, event, EFBIG, "nested too deeply");
    int rc = yaml_add(reader, event, kind, &node);
    if (rc < 0)
        return rc;
    reader->levels[reader->depth++] = (struct yaml_level){.node = node, .tail = &node->first};
    return 0;
}

static int yaml_text(struct yaml_reader *reader, const yaml_event_t *event)
{
    const char *value = (const char *)event->data.scalar.value;
    size_t len = event->data.scalar.length;
    struct shk_yaml_node *node = NULL;
    if (memchr(value, '\0', len))
        return yaml_refuse(reader, event, EINVAL, "a NUL character in a text");
    int rc = yaml_add(reader, event, SHK_YAML_TEXT, &node);
    if (rc < 0)
        return rc;
    node->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    node->text = shk_arena_text(reader->arena, value, len);
    node->len = len;
    return node->text ? 0 : shk_error_set(reader->err, ENOMEM, "out of memory");
}

/* Anchor and tag of an event that can have them. */
static int yaml_check_extras(struct yaml_reader *reader, const yaml_event_t *event)
{
    const yaml_char_t *anchor = NULL, *tag = NULL;
    switch (event->type) {
    case YAML_ALIAS_EVENT: anchor = event->data.alias.anchor; break;
    case YAML_SCALAR_EVENT:
        anchor = event->data.scalar.anchor;
        tag = event->data.scalar.tag;
        break;
    case YAML_SEQUENCE_START_EVENT:
        anchor = event->data.sequence_start.anchor;
        tag = event->data.sequence_start.tag;
        break;
    case YAML_MAPPING_START_EVENT:
        anchor = event->data.mapping_start.anchor;
        tag = event->data.mapping_start.tag;
        break;
    default: break;
    }
    if (anchor)
        return yaml_refuse(reader, event, EINVAL, "anchors and aliases (& and *) are not allowed");
    if (tag)
        return yaml_refuse(reader, event, EINVAL, "tags (!) are not allowed");
    return 0;
}

static int yaml_event(struct yaml_reader *reader, const yaml_event_t *event)
{
    int rc = yaml_check_extras(reader, event);
    if (rc < 0)
        return rc;
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (++reader->documents > 1)
            return yaml_refuse(reader, event, EINVAL, "more than one document (---) in the file");
        return 0;
    case YAML_SCALAR_EVENT: return yaml_text(reader, event);
    case YAML_SEQUENCE_START_EVENT: return yaml_open(reader, event, SHK_YAML_LIST);
    case YAML_MAPPING_START_EVENT: return yaml_open(reader, event, SHK_YAML_MAPPING);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT: reader->depth--; return 0;
    default: return 0;
    }
}

int shk_yaml_parse(struct shk_arena *arena, const char *name, const void *data, size_t size,
                   const struct shk_yaml_node **root_p, struct shk_error *err)
{
    struct yaml_reader reader = {
        .arena = arena, .name = name, .data = data ? data : "", .size = size, .err = err};
    if (size > SHK_YAML_MAX_BYTES)
        return shk_yaml_error(err, EFBIG, name, 0, NULL, "larger than %zu MiB",
                              SHK_YAML_MAX_BYTES >> 20);
    if (!yaml_parser_initialize(&reader.parser))
        return shk_error_set(err, ENOMEM, "out of memory");
    yaml_parser_set_encoding(&reader.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&reader.parser, (const yaml_char_t *)reader.data, size);

    int rc = 0;
    bool done = false;
    while (!rc && !done) {
        yaml_event_t event;
        if (!yaml_parser_parse(&reader.parser, &event)) {
            rc = yaml_syntax_error(&reader);
        } else {
            done = event.type == YAML_STREAM_END_EVENT;
            rc = yaml_event(&reader, &event);
            yaml_event_delete(&event);
        }
    }
    yaml_parser_delete(&reader.parser);
    if (rc)
        return rc;
    bool nothing = reader.root && shk_yaml_is_null(reader.root);
    *root_p = nothing ? NULL : reader.root;
    return 0;
}
