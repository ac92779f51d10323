#include "core/text/strbuf.h"
#include "probes/ticket/ticket_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Processes and nodes of one file that are told apart; the lines of others are left out. */
enum { STREAMS_MAX = 256, NODES_MAX = 256, HOST_RUN = 4 };

struct ticket_file {
    char *name;
    bool cut;  /* it is longer than what is looked at */
    bool open; /* it ends within a line */
    struct shk_strbuf text;
};

struct shk_ticket {
    const struct shk_name_set *names;
    struct ticket_file *files;
    size_t file_count;
    size_t taken;                  /* bytes of all files */
    struct shk_ticket_node *nodes; /* names are owned */
    size_t node_count;
    json_t *said;  /* {reader: number of facts}, in the order of the text */
    json_t *notes; /* {text: true} */
    struct shk_inspector *inspector;
    struct shk_strbuf lines; /* that outputs came to */
};

#define READER(name) extern const struct ticket_reader ticket_reader_##name;
#include "probes/ticket/list.def"
#undef READER

const struct ticket_reader *const *ticket_readers(size_t *count_p)
{
    static const struct ticket_reader *const all[] = {
#define READER(name) &ticket_reader_##name,
#include "probes/ticket/list.def"
#undef READER
    };
    *count_p = sizeof all / sizeof *all;
    return all;
}

struct shk_ticket *shk_ticket_create(const struct shk_name_set *names)
{
    struct shk_ticket *ticket = calloc(1, sizeof *ticket);
    if (!ticket)
        return NULL;
    ticket->names = names;
    ticket->said = json_object();
    ticket->notes = json_object();
    ticket->inspector = shk_inspector_create();
    if (!ticket->said || !ticket->notes || !ticket->inspector) {
        shk_ticket_destroy(ticket);
        return NULL;
    }
    return ticket;
}

void shk_ticket_destroy(struct shk_ticket *ticket)
{
    if (!ticket)
        return;
    for (size_t i = 0; i < ticket->file_count; i++) {
        free(ticket->files[i].name);
        shk_strbuf_free(&ticket->files[i].text);
    }
    for (size_t i = 0; i < ticket->node_count; i++) {
        free((char *)ticket->nodes[i].name);
        shk_facts_destroy(ticket->nodes[i].facts);
    }
    free(ticket->files);
    free(ticket->nodes);
    json_decref(ticket->said);
    json_decref(ticket->notes);
    shk_inspector_destroy(ticket->inspector);
    shk_strbuf_free(&ticket->lines);
    free(ticket);
}

static int new_file(struct shk_ticket *ticket, const char *name)
{
    struct ticket_file *files =
        realloc(ticket->files, (ticket->file_count + 1) * sizeof *ticket->files);
    if (!files)
        return -ENOMEM;
    ticket->files = files;
    files[ticket->file_count] = (struct ticket_file){.name = strdup(name)};
    return files[ticket->file_count++].name ? 0 : -ENOMEM;
}

struct shk_facts *ticket_facts(struct shk_ticket *ticket, const char *node)
{
    for (size_t i = 0; i < ticket->node_count; i++)
        if (strcmp(ticket->nodes[i].name, node) == 0)
            return ticket->nodes[i].facts;
    if (ticket->node_count == NODES_MAX)
        return ticket->nodes[0].facts;
    struct shk_ticket_node *nodes =
        realloc(ticket->nodes, (ticket->node_count + 1) * sizeof *ticket->nodes);
    if (!nodes)
        return NULL;
    ticket->nodes = nodes;
    char *name = strdup(node);
    struct shk_facts *facts = shk_facts_create();
    if (!name || !facts ||
        (*node && shk_facts_text(facts, "host.name", node, "prompt or prefix") == -ENOMEM)) {
        free(name);
        shk_facts_destroy(facts);
        return NULL;
    }
    nodes[ticket->node_count++] = (struct shk_ticket_node){.name = name, .facts = facts};
    return facts;
}

int ticket_tell(struct shk_ticket *ticket, const char *reader, size_t wrote, const char *note)
{
    json_int_t before = json_integer_value(json_object_get(ticket->said, reader));
    int rc = 0;
    if (wrote)
        rc |= json_object_set_new(ticket->said, reader, json_integer(before + (json_int_t)wrote));
    if (note) {
        char *text = shk_strf("%s: %s", reader, note);
        rc |= text ? json_object_set_new(ticket->notes, text, json_true()) : -1;
        free(text);
    }
    return rc ? -ENOMEM : 0;
}

