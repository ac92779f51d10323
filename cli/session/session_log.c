#include "cli/exit_code.h"
#include "cli/logpatterns.h"
#include "cli/output.h"
#include "cli/session/session.h"
#include "core/text/strbuf.h"
#include "probes/dumps/flight.h"
#include "probes/log/logscan.h"
#include "probes/ticket/ticket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int log_own(const struct shk_fact *fact, void *arg)
{
    struct shk_error err = {""};
    const char *text = json_string_value(fact->value);
    size_t len = strlen(fact->key);
    if (!text || len < 4 || strcmp(fact->key + len - 4, ".log") != 0)
        return 0;
    return shk_logscan_text(arg, fact->key, text, strlen(text), &err);
}

static int log_count_own(const struct shk_fact *fact, void *arg)
{
    size_t len = strlen(fact->key);
    *(size_t *)arg +=
        json_is_string(fact->value) && len > 4 && strcmp(fact->key + len - 4, ".log") == 0;
    return 0;
}

/* Is there a log that one of our own collectives left in the facts? */
static bool log_has_own(const struct shk_session *session)
{
    size_t count = 0;
    for (size_t i = 0; i < session->nodes; i++)
        shk_facts_each(session->facts[i], "collective.", log_count_own, &count);
    return count > 0;
}

/* What the files of diagnose may be besides logs; NULL elsewhere. */
struct log_inputs {
    struct shk_ticket *ticket;
    struct shk_flight *flight;
};

static int log_one(struct shk_logscan *scan, const struct log_inputs *inputs, const char *path,
                   struct shk_error *err)
{
    bool taken = false;
    int rc = inputs->flight ? shk_session_take_dump(inputs->flight, path, &taken, err) : 0;
    return rc || taken ? rc : shk_logscan_file(scan, path, err);
}

/* The lines that dumps come to are searched like those of a log. */
static int log_dumps(struct shk_logscan *scan, const struct shk_flight *flight,
                     struct shk_error *err)
{
    struct shk_strbuf text = SHK_STRBUF_INIT;
    if (!flight || !shk_flight_count(flight))
        return 0;
    shk_flight_compare(flight, &text, NULL);
    shk_say("read: %zu dump%s of PyTorch's flight recorder", shk_flight_count(flight),
            shk_flight_count(flight) == 1 ? "" : "s");
    int rc = text.failed
                 ? shk_error_sys(err, ENOMEM, "flight recorder")
                 : shk_logscan_text(scan, "flight recorder", shk_strbuf_text(&text), text.len, err);
    shk_strbuf_free(&text);
    return rc;
}

/* So are those that outputs in a ticket come to. */
static int log_ticket(struct shk_logscan *scan, struct shk_ticket *ticket, struct shk_error *err)
{
    size_t len = 0;
    const char *text = NULL;
    if (!ticket)
        return 0;
    if (shk_ticket_read(ticket) || !(text = shk_ticket_lines(ticket, &len)))
        return shk_error_sys(err, ENOMEM, "ticket");
    return len ? shk_logscan_text(scan, "ticket", text, len, err) : 0;
}

static int log_scan(struct shk_session *session, struct shk_logscan *scan,
                    const struct log_inputs *inputs, struct shk_facts *found, struct shk_error *err)
{
    const struct shk_texts *files = &session->options->log_files;
    int rc = 0;
    for (size_t i = 0; i < files->count && !rc; i++)
        rc = log_one(scan, inputs, files->items[i], err);
    rc = rc ? rc : log_dumps(scan, inputs->flight, err);
    rc = rc ? rc : log_ticket(scan, inputs->ticket, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < session->nodes && !rc; i++)
        rc = shk_facts_each(session->facts[i], "collective.", log_own, scan);
    if (!rc)
        rc = shk_logscan_facts(scan, found);
    return rc ? shk_error_sys(err, -rc, "log") : 0;
}

static int log_watch(void *arg, const char *name, const char *data, size_t len)
{
    return shk_ticket_add(arg, name, data, len);
}

static int log_inputs(struct shk_session *session, struct shk_logscan *scan,
                      struct log_inputs *inputs, struct shk_error *err)
{
    if (!session->part)
        return 0;
    int rc = shk_session_names(session, err);
    if (rc)
        return rc;
    inputs->ticket = shk_ticket_create(session->names);
    inputs->flight = shk_flight_create();
    if (!inputs->ticket || !inputs->flight)
        return shk_error_sys(err, ENOMEM, "log");
    shk_logscan_watch(scan, log_watch, inputs->ticket);
    return 0;
}

int shk_session_load_logs(struct shk_session *session)
{
    if (!session->options->log_files.count && !log_has_own(session))
        return SHK_EXIT_OK;
    struct shk_error err = {""};
    size_t n;
    struct shk_log_pattern *patterns = shk_log_patterns(session->config, &n);
    struct shk_facts *found = shk_facts_create();
    struct shk_logscan *scan = NULL;
    int rc = patterns && found ? 0 : shk_error_sys(&err, ENOMEM, "log");
    if (!rc)
        rc = shk_logscan_create(&scan, patterns, n, &shk_log_builtin, &err);
    struct log_inputs inputs = {.ticket = NULL};
    rc = rc ? rc : log_inputs(session, scan, &inputs, &err);
    rc = rc ? rc : log_scan(session, scan, &inputs, found, &err);
    if (!rc && inputs.ticket)
        rc = shk_session_take_ticket(session, inputs.ticket, &err);
    shk_ticket_destroy(inputs.ticket);
    shk_flight_destroy(inputs.flight);
    for (size_t i = 0; !rc && i < session->nodes; i++) {
        rc = shk_facts_merge(session->facts[i], found);
        if (rc)
            shk_error_sys(&err, -rc, "log");
    }
    shk_logscan_destroy(scan);
    shk_facts_destroy(found);
    free(patterns);
    if (!rc)
        return SHK_EXIT_OK;
    shk_say("%s", err.text);
    return rc == -ENOMEM ? SHK_EXIT_INTERNAL : SHK_EXIT_USAGE;
}
