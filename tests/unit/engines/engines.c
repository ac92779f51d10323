#include "engines.h"

#include "cli/logpatterns.h"
#include "core/text/strbuf.h"
#include "probes/log/logscan_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool pair_possible(void)
{
    const struct shk_log_engine *vectorscan = shk_log_engine_vectorscan();
    if (vectorscan && vectorscan->runs_here())
        return true;
    cr_skip_test("PCRE2 is the only engine here: there is nothing to hold it against");
    return false;
}

static int side_set(struct pair_side *side, const struct shk_log_pattern *patterns, size_t count,
                    bool wide, struct shk_error *err)
{
    bool builtin = shk_logscan_digest(patterns, count) == shk_log_builtin.patterns;
    const char *data = wide ? shk_log_builtin.wide : shk_log_builtin.data;
    size_t size = wide ? shk_log_builtin.wide_size : shk_log_builtin.size;
    if (builtin && data && !side->engine->load(data, size, &side->set))
        return 0;
    return shk_logscan_build(side->engine, patterns, count, wide ? SHK_LOG_WIDE : SHK_LOG_EXACT,
                             SHK_LOG_THIS_PROCESSOR, &side->set, err);
}

int pair_open(struct pair *pair, const struct shk_log_pattern *patterns, size_t count, bool wide)
{
    struct shk_error errs[2] = {{""}, {""}};
    int rcs[2];
    memset(pair, 0, sizeof *pair);
    pair->every = calloc(count + 1, sizeof *pair->every);
    for (size_t i = 0; i < count; i++)
        pair->every[i] = patterns[i].texts && patterns[i].pattern && !wide;
    pair->sides[0].engine = shk_log_engine_vectorscan();
    pair->sides[1].engine = shk_log_engine_pcre2();
    for (size_t i = 0; i < 2; i++) {
        struct pair_side *side = &pair->sides[i];
        side->every = pair->every;
        rcs[i] = side_set(side, patterns, count, wide, &errs[i]);
        if (!rcs[i] && side->set)
            cr_assert_eq(side->engine->scratch(side->set, &side->scratch), 0);
    }
    bool never = strstr(errs[0].text, "Pattern can never match");
    cr_expect(rcs[0] == rcs[1] || never, "%s: Vectorscan: %d %s; PCRE2: %d %s", patterns[0].pattern,
              rcs[0], errs[0].text, rcs[1], errs[1].text);
    return rcs[1];
}

void pair_close(struct pair *pair)
{
    for (size_t i = 0; i < 2; i++) {
        struct pair_side *side = &pair->sides[i];
        if (side->scratch)
            side->engine->scratch_destroy(side->scratch);
        if (side->set)
            side->engine->destroy(side->set);
    }
    free(pair->every);
}

static int side_told(void *arg, unsigned id, size_t to)
{
    struct pair_side *side = arg;
    size_t at = 0;
    to = side->every[id] ? to : 0;
    while (at < side->count &&
           (side->matches[at].id < id || (side->matches[at].id == id && side->matches[at].to < to)))
        at++;
    if (at < side->count && side->matches[at].id == id && side->matches[at].to == to)
        return 0;
    cr_assert(side->count < PAIR_MATCHES);
    memmove(side->matches + at + 1, side->matches + at, (side->count - at) * sizeof *side->matches);
    side->matches[at].id = id;
    side->matches[at].to = to;
    side->count++;
    return 0;
}

static char *side_text(const struct pair_side *side)
{
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    for (size_t i = 0; i < side->count; i++)
        shk_strbuf_printf(&sb, " %u:%zu", side->matches[i].id, side->matches[i].to);
    return shk_strbuf_take(&sb);
}

/* Has the first side told something that the other has not? */
static bool side_more(const struct pair_side *a, const struct pair_side *b)
{
    size_t k = 0;
    for (size_t i = 0; i < a->count; i++) {
        while (k < b->count &&
               (b->matches[k].id != a->matches[i].id || b->matches[k].to != a->matches[i].to))
            k++;
        if (k == b->count)
            return true;
    }
    return false;
}

static void pair_judge(struct pair *pair, const char *name, const char *line, size_t len)
{
    bool more = side_more(&pair->sides[0], &pair->sides[1]),
         less = side_more(&pair->sides[1], &pair->sides[0]);
    pair->missed += less;
    if (!more && (!less || pair->one_way))
        return;
    char *found[2] = {side_text(&pair->sides[0]), side_text(&pair->sides[1])};
    cr_assert_fail("%s: Vectorscan found%s, PCRE2%s in \"%.*s\"", name, found[0], found[1],
                   (int)len, line);
}

static void pair_line(struct pair *pair, const char *name, const char *line, size_t len)
{
    for (size_t i = 0; i < 2; i++) {
        struct pair_side *side = &pair->sides[i];
        int rc = 0;
        side->count = 0;
        if (side->set)
            rc = side->engine->search(side->set, side->scratch, line, len, side_told, side);
        if (rc)
            cr_assert_fail("%s: %s: %d for \"%.*s\"", name, side->engine->name, rc, (int)len, line);
    }
    pair_judge(pair, name, line, len);
    pair->lines++;
    pair->matches += pair->sides[1].count;
}

void pair_text(struct pair *pair, const char *name, const char *text, size_t len)
{
    for (size_t at = 0, line; at < len; at += line + 1) {
        const char *stop = memchr(text + at, '\n', len - at);
        line = stop ? (size_t)(stop - text) - at : len - at;
        bool cr = line && text[at + line - 1] == '\r';
        pair_line(pair, name, text + at, line - cr);
    }
}
