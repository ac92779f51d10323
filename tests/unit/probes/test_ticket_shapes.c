/* Outputs of tools (tests/tickets/outputs) in the shapes in which they are pasted: quoted, with
 * prefixes, with other line ends, indented, cut, of two nodes. Each must come to the same facts,
 * and a piece of one to none that are not in the whole. A file begins with lines "= KEY=JSON". */
#include "core/text/strbuf.h"
#include "ticket_support.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WANTS = 8, FILES = 256 };

struct output {
    char *name, *file;
    const char *wants[WANTS], *text;
};

static struct output outputs[FILES];
static size_t output_count;

static char *whole_file(const char *path)
{
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    char buf[4096];
    size_t got;
    FILE *in = fopen(path, "r");
    cr_assert_not_null(in, "%s", path);
    while ((got = fread(buf, 1, sizeof buf, in)) > 0)
        shk_strbuf_add(&sb, buf, got);
    fclose(in);
    return shk_strbuf_take(&sb);
}

static void load_one(const char *folder, const char *name)
{
    char *path = shk_strf("%s/%s", folder, name);
    struct output *o = &outputs[output_count++];
    *o = (struct output){.name = shk_strf("%s", name), .file = whole_file(path)};
    char *p = o->file;
    for (size_t w = 0; w < WANTS && strncmp(p, "= ", 2) == 0; w++) {
        char *end = strchr(p, '\n');
        *end = '\0';
        o->wants[w] = p + 2;
        p = end + 1;
    }
    o->text = p + (*p == '\n');
    cr_assert(o->wants[0] && *o->text, "%s", name);
    free(path);
}

static void load(void)
{
    static const char folder[] = SHK_TESTS_DIR "/tickets/outputs";
    DIR *dir = opendir(folder);
    cr_assert_not_null(dir);
    for (struct dirent *e; (e = readdir(dir)) && output_count < FILES;)
        if (*e->d_name != '.')
            load_one(folder, e->d_name);
    closedir(dir);
    cr_assert_geq(output_count, 30);
}

static void unload(void)
{
    for (size_t i = 0; i < output_count; i++) {
        free(outputs[i].name);
        free(outputs[i].file);
    }
    output_count = 0;
}

/* Each line of the text in a fence, behind `prefix` and in front of `end`. */
static char *shaped(const char *text, const char *before, const char *prefix, const char *end)
{
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    char *fenced = shk_strf("```\n%s```", text);
    shk_strbuf_puts(&sb, before);
    for (char *p = fenced, *next; p; p = next) {
        next = strchr(p, '\n');
        if (next)
            *next++ = '\0';
        shk_strbuf_printf(&sb, "%s%s%s", prefix, p, end);
    }
    free(fenced);
    return shk_strbuf_take(&sb);
}

struct compared {
    const struct shk_facts *with;
    const char *where;
    bool parts; /* a list may be shorter */
};

static bool is_part_of(const json_t *some, const json_t *all)
{
    const char *name;
    json_t *value, *one;
    size_t i, k;
    if (json_is_array(some) && json_is_array(all)) {
        json_array_foreach(some, i, value)
        {
            bool found = false;
            json_array_foreach(all, k, one) found |= is_part_of(value, one);
            if (!found)
                return false;
        }
        return true;
    }
    if (json_is_object(some) && json_is_object(all)) {
        json_object_foreach((json_t *)some, name,
                            value) if (!is_part_of(value, json_object_get(all, name))) return false;
        return true;
    }
    return json_equal(some, all);
}

