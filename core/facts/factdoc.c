#include "core/facts/facts_private.h"
#include "core/text/strbuf.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A facts file of one node is some 100 KiB; 64 MiB holds hundreds of nodes in one file and bounds
 * what a stranger's file can make us allocate. */
enum { FACTDOC_MAX_BYTES = 64 << 20, FACTDOC_MAX_DEPTH = 32, FACTDOC_MAX_FACTS = 100000 };

/* Malformed facts of one document whose lines are looked for. */
enum { FACTDOC_MAX_PLACES = 16 };

/* A report of any schema holds its nodes as facts documents: shakedown.report/1 (0.1), /2 (0.2). */
static bool factdoc_is_report(const char *schema)
{
    static const char *const known[] = {"shakedown.report/1", "shakedown.report/2"};
    for (size_t i = 0; schema && i < sizeof known / sizeof *known; i++)
        if (strcmp(schema, known[i]) == 0)
            return true;
    return false;
}

json_t *shk_facts_to_json(const struct shk_facts *facts)
{
    return json_pack("{s:s,s:O}", "schema", SHK_FACTS_SCHEMA, "facts", facts->table);
}

static bool factdoc_too_deep(const json_t *value, int depth)
{
    if (depth > FACTDOC_MAX_DEPTH)
        return true;
    const char *key;
    json_t *item;
    size_t i;
    json_object_foreach((json_t *)value, key, item)
    {
        if (factdoc_too_deep(item, depth + 1))
            return true;
    }
    json_array_foreach(value, i, item)
    {
        if (factdoc_too_deep(item, depth + 1))
            return true;
    }
    return false;
}

/* What is wrong with one member of "facts", one clause; NULL: nothing. New string. */
static char *factdoc_fault(const char *key, const json_t *given)
{
    static const char *const members[] = {"unit", "source", "reason"};
    const char *state = json_string_value(json_object_get(given, "state"));
    int which = shk_facts_state_parse(state);
    if (!shk_facts_key_valid(key))
        return shk_strf("'%.60s' is not a fact key", key);
    if (factdoc_too_deep(given, 0))
        return shk_strf("%s: nested deeper than %d", key, FACTDOC_MAX_DEPTH);
    if (!state)
        return NULL;
    if (which < 0 && strncmp(key, "env.", 4) == 0) /* it may be a secret */
        return shk_strf("%s: its state is not present, absent or failed", key);
    if (which < 0)
        return shk_strf("%s: state '%.40s' is not present, absent or failed; a value with a member "
                        "state stands in {\"state\": \"present\", \"value\": …}",
                        key, state);
    if (which == SHK_FACT_PRESENT && !json_object_get(given, "value"))
        return shk_strf("%s: present without a value", key);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        json_t *member = json_object_get(given, members[i]);
        if (member && !json_is_string(member))
            return shk_strf("%s: %s is not a string", key, members[i]);
    }
    return NULL;
}

/* One member of "facts" to a new entry: either the full form, or a bare value. No fact has the text
 * "absent" as its value but a variable, which may have any. */
static json_t *factdoc_entry(const char *key, json_t *given)
{
    const char *text = json_string_value(given);
    if (json_is_string(json_object_get(given, "state")))
        return json_incref(given);
    if (text && strcmp(text, "absent") == 0 && strncmp(key, "env.", 4) != 0)
        return json_pack("{s:s,s:s}", "state", "absent", "source", "reported");
    return json_pack("{s:s,s:O,s:s}", "state", "present", "value", given, "source", "reported");
}

/* As it is: what made the entry has taken secrets out of it. */
static int factdoc_adopt(struct shk_facts *facts, const char *key, json_t *entry)
{
    bool valid = shk_facts_key_valid(key);
    if (!valid)
        json_decref(entry);
    return !valid ? -EINVAL : json_object_set_new(facts->table, key, entry) ? -ENOMEM : 0;
}

static int factdoc_check(const json_t *doc, struct shk_error *err)
{
    const char *schema = json_string_value(json_object_get(doc, "schema"));
    json_t *table = json_object_get(doc, "facts");
    if (!json_is_object(doc))
        return shk_error_set(err, EINVAL, "facts: not a JSON object");
    if (!schema)
        return shk_error_set(err, EINVAL, "facts: no \"schema\": \"" SHK_FACTS_SCHEMA "\"");
    if (strcmp(schema, SHK_FACTS_SCHEMA) != 0)
        return shk_error_set(err, EINVAL, "facts: schema '%.60s' is not " SHK_FACTS_SCHEMA, schema);
    if (!json_is_object(table))
        return shk_error_set(err, EINVAL, "facts: \"facts\" is not an object");
    if (json_object_size(table) > FACTDOC_MAX_FACTS)
        return shk_error_set(err, E2BIG, "facts: more than %d facts", FACTDOC_MAX_FACTS);
    return 0;
}

