/* What a diagnosis comes to: a cause, a healthy start, or nothing decided. */
#include "checks/base/row.h"
#include "checks/cause/clue.h"
#include "checks/log/log.h"

#include <stdlib.h>
#include <string.h>

static bool harmless(const struct shk_config *config, const struct shk_diagnosis_row *row)
{
    const struct shk_diagnosis *entry = shk_config_diagnosis(config, row->key);
    return entry && entry->benign;
}

/* Causes that no other one explains. */
static void say_causes(struct shk_strbuf *sb, const struct shk_diagnoses *causes)
{
    const char *confidence = causes->rows[0].confidence;
    size_t own = 0, less = 0;
    for (size_t i = 0; i < causes->count; i++)
        causes->rows[i].below && causes->rows[i].verdict != SHK_FAIL ? less++ : own++;
    if (strcmp(confidence, "possible") == 0)
        shk_strbuf_printf(sb, "%zu possible cause%s", own, own == 1 ? "" : "s");
    else
        shk_strbuf_printf(sb, "%zu cause%s, %s%s", own, own == 1 ? "" : "s",
                          own == 1 ? "" : "the first one ", confidence);
    if (less)
        shk_strbuf_printf(sb, "; %zu less likely", less);
}

static void say_none(struct shk_strbuf *sb, const struct shk_config *config,
                     const struct shk_facts *facts)
{
    long long lines = 0;
    const json_t *first = shk_log_first_error(config, facts, &lines);
    shk_strbuf_puts(sb, "no known cause");
    if (!first)
        return;
    char *place = shk_log_unknown_place(first);
    shk_strbuf_printf(sb, "; %lld %s like %s: %s: %s", lines,
                      lines == 1 ? "line looks" : "lines look", lines == 1 ? "an error" : "errors",
                      place ? place : "log", shk_log_unknown_text(first));
    free(place);
}

enum shk_verdict shk_diagnose_answer(const struct shk_config *config,
                                     const struct shk_diagnoses *causes,
                                     const struct shk_coverage *coverage,
                                     const struct shk_facts *facts, char **headline_p)
{
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    enum shk_verdict answer = SHK_UNKNOWN;
    bool decided = false, logs = shk_log_given(facts);
    for (size_t i = 0; i < causes->count; i++)
        decided |= strcmp(causes->rows[i].confidence, "possible") != 0 &&
                   !harmless(config, &causes->rows[i]);
    if (causes->count) {
        answer = decided ? SHK_FAIL : SHK_UNKNOWN;
        say_causes(&sb, causes);
    } else if (logs && shk_log_started(facts)) {
        answer = SHK_PASS;
        shk_strbuf_puts(&sb, "no cause, and the logs show a start as it should be");
    } else if (!logs && coverage->verdicts[SHK_PASS] && !coverage->required_unknown &&
               !coverage->verdicts[SHK_FAIL]) {
        answer = SHK_PASS;
        shk_strbuf_puts(&sb, "no cause, and every required check passed");
    } else {
        say_none(&sb, config, facts);
    }
    *headline_p = shk_strbuf_take(&sb);
    return answer;
}
