/* Where nothing is surer than a guess: which cause has most words in common with the lines that no
 * signature decides. What the catalogue says of a cause and its signatures is a full-text index
 * (core/search/search.h). What comes of it is never more than possible. */
#include "checks/cause/clue.h"
#include "checks/log/log.h"
#include "core/regex/regex.h"
#include "core/search/search.h"
#include "core/text/messages.h"
#include "core/text/strbuf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    NEAR = 15,    /* texts of the catalogue that count */
    PASTED = 100, /* lines: about what people put into a ticket, where a program's log is longer */
    LINES = 96,   /* that are looked up, at most */
    NAMED = 3,    /* causes that are named where no other one is */
    WEIGHT = 9,   /* of the first of them: below a guess of any signature */
    MOST = 49     /* below what makes a cause likely */
};

/* A mere consequence that stands first gives way where another cause has clearly more of the words:
 * the likeness of the best one is 1. */
static const double first_bonus = 0.5, each_less = 0.5;

/* What makes a cause stand out where nothing else speaks for any: the likeness of its nearest text
 * (a word or two in common are less), and how many times that of the second cause it has. In an
 * excerpt with lines that look like errors, and elsewhere, where a healthy log is to have no cause.
 */
static const struct bar {
    double least, times;
} bar_plain = {12, 1.3}, bar_doubt = {20, 2.5};

struct like {
    const char *key; /* of a cause, from the catalogue */
    double score;
    double nearest;     /* the likeness of the text that is nearest to all lines, */
    const json_t *line; /* and the line that is most like a text of this cause, */
    double line_score;  /* by so much */
};

/* What there is to explain. */
struct lines {
    struct shk_strbuf text;
    const json_t *items[LINES];
    size_t count;
    bool plain; /* what looks like an error was put into a ticket for that */
};

struct index {
    struct shk_search *search;
    const char **keys; /* by id */
    size_t count;
};

static int add_text(struct index *index, const char *key, const char *text, struct shk_error *err)
{
    index->keys[index->count] = key;
    return text && *text ? shk_search_add(index->search, index->count, text, err) : 0;
}

/* Each phrase is a text of its own: a line says one of them. */
static int add_phrases(struct index *index, const char *key, const char *phrases,
                       struct shk_error *err)
{
    int rc = 0;
    for (const char *s = phrases ? phrases : ""; *s && !rc;) {
        size_t n = strcspn(s, ",");
        char *phrase = shk_strf("%.*s", (int)n, s);
        rc = phrase ? add_text(index, key, phrase, err) : -ENOMEM;
        free(phrase);
        s += n + (s[n] != '\0');
    }
    return rc;
}

/* What a pattern says in plain letters. */
static void plain_words(struct shk_strbuf *out, const char *pattern)
{
    size_t at = shk_regex_start(pattern);
    struct shk_error ignored;
    struct shk_regex_token token;
    while (shk_regex_next(pattern, &at, &token, &ignored) == 0 && token.kind != SHK_REGEX_END)
        if (token.kind != SHK_REGEX_EDGE)
            shk_strbuf_putc(out, token.kind == SHK_REGEX_CHAR ? (char)token.c : ' ');
}

static int add_signature(struct index *index, const struct shk_signature *sig,
                         struct shk_error *err)
{
    struct shk_strbuf text = SHK_STRBUF_INIT;
    if (sig->pattern)
        plain_words(&text, sig->pattern);
    shk_strbuf_printf(&text, " %s %s", sig->texts ? sig->texts : "", sig->meaning);
    int rc = add_text(index, sig->diagnosis, shk_strbuf_text(&text), err);
    index->count++;
    shk_strbuf_free(&text);
    return rc;
}

static int add_cause(struct index *index, const struct shk_diagnosis *entry, struct shk_error *err)
{
    char *text = shk_strf("%s %s %s %s %s", entry->title, entry->explanation,
                          entry->shows ? entry->shows : "", entry->advice ? entry->advice : "",
                          entry->confirm ? entry->confirm : "");
    int rc = text ? add_text(index, entry->key, text, err) : -ENOMEM;
    rc = rc ? rc : add_phrases(index, entry->key, entry->like, err);
    index->count++;
    free(text);
    return rc;
}

static int fill(struct index *index, const struct shk_config *config, struct shk_error *err)
{
    size_t causes, sigs;
    const struct shk_diagnosis *entries = shk_config_diagnoses(config, &causes);
    const struct shk_signature *all = shk_config_signatures(config, &sigs);
    int rc = shk_search_create(&index->search, err);
    if (rc)
        return rc;
    index->keys = calloc(causes + sigs + 1, sizeof *index->keys);
    if (!index->keys)
        return -ENOMEM;
    for (size_t i = 0; i < causes && !rc; i++)
        if (!entries[i].benign)
            rc = add_cause(index, &entries[i], err);
    for (size_t i = 0; i < sigs && !rc; i++)
        if (all[i].diagnosis && all[i].role != SHK_LOG_BENIGN)
            rc = add_signature(index, &all[i], err);
    return rc;
}

