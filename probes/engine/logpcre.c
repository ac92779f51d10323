/* PCRE2 as an engine (logengine.h). A line is searched for the expressions one of whose rarest
 * fixed texts (logliteral.h) it has, which the first four bytes of those texts tell, and for the
 * few that have none. An expression is compiled when the first line has to be searched for it. */
#include "probes/engine/logengine.h"

#include "core/regex/regex.h"
#include "core/text/strbuf.h"
#include "probes/engine/logliteral.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BITS = 17, HEADS = 12, NONE = -1 };

static const char magic[] = "shakedown PCRE2 set 1\n";

struct expression {
    char *text;
    unsigned id;
    bool every;
    _Atomic(struct shk_regex *) regex;
};

struct literal {
    struct shk_log_literal is;
    uint32_t gram, expression;
    int32_t next; /* in the list of its head */
};

struct shk_log_set {
    struct expression *expressions;
    size_t count;
    struct literal *literals;
    size_t literal_count, literal_cap;
    uint32_t *always; /* expressions without a literal */
    size_t always_count;
    int32_t heads[1 << HEADS];
    uint64_t bits[(1 << BITS) / 64];
};

struct shk_log_scratch {
    struct shk_regex_work *work;
    uint32_t *line_of; /* by expression: the number of the line for which it was asked last */
    uint32_t line;
    uint32_t *asked; /* expressions for which this line is to be searched */
    size_t asked_count;
};

static uint32_t gram_hash(uint32_t gram)
{
    return gram * 0x9e3779b1u;
}

/* Three bytes, or four: the last one is never 0 then. */
static uint32_t gram_at(const char *text, size_t bytes)
{
    uint32_t gram = 0;
    unsigned char folded[4] = {0};
    for (size_t i = 0; i < bytes; i++)
        folded[i] = (unsigned char)shk_log_fold(text[i]);
    memcpy(&gram, folded, sizeof gram);
    return gram;
}

static void set_destroy(struct shk_log_set *set)
{
    if (!set)
        return;
    for (size_t i = 0; i < set->count; i++) {
        shk_regex_destroy(atomic_load(&set->expressions[i].regex));
        free(set->expressions[i].text);
    }
    free(set->expressions);
    free(set->literals);
    free(set->always);
    free(set);
}

static bool set_literal(struct shk_log_set *set, const struct shk_log_literal *literal, size_t i)
{
    if (set->literal_count == set->literal_cap) {
        size_t cap = set->literal_cap ? set->literal_cap * 2 : 1024;
        struct literal *more = reallocarray(set->literals, cap, sizeof *more);
        if (!more)
            return false;
        set->literals = more;
        set->literal_cap = cap;
    }
    size_t bytes = literal->len < SHK_LOG_GRAM ? literal->len : SHK_LOG_GRAM;
    uint32_t gram = gram_at(literal->text + literal->rare, bytes), hash = gram_hash(gram);
    int32_t *head = &set->heads[hash >> (32 - HEADS)];
    set->literals[set->literal_count] =
        (struct literal){.is = *literal, .gram = gram, .expression = (uint32_t)i, .next = *head};
    *head = (int32_t)set->literal_count++;
    set->bits[hash >> (32 - BITS) >> 6] |= UINT64_C(1) << (hash >> (32 - BITS) & 63);
    return true;
}

/* Takes the text, which is new memory or NULL. */
static bool set_add(struct shk_log_set *set, char *text, unsigned id, bool every)
{
    struct shk_log_literal literals[SHK_LOG_LITERALS_MAX];
    size_t i = set->count, count = text ? shk_log_literals(text, literals) : 0;
    if (!text)
        return false;
    struct expression *expression = &set->expressions[set->count++];
    expression->text = text;
    expression->id = id;
    expression->every = every;
    atomic_init(&expression->regex, NULL);
    if (!count)
        set->always[set->always_count++] = (uint32_t)i;
    for (size_t k = 0; k < count; k++)
        if (!set_literal(set, &literals[k], i))
            return false;
    return true;
}

/* Room for `count` expressions, with none yet. */
static struct shk_log_set *set_create(size_t count)
{
    struct shk_log_set *set = calloc(1, sizeof *set);
    if (!set)
        return NULL;
    memset(set->heads, 0xff, sizeof set->heads);
    set->expressions = calloc(count + 1, sizeof *set->expressions);
    set->always = calloc(count + 1, sizeof *set->always);
    if (set->expressions && set->always)
        return set;
    set_destroy(set);
    return NULL;
}

