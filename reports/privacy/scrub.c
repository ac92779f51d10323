#include "reports/privacy/scrub.h"
#include "reports/privacy/scrub_match.h"

#include "core/facts/facts.h"
#include "core/redact/redact.h"
#include "core/text/stamp.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Longest host name that DNS allows; longer words are no names. */
enum { SCRUB_WORD = 255 };

struct shk_scrub {
    unsigned what;
    unsigned counts[SHK_SCRUB_KIND_COUNT];
    json_t *names; /* text -> pseudonym; null: stays as it is */
    json_t *lists; /* the same for names that are no words, such as "nid[001-004]" */
    json_t *hosts; /* set: names that a domain may follow */
    bool failed;
};

static const char *const scrub_prefix[SHK_SCRUB_KIND_COUNT] = {
    [SHK_SCRUB_HOST] = "node",       [SHK_SCRUB_NODELIST] = "nodes", [SHK_SCRUB_USER] = "user",
    [SHK_SCRUB_ACCOUNT] = "account", [SHK_SCRUB_SERIAL] = "serial",  [SHK_SCRUB_ADDRESS] = "addr",
    [SHK_SCRUB_MAC] = "mac",         [SHK_SCRUB_GUID] = "guid",      [SHK_SCRUB_UUID] = "uuid",
    [SHK_SCRUB_JOB] = "job",
};

struct shk_scrub *shk_scrub_create(unsigned what)
{
    struct shk_scrub *scrub = calloc(1, sizeof *scrub);
    if (!scrub)
        return NULL;
    scrub->what = what;
    scrub->names = json_object();
    scrub->lists = json_object();
    scrub->hosts = json_object();
    if (!scrub->names || !scrub->lists || !scrub->hosts) {
        shk_scrub_destroy(scrub);
        return NULL;
    }
    return scrub;
}

void shk_scrub_destroy(struct shk_scrub *scrub)
{
    if (!scrub)
        return;
    json_decref(scrub->names);
    json_decref(scrub->lists);
    json_decref(scrub->hosts);
    free(scrub);
}

static bool scrub_is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.';
}

/* Pseudonym of a text, a new one at its first appearance; NULL when it is to stay. */
static const char *scrub_pseudonym(struct shk_scrub *scrub, json_t *table, enum shk_scrub_kind kind,
                                   const char *text)
{
    json_t *had = json_object_get(table, text);
    if (had)
        return json_string_value(had);
    json_t *made = json_sprintf("%s-%u", scrub_prefix[kind], scrub->counts[kind] + 1);
    if (json_object_set_new_nocheck(table, text, made)) {
        scrub->failed = true;
        return NULL;
    }
    scrub->counts[kind]++;
    return json_string_value(made);
}

void shk_scrub_name(struct shk_scrub *scrub, enum shk_scrub_kind kind, const char *name)
{
    static const char *const common[] = {"", "root", "localhost", "localhost.localdomain"};
    if (!(scrub->what & SHK_SCRUB_IDENTITY) || strlen(name) > SCRUB_WORD)
        return;
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        if (strcmp(name, common[i]) == 0)
            return;
    bool word = true;
    for (const char *p = name; *p; p++)
        word = word && scrub_is_name(*p);
    /* The short form of a host name is the same host. */
    char host[SCRUB_WORD + 1];
    snprintf(host, sizeof host, "%.*s", (int)strcspn(name, "."), name);
    if (kind == SHK_SCRUB_HOST && word && *host)
        name = host;
    scrub_pseudonym(scrub, word ? scrub->names : scrub->lists, kind, name);
    if (kind == SHK_SCRUB_HOST && word &&
        json_object_set_new_nocheck(scrub->hosts, name, json_true()))
        scrub->failed = true;
}

void shk_scrub_keep(struct shk_scrub *scrub, const char *word)
{
    if (!json_object_get(scrub->names, word) &&
        json_object_set_new_nocheck(scrub->names, word, json_null()))
        scrub->failed = true;
}

/* A registered name at s: the longest one that ends where a word ends. Returns the bytes that it
 * takes (a host with its domain) and the text to put there. */
static size_t scrub_name(const struct shk_scrub *scrub, const char *s, const char **by_p)
{
    char word[SCRUB_WORD + 1];
    size_t len = 0;
    while (len < SCRUB_WORD && scrub_is_name(s[len]))
        len++;
    for (size_t n = len; n; n--) {
        if (n < len && isalnum((unsigned char)s[n]))
            continue;
        memcpy(word, s, n);
        word[n] = '\0';
        json_t *by = json_object_get(scrub->names, word);
        if (!by)
            continue;
        *by_p = json_string_value(by);
        size_t end = n;
        bool host = json_object_get(scrub->hosts, word);
        while (host && s[end] == '.' && isalnum((unsigned char)s[end + 1])) {
            end++;
            while (isalnum((unsigned char)s[end]) || s[end] == '-')
                end++;
        }
        return end;
    }
    return 0;
}

