/* Lists of host names, one name or list per line: folded, they are still the same names. */
#include "core/text/nodefold.h"
#include "fuzz.h"
#include "reports/privacy/scrub.h"

#include <stdlib.h>
#include <string.h>

enum { HOSTLIST_LINES = 256, HOSTLIST_NAMES = 4096 };

struct hostlist_names {
    char *name[HOSTLIST_NAMES];
    size_t count;
    bool more;
};

static void hostlist_collect(const char *name, void *arg)
{
    struct hostlist_names *names = arg;
    names->more |= names->count == HOSTLIST_NAMES;
    if (!names->more)
        names->name[names->count++] = strdup(name);
}

static int hostlist_order(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorted, each once. */
static void hostlist_sort(struct hostlist_names *names)
{
    size_t n = 0;
    qsort(names->name, names->count, sizeof *names->name, hostlist_order);
    for (size_t i = 0; i < names->count; i++) {
        if (n && strcmp(names->name[n - 1], names->name[i]) == 0)
            free(names->name[i]);
        else
            names->name[n++] = names->name[i];
    }
    names->count = n;
}

static void hostlist_free(struct hostlist_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->name[i]);
}

static void hostlist_compare(struct hostlist_names *a, struct hostlist_names *b)
{
    if (!a->more && !b->more) {
        hostlist_sort(a);
        hostlist_sort(b);
        if (a->count != b->count)
            abort();
        for (size_t i = 0; i < a->count; i++)
            if (strcmp(a->name[i], b->name[i]) != 0)
                abort();
    }
}

static void hostlist_scrub(const char *list)
{
    struct shk_scrub *scrub = shk_scrub_create(SHK_SCRUB_SECRETS | SHK_SCRUB_IDENTITY);
    shk_scrub_name(scrub, SHK_SCRUB_NODELIST, list);
    char *text = shk_scrub_text(scrub, list);
    if (!text)
        abort();
    free(text);
    shk_scrub_destroy(scrub);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct hostlist_names before, after;
    struct shk_strbuf folded = SHK_STRBUF_INIT;
    const char *lines[HOSTLIST_LINES];
    size_t count = 0;
    char *text = strndup((const char *)data, size), *save;
    before.count = after.count = 0;
    before.more = after.more = false;
    for (char *line = strtok_r(text, "\n", &save); line && count < HOSTLIST_LINES;
         line = strtok_r(NULL, "\n", &save)) {
        lines[count++] = line;
        if (!before.more) /* the unit tests have the bombs; here they only cost time */
            (void)shk_nodefold_each(line, SHK_NODEFOLD_MAX, hostlist_collect, &before);
    }
    shk_nodefold(&folded, lines, before.more ? 1 : count);
    if (folded.failed)
        abort();
    (void)shk_nodefold_each(shk_strbuf_text(&folded), SHK_NODEFOLD_MAX, hostlist_collect, &after);
    hostlist_compare(&before, &after);
    hostlist_scrub(shk_strbuf_text(&folded));
    hostlist_free(&before);
    hostlist_free(&after);
    shk_strbuf_free(&folded);
    free(text);
    return 0;
}