/* Is it a regular expression, of one that needs something to match? */
static int pcre_check(const char *text, struct shk_error *err)
{
    struct shk_regex *regex = NULL;
    int rc = shk_regex_create(&regex, text, err);
    if (!rc && shk_regex_matches_empty(regex))
        rc = shk_error_set(err, EINVAL, "matches a text that has nothing");
    shk_regex_destroy(regex);
    return rc;
}

static int pcre_compile(const struct shk_log_expressions *list, enum shk_log_target target,
                        struct shk_log_set **set_p, size_t *bad_p, struct shk_error *err)
{
    struct shk_log_set *set = set_create(list->count);
    int rc = set ? 0 : shk_error_sys(err, ENOMEM, "log patterns");
    (void)target;
    for (size_t i = 0; !rc && i < list->count; i++) {
        *bad_p = i;
        rc = pcre_check(list->texts[i], err);
        if (!rc && !set_add(set, strdup(list->texts[i]), list->ids[i], list->every[i]))
            rc = shk_error_sys(err, ENOMEM, "log patterns");
    }
    if (rc) {
        set_destroy(set);
        set = NULL;
    }
    *set_p = set;
    return rc;
}

/* What is saved are the expressions: `id every text`, each ends in 0. */
static int pcre_save(const struct shk_log_set *set, char **data_p, size_t *size_p)
{
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    shk_strbuf_printf(&sb, "%s%zu", magic, set->count);
    shk_strbuf_putc(&sb, '\0');
    for (size_t i = 0; i < set->count; i++) {
        const struct expression *expression = &set->expressions[i];
        shk_strbuf_printf(&sb, "%u %d %s", expression->id, expression->every, expression->text);
        shk_strbuf_putc(&sb, '\0');
    }
    *size_p = sb.len;
    *data_p = shk_strbuf_take(&sb);
    return *data_p ? 0 : -ENOMEM;
}

/* The next part of what was saved; NULL: there is none that ends. */
static const char *pcre_part(const char **data_p, const char *end)
{
    const char *part = *data_p, *stop = memchr(part, '\0', (size_t)(end - part));
    *data_p = stop ? stop + 1 : end;
    return stop ? part : NULL;
}

static int pcre_load(const char *data, size_t size, struct shk_log_set **set_p)
{
    const char *end = data + size, *part;
    if (size < sizeof magic || memcmp(data, magic, sizeof magic - 1) != 0)
        return -EINVAL;
    data += sizeof magic - 1;
    part = pcre_part(&data, end);
    size_t count = part ? strtoul(part, NULL, 10) : 0;
    if (!count || count > size)
        return -EINVAL;
    struct shk_log_set *set = set_create(count);
    int rc = set ? 0 : -ENOMEM;
    for (size_t i = 0; !rc && i < count; i++) {
        char *behind = NULL;
        part = pcre_part(&data, end);
        unsigned long id = part ? strtoul(part, &behind, 10) : 0;
        bool whole = part && behind[0] == ' ' && behind[1] && behind[2] == ' ';
        rc = !whole                                                             ? -EINVAL
             : set_add(set, strdup(behind + 3), (unsigned)id, behind[1] == '1') ? 0
                                                                                : -ENOMEM;
    }
    if (rc) {
        set_destroy(set);
        set = NULL;
    }
    *set_p = set;
    return rc;
}

static void pcre_scratch_destroy(struct shk_log_scratch *scratch)
{
    if (!scratch)
        return;
    shk_regex_work_destroy(scratch->work);
    free(scratch->line_of);
    free(scratch->asked);
    free(scratch);
}

static int pcre_scratch(const struct shk_log_set *set, struct shk_log_scratch **scratch_p)
{
    struct shk_log_scratch *scratch = calloc(1, sizeof *scratch);
    *scratch_p = scratch;
    if (!scratch)
        return -ENOMEM;
    scratch->work = shk_regex_work_create();
    scratch->line_of = calloc(set->count + 1, sizeof *scratch->line_of);
    scratch->asked = calloc(set->count + 1, sizeof *scratch->asked);
    if (scratch->work && scratch->line_of && scratch->asked)
        return 0;
    pcre_scratch_destroy(scratch);
    *scratch_p = NULL;
    return -ENOMEM;
}

static void ask(struct shk_log_scratch *scratch, uint32_t expression)
{
    if (scratch->line_of[expression] == scratch->line)
        return;
    scratch->line_of[expression] = scratch->line;
    scratch->asked[scratch->asked_count++] = expression;
}

