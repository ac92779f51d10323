/* Modules and cables of network cards, by their own limits. */
#include "checks/base/coded.h"
#include "checks/base/remedy.h"
#include "checks/base/tally.h"

#include <string.h>

static const char key[] = "net.transceivers";

enum state { SKIP, GOOD, BAD, UNREAD };

/* Lanes that receive less than the limit: "lanes 2, 3: 12.0 uW, limit 100.0 uW". */
static enum state judge_light(const json_t *module, struct shk_strbuf *seen)
{
    json_t *light = NULL, *lane;
    double limit = 0, least = -1;
    size_t i, dark = 0;
    struct shk_strbuf lanes = SHK_STRBUF_INIT;
    enum shk_look look = shk_look_member_numbers(module, "light", &light);
    enum shk_look has = shk_look_member_number(module, "light_alarm", &limit);
    if (!shk_look_told(look) || !shk_look_told(has))
        return UNREAD;
    if (look != SHK_LOOK_PRESENT || has != SHK_LOOK_PRESENT)
        return SKIP;
    json_array_foreach(light, i, lane)
    {
        double power = json_number_value(lane);
        if (power >= limit)
            continue;
        shk_strbuf_printf(&lanes, "%s%zu", dark++ ? ", " : "", i + 1);
        least = least < 0 || power < least ? power : least;
    }
    if (dark)
        shk_strbuf_printf(seen, "lane%s %s: %.1f uW of light, limit %.1f uW", dark > 1 ? "s" : "",
                          shk_strbuf_text(&lanes), least, limit);
    shk_strbuf_free(&lanes);
    return dark ? BAD : GOOD;
}

static enum state judge_heat(const json_t *module, struct shk_strbuf *seen)
{
    double now = 0, limit = 0;
    enum shk_look look = shk_look_member_number(module, "temperature", &now);
    enum shk_look has = shk_look_member_number(module, "temperature_alarm", &limit);
    if (!shk_look_told(look) || !shk_look_told(has))
        return UNREAD;
    if (look != SHK_LOOK_PRESENT || has != SHK_LOOK_PRESENT)
        return SKIP;
    if (now < limit)
        return GOOD;
    shk_strbuf_printf(seen, "%s%.0f °C, limit %.0f °C", seen->len ? "; " : "", now, limit);
    return BAD;
}

/* A link that is down receives nothing: only heat and the module's own fault are judged then. */
static enum state judge_module(const json_t *item, struct shk_strbuf *seen)
{
    bool running = false, fault = false, copper = false;
    json_t *module = NULL;
    enum shk_look up = shk_look_member_bool(item, "running", &running);
    enum shk_look look = shk_look_member_object(item, "module", &module);
    if (look == SHK_LOOK_ABSENT)
        return SKIP;
    if (up == SHK_LOOK_PRESENT && !running && look != SHK_LOOK_PRESENT)
        return SKIP; /* an empty cage answers with an error of the bus */
    if (up != SHK_LOOK_PRESENT || look != SHK_LOOK_PRESENT)
        return UNREAD;
    enum state light = running ? judge_light(module, seen) : SKIP;
    enum state heat = judge_heat(module, seen);
    enum shk_look broken = shk_look_member_bool(module, "fault", &fault);
    if (fault)
        shk_strbuf_printf(seen, "%sthe module reports a fault", seen->len ? "; " : "");
    if (light == BAD || heat == BAD || fault)
        return BAD;
    if (light == UNREAD || heat == UNREAD || broken != SHK_LOOK_PRESENT)
        return UNREAD;
    if (light == GOOD || heat == GOOD)
        return GOOD;
    /* a cable has no light, and need not have heat; of optics without limits nothing is within them
     */
    if (shk_look_member_bool(module, "copper", &copper) != SHK_LOOK_PRESENT)
        return UNREAD;
    return copper ? GOOD : SKIP;
}

static void eval(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_transceivers, "transceivers");
    struct shk_tally tally = SHK_TALLY_INIT;
    json_t *list = NULL, *item;
    const char *first = NULL;
    size_t i;
    row.fact = key;
    row.source = "SFF-8472; SFF-8636; OIF CMIS: alarm thresholds of the module";
    enum shk_look look = shk_read_objects(&row, key, &list);
    if (look == SHK_LOOK_ABSENT) {
        shk_row_na(findings, &row, "no network card on this node");
        return;
    }
    json_array_foreach(list, i, item)
    {
        struct shk_strbuf seen = SHK_STRBUF_INIT;
        const char *name = shk_member_name(item, "name");
        switch (judge_module(item, &seen)) {
        case GOOD: shk_tally_good(&tally); break;
        case BAD:
            shk_tally_bad(&tally, "%s: %s", name, shk_strbuf_text(&seen));
            first = first ? first : name;
            break;
        case UNREAD:
            shk_tally_unread(&tally, "%s%s%s", name, shk_member_problem(item, "module") ? ": " : "",
                             shk_member_problem(item, "module") ? shk_member_problem(item, "module")
                                                                : "");
            break;
        case SKIP: break;
        }
        shk_strbuf_free(&seen);
    }
    bool any = shk_tally_judge(&tally, &row, SHK_WARN, SHK_TESTED, key, "modules");
    if (look == SHK_LOOK_PRESENT && !any) {
        shk_row_na(findings, &row, "no port in use whose driver offers the memory of a module");
        shk_tally_free(&tally);
        return;
    }
    if (tally.bad) {
        row.diagnosis = "network-module";
        shk_row_text(&row.observed, "%s", shk_strbuf_text(&tally.bad_names));
        shk_row_text(&row.expected, "within the limits that the module names");
        shk_row_text(&row.why, "the link loses packets or goes down, in most cases under load");
        shk_row_fix(&row, "transceiver", "value", first, NULL);
    } else if (tally.good) {
        shk_row_text(&row.observed, "%u within their limits", tally.good);
    }
    shk_row_end(findings, &row);
    shk_tally_free(&tally);
}

const struct shk_check shk_check_transceivers = {
    .id = "nic.transceivers",
    .diagnosis = "network-module",
    .family = "devices",
    .title = "Transceivers of network cards are within limits",
    .eval = eval,
    .doc =
        "Fact: net.transceivers.\n"
        "A module that is as hot as its own high alarm threshold, one that reports a fault, and a "
        "lane of a running link that receives less light than the low alarm threshold are WARN. "
        "Of a cable without light only heat and faults are judged; optics without limits are not. "
        "A port "
        "that is down and whose module does not answer is not looked at. n/a where no driver "
        "offers it (EOPNOTSUPP).",
};
