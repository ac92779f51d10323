/* What other tools found on this node. */
#include "checks/base/coded.h"
#include "checks/base/remedy.h"
#include "checks/base/tally.h"

#include <string.h>

static const char key[] = "tools.results";

/* A day: what is older may have been repaired, and nobody looked since. */
enum { TOOLS_HOURS = 24 };

struct view {
    struct shk_tally tally;
    const char *tool; /* of the first bad one */
    bool fresh;       /* one of the bad ones is */
};

static void one(struct view *view, const json_t *item)
{
    const char *result = NULL, *tool = NULL, *test = NULL, *where = shk_member_words(item, "where");
    const char *text = shk_member_words(item, "text"), *when = shk_member_words(item, "modified");
    long long hours = 0;
    if (shk_look_member_text(item, "result", &result) != SHK_LOOK_PRESENT ||
        shk_look_member_text(item, "tool", &tool) != SHK_LOOK_PRESENT ||
        shk_look_member_text(item, "test", &test) != SHK_LOOK_PRESENT) {
        shk_tally_unread(&view->tally, "%s", shk_member_name(item, "id"));
        return;
    }
    if (strcmp(result, "pass") == 0) {
        shk_tally_good(&view->tally);
        return;
    }
    if (strcmp(result, "fail") != 0 && strcmp(result, "warn") != 0)
        return;
    enum shk_look age = shk_look_member_int(item, "age_h", &hours);
    shk_tally_bad(&view->tally, "%s %s%s%s: %s%s%s%s%s%s", tool, test, where ? " of " : "",
                  where ? where : "", result, text ? ", " : "", text ? text : "", when ? " (" : "",
                  when ? when : "", when ? ")" : "");
    view->tool = view->tool ? view->tool : tool;
    view->fresh |= strcmp(result, "fail") == 0 && (age != SHK_LOOK_PRESENT || hours < TOOLS_HOURS);
}

static void eval(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_tools, "results of other tools");
    struct view view = {.tally = SHK_TALLY_INIT};
    json_t *list = NULL, *item;
    size_t i;
    row.fact = key;
    row.source = "NVIDIA/DCGM: dcgmi diag -j; HPE Slingshot Host Software: cxi_healthcheck; "
                 "ibdiagnet: Summary; ROCm/ROCmValidationSuite: [RESULT]";
    enum shk_look look = shk_read_objects(&row, key, &list);
    if (look == SHK_LOOK_ABSENT) {
        shk_row_na(findings, &row, "no tool left results where they are looked for");
        return;
    }
    json_array_foreach(list, i, item) one(&view, item);
    bool any = shk_tally_judge(&view.tally, &row, view.fresh ? SHK_WARN : SHK_NOTE, SHK_LOG, key,
                               "results");
    if (look == SHK_LOOK_PRESENT && !any) {
        shk_row_na(findings, &row, "every test was skipped");
        shk_tally_free(&view.tally);
        return;
    }
    if (view.tally.bad) {
        row.diagnosis = view.fresh ? "tool-found-fault" : NULL;
        shk_row_text(&row.observed, "%s", shk_strbuf_text(&view.tally.bad_names));
        shk_row_text(&row.expected, "pass");
        shk_row_text(&row.why, "the tool tested what this program does not test again");
        shk_row_fix(&row, "tool-again", "value", view.tool, NULL);
    } else if (view.tally.good) {
        shk_row_text(&row.observed, "%u passed", view.tally.good);
    }
    shk_row_end(findings, &row);
    shk_tally_free(&view.tally);
}

const struct shk_check shk_check_tools = {
    .id = "node.tools",
    .family = "devices",
    .title = "Health checks of other tools found no fault",
    .eval = eval,
    .doc = "Fact: tools.results.\n"
           "A test that another tool (dcgmi diag, ibdiagnet, cxi_healthcheck, rvs, metrics of "
           "node_exporter's textfiles) calls failed within the last day is WARN; an older one, and "
           "what a tool only warns of, is a note. Without a time it counts as of now.",
};