static int same(const struct shk_fact *fact, void *arg)
{
    const struct compared *c = arg;
    struct shk_fact other;
    bool known = shk_facts_get(c->with, fact->key, &other);
    if (strcmp(fact->key, "host.name") == 0)
        return 0;
    bool equal = known && (c->parts ? is_part_of(fact->value, other.value)
                                    : !fact->value || json_equal(fact->value, other.value));
    char *text = fact->value ? json_dumps(fact->value, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    cr_expect(equal, "%s: %s is %s", c->where, fact->key, text ? text : "absent");
    free(text);
    return 0;
}

static void nothing_else(const struct shk_facts *facts, const struct shk_facts *all,
                         const char *where, bool parts)
{
    struct compared c = {.with = all, .where = where, .parts = parts};
    if (facts)
        shk_facts_each(facts, "", same, &c);
}

static void wanted(const struct shk_ticket *ticket, const char *node, const struct output *o,
                   const char *shape)
{
    char *where = shk_strf("%s, %s", o->name, shape);
    for (size_t w = 0; w < WANTS && o->wants[w]; w++)
        ticket_expect(ticket_facts_of(ticket, node), o->wants[w], where);
    free(where);
}

static const struct {
    const char *what, *before, *prefix, *end, *node;
} shapes[] = {
    {"fence", "text\n\n", "", "\n", ""},
    {"CRLF", "", "", "\r\n", ""},
    {"quoted", "On Monday somebody wrote:\n", "> ", "\n", ""},
    {"quoted twice", "", "> > ", "\n", ""},
    {"quoted tight", "", ">> ", "\n", ""},
    {"quoted by HTML", "", "&gt; ", "\n", ""},
    {"in a list", "1. first\n", "   ", "\n", ""},
    {"indented", "text\n\n", "    ", "\n", ""},
    {"with times", "", "2026-11-29T15:04:05.678Z ", "\n", ""},
    {"with times in brackets", "", "[2026-11-29 15:04:05,678] ", "\n", ""},
    {"with the clock", "", "15:04:05 ", "\n", ""},
    {"of a container's runtime", "", "2026-11-29T15:04:05.678901234Z stdout F ", "\n", ""},
    {"of a rank", "", "[rank3]: ", "\n", ""},
    {"of torchrun", "", "[default3]:", "\n", ""},
    {"of mpirun", "", "[1,3]<stdout>:", "\n", ""},
    {"of srun", "", "3: ", "\n", ""},
    {"of a pod", "", "[pod/trainer-0/main] ", "\n", ""},
    {"of compose", "", "trainer-1  | ", "\n", ""},
    {"of Ray", "", "(RayWorkerWrapper pid=4711, ip=10.0.0.7) ", "\n", ""},
    {"of pdsh", "gpu07: a\ngpu07: b\n", "gpu07: ", "\n", "gpu07"},
    {"of syslog", "", "Nov 29 15:04:05 gpu07 job[4711]: ", "\n", "gpu07"},
    {"coloured", "", "\033[0;32m\033[0m", "\033[0m\n", ""},
};

Test(ticket_shapes, each_comes_to_the_same, .init = load, .fini = unload)
{
    for (size_t i = 0; i < output_count; i++) {
        const struct output *o = &outputs[i];
        struct shk_name_set *names, *other_names;
        char *base = shaped(o->text, "", "", "\n");
        struct shk_ticket *plain = ticket_of(base, &names);
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            char *text = shaped(o->text, shapes[s].before, shapes[s].prefix, shapes[s].end);
            struct shk_ticket *ticket = ticket_of(text, &other_names);
            wanted(ticket, shapes[s].node, o, shapes[s].what);
            nothing_else(ticket_facts_of(ticket, shapes[s].node), ticket_facts_of(plain, ""),
                         shapes[s].what, false);
            shk_ticket_destroy(ticket);
            shk_name_set_destroy(other_names);
            free(text);
        }
        shk_ticket_destroy(plain);
        shk_name_set_destroy(names);
        free(base);
    }
}

/* What is left when the paste is cut at its end, and when its middle is missing, is in the whole.
 */
Test(ticket_shapes, a_piece_says_nothing_else, .init = load, .fini = unload)
{
    for (size_t i = 0; i < output_count; i++) {
        const struct output *o = &outputs[i];
        struct shk_name_set *names, *other_names;
        char *base = shaped(o->text, "", "", "\n");
        struct shk_ticket *plain = ticket_of(base, &names);
        size_t len = strlen(o->text), step = len / 24 + 1;
        for (size_t at = 0; at < len; at += step) {
            if (strspn(o->text + at, " \n") || (at && o->text[at - 1] == '\n'))
                continue; /* between two lines nobody can see that something is missing */
            char *end = shk_strf("%.*s", (int)at, o->text);
            char *middle = shk_strf("%.*s\n[truncated]\n%s", (int)at, o->text,
                                    strchr(o->text + (at + len) / 2, '\n') + 1);
            for (int m = 0; m < 2; m++) {
                struct shk_ticket *ticket = ticket_of(m ? middle : end, &other_names);
                char *where = shk_strf("%s, cut at %zu, %s", o->name, at, m ? "middle" : "end");
                nothing_else(ticket_facts_of(ticket, ""), ticket_facts_of(plain, ""), where, true);
                free(where);
                shk_ticket_destroy(ticket);
                shk_name_set_destroy(other_names);
            }
            free(end);
            free(middle);
        }
        shk_ticket_destroy(plain);
        shk_name_set_destroy(names);
        free(base);
    }
}

/* One node has the output, the other one another: neither gets what is the other's. */
static const char *const headings[] = {"----------------\n%s\n----------------\n",
                                       "%s | CHANGED | rc=0 >>\n",
                                       "=== %s ===\n",
                                       "==> %s <==\n",
                                       "### %s\n",
                                       "**%s:**\n",
                                       "On %s:\n\n",
                                       "root@%s:~# hostname -f\n",
                                       "$ hostname\n%s\n"};

Test(ticket_shapes, two_nodes, .init = load, .fini = unload)
{
    static const char other[] = "max locked memory (kbytes, -l) 16\n";
    for (size_t i = 0; i < output_count; i++)
        for (size_t h = 0; h < sizeof headings / sizeof *headings; h++) {
            struct shk_name_set *names;
            struct shk_strbuf sb = SHK_STRBUF_INIT;
            for (int node = 0; node < 2; node++) {
                const char *mark = strstr(headings[h], "%s");
                shk_strbuf_printf(&sb, "%.*s%s%s```\n%s```\n", (int)(mark - headings[h]),
                                  headings[h], node ? "gpu02" : "gpu01", mark + 2,
                                  node ? other : outputs[i].text);
            }
            char *text = shk_strbuf_take(&sb);
            struct shk_ticket *ticket = ticket_of(text, &names);
            wanted(ticket, "gpu01", &outputs[i], headings[h]);
            const struct shk_facts *second = ticket_facts_of(ticket, "gpu02");
            ticket_expect(second, "limits.memlock={\"soft\":16384}", headings[h]);
            cr_expect(!second || shk_facts_count(second) <= 2, "%s: %s", outputs[i].name,
                      headings[h]);
            shk_ticket_destroy(ticket);
            shk_name_set_destroy(names);
            free(text);
        }
}
