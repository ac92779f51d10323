/* The built-in signatures: both engines find the same in all that the tests have of logs. */
#include "cli/logpatterns.h"
#include "engines.h"

#include <ftw.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static struct pair exact, wide;
static char *lines[8192]; /* to make others of */
static size_t line_count;

static void both_text(const char *name, const char *text, size_t len)
{
    pair_text(&exact, name, text, len);
    pair_text(&wide, name, text, len);
}

static void lines_keep(const char *text)
{
    for (const char *p = text, *next; *p; p = next) {
        size_t len = strcspn(p, "\n");
        next = p + len + (p[len] == '\n');
        if (len > 12 && len < 400 && line_count < sizeof lines / sizeof *lines)
            lines[line_count++] = strndup(p, len);
    }
}

static int on_file(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)ftw;
    enum { FILE_MAX = 1 << 20 };
    if (kind != FTW_F || !S_ISREG(st->st_mode) || st->st_size > FILE_MAX)
        return 0;
    char *text = calloc(1, FILE_MAX + 1);
    FILE *file = fopen(path, "r");
    size_t len = file ? fread(text, 1, FILE_MAX, file) : 0;
    both_text(path, text, len);
    if (!strstr(path, "captures"))
        lines_keep(text);
    if (file)
        fclose(file);
    free(text);
    return 0;
}

static void examples_read(void)
{
    json_t *cases = json_load_file(SHK_TESTS_DIR "/logs/cases.json", 0, NULL), *one, *line;
    size_t i, k;
    cr_assert_gt(json_array_size(cases), 500);
    json_array_foreach(cases, i, one)
    {
        json_t *log = json_object_get(one, "log");
        json_array_foreach(log, k, line)
        {
            both_text("cases.json", json_string_value(line), json_string_length(line));
            lines_keep(json_string_value(line));
        }
    }
    json_decref(cases);
}

/* Parts of two lines, with some bytes changed. */
static size_t mixture(char *out, size_t room)
{
    const char *a = lines[(size_t)rand() % line_count], *b = lines[(size_t)rand() % line_count];
    int from = rand() % 3 ? 0 : rand() % (int)strlen(a), take = rand() % ((int)strlen(a) + 1);
    int len = snprintf(out, room, "%.*s%s%s", take, a + from, rand() % 4 ? " " : "",
                       b + (rand() % 2 ? 0 : rand() % (int)strlen(b)));
    for (int changes = rand() % 4; changes > 0 && len > 0; changes--) {
        char *at = &out[rand() % len];
        static const char others[] = "0123456789 xX:()[]._-aeft\r\t\x80";
        *at = rand() % 3 ? others[(size_t)rand() % (sizeof others - 1)] : (char)(*at ^ 0x20);
        if (*at == '\n' || !*at)
            *at = ' ';
    }
    return (size_t)len;
}

Test(engines, find_the_same_for_the_built_in_signatures)
{
    enum { MIXTURES = 10000 };
    struct shk_config *config = NULL;
    struct shk_error err = {""};
    size_t count = 0;
    char text[1024];
    if (!pair_possible())
        return;
    cr_assert_eq(shk_config_load(&config, NULL, NULL, &err), 0, "%s", err.text);
    struct shk_log_pattern *patterns = shk_log_patterns(config, &count);
    cr_assert_eq(pair_open(&exact, patterns, count, false), 0);
    cr_assert_eq(pair_open(&wide, patterns, count, true), 0);
    examples_read();
    static const char *const folders[] = {SHK_TESTS_DIR "/logs", SHK_TESTS_DIR "/tickets",
                                          SHK_TESTS_DIR "/golden/cases", SHK_BUILD_DIR "/captures"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        cr_assert_eq(nftw(folders[i], on_file, 16, FTW_PHYS), 0, "%s", folders[i]);
    cr_assert_gt(line_count, 5000);
    srand(20);
    for (size_t i = 0; i < MIXTURES; i++)
        both_text("mixture", text, mixture(text, sizeof text));
    fprintf(stderr, "engines: %zu lines, %zu matches, %zu of wider patterns\n", exact.lines,
            exact.matches, wide.matches);
    cr_expect_gt(exact.lines, MIXTURES + 10000);
    cr_expect_gt(exact.matches, exact.lines / 2);
    for (size_t i = 0; i < line_count; i++)
        free(lines[i]);
    pair_close(&exact);
    pair_close(&wide);
    free(patterns);
    shk_config_free(config);
}
