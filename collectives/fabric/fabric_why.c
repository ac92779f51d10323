#include "collectives/fabric/fabric_private.h"
#include "core/run/isolate.h"
#include "core/text/strbuf.h"
#include "core/text/uses.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* fi_getinfo of every provider, several times: seconds at worst. */
#define WHY_DEADLINE_MS 10000U

/* What the child is asked. */
struct why_question {
    const char *const *names;
    const char *provider; /* asked for with an option; NULL: by FI_PROVIDER, or not at all */
};

struct why {
    const struct fabric_lib *lib;
    const char *filter; /* FI_PROVIDER of the run; NULL when unset */
    struct shk_strbuf *text;
};

/* Adds a name to a comma-separated list, once. */
static void why_list(struct shk_strbuf *list, const char *name)
{
    const char *at = shk_strbuf_text(list);
    size_t len = strlen(name);

    while ((at = strstr(at, name)) != NULL) {
        bool whole =
            (at == shk_strbuf_text(list) || at[-1] == ' ') && (at[len] == '\0' || at[len] == ',');

        if (whole)
            return;
        at += len;
    }
    shk_strbuf_printf(list, "%s%s", list->len > 0 ? ", " : "", name);
}

static bool why_getinfo(struct why *why, const struct fi_info *hints, struct shk_strbuf *names)
{
    struct fi_info *list = NULL;
    struct fi_info *info = NULL;

    if (!hints || why->lib->api.getinfo(why->lib->version, NULL, NULL, 0, hints, &list) != 0 ||
        !list) {
        return false;
    }
    for (info = list; info != NULL && names != NULL; info = info->next)
        why_list(names, info->fabric_attr->prov_name);
    why->lib->api.freeinfo(list);
    return true;
}

/* Every provider that the library has; true when `wanted` is among them. */
static bool why_built_in(struct why *why, const char *wanted, struct shk_strbuf *names)
{
    struct fi_info *list = NULL;
    struct fi_info *info = NULL;
    bool found = false;

    if (why->lib->api.getinfo(why->lib->version, NULL, NULL, FI_PROV_ATTR_ONLY, NULL, &list) != 0)
        return false;
    for (info = list; info != NULL; info = info->next) {
        const char *name = info->fabric_attr->prov_name;

        found = found || strcmp(name, wanted) == 0;
        if (names && strncmp(name, "ofi_hook", 8) != 0)
            why_list(names, name);
    }
    why->lib->api.freeinfo(list);
    return found;
}

/* Names the single hint without which the provider would offer itself. */
static bool why_hint(struct why *why, const char *provider)
{
    const struct fabric_hint *hint = NULL;

    for (hint = fabric_hint_list; hint->name != NULL; hint++) {
        struct fi_info *hints = fabric_hints(why->lib, provider);
        bool found = false;

        if (hints) {
            hint->relax(hints);
            found = why_getinfo(why, hints, NULL);
            why->lib->api.freeinfo(hints);
        }
        if (found) {
            shk_strbuf_printf(why->text, "%s does not offer %s", provider, hint->name);
            return true;
        }
    }
    return false;
}

/* Does it offer itself to these hints, all relaxed or none? */
static bool why_offers(struct why *why, const char *provider, bool relaxed)
{
    struct fi_info *hints = fabric_hints(why->lib, provider);
    const struct fabric_hint *hint = NULL;
    bool any = false;

    if (!hints)
        return false;
    for (hint = fabric_hint_list; relaxed && hint->name != NULL; hint++)
        hint->relax(hints);
    hints->caps = relaxed ? 0 : hints->caps;
    any = why_getinfo(why, hints, NULL);
    why->lib->api.freeinfo(hints);
    return any;
}

static void why_refused(struct why *why, const char *provider)
{
    if (why_offers(why, provider, false)) {
        shk_strbuf_printf(why->text, "%s would fit, %s=%s excludes it", provider,
                          shk_variable("provider-filter"), why->filter ? why->filter : "");
    } else if (!why_hint(why, provider)) {
        shk_strbuf_printf(why->text, "%s %s", provider,
                          why_offers(why, provider, true)
                              ? "lacks several required features"
                              : "is built in but finds no device or interface on this host");
    }
}

