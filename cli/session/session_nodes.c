/* Lists of nodes: --healthy-nodes, --bad-nodes. A node is healthy when something passed there and
 * nothing that was required is unknown; bad when a FAIL of its own names it. What belongs to the
 * job and to no node leaves no list of healthy nodes at all. */
#include "checks/base/check.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/session/session.h"
#include "core/text/nodefold.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NODE_PASSED = 1, NODE_BAD = 2, NODE_LAUNCH = 4, NODE_UNKNOWN = 8 };

struct node_table {
    const char **names; /* each once, in order of their first mention */
    unsigned *marks;
    size_t count, room;
    json_t *index;      /* name -> place */
    const char *failed; /* setting that failed without a node */
    const char *unread; /* required setting of the job that is unknown */
};

static void table_free(struct node_table *table)
{
    free(table->names);
    free(table->marks);
    json_decref(table->index);
}

static int table_grow(struct node_table *table)
{
    size_t room = table->room ? 2 * table->room : 64;
    const char **names = realloc(table->names, room * sizeof *names);
    if (names)
        table->names = names;
    unsigned *marks = names ? realloc(table->marks, room * sizeof *marks) : NULL;
    if (!marks)
        return -ENOMEM;
    table->marks = marks;
    table->room = room;
    return 0;
}

static int table_mark(struct node_table *table, const char *name, unsigned mark)
{
    json_t *known = json_object_get(table->index, name);
    size_t at = known ? (size_t)json_integer_value(known) : table->count;
    if (!known) {
        if (at == table->room && table_grow(table))
            return -ENOMEM;
        if (json_object_set_new(table->index, name, json_integer((json_int_t)at)))
            return -ENOMEM;
        table->names[at] = name;
        table->marks[at] = 0;
        table->count++;
    }
    table->marks[at] |= mark;
    return 0;
}

static const char *node_name(const struct shk_session *session, size_t i)
{
    return shk_facts_get_text(session->facts[i], "host.name");
}

/* Marks the nodes that one store of the session stands for. */
static int mark_store(const struct shk_session *session, struct node_table *table, size_t store,
                      unsigned mark)
{
    const char *const *names = NULL;
    const char *name = node_name(session, store);
    size_t n = shk_fleet_names(session->fleet, store, &names);
    int rc = 0;
    for (size_t i = 0; i < n && !rc; i++)
        rc = table_mark(table, names[i], mark);
    return !n && name ? table_mark(table, name, mark) : rc;
}

/* A name in a row: of a node, or the folded names of a group of them. */
static int mark_name(const struct shk_session *session, struct node_table *table, const char *name,
                     unsigned mark)
{
    for (size_t i = 0; session->fleet && i < session->nodes; i++)
        if (node_name(session, i) && strcmp(node_name(session, i), name) == 0)
            return mark_store(session, table, i, mark);
    return table_mark(table, name, mark);
}

static unsigned mark_of(const struct shk_finding *f)
{
    if (f->verdict == SHK_FAIL)
        return f->scope == SHK_SCOPE_LAUNCH ? NODE_LAUNCH : NODE_BAD;
    if (f->verdict == SHK_UNKNOWN)
        return f->required ? NODE_UNKNOWN : 0;
    return f->verdict == SHK_PASS ? NODE_PASSED : 0;
}

static int table_row(const struct shk_session *session, struct node_table *table,
                     const struct shk_finding *f)
{
    unsigned mark = mark_of(f);
    int rc = 0;
    for (char **node = mark ? f->nodes : NULL; node && *node && !rc; node++)
        rc = mark_name(session, table, *node, mark);
    if (!mark || f->nodes)
        return rc;
    if (shk_session_is_own(session->facts[0], session->nodes, f->id))
        return mark_store(session, table, 0, mark);
    if (f->verdict == SHK_FAIL && !table->failed)
        table->failed = f->setting;
    if (f->verdict == SHK_UNKNOWN && !table->unread)
        table->unread = f->setting;
    return 0;
}

static int table_fill(const struct shk_session *session, struct node_table *table)
{
    table->index = json_object();
    int rc = table->index ? 0 : -ENOMEM;
    for (size_t i = 0; i < session->nodes && !rc; i++)
        rc = mark_store(session, table, i, 0);
    for (size_t i = 0; i < shk_findings_count(session->findings) && !rc; i++)
        rc = table_row(session, table, shk_findings_at(session->findings, i));
    return rc;
}

/* Names with exactly `marks` among those of `mask`; *names_p: borrowed names in a new array. */
static int table_select(const struct node_table *table, unsigned mask, unsigned marks,
                        const char ***names_p, size_t *count_p)
{
    const char **names = calloc(table->count + 1, sizeof *names);
    size_t n = 0;
    for (size_t i = 0; names && i < table->count; i++)
        if ((table->marks[i] & mask) == marks)
            names[n++] = table->names[i];
    *names_p = names;
    *count_p = n;
    return names ? 0 : -ENOMEM;
}

