/* Lines that differ in numbers are not searched again, and what is found is the same. */
#include "core/text/strbuf.h"
#include "probes/log/logfind.h"
#include "probes/log/logmask.h"
#include "probes/log/logmemo.h"
#include "probes/log/logscan.h"
#include "probes/log/logwide.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *line, *mask;
} masks[] = {
    {"", ""},
    {"x", "x"},
    {"node01:1958:20 [3] NCCL", "node00:0000:00 [0] NCCL"},
    {"comm 0x7fb3c0 rank 12", "comm 0x111111 rank 00"},
    {"0xfee", "0x111"},
    {"0xfeet 0xfe_ 0xfeE 0xg 0x", "0xfeet 0xfe_ 0xfeE 0xg 0x"},
    {"1x2a 0x1:0xb, exact box1 xa", "9x0a 0x1:0x1, exact box0 xa"},
    {"0x0123456789abcdef0123456789abcdef tail 9", "0x11111111111111111111111111111111 tail 0"},
};

Test(logmask, numbers_are_masked)
{
    for (size_t i = 0; i < sizeof masks / sizeof *masks; i++) {
        struct shk_logmask mask, far;
        char room[256] = "";
        size_t len = strlen(masks[i].line);
        memset(room, '7', sizeof room);
        memcpy(room, masks[i].line, len);
        shk_logmask(&mask, masks[i].line, len, len);
        shk_logmask(&far, room, len, sizeof room);
        cr_expect_eq(mask.len, len);
        cr_expect(memcmp(mask.text, masks[i].mask, len + 1) == 0, "%s: %s", masks[i].line,
                  mask.text);
        cr_expect(far.hash == mask.hash && memcmp(far.text, mask.text, len + 1) == 0, "%s: %s",
                  masks[i].line, far.text);
    }
}

static const struct {
    const char *pattern, *wide; /* NULL: blind */
} wide[] = {
    {"Connected all rings", NULL},
    {"rank \\d+ nranks [0-9]{1,3} of \\w+ \\S+ [^:\\n]+ .*end$", NULL},
    {"comm 0x[0-9a-f]+ rank", NULL},
    {"comm 0x?[0-9a-f]+ rank", "comm [\\x30-\\x30\\x39-\\x39]x?[0-9a-f]+ rank"},
    {"(?i)\\bfailed: [a-z]*ing", NULL},
    {"PXN 0", "PXN [\\x30-\\x30\\x39-\\x39]"},
    {"errno [1-9]\\d?", "errno [\\x30-\\x39]\\d?"},
    {"no [^05\\n] left", "no [\\x00-\\x09\\x0b-\\x34\\x36-\\xff] left"},
    {"bad address|decoded", "[\\x31-\\x31\\x62-\\x62][\\x31-\\x31\\x61-\\x61]"
                            "[\\x31-\\x31\\x64-\\x64] address|decoded"},
    {"xbee", "x[\\x31-\\x31\\x62-\\x62][\\x31-\\x31\\x65-\\x65][\\x31-\\x31\\x65-\\x65]"},
    {"(?i)ad:", "(?i)[\\x31-\\x31\\x41-\\x41\\x61-\\x61][\\x31-\\x31\\x44-\\x44\\x64-\\x64]:"},
};

Test(logwide, what_tells_numbers_apart_is_widened)
{
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) {
        char *got = NULL;
        cr_expect_eq(shk_logwide(wide[i].pattern, &got), 0, "%s", wide[i].pattern);
        cr_expect(wide[i].wide ? got && strcmp(got, wide[i].wide) == 0 : !got, "%s: %s",
                  wide[i].pattern, got ? got : "blind");
        free(got);
    }
}

Test(logwide, what_is_not_understood_is_refused)
{
    static const char *const odd[] = {"a\\nb",  "a\\x0ab", "[[:digit:]]", "[\\d-z]", "(?=a)b",
                                      "a++bcd", "abc[de",  "a\\s",        "*abc",    "[b-\\d]"};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        char *got = NULL;
        cr_expect_eq(shk_logwide(odd[i], &got), -ENOTSUP, "%s", odd[i]);
        cr_expect_null(got);
    }
}