static int by_likeness(const void *a, const void *b)
{
    const struct like *x = a, *y = b;
    if (x->score != y->score)
        return x->score < y->score ? 1 : -1;
    return strcmp(x->key, y->key);
}

static struct like *like_of(struct like *likes, size_t n, const char *key)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(likes[i].key, key) == 0)
            return &likes[i];
    return NULL;
}

/* The causes of the texts that are nearest to all lines together. */
static int add_likes(const struct index *index, const struct lines *lines, struct like *likes,
                     struct shk_error *err)
{
    struct shk_search_hit hits[NEAR];
    size_t n = 0;
    int rc = shk_search_find(index->search, shk_strbuf_text(&lines->text), hits, NEAR, err);
    for (int i = 0; i < rc; i++) {
        const char *key = index->keys[hits[i].id];
        struct like *like = like_of(likes, n, key);
        if (!like) {
            like = &likes[n++];
            *like = (struct like){.key = key, .nearest = hits[i].score, .line = lines->items[0]};
        }
        like->score += hits[i].score * hits[i].score;
    }
    return rc < 0 ? rc : (int)n;
}

/* Which line is to be shown for each of them. */
static void find_lines(const struct index *index, const struct lines *lines, struct like *likes,
                       size_t n)
{
    struct shk_search_hit hits[NEAR];
    struct shk_error ignored;
    for (size_t l = 0; l < lines->count && lines->count > 1; l++) {
        const char *text = shk_log_unknown_text(lines->items[l]);
        int count = shk_search_find(index->search, text, hits, NEAR, &ignored);
        for (int i = 0; i < count; i++) {
            struct like *like = like_of(likes, n, index->keys[hits[i].id]);
            if (like && hits[i].score > like->line_score) {
                like->line = lines->items[l];
                like->line_score = hits[i].score;
            }
        }
    }
}

/* The causes of the nearest texts, most alike first: how many; 0, too, where nothing can be
 * searched. */
static size_t nearest(const struct shk_config *config, const struct lines *lines,
                      struct like *likes)
{
    struct index index = {0};
    struct shk_error ignored;
    int rc = lines->count ? fill(&index, config, &ignored) : -ENOENT;
    rc = rc ? rc : add_likes(&index, lines, likes, &ignored);
    size_t n = rc > 0 ? (size_t)rc : 0;
    if (n)
        find_lines(&index, lines, likes, n);
    shk_search_destroy(index.search);
    free(index.keys);
    qsort(likes, n, sizeof *likes, by_likeness);
    return n;
}

static void add_line(struct lines *lines, const json_t *line)
{
    if (lines->count == LINES)
        return;
    shk_strbuf_printf(&lines->text, "%s\n", shk_log_unknown_text(line));
    lines->items[lines->count++] = line;
}

/* A healthy kernel's log is full of lines that only sound like trouble. */
static void add_shapes(struct lines *lines, const json_t *shapes, bool doubt)
{
    for (size_t i = 0; i < json_array_size(shapes); i++) {
        const json_t *shape = json_array_get(shapes, i);
        const char *text = shk_log_unknown_text(shape);
        if (!shk_message_informs(text, strlen(text)) && !(doubt && shk_message_of_kernel(text)))
            add_line(lines, shape);
    }
}

/* Lines that are known as messages of a library and no more. A signature of its own that stands for
 * a mere consequence, or for nothing, means that; one that speaks for a cause in vain is refuted.
 */
static void add_seen(struct lines *lines, const struct shk_config *config,
                     const struct shk_facts *facts, bool causes)
{
    size_t count;
    const struct shk_signature *sigs = shk_config_signatures(config, &count);
    for (size_t i = 0; i < count; i++) {
        bool tells = sigs[i].role == SHK_LOG_GUESS || (causes && sigs[i].role == SHK_LOG_CAUSE) ||
                     (sigs[i].role == SHK_LOG_SYMPTOM && !sigs[i].diagnosis && sigs[i].texts);
        const json_t *seen = tells ? shk_log_seen(facts, sigs[i].id) : NULL;
        if (seen)
            add_line(lines, seen);
    }
}

static bool pasted(const struct shk_facts *facts)
{
    long long count = 0;
    return shk_look_int(facts, "log.lines", &count) == SHK_LOOK_PRESENT && count <= PASTED;
}

