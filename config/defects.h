/* Known defects of releases: which releases of a library have one, how it shows, and what ends it
 * (config/defects). */
#ifndef SHK_CONFIG_DEFECTS_H
#define SHK_CONFIG_DEFECTS_H

#include "config/config.h"

/* Releases that have it, by core/text/strbuf.h shk_version_cmp(). */
struct shk_defect_range {
    const char *from;     /* first one; NULL: as far back as known */
    const char *fixed_in; /* first good one after it; NULL: none yet */
};

struct shk_defect {
    const char *name;    /* no signature has it: its pattern is log.sig.NAME in the facts */
    const char *library; /* a row of shk_defect_library() */
    const char *title, *meaning;
    const struct shk_defect_range *releases; /* one for each branch */
    size_t releases_count;
    const char *pattern;         /* part of a line of a log; NULL */
    const char *const *signs;    /* signatures of which one is seen; NULL-terminated, NULL: none */
    const struct shk_term *when; /* what must hold besides */
    size_t when_count;
    bool specific;         /* nothing else shows so */
    const char *diagnosis; /* the cause of its own that it has; NULL: release-defect */
    const char *fix;       /* a way around it, one line for a shell; NULL */
    const char *advice;    /* the same in words; NULL */
    const char *source;
    const char *place;
};

enum { SHK_DEFECT_VERSIONS = 3 };

/* A library whose releases the defects are of. */
struct shk_defect_library {
    const char *name, *label;                  /* in YAML; for people */
    const char *versions[SHK_DEFECT_VERSIONS]; /* names of conditions (checks/base/check.h) that
                                hold its release; NULL: none, or no more */
};

const struct shk_defect *shk_config_defects(const struct shk_config *config, size_t *count_p);

/* NULL: there is no such library. */
const struct shk_defect_library *shk_defect_library(const char *name);

/* The range that a release is in; NULL: it does not have the defect. */
const struct shk_defect_range *shk_defect_range_of(const struct shk_defect *defect,
                                                   const char *version);

#endif
