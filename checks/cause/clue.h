/* Evidence from logs and rules, for or against a cause, before it is merged and ranked. */
#ifndef SHK_CHECKS_CLUE_H
#define SHK_CHECKS_CLUE_H

#include "checks/base/check.h"
#include "checks/base/row.h"
#include "config/defects.h"

struct shk_clue {
    const char *key;        /* of the cause; borrowed from the catalogue */
    int weight;             /* 1 to 100 for, below zero against */
    bool specific;          /* not a mere symptom, and not one of several possible causes */
    enum shk_log_role role; /* of the signature whose line it is; a cause for all else */
    char *text;             /* for people; owned */
    const char *fix;        /* NULL: what the diagnosis says */
    const json_t *seen;     /* of a line: the entry of its signature in the facts; NULL */
    const struct shk_defect *defect; /* of a release, that it tells of; NULL */
    char *release;                   /* that has it; owned; NULL: not known */
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

/* Known defects of releases that show here (config/defects). */
void shk_clues_from_defects(struct shk_clues *clues, const struct shk_config *config,
                            const struct shk_facts *const *facts, size_t nodes);

/* Fills the row of a cause with what the catalogue says of the defect that the clue tells of. 0 or
 * -ENOMEM. */
int shk_defect_tell(struct shk_diagnosis_row *row, const struct shk_config *config,
                    const struct shk_clue *clue);

/* What comparing values between ranks and with the interfaces of the nodes shows. */
void shk_clues_from_values(struct shk_clues *clues, const struct shk_config *config,
                           const struct shk_facts *const *facts, size_t nodes);

/* What nodes have different values of, by their facts: variables, networks. */
void shk_clues_between_nodes(struct shk_clues *clues, const struct shk_config *config,
                             const struct shk_facts *const *facts, size_t nodes);

/* What rules and values say of nodes that are alike, for each kind: other hardware has other
 * libraries and settings, and nodes of which it was not read may be any. With one kind of hardware,
 * all of them. */
void shk_clues_of_alike(struct shk_clues *clues, const struct shk_config *config,
                        const struct shk_facts *const *facts, size_t nodes);

/* The cause that a variable which differs between ranks or nodes points to, and its weight; NULL
 * when it may differ. */
const char *shk_clue_variable(const struct shk_config *config, const char *name, int *weight_p);

/* Copies of the facts of nodes with what they imply: job.* of variables, and implied.KIND (a kind
 * of pci.count.*, or nodes), how many there are at least. NULL: out of memory. */
struct shk_facts **shk_facts_implied(const struct shk_facts *const *facts, size_t nodes);
void shk_facts_forget(struct shk_facts **all, size_t nodes);

/* Did probes read these facts, and not a person a few of them? The checks then judge all there is.
 */
bool shk_facts_probed(const struct shk_facts *facts);

/* What facts that contradict each other point to, on a node and between nodes. */
void shk_clues_from_clashes(struct shk_clues *clues, const struct shk_config *config,
                            const struct shk_facts *const *facts, size_t nodes);
/* Parts of it: two nodes; what Slurm says of all of them. */
void shk_clues_clash_between(struct shk_clues *clues, const struct shk_config *config,
                             const struct shk_facts *a, const struct shk_facts *b);
void shk_clues_clash_of_slurm(struct shk_clues *clues, const struct shk_facts *const *facts,
                              size_t nodes);

/* Drops guesses at causes that cannot be where the logs and facts come from (only-on of a
 * diagnosis), and puts those that fit before the others. */
void shk_clues_in_context(struct shk_clues *clues, const struct shk_config *config,
                          const struct shk_facts *const *facts, size_t nodes);

/* Where the causes so far (of these clues, ranked) are guesses or there is none: what the lines of
 * the logs that nothing decides have most words in common with. False: nothing was added, as
 * nothing is like them, something is surer, or this build cannot search (core/search/search.h). */
bool shk_clues_from_words(struct shk_clues *clues, const struct shk_config *config,
                          const struct shk_facts *const *facts, size_t nodes,
                          const struct shk_diagnoses *causes);

/* One node as it is asked about. */
struct shk_clue_source {
    const struct shk_config *config;
    const struct shk_facts *facts;
    const struct shk_findings *findings; /* what the checks said of it */
};

/* What the checks would call bad if all that nobody looked at were as it usually is. */
void shk_clues_from_checks(struct shk_clues *clues, const struct shk_clue_source *src);

/* All that speaks for or against causes before their words are looked up. part: of facts that are
 * not those of a whole run. */
void shk_clues_gather(struct shk_clues *clues, const struct shk_config *config,
                      const struct shk_findings *findings, const struct shk_facts *const *facts,
                      size_t nodes, bool part);

#endif
