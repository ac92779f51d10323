/* Cuts the lines of one stream into outputs of tools and gives each to its reader. */
#include "core/text/strbuf.h"
#include "probes/ticket/ticket_private.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct stream_state {
    struct shk_ticket *ticket;
    const struct ticket_stream *stream;
    const char *file;
    char node[64], home[64];            /* of the output; of the prompt, or of the heading */
    const char *command;                /* of the last prompt whose output this still is */
    const struct ticket_reader *reader; /* of the open block; NULL: none */
    size_t start;                       /* of the open block */
    bool gap;                           /* lines are missing above it */
    int rc;
};

/* Words behind a pipe that leave the output as it was. */
static bool pipe_is_harmless(const char *behind)
{
    static const char *const all[] = {"sort", "less", "more", "cat", "tee"};
    behind = ticket_skip(behind);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (ticket_after(behind, all[i]))
            return true;
    return false;
}

static bool command_filters(const char *command)
{
    const char *bar = command ? strchr(command, '|') : NULL;
    return bar && bar[1] != '|' && !pipe_is_harmless(bar + 1);
}

/* Does a word of the command line, up to a pipe, begin one of `commands`? */
static bool command_is(const char *command, const char *commands)
{
    for (const char *one = commands; one; one = strchr(one, '|') ? strchr(one, '|') + 1 : NULL) {
        size_t len = strcspn(one, "|");
        for (const char *p = command; *p && *p != '|' && *p != ';'; p++) {
            bool word = p == command || strchr(" /'\"", p[-1]);
            if (word && strncmp(p, one, len) == 0 && (!p[len] || strchr(" \t|;>&'\"", p[len])))
                return true;
        }
    }
    return false;
}

static const struct ticket_reader *reader_of_command(const char *command)
{
    size_t count;
    const struct ticket_reader *const *all = ticket_readers(&count);
    for (size_t i = 0; i < count; i++)
        if (all[i]->commands && command_is(command, all[i]->commands))
            return all[i];
    return NULL;
}

static json_t *entry_id(const json_t *entry, const char **name_p)
{
    static const char *const ids[] = {"pci", "addr", "name", "index"};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        json_t *id = json_object_get(entry, ids[i]);
        *name_p = ids[i];
        if (id)
            return id;
    }
    return NULL;
}

/* Is there a list with names, and this one is not among them? */
static bool entry_is_other(const json_t *list, const json_t *entry)
{
    const char *name;
    json_t *id = entry_id(entry, &name), *one;
    bool named = false;
    size_t i;
    json_array_foreach(list, i, one)
    {
        json_t *its = json_object_get(one, name);
        named |= its != NULL;
        if (its && json_equal(its, id))
            return false;
    }
    return id && named;
}

static int list_is_other(const struct shk_fact *fact, void *arg)
{
    const struct shk_facts *known = arg;
    const json_t *list = shk_facts_get_array(known, fact->key);
    json_t *entry;
    size_t i;
    if (list && json_is_array(fact->value))
        json_array_foreach(fact->value, i, entry) if (entry_is_other(list, entry)) return 1;
    return 0;
}

/* Does an output name devices that the one before of the same reader did not? It is one of another
 * node then, and nothing tells which. */
static bool is_of_another(struct stream_state *st, const struct ticket_reader *reader,
                          const struct ticket_block *block, struct shk_facts *facts)
{
    bool of_one =
        block->command && (strstr(block->command, " -i") || strstr(block->command, " -d"));
    if (reader->single || reader->names_its_own || of_one || !ticket_said(st->ticket, reader->name))
        return false;
    struct shk_facts *fresh = shk_facts_create();
    struct shk_strbuf unused = SHK_STRBUF_INIT;
    struct ticket_out out = {.facts = fresh, .source = "", .lines = &unused};
    if (fresh)
        reader->read(&out, block);
    shk_strbuf_free(&unused);
    bool other = fresh && shk_facts_each(fresh, "", list_is_other, facts);
    st->rc = !fresh || out.rc ? -ENOMEM : 0;
    shk_facts_destroy(fresh);
    return other;
}

