/* What the facts say of logs (log.files, log.sig.*, log.unknown): which lines were seen, which
 * variables their processes have read, which lines that look like errors nobody knows. */
#ifndef SHK_CHECKS_LOG_H
#define SHK_CHECKS_LOG_H

#include "checks/base/check.h"
#include "checks/base/row.h"

/* Are there logs at all? */
bool shk_log_given(const struct shk_facts *facts);

/* Do they show that all ranks have come together? */
bool shk_log_started(const struct shk_facts *facts);

/* The entry of a signature that was seen, else NULL. */
json_t *shk_log_seen(const struct shk_facts *facts, const char *id);

/* "log.txt:12 (rank 3, node01): <line>" of a signature that was seen; new string, NULL when it was
 * not. */
char *shk_log_place(const struct shk_facts *facts, const char *id);

/* What a named group of a signature captured in one line (`tuple`, an entry of "captures"); NULL
 * when the group took no part. Borrowed. */
const char *shk_log_captured(const json_t *tuple, const char *group);

/* The variable that such a line says was read (`reads` of the signature): new string, NULL when it
 * names none. */
char *shk_log_read_name(const struct shk_signature *sig, const json_t *tuple);

/* The signature whose lines say that this variable was read; NULL: no library prints that. */
const struct shk_signature *shk_log_reads(const struct shk_config *config, const char *name);

/* Value of a variable: what the environment says, else what the processes of the log have printed
 * that they read. NULL when neither does, or when the processes differ. */
const char *shk_log_env(const struct shk_config *config, const struct shk_facts *facts,
                        const char *name);

/* A warning when a log shows that the variable has no effect; else false, the row is unchanged. */
bool shk_log_refute(const struct shk_check_context *ctx, const char *name, struct shk_row *row);

/* Sets verdict, evidence and reason of a row about a variable from what the logs show; false when
 * they show nothing, the row is then unchanged. */
bool shk_log_judge(const struct shk_check_context *ctx, const char *name, const char *value,
                   struct shk_row *row);

/* The kinds of lines that look like errors and that no signature knows (log.unknown), and how many
 * lines there are; NULL: none. Borrowed. */
const json_t *shk_log_unknown_shapes(const struct shk_facts *facts, long long *lines_p);
/* The same of lines that may tell of trouble (log.doubt). */
const json_t *shk_log_doubt_shapes(const struct shk_facts *facts);
/* "log.txt:12" of such a kind (new string, NULL: out of memory), and its first line. */
char *shk_log_unknown_place(const json_t *shape);
const char *shk_log_unknown_text(const json_t *shape);

/* The first line, by its number, that looks like an error and is not known, or is a symptom that
 * stands for no cause; *lines_p: how many there are of both. NULL: there is none. */
const json_t *shk_log_first_error(const struct shk_config *config, const struct shk_facts *facts,
                                  long long *lines_p);

/* A row of log.setting for each of the first kinds, UNKNOWN: nobody says that they mean anything.
 */
void shk_log_unknown_rows(const struct shk_check_context *ctx, struct shk_findings *findings);

/* The first of them that comes before the first line of a signature (an entry log.sig.ID) in the
 * same file; NULL: none. */
const json_t *shk_log_unknown_before(const struct shk_facts *facts, const json_t *seen);

#endif
