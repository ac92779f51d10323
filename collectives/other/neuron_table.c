#include "collectives/other/neuron.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS_MAX 32

struct table {
    unsigned ranks;
    size_t columns, count, type, time; /* positions, once there is a head */
    bool head, end;
    bool unread; /* a row cannot be read */
    json_t *rows;
    char bad[200];  /* the first line that reports a fault */
    char last[200]; /* the last line of text that is not the table's */
};

/* How nccom-test words a failed --check is not documented: any likely word for it counts. */
static bool says_wrong(const char *line)
{
    static const char *const words[] = {"mismatch",     "incorrect",           "not match",
                                        "check failed", "verification failed", "wrong result"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcasestr(line, words[i]))
            return true;
    }
    return false;
}

static bool says_fault(const char *line)
{
    return strcasestr(line, "failure") || strcasestr(line, "errors found") ||
           strcasestr(line, "test failed");
}

static size_t split(char *line, char **words)
{
    char *rest = NULL;
    char *word = strtok_r(line, " \t", &rest);
    size_t n = 0;

    for (; word && n < COLUMNS_MAX; word = strtok_r(NULL, " \t", &rest))
        words[n++] = word;
    return n;
}

static bool table_head(struct table *table, char **words, size_t n)
{
    if (n < 4 || strcmp(words[0], "size(B)") != 0)
        return false;
    table->columns = n;
    table->count = table->type = table->time = 0;
    for (size_t i = n; i-- > 1;) {
        if (strncmp(words[i], "time", 4) == 0)
            table->time = i;
        else if (strcmp(words[i], "type") == 0)
            table->type = i;
        else if (strncmp(words[i], "count(", 6) == 0)
            table->count = i;
    }
    table->head = table->time != 0 && table->type != 0 && table->count != 0;
    return table->head;
}

static bool number(const char *text, double *value_p)
{
    char *end = NULL;

    *value_p = strtod(text, &end);
    return end != text && *end == '\0' && *value_p >= 0 && *value_p < 1e18;
}

static bool table_row(struct table *table, char **words, size_t n)
{
    double bytes = 0;
    double count = 0;
    double time_us = 0;
    double algbw = 0;

    if (!table->head || n != table->columns || !number(words[0], &bytes) ||
        !number(words[table->count], &count) || !number(words[table->time], &time_us) ||
        bytes < 1 || time_us <= 0) {
        return false;
    }
    algbw = bytes / time_us / 1e3;
    return json_array_append_new(
               table->rows,
               json_pack("{s:I, s:I, s:s, s:s, s:s, s:f, s:f, s:f}", "bytes", (json_int_t)bytes,
                         "count", (json_int_t)count, "type",
                         strcmp(words[table->type], "fp32") == 0 ? "float32" : words[table->type],
                         "redop", "sum", "algorithm", "nccom-test", "time_us", time_us, "algbw",
                         algbw, "busbw", algbw * 2 * (table->ranks - 1) / table->ranks)) == 0;
}

static void table_line(struct table *table, char *line)
{
    char copy[200];
    char *words[COLUMNS_MAX];
    double bytes = 0;
    bool row = false;
    size_t n = 0;

    line += strspn(line, " \t");
    snprintf(copy, sizeof copy, "%s", line);
    n = split(line, words);
    if (n == 0 || table_head(table, words, n) || table_row(table, words, n))
        return;
    if (strncmp(copy, "Avg bus bandwidth", 17) == 0) {
        table->end = true;
        return;
    }
    row = table->head && number(words[0], &bytes);
    /* The first fault is the one to show, but a wrong result is worse than any. */
    if (says_wrong(copy) && !says_wrong(table->bad))
        memcpy(table->bad, copy, sizeof copy);
    else if (table->bad[0] == '\0' && (row || says_fault(copy)))
        memcpy(table->bad, copy, sizeof copy);
    table->unread |= row;
    memcpy(table->last, copy, sizeof copy);
}

static const char *table_judge(const struct table *table, int exit_code, struct shk_error *why)
{
    const char *said = table->bad[0] != '\0' ? table->bad : table->last;
    size_t rows = json_array_size(table->rows);

    if (exit_code != 0 || says_fault(table->bad)) {
        shk_error_set(why, EIO, "nccom-test ended with code %d%s%s", exit_code,
                      said[0] != '\0' ? ": " : " and said nothing", said);
        return says_wrong(table->bad) ? "wrong" : "failed";
    }
    if (says_wrong(table->bad)) {
        shk_error_set(why, EIO, "nccom-test: %s", table->bad);
        return "wrong";
    }
    if (table->unread) {
        shk_error_set(why, EIO, "a row of nccom-test's table cannot be read: %s", table->bad);
        return "failed";
    }
    if (rows == 0) {
        shk_error_set(why, EIO, "nccom-test printed no table that can be read%s%s",
                      said[0] != '\0' ? ": " : "", said);
        return "failed";
    }
    if (!table->end) {
        shk_error_set(why, EIO, "nccom-test's table has no end: %zu sizes, no average", rows);
        return "failed";
    }
    return "ok";
}

json_t *shk_neuron_table(char *output, int exit_code, unsigned ranks, const char **status_p,
                         struct shk_error *why)
{
    struct table table = {.ranks = ranks, .rows = json_array()};
    char *rest = NULL;
    char *line = strtok_r(output, "\r\n", &rest);
    json_t *row = NULL;
    size_t i = 0;

    *status_p = "failed";
    if (!table.rows) {
        shk_error_set(why, ENOMEM, "out of memory");
        return NULL;
    }
    for (; line; line = strtok_r(NULL, "\r\n", &rest))
        table_line(&table, line);
    *status_p = table_judge(&table, exit_code, why);
    json_array_foreach(table.rows, i, row)
    {
        /* It was told to check, and it found nothing. */
        if (strcmp(*status_p, "ok") == 0)
            json_object_set_new(row, "wrong", json_integer(0));
    }
    return table.rows;
}