/* How entries get into a store, and where faults of single ones go: [{key, why, given}]; NULL: the
 * first one refuses the document. */
struct factdoc_way {
    int (*store)(struct shk_facts *facts, const char *key, json_t *entry);
    json_t *faults;
};

/* A fact that is malformed is one that nobody read. What is no key has no place at all. */
static int factdoc_lose(struct shk_facts *facts, const struct factdoc_way *way, const char *key,
                        json_t *given, const char *why)
{
    const char *reason = why + (shk_facts_key_valid(key) ? strlen(key) + 2 : 0);
    if (json_array_append_new(way->faults,
                              json_pack("{s:s,s:s,s:O}", "key", key, "why", why, "given", given)))
        return -ENOMEM;
    return reason == why ? 0 : shk_facts_failed(facts, key, "reported", "%s", reason);
}

static int factdoc_one(struct shk_facts *facts, const struct factdoc_way *way, const char *key,
                       json_t *given, struct shk_error *err)
{
    char *why = factdoc_fault(key, given);
    int rc = 0;
    if (why && !way->faults)
        rc = shk_error_set(err, EINVAL, "facts: %s", why);
    else if (why && (rc = factdoc_lose(facts, way, key, given, why)))
        shk_error_sys(err, -rc, "facts");
    else if (!why && (rc = way->store(facts, key, factdoc_entry(key, given))))
        shk_error_sys(err, -rc, "facts: %s", key);
    free(why);
    return rc;
}

static int factdoc_read(struct shk_facts **facts_p, const json_t *doc,
                        const struct factdoc_way *way, struct shk_error *err)
{
    int rc = factdoc_check(doc, err);
    if (rc)
        return rc;
    struct shk_facts *facts = shk_facts_create();
    const char *key;
    json_t *given;
    rc = facts ? 0 : shk_error_sys(err, ENOMEM, "facts");
    json_object_foreach(json_object_get(doc, "facts"), key, given)
    {
        if (rc || (rc = factdoc_one(facts, way, key, given, err)))
            break;
    }
    if (rc) {
        shk_facts_destroy(facts);
        return rc;
    }
    *facts_p = facts;
    return 0;
}

int shk_facts_from_json(struct shk_facts **facts_p, const json_t *doc, struct shk_error *err)
{
    return factdoc_read(facts_p, doc, &(struct factdoc_way){.store = shk_facts_store}, err);
}

int shk_facts_reported(struct shk_facts **facts_p, const json_t *doc, json_t *faults,
                       struct shk_error *err)
{
    return factdoc_read(facts_p, doc,
                        &(struct factdoc_way){.store = shk_facts_store, .faults = faults}, err);
}

int shk_facts_from_child(struct shk_facts **facts_p, const json_t *doc, struct shk_error *err)
{
    return factdoc_read(facts_p, doc, &(struct factdoc_way){.store = factdoc_adopt}, err);
}

static int factdoc_slurp(const char *path, struct shk_strbuf *sb, struct shk_error *err)
{
    bool stdin_ = strcmp(path, "-") == 0;
    /* a pipe with a name is waited for, as one without is */
    int fd = stdin_ ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return shk_error_sys(err, errno, "%s", path);
    struct stat st;
    int rc = 0;
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
        rc = shk_error_sys(err, EISDIR, "%s", path);
    char *chunk = malloc(1 << 16);
    while (!rc && chunk) {
        ssize_t n = read(fd, chunk, 1 << 16);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            rc = shk_error_sys(err, errno, "%s", path);
        else if (sb->len + (size_t)n > FACTDOC_MAX_BYTES)
            rc = shk_error_set(err, EFBIG, "%s: larger than %d MiB", path, FACTDOC_MAX_BYTES >> 20);
        else
            shk_strbuf_add(sb, chunk, (size_t)n);
        if (n <= 0)
            break;
    }
    if (!rc && (!chunk || sb->failed))
        rc = shk_error_sys(err, ENOMEM, "%s", path);
    free(chunk);
    if (!stdin_)
        close(fd);
    return rc;
}

/* What is read: a file, and where in it the document begins. */
struct factdoc_place {
    const char *path, *text;
    size_t len;
    int line;
};

