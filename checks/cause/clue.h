/* Evidence from logs and rules, for or against a cause, before it is merged and ranked. */
#ifndef SHK_CHECKS_CLUE_H
#define SHK_CHECKS_CLUE_H

#include "checks/base/check.h"
#include "checks/base/row.h"

struct shk_clue {
    const char *key;    /* of the cause; borrowed from the catalogue */
    int weight;         /* 1 to 100 for, below zero against */
    bool specific;      /* not a mere symptom, and not one of several possible causes */
    char *text;         /* for people; owned */
    const char *fix;    /* NULL: what the diagnosis says */
    const json_t *seen; /* of a line: the entry of its signature in the facts; NULL */
};

struct shk_clues {
    struct shk_clue *items;
    size_t count, cap;
    bool failed; /* out of memory: some are missing */
};

/* Takes the text. Clues of no key and empty texts are dropped. */
void shk_clue_add(struct shk_clues *clues, const char *key, int weight, bool specific, char *text);
void shk_clues_free(struct shk_clues *clues);

/* The clue that was added last rests on the lines of this signature (borrowed from the facts). */
void shk_clue_seen(struct shk_clues *clues, const json_t *entry);

/* What the lines of the logs speak for and against; facts: of one node, with log.* facts. */
void shk_clues_from_log(struct shk_clues *clues, const struct shk_config *config,
                        const struct shk_facts *facts);

/* What the rules conclude; each rule speaks once, for the first node where it holds. */
void shk_clues_from_rules(struct shk_clues *clues, const struct shk_config *config,
                          const struct shk_facts *const *facts, size_t nodes);

/* What comparing values between ranks and with the interfaces of the nodes shows. */
void shk_clues_from_values(struct shk_clues *clues, const struct shk_config *config,
                           const struct shk_facts *const *facts, size_t nodes);

/* What nodes have different values of, by their facts: variables, networks. */
void shk_clues_between_nodes(struct shk_clues *clues, const struct shk_config *config,
                             const struct shk_facts *const *facts, size_t nodes);

/* The cause that a variable which differs between ranks or nodes points to, and its weight; NULL
 * when it may differ. */
const char *shk_clue_variable(const struct shk_config *config, const char *name, int *weight_p);

/* Drops guesses at causes that cannot be where the logs and facts come from (only-on of a
 * diagnosis), and puts those that fit before the others. */
void shk_clues_in_context(struct shk_clues *clues, const struct shk_config *config,
                          const struct shk_facts *const *facts, size_t nodes);

/* One node as it is asked about. */
struct shk_clue_source {
    const struct shk_config *config;
    const struct shk_facts *facts;
    const struct shk_findings *findings; /* what the checks said of it */
};

/* What the checks would call bad if all that nobody looked at were as it usually is. */
void shk_clues_from_checks(struct shk_clues *clues, const struct shk_clue_source *src);

/* "log.txt:12 (rank 3, node01): <line>" of a signature that was seen; new string, NULL when it was
 * not. */
char *shk_log_place(const struct shk_facts *facts, const char *id);

/* The entry of a signature that was seen, else NULL. */
json_t *shk_log_seen(const struct shk_facts *facts, const char *id);

/* Value of a variable: what the environment says, else what the processes of the log have printed
 * that they read. NULL when neither does, or when the processes differ. */
const char *shk_log_env(const struct shk_facts *facts, const char *name);

/* What a named group of a signature captured in one line (`tuple`, an entry of "captures"); NULL
 * when the group took no part. Borrowed. */
const char *shk_clue_capture(const json_t *tuple, const char *group);

/* The kinds of lines that look like errors and that no signature knows (log.unknown), and how many
 * lines there are; NULL: none. Borrowed. */
const json_t *shk_log_unknown_shapes(const struct shk_facts *facts, long long *lines_p);
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

/* Are there logs at all? */
bool shk_log_given(const struct shk_facts *facts);

/* A warning when a log shows that the variable has no effect; else false, the row is unchanged. */
bool shk_log_refute(const struct shk_check_context *ctx, const char *name, struct shk_row *row);

/* Sets verdict, evidence and reason of a row about a variable from what the logs show; false when
 * they show nothing, the row is then unchanged. */
bool shk_log_judge(const struct shk_check_context *ctx, const char *name, const char *value,
                   struct shk_row *row);

#endif
