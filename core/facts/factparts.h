/* The facts of one node in parts, so that what many nodes say alike travels once.
 *
 * A section is the facts whose keys start with the same word ("net."), as JSON text with sorted
 * keys. What differs between the nodes of one job by the rules of config/diff (addresses, times,
 * free memory, …), and short texts that name the node, are taken out and leave a mark: they are the
 * node's own, one JSON array in the order of the sections. Sections of like nodes are byte for byte
 * the same.
 *
 * Marks: a text of the one character U+001A stands for the next element of the array; a text that
 * starts with it is one of which parts were taken out (`part` of the rule), each of its further
 * U+001A the next element. The marks alone lead back: no rules are needed to join. */
#ifndef SHK_CORE_FACTPARTS_H
#define SHK_CORE_FACTPARTS_H

#include "core/facts/digest.h"
#include "core/facts/factdiff.h"

struct shk_factpart {
    char *name;
    char *text;
    size_t len;
    struct shk_digest digest; /* of text */
};

struct shk_factparts {
    struct shk_factpart *sections; /* in the order of their names */
    size_t count;
    char *own;
    size_t own_len;
    unsigned char
        *noise; /* by element of own: how many percent off is still the same; 0: anything */
    size_t noise_count;
};

/* A fact document is below 64 MiB (core/facts/factdoc.c); sections of it are some 100 at most. */
#define SHK_FACTPART_MAX_BYTES ((size_t)16 << 20)
#define SHK_FACTPARTS_MAX      1024U
#define SHK_FACTPARTS_MAX_NAME 255U
#define SHK_FACTPARTS_OWN_MAX  ((size_t)16 << 20)

/* -ENOMEM; -EINVAL for a `part` that is no regular expression. Free with shk_factparts_clear(),
 * also on failure. */
int shk_factparts_split(struct shk_factparts *parts, const struct shk_facts *facts,
                        const struct shk_diff_rule *rules, size_t rules_count,
                        struct shk_error *err) SHK_MUST_CHECK;
void shk_factparts_clear(struct shk_factparts *parts);

/* Does a node with the same sections say the same as `first`, but for what means nothing? Its own
 * may differ, and measurements by as much as their rule allows. */
bool shk_factparts_alike(const struct shk_factparts *first, const char *own, size_t own_len);

/* The other way: one section, parsed once for all nodes that share it. */
struct shk_factsection;

/* Text from another process: -EPROTO with text in err. */
int shk_factsection_parse(struct shk_factsection **section_p, const char *text, size_t len,
                          struct shk_error *err) SHK_MUST_CHECK;
void shk_factsection_free(struct shk_factsection *section); /* NULL is fine */

/* Facts of a node out of its sections and its own. Facts without marks are shared with the section
 * by reference. -EPROTO when marks and elements do not match, or what comes out are no facts. */
int shk_factparts_join(struct shk_facts **facts_p, struct shk_factsection *const *sections,
                       size_t count, const char *own, size_t own_len,
                       struct shk_error *err) SHK_MUST_CHECK;

#endif