/* Splits "a,b;c" and explains each name. */
static void why_wanted(struct why *why, const char *wanted)
{
    char *copy = strdup(wanted);
    char *rest = NULL;
    char *name = copy ? strtok_r(copy, ",; ", &rest) : NULL;
    bool first = true;

    for (; name; name = strtok_r(NULL, ",; ", &rest)) {
        shk_strbuf_puts(why->text, first ? "" : "; ");
        first = false;
        if (!why_built_in(why, name, NULL)) {
            shk_strbuf_printf(why->text, "libfabric %s (%s) has no provider %s", why->lib->text,
                              why->lib->dynlib.path, name);
        } else {
            why_refused(why, name);
        }
    }
    free(copy);
}

void fabric_why_text(const struct fabric_lib *lib, const char *provider, const char *filter,
                     struct shk_strbuf *text)
{
    struct why why = {.lib = lib, .filter = filter, .text = text};
    const char *wanted = provider ? provider : filter;
    struct shk_strbuf names = SHK_STRBUF_INIT;
    struct shk_strbuf usable = SHK_STRBUF_INIT;
    struct fi_info *hints = NULL;

    (void)why_built_in(&why, "", &names);
    if (wanted && *wanted != '\0' && *wanted != '^') {
        shk_strbuf_printf(text, "%s%s%s: ", provider ? "provider" : shk_variable("provider-filter"),
                          provider ? " " : "=", wanted);
        why_wanted(&why, wanted);
    } else {
        shk_strbuf_printf(text, "no provider of libfabric %s (%s) fits", lib->text,
                          lib->dynlib.path);
        if (wanted && *wanted == '^')
            shk_strbuf_printf(text, " with %s=%s", shk_variable("provider-filter"), wanted);
    }
    shk_strbuf_printf(text, "; it has %s", shk_strbuf_text(&names));
    hints = fabric_hints(lib, NULL);
    (void)why_getinfo(&why, hints, &usable);
    if (hints)
        lib->api.freeinfo(hints);
    shk_strbuf_printf(text, "; usable here: %s",
                      usable.len > 0 ? shk_strbuf_text(&usable) : "none");
    shk_strbuf_free(&names);
    shk_strbuf_free(&usable);
}

static int why_child(void *arg, json_t **result_p, struct shk_error *err)
{
    const struct why_question *question = arg;
    const char *env = getenv(shk_variable("provider-filter"));
    char *filter = env ? strdup(env) : NULL;
    struct shk_strbuf text = SHK_STRBUF_INIT;
    struct fabric_lib lib;
    int rc = 0;

    /* The filter acts when the library starts: without it, the others are seen as well. */
    unsetenv(shk_variable("provider-filter"));
    rc = fabric_lib_open(&lib, question->names, err);
    if (rc == 0) {
        shk_crumb_call("fi_getinfo");
        fabric_why_text(&lib, question->provider, filter, &text);
        *result_p = shk_json_text(shk_strbuf_text(&text), text.len);
        fabric_lib_close(&lib);
    }
    shk_strbuf_free(&text);
    free(filter);
    return rc;
}

bool fabric_why(const char *const *names, const char *provider, char *buf, size_t size)
{
    struct why_question question = {.names = names, .provider = provider};
    struct shk_isolate_job job = {
        .name = "libfabric's providers",
        .fn = why_child,
        .arg = &question,
        .deadline_ms = WHY_DEADLINE_MS,
    };
    struct shk_isolate_result result = {0};
    bool known = false;

    if (shk_isolate_run(&job, &result, 1, 1, NULL) == 0) {
        known = result.outcome == SHK_CHILD_OK && json_is_string(result.result);
        if (known)
            snprintf(buf, size, "%s", json_string_value(result.result));
        shk_isolate_result_clear(&result);
    }
    return known;
}

static bool why_published(const struct shk_job *job, const char *key)
{
    char cause[64];
    size_t len = 0;

    for (unsigned rank = 0; rank < shk_job_size(job); rank++) {
        if (shk_job_get(job, rank, key, cause, sizeof cause, &len, NULL) == 0)
            return true;
    }
    return false;
}

void fabric_explain(const char *const *names, const char *provider, const struct shk_job *job,
                    struct shk_crew_result *result)
{
    char why[sizeof result->reason.text];

    if (fabric_leftover("/dev/shm", job, result) || result->outcome != SHK_CREW_FAILED ||
        !why_published(job, FABRIC_NO_OFFER) || why_published(job, FABRIC_REFUSED)) {
        return;
    }
    if (fabric_why(names, provider, why, sizeof why)) {
        /* The same for every rank of this host: no rank is to blame. */
        result->rank = shk_job_size(job) > 1 ? -1 : 0;
        (void)shk_error_set(&result->reason, FI_ENODATA, "phase open: %s", why);
    }
}
