#include "core/text/messages.h"

#include "core/text/order.h"
#include "core/text/strbuf.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    MESSAGE_MAX = 1024, /* of a line that is looked at */
    WORD_MIN = 3,       /* letters of a word that texts are found by */
    FIXED_MIN = 8,      /* letters and digits that make a text one of its library */
    WHOLE_BELOW = 16    /* of them, from which on more may follow */
};

struct message {
    const char *text;
    size_t len, id, fixed;
    uint64_t word; /* by which it is found */
};

struct shk_messages {
    struct message *entries; /* sorted by word once settled */
    size_t count, cap;
};

static bool in_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static uint64_t word_hash(const char *word, size_t len)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)word[i]) * 0x100000001b3u;
    return hash;
}

static bool is_wildcard(const char *text, size_t len, size_t at)
{
    return text[at] == '%' && at + 1 < len && (text[at + 1] == 's' || text[at + 1] == 'd');
}

/* The next whole word from *at_p on; a word that touches a wildcard is only a part of one. */
static size_t next_word(const char *text, size_t len, size_t *at_p, bool wildcards)
{
    size_t at = *at_p;
    bool part = false;
    while (at < len) {
        if (wildcards && is_wildcard(text, len, at)) {
            at += 2;
            part = true;
            continue;
        }
        size_t start = at;
        while (at < len && in_word(text[at]))
            at++;
        bool open = part || (wildcards && at < len && is_wildcard(text, len, at));
        if (at - start >= WORD_MIN && !open) {
            *at_p = at;
            return at - start;
        }
        part = false;
        at += at == start;
    }
    *at_p = len;
    return 0;
}

static size_t fixed_bytes(const char *text, size_t len)
{
    size_t fixed = 0;
    for (size_t i = 0; i < len; i++)
        if (is_wildcard(text, len, i))
            i++;
        else
            fixed += isalnum((unsigned char)text[i]) != 0;
    return fixed;
}

const char *shk_messages_fault(const char *text, size_t len)
{
    size_t at = 0;
    for (size_t i = 0; i < len; i++)
        if (text[i] == '%' && !is_wildcard(text, len, i) && (i + 1 >= len || text[++i] != '%'))
            return "of %, only %s, %d and %% are allowed";
    if (len > MESSAGE_MAX / 2)
        return "longer than 512 bytes";
    if (fixed_bytes(text, len) < FIXED_MIN)
        return "fewer than 8 fixed letters and digits";
    return next_word(text, len, &at, true) ? NULL : "no whole word of three letters or more";
}

const char *shk_messages_loose(const char *texts)
{
    for (size_t len; *texts; texts += len + (texts[len] == '\n')) {
        len = strcspn(texts, "\n");
        if (len && fixed_bytes(texts, len) < WHOLE_BELOW)
            return texts;
    }
    return NULL;
}

char *shk_messages_regex(const char *text, size_t len)
{
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    while (len >= 2 && is_wildcard(text, len, len - 2) && text[len - 1] == 's')
        len -= 2;
    for (size_t i = 0; i < len; i++) {
        bool wild = is_wildcard(text, len, i);
        if (wild)
            shk_strbuf_puts(&sb, text[i + 1] == 's' ? ".*" : "[-+]?(0x[0-9a-fA-F]+|[0-9]+)");
        else if (!in_word(text[i]) && text[i] > ' ' && text[i] < 127)
            shk_strbuf_printf(&sb, "\\%c", text[i]);
        else
            shk_strbuf_putc(&sb, text[i]);
        i += wild || text[i] == '%';
    }
    return shk_strbuf_take(&sb);
}

struct shk_messages *shk_messages_create(void)
{
    return calloc(1, sizeof(struct shk_messages));
}

void shk_messages_destroy(struct shk_messages *table)
{
    if (table)
        free(table->entries);
    free(table);
}

static int table_add_one(struct shk_messages *table, const char *text, size_t len, size_t id,
                         struct shk_error *err)
{
    const char *fault = shk_messages_fault(text, len);
    if (fault)
        return shk_error_set(err, EINVAL, "\"%.*s\": %s", (int)(len < 200 ? len : 200), text,
                             fault);
    if (table->count == table->cap) {
        size_t cap = table->cap ? table->cap * 2 : 128;
        struct message *more = reallocarray(table->entries, cap, sizeof *more);
        if (!more)
            return shk_error_sys(err, ENOMEM, "messages");
        table->entries = more;
        table->cap = cap;
    }
    table->entries[table->count++] =
        (struct message){.text = text, .len = len, .id = id, .fixed = fixed_bytes(text, len)};
    return 0;
}

int shk_messages_add(struct shk_messages *table, const char *texts, size_t id,
                     struct shk_error *err)
{
    int rc = 0;
    while (!rc && *texts) {
        size_t len = strcspn(texts, "\n");
        if (len)
            rc = table_add_one(table, texts, len, id, err);
        texts += len + (texts[len] == '\n');
    }
    return rc;
}

static int by_word(const void *a, const void *b)
{
    const struct message *x = a, *y = b;
    if (x->word != y->word)
        return x->word < y->word ? -1 : 1;
    if (x->fixed != y->fixed)
        return x->fixed > y->fixed ? -1 : 1;
    return x->text < y->text ? -1 : x->text > y->text;
}