static void give(struct stream_state *st, const struct ticket_reader *reader,
                 const struct ticket_block *block)
{
    struct shk_facts *facts = ticket_facts(st->ticket, st->node);
    char *source = shk_strf("%s: %s", st->file, reader->name);
    if (!facts || !source) {
        st->rc = -ENOMEM;
    } else {
        struct ticket_out out = ticket_out_of(st->ticket, facts, source);
        if (is_of_another(st, reader, block, facts))
            out.note = "one more, of other devices, and nothing tells of which node; left out";
        else
            reader->read(&out, block);
        int rc = ticket_tell(st->ticket, reader->name, out.wrote, out.note);
        st->rc = st->rc ? st->rc : out.rc ? out.rc : rc;
    }
    free(source);
}

/* Ends the open block in front of line `end`. */
static void close_block(struct stream_state *st, size_t end, bool ended, bool silent)
{
    const struct ticket_reader *reader = st->reader;
    st->reader = NULL;
    if (!reader || end < st->start || (end == st->start && !silent) || st->rc)
        return;
    struct ticket_block block = {
        .lines = st->stream->lines + st->start,
        .count = end - st->start,
        .command = st->command,
        .part = command_filters(st->command) || (st->stream->cut && end == st->stream->count),
        .ended = ended,
        .silent = silent,
    };
    for (size_t i = 0; i < block.count && !block.part; i++)
        block.part = ticket_line_is_gap(block.lines[i]);
    block.part |= st->gap;
    give(st, reader, &block);
}

static void give_command(struct stream_state *st, const char *command)
{
    struct shk_facts *facts = ticket_facts(st->ticket, st->node);
    if (!facts) {
        st->rc = -ENOMEM;
        return;
    }
    struct ticket_out out = ticket_out_of(st->ticket, facts, st->file);
    ticket_env_command(&out, command);
    int rc = ticket_tell(st->ticket, "variables", out.wrote, out.note);
    st->rc = out.rc ? out.rc : rc;
}

/* `hostname` behind a prompt that has no name, and its answer. */
static bool says_its_name(const struct stream_state *st, size_t at, const char *command)
{
    const char *p = ticket_after(command, "hostname");
    if (!p || (*p && *p != ' ') || at >= st->stream->count)
        return false;
    const char *name = st->stream->lines[at];
    size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._");
    return len && len < sizeof st->home && !name[len];
}

static void prompt(struct stream_state *st, size_t at, const char *command, const char *host)
{
    char name[64] = "";
    close_block(st, at, true, *host != '\0');
    if (*host && !*st->stream->node)
        snprintf(st->home, sizeof st->home, "%s", host);
    if (!*host && !*st->stream->node && says_its_name(st, at + 1, command))
        snprintf(st->home, sizeof st->home, "%s", st->stream->lines[at + 1]);
    bool elsewhere = ticket_line_remote(command, name, sizeof name);
    snprintf(st->node, sizeof st->node, "%s", elsewhere ? name : st->home);
    st->command = command;
    st->gap = false;
    st->reader = reader_of_command(command);
    st->start = at + 1;
    give_command(st, command);
}

/* "node07:4711:4720 [0] NCCL INFO …": most lines of most logs, and no output of a tool. */
static bool is_of_nccl(const char *line)
{
    const char *p = line + strcspn(line, ": ");
    for (int numbers = 0; numbers < 2; numbers++) {
        if (*p != ':' || !isdigit((unsigned char)p[1]))
            return false;
        p += 1 + strspn(p + 1, "0123456789");
    }
    return p[0] == ' ' && p[1] == '[';
}

