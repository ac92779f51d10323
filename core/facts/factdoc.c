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

static int factdoc_check_texts(const char *key, const json_t *entry, struct shk_error *err)
{
    static const char *const members[] = {"unit", "source", "reason"};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        json_t *member = json_object_get(entry, members[i]);
        if (member && !json_is_string(member))
            return shk_error_set(err, EINVAL, "facts: %s: %s is not a string", key, members[i]);
    }
    return 0;
}

/* One member of "facts" to a new entry: either the full form, or a bare value. */
static int factdoc_entry(const char *key, json_t *given, json_t **entry_p, struct shk_error *err)
{
    json_t *state = json_is_object(given) ? json_object_get(given, "state") : NULL;
    if (!shk_facts_key_valid(key))
        return shk_error_set(err, EINVAL, "facts: '%.60s' is not a fact key", key);
    if (factdoc_too_deep(given, 0))
        return shk_error_set(err, EINVAL, "facts: %s: nested deeper than %d", key,
                             FACTDOC_MAX_DEPTH);
    if (!json_is_string(state)) {
        *entry_p =
            json_pack("{s:s,s:O,s:s}", "state", "present", "value", given, "source", "reported");
        return *entry_p ? 0 : shk_error_sys(err, ENOMEM, "facts");
    }
    int which = shk_facts_state_parse(json_string_value(state));
    if (which < 0)
        return shk_error_set(err, EINVAL,
                             "facts: %s: state '%.40s' is not present, absent or failed", key,
                             json_string_value(state));
    if (which == SHK_FACT_PRESENT && !json_object_get(given, "value"))
        return shk_error_set(err, EINVAL, "facts: %s: present without a value", key);
    int rc = factdoc_check_texts(key, given, err);
    if (rc)
        return rc;
    *entry_p = json_incref(given);
    return 0;
}

/* As it is: what made the entry has taken secrets out of it. */
static int factdoc_adopt(struct shk_facts *facts, const char *key, json_t *entry)
{
    bool valid = shk_facts_key_valid(key);
    if (!valid)
        json_decref(entry);
    return !valid ? -EINVAL : json_object_set_new(facts->table, key, entry) ? -ENOMEM : 0;
}

static int factdoc_read(struct shk_facts **facts_p, const json_t *doc,
                        int (*store)(struct shk_facts *facts, const char *key, json_t *entry),
                        struct shk_error *err)
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
    struct shk_facts *facts = shk_facts_create();
    int rc = facts ? 0 : shk_error_sys(err, ENOMEM, "facts");
    const char *key;
    json_t *given;
    json_object_foreach(table, key, given)
    {
        json_t *entry = NULL;
        rc = rc ? rc : factdoc_entry(key, given, &entry, err);
        if (!rc && (rc = store(facts, key, entry)))
            shk_error_sys(err, -rc, "facts: %s", key);
        if (rc)
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
    return factdoc_read(facts_p, doc, shk_facts_store, err);
}

int shk_facts_from_child(struct shk_facts **facts_p, const json_t *doc, struct shk_error *err)
{
    return factdoc_read(facts_p, doc, factdoc_adopt, err);
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

struct factdoc_list {
    struct shk_facts **items;
    size_t count;
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
    int rc = shk_facts_from_json(&facts, doc, err);
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

static int factdoc_parse(const char *path, const char *text, size_t len,
                         int (*fn)(const json_t *doc, void *arg, struct shk_error *err), void *arg,
                         struct shk_error *err)
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

static void factdoc_free(struct factdoc_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        shk_facts_destroy(list->items[i]);
    free(list->items);
}

static int factdoc_take(const json_t *doc, void *list, struct shk_error *err)
{
    return factdoc_append(list, doc, err);
}

int shk_facts_documents(const char *path,
                        int (*fn)(const json_t *doc, void *arg, struct shk_error *err), void *arg,
                        struct shk_error *err)
{
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    int rc = factdoc_slurp(path, &sb, err);
    if (!rc)
        rc = factdoc_parse(path, shk_strbuf_text(&sb), sb.len, fn, arg, err);
    shk_strbuf_free(&sb);
    return rc;
}

static int factdoc_file(struct factdoc_list *list, const char *path, struct shk_error *err)
{
    return shk_facts_documents(path, factdoc_take, list, err);
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

int shk_facts_load(struct shk_facts ***facts_p, size_t *count_p, const char *path,
                   struct shk_error *err)
{
    struct factdoc_list list = {0};
    struct stat st;
    bool folder = strcmp(path, "-") != 0 && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    int rc = folder ? factdoc_folder(&list, path, err) : factdoc_file(&list, path, err);
    if (rc) {
        factdoc_free(&list);
        return rc;
    }
    *facts_p = list.items;
    *count_p = list.count;
    return 0;
}
