/* Mutates facts documents (files on the command line) and prints what does not hold; exit 1 when
 * anything does not. */
#include "checks/mutate.h"

#include <stdio.h>
#include <string.h>

static void print_breach(const struct shk_mutation_breach *breach, void *arg)
{
    printf("%s: %s %s: %s [%s] %s\n", (const char *)arg, breach->fact, breach->how, breach->check,
           breach->setting, breach->problem);
}

static int mutate_file(const struct shk_config *config, const char *path, size_t *breaches)
{
    struct shk_error err = {""};
    json_error_t at;
    struct shk_mutation_count count = {0};
    json_t *doc = json_load_file(path, 0, &at);
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    int rc = doc ? shk_mutate(config, NULL, NULL, json_object_get(doc, "facts"), print_breach,
                              (void *)name, &count, &err)
                 : -1;
    if (rc)
        fprintf(stderr, "%s: %s\n", path, doc ? err.text : at.text);
    else
        fprintf(stderr, "%s: %zu judgements, %zu breaches\n", name, count.mutations,
                count.breaches);
    *breaches += count.breaches;
    json_decref(doc);
    return rc;
}

int main(int argc, char **argv)
{
    struct shk_config *config = NULL;
    struct shk_error err = {""};
    size_t breaches = 0;
    int rc = shk_config_load(&config, NULL, NULL, &err);
    for (int i = 1; !rc && i < argc; i++)
        rc = mutate_file(config, argv[i], &breaches);
    shk_config_free(config);
    return rc ? 2 : breaches ? 1 : 0;
}
