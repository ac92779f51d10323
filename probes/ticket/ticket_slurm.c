/* Slurm: scontrol show job, scontrol show node, sinfo. */
#include "probes/ticket/ticket_private.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { WORD = 256, COLUMNS = 16 };

static bool is_job(const char *line)
{
    const char *p = ticket_after(line, "JobId=");
    return p && isdigit((unsigned char)*p) && (strstr(p, " JobName=") || strstr(p, " ArrayJobId="));
}

static bool job_starts(char *const *lines, size_t left)
{
    (void)left;
    return is_job(lines[0]);
}

/* The word behind "Name=". */
static bool word_of(const char *line, const char *name, char *out, size_t size)
{
    for (const char *p = strstr(line, name); p; p = strstr(p + 1, name))
        if (p == line || p[-1] == ' ')
            return ticket_word(out, size, p + strlen(name), "") > 0 && strcmp(out, "(null)") != 0;
    return false;
}

static void job_line(struct ticket_out *out, const char *line)
{
    static const struct {
        const char *name, *key;
        bool number;
    } rows[] = {{"JobId=", "job.slurm.job_id", true},
                {"NumNodes=", "job.nodes", true},
                {"NumTasks=", "job.ranks", true},
                {"CPUs/Task=", "job.slurm.cpus_per_task", true},
                {"Partition=", "job.slurm.partition", false},
                {"NodeList=", "job.slurm.nodelist", false},
                {"JobState=", "job.slurm.state", false},
                {"Reason=", "job.slurm.reason", false},
                {"Network=", "job.slurm.network", false}};
    char word[WORD];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        long long number;
        if (!word_of(line, rows[i].name, word, sizeof word))
            continue;
        if (!rows[i].number && strcmp(word, "None") != 0)
            ticket_put_text(out, rows[i].key, word);
        else if (rows[i].number && ticket_long(word, &number) && number > 0)
            ticket_put_int(out, rows[i].key, number, NULL);
    }
}

static void job_read(struct ticket_out *out, const struct ticket_block *block)
{
    size_t jobs = 0;
    for (size_t i = 0; i < block->count; i++)
        jobs += is_job(block->lines[i]);
    if (jobs > 1) {
        out->note = "several jobs, left out";
        return;
    }
    for (size_t i = 0; jobs && i < block->count; i++)
        job_line(out, block->lines[i]);
    if (out->wrote)
        ticket_put_text(out, "job.scheduler", "slurm");
}

const struct ticket_reader ticket_reader_scontrol = {.name = "scontrol show job",
                                                     .commands = "scontrol show job",
                                                     .starts = job_starts,
                                                     .read = job_read};

static bool node_starts(char *const *lines, size_t left)
{
    const char *p = ticket_after(lines[0], "NodeName=");
    if (!p || !*p || *p == ' ')
        return false;
    for (size_t i = 0; i < left && i < 3; i++)
        if (strstr(lines[i], "CoresPerSocket=") || strstr(lines[i], "CPUAlloc="))
            return true;
    return false;
}

static void node_member(struct ticket_out *out, json_t *node, const char *line)
{
    static const struct {
        const char *name, *member;
    } rows[] = {{"State=", "state"}, {"Gres=", "gres"}, {"Version=", "slurm"}};
    char word[WORD];
    const char *reason = ticket_after(ticket_skip(line), "Reason=");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (word_of(line, rows[i].name, word, sizeof word))
            ticket_member(out, node, rows[i].member, ticket_text(word, strlen(word)));
    if (reason) {
        const char *who = strstr(reason, " [");
        ticket_member(out, node, "reason",
                      ticket_text(reason, who ? (size_t)(who - reason) : strlen(reason)));
    }
}

static void node_read(struct ticket_out *out, const struct ticket_block *block)
{
    json_t *node = NULL;
    char name[WORD];
    for (size_t i = 0; i < block->count; i++) {
        const char *line = block->lines[i];
        if (ticket_after(line, "NodeName=") && word_of(line, "NodeName=", name, sizeof name))
            node = ticket_device(out, "slurm.nodes", "name", ticket_text(name, strlen(name)));
        if (node)
            node_member(out, node, line);
    }
}

