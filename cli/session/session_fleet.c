/* Large sets of facts, saved or of a job: nodes that say the same are one entry of the session,
 * whose name is the folded list of theirs. */
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/session/session.h"
#include "core/facts/factset.h"
#include "core/text/nodefold.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Some dozens of nodes are shown one by one. */
enum { FLEET_BYTES = 16 << 20, FLEET_FILES = 64, FLEET_DROP = 32 << 20 };

struct fleet_group {
    size_t node; /* of the session */
    char **names;
    size_t count;
};

struct shk_fleet {
    struct shk_factset *set;
    json_t *index; /* key -> group */
    json_t *hosts; /* name -> [group, nodes of the session at that time] */
    struct fleet_group *groups;
    size_t count;
    const char *path; /* what is read, while it is; borrowed */
    size_t document;
};

static struct shk_fleet *fleet_create(const struct shk_session *session)
{
    size_t n;
    const struct shk_diff_rule *rules = shk_config_diff(session->config, &n);
    struct shk_fleet *fleet = calloc(1, sizeof *fleet);
    if (fleet) {
        fleet->set = shk_factset_create(rules, n);
        fleet->index = json_object();
        fleet->hosts = json_object();
    }
    return fleet;
}

void shk_fleet_free(struct shk_fleet *fleet)
{
    if (!fleet)
        return;
    for (size_t i = 0; i < fleet->count; i++) {
        for (size_t k = 0; k < fleet->groups[i].count; k++)
            free(fleet->groups[i].names[k]);
        free(fleet->groups[i].names);
    }
    free(fleet->groups);
    json_decref(fleet->index);
    json_decref(fleet->hosts);
    shk_factset_destroy(fleet->set);
    free(fleet);
}

static int fleet_parse(struct shk_session *session, const char *text, size_t len,
                       struct shk_error *err)
{
    json_error_t where;
    struct shk_facts *facts = NULL;
    json_t *doc = json_loadb(text, len, JSON_REJECT_DUPLICATES, &where);
    json_t *faults = json_array(), *fault;
    size_t i;
    int rc = doc ? shk_facts_reported(&facts, doc, faults, err)
                 : shk_error_set(err, EINVAL, "%s", where.text);
    json_array_foreach(faults, i, fault)
    {
        if (!rc && session->fleet->path)
            shk_say("%s: document %zu: %s; taken as a fact that was not read", session->fleet->path,
                    session->fleet->document, json_string_value(json_object_get(fault, "why")));
    }
    json_decref(faults);
    json_decref(doc);
    return rc ? rc : shk_session_add(session, facts, err);
}

static int fleet_name(struct fleet_group *group, const char *name)
{
    if ((group->count & (group->count - 1)) == 0) {
        char **more = realloc(group->names, (group->count ? 2 * group->count : 1) * sizeof *more);
        if (!more)
            return -ENOMEM;
        group->names = more;
    }
    group->names[group->count] = strdup(name);
    return group->names[group->count++] ? 0 : -ENOMEM;
}

static int fleet_group(struct shk_session *session, const char *key, const char *text, size_t len,
                       size_t *group_p, struct shk_error *err)
{
    struct shk_fleet *fleet = session->fleet;
    json_t *known = json_object_get(fleet->index, key);
    *group_p = known ? (size_t)json_integer_value(known) : fleet->count;
    if (known)
        return 0;
    int rc = fleet_parse(session, text, len, err);
    struct fleet_group *more =
        rc ? NULL : realloc(fleet->groups, (fleet->count + 1) * sizeof *more);
    if (!rc &&
        (!more || json_object_set_new(fleet->index, key, json_integer((json_int_t)fleet->count))))
        rc = shk_error_sys(err, ENOMEM, "facts");
    if (more)
        fleet->groups = more;
    if (!rc)
        fleet->groups[fleet->count++] = (struct fleet_group){.node = session->nodes - 1};
    return rc;
}

static void fleet_forget(struct fleet_group *group, const char *name)
{
    for (size_t i = 0; i < group->count; i++) {
        if (strcmp(group->names[i], name) == 0) {
            free(group->names[i]);
            group->names[i] = group->names[--group->count];
            return;
        }
    }
}

static size_t fleet_number(const json_t *had, size_t i)
{
    return (size_t)json_integer_value(json_array_get(had, i));
}

