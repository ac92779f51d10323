#include "probes/log/logwide.h"

#include "core/text/strbuf.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Characters that one place of a pattern takes. */
struct set {
    bool has[256];
};

/* A place of a pattern; a gap is where a group or an alternative begins or ends. */
struct atom {
    struct set set;
    size_t start, end; /* in the pattern, without what repeats it */
    bool gap, optional, repeated;
};

struct wide {
    const char *text;
    bool nocase;
    struct atom *atoms;
    size_t count;
};

static const char digits[] = "0123456789", hex[] = "0123456789abcdef";

static bool in_word(int c)
{
    return isalnum(c) || c == '_';
}

static bool set_any(const struct set *set, const char *of)
{
    bool any = false;
    for (; *of; of++)
        any |= set->has[(unsigned char)*of];
    return any;
}

static bool set_all(const struct set *set, const char *of)
{
    bool all = true;
    for (; *of; of++)
        all &= set->has[(unsigned char)*of];
    return all;
}

static bool set_leaves_word(const struct set *set)
{
    for (int c = 0; c < 256; c++)
        if (set->has[c] && !in_word(c))
            return true;
    return false;
}

/* What a backslash and this letter take; false: not known. */
static bool set_escape(struct set *set, char letter)
{
    for (int c = 0; c < 256; c++)
        if ((letter == 'd' && c >= '0' && c <= '9') || (letter == 'w' && in_word(c)) ||
            (letter == 'S' && !strchr(" \t\n\v\f\r", c) && c) || (letter == 'S' && !c))
            set->has[c] = true;
    static const char names[] = "tnr", means[] = "\t\n\r";
    const char *name = letter ? strchr(names, letter) : NULL;
    if (name)
        set->has[(unsigned char)means[name - names]] = true;
    if (!isalnum((unsigned char)letter))
        set->has[(unsigned char)letter] = true;
    return name || !isalnum((unsigned char)letter) || strchr("dwS", letter);
}

/* The class that begins at *at_p, which goes behind it. */
static bool set_class(struct set *set, const char *text, size_t *at_p)
{
    size_t at = *at_p + 1;
    bool negated = text[at] == '^', known = true;
    at += negated;
    for (bool first = true; known && text[at] && (first || text[at] != ']'); first = false) {
        if (text[at] == '[' && strchr(":.=", text[at + 1]))
            return false;
        if (text[at] == '\\') {
            known = text[at + 1] && set_escape(set, text[at + 1]);
            at += 2;
            known = known && !(text[at] == '-' && text[at + 1] != ']');
            continue;
        }
        int low = (unsigned char)text[at++], high = low;
        if (text[at] == '-' && text[at + 1] && text[at + 1] != ']') {
            high = (unsigned char)text[at + 1];
            known = high != '\\' && high >= low;
            at += 2;
        }
        for (int c = low; c <= high; c++)
            set->has[c] = true;
    }
    *at_p = at + 1;
    for (int c = 0; negated && c < 256; c++)
        set->has[c] = !set->has[c];
    return known && text[at] == ']';
}

static void set_fold(struct set *set)
{
    for (int c = 'a'; c <= 'z'; c++)
        set->has[c] = set->has[toupper(c)] = set->has[c] || set->has[toupper(c)];
}

/* What says how often, from `at` on; *least_p and *most_p: 0, 1 or 2 for more. */
static size_t count_length(const char *text, size_t at, int *least_p, int *most_p)
{
    size_t start = at;
    *least_p = text[at] == '?' || text[at] == '*' ? 0 : 1;
    *most_p = text[at] == '+' || text[at] == '*' ? 2 : 1;
    if (text[at] && strchr("?*+", text[at])) {
        at++;
    } else if (text[at] == '{' && isdigit((unsigned char)text[at + 1])) {
        *least_p = atoi(text + at + 1) > 0;
        *most_p = 2;
        at += strcspn(text + at, "}");
        at += text[at] == '}';
    }
    return at - start + (at > start && text[at] == '?');
}

/* One atom or gap from `at` on; its length, 0: not understood. */
static size_t wide_atom(struct wide *wide, size_t at)
{
    const char *text = wide->text;
    struct atom *atom = &wide->atoms[wide->count];
    size_t start = at;
    bool known = true;
    *atom = (struct atom){.start = at};
    if (strncmp(text + at, "(?:", 3) == 0) {
        atom->gap = true;
        at += 3;
    } else if (strchr("()|^$", text[at])) {
        atom->gap = true;
        known = text[at] != '(' || text[at + 1] != '?';
        at++;
    } else if (text[at] == '\\') {
        known = text[at + 1] && set_escape(&atom->set, text[at + 1]);
        at += 2;
    } else if (text[at] == '[') {
        known = set_class(&atom->set, text, &at);
    } else if (text[at] == '.') {
        memset(atom->set.has, true, sizeof atom->set.has);
        atom->set.has['\n'] = false;
        at++;
    } else {
        atom->set.has[(unsigned char)text[at++]] = true;
        known = !strchr("?*+", text[start]);
    }
    if (!known || atom->set.has['\n']) /* lines are looked at one by one */
        return 0;
    if (wide->nocase)
        set_fold(&atom->set);
    int least, most;
    atom->end = at;
    at += count_length(text, at, &least, &most);
    atom->optional = !least;
    atom->repeated = most > 1;
    wide->count++;
    return text[at] && strchr("?*+", text[at]) ? 0 : at - start;
}

