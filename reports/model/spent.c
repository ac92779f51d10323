#include "reports/model/spent.h"

#include "core/text/strbuf.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct shk_spent {
    const struct shk_report *report;
    json_t *counted; /* keys of times */
};

struct shk_spent *shk_spent_begin(const struct shk_report *report)
{
    struct shk_spent *spent = calloc(1, sizeof *spent);
    if (!spent)
        return NULL;
    spent->report = report;
    spent->counted = json_object();
    if (!spent->counted) {
        free(spent);
        return NULL;
    }
    return spent;
}

void shk_spent_end(struct shk_spent *spent)
{
    if (spent)
        json_decref(spent->counted);
    free(spent);
}

/* The key of the time that `layer.NAME.rest` belongs to; NULL: it is another layer's, or of all. */
static char *spent_of_layer(const char *fact, const char *layer)
{
    size_t n = strlen(layer);
    if (strncmp(fact, layer, n) != 0 || fact[n] == '*')
        return NULL;
    return shk_strf("%s%.*s.ms", layer, (int)strcspn(fact + n, ".[*"), fact + n);
}

/* A row may name a part of what its probe provides: "limits.memlock.soft". */
static char *spent_of_probe(const struct shk_spent *spent, char *fact)
{
    fact[strcspn(fact, "[*")] = '\0';
    for (;;) {
        const char *probe = spent->report->probe_of(fact);
        if (probe)
            return shk_strf("probe.%s.ms", probe);
        char *dot = strrchr(fact, '.');
        if (!dot)
            return NULL;
        *dot = '\0';
    }
}

static double spent_slowest(const struct shk_report *report, const char *key)
{
    double most = 0;
    for (size_t i = 0; i < report->nodes; i++) {
        struct shk_fact fact;
        if (!shk_facts_get(report->facts[i], key, &fact) || fact.state != SHK_FACT_PRESENT)
            continue;
        double ms = json_is_number(fact.value) ? json_number_value(fact.value) : 0;
        most = isfinite(ms) && ms > most ? ms : most;
    }
    return most / 1000;
}

double shk_spent_on(struct shk_spent *spent, const struct shk_finding *row)
{
    double seconds = 0;
    char *facts = row->fact ? strdup(row->fact) : NULL, *save = NULL;
    for (char *fact = facts ? strtok_r(facts, ", ", &save) : NULL; fact;
         fact = strtok_r(NULL, ", ", &save)) {
        char *key = spent_of_layer(fact, "collective.");
        if (!key)
            key = spent_of_layer(fact, "probe.");
        if (!key && spent->report->probe_of)
            key = spent_of_probe(spent, fact);
        if (key && !json_object_get(spent->counted, key)) {
            (void)json_object_set_new(spent->counted, key, json_true());
            seconds += spent_slowest(spent->report, key);
        }
        free(key);
    }
    free(facts);
    return seconds;
}