const struct ticket_reader ticket_reader_scontrol_node = {.name = "scontrol show node",
                                                          .commands = "scontrol show node|"
                                                                      "scontrol show nodes",
                                                          .starts = node_starts,
                                                          .read = node_read,
                                                          .names_its_own = true};

struct columns {
    char names[COLUMNS][24];
    size_t count;
    size_t nodes, state, reason; /* COLUMNS: not there */
};

/* "PARTITION AVAIL TIMELIMIT NODES STATE NODELIST" */
static bool sinfo_head(struct columns *c, const char *line)
{
    const char *p = ticket_skip(line);
    *c = (struct columns){.nodes = COLUMNS, .state = COLUMNS, .reason = COLUMNS};
    for (size_t len; *p && c->count < COLUMNS; p = ticket_skip(p + len)) {
        char *name = c->names[c->count];
        len = ticket_word(name, sizeof c->names[0], p, "");
        if (strcmp(name, "NODELIST") == 0)
            c->nodes = c->count;
        else if (strcmp(name, "STATE") == 0)
            c->state = c->count;
        else if (strcmp(name, "REASON") == 0)
            c->reason = c->count;
        c->count++;
    }
    return c->nodes < COLUMNS && c->count >= 3 && (c->state < COLUMNS || c->reason < COLUMNS) &&
           !(c->state < COLUMNS && strstr(line, "JOBID"));
}

static bool sinfo_starts(char *const *lines, size_t left)
{
    struct columns c;
    (void)left;
    return (ticket_after(lines[0], "PARTITION") || ticket_after(lines[0], "NODELIST") ||
            ticket_after(lines[0], "REASON")) &&
           sinfo_head(&c, lines[0]);
}

/* Where the columns of a row begin; a reason in front or at the end has blanks of its own. */
static size_t sinfo_cut(const struct columns *c, const char *line, const char *at[COLUMNS])
{
    const char *words[4 * COLUMNS];
    size_t count = 0;
    for (const char *p = ticket_skip(line); *p && count < 4 * COLUMNS;
         p = ticket_skip(p + strcspn(p, " \t")))
        words[count++] = p;
    if (count < c->count)
        return 0;
    size_t extra = c->reason == 0 ? count - c->count : 0;
    for (size_t i = 0; i < c->count; i++)
        at[i] = words[i ? i + extra : 0];
    bool rest = count == c->count || c->reason == 0 || c->reason == c->count - 1;
    return rest ? c->count : 0;
}

static void sinfo_row(struct ticket_out *out, const struct columns *c, const char *line)
{
    const char *at[COLUMNS];
    char word[WORD];
    if (!sinfo_cut(c, line, at) || !ticket_word(word, sizeof word, at[c->nodes], ""))
        return;
    if (!isalpha((unsigned char)*word))
        return;
    json_t *node = ticket_device(out, "slurm.sinfo", "name", ticket_text(word, strlen(word)));
    if (!node)
        return;
    if (c->state < COLUMNS && ticket_word(word, sizeof word, at[c->state], ""))
        ticket_member(out, node, "state", ticket_text(word, strlen(word)));
    if (c->reason == COLUMNS || ticket_after(at[c->reason], "none"))
        return;
    const char *end = c->reason == 0 ? at[1] : at[c->reason] + strlen(at[c->reason]);
    ticket_member(out, node, "reason", ticket_text(at[c->reason], (size_t)(end - at[c->reason])));
}

static void sinfo_read(struct ticket_out *out, const struct ticket_block *block)
{
    struct columns c = {.count = 0};
    size_t i = 0;
    while (i < block->count && !sinfo_head(&c, block->lines[i]))
        i++;
    for (i++; i < block->count && *ticket_skip(block->lines[i]); i++)
        sinfo_row(out, &c, block->lines[i]);
}

const struct ticket_reader ticket_reader_sinfo = {.name = "sinfo",
                                                  .commands = "sinfo",
                                                  .starts = sinfo_starts,
                                                  .read = sinfo_read,
                                                  .names_its_own = true};
