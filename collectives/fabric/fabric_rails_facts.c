/* collective.fabric.rails out of what each rank left: one row per device and what became of it. */
#include "collectives/fabric/fabric_private.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RAILS_ROWS 64U

struct rails_join {
    const struct fabric_rail_report *report; /* that tells most */
    unsigned rank;                           /* whose it is */
    json_t *blame;                           /* host -> how many tokens speak against it */
};

struct rails_table {
    const struct shk_job *job;
    const struct shk_crew_result *result;
    char here[256];
    struct rails_join rows[RAILS_ROWS];
    unsigned count;
};

static const char *const rails_status_names[] = {
    [FABRIC_RAIL_USED] = "used",
    [FABRIC_RAIL_LEFT_OUT] = "left out",
    [FABRIC_RAIL_MISSING] = "missing",
    [FABRIC_RAIL_DEAD] = "dead",
};

static const char *rails_host(const struct rails_table *table, unsigned rank)
{
    const char *host = table->result->ranks[rank].host;

    return host[0] != '\0' ? host : table->here;
}

/* What a rank wrote is not trusted: it may have died while it did. */
static bool rails_sane(const struct fabric_rail_report *report)
{
    return report->status >= FABRIC_RAIL_USED && report->status <= FABRIC_RAIL_DEAD &&
           memchr(report->domain, '\0', sizeof report->domain) &&
           memchr(report->fabric, '\0', sizeof report->fabric) &&
           memchr(report->pci, '\0', sizeof report->pci) &&
           memchr(report->reason, '\0', sizeof report->reason);
}

/* A witness tells more than one who heard of it, a slow rank more than a fast one. */
static bool rails_tells_more(const struct fabric_rail_report *a, const struct fabric_rail_report *b)
{
    if (a->status == FABRIC_RAIL_USED)
        return a->bandwidth > 0 && (b->bandwidth <= 0 || a->bandwidth < b->bandwidth);
    return a->witness > b->witness;
}

static struct rails_join *rails_row(struct rails_table *table,
                                    const struct fabric_rail_report *report, unsigned rank)
{
    for (unsigned i = 0; i < table->count; i++) {
        struct rails_join *row = &table->rows[i];

        if (row->report->status == report->status &&
            strcmp(row->report->domain, report->domain) == 0 &&
            strcmp(row->report->fabric, report->fabric) == 0) {
            if (rails_tells_more(report, row->report)) {
                row->report = report;
                row->rank = rank;
            }
            return row;
        }
    }
    if (table->count == RAILS_ROWS)
        return NULL;
    table->rows[table->count] =
        (struct rails_join){.report = report, .rank = rank, .blame = json_object()};
    return &table->rows[table->count++];
}

static void rails_blame_rank(const struct rails_table *table, struct rails_join *row, unsigned rank)
{
    const char *host = rails_host(table, rank);
    json_int_t count = json_integer_value(json_object_get(row->blame, host));

    (void)json_object_set_new_nocheck(row->blame, host, json_integer(count + 1));
}

/* A token that went astray speaks against both of its ends. */
static void rails_blame(const struct rails_table *table, struct rails_join *row,
                        const struct fabric_rail_report *report, unsigned rank)
{
    unsigned size = shk_job_size(table->job);

    if (report->blamed > 0 && report->blamed <= size) {
        rails_blame_rank(table, row, report->blamed - 1);
        return;
    }
    if ((report->sides & 1U) != 0) {
        rails_blame_rank(table, row, rank);
        rails_blame_rank(table, row, (rank + 1) % size);
    }
    if ((report->sides & 2U) != 0) {
        rails_blame_rank(table, row, rank);
        rails_blame_rank(table, row, (rank + size - 1) % size);
    }
}

static void rails_collect(struct rails_table *table)
{
    for (unsigned rank = 0; rank < shk_job_size(table->job); rank++) {
        const struct fabric_result *result = shk_job_result(table->job, rank);
        uint32_t count =
            result->rails.count < FABRIC_REPORTS ? result->rails.count : FABRIC_REPORTS;

        for (uint32_t i = 0; i < count; i++) {
            const struct fabric_rail_report *report = &result->rails.row[i];
            struct rails_join *row = rails_sane(report) ? rails_row(table, report, rank) : NULL;

            if (row && report->witness != 0)
                rails_blame(table, row, report, rank);
        }
    }
}

