/* What NCCL writes about a running job as JSON: the answer of `ncclras -f json`, and the log of the
 * Inspector, a line for each collective that has ended. */
#include "core/text/strbuf.h"
#include "probes/ticket/ticket_private.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

enum { RANKS_SHOWN = 4, COUNTS_MAX = 64, LINES_MAX = 8 << 20 };

static bool ras_starts(char *const *lines, size_t left)
{
    const char *p = ticket_skip(lines[0]);
    if (*p != '{')
        return false;
    for (size_t i = 0; i < left && i < 2; i++)
        if (strstr(lines[i], "\"nccl_version\""))
            return true;
    return false;
}

static const char *ras_host(const json_t *rank)
{
    const char *host = json_string_value(json_object_get(rank, "host"));
    return host ? host : "unknown";
}

/* "rank 2 (process 611 on 10.0.0.2)" */
static void ras_who(struct ticket_out *out, const json_t *rank)
{
    shk_strbuf_printf(out->lines, "rank %lld (process %lld on %s)",
                      (long long)json_integer_value(json_object_get(rank, "rank")),
                      (long long)json_integer_value(json_object_get(rank, "pid")), ras_host(rank));
}

static json_int_t ras_count(const json_t *rank, const char *operation)
{
    json_t *count = json_object_get(json_object_get(rank, "collective_counts"), operation);
    return json_is_integer(count) ? json_integer_value(count) : -1;
}

/* Counts of one operation: who has launched fewer than the rank that launched most. */
static void ras_operation(struct ticket_out *out, const json_t *ranks, const char *operation)
{
    json_int_t most = -1, least = -1;
    size_t i, shown = 0, behind = 0;
    json_t *rank;
    json_array_foreach(ranks, i, rank)
    {
        json_int_t count = ras_count(rank, operation);
        if (count < 0)
            return;
        most = count > most ? count : most;
        least = least < 0 || count < least ? count : least;
    }
    if (most == least)
        return;
    json_array_foreach(ranks, i, rank) behind += ras_count(rank, operation) < most;
    shk_strbuf_printf(out->lines,
                      "nccl-ras[counts] %s: %zu of %zu ranks have launched fewer than %lld: ",
                      operation, behind, json_array_size(ranks), (long long)most);
    json_array_foreach(ranks, i, rank)
    {
        if (ras_count(rank, operation) == most || shown == RANKS_SHOWN)
            continue;
        if (shown++)
            shk_strbuf_printf(out->lines, "; ");
        ras_who(out, rank);
        shk_strbuf_printf(out->lines, ", %lld", (long long)ras_count(rank, operation));
    }
    shk_strbuf_printf(out->lines, "%s\n", behind > shown ? "; …" : "");
}

static void ras_missing(struct ticket_out *out, const json_t *missing)
{
    size_t i;
    json_t *rank;
    json_array_foreach(missing, i, rank)
    {
        const json_t *status = json_object_get(rank, "status");
        bool dead = json_is_true(json_object_get(status, "considered_dead"));
        if (i == RANKS_SHOWN)
            break;
        shk_strbuf_printf(out->lines, "nccl-ras[%s] ", dead ? "dead" : "missing");
        ras_who(out, rank);
        shk_strbuf_printf(out->lines, dead ? " is considered dead\n" : " does not answer\n");
    }
}

static void ras_status(struct ticket_out *out, const json_t *ranks)
{
    size_t i, shown = 0;
    json_t *rank;
    json_array_foreach(ranks, i, rank)
    {
        const json_t *status = json_object_get(rank, "status");
        json_int_t error = json_integer_value(json_object_get(status, "async_error"));
        bool ended = json_is_true(json_object_get(status, "abort_flag")) ||
                     json_is_true(json_object_get(status, "destroy_flag")) ||
                     json_is_true(json_object_get(status, "finalize_called"));
        /* 7: in progress (nccl.h, ncclInProgress) */
        if ((!ended && (!error || error == 7)) || shown++ >= RANKS_SHOWN)
            continue;
        shk_strbuf_printf(out->lines, "nccl-ras[%s] ", ended ? "status" : "error");
        ras_who(out, rank);
        shk_strbuf_printf(out->lines,
                          ended ? " has ended or aborted the communicator\n" : ", error %lld\n",
                          (long long)error);
    }
}

static void ras_communicator(struct ticket_out *out, const json_t *communicator)
{
    const json_t *ranks = json_object_get(communicator, "ranks");
    const json_t *missing = json_object_get(communicator, "missing_ranks");
    const char *operation;
    json_t *count;
    size_t asked = 0;
    json_object_foreach(json_object_get(json_array_get(ranks, 0), "collective_counts"), operation,
                        count) if (asked++ < COUNTS_MAX && isalpha((unsigned char)*operation))
        ras_operation(out, ranks, operation);
    ras_missing(out, missing);
    ras_status(out, ranks);
}

static void ras_read(struct ticket_out *out, const struct ticket_block *block)
{
    json_t *doc = ticket_json(block), *communicator;
    const json_t *all = json_object_get(doc, "communicators");
    const char *version = json_string_value(json_object_get(doc, "nccl_version"));
    size_t i;
    if (!json_is_array(all)) {
        out->note = "the document is cut, left out";
        json_decref(doc);
        return;
    }
    if (version && isdigit((unsigned char)*version))
        ticket_put_text(out, "nccl.version", version);
    json_array_foreach(all, i, communicator) if (out->lines->len < LINES_MAX)
        ras_communicator(out, communicator);
    out->wrote += !out->wrote;
    json_decref(doc);
}

const struct ticket_reader ticket_reader_ncclras = {.name = "ncclras",
                                                    .commands = "ncclras -f json|ncclras --format",
                                                    .starts = ras_starts,
                                                    .read = ras_read};

static bool inspector_starts(char *const *lines, size_t left)
{
    const char *p = ticket_after(ticket_skip(lines[0]), "{\"header\":");
    (void)left;
    return p && strstr(p, "\"coll_perf\":");
}

static void inspector_read(struct ticket_out *out, const struct ticket_block *block)
{
    struct ticket_block one = *block;
    one.count = 1;
    json_t *doc = ticket_json(&one), *perf = json_object_get(doc, "coll_perf");
    const json_t *header = json_object_get(doc, "header");
    const char *id = json_string_value(json_object_get(header, "id"));
    const char *name = json_string_value(json_object_get(perf, "coll"));
    const char *host =
        json_string_value(json_object_get(json_object_get(doc, "metadata"), "hostname"));
    json_t *rank = json_object_get(header, "rank"), *ranks = json_object_get(header, "n_ranks");
    json_t *sequence = json_object_get(perf, "coll_sn");
    json_t *took = json_object_get(perf, "coll_exec_time_us");
    if (id && name && out->inspector && json_is_integer(rank) && json_is_integer(ranks) &&
        json_is_integer(sequence) && json_is_integer(took)) {
        struct shk_inspector_call call = {.communicator = id,
                                          .operation = name,
                                          .host = host ? host : "",
                                          .rank = (long)json_integer_value(rank),
                                          .ranks = (long)json_integer_value(ranks),
                                          .sequence = json_integer_value(sequence),
                                          .took_us = json_integer_value(took)};
        int rc = shk_inspector_add(out->inspector, &call);
        out->rc = rc ? rc : out->rc;
        out->wrote++;
    } else if (!doc) {
        out->note = "a line is cut, left out";
    }
    json_decref(doc);
}

const struct ticket_reader ticket_reader_inspector = {
    .name = "NCCL Inspector", .starts = inspector_starts, .read = inspector_read, .single = true};
