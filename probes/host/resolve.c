/* What the host name resolves to: rank 0's address as its peers will see it. A probe of its own,
 * because a dead name server can take longer than all the others together. */
#include "probes/base/gather.h"
#include "probes/base/registry.h"

static int resolve_run(struct shk_probe_context *ctx, struct shk_error *err)
{
    static const char key[] = "net.hostname_resolves_to";
    struct shk_gather g = shk_gather_begin(ctx);
    json_t *answer = shk_gather_hostcall(&g, SHK_CALL_RESOLVE, key);
    json_t *addrs = json_object_get(answer, "addrs");
    const char *name = shk_gather_get(answer, "hostname");
    const char *error = shk_gather_get(answer, "error");
    if (answer && error)
        shk_gather_failed(&g, key, "getaddrinfo", "%s: %s", name ? name : "host name", error);
    else if (answer && json_is_array(addrs))
        shk_gather_present(&g, key, json_incref(addrs), NULL, "getaddrinfo");
    else if (answer)
        shk_gather_failed(&g, key, "getaddrinfo", "no addresses in the answer");
    json_decref(answer);
    return shk_gather_end(&g, err);
}

static const char *const resolve_provides[] = {"net.hostname_resolves_to", NULL};

const struct shk_probe shk_probe_resolve = {
    .name = "resolve",
    .phase = SHK_PHASE_HOST,
    .doc = "what the host name resolves to",
    .provides = resolve_provides,
    .deadline_ms = 3000,
    .apart = true,
    .run = resolve_run,
};