static bool wide_parse(struct wide *wide)
{
    size_t at = 0;
    if (strncmp(wide->text, "(?i)", 4) == 0) {
        wide->nocase = true;
        at = 4;
    }
    while (wide->text[at]) {
        bool edge = wide->text[at] == '\\' && (wide->text[at + 1] | 32) == 'b';
        size_t len = edge ? 2 : wide_atom(wide, at);
        if (!len)
            return false;
        at += len;
    }
    return true;
}

/* Must a match have, before what this atom takes, a character that is neither hexadecimal nor the
 * x of "0x", with no such x between? */
static bool wide_held_left(const struct wide *wide, size_t i)
{
    if (wide->atoms[i].repeated && wide->atoms[i].set.has['x'])
        return false;
    while (i-- > 0) {
        const struct atom *atom = &wide->atoms[i];
        if (atom->gap || atom->set.has['x'])
            return false;
        if (!atom->optional && !set_any(&atom->set, hex))
            return true;
    }
    return false;
}

/* Must a match have, behind what this atom takes, a character of a word that is not hexadecimal,
 * with no end of a word between? */
static bool wide_held_right(const struct wide *wide, size_t i)
{
    if (wide->atoms[i].repeated && set_leaves_word(&wide->atoms[i].set))
        return false;
    while (++i < wide->count) {
        const struct atom *atom = &wide->atoms[i];
        if (atom->gap || set_leaves_word(&atom->set))
            return false;
        if (!atom->optional && !set_any(&atom->set, hex))
            return true;
    }
    return false;
}

/* Can this atom take what stands behind "0x", and does it tell such characters apart? */
static bool wide_tells_hex(const struct wide *wide, size_t i)
{
    const struct set *set = &wide->atoms[i].set;
    return set_any(set, hex) && !set_all(set, hex) && !wide_held_left(wide, i) &&
           !wide_held_right(wide, i);
}

static bool set_is(const struct set *set, char only)
{
    size_t count = 0;
    for (int c = 0; c < 256; c++)
        count += set->has[c];
    return count == 1 && set->has[(unsigned char)only];
}

/* Does it tell digits apart? Not as the 0 of "0x", which is another in a mask than 1x to 9x. */
static bool wide_tells_digits(const struct wide *wide, size_t i)
{
    const struct atom *atom = &wide->atoms[i], *next = atom + 1;
    if (!set_any(&atom->set, digits) || set_all(&atom->set, digits))
        return false;
    return !(set_is(&atom->set, '0') && !atom->repeated && i + 1 < wide->count && !next->gap &&
             !next->optional && set_is(&next->set, 'x'));
}

static bool wide_is_blind(const struct wide *wide)
{
    for (size_t i = 0; i < wide->count; i++)
        if (!wide->atoms[i].gap && (wide_tells_digits(wide, i) || wide_tells_hex(wide, i)))
            return false;
    return true;
}

static void wide_print(struct shk_strbuf *sb, const struct set *set)
{
    shk_strbuf_putc(sb, '[');
    for (int c = 0, end; c < 256; c = end) {
        for (end = c + 1; set->has[c] && end < 256 && set->has[end]; end++)
            ;
        if (set->has[c])
            shk_strbuf_printf(sb, "\\x%02x-\\x%02x", (unsigned)c, (unsigned)(end - 1));
    }
    shk_strbuf_putc(sb, ']');
}

static char *wide_text(const struct wide *wide)
{
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    size_t done = 0;
    for (size_t i = 0; i < wide->count; i++) {
        const struct atom *atom = &wide->atoms[i];
        struct set set = atom->set;
        set.has['0'] |= set_any(&atom->set, digits);
        set.has['9'] |= set_any(&atom->set, digits);
        set.has['1'] |= wide_tells_hex(wide, i);
        if (atom->gap || memcmp(&set, &atom->set, sizeof set) == 0)
            continue;
        shk_strbuf_add(&sb, wide->text + done, atom->start - done);
        wide_print(&sb, &set);
        done = atom->end;
    }
    shk_strbuf_puts(&sb, wide->text + done);
    return shk_strbuf_take(&sb);
}

int shk_logwide(const char *pattern, char **wide_p)
{
    struct wide wide = {.text = pattern};
    *wide_p = NULL;
    wide.atoms = calloc(strlen(pattern) + 1, sizeof *wide.atoms);
    if (!wide.atoms)
        return -ENOMEM;
    int rc = wide_parse(&wide) ? 0 : -ENOTSUP;
    if (!rc && !wide_is_blind(&wide) && !(*wide_p = wide_text(&wide)))
        rc = -ENOMEM;
    free(wide.atoms);
    return rc;
}
