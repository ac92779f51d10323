/* Old totals of the network, and what the kernel logged since boot: worth knowing, and no more.
 * What moves during a run is judged by collective.counters and collective.moved. */
#include "checks/base/coded.h"
#include "checks/base/read.h"
#include "config/codes.h"

#include <string.h>

enum { HISTORY_SHOWN = 8 };

static const char totals_key[] = "counters.totals", events_key[] = "kernel.log.events";

static void totals(struct shk_row *row, struct shk_findings *findings)
{
    struct shk_strbuf seen = SHK_STRBUF_INIT;
    json_t *doc = NULL, *errors = NULL, *unread = NULL, *read = NULL, *counters, *value;
    const char *scope, *name;
    size_t shown = 0, more = 0;
    row->fact = totals_key;
    row->source = "InfiniBand Architecture Specification, PortCounters; NVIDIA, Understanding mlx5 "
                  "Linux Counters and Status Parameters";
    enum shk_look look = shk_read_object(row, totals_key, &doc);
    if (look == SHK_LOOK_ABSENT) {
        shk_row_na(findings, row, "no RDMA or Slingshot device on this node");
        return;
    }
    if (doc) {
        (void)shk_read_member_object(row, totals_key, doc, "errors", &errors);
        (void)shk_read_member_texts(row, totals_key, doc, "read", &read);
        if (shk_read_member_object(row, totals_key, doc, "unread", &unread) == SHK_LOOK_PRESENT)
            json_object_foreach(unread, scope, value)
                shk_row_lacks(row, totals_key, "%s: %s", scope,
                              json_is_string(value) ? json_string_value(value) : "not read");
    }
    json_object_foreach(errors, scope, counters)
    {
        json_object_foreach(counters, name, value)
        {
            if (!json_is_integer(value))
                continue;
            if (shown == HISTORY_SHOWN)
                more++;
            else
                shk_strbuf_printf(&seen, "%s%s: %s %lld", shown++ ? "; " : "", scope, name,
                                  (long long)json_integer_value(value));
        }
    }
    if (more)
        shk_strbuf_printf(&seen, "; and %zu more", more);
    if (errors && read)
        shk_row_verdict(row, shown ? SHK_NOTE : SHK_PASS, SHK_EFFECT);
    shk_row_text(&row->observed, "%s", shown ? shk_strbuf_text(&seen) : "none");
    if (shown)
        shk_row_text(&row->why,
                     "since the drivers were loaded; an old total says nothing about the present");
    shk_row_end(findings, row);
    shk_strbuf_free(&seen);
}

/* "2 times, 3600 s after boot", and what the vendor says of the number. */
static void event(const struct shk_config *config, struct shk_strbuf *seen, const json_t *item)
{
    const struct shk_code *code = shk_config_code(config, shk_member_name(item, "counter"));
    long long count = 0, first = 0, last = 0;
    (void)shk_look_member_int(item, "count", &count);
    (void)shk_look_member_int(item, "first_s", &first);
    (void)shk_look_member_int(item, "last_s", &last);
    shk_strbuf_printf(seen, "%s%s: %s", seen->len ? "; " : "", shk_member_name(item, "scope"),
                      shk_member_name(item, "counter"));
    if (count > 1)
        shk_strbuf_printf(seen, " %lld times, %lld to %lld s after boot", count, first, last);
    else
        shk_strbuf_printf(seen, " %lld s after boot", first);
    if (code)
        shk_strbuf_printf(seen, " (%s; NVIDIA: %s)", code->means,
                          shk_code_action_text(code->action));
}

static void log_events(struct shk_row *row, struct shk_findings *findings)
{
    struct shk_strbuf seen = SHK_STRBUF_INIT;
    json_t *list = NULL, *item;
    size_t i;
    row->fact = events_key;
    row->source =
        "NVIDIA XID Errors: Xid Catalog; torvalds/linux:Documentation/ABI/testing/dev-kmsg";
    if (shk_read_objects(row, events_key, &list) == SHK_LOOK_PRESENT) {
        json_array_foreach(list, i, item) if (i < HISTORY_SHOWN)
            event(row->ctx->config, &seen, item);
        if (json_array_size(list) > HISTORY_SHOWN)
            shk_strbuf_printf(&seen, "; and %zu more", json_array_size(list) - HISTORY_SHOWN);
        shk_row_verdict(row, json_array_size(list) ? SHK_NOTE : SHK_PASS, SHK_LOG);
        shk_row_text(&row->observed, "%s",
                     json_array_size(list) ? shk_strbuf_text(&seen)
                                           : "no Xid, no RAS error, no link that went down");
        if (json_array_size(list))
            shk_row_text(&row->why,
                         "what is left of the kernel's log; what a driver still asks for "
                         "has a row of its own");
    }
    shk_row_end(findings, row);
    shk_strbuf_free(&seen);
}

static void eval(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_history, "network error totals");
    totals(&row, findings);
    row = shk_row_begin(ctx, &shk_check_history, "kernel log since boot");
    log_events(&row, findings);
}

const struct shk_check shk_check_history = {
    .id = "device.history",
    .family = "devices",
    .title =
        "What network devices counted, and what the kernel logged about devices, before this run",
    .eval = eval,
    .doc = "Facts: counters.totals, kernel.log.events.\n"
           "Error counters of RDMA and Slingshot devices that are not 0, and lines of the kernel's "
           "log about Xid, SXid, RAS errors, resets and links that went down, with number and "
           "time and the action that NVIDIA names for the number (config/codes), are a note: no "
           "source gives a total that is too high, and what is old says "
           "nothing about now. What moves during a collective is judged.",
};