/* Lines that speak for themselves, and beginnings of blocks. */
static void plain(struct stream_state *st, size_t at)
{
    size_t count;
    if (is_of_nccl(st->stream->lines[at]))
        return;
    st->gap |= !st->reader && ticket_line_is_gap(st->stream->lines[at]);
    const struct ticket_reader *const *all = ticket_readers(&count);
    char *const *lines = st->stream->lines + at;
    size_t left = st->stream->count - at;
    for (size_t i = 0; i < count && !st->rc; i++) {
        if (!all[i]->starts || (!all[i]->single && all[i] == st->reader) ||
            !all[i]->starts(lines, left))
            continue;
        if (all[i]->single) {
            struct ticket_block one = {.lines = lines,
                                       .count = left,
                                       .before = at,
                                       .command = st->command,
                                       .part = command_filters(st->command)};
            give(st, all[i], &one);
            continue;
        }
        if (st->reader)
            close_block(st, at, false, false);
        st->reader = all[i];
        st->start = at;
        return;
    }
}

/* How many lines from here on are a block that is indented as a whole, as markdown writes code: an
 * empty line stands above it. */
static size_t indented(char *const *lines, size_t left, size_t *by_p)
{
    size_t count = 0, by = SIZE_MAX;
    for (; count < left; count++) {
        size_t indent = strspn(lines[count], " ");
        if (!lines[count][indent])
            continue;
        if (indent < 4 && *lines[count] != '\t')
            break;
        indent = indent ? indent : 1;
        by = indent < by ? indent : by;
    }
    *by_p = by;
    return by == SIZE_MAX ? 0 : count;
}

/* A fence inside of a list stands behind blanks, and so does what it holds. */
static size_t fenced(const struct ticket_stream *stream, size_t at)
{
    size_t by = strspn(stream->lines[at], " "), i = at + 1;
    for (; i < stream->count && !ticket_line_is_fence(stream->lines[i]); i++) {
        size_t has = strspn(stream->lines[i], " ");
        stream->lines[i] += has < by ? has : by;
    }
    return i;
}

static void dedent(const struct ticket_stream *stream)
{
    for (size_t i = 0; i < stream->count; i++) {
        size_t by;
        if (ticket_line_is_fence(stream->lines[i])) {
            i = fenced(stream, i);
            continue;
        }
        if ((i && *ticket_skip(stream->lines[i - 1])) || !*ticket_skip(stream->lines[i]))
            continue; /* an empty line begins nothing */
        size_t count = indented(stream->lines + i, stream->count - i, &by);
        for (size_t k = i; k < i + count; k++)
            if (strlen(stream->lines[k]) >= by)
                stream->lines[k] += by;
        i += count;
    }
}

/* What stands in front of "[truncated]" was cut by the byte. */
static void drop_cut_lines(const struct ticket_stream *stream)
{
    for (size_t i = 1; i < stream->count; i++)
        if (strstr(stream->lines[i], "truncated") && ticket_line_is_gap(stream->lines[i]))
            stream->lines[i - 1] += strlen(stream->lines[i - 1]);
}

int ticket_stream_read(struct shk_ticket *ticket, const struct ticket_stream *stream,
                       const char *file)
{
    struct stream_state st = {.ticket = ticket, .stream = stream, .file = file};
    strcpy(st.node, stream->node);
    strcpy(st.home, stream->node);
    dedent(stream);
    drop_cut_lines(stream);
    for (size_t i = 0; i < stream->count && !st.rc; i++) {
        char host[64] = "";
        const char *line = stream->lines[i];
        char name[64] = "";
        bool header = ticket_line_header(stream->lines + i, stream->count - i, name, sizeof name);
        const char *command = ticket_line_prompt(line, host, sizeof host);
        if (command) {
            prompt(&st, i, command, host);
            continue;
        }
        if (!header && !ticket_line_is_fence(line)) {
            plain(&st, i);
            continue;
        }
        close_block(&st, i, true, false);
        st.command = NULL;
        st.gap = false;
        if (header && !*stream->node)
            snprintf(st.home, sizeof st.home, "%s", name);
        strcpy(st.node, st.home);
    }
    close_block(&st, stream->count, false, false);
    return st.rc;
}