static int nodes_write(const char *path, const char *const *names, size_t count,
                       struct shk_error *err)
{
    struct shk_strbuf text = SHK_STRBUF_INIT;
    struct shk_output out;
    int rc = shk_output_begin(&out, err);
    if (rc)
        return rc;
    shk_nodefold(&text, names, count);
    if (count)
        fprintf(out.stream, "%s\n", shk_strbuf_text(&text));
    rc = text.failed ? shk_error_sys(err, ENOMEM, "%s", path) : 0;
    shk_strbuf_free(&text);
    if (rc) {
        shk_output_discard(&out);
        return rc;
    }
    return shk_output_finish(&out, path, err);
}

/* Nodes where nothing failed, and that are no good all the same. */
static void say_unknown(const struct node_table *table, const char *path)
{
    struct shk_strbuf text = SHK_STRBUF_INIT;
    const char **names = NULL;
    size_t n = 0;
    if (!table_select(table, NODE_BAD | NODE_LAUNCH | NODE_UNKNOWN, NODE_UNKNOWN, &names, &n) &&
        n) {
        shk_nodefold(&text, names, n);
        shk_say("%s: without %s: nothing failed there, but something required could not be tested",
                path, shk_strbuf_text(&text));
    }
    free(names);
    shk_strbuf_free(&text);
}

/* Why there is no healthy node: the exit code that goes with it. */
static int say_none(const struct node_table *table, const char *path)
{
    if (table->failed) {
        shk_say("%s: no node is listed as healthy: '%s' failed, and the failure cannot be "
                "attributed to a single node",
                path, table->failed);
        return SHK_EXIT_FAIL;
    }
    if (table->unread) {
        shk_say("%s: no node is listed as healthy: '%s' is required and could not be tested", path,
                table->unread);
        return SHK_EXIT_UNKNOWN;
    }
    shk_say("%s: no node is healthy: the list is empty", path);
    for (size_t i = 0; i < table->count; i++)
        if (table->marks[i] & (NODE_BAD | NODE_LAUNCH))
            return SHK_EXIT_FAIL;
    return SHK_EXIT_UNKNOWN;
}

static int write_healthy(const struct node_table *table, const char *path, int *code_p,
                         struct shk_error *err)
{
    const char **names = NULL;
    size_t n = 0;
    if (table_select(table, ~0U, NODE_PASSED, &names, &n))
        return shk_error_sys(err, ENOMEM, "%s", path);
    if (table->failed || table->unread)
        n = 0;
    int rc = nodes_write(path, names, n, err);
    free(names);
    if (!rc && !n)
        *code_p = say_none(table, path);
    else if (!rc)
        say_unknown(table, path);
    return rc;
}

static int write_bad(const struct node_table *table, const char *path, struct shk_error *err)
{
    const char **names = NULL;
    size_t n = 0;
    if (table_select(table, NODE_BAD, NODE_BAD, &names, &n))
        return shk_error_sys(err, ENOMEM, "%s", path);
    int rc = nodes_write(path, names, n, err);
    free(names);
    return rc;
}

/* One of several tasks that found no job together: each would overwrite what the others wrote. */
static int nodes_not_ours(const struct shk_options *o)
{
    const char *path = o->healthy_nodes ? o->healthy_nodes : o->bad_nodes;
    if (!path)
        return SHK_EXIT_OK;
    if (access(path, F_OK) == 0)
        shk_say("%s: what is in it is not of this task", path);
    shk_say(
        "%s: not written: the launcher started several tasks, which did not find each other, so "
        "none of them reports for the job (srun --mpi=pmix)",
        path);
    return SHK_EXIT_FAIL;
}

int shk_session_node_files_begin(const struct shk_session *session)
{
    const char *path = session->options->healthy_nodes;
    struct shk_error err = {""};
    if (!path || !shk_session_speaks(session) || !nodes_write(path, NULL, 0, &err))
        return SHK_EXIT_OK;
    shk_say("%s", err.text);
    return SHK_EXIT_INTERNAL;
}

int shk_session_node_files(const struct shk_session *session)
{
    const struct shk_options *o = session->options;
    struct node_table table = {0};
    struct shk_error err = {""};
    int code = SHK_EXIT_OK;
    if (!shk_session_speaks(session))
        return nodes_not_ours(o);
    int rc = table_fill(session, &table);
    if (rc)
        shk_error_sys(&err, -rc, "lists of nodes");
    if (!rc && o->healthy_nodes)
        rc = write_healthy(&table, o->healthy_nodes, &code, &err);
    if (!rc && o->bad_nodes)
        rc = write_bad(&table, o->bad_nodes, &err);
    table_free(&table);
    if (rc)
        shk_say("%s", err.text);
    return rc ? SHK_EXIT_INTERNAL : code;
}