/* A host is one node: its last document counts. True when it is in this group already. */
static bool fleet_host(struct shk_session *session, const char *name, size_t group)
{
    struct shk_fleet *fleet = session->fleet;
    const json_t *had = json_object_get(fleet->hosts, name);
    bool known = had && fleet_number(had, 0) == group;
    if (had && !known) {
        shk_say(SHK_HOST_DIFFERS, name);
        fleet_forget(&fleet->groups[fleet_number(had, 0)], name);
    }
    (void)json_object_set_new(fleet->hosts, name,
                              json_pack("[I, I]", (json_int_t)group, (json_int_t)session->nodes));
    return known;
}

/* One document; -EINVAL when it is not in the form that is told apart by its text. */
static int fleet_document(struct shk_session *session, const char *text, size_t len, size_t *used_p,
                          size_t *group_p, struct shk_error *err)
{
    char key[SHK_FACTSET_KEY], name[256], unnamed[32];
    int rc = shk_factset_read(session->fleet->set, text, len, used_p, key, name, sizeof name);
    if (rc)
        return shk_error_set(err, -rc, "not a facts document");
    snprintf(unnamed, sizeof unnamed, "node %zu", session->nodes + 1);
    rc = fleet_group(session, key, text, *used_p, group_p, err);
    bool known = !rc && *name && fleet_host(session, name, *group_p);
    if (!rc && !known && fleet_name(&session->fleet->groups[*group_p], *name ? name : unnamed))
        rc = shk_error_sys(err, ENOMEM, "facts");
    return rc;
}

static int fleet_text(struct shk_session *session, const char *path, char *text, size_t len)
{
    size_t at = shk_bom(text, len), dropped = 0, used = 0, group = 0;
    struct shk_error err = {""};
    for (size_t document = 1;; document++, at += used) {
        while (at < len && strchr(" \t\r\n", text[at]) && text[at])
            at++;
        if (at == len)
            return SHK_EXIT_OK;
        session->fleet->path = path;
        session->fleet->document = document;
        int rc = fleet_document(session, text + at, len - at, &used, &group, &err);
        session->fleet->path = NULL;
        if (rc) {
            shk_say("%s: document %zu: %s", path, document, err.text);
            return rc == -EINVAL ? SHK_EXIT_USAGE : SHK_EXIT_INTERNAL;
        }
        /* What was read is not needed again: it must not count as our memory. */
        if (at - dropped > FLEET_DROP) {
            size_t page = (size_t)sysconf(_SC_PAGESIZE), until = at / page * page;
            (void)madvise(text + dropped, until - dropped, MADV_DONTNEED);
            dropped = until;
        }
    }
}

bool shk_session_load_fleet(struct shk_session *session, const char *path, int *code_p)
{
    struct stat st;
    bool file = strcmp(path, "-") != 0 && stat(path, &st) == 0 && S_ISREG(st.st_mode);
    int fd = file ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    bool many = session->options->arguments.count > FLEET_FILES || session->in_folder > FLEET_FILES;
    bool ours = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 &&
                (many || st.st_size > FLEET_BYTES);
    char *text = ours ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    if (fd >= 0)
        close(fd);
    if (text == MAP_FAILED)
        return false;
    size_t head = (size_t)st.st_size < 64 ? (size_t)st.st_size : 64;
    ours = memchr(text, '{', head) && !memchr(text, '[', head); /* arrays: the ordinary way */
    if (ours && !session->fleet && !(session->fleet = fleet_create(session)))
        ours = false;
    if (ours)
        *code_p = fleet_text(session, path, text, (size_t)st.st_size);
    munmap(text, (size_t)st.st_size);
    return ours;
}

/* Adds a node of the world that is like no other before it; *group_p: 1 + its group, 0: no facts.
 */
static int fleet_live(struct shk_session *session, size_t node, size_t *group_p,
                      struct shk_error *err)
{
    struct shk_facts *facts = shk_world_take_facts(session->world, node);
    if (!facts)
        return 0;
    if (shk_session_tell_nodes(session, facts)) {
        shk_facts_destroy(facts);
        return shk_error_sys(err, ENOMEM, "facts");
    }
    json_t *doc = shk_facts_to_json(facts);
    char *text = json_dumps(doc, JSON_COMPACT | JSON_SORT_KEYS);
    size_t used = 0, group = 0;
    int rc = text ? fleet_document(session, text, strlen(text), &used, &group, err)
                  : shk_error_sys(err, ENOMEM, "facts");
    if (!rc)
        *group_p = group + 1;
    free(text);
    json_decref(doc);
    shk_facts_destroy(facts);
    return rc;
}

