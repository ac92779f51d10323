#include "cli/exit_code.h"
#include "cli/session/logpatterns.h"
#include "cli/session/output.h"
#include "cli/session/session.h"
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

static int log_scan(struct shk_session *session, struct shk_logscan *scan, struct shk_facts *found,
                    struct shk_error *err)
{
    const struct shk_texts *files = &session->options->log_files;
    for (size_t i = 0; i < files->count; i++) {
        int rc = shk_logscan_file(scan, files->items[i], err);
        if (rc)
            return rc;
    }
    int rc = 0;
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

/* diagnose: the texts may hold more than lines of logs. *ticket_p stays NULL elsewhere. */
static int log_ticket(struct shk_session *session, struct shk_ticket **ticket_p,
                      struct shk_error *err)
{
    if (!session->part)
        return 0;
    int rc = shk_session_names(session, err);
    if (rc)
        return rc;
    *ticket_p = shk_ticket_create(session->names);
    return *ticket_p ? 0 : shk_error_sys(err, ENOMEM, "ticket");
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
    struct shk_ticket *ticket = NULL;
    rc = rc ? rc : log_ticket(session, &ticket, &err);
    if (!rc && ticket)
        shk_logscan_watch(scan, log_watch, ticket);
    rc = rc ? rc : log_scan(session, scan, found, &err);
    if (!rc && ticket)
        rc = shk_session_take_ticket(session, ticket, &err);
    shk_ticket_destroy(ticket);
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
