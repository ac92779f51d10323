/* YAML files as a tree with line numbers: the subset that configuration needs.
 *
 * One document per file, UTF-8. Anchors, aliases, tags and complex keys are refused, so a small
 * file cannot become a large tree. */
#ifndef SHK_CONFIG_YAML_H
#define SHK_CONFIG_YAML_H

#include "config/schema/arena.h"
#include "core/text/error.h"
#include <stdbool.h>
#include <stddef.h>

/* Limits: the whole catalogue is under 1 MiB, its deepest value has depth 5. */
#define SHK_YAML_MAX_BYTES ((size_t)4 << 20)
#define SHK_YAML_MAX_DEPTH 16
#define SHK_YAML_MAX_NODES 200000

enum shk_yaml_kind { SHK_YAML_TEXT, SHK_YAML_LIST, SHK_YAML_MAPPING };

struct shk_yaml_node {
    enum shk_yaml_kind kind;
    bool plain;       /* text without quotes */
    unsigned line;    /* where it starts, from 1 */
    const char *text; /* TEXT: NUL-terminated, no other NUL in it */
    size_t len;
    const struct shk_yaml_node *first; /* LIST: items; MAPPING: key, value, key, value … */
    const struct shk_yaml_node *next;
};

/* Parses a buffer; `name` is the file's name for messages. The tree lives in arena; *root_p is
 * NULL when there is nothing but comments. -EINVAL: not acceptable, -EFBIG: over a limit, -ENOMEM.
 * The message is "NAME:LINE: YAML: problem". */
int shk_yaml_parse(struct shk_arena *arena, const char *name, const void *data, size_t size,
                   const struct shk_yaml_node **root_p, struct shk_error *err) SHK_MUST_CHECK;

/* Value of a key in a mapping; NULL when it is not there. */
const struct shk_yaml_node *shk_yaml_get(const struct shk_yaml_node *mapping, const char *key);

/* Nothing was written: "key:", "key: ~", "key: null", but not a quoted text. */
bool shk_yaml_is_null(const struct shk_yaml_node *node);

/* "FILE:LINE: key: what" (no ":LINE" when line is 0, no key when NULL). Long paths are cut at the
 * front. Returns -errnum. */
int shk_yaml_error(struct shk_error *err, int errnum, const char *file, unsigned line,
                   const char *key, const char *fmt, ...) SHK_PRINTF(6, 7);

#endif
