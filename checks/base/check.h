/* A check: a pure function of facts and policy to findings. No host access, no stdio, no time. */
#ifndef SHK_CHECKS_CHECK_H
#define SHK_CHECKS_CHECK_H

#include "config/config.h"
#include "core/facts/facts.h"
#include "core/result/finding.h"

/* Some checks judge the job as a whole: where the facts of several nodes came together, rank 0's
 * node holds them. */
enum shk_check_part { SHK_CHECK_ALL, SHK_CHECK_NODE, SHK_CHECK_JOB };

struct shk_check_context {
    const struct shk_facts *facts; /* frozen; of one node */
    const struct shk_config *config;
    const struct shk_profile *profile; /* never NULL: at least "single-node" */
    enum shk_check_part part;          /* which checks to run */
    const bool *skip; /* of these none whose place in shk_checks() is true; NULL: all */
    /* Why the profile may be another one: a signal that would decide was not read. NULL: certain.
     */
    const char *profile_doubt;
    bool profile_asked;          /* named on the command line: its hardware must be there */
    const char *transport_asked; /* likewise, "nccl": it must run; NULL */
    const char *provider_asked;  /* likewise, of libfabric, for the fabric all-reduce; NULL */
    json_t *misformed; /* gathers the keys of facts of another type than expected; may be NULL */
};

struct shk_check {
    const char *id; /* "limits.memlock" */
    const char *family;
    const char *title; /* one line for `shakedown list checks` */
    void (*eval)(const struct shk_check_context *ctx, struct shk_findings *findings);
    const char *doc;      /* for explain: what is judged, from which facts, with which thresholds */
    bool of_job;          /* judges the job, not a node */
    enum shk_scope scope; /* of what it finds that no diagnosis is known for; unset: node */
    const char *diagnosis; /* of a FAIL for which it has no closer one: a key of the catalogue. A
                              check that can fail has one, shk_mutate() looks */
};

/* The ordered list. */
const struct shk_check *const *shk_checks(size_t *count_p);

/* Does the check of this name judge the job, not a node? */
bool shk_check_of_job(const char *id);

/* Runs every check of ctx->part on one node's facts. */
int shk_checks_run(const struct shk_check_context *ctx, struct shk_findings *findings,
                   struct shk_error *err) SHK_MUST_CHECK;

/* Sorts nodes into kinds: those of one profile and one hardware (makers and models of GPUs, their
 * number, makers of NICs) may be compared. kinds_p[i], for each node: the number of its kind, from
 * 0 on in the order of the nodes. A node whose hardware was not read counts to the largest kind of
 * its profile; so does a single one with fewer GPUs than at least three others: it lost some.
 * `weights` (NULL: one each): how many nodes each of the facts stands for. Returns the number of
 * kinds, or -ENOMEM. */
int shk_checks_kinds(const struct shk_facts *const *facts,
                     const struct shk_profile *const *profiles, const size_t *weights, size_t nodes,
                     size_t *kinds_p) SHK_MUST_CHECK;

/* The makers and models of a node's GPUs and the makers of its NICs, whatever their number, as one
 * text: a new string. NULL when one was not read, or out of memory. */
char *shk_kind_hardware(const struct shk_facts *facts);

/* Compares nodes of one kind: what must agree and does not is a row of family "nodes" that names
 * the nodes outside the majority; what was not read on some of them is UNKNOWN. What must agree,
 * and what follows from what, is config/diff/. `kind` (NULL: all are of one) names it in words. */
int shk_checks_compare(const struct shk_config *config, const struct shk_facts *const *facts,
                       const size_t *weights, size_t nodes, const char *kind,
                       struct shk_findings *findings, struct shk_error *err) SHK_MUST_CHECK;

/* Of a diagnosis; NULL: node. */
enum shk_scope shk_scope_of(const struct shk_diagnosis *diagnosis);

/* Nodes that differ in a fact of which another row has said already what is wrong there: both are
 * one cause. Returns 0 or -ENOMEM. */
int shk_repeats_settle(struct shk_findings *findings) SHK_MUST_CHECK;

/* Gives every row a scope: that of its diagnosis, else of its check, unless the row has its own. */
void shk_scopes_settle(const struct shk_config *config, struct shk_findings *findings);

/* Chooses the profile whose signals weigh most in the facts (at least 2); "single-node" when none
 * does. *why_p (may be NULL): one line that says which signals hit (free()). *doubt_p (may be
 * NULL): NULL when that is certain, else which signal could not be looked at, and what profile it
 * could make the better one (free()). */
const struct shk_profile *shk_profile_detect(const struct shk_config *config,
                                             const struct shk_facts *facts, char **why_p,
                                             char **doubt_p);

/* What a name of a condition stands for ("nccl", "gpu.nvidia.driver.version"): a new string, ""
 * where it is known to be none, NULL where it is not known. */
char *shk_condition_text(const char *name, const struct shk_facts *facts);

/* Does a profile line's condition hold here? 1 yes, 0 no, -1 cannot tell. */
int shk_condition_holds(const char *condition, const struct shk_facts *facts);

/* The same, with what logs show (log.* facts of the nodes, see probes/log/logscan.h), what rules of
 * the catalogue conclude from lines, settings and facts together, and what the signatures speak
 * against. A general consequence (a time-out, "remote process exited") never comes before a
 * specific cause. */
int shk_diagnose(const struct shk_config *config, const struct shk_findings *findings,
                 const struct shk_facts *const *facts, size_t nodes,
                 struct shk_diagnoses *diagnoses_p, struct shk_error *err) SHK_MUST_CHECK;

/* Of two nodes whose all-reduce fails with each other and works with others, the one that a row of
 * the confirmed cause names stays in the all-reduce's row; the other is as good as any. After
 * shk_diagnose(). Returns 0 or -ENOMEM. */
int shk_ends_settle(struct shk_findings *findings, const struct shk_facts *const *facts,
                    size_t nodes, const struct shk_diagnoses *diagnoses) SHK_MUST_CHECK;

/* The same of evidence that is only part of a picture: what the checks would call bad if all that
 * nobody looked at were as usual is a suspicion, `likely` at most. */
int shk_diagnose_part(const struct shk_config *config, const struct shk_findings *findings,
                      const struct shk_facts *const *facts, size_t nodes,
                      struct shk_diagnoses *diagnoses_p, struct shk_error *err) SHK_MUST_CHECK;

/* What that comes to: FAIL when a cause is likely or surer, PASS when there is none and the logs
 * show a start (without logs: when every required check passed), else UNKNOWN: nothing is decided.
 * `facts`: of the first node. *headline_p: one line (free()), NULL when out of memory. */
enum shk_verdict shk_diagnose_answer(const struct shk_config *config,
                                     const struct shk_diagnoses *causes,
                                     const struct shk_coverage *coverage,
                                     const struct shk_facts *facts, char **headline_p);

#endif
