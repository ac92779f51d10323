/* The facts of one transport, written one after the other, with one test at the end. */
#ifndef SHK_COLLECTIVES_FACTS_OUT_H
#define SHK_COLLECTIVES_FACTS_OUT_H

#include "core/facts/facts.h"
#include "core/text/error.h"
#include <jansson.h>

/* Begins with facts, transport and source set and the rest 0. */
struct shk_facts_out {
    struct shk_facts *facts;
    const char *transport; /* keys are collective.<transport>.<member> */
    char source[64];       /* of every fact: "libfabric all-reduce" */
    int rc;                /* the first error, a negative errno */
    char key[96];
};

/* The key of a member, until the next call. */
const char *shk_out_key(struct shk_facts_out *out, const char *member);

/* Keeps the first error. */
void shk_out_note(struct shk_facts_out *out, int rc);

/* text NULL or "": absent. */
void shk_out_text(struct shk_facts_out *out, const char *member, const char *text);
/* Steals value. */
void shk_out_json(struct shk_facts_out *out, const char *member, json_t *value);
void shk_out_int(struct shk_facts_out *out, const char *member, long long value);

/* How it ended: status, reason, phase, and the rank that is to blame; rank -1: no single one. */
void shk_out_status(struct shk_facts_out *out, const char *status, const char *reason, int rank,
                    const char *phase);

/* 0, or the first error, which err then tells. */
int shk_out_end(const struct shk_facts_out *out, struct shk_error *err);

#endif
