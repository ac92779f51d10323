/* One variable that is set, and the opinions about it; shared by env.c and envopinion.c. */
#ifndef SHK_CHECKS_ENVCASE_H
#define SHK_CHECKS_ENVCASE_H

#include "checks/env/env.h"
#include "checks/readers/readers.h"

struct shk_env_case {
    const struct shk_check_context *ctx;
    struct shk_readers *readers;
    const char *name, *value, *key; /* value: NULL when it could not be read */
    const char *origin;             /* "environment" or the file */
    const struct shk_setting *setting;
    const struct shk_profile_setting *line; /* of the active profile, NULL */
    int holds;                              /* its condition: 1, or -1 unknown */
    struct shk_row best;                    /* the worst opinion so far */
    bool decided;                           /* best holds one */
};

/* A row about the variable, UNKNOWN so far. */
struct shk_row shk_env_row(const struct shk_env_case *c);

/* Takes the row as an opinion: the worst wins, and what any of them could not read is kept. */
void shk_env_offer(struct shk_env_case *c, struct shk_row *row);

/* Opinions about a name of the catalogue, one that only the profile has, and any other. */
void shk_env_judge_known(struct shk_env_case *c);
void shk_env_judge_profiled(struct shk_env_case *c);
void shk_env_judge_unknown(struct shk_env_case *c);

#endif
