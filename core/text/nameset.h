/* Which environment variables are written down: names and beginnings of names, as data. The
 * catalogue makes the set and the probes use it, so that neither holds a list of names of its own.
 * Everything else in an environment is none of our business. */
#ifndef SHK_CORE_NAMESET_H
#define SHK_CORE_NAMESET_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct shk_name_rule {
    const char *name;   /* a variable, or the beginning of variables' names with its '_' */
    const char *family; /* whose they are: "nccl", "libfabric", … */
    bool prefix;
    bool wraps; /* of a prefix: the rest is a variable's name and counts as that */
    /* Typing errors: of a name one error when the list is there; of a prefix one error when one of
     * these words follows ("NCLL_DEBUG" is meant for NCCL, "NCAR_ROOT" is not), "*": any word.
     * NULL-terminated; NULL: only what is spelt right counts. */
    const char *const *near;
};

struct shk_name_set;

enum shk_name_how {
    SHK_NAME_PREFIX, /* begins with a known prefix */
    SHK_NAME_EXACT,  /* is a known name */
    SHK_NAME_NEAR,   /* one typing error away from either, or in the wrong case */
};

struct shk_name_match {
    const char *family; /* borrowed from the set */
    enum shk_name_how how;
    const char *of; /* the prefix or name that it matches; borrowed */
};

/* NULL when out of memory. */
struct shk_name_set *shk_name_set_create(void);
void shk_name_set_destroy(struct shk_name_set *set); /* NULL is fine */

/* The rule is copied, what it points to is borrowed and must outlive the set. 0 or -ENOMEM. */
int shk_name_set_add(struct shk_name_set *set, const struct shk_name_rule *rule);

/* False for names that must not be captured, and when set is NULL. Of several prefixes the longest
 * counts. */
bool shk_name_classify(const struct shk_name_set *set, const char *name,
                       struct shk_name_match *match_p);

/* Is it looked for when it is spelt like this: a name of the set, or a prefix of it begins the
 * name? */
bool shk_name_covered(const struct shk_name_set *set, const char *name);

/* What is looked for, for the record: {"names": [...], "prefixes": [...]}, sorted; without names
 * that a prefix covers. New reference, NULL when out of memory. */
json_t *shk_name_set_json(const struct shk_name_set *set);

/* The same question to such a record, which may come from anywhere. */
bool shk_name_json_covers(const json_t *record, const char *name);

const char *shk_name_how_text(enum shk_name_how how); /* "prefix", "name", "near" */

/* True when the name has only characters that shells and libraries use in names. */
bool shk_name_ok(const char *name);

#endif
