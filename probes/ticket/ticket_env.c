/* Variables: what `env`, `printenv`, `set`, `export -p` print, assignments in scripts, Dockerfiles,
 * manifests, and options of launchers that pass variables on. */
#include "probes/base/probe.h"
#include "probes/ticket/ticket_private.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { NAME_MAX_LEN = 128, VALUE_MAX = 8192, WHOLE_LINES = 8 };

struct assignment {
    char name[NAME_MAX_LEN];
    char value[VALUE_MAX];
    bool shell;  /* quotes and $ are those of a shell, and not part of the value */
    bool spaces; /* behind the value stands more */
};

static size_t name_length(const char *p)
{
    size_t len = 0;
    while (isalnum((unsigned char)p[len]) || p[len] == '_')
        len++;
    return isdigit((unsigned char)*p) || len >= NAME_MAX_LEN ? 0 : len;
}

/* The word or quoted text at p, as a shell reads it; NULL: its value is not known ($, `). */
static const char *shell_word(char *out, size_t size, const char *p)
{
    char quote = '\0';
    size_t len = 0;
    for (; *p && (quote || (!isspace((unsigned char)*p) && *p != ';')); p++) {
        if (!quote && (*p == '"' || *p == '\''))
            quote = *p;
        else if (quote && *p == quote)
            quote = '\0';
        else if ((*p == '$' || *p == '`') && quote != '\'')
            return NULL;
        else if (len + 1 < size)
            out[len++] = *p;
    }
    out[len] = '\0';
    return quote ? NULL : p;
}

/* "export ", "declare -x ", "setenv ", …; the text behind it, NULL: none of them. */
static const char *keyword(const char *p, bool *setenv_p)
{
    static const char *const all[] = {"export ",  "declare -x ", "typeset -x ", "ENV ",
                                      "set -gx ", "setenv ",     "os.putenv("};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const char *behind = ticket_after(p, all[i]);
        if (behind) {
            *setenv_p = i == 4 || i == 5;
            return ticket_skip(behind);
        }
    }
    return NULL;
}

/* NAME=VALUE at p; behind it, NULL: it is none. */
static const char *assignment_at(struct assignment *a, const char *p, bool shell)
{
    size_t len = name_length(p);
    if (!len || p[len] != '=')
        return NULL;
    memcpy(a->name, p, len);
    a->name[len] = '\0';
    p += len + 1;
    a->shell = shell;
    if (shell)
        return shell_word(a->value, sizeof a->value, p);
    size_t end = strlen(p);
    snprintf(a->value, sizeof a->value, "%s", p);
    return p + end;
}

static bool is_bare(const char *line)
{
    size_t len = name_length(line);
    return len && line[len] == '=';
}

static void put_variable(struct ticket_out *out, const char *name, const char *value)
{
    char key[NAME_MAX_LEN + 8];
    struct shk_fact fact;
    if (!out->names)
        return;
    int rc = shk_probe_env_fact(out->facts, out->names, name, value, out->source);
    if (rc == -ENOMEM)
        out->rc = rc;
    snprintf(key, sizeof key, "env.%s", name);
    out->wrote += !rc && shk_facts_get(out->facts, key, &fact);
}

/* Assignments in front of a command, as many as there are; what stands behind them. */
static const char *leading(struct ticket_out *out, const char *p)
{
    struct assignment a;
    const char *behind;
    while (is_bare(p) && (behind = assignment_at(&a, p, true)) != NULL) {
        put_variable(out, a.name, a.value);
        p = ticket_skip(behind);
        if (*p == ';')
            return ticket_skip(p + 1);
    }
    return p;
}

/* "-x NAME=VALUE", "--env NAME=VALUE", "--export=ALL,NAME=VALUE", "-genv NAME VALUE". */
static void passed_on(struct ticket_out *out, const char *p)
{
    static const char *const options[] = {
        " -x ", " -e ", " --env ", " --env=", " -env ", " --export=", " -genv ", " --export "};
    struct assignment a = {.name = ""};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        for (const char *at = strstr(p, options[i]); at; at = strstr(at, options[i])) {
            at += strlen(options[i]);
            const char *word = at + strspn(at, "\"'");
            while (assignment_at(&a, word, true) || ticket_after(word, "ALL,")) {
                char *comma = strstr(options[i], "export") ? strchr(a.value, ',') : NULL;
                const char *next = strchr(word, ',');
                if (comma)
                    *comma = '\0';
                if (!ticket_after(word, "ALL,"))
                    put_variable(out, a.name, a.value);
                if (!strstr(options[i], "export") || !next)
                    break;
                word = next + 1;
            }
            at--;
        }
}

/* The whole number behind an option, as "--nnodes 2" or "--nnodes=2". */
static bool option_number(const char *command, const char *option, long long *value_p)
{
    const char *at = strstr(command, option);
    if (!at || (at != command && at[-1] != ' '))
        return false;
    at += strlen(option);
    return (*at == ' ' || *at == '=') && ticket_long(ticket_skip(at + 1), value_p) &&
           *value_p > 0 && *value_p < 1000000;
}

static void sizes_of_job(struct ticket_out *out, const char *command)
{
    static const struct {
        const char *option, *key;
    } options[] = {{"--nnodes", "job.nodes"},
                   {"--nproc_per_node", "job.local_ranks"},
                   {"--nproc-per-node", "job.local_ranks"},
                   {"--num_machines", "job.nodes"},
                   {"--num_nodes", "job.nodes"}};
    long long value;
    if (strstr(command, "srun ") || strstr(command, "salloc ") || strstr(command, "#SBATCH "))
        if (option_number(command, "-N", &value) || option_number(command, "--nodes", &value))
            ticket_put_int(out, "job.nodes", value, NULL);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (option_number(command, options[i].option, &value))
            ticket_put_int(out, options[i].key, value, NULL);
}