/* The gram stands at this place of the line, and may be one of a literal. */
static void ask_gram(const struct shk_log_set *set, struct shk_log_scratch *scratch,
                     const char *line, size_t len, size_t at, uint32_t gram, uint32_t hash)
{
    for (int32_t i = set->heads[hash >> (32 - HEADS)]; i != NONE; i = set->literals[i].next) {
        const struct literal *literal = &set->literals[i];
        size_t rare = literal->is.rare, k = 0;
        if (literal->gram != gram || at < rare || at - rare + literal->is.len > len)
            continue;
        while (k < literal->is.len && shk_log_fold(line[at - rare + k]) == literal->is.text[k])
            k++;
        if (k == literal->is.len)
            ask(scratch, literal->expression);
    }
}

static inline bool may_ask(const struct shk_log_set *set, uint32_t hash)
{
    return set->bits[hash >> (32 - BITS) >> 6] >> (hash >> (32 - BITS) & 63) & 1;
}

static void ask_all(const struct shk_log_set *set, struct shk_log_scratch *scratch,
                    const char *line, size_t len)
{
    uint32_t fold, three;
    size_t at = 0;
    memcpy(&fold, "\x20\x20\x20\x20", sizeof fold);
    memcpy(&three, "\xff\xff\xff", sizeof three);
    for (; at + SHK_LOG_GRAM <= len; at++) {
        uint32_t gram;
        memcpy(&gram, line + at, sizeof gram);
        gram |= fold;
        uint32_t less = gram & three, hash = gram_hash(gram), less_hash = gram_hash(less);
        if (may_ask(set, hash))
            ask_gram(set, scratch, line, len, at, gram, hash);
        if (may_ask(set, less_hash))
            ask_gram(set, scratch, line, len, at, less, less_hash);
    }
    if (at + SHK_LOG_GRAM_LEAST <= len) {
        uint32_t gram = gram_at(line + at, SHK_LOG_GRAM_LEAST);
        ask_gram(set, scratch, line, len, at, gram, gram_hash(gram));
    }
}

/* The compiled expression; NULL: out of memory. */
static struct shk_regex *expression_regex(struct expression *expression)
{
    struct shk_regex *regex = atomic_load_explicit(&expression->regex, memory_order_acquire);
    struct shk_regex *was = NULL;
    if (regex || shk_regex_create(&regex, expression->text, NULL))
        return regex;
    shk_regex_speed(regex);
    if (atomic_compare_exchange_strong(&expression->regex, &was, regex))
        return regex;
    shk_regex_destroy(regex);
    return was;
}

struct pcre_tell {
    shk_log_told *told;
    void *arg;
    unsigned id;
    bool ends;
};

static int pcre_end(void *arg, size_t to)
{
    struct pcre_tell *tell = arg;
    tell->ends = tell->told(tell->arg, tell->id, to);
    return tell->ends;
}

static int pcre_search(const struct shk_log_set *set, struct shk_log_scratch *scratch,
                       const char *line, size_t len, shk_log_told *told, void *arg)
{
    struct pcre_tell tell = {.told = told, .arg = arg};
    if (!++scratch->line) {
        memset(scratch->line_of, 0, set->count * sizeof *scratch->line_of);
        scratch->line = 1;
    }
    scratch->asked_count = 0;
    ask_all(set, scratch, line, len);
    for (size_t i = 0; i < set->always_count; i++)
        ask(scratch, set->always[i]);
    for (size_t i = 0; !tell.ends && i < scratch->asked_count; i++) {
        struct expression *expression = &set->expressions[scratch->asked[i]];
        struct shk_regex *regex = expression_regex(expression);
        int rc = regex ? shk_regex_find(regex, scratch->work, line, len) : -ENOMEM;
        tell.id = expression->id;
        if (rc == 1 && expression->every)
            rc = shk_regex_ends(regex, scratch->work, line, len, pcre_end, &tell);
        else if (rc == 1)
            pcre_end(&tell, len);
        if (rc < 0)
            return -EIO;
    }
    return 0;
}

static bool pcre_runs_here(void)
{
    return true;
}

const struct shk_log_engine *shk_log_engine_pcre2(void)
{
    static const struct shk_log_engine engine = {
        .name = "PCRE2",
        .widen_from = 1 << 20,
        .runs_here = pcre_runs_here,
        .compile = pcre_compile,
        .save = pcre_save,
        .load = pcre_load,
        .destroy = set_destroy,
        .scratch = pcre_scratch,
        .scratch_destroy = pcre_scratch_destroy,
        .search = pcre_search,
    };
    return &engine;
}