struct factdoc_list {
    struct shk_facts **items;
    size_t count;
    json_t *faults; /* of the document that is read, see struct factdoc_way; NULL: it is refused */
    json_t *said;   /* them in words, with their places; borrowed */
    struct factdoc_place place;
};

static int factdoc_append(struct factdoc_list *list, const json_t *doc, struct shk_error *err);

static int factdoc_append_report(struct factdoc_list *list, const json_t *doc,
                                 struct shk_error *err)
{
    size_t i;
    json_t *node, *nodes = json_object_get(doc, "nodes");
    int rc = 0;
    if (!json_array_size(nodes))
        return shk_error_set(err, EINVAL, "facts: the report has no nodes");
    json_array_foreach(nodes, i, node)
    {
        if (json_object_get(node, "nodes"))
            return shk_error_set(err, EINVAL, "facts: a report inside of a report");
        rc = rc ? rc : factdoc_append(list, node, err);
    }
    return rc;
}

static int factdoc_append(struct factdoc_list *list, const json_t *doc, struct shk_error *err)
{
    const char *schema = json_string_value(json_object_get(doc, "schema"));
    if (factdoc_is_report(schema))
        return factdoc_append_report(list, doc, err);
    struct shk_facts *facts = NULL;
    int rc = shk_facts_reported(&facts, doc, list->faults, err);
    if (rc)
        return rc;
    struct shk_facts **more = realloc(list->items, (list->count + 1) * sizeof *more);
    if (!more) {
        shk_facts_destroy(facts);
        return shk_error_sys(err, ENOMEM, "facts");
    }
    list->items = more;
    list->items[list->count++] = facts;
    return 0;
}

static int factdoc_parse(struct factdoc_place *place, const char *path, const char *text,
                         size_t len, int (*fn)(const json_t *doc, void *arg, struct shk_error *err),
                         void *arg, struct shk_error *err)
{
    size_t at = shk_bom(text, len), count = 0;
    int line = 1, rc = 0;
    while (!rc) {
        for (; at < len && strchr(" \t\r\n", text[at]) && text[at]; at++)
            line += text[at] == '\n';
        if (at == len)
            break;
        json_error_t where;
        json_t *doc = json_loadb(text + at, len - at,
                                 JSON_DISABLE_EOF_CHECK | JSON_REJECT_DUPLICATES, &where);
        if (!doc)
            return shk_error_set(err, EINVAL, "%s:%d: %s", path, line + where.line - 1, where.text);
        struct shk_error why = {""};
        size_t i;
        json_t *item;
        *place = (struct factdoc_place){path, text + at, len - at, line};
        if (!json_is_array(doc))
            rc = fn(doc, arg, &why);
        count += json_is_array(doc) ? json_array_size(doc) : 1;
        json_array_foreach(doc, i, item)
        {
            rc = rc ? rc : fn(item, arg, &why);
        }
        json_decref(doc);
        if (rc)
            shk_error_set(err, -rc, "%s:%d: %.400s", path, line, why.text);
        for (int p = 0; p < where.position; p++)
            line += text[at + (size_t)p] == '\n';
        at += (size_t)where.position;
    }
    if (!rc && !count)
        rc = shk_error_set(err, EINVAL, "%s: empty, no facts document", path);
    return rc;
}

/* The value of the member at `at` of the text is this one. */
static bool factdoc_is_at(const struct factdoc_place *place, size_t at, const char *key,
                          const json_t *given)
{
    size_t len = strlen(key);
    if (place->len - at < len + 3 || place->text[at] != '"' || place->text[at + len + 1] != '"' ||
        memcmp(place->text + at + 1, key, len) != 0)
        return false;
    for (at += len + 2; at < place->len && strchr(" \t\r\n:", place->text[at]); at++)
        if (!place->text[at])
            return false;
    json_t *value = json_loadb(place->text + at, place->len - at,
                               JSON_DISABLE_EOF_CHECK | JSON_DECODE_ANY, NULL);
    bool same = value && json_equal(value, given);
    json_decref(value);
    return same;
}

/* Line of a fact; that of its document when it is not found as it is written. */
static int factdoc_line(const struct factdoc_place *place, const char *key, const json_t *given)
{
    int line = place->line;
    for (size_t at = 0; at < place->len; at++) {
        line += place->text[at] == '\n';
        if (place->text[at] == '"' && factdoc_is_at(place, at, key, given))
            return line;
    }
    return place->line;
}

