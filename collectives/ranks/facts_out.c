#include "collectives/ranks/facts_out.h"

#include <stdio.h>

const char *shk_out_key(struct shk_facts_out *out, const char *member)
{
    snprintf(out->key, sizeof out->key, "collective.%s.%s", out->transport, member);
    return out->key;
}

void shk_out_note(struct shk_facts_out *out, int rc)
{
    out->rc = out->rc != 0 ? out->rc : rc;
}

void shk_out_text(struct shk_facts_out *out, const char *member, const char *text)
{
    shk_out_note(out, shk_facts_text(out->facts, shk_out_key(out, member),
                                     text && *text != '\0' ? text : NULL, out->source));
}

void shk_out_json(struct shk_facts_out *out, const char *member, json_t *value)
{
    shk_out_note(out,
                 shk_facts_present(out->facts, shk_out_key(out, member), value, NULL, out->source));
}

void shk_out_int(struct shk_facts_out *out, const char *member, long long value)
{
    shk_out_note(out,
                 shk_facts_int(out->facts, shk_out_key(out, member), value, NULL, out->source));
}

void shk_out_status(struct shk_facts_out *out, const char *status, const char *reason, int rank,
                    const char *phase)
{
    shk_out_text(out, "status", status);
    shk_out_text(out, "reason", reason);
    shk_out_text(out, "phase", phase);
    if (rank >= 0) {
        shk_out_int(out, "rank", rank);
    } else {
        shk_out_note(out, shk_facts_absent(out->facts, shk_out_key(out, "rank"), out->source,
                                           "no single rank is to blame"));
    }
}

int shk_out_end(const struct shk_facts_out *out, struct shk_error *err)
{
    return out->rc == 0 ? 0 : shk_error_sys(err, -out->rc, "facts of the %s", out->source);
}