struct ticket_out ticket_out_of(struct shk_ticket *ticket, struct shk_facts *facts,
                                const char *source)
{
    return (struct ticket_out){.facts = facts,
                               .names = ticket->names,
                               .source = source,
                               .lines = &ticket->lines,
                               .inspector = ticket->inspector};
}

bool ticket_said(const struct shk_ticket *ticket, const char *reader)
{
    return json_object_get(ticket->said, reader) != NULL;
}

/* Names that stand as "node01: " in front of several lines in a row. */
static json_t *file_hosts(char *const *lines, size_t count)
{
    json_t *hosts = json_object();
    size_t run = 0;
    for (size_t i = 0; hosts && i < count; i++) {
        size_t len = ticket_line_host(lines[i]);
        if (!len) {
            run = 0;
            continue;
        }
        run = run && strncmp(lines[i], lines[i - 1], len) == 0 ? run + 1 : 1;
        if (run != HOST_RUN)
            continue;
        lines[i][len - 2] = '\0';
        int rc = json_object_set_new(hosts, lines[i], json_true());
        lines[i][len - 2] = ':';
        if (rc)
            return json_decref(hosts), NULL;
    }
    return hosts;
}

/* Bytes of the UTF-8 character at p; 0: none begins here. */
static size_t character(const char *p, size_t left)
{
    json_t *text = NULL;
    size_t len = (unsigned char)*p < 0x80   ? 1
                 : (unsigned char)*p < 0xe0 ? 2
                 : (unsigned char)*p < 0xf0 ? 3
                                            : 4;
    if (len > 1)
        text = len <= left ? json_stringn(p, len) : NULL;
    json_decref(text);
    return len == 1 || text ? len : 0;
}

/* Makes it text: what is no UTF-8, and zeros, become '?'. */
static void make_text(char *p, size_t len)
{
    for (size_t i = 0; i < len;) {
        if (p[i] && (unsigned char)p[i] < 0x80) {
            i++;
            continue;
        }
        size_t step = p[i] ? character(p + i, len - i) : 0;
        if (!step)
            p[i] = '?';
        i += step ? step : 1;
    }
}

/* Cuts the text into lines, in place; *cut_p: the last one was not ended and is left out. NULL: out
 * of memory. */
static char **file_lines(struct shk_strbuf *text, size_t *count_p, bool *cut_p)
{
    size_t count = 1;
    make_text(text->data, text->len);
    for (const char *at = text->data; (at = strchr(at, '\n')); at++)
        count++;
    char **lines = malloc(count * sizeof *lines), *p = text->data;
    *count_p = 0;
    while (lines && p) {
        lines[(*count_p)++] = p;
        p = strchr(p, '\n');
        if (p)
            *p++ = '\0';
    }
    /* A paste that ends within a line may end within a number. */
    size_t last = lines ? strlen(lines[*count_p - 1]) : 0;
    *cut_p = last && !strchr("+|]}`", lines[*count_p - 1][last - 1]);
    *count_p -= *cut_p && *count_p > 1;
    return lines;
}

/* The stream of the mark's tag; NULL: too many, or out of memory (then *rc_p). */
static struct ticket_stream *file_stream(struct ticket_stream *streams, size_t *count_p,
                                         const struct ticket_mark *mark)
{
    for (size_t i = 0; i < *count_p; i++)
        if (strcmp(streams[i].tag, mark->tag) == 0)
            return &streams[i];
    if (*count_p == STREAMS_MAX)
        return NULL;
    struct ticket_stream *stream = &streams[(*count_p)++];
    strcpy(stream->tag, mark->tag);
    strcpy(stream->node, mark->node);
    return stream;
}

static int stream_add(struct ticket_stream *stream, char *line)
{
    if (stream->count == stream->cap) {
        size_t cap = stream->cap ? stream->cap * 2 : 64;
        char **lines = realloc(stream->lines, cap * sizeof *lines);
        if (!lines)
            return -ENOMEM;
        stream->lines = lines;
        stream->cap = cap;
    }
    stream->lines[stream->count++] = line;
    return 0;
}