static size_t scrub_list(const struct shk_scrub *scrub, const char *s, const char **by_p)
{
    const char *name;
    json_t *by;
    size_t longest = 0;
    json_object_foreach(scrub->lists, name, by)
    {
        size_t n = strlen(name);
        if (n > longest && strncmp(s, name, n) == 0) {
            longest = n;
            *by_p = json_string_value(by);
        }
    }
    return longest;
}

/* /home/NAME and the like: whoever it is becomes a user. Returns the bytes before the name. */
static size_t scrub_home(struct shk_scrub *scrub, const char *s)
{
    static const char *const homes[] = {"/home/", "/users/", "/Users/", "/export/home/"};
    for (size_t i = 0; i < sizeof homes / sizeof *homes; i++) {
        size_t n = strlen(homes[i]), len = 0;
        if (strncmp(s, homes[i], n) != 0)
            continue;
        char name[SCRUB_WORD + 1];
        while (len < SCRUB_WORD && scrub_is_name(s[n + len]))
            len++;
        memcpy(name, s + n, len);
        name[len] = '\0';
        if (len && !json_object_get(scrub->names, name))
            shk_scrub_name(scrub, SHK_SCRUB_USER, name);
        return n;
    }
    return 0;
}

void shk_scrub_learn(struct shk_scrub *scrub, const char *text)
{
    if (scrub->what & SHK_SCRUB_IDENTITY)
        for (const char *s = text; (s = strchr(s, '/')); s++)
            scrub_home(scrub, s);
}

static size_t scrub_secret(const char *s, const char *start, struct shk_strbuf *out)
{
    size_t head, n = shk_redact_at(start, s, &head);
    if (!n)
        return 0;
    shk_strbuf_add(out, s, head);
    shk_strbuf_puts(out, SHK_REDACTED);
    return head + n;
}

static size_t scrub_identity(struct shk_scrub *scrub, const char *s, const char *start,
                             struct shk_strbuf *out)
{
    enum shk_scrub_kind kind;
    const char *by = NULL;
    size_t n = scrub_list(scrub, s, &by);
    if (!n)
        n = scrub_name(scrub, s, &by);
    /* A part of a path such as /opt/libfabric/1.15.2.0/lib is a version, not an address. */
    bool in_path = s > start && s[-1] == '/' && !(s - start > 1 && s[-2] == '/');
    if (!n && !in_path && (n = shk_scrub_match_address(s, &kind))) {
        char text[128];
        snprintf(text, sizeof text, "%.*s", (int)n, s);
        by = scrub_pseudonym(scrub, scrub->names, kind, text);
    }
    if (n && by)
        shk_strbuf_puts(out, by);
    else
        shk_strbuf_add(out, s, n);
    return n;
}

/* Nothing begins inside a word: bytes from s on that are copied as they are. */
static size_t scrub_inside(const char *s)
{
    return strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");
}

char *shk_scrub_text(struct shk_scrub *scrub, const char *text)
{
    struct shk_strbuf out = SHK_STRBUF_INIT;
    const char *s = text;
    while (*s) {
        bool starts = s == text || !isalnum((unsigned char)s[-1]);
        size_t inside = starts ? 0 : scrub_inside(s);
        if (inside) {
            shk_strbuf_add(&out, s, inside);
            s += inside;
            continue;
        }
        size_t n = 0;
        if (starts && (scrub->what & SHK_SCRUB_SECRETS))
            n = scrub_secret(s, text, &out);
        if (!n && (scrub->what & SHK_SCRUB_IDENTITY)) {
            size_t home = *s == '/' ? scrub_home(scrub, s) : 0;
            shk_strbuf_add(&out, s, home);
            s += home;
            if (starts || home)
                n = scrub_identity(scrub, s, text, &out);
        }
        if (!n && *s) {
            shk_strbuf_putc(&out, *s);
            n = 1;
        }
        s += n;
    }
    if (scrub->failed)
        out.failed = true;
    return shk_strbuf_take(&out);
}

static json_t *scrub_string(struct shk_scrub *scrub, const char *text)
{
    if (scrub->what & SHK_SCRUB_IDENTITY && shk_stamp_read(text) >= 0)
        return json_sprintf("%.10sT00:00:00Z", text);
    char *clean = shk_scrub_text(scrub, text);
    json_t *copy = clean ? shk_json_text(clean, strlen(clean)) : NULL;
    free(clean);
    return copy;
}

json_t *shk_scrub_json(struct shk_scrub *scrub, const json_t *value)
{
    const char *key;
    size_t i;
    json_t *item, *copy;
    bool bad = false;
    if (json_is_string(value))
        return scrub_string(scrub, json_string_value(value));
    if (!json_is_object(value) && !json_is_array(value))
        return json_incref((json_t *)value);
    copy = json_is_object(value) ? json_object() : json_array();
    json_object_foreach((json_t *)value, key, item) bad |=
        json_object_set_new(copy, key, shk_scrub_json(scrub, item)) != 0;
    json_array_foreach(value, i, item) bad |=
        json_array_append_new(copy, shk_scrub_json(scrub, item)) != 0;
    if (!bad)
        return copy;
    json_decref(copy);
    return NULL;
}
