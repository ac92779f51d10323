/* Small helpers of the checks: one row of the matrix in the making, and how a fact looks. */
#ifndef SHK_CHECKS_ROW_H
#define SHK_CHECKS_ROW_H

#include "checks/base/check.h"
#include "checks/base/look.h"
#include "core/text/strbuf.h"

/* A row under construction. Observed, expected and why are owned (set them with shk_row_text()),
 * fix, advice and edits too (checks/base/remedy.h); everything else is borrowed until
 * shk_row_end(). */
struct shk_row {
    const struct shk_check_context *ctx;
    const char *id, *family, *setting;
    enum shk_verdict verdict;
    enum shk_evidence evidence;
    char *observed, *expected, *why, *fix, *advice;
    json_t *edits; /* of fix; owned */
    const char *diagnosis, *source, *fact;
    const char *fallback; /* diagnosis of a FAIL that has none; from the check */
    int required;
    enum shk_scope scope;  /* unset: that of the diagnosis, else of the check */
    unsigned read, unread; /* what was asked for, see checks/base/read.h */
    char *unread_why;      /* of the first that was not read; owned */
    char unread_key[256];  /* its fact; keys are shorter */
};

/* A row of `check` about `setting`: UNKNOWN and not covered until somebody says otherwise. What is
 * read for it is remembered (checks/base/read.h). */
struct shk_row shk_row_begin(const struct shk_check_context *ctx, const struct shk_check *check,
                             const char *setting);

/* Sets one of the texts (frees the one before). */
void shk_row_text(char **slot, const char *fmt, ...) SHK_PRINTF(2, 3);

/* Sets verdict and evidence together. */
void shk_row_verdict(struct shk_row *row, enum shk_verdict verdict, enum shk_evidence evidence);

/* Adds the row to findings and frees its texts. A row for which something was not read
 * (checks/base/read.h) is at best UNKNOWN. */
void shk_row_end(struct shk_findings *findings, struct shk_row *row);

/* Frees the texts of a row that is not to be. */
void shk_row_drop(struct shk_row *row);

/* Names the nodes of the row that was added last: the strings of `list`, or that member of its
 * objects, each once. None: the row is about every node. */
void shk_row_nodes(struct shk_findings *findings, const json_t *list, const char *member);

/* Makes the row UNKNOWN, with the reason why `key` is not known, and ends it. */
void shk_row_unread(struct shk_findings *findings, struct shk_row *row,
                    const struct shk_facts *facts, const char *key);

/* Makes the row n/a with that reason, and ends it. n/a is a claim: when something that it could
 * rest on was not read, or nothing was read for it at all, the row is UNKNOWN. */
void shk_row_na(struct shk_findings *findings, struct shk_row *row, const char *fmt, ...)
    SHK_PRINTF(3, 4);

/* Does an array of strings hold `text` (exactly, or ignoring case)? */
bool shk_array_has(const json_t *array, const char *text, bool ignore_case);

/* Adds the strings of an array, separated by ", ", at most `max` of them, then "…". "none" when
 * there is none. */
void shk_strbuf_array(struct shk_strbuf *sb, const json_t *array, size_t max);

/* Number of entries of a NULL-terminated list (NULL is empty), and membership. */
size_t shk_list_count(const char *const *list);
bool shk_list_has(const char *const *list, const char *text);

/* "64 KiB", "1.5 GiB", "unlimited" for -1: a new string. */
char *shk_bytes_text(long long bytes);

/* Environment value that the job sees: the environment, else nccl.conf and friends. NULL when
 * neither sets it. */
const char *shk_env_get(const struct shk_facts *facts, const char *name);

/* The same, and why there is none: ABSENT when the environment was read and does not set it, FAILED
 * when it was withheld or could not be read, MISSING when nothing looked at the environment. */
enum shk_look shk_look_env(const struct shk_facts *facts, const char *name, const char **value_p);

/* The same of a setting that may be a site's own: MISSING, too, when the facts were gathered where
 * the name was not looked for. */
enum shk_look shk_look_setting(const struct shk_check_context *ctx, const char *name,
                               const char **value_p);

/* Is this what stands in place of a value that was taken out of the facts? */
bool shk_env_withheld(const char *value);

/* Does each rank, node or job have its own value of this variable (config/diff)? Where only a part
 * of the value is, the launcher's variables are, and paths; other settings are compared. */
bool shk_env_own(const struct shk_config *config, const char *name);

/* Does a configuration file win over the environment for this variable? NVSHMEM's does from 3.6 on
 * (assumed when the version is not known). */
bool shk_env_file_wins(const struct shk_facts *facts, const char *name);

/* Kinds of hardware that the facts show: -1 unknown, else the count. `kind` is the last part of
 * pci.count.<kind>; for GPUs the driver's own list counts when PCI was not read. */
long long shk_device_count(const struct shk_facts *facts, const char *kind);

/* Nodes of the job: 1 for a local run, -1 unknown. */
long long shk_job_nodes(const struct shk_facts *facts);

/* The line of the active profile about `name`, NULL when there is none or its condition is known
 * not to hold. *holds_p (may be NULL): 1 holds, -1 cannot tell. */
const struct shk_profile_setting *shk_profile_line(const struct shk_check_context *ctx,
                                                   const char *name, int *holds_p);

/* Was the environment captured as a whole? Then a variable without a fact is not set. A few env.*
 * facts alone do not say so. */
bool shk_env_known(const struct shk_facts *facts);

bool shk_profile_wants_provider(const struct shk_profile *profile, const char *provider);

/* Does the profile expect RDMA hardware (any provider that registers memory with a NIC)? */
bool shk_profile_is_rdma(const struct shk_profile *profile);

/* Kind of the fabric's NIC in pci.count.* ("cxi", "efa", "mlx5"); NULL when the profile has none.
 */
const char *shk_profile_nic_kind(const struct shk_profile *profile);

#endif