static int file_split(char **lines, size_t count, struct ticket_stream *streams, size_t *used_p)
{
    json_t *hosts = file_hosts(lines, count);
    int rc = hosts ? 0 : -ENOMEM;
    for (size_t i = 0; i < count && !rc; i++) {
        struct ticket_mark mark = ticket_line_parse(lines[i], hosts);
        struct ticket_stream *stream = file_stream(streams, used_p, &mark);
        rc = stream ? stream_add(stream, (char *)mark.text) : 0;
    }
    json_decref(hosts);
    return rc;
}

static int file_read(struct shk_ticket *ticket, struct ticket_file *file)
{
    size_t count = 0, used = 0;
    bool cut = false;
    if (!file->text.len)
        return 0;
    char **lines = file_lines(&file->text, &count, &cut);
    struct ticket_stream *streams = calloc(STREAMS_MAX, sizeof *streams);
    int rc = lines && streams ? file_split(lines, count, streams, &used) : -ENOMEM;
    for (size_t i = 0; i < used; i++) {
        streams[i].cut = cut;
        file->open = cut && count > 1;
        rc = rc ? rc : ticket_stream_read(ticket, &streams[i], file->name);
        free(streams[i].lines);
    }
    free(streams);
    free(lines);
    shk_strbuf_free(&file->text);
    return rc;
}

int shk_ticket_add(struct shk_ticket *ticket, const char *file, const char *data, size_t len)
{
    struct ticket_file *last = ticket->file_count ? &ticket->files[ticket->file_count - 1] : NULL;
    if (!last || strcmp(last->name, file) != 0) {
        if ((last && file_read(ticket, last)) || new_file(ticket, file))
            return -ENOMEM;
        last = &ticket->files[ticket->file_count - 1];
    }
    size_t used = last->text.len;
    size_t room = SHK_TICKET_FILE_MAX - used;
    size_t most = ticket->taken < SHK_TICKET_ALL_MAX ? SHK_TICKET_ALL_MAX - ticket->taken : 0;
    if (room > most)
        room = used + most > SHK_TICKET_FILE_MIN ? most : SHK_TICKET_FILE_MIN - used;
    ticket->taken += len < room ? len : room;
    shk_strbuf_add(&last->text, data, len < room ? len : room);
    last->cut |= len > room;
    return last->text.failed ? -ENOMEM : 0;
}

int shk_ticket_read(struct shk_ticket *ticket)
{
    int rc = 0;
    if (ticket->file_count)
        rc = file_read(ticket, &ticket->files[ticket->file_count - 1]);
    return rc;
}

const char *shk_ticket_lines(struct shk_ticket *ticket, size_t *len_p)
{
    shk_inspector_compare(ticket->inspector, &ticket->lines);
    *len_p = ticket->lines.len;
    return ticket->lines.failed ? NULL : shk_strbuf_text(&ticket->lines);
}

size_t shk_ticket_nodes(const struct shk_ticket *ticket)
{
    return ticket->node_count;
}

struct shk_ticket_node shk_ticket_node(const struct shk_ticket *ticket, size_t i)
{
    return ticket->nodes[i];
}

char *shk_ticket_summary(const struct shk_ticket *ticket)
{
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    const char *name;
    json_t *number, *unused;
    json_object_foreach(ticket->said, name, number)
    {
        json_int_t n = json_integer_value(number);
        shk_strbuf_puts(&sb, sb.len ? ", " : "");
        if (strcmp(name, "variables") == 0)
            shk_strbuf_printf(&sb, "%lld variable%s", (long long)n, n == 1 ? "" : "s");
        else
            shk_strbuf_puts(&sb, name);
    }
    json_object_foreach(ticket->notes, name, unused)
        shk_strbuf_printf(&sb, "%s%s", sb.len ? "; " : "", name);
    for (size_t i = 0; sb.len && i < ticket->file_count; i++)
        if (ticket->files[i].cut)
            shk_strbuf_printf(&sb, "; %s is long, its end was not looked at",
                              ticket->files[i].name);
    for (size_t i = 0; sb.len && i < ticket->file_count; i++)
        if (ticket->files[i].open)
            shk_strbuf_printf(&sb, "; the last line of %s is not ended and was left out",
                              ticket->files[i].name);
    if (!sb.len)
        shk_strbuf_puts(&sb, "");
    return shk_strbuf_take(&sb);
}