static json_t *rails_blame_json(json_t *blame)
{
    json_t *hosts = json_array();
    const char *host = NULL;
    json_t *count = NULL;

    json_object_foreach(blame, host, count)
    {
        (void)json_array_append_new(
            hosts,
            json_pack("{s:o, s:O}", "host", shk_json_text(host, strlen(host)), "tokens", count));
    }
    return hosts;
}

static json_t *rails_text(const char *text)
{
    return *text != '\0' ? shk_json_text(text, strlen(text)) : json_null();
}

static json_t *rails_row_json(const struct rails_table *table, const struct rails_join *row)
{
    const struct fabric_rail_report *report = row->report;
    json_t *object =
        json_pack("{s:o, s:o, s:o, s:s, s:o}", "domain", rails_text(report->domain), "fabric",
                  rails_text(report->fabric), "pci", rails_text(report->pci), "status",
                  rails_status_names[report->status], "reason", rails_text(report->reason));

    if (!object)
        return NULL;
    if (report->status != FABRIC_RAIL_USED || report->bandwidth > 0) {
        (void)json_object_set_new(object, "rank", json_integer(table->result->ranks[row->rank].id));
        (void)json_object_set_new(object, "host", rails_text(rails_host(table, row->rank)));
    }
    if (report->status == FABRIC_RAIL_USED && report->bandwidth > 0)
        (void)json_object_set_new(object, "bandwidth", json_real(report->bandwidth));
    if (report->status == FABRIC_RAIL_DEAD || report->status == FABRIC_RAIL_MISSING)
        (void)json_object_set_new(object, "blame", rails_blame_json(row->blame));
    return object;
}

json_t *fabric_rails_json(const struct shk_job *job, const struct shk_crew_result *result)
{
    struct rails_table *table = calloc(1, sizeof *table);
    json_t *rows = json_array();

    if (!table) {
        json_decref(rows);
        return NULL;
    }
    table->job = job;
    table->result = result;
    (void)gethostname(table->here, sizeof table->here - 1);
    rails_collect(table);
    for (unsigned i = 0; i < table->count && rows != NULL; i++) {
        if (json_array_append_new(rows, rails_row_json(table, &table->rows[i])) != 0) {
            json_decref(rows);
            rows = NULL;
        }
    }
    for (unsigned i = 0; i < table->count; i++)
        json_decref(table->rows[i].blame);
    free(table);
    return rows;
}

/* "2 rails side by side: r0 1.20 GB/s alone, r1 1.18 GB/s alone"; and a line for each other. */
void fabric_rails_evidence(const json_t *rows, void (*line)(json_t *lines, const char *text),
                           json_t *lines)
{
    struct shk_strbuf used = SHK_STRBUF_INIT;
    unsigned count = 0;
    json_t *row = NULL;
    size_t i = 0;

    json_array_foreach(rows, i, row)
    {
        const char *domain = json_string_value(json_object_get(row, "domain"));
        const char *status = json_string_value(json_object_get(row, "status"));
        const char *reason = json_string_value(json_object_get(row, "reason"));
        double bandwidth = json_number_value(json_object_get(row, "bandwidth"));
        char text[320];

        if (!domain || !status)
            continue;
        if (strcmp(status, "used") != 0) {
            snprintf(text, sizeof text, "device %s %s: %s", domain, status, reason ? reason : "");
            line(lines, text);
            continue;
        }
        shk_strbuf_printf(&used, "%s%s", count++ > 0 ? ", " : "", domain);
        if (bandwidth > 0)
            shk_strbuf_printf(&used, " %.2f GB/s alone", bandwidth);
    }
    if (count > 1 && !used.failed) {
        char text[768];

        snprintf(text, sizeof text, "devices side by side: %s", shk_strbuf_text(&used));
        line(lines, text);
    }
    shk_strbuf_free(&used);
}
