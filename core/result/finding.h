/* Findings (rows of the coverage matrix) and diagnoses: the result model that checks fill and
 * reports render. */
#ifndef SHK_CORE_FINDING_H
#define SHK_CORE_FINDING_H

#include "core/text/error.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* A note is worth knowing and costs this job nothing: it never colours a node and never counts for
 * an exit code. */
enum shk_verdict { SHK_PASS, SHK_NOTE, SHK_WARN, SHK_FAIL, SHK_UNKNOWN, SHK_NA, SHK_VERDICT_COUNT };

/* How a verdict was reached, strongest first. "tested": we exercised it. "log": a library's own
 * log line proves it. "effect": inferred from the effective state (sysfs, another setting's
 * effect). "declared": only that it is set as recommended. "none": not covered. */
enum shk_evidence {
    SHK_TESTED,
    SHK_LOG,
    SHK_EFFECT,
    SHK_DECLARED,
    SHK_NOT_COVERED,
    SHK_EVIDENCE_COUNT
};

/* Whose a fault is. A fault of the launch (a setting, a container's options, a library path that
 * the job brings along) keeps the node from being called healthy, but is no reason to drain it:
 * another job runs well there. */
enum shk_scope { SHK_SCOPE_UNSET, SHK_SCOPE_NODE, SHK_SCOPE_LAUNCH };

const char *shk_scope_name(enum shk_scope scope);       /* "node" "launch"; unset is "node" */
const char *shk_verdict_name(enum shk_verdict verdict); /* "pass" "note" "warn" … "na" */
const char *
shk_evidence_name(enum shk_evidence evidence); /* "tested" "log" "effect" "declared" "none" */

/* `required` of a row about something that the command line names: unknown is not good enough. */
enum { SHK_ASKED = 2 };

/* All texts are UTF-8 without control characters other than '\n'; NULL means "nothing to say".
 * Owned by the list. */
struct shk_finding {
    char *id;      /* check that made it: "env.value", "fabric.provider" */
    char *family;  /* group in the matrix: "libfabric", "nccl", "kernel" … */
    char *setting; /* what was judged: a variable, a device, a limit */
    enum shk_verdict verdict;
    enum shk_evidence evidence;
    char *observed;  /* what is, with units */
    char *expected;  /* what should be */
    char *why;       /* one sentence a user understands */
    char *fix;       /* one line that can be run as it stands; NULL: there is none */
    char *advice;    /* the same in words, or what no line can do */
    json_t *edits;   /* what `fix` does to the environment, for other shells than sh: objects with
                        name, value (absent: unset it) and expands (of $NAME in it); NULL */
    char *diagnosis; /* key in config/diagnoses that this finding points to */
    bool general;    /* diagnosis: the one of the check, as none that is closer is known */
    char *source;    /* where the rule comes from */
    char *fact;      /* fact key(s) that the observation rests on */
    char **nodes;    /* NULL-terminated; NULL = the only node */
    int required;    /* UNKNOWN here counts for --fail-on unknown; SHK_ASKED: always */
    enum shk_scope scope;
};

struct shk_findings;

struct shk_findings *shk_findings_create(void);
void shk_findings_destroy(struct shk_findings *list);

/* Named-field description of a new row for shk_findings_add(); strings are copied, so literals and
 * temporaries are fine. id, family and setting must not be NULL. */
struct shk_finding_in {
    const char *id, *family, *setting;
    enum shk_verdict verdict;
    enum shk_evidence evidence;
    const char *observed, *expected, *why, *fix, *advice, *diagnosis, *source, *fact;
    bool general;
    json_t *edits; /* borrowed */
    int required;
    enum shk_scope scope;
};

/* Copies the row; out of memory is remembered and reported by shk_findings_status(). A PASS or NOTE
 * with SHK_NOT_COVERED evidence is recorded as UNKNOWN: a verdict is never pass because nothing was
 * looked at. Control characters in the texts are replaced, secrets redacted (core/redact/redact.h).
 * A fix that either would change, or longer than SHK_FIX_MOST, is no line to run: it becomes
 * advice.
 */
enum { SHK_FIX_MOST = 8192 }; /* two paths of PATH_MAX */
void shk_findings_add(struct shk_findings *list, const struct shk_finding_in *in);

/* Adds a copy of a row of another list, without its nodes. */
void shk_findings_add_copy(struct shk_findings *list, const struct shk_finding *row);

/* 0, or -ENOMEM if any row was lost. */
int shk_findings_status(const struct shk_findings *list) SHK_MUST_CHECK;

size_t shk_findings_count(const struct shk_findings *list);
const struct shk_finding *shk_findings_at(const struct shk_findings *list, size_t i);

/* Names the nodes of row i (copied). */
int shk_findings_set_nodes(struct shk_findings *list, size_t i, const char *const *nodes,
                           size_t count) SHK_MUST_CHECK;

void shk_findings_set_scope(struct shk_findings *list, size_t i, enum shk_scope scope);

/* Gives row i the diagnosis `key` (copied). Returns 0 or -ENOMEM. */
int shk_findings_set_diagnosis(struct shk_findings *list, size_t i, const char *key) SHK_MUST_CHECK;

/* Adds the findings of one node to a list over many nodes: a row that says the same as one already
 * there only gains the node's name; one that names nodes is about those. The index that makes this
 * linear lives in *fold_p: start with NULL, free with shk_findings_fold_free(). */
struct shk_findings_fold;
int shk_findings_fold(struct shk_findings *list, struct shk_findings_fold **fold_p,
                      const struct shk_findings *node_findings, const char *node) SHK_MUST_CHECK;
void shk_findings_fold_free(struct shk_findings_fold *fold);

/* Matrix order: family as first seen, then fail, warn, unknown, note, pass, na, then setting.
 * Stable. */
void shk_findings_sort(struct shk_findings *list);

struct shk_coverage {
    unsigned verdicts[SHK_VERDICT_COUNT];
    unsigned evidence[SHK_EVIDENCE_COUNT]; /* n/a rows are not counted here */
    unsigned required_unknown;
    unsigned asked_unknown; /* of these, what the command line names */
};
struct shk_coverage shk_findings_coverage(const struct shk_findings *list);

/* A root cause: findings (and log signatures) that share a key, merged and ranked. */
struct shk_diagnosis_row {
    char *key;
    char *title;
    char *explanation;
    char *fix;                /* as of a finding, one line for each finding behind it; NULL */
    char *advice;             /* lines; NULL */
    char *who;                /* "user", "admin" or "user, admin" */
    char *confidence;         /* "confirmed", "likely", "possible" */
    char **evidence;          /* lines; NULL-terminated */
    double score;             /* rank: higher first */
    enum shk_verdict verdict; /* worst of its findings */
    enum shk_scope scope;     /* node when any of its findings is */
    size_t below;             /* number (from 1) of the row that explains this one; 0: none */
};

struct shk_diagnoses {
    struct shk_diagnosis_row *rows;
    size_t count;
};

void shk_diagnoses_free(struct shk_diagnoses *list);

#endif