bool shk_session_is_fleet(const struct shk_session *session)
{
    return shk_world_nodes(session->world) > FLEET_FILES;
}

int shk_session_gather_fleet(struct shk_session *session, struct shk_error *err)
{
    size_t n = shk_world_nodes(session->world);
    size_t *groups = calloc(n, sizeof *groups); /* by node: 1 + group */
    session->fleet = fleet_create(session);
    int rc = groups && session->fleet ? 0 : shk_error_sys(err, ENOMEM, "facts");
    for (size_t i = 0; !rc && i < n; i++) {
        size_t like = shk_world_like(session->world, i);
        groups[i] = groups[like];
        if (!groups[i])
            rc = fleet_live(session, i, &groups[i], err);
        else if (fleet_name(&session->fleet->groups[groups[i] - 1],
                            shk_world_node_name(session->world, i)))
            rc = shk_error_sys(err, ENOMEM, "facts");
    }
    free(groups);
    return rc;
}

static struct fleet_group *fleet_of(const struct shk_fleet *fleet, size_t node)
{
    for (size_t i = 0; i < fleet->count; i++) {
        if (fleet->groups[i].node == node)
            return &fleet->groups[i];
    }
    return NULL;
}

/* Does a document that was read in the ordinary way (one in an array) count for its host? `later`:
 * hosts that such documents after it speak of. */
static bool fleet_counts(struct shk_session *session, size_t node, json_t *later)
{
    struct shk_fleet *fleet = session->fleet;
    const char *name = shk_facts_get_text(session->facts[node], "host.name");
    const json_t *had = name ? json_object_get(fleet->hosts, name) : NULL;
    bool after = name && json_object_get(later, name);
    if (had || after)
        shk_say("host %s: several documents; the last one counts", name);
    if (after || (had && node < fleet_number(had, 1)))
        return false;
    if (had) {
        fleet_forget(&fleet->groups[fleet_number(had, 0)], name);
        json_object_del(fleet->hosts, name);
    }
    if (name)
        json_object_set_new(later, name, json_true());
    return true;
}

static void fleet_drop(struct shk_session *session, size_t node)
{
    struct shk_fleet *fleet = session->fleet;
    shk_session_drop(session, node);
    for (size_t i = 0; i < fleet->count; i++)
        fleet->groups[i].node -= fleet->groups[i].node > node;
}

void shk_fleet_one_per_host(struct shk_session *session)
{
    struct shk_fleet *fleet = session->fleet;
    json_t *later = json_object();
    for (size_t node = session->nodes; node-- > 0;) {
        if (!fleet_of(fleet, node) && !fleet_counts(session, node, later))
            fleet_drop(session, node);
    }
    json_decref(later);
    for (size_t i = fleet->count; i-- > 0;) {
        size_t node = fleet->groups[i].node;
        if (fleet->groups[i].count)
            continue;
        free(fleet->groups[i].names);
        fleet->count--;
        memmove(&fleet->groups[i], &fleet->groups[i + 1],
                (fleet->count - i) * sizeof *fleet->groups);
        fleet_drop(session, node);
    }
}

size_t shk_fleet_names(const struct shk_fleet *fleet, size_t node, const char *const **names_p)
{
    for (size_t i = 0; fleet && i < fleet->count; i++) {
        if (fleet->groups[i].node == node) {
            *names_p = (const char *const *)fleet->groups[i].names;
            return fleet->groups[i].count;
        }
    }
    return 0;
}

int shk_session_name_fleet(struct shk_session *session)
{
    struct shk_fleet *fleet = session->fleet;
    int rc = 0;
    session->weights = fleet ? calloc(session->nodes, sizeof *session->weights) : NULL;
    for (size_t i = 0; session->weights && i < session->nodes; i++)
        session->weights[i] = 1;
    for (size_t i = 0; session->weights && i < fleet->count && !rc; i++) {
        struct fleet_group *group = &fleet->groups[i];
        struct shk_strbuf name = SHK_STRBUF_INIT;
        shk_nodefold(&name, (const char *const *)group->names, group->count);
        session->weights[group->node] = group->count;
        rc = name.failed ? -ENOMEM
                         : shk_facts_text(session->facts[group->node], "host.name",
                                          shk_strbuf_text(&name), "names of the nodes");
        shk_strbuf_free(&name);
    }
    if (fleet && (rc || !session->weights)) {
        shk_say("out of memory");
        return SHK_EXIT_INTERNAL;
    }
    return SHK_EXIT_OK;
}