/* Puts the faults of one document into words. The first ones have their line looked for. */
static int factdoc_say(struct factdoc_list *list)
{
    const struct factdoc_place *place = &list->place;
    size_t i;
    json_t *fault;
    json_array_foreach(list->faults, i, fault)
    {
        const char *key = json_string_value(json_object_get(fault, "key"));
        int line = i < FACTDOC_MAX_PLACES
                       ? factdoc_line(place, key, json_object_get(fault, "given"))
                       : place->line;
        char *text = shk_strf(
            "%s:%d: %s; %s", place->path, line, json_string_value(json_object_get(fault, "why")),
            shk_facts_key_valid(key) ? "taken as a fact that was not read" : "left out");
        int rc = text ? json_array_append_new(list->said, shk_json_text(text, strlen(text))) : -1;
        free(text);
        if (rc)
            return -ENOMEM;
    }
    json_array_clear(list->faults);
    return 0;
}

static int factdoc_take(const json_t *doc, void *arg, struct shk_error *err)
{
    struct factdoc_list *list = arg;
    int rc = factdoc_append(list, doc, err);
    if (!rc && list->faults && (rc = factdoc_say(list)))
        shk_error_sys(err, -rc, "facts");
    return rc;
}

static int factdoc_documents(struct factdoc_place *place, const char *path,
                             int (*fn)(const json_t *doc, void *arg, struct shk_error *err),
                             void *arg, struct shk_error *err)
{
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    int rc = factdoc_slurp(path, &sb, err);
    if (!rc)
        rc = factdoc_parse(place, path, shk_strbuf_text(&sb), sb.len, fn, arg, err);
    shk_strbuf_free(&sb);
    return rc;
}

int shk_facts_documents(const char *path,
                        int (*fn)(const json_t *doc, void *arg, struct shk_error *err), void *arg,
                        struct shk_error *err)
{
    struct factdoc_place place = {0};
    return factdoc_documents(&place, path, fn, arg, err);
}

static int factdoc_file(struct factdoc_list *list, const char *path, struct shk_error *err)
{
    return factdoc_documents(&list->place, path, factdoc_take, list, err);
}

static void factdoc_free(struct factdoc_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        shk_facts_destroy(list->items[i]);
    free(list->items);
}

static int factdoc_is_json(const struct dirent *entry)
{
    size_t len = strlen(entry->d_name);
    return entry->d_name[0] != '.' && len > 5 && strcmp(entry->d_name + len - 5, ".json") == 0;
}

int shk_facts_folder(const char *path, char ***files_p, size_t *count_p, struct shk_error *err)
{
    struct dirent **names = NULL;
    int n = scandir(path, &names, factdoc_is_json, alphasort), rc = 0;
    if (n < 0)
        return shk_error_sys(err, errno, "%s", path);
    char **files = calloc((size_t)n + 1, sizeof *files);
    if (!files)
        rc = shk_error_sys(err, ENOMEM, "%s", path);
    else if (!n)
        rc = shk_error_set(err, ENOENT, "%s: no *.json in this folder", path);
    for (int i = 0; i < n; i++) {
        if (!rc && !(files[i] = shk_strf("%s/%s", path, names[i]->d_name)))
            rc = shk_error_sys(err, ENOMEM, "%s", path);
        free(names[i]);
    }
    free(names);
    if (rc) {
        shk_facts_folder_free(files, files ? (size_t)n : 0);
        return rc;
    }
    *files_p = files;
    *count_p = (size_t)n;
    return 0;
}

void shk_facts_folder_free(char **files, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(files[i]);
    free(files);
}

static int factdoc_folder(struct factdoc_list *list, const char *path, struct shk_error *err)
{
    char **files;
    size_t count;
    int rc = shk_facts_folder(path, &files, &count, err);
    if (rc)
        return rc;
    for (size_t i = 0; !rc && i < count; i++)
        rc = factdoc_file(list, files[i], err);
    shk_facts_folder_free(files, count);
    return rc;
}

int shk_facts_load(struct shk_facts ***facts_p, size_t *count_p, const char *path, json_t *said,
                   struct shk_error *err)
{
    struct factdoc_list list = {.said = said, .faults = said ? json_array() : NULL};
    struct stat st;
    bool folder = strcmp(path, "-") != 0 && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    int rc = said && !list.faults ? shk_error_sys(err, ENOMEM, "%s", path)
             : folder             ? factdoc_folder(&list, path, err)
                                  : factdoc_file(&list, path, err);
    json_decref(list.faults);
    if (rc) {
        factdoc_free(&list);
        return rc;
    }
    *facts_p = list.items;
    *count_p = list.count;
    return 0;
}
