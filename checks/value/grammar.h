/* Judges the text of a value against its grammar. Pure: knows neither the node nor the version. */
#ifndef SHK_CHECKS_GRAMMAR_H
#define SHK_CHECKS_GRAMMAR_H

#include "config/config.h"

enum shk_judgement {
    SHK_VALUE_OK,
    SHK_VALUE_ODD,  /* works, but not as it reads ("010" is 8), or is of no use */
    SHK_VALUE_WRONG /* the library makes something else of it, or rejects it */
};

struct shk_judged {
    enum shk_judgement judgement;
    char why[240];         /* one sentence, what the library makes of it; "" when OK */
    char suggestion[96];   /* the value that was probably meant; "" when none is near */
    char effective[24];    /* WRONG: the number that a lenient parser reads instead; "" not known */
    const char *diagnosis; /* key that fits better than the setting's own; NULL */
};

/* The text as a whole: quotes kept in the value, line ends, blanks around it; then the grammar. */
void shk_grammar_judge(const struct shk_grammar *grammar, const char *value,
                       struct shk_judged *judged);

/* Do two texts mean the same to the library that reads them (1 and on, PHB and phb, 0x10 and 16,
 * lists in another order)? */
bool shk_grammar_same(const struct shk_grammar *grammar, const char *a, const char *b);

/* Is it one of these words (NULL-terminated), in upper or lower case? */
bool shk_word_is_one_of(const char *const *words, const char *word);

/* One element of a list value: [start, start + len). Returns false at the end. Start with *pos_p
 * = text. */
bool shk_grammar_item(const char **pos_p, char separator, const char **start_p, size_t *len_p);

/* Skips the '^' and '=' in front of NCCL's interface and HCA lists (either order of NCCL: '^' then
 * '='). */
const char *shk_grammar_list_body(const char *value, bool *exclude_p, bool *exact_p);

#endif