static void lines_of(struct lines *lines, const struct shk_config *config,
                     const struct shk_facts *facts, bool causes)
{
    long long count;
    add_shapes(lines, shk_log_unknown_shapes(facts, &count), false);
    bool errors = lines->count > 0, few = pasted(facts);
    lines->plain = errors && few;
    if (!errors && !causes && !few)
        return;
    if (errors || causes)
        add_seen(lines, config, facts, causes);
    if (lines->count || !shk_log_started(facts))
        add_shapes(lines, shk_log_doubt_shapes(facts), true);
}

/* Leaves out what cannot be where the evidence comes from; the score of the first one left is 1. */
static size_t keep_fitting(struct like *likes, size_t n, const struct shk_config *config,
                           const struct shk_facts *const *facts, size_t nodes)
{
    struct shk_clues clues = {0};
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        shk_clue_add(&clues, likes[i].key, WEIGHT, false, shk_copy(likes[i].key));
    shk_clues_in_context(&clues, config, facts, nodes);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < clues.count; k++)
            if (strcmp(clues.items[k].key, likes[i].key) == 0) {
                likes[kept++] = likes[i];
                break;
            }
    shk_clues_free(&clues);
    for (size_t i = kept; i-- > 0;)
        likes[i].score /= likes[0].score;
    return kept;
}

/* Only what lines show that are mere consequences gives way. */
static bool holds_place(const struct shk_config *config, const struct shk_clues *clues,
                        const struct shk_diagnosis_row *first)
{
    const struct shk_diagnosis *entry = shk_config_diagnosis(config, first->key);
    bool more = false;
    for (size_t i = 0; i < clues->count; i++)
        if (strcmp(clues->items[i].key, first->key) == 0 && clues->items[i].weight > 0)
            more |= clues->items[i].role != SHK_LOG_SYMPTOM;
    return !entry || !entry->symptom || more;
}

/* The cause that should be first, likeness and rank taken together; NULL: it is already, or words
 * do not speak for any that is not. */
static const struct like *promoted(struct like *likes, size_t n, const struct shk_diagnoses *causes)
{
    const struct like *best = NULL;
    double most = 0;
    for (size_t i = 0; i < causes->count; i++) {
        const struct like *like = like_of(likes, n, causes->rows[i].key);
        double score = (like ? like->score : 0) + first_bonus - each_less * (double)i;
        if (!i || score > most) {
            most = score;
            best = i ? like : NULL;
        }
    }
    bool first = strcmp(likes[0].key, causes->rows[0].key) == 0;
    return likes[0].score > most && !first ? &likes[0] : best;
}

static void add_like(struct shk_clues *clues, const struct like *like, int weight)
{
    char *place = shk_log_unknown_place(like->line);
    shk_clue_add(clues, like->key, weight, false,
                 shk_strf("%s: %s (by its words only: no signature says why)",
                          place ? place : "log", shk_log_unknown_text(like->line)));
    free(place);
}

/* One more than the guesses have. */
static int above(const struct shk_clues *clues)
{
    int most = 0;
    for (size_t i = 0; i < clues->count; i++)
        if (clues->items[i].weight > most)
            most = clues->items[i].weight;
    return most < MOST ? most + 1 : MOST;
}

/* Where no cause is known yet. A healthy log, too, has lines that read like trouble: the cause that
 * is named has to stand out. */
static void name_nearest(struct shk_clues *clues, const struct bar *bar, const struct like *likes,
                         size_t n)
{
    if (!n || likes[0].nearest < bar->least ||
        (n > 1 && likes[0].score < likes[1].score * bar->times))
        return;
    for (size_t i = 0; i < n && i < NAMED; i++)
        add_like(clues, &likes[i], WEIGHT - (int)i);
}

bool shk_clues_from_words(struct shk_clues *clues, const struct shk_config *config,
                          const struct shk_facts *const *facts, size_t nodes,
                          const struct shk_diagnoses *causes)
{
    struct lines lines = {.count = 0};
    struct like likes[NEAR] = {0};
    size_t before = clues->count;
    bool unsure = !causes->count || (strcmp(causes->rows[0].confidence, "possible") == 0 &&
                                     !holds_place(config, clues, &causes->rows[0]));
    if (unsure && nodes && shk_log_given(facts[0]))
        lines_of(&lines, config, facts[0], causes->count > 0);
    size_t n = keep_fitting(likes, nearest(config, &lines, likes), config, facts, nodes);
    bool enough = n && likes[0].nearest >= bar_plain.least;
    const struct like *first = enough && causes->count ? promoted(likes, n, causes) : NULL;
    if (!causes->count)
        name_nearest(clues, lines.plain ? &bar_plain : &bar_doubt, likes, n);
    else if (first)
        add_like(clues, first, above(clues));
    shk_strbuf_free(&lines.text);
    return clues->count > before;
}
