/* What differs between the facts of two nodes, or of one node before and after. Says what is
 * different, never which side is right. */
#ifndef SHK_CORE_FACTDIFF_H
#define SHK_CORE_FACTDIFF_H

#include "core/facts/facts.h"

/* Why a difference means nothing. */
enum shk_diff_class {
    SHK_DIFF_TIME,    /* changes by itself: times, counters, free memory */
    SHK_DIFF_NODE,    /* names a node or its hardware; compared when both sides are the same node */
    SHK_DIFF_JOB,     /* belongs to one job or process */
    SHK_DIFF_DERIVED, /* repeats what other facts say */
    SHK_DIFF_NOISE,   /* a measurement; counts when it is off by more than `percent` */
    SHK_DIFF_COMPARE, /* compared whatever the other rules say */
    SHK_DIFF_AGREE,   /* nodes of one kind must agree here; says nothing for other comparisons */
    SHK_DIFF_CLASS_COUNT
};

/* config/diff/ *.yaml. `path` is a shell pattern ('*' also matches dots) on the key of a fact
 * followed by the members inside its value, array elements left out: "net.ifaces.addrs". */
struct shk_diff_rule {
    const char *path;
    enum shk_diff_class differs;
    int percent;      /* SHK_DIFF_NOISE */
    bool fails_jobs;  /* nodes of one job that differ here cannot work together */
    bool less_fails;  /* SHK_DIFF_AGREE, a number: jobs fail on a node that has less than the others
                       */
    bool agree;       /* SHK_DIFF_NOISE: nodes of one kind must agree within that */
    bool job_wide;    /* SHK_DIFF_JOB: all nodes of one job say the same */
    const char *part; /* regular expression (core/regex/regex.h) on a line of a text: only what its
                         last group matches differs between nodes; NULL: the whole value */
    const char *diagnosis; /* that a difference points to; NULL: none */
    /* SHK_DIFF_AGREE or fails_jobs: paths (shell patterns) whose difference, on the same nodes,
     * explains one here; NULL-terminated, NULL: none. */
    const char *const *follows;
    /* SHK_DIFF_AGREE, on the path of an array: an element counts only where these members are true
     * (or not, with '!' before the name); NULL-terminated, NULL: all. */
    const char *const *where;
    const char *fix;    /* about a difference between nodes, one line for a shell; NULL */
    const char *advice; /* the same in words; NULL */
    const char *why;
    const char *place;
};

struct shk_diff;

/* `rules` are borrowed. With `all`, nothing is set aside. NULL: out of memory. */
struct shk_diff *shk_diff_create(const struct shk_diff_rule *rules, size_t count, bool all);
void shk_diff_destroy(struct shk_diff *diff);

/* From now on only what nodes of one kind must agree in is a row: paths with a rule of
 * SHK_DIFF_AGREE, or with fails_jobs. */
void shk_diff_must_agree(struct shk_diff *diff);

/* The rule by which a value at a path may differ between nodes that say the same: the first one
 * that is not of SHK_DIFF_AGREE. NULL: none, or one of SHK_DIFF_COMPARE takes it back. */
const struct shk_diff_rule *shk_diff_aside_rule(const struct shk_diff_rule *rules, size_t count,
                                                const char *plain);

/* The same for many documents: `known` (an object, first empty) remembers what was found. */
const struct shk_diff_rule *shk_diff_aside_known(json_t *known, const struct shk_diff_rule *rules,
                                                 size_t count, const char *plain);

/* The rule by which nodes of one kind must agree at a path; NULL: none does. */
const struct shk_diff_rule *shk_diff_agree_rule(const struct shk_diff_rule *rules, size_t count,
                                                const char *plain);

/* Does an element of the array that the rule is about count (`where`)? All do where it does not
 * say, or there is no rule. */
bool shk_diff_counts(const struct shk_diff_rule *rule, const json_t *element);

/* Compares two sets of nodes: one with one, one (a reference) with each of many, else those of the
 * same host.name; what has no partner is listed. Returns 0 or -ENOMEM. */
int shk_diff_sets(struct shk_diff *diff, const struct shk_facts *const *a, size_t na,
                  const struct shk_facts *const *b, size_t nb) SHK_MUST_CHECK;

/* Everything below is borrowed from diff.
 *
 * Rows, sorted by path: [{"path", "plain", "fact", "a", "b", "nodes": [text]}]. `path` leads into
 * the value ("net.ifaces[hsn0].mtu"), `plain` (after
 * shk_diff_must_agree() only) is the same without elements. A side is {"state",
 * "value", "unit", "reason"} as in a facts document; it is missing when nothing looked or there is
 * no such member. */
json_t *shk_diff_rows(const struct shk_diff *diff);
/* Names of nodes without a partner on the other side. */
json_t *shk_diff_only_a(const struct shk_diff *diff);
json_t *shk_diff_only_b(const struct shk_diff *diff);
size_t shk_diff_pairs(const struct shk_diff *diff);
/* Differences that were set aside. */
size_t shk_diff_aside(const struct shk_diff *diff, enum shk_diff_class differs);
const char *shk_diff_class_name(enum shk_diff_class differs); /* the word in YAML */

#endif