Test(logmemo, begins_anew_when_it_is_full)
{
    struct shk_log_memo *memo = shk_log_memo_create();
    struct shk_log_match match = {.id = 3, .to = 9};
    struct shk_log_known known = {.matches = &match, .count = 1}, got;
    struct shk_logmask mask;
    char line[600];
    size_t there = 0;
    memset(line, '.', sizeof line);
    for (size_t i = 0; i < 40000; i++) {
        for (size_t k = 0; k < 4; k++)
            line[k] = (char)('a' + (i >> 4 * k & 15));
        shk_logmask(&mask, line, i % 3 ? sizeof line : 20, sizeof line);
        cr_assert(!shk_log_memo_get(memo, &mask, &got));
        shk_log_memo_add(memo, &mask, &known);
        shk_log_memo_add(memo, &mask, &known);
        cr_assert(shk_log_memo_get(memo, &mask, &got));
        cr_assert(got.count == 1 && got.matches->id == 3 && got.matches->to == 9 && !got.told);
    }
    for (size_t i = 0; i < 40000; i++) {
        for (size_t k = 0; k < 4; k++)
            line[k] = (char)('a' + (i >> 4 * k & 15));
        shk_logmask(&mask, line, i % 3 ? sizeof line : 20, sizeof line);
        there += shk_log_memo_get(memo, &mask, &got);
    }
    cr_expect(there > 100 && there < 20000, "%zu", there);
    shk_log_memo_destroy(memo);
}

static const struct shk_log_pattern patterns[] = {
    {.id = "rings", .pattern = "rings \\d+ of \\d"},
    {.id = "zero", .pattern = "rings 0 of"},
    {.id = "some", .pattern = "code [1-4]\\b"},
    {.id = "word", .pattern = "bad [a-z]"},
    {.id = "end", .pattern = "0x[0-9a-f]+$"},
    {.id = "card", .pattern = "card \\d", .once = true},
    {.id = "table", .pattern = "WARN ", .texts = "Failed to open port 1\nFailed to open port %d\n"},
    {.id = "table-2", .pattern = "WARN ", .texts = "Failed to open port 2\n"},
};
enum { PATTERNS = sizeof patterns / sizeof *patterns };

static const struct {
    const char *key;
    long long lines;
} want[] = {
    {"log.sig.rings", 1000}, {"log.sig.zero", 100},    {"log.sig.some", 400},
    {"log.sig.word", 1},     {"log.sig.end", 1000},    {"log.sig.card", 1},
    {"log.sig.table", 900},  {"log.sig.table-2", 100},
};

/* Lines that differ in numbers only, and one that has a word more. */
static void lines_write(struct shk_strbuf *sb)
{
    for (unsigned i = 0; i < 1000; i++)
        shk_strbuf_printf(sb,
                          "rings %u of %u\ncode %u\nat 0x%03xf%s\ncard %u\n"
                          "WARN Failed to open port %u\n",
                          i % 10, i, i % 10, i, i == 777 ? " bad word 0xe" : "", i, i % 10);
}

static long long lines_of(const struct shk_log_database *ready, const char *text, const char *key)
{
    struct shk_logscan *scan = NULL;
    struct shk_error err = {""};
    struct shk_facts *facts = shk_facts_create();
    cr_assert_eq(shk_logscan_create(&scan, patterns, PATTERNS, ready, &err), 0, "%s", err.text);
    cr_assert_eq(shk_logscan_text(scan, "a", text, strlen(text), &err), 0, "%s", err.text);
    cr_assert_eq(shk_logscan_facts(scan, facts), 0);
    shk_logscan_destroy(scan);
    json_t *sig = shk_facts_get_object(facts, key);
    long long lines = json_integer_value(json_object_get(sig, "lines"));
    shk_facts_destroy(facts);
    return lines;
}

/* The i-th that this program has; NULL: there are no more. */
static const struct shk_log_engine *engine_of(size_t i)
{
    const struct shk_log_engine *one = shk_log_engine_vectorscan(), *other = shk_log_engine_pcre2();
    return i > 1 ? NULL : i == 0 ? (one ? one : other) : one ? other : NULL;
}