/* First of the sorted words that is not less. */
static size_t words_lower(const uint64_t *words, size_t count, uint64_t word)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (words[middle] < word)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The word that the fewest texts have; of several, the longest. */
static void entry_choose(struct message *entry, const uint64_t *words, size_t count)
{
    size_t fewest = SIZE_MAX, longest = 0, len;
    for (size_t at = 0; (len = next_word(entry->text, entry->len, &at, true)) > 0;) {
        uint64_t word = word_hash(entry->text + at - len, len);
        size_t first = words_lower(words, count, word), n = first;
        while (n < count && words[n] == word)
            n++;
        n -= first;
        if (n < fewest || (n == fewest && len > longest)) {
            fewest = n;
            longest = len;
            entry->word = word;
        }
    }
}

int shk_messages_settle(struct shk_messages *table, struct shk_error *err)
{
    size_t count = 0, len;
    for (size_t i = 0; i < table->count; i++)
        for (size_t at = 0; next_word(table->entries[i].text, table->entries[i].len, &at, true);)
            count++;
    uint64_t *words = calloc(count + 1, sizeof *words);
    if (!words)
        return shk_error_sys(err, ENOMEM, "messages");
    count = 0;
    for (size_t i = 0; i < table->count; i++) {
        const struct message *e = &table->entries[i];
        for (size_t at = 0; (len = next_word(e->text, e->len, &at, true)) > 0;)
            words[count++] = word_hash(e->text + at - len, len);
    }
    qsort(words, count, sizeof *words, shk_order_u64);
    for (size_t i = 0; i < table->count; i++)
        entry_choose(&table->entries[i], words, count);
    free(words);
    if (table->count)
        qsort(table->entries, table->count, sizeof *table->entries, by_word);
    return 0;
}

static size_t number_length(const char *text, size_t len)
{
    size_t at = len && (*text == '-' || *text == '+'), start = at;
    bool hex = at + 2 < len && text[at] == '0' && (text[at + 1] | 32) == 'x';
    if (hex)
        start = at += 2;
    while (at < len && (hex ? isxdigit((unsigned char)text[at]) : isdigit((unsigned char)text[at])))
        at++;
    return at > start ? at : 0;
}

/* May the message go on like this behind the text? */
static bool ends_well(const struct message *entry, const char *rest, size_t len)
{
    if (!len || entry->text[entry->len - 1] == 's')
        if (!len || is_wildcard(entry->text, entry->len, entry->len - 2))
            return true;
    if (entry->fixed >= WHOLE_BELOW)
        return !in_word(entry->text[entry->len - 1]) || !in_word(*rest);
    for (size_t i = 0; i < len; i++)
        if (!strchr(" .\t\r", rest[i]))
            return false;
    return true;
}

/* Goes back to the last %s and lets it take one byte more when what follows does not fit. */
static bool entry_fits(const struct message *entry, const char *message, size_t len)
{
    const char *text = entry->text;
    size_t at = 0, m = 0, back_at = SIZE_MAX, back_m = 0;
    for (;;) {
        size_t number = 0;
        bool more = at < entry->len, wild = more && is_wildcard(text, entry->len, at);
        if (wild && text[at + 1] == 's') {
            at += 2;
            back_at = at;
            back_m = m;
        } else if (wild && (number = number_length(message + m, len - m)) > 0) {
            at += 2;
            m += number;
        } else if (more && !wild && m < len && message[m] == text[at]) {
            at += 1 + (text[at] == '%');
            m++;
        } else if (!more && ends_well(entry, message + m, len - m)) {
            return true;
        } else if (back_at != SIZE_MAX && back_m < len) {
            m = ++back_m;
            at = back_at;
        } else {
            return false;
        }
    }
}

bool shk_messages_find(const struct shk_messages *table, const char *message, size_t len,
                       size_t *id_p, const char **text_p)
{
    const struct message *best = NULL;
    size_t word;
    len = len < MESSAGE_MAX ? len : MESSAGE_MAX;
    for (size_t at = 0; (word = next_word(message, len, &at, false)) > 0;) {
        uint64_t hash = word_hash(message + at - word, word);
        size_t low = 0, high = table->count;
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (table->entries[middle].word < hash)
                low = middle + 1;
            else
                high = middle;
        }
        for (const struct message *e = table->entries + low;
             e < table->entries + table->count && e->word == hash; e++)
            if ((!best || e->fixed > best->fixed ||
                 (e->fixed == best->fixed && e->id < best->id)) &&
                entry_fits(e, message, len))
                best = e;
    }
    if (best)
        *id_p = best->id;
    if (best && text_p)
        *text_p = best->text;
    return best != NULL;
}

/* glog's level and date: "I1128 07:51:08", alone or behind a bracket. */
static bool informs_by_letter(const char *line, size_t len)
{
    for (size_t i = 0; i + 5 < len; i++) {
        size_t n = 0;
        while (line[i] == 'I' && (!i || line[i - 1] == '[') && i + 1 + n < len &&
               isdigit((unsigned char)line[i + 1 + n]))
            n++;
        if ((n == 3 || n == 4) && i + 1 + n < len && line[i + 1 + n] == ' ')
            return true;
    }
    return false;
}

bool shk_message_informs(const char *line, size_t len)
{
    static const char *const words[] = {" INFO ",  "[INFO]",  "INFO:",  "<info>", "<debug>",
                                        "debug: ", "debug2:", "debug3", "DEBUG"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (memmem(line, len, words[i], strlen(words[i])))
            return true;
    return informs_by_letter(line, len);
}

bool shk_message_of_kernel(const char *line)
{
    size_t n = *line == '[' ? 1 + strspn(line + 1, " 0123456789.") : 0;
    return (n > 1 && line[n] == ']') || strstr(line, " kernel: ");
}
