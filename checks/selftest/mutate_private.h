/* Judges facts of which one at a time is changed: only the checks that ask for it run again, what
 * the others say is known. Which those are is seen when they run, nothing is listed. */
#ifndef SHK_CHECKS_MUTATE_PRIVATE_H
#define SHK_CHECKS_MUTATE_PRIVATE_H

#include "checks/base/check.h"

struct shk_judge {
    const struct shk_config *config;
    struct shk_facts *facts; /* as they are when shk_judge_begin() is called */
    json_t *base;            /* "check\nsetting" -> [verdict, observed, number of the check,
                                is it no FAIL, or has it a diagnosis of the catalogue?] */
    json_t *asked;           /* fact -> {number of the check: true} */
    const struct shk_profile *profile;
    char *doubt;
    bool *skip; /* one for each check: what it says is in `base` */
    size_t checks;
};

/* Judges `facts` (borrowed, must outlive the judge) check by check. Returns 0, -EINVAL (err),
 * -ENOMEM; shk_judge_end() in any case. */
int shk_judge_begin(struct shk_judge *judge, const struct shk_config *config,
                    struct shk_facts *facts, struct shk_error *err) SHK_MUST_CHECK;
void shk_judge_end(struct shk_judge *judge);

/* Does any check, or the choice of the profile, ask for the fact? */
bool shk_judge_asks(const struct shk_judge *judge, const char *fact);

/* The rows of the facts as they are now, if nothing but `fact` (NULL: anything) may have changed
 * since the beginning: a new object as `base`. NULL: *rc_p, err. */
json_t *shk_judge_rows(struct shk_judge *judge, const char *fact, int *rc_p, struct shk_error *err);

#endif
