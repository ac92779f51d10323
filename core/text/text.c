#include "core/text/strbuf.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { EDIT_MAX = 128, EDIT_FAR = 2 * EDIT_MAX };

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t m = a < b ? a : b;
    return m < c ? m : c;
}

size_t shk_edit_distance_within(const char *a, const char *b, size_t limit)
{
    size_t la = strlen(a), lb = strlen(b);
    if (la > EDIT_MAX || lb > EDIT_MAX || (la > lb ? la - lb : lb - la) > limit)
        return SIZE_MAX;
    size_t rows[3][EDIT_MAX + 1];
    size_t *before = rows[0], *prev = rows[1], *cur = rows[2];
    for (size_t j = 0; j <= lb; j++)
        prev[j] = j;
    /* What is further from the diagonal than `limit` costs more than that many insertions. */
    for (size_t i = 1; i <= la; i++) {
        size_t first = i > limit ? i - limit : 1,
               last = limit < lb && i < lb - limit ? i + limit : lb;
        cur[first - 1] = first == 1 ? i : EDIT_FAR;
        for (size_t j = first; j <= last; j++) {
            int ca = toupper((unsigned char)a[i - 1]), cb = toupper((unsigned char)b[j - 1]);
            cur[j] = min3(prev[j] + 1, cur[j - 1] + 1, prev[j - 1] + (ca != cb));
            if (i > 1 && j > 1 && ca == toupper((unsigned char)b[j - 2]) &&
                toupper((unsigned char)a[i - 2]) == cb && before[j - 2] + 1 < cur[j])
                cur[j] = before[j - 2] + 1;
        }
        if (last < lb)
            cur[last + 1] = EDIT_FAR;
        size_t *t = before;
        before = prev;
        prev = cur;
        cur = t;
    }
    return prev[lb];
}

size_t shk_edit_distance(const char *a, const char *b)
{
    return shk_edit_distance_within(a, b, EDIT_MAX);
}

size_t shk_nearest_limit(size_t length)
{
    return length <= 4 ? 1 : length <= 10 ? 2 : 3;
}

const char *shk_nearest(const char *word, const char *const *names, size_t count)
{
    size_t len = strlen(word);
    size_t best = shk_nearest_limit(len) + 1;
    const char *found = NULL;
    for (size_t i = 0; i < count && best > 0; i++) {
        size_t other = strlen(names[i]);
        size_t gap = other > len ? other - len : len - other;
        if (gap >= best || strcmp(word, names[i]) == 0)
            continue;
        size_t d = shk_edit_distance_within(word, names[i], best - 1);
        if (d < best) {
            best = d;
            found = names[i];
        }
    }
    return found;
}

int shk_version_cmp(const char *a, const char *b)
{
    if (*a == 'v' || *a == 'V')
        a++;
    if (*b == 'v' || *b == 'V')
        b++;
    for (;;) {
        bool da = isdigit((unsigned char)*a), db = isdigit((unsigned char)*b);
        if (!da && !db)
            return 0;
        char *end;
        unsigned long long va = 0, vb = 0;
        if (da) {
            va = strtoull(a, &end, 10);
            a = *end == '.' ? end + 1 : end + strlen(end) * (*end != '.');
        }
        if (db) {
            vb = strtoull(b, &end, 10);
            b = *end == '.' ? end + 1 : end + strlen(end) * (*end != '.');
        }
        if (va != vb)
            return va < vb ? -1 : 1;
    }
}

size_t shk_bom(const char *text, size_t len)
{
    return len >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
}

char *shk_trim(char *s)
{
    while (isspace((unsigned char)*s))
        s++;
    size_t len = strlen(s);
    while (len && isspace((unsigned char)s[len - 1]))
        s[--len] = '\0';
    return s;
}
