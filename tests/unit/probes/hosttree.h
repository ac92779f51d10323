/* Small made-up host trees for the probes that read files, and what to do to them. One tree per
 * test (Criterion forks each); TREE_SUITE sets it up and removes it. */
#ifndef SHK_TESTS_HOSTTREE_H
#define SHK_TESTS_HOSTTREE_H

#include "core/facts/facts.h"
#include "probes/base/probe.h"
#include "probes/base/registry.h"

#include <criterion/criterion.h>
#include <string.h>

#define TREE_SUITE(name) TestSuite(name, .init = tree_begin, .fini = tree_end, .timeout = 60)

void tree_begin(void); /* also clears the environment of the test */
void tree_end(void);

const char *tree_folder(void); /* which is the host's root */

/* Paths are absolute, as on the host. Parents are made, existing things replaced. */
void tree_put(const char *path, const char *textf, ...) SHK_PRINTF(2, 3);
void tree_put_bytes(const char *path, const void *bytes, size_t len);
void tree_dir(const char *path);
void tree_link(const char *path, const char *target);
void tree_fifo(const char *path);
void tree_mode(const char *path, unsigned mode);
void tree_remove(const char *path);
void tree_hostcalls(const char *json);    /* .shakedown/hostcalls.json */
void tree_copy_capture(const char *name); /* of tests/captures */

/* Runs a probe on the tree, in this process. The facts are those of this run alone. */
const struct shk_facts *tree_run(const struct shk_probe *probe);
/* … with the facts of earlier phases; may be NULL. */
const struct shk_facts *tree_run_known(const struct shk_probe *probe,
                                       const struct shk_facts *known);

/* The same as user and group 65534 without privileges, in a child. */
const struct shk_facts *tree_run_unprivileged(const struct shk_probe *probe);

/* Facts of the last run. */
enum { TREE_NOTHING = -1 }; /* nobody wrote the key */
int tree_state(const char *key);
const char *tree_reason(const char *key); /* "" when there is none */
const char *tree_source(const char *key);
json_t *tree_value(const char *key); /* asserts that the fact is present */

/* Member of an element of an array fact, found by its member `by` = name. */
json_t *tree_item(const char *key, const char *by, const char *name);
const char *tree_item_text(const json_t *item, const char *member); /* "(null)" when not text */
long long tree_item_int(const json_t *item, const char *member);    /* LLONG_MIN when no integer */

void expect_text(const char *key, const char *want);
void expect_int(const char *key, long long want);
void expect_absent(const char *key);
void expect_failed(const char *key, const char *reason_part);
void expect_json(const char *key, const char *want_json);

/* One file, damaged in every way in turn; all else stays healthy. */
struct tree_victim {
    const char *path;
    const char *key;    /* fact that rests on it */
    const char *member; /* of the first element (or of the object): NULL when the whole fact does */
    bool any_text;      /* every text is a valid content: garbage and emptiness prove nothing */
};

/* After each damage the fact must be failed, or, for a member, be null with a problem named. An
 * empty file may also count as absent. The probe itself must succeed. */
void tree_expect_damage(const struct shk_probe *probe, const struct tree_victim *victims, size_t n);

#endif
