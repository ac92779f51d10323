#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/session.h"
#include "reports/nodefold.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Host names, each once. */
struct node_list {
    const char **names;
    size_t count;
};

static bool list_has(const struct node_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->names[i], name) == 0)
            return true;
    return false;
}

static int list_add(struct node_list *list, const char *name)
{
    if (list_has(list, name))
        return 0;
    const char **more = realloc(list->names, (list->count + 1) * sizeof *more);
    if (!more)
        return -ENOMEM;
    list->names = more;
    list->names[list->count++] = name;
    return 0;
}

static const char *node_name(const struct shk_session *session, size_t i)
{
    return shk_facts_get_text(session->facts[i], "host.name");
}

/* Adds the names that one store of the session stands for. */
static int list_add_node(const struct shk_session *session, struct node_list *list, size_t node,
                         const struct node_list *without)
{
    const char *const *names = NULL;
    const char *name = node_name(session, node);
    size_t n = shk_fleet_names(session->fleet, node, &names);
    int rc = 0;
    for (size_t i = 0; i < n && !rc; i++)
        if (!without || !list_has(without, names[i]))
            rc = list_add(list, names[i]);
    if (!n && name && (!without || !list_has(without, name)))
        rc = list_add(list, name);
    return rc;
}

/* A name in a row: of a node, or the folded names of a group of them. */
static int nodes_bad_name(const struct shk_session *session, struct node_list *bad,
                          const char *name)
{
    for (size_t i = 0; session->fleet && i < session->nodes; i++)
        if (node_name(session, i) && strcmp(node_name(session, i), name) == 0)
            return list_add_node(session, bad, i, NULL);
    return list_add(bad, name);
}

/* Nodes that a failed row names; the only node when there is one. A failed row of several nodes
 * that names none is about the job. */
static int nodes_bad(const struct shk_session *session, struct node_list *bad)
{
    int rc = 0;
    for (size_t i = 0; i < shk_findings_count(session->findings) && !rc; i++) {
        const struct shk_finding *f = shk_findings_at(session->findings, i);
        if (f->verdict != SHK_FAIL)
            continue;
        for (size_t k = 0; f->nodes && f->nodes[k] && !rc; k++)
            rc = nodes_bad_name(session, bad, f->nodes[k]);
        if (!f->nodes && session->nodes == 1)
            rc = list_add_node(session, bad, 0, NULL);
    }
    return rc;
}

static int nodes_good(const struct shk_session *session, const struct node_list *bad,
                      struct node_list *good)
{
    int rc = 0;
    for (size_t i = 0; i < session->nodes && !rc; i++)
        rc = list_add_node(session, good, i, bad);
    return rc;
}

static int nodes_write(const char *path, const struct node_list *list, struct shk_error *err)
{
    struct shk_strbuf text = SHK_STRBUF_INIT;
    struct shk_output out;
    int rc = shk_output_begin(&out, err);
    if (rc)
        return rc;
    shk_nodefold(&text, list->names, list->count);
    if (list->count)
        fprintf(out.stream, "%s\n", shk_strbuf_text(&text));
    rc = text.failed ? shk_error_sys(err, ENOMEM, "%s", path) : 0;
    shk_strbuf_free(&text);
    if (rc) {
        shk_output_discard(&out);
        return rc;
    }
    return shk_output_finish(&out, path, err);
}

int shk_session_node_files(const struct shk_session *session)
{
    const struct shk_options *o = session->options;
    struct node_list bad = {0}, good = {0};
    struct shk_error err = {""};
    int rc = nodes_bad(session, &bad);
    rc = rc ? rc : nodes_good(session, &bad, &good);
    if (rc)
        shk_error_sys(&err, -rc, "lists of nodes");
    if (!rc && o->healthy_nodes)
        rc = nodes_write(o->healthy_nodes, &good, &err);
    if (!rc && o->bad_nodes)
        rc = nodes_write(o->bad_nodes, &bad, &err);
    free(bad.names);
    free(good.names);
    if (rc)
        shk_say("%s", err.text);
    return rc ? SHK_EXIT_INTERNAL : SHK_EXIT_OK;
}