void ticket_env_command(struct ticket_out *out, const char *command)
{
    bool split = false;
    const char *p = keyword(command, &split);
    if (p && !split) {
        leading(out, p);
        return;
    }
    passed_on(out, leading(out, command));
    sizes_of_job(out, command);
}

static bool is_launch(const char *p)
{
    static const char *const all[] = {
        "torchrun ", "python ",     "python3 ",    "mpirun ",    "mpiexec ",
        "srun ",     "docker run ", "podman run ", "deepspeed ", "accelerate launch ",
        "#SBATCH ",  "vllm ",       "salloc ",     "sbatch ",    "-x ",
        "-e ",       "--env "};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (ticket_after(p, all[i]))
            return true;
    return false;
}

/* "- name: NCCL_DEBUG" with "value: INFO" below it, of a manifest. */
static const char *manifest_name(const char *p)
{
    const char *name = ticket_after(p, "- name: ");
    size_t len = name ? name_length(name) : 0;
    return len && isupper((unsigned char)*name) && !*ticket_skip(name + len) ? name : NULL;
}

static bool env_starts(char *const *lines, size_t left)
{
    bool split;
    const char *p = ticket_skip(lines[0]);
    (void)left;
    return is_bare(p) || keyword(p, &split) || is_launch(p) || manifest_name(p);
}

/* Lines in a row around lines[0] that are assignments: is it what `env` prints, and all of it? */
static bool is_whole(const struct ticket_block *block)
{
    static const char *const marks[] = {"PATH=", "HOME=", "PWD=", "SHLVL="};
    size_t first = 0, last = 1, found = 0;
    while (first < block->before && is_bare(*(block->lines - first - 1)))
        first++;
    while (last < block->count && is_bare(block->lines[last]))
        last++;
    for (size_t i = 0; i < first + last; i++) {
        const char *line = (block->lines - first)[i];
        for (size_t m = 0; m < sizeof marks / sizeof *marks; m++)
            found += ticket_after(line, marks[m]) != NULL && !strchr(line, '$');
    }
    return !block->part && first + last >= WHOLE_LINES && found >= 2;
}

static void say_whole(struct ticket_out *out)
{
    struct shk_fact fact;
    if (!out->names || shk_facts_get(out->facts, "probe.env.status", &fact))
        return;
    if (shk_probe_env_looked_for(out->facts, out->names, out->source) == -ENOMEM ||
        shk_facts_text(out->facts, "probe.env.status", "ok", out->source) == -ENOMEM)
        out->rc = -ENOMEM;
}

static bool printed_by_env(const struct ticket_block *block)
{
    const char *c = block->command;
    return c && (ticket_after(c, "env") || ticket_after(c, "printenv") || ticket_after(c, "set"));
}

/* A line that is nothing but NAME=…: of env, of a script, or in front of a command. */
static void read_bare(struct ticket_out *out, const struct ticket_block *block, const char *line)
{
    struct assignment a;
    bool before = block->before && is_bare(block->lines[-1]);
    bool after = block->count > 1 && is_bare(block->lines[1]);
    const char *value = strchr(line, '=') + 1;
    bool blank = strpbrk(value, " \t") != NULL;
    if (printed_by_env(block) || ((before || after) && is_whole(block))) {
        if (assignment_at(&a, line, false))
            put_variable(out, a.name, a.value);
        if (ticket_after(line, "PATH=") && is_whole(block))
            say_whole(out);
        return;
    }
    const char *behind = assignment_at(&a, line, true);
    if (!behind)
        return;
    behind = ticket_skip(behind);
    if (*behind && !is_bare(behind) && !is_launch(behind) && *behind != '#' && *behind != ';' &&
        *behind != '\\' && *behind != '.' && *behind != '/')
        return; /* a sentence, or a line of a log */
    if (!*behind || !blank)
        put_variable(out, a.name, a.value);
    else
        ticket_env_command(out, line);
}

static void read_manifest(struct ticket_out *out, const struct ticket_block *block,
                          const char *name)
{
    char copy[NAME_MAX_LEN], value[VALUE_MAX];
    const char *p = block->count > 1 ? ticket_after(ticket_skip(block->lines[1]), "value:") : NULL;
    if (!p || !shell_word(value, sizeof value, ticket_skip(p)))
        return;
    snprintf(copy, sizeof copy, "%.*s", (int)name_length(name), name);
    put_variable(out, copy, value);
}

static void env_read(struct ticket_out *out, const struct ticket_block *block)
{
    struct assignment a;
    bool split = false;
    const char *p = ticket_skip(block->lines[0]), *behind = keyword(p, &split), *name;
    if (behind && !split) {
        leading(out, behind);
    } else if (behind) {
        size_t len = name_length(behind);
        snprintf(a.name, sizeof a.name, "%.*s", (int)len, behind);
        if (len && (behind[len] == ' ' || behind[len] == '\t') &&
            shell_word(a.value, sizeof a.value, ticket_skip(behind + len)))
            put_variable(out, a.name, a.value);
    } else if ((name = manifest_name(p)) != NULL) {
        read_manifest(out, block, name);
    } else if (is_bare(p)) {
        read_bare(out, block, p);
    } else {
        char line[VALUE_MAX];
        snprintf(line, sizeof line, " %s", p);
        passed_on(out, line);
        sizes_of_job(out, p);
    }
}

const struct ticket_reader ticket_reader_env = {
    .name = "variables", .starts = env_starts, .read = env_read, .single = true};
