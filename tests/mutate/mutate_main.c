/* Mutates facts documents and prints what does not hold; exit 1 when anything does not.
 *   mutate [--list] NAME.json...
 * A document is one of facts, or of this folder's form: {like: another name, without: [keys],
 * facts: {…}}. --list prints the document that it stands for instead. */
#include "checks/selftest/mutate.h"
#include "core/text/strbuf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_breach(const struct shk_mutation_breach *breach, void *arg)
{
    printf("%s: %s %s: %s [%s] %s\n", (const char *)arg, breach->fact, breach->how, breach->check,
           breach->setting, breach->problem);
}

/* The facts of a document, with those that it builds on. */
static json_t *load_facts(const char *path)
{
    json_error_t at;
    size_t i;
    json_t *doc = json_load_file(path, 0, &at), *key;
    const char *like = json_string_value(json_object_get(doc, "like"));
    const char *slash = strrchr(path, '/');
    json_t *facts = NULL;
    if (!doc)
        fprintf(stderr, "%s:%d: %s\n", path, at.line, at.text);
    if (doc && like) {
        char *other =
            shk_strf("%.*s/%s.json", slash ? (int)(slash - path) : 1, slash ? path : ".", like);
        facts = other ? load_facts(other) : NULL;
        free(other);
        json_array_foreach(json_object_get(doc, "without"), i, key)
            json_object_del(facts, json_string_value(key));
    } else if (doc) {
        facts = json_object();
    }
    if (facts)
        json_object_update(facts, json_object_get(doc, "facts"));
    json_decref(doc);
    return facts;
}

static int print_document(const char *path)
{
    json_t *doc = json_pack("{s:s, s:o}", "schema", SHK_FACTS_SCHEMA, "facts", load_facts(path));
    int rc = doc ? json_dumpf(doc, stdout, JSON_SORT_KEYS | JSON_INDENT(1)) : -1;
    json_decref(doc);
    return rc;
}

static int mutate_file(const struct shk_config *config, const char *path, size_t *breaches)
{
    struct shk_error err = {"it holds no facts"};
    struct shk_mutation_count count = {0};
    json_t *facts = load_facts(path);
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    int rc = json_object_size(facts)
                 ? shk_mutate(config, facts, print_breach, (void *)name, &count, &err)
                 : -1;
    if (rc)
        fprintf(stderr, "%s: %s\n", path, err.text);
    else
        fprintf(stderr, "%s: %zu judgements, %zu breaches\n", name, count.mutations,
                count.breaches);
    *breaches += count.breaches;
    json_decref(facts);
    return rc;
}

int main(int argc, char **argv)
{
    struct shk_config *config = NULL;
    struct shk_error err = {""};
    size_t breaches = 0;
    bool list = argc > 1 && strcmp(argv[1], "--list") == 0;
    int rc = shk_config_load(&config, NULL, NULL, &err);
    for (int i = list ? 2 : 1; !rc && i < argc; i++)
        rc = list ? print_document(argv[i]) : mutate_file(config, argv[i], &breaches);
    shk_config_free(config);
    return rc ? 2 : breaches ? 1 : 0;
}
