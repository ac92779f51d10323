/* What the program itself reads from, or puts into, an environment, by what it is for: the names of
 * the variables are data of the catalogue (config/uses). The main program installs them once,
 * before it does anything else; probes, checks and collectives ask for "provider-filter" and never
 * name a variable. */
#ifndef SHK_CORE_USES_H
#define SHK_CORE_USES_H

#include <stdbool.h>
#include <stddef.h>

struct shk_use {
    const char *name; /* "provider-filter"; one of a kind: "fork-safe.efa", "job.slurm.job_id" */
    /* NULL-terminated; of several the first that is set counts, unless the use says all of them.
     * One that ends in '_' stands for all variables that begin so. */
    const char *const *variables;
    bool number;            /* job.*: what the fact is made of is a count or index */
    const char *separators; /* code-path.*: characters between the items; NULL: only one */
    const char *library;    /* code-path.*: start of the file names that read it; NULL: any */
    bool bare;              /* code-path.*: an item without '/' is a name, not a path */
    const char *place;      /* FILE:LINE of the row */
};

/* Borrows the rows until the next call, those of the first call for ever: the program's own, before
 * any configuration was read. Not to be called while another thread runs. */
void shk_uses_install(const struct shk_use *rows, size_t count);

/* The row, NULL when there is none. */
const struct shk_use *shk_use_find(const char *name);

/* Rows whose names begin with prefix, in the order of the catalogue: start with *at = 0. NULL: no
 * more. */
const struct shk_use *shk_use_next(const char *prefix, size_t *at);
/* The same of the program's own rows: what a configuration cannot take away. */
const struct shk_use *shk_use_next_own(const char *prefix, size_t *at);

/* The variables of a use; an empty list when the catalogue has no such row. Never NULL. */
const char *const *shk_variables(const char *use);

/* The first of them; "" when there is none, which no environment has. Never NULL. */
const char *shk_variable(const char *use);

/* The fact that holds it: "env.NAME". Lives until the next shk_uses_install(). Never NULL. */
const char *shk_variable_fact(const char *use);

/* A copy of the text in which "{use}" is the variable of that use; what is no use stays. New
 * string, NULL when out of memory. */
char *shk_uses_expand(const char *text);

/* Is the variable one of them, or does it begin as one that ends in '_'? */
bool shk_variable_has(const char *use, const char *variable);

#endif