static void find_all(const struct shk_log_engine *engine)
{
    struct shk_log_database ready, plain;
    struct shk_error err = {""};
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    cr_assert_eq(shk_logscan_compile(patterns, PATTERNS, engine, &ready, &err), 0, "%s", err.text);
    cr_assert_not_null(ready.wide);
    plain = ready;
    plain.wide = NULL;
    lines_write(&sb);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        cr_expect_eq(lines_of(&ready, sb.data, want[i].key), want[i].lines, "%s: %lld", want[i].key,
                     lines_of(&ready, sb.data, want[i].key));
        cr_expect_eq(lines_of(&plain, sb.data, want[i].key), want[i].lines, "%s", want[i].key);
    }
    shk_strbuf_free(&sb);
    free((char *)ready.data);
    free((char *)ready.wide);
}

Test(logfind, finds_what_a_search_of_every_line_finds)
{
    for (size_t i = 0; engine_of(i); i++)
        find_all(engine_of(i));
}

/* Long enough for several threads. */
static void find_long(const struct shk_log_engine *engine)
{
    enum { TIMES = 150 };
    char path[] = "/tmp/shakedown-log-XXXXXX";
    struct shk_log_database ready;
    struct shk_error err = {""};
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    struct shk_logscan *scan = NULL;
    struct shk_facts *facts = shk_facts_create();
    FILE *file = fdopen(mkstemp(path), "w");
    lines_write(&sb);
    for (size_t i = 0; i < TIMES; i++)
        cr_assert_eq(fwrite(sb.data, 1, sb.len, file), sb.len);
    fprintf(file, "rings 0 of the last line");
    cr_assert_eq(fclose(file), 0);
    cr_assert(sb.len * TIMES > (size_t)9 << 20, "%zu", sb.len);
    cr_assert_eq(shk_logscan_compile(patterns, PATTERNS, engine, &ready, &err), 0, "%s", err.text);
    cr_assert_eq(shk_logscan_create(&scan, patterns, PATTERNS, &ready, &err), 0, "%s", err.text);
    cr_assert_eq(shk_logscan_file(scan, path, &err), 0, "%s", err.text);
    cr_assert_eq(shk_logscan_facts(scan, facts), 0);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        json_t *sig = shk_facts_get_object(facts, want[i].key);
        long long lines = json_integer_value(json_object_get(sig, "lines"));
        bool zero = strcmp(want[i].key, "log.sig.zero") == 0;
        if (want[i].lines > 1)
            cr_expect_eq(lines, want[i].lines * TIMES + zero, "%s: %lld", want[i].key, lines);
    }
    json_t *word = shk_facts_get_object(facts, "log.sig.word");
    cr_expect_eq(json_integer_value(json_object_get(word, "line")), 777 * 5 + 3);
    cr_expect_eq(json_integer_value(json_object_get(word, "lines")), TIMES);
    unlink(path);
    shk_logscan_destroy(scan);
    shk_facts_destroy(facts);
    shk_strbuf_free(&sb);
    free((char *)ready.data);
    free((char *)ready.wide);
}

Test(logfind, a_long_file_holds_what_its_pieces_hold)
{
    for (size_t i = 0; engine_of(i); i++)
        find_long(engine_of(i));
}

/* Bytes that are no set of the engine, or only a part of one. */
Test(logfind, a_damaged_database_is_refused)
{
    for (size_t i = 0; engine_of(i); i++) {
        const struct shk_log_engine *engine = engine_of(i);
        struct shk_log_database ready;
        struct shk_error err = {""};
        struct shk_log_set *set = NULL;
        cr_assert_eq(shk_logscan_compile(patterns, PATTERNS, engine, &ready, &err), 0);
        cr_expect_eq(engine->load(ready.data, ready.size, &set), 0);
        engine->destroy(set);
        for (size_t len = 0; len < ready.size; len += 1 + ready.size / 40)
            cr_expect_eq(engine->load(ready.data, len, &set), -EINVAL, "%s: %zu of %zu",
                         engine->name, len, ready.size);
        free((char *)ready.data);
        free((char *)ready.wide);
    }
}
