#include "core/run/logfile.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

static char path[64];

static void write_bytes(const void *data, size_t len)
{
    strcpy(path, "/tmp/shk-log-XXXXXX");
    int fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    FILE *out = fdopen(fd, "w");
    cr_assert_eq(fwrite(data, 1, len, out), len);
    fclose(out);
}

/* Everything that the pieces hold, each checked to be whole lines. New string. */
static char *read_all(struct shk_logfile_totals *totals_p, int *rc_p, struct shk_error *err)
{
    struct shk_logfile *log = NULL;
    struct shk_logpiece piece;
    char *text = NULL;
    size_t len = 0;
    *rc_p = shk_logfile_open(&log, path, err);
    if (*rc_p)
        return NULL;
    while ((*rc_p = shk_logfile_read(log, &piece, err)) > 0) {
        text = realloc(text, len + piece.len + 1);
        memcpy(text + len, piece.data, piece.len);
        len += piece.len;
        text[len] = '\0';
    }
    *totals_p = shk_logfile_totals(log);
    shk_logfile_close(log);
    unlink(path);
    return text;
}

static char *many_lines(size_t *len_p)
{
    enum { LINES = 60000 };
    char *text = malloc((size_t)LINES * 64), *p = text;
    for (int i = 0; i < LINES; i++)
        p += sprintf(p, "node%02d:%d:%d [%d] NCCL INFO line %d\n", i % 16, i, i, i % 8, i);
    *len_p = (size_t)(p - text);
    return text;
}

static void expect_same(const void *packed, size_t packed_len, const char *text, size_t len)
{
    struct shk_logfile_totals totals;
    struct shk_error err = {""};
    int rc;
    write_bytes(packed, packed_len);
    char *got = read_all(&totals, &rc, &err);
    cr_assert_eq(rc, 0, "%s", err.text);
    cr_expect_eq(strlen(got), len);
    cr_expect(strcmp(got, text) == 0);
    cr_expect_eq(totals.lines, 60000u);
    cr_expect_eq(totals.bytes, len);
    cr_expect_eq(totals.cut, 0u);
    free(got);
}

static size_t gzip(const char *text, size_t len, unsigned char *out, size_t cap)
{
    z_stream z = {0};
    deflateInit2(&z, 1, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
    z.next_in = (unsigned char *)text;
    z.avail_in = (uInt)len;
    z.next_out = out;
    z.avail_out = (uInt)cap;
    cr_assert_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return cap - z.avail_out;
}

Test(logfile, plain_gzip_and_zstd_give_the_same_lines)
{
    size_t len, cap;
    char *text = many_lines(&len);
    unsigned char *packed = malloc(cap = len + 65536);
    expect_same(text, len, text, len);
    expect_same(packed, gzip(text, len, packed, cap), text, len);
    expect_same(packed, ZSTD_compress(packed, cap, text, len, 1), text, len);
    free(packed);
    free(text);
}

Test(logfile, a_gzip_file_may_have_several_members)
{
    unsigned char packed[256];
    size_t a = gzip("one\n", 4, packed, sizeof packed);
    size_t b = gzip("two\n", 4, packed + a, sizeof packed - a);
    struct shk_logfile_totals totals;
    struct shk_error err = {""};
    int rc;
    write_bytes(packed, a + b);
    char *got = read_all(&totals, &rc, &err);
    cr_assert_eq(rc, 0, "%s", err.text);
    cr_expect_str_eq(got, "one\ntwo\n");
    cr_expect_eq(totals.lines, 2u);
    free(got);
}

Test(logfile, damaged_and_cut_data_name_the_file)
{
    unsigned char packed[256];
    size_t n = gzip("one\ntwo\nthree\n", 14, packed, sizeof packed);
    struct shk_logfile_totals totals;
    struct shk_error err = {""};
    int rc;
    write_bytes(packed, n - 6);
    free(read_all(&totals, &rc, &err));
    cr_expect_lt(rc, 0);
    cr_expect_not_null(strstr(err.text, "ends in the middle"), "%s", err.text);
    packed[12] ^= 0xff;
    packed[13] ^= 0xff;
    write_bytes(packed, n);
    free(read_all(&totals, &rc, &err));
    cr_expect_lt(rc, 0);
    cr_expect_not_null(strstr(err.text, path), "%s", err.text);
}

Test(logfile, a_line_without_end_is_cut_and_the_next_ones_are_read)
{
    enum { LONG = 5 << 20 };
    char *text = malloc(LONG + 64);
    strcpy(text, "first\n");
    memset(text + 6, 'x', LONG);
    strcpy(text + 6 + LONG, "\nlast");
    struct shk_logfile_totals totals;
    struct shk_error err = {""};
    int rc;
    write_bytes(text, strlen(text));
    char *got = read_all(&totals, &rc, &err);
    cr_assert_eq(rc, 0, "%s", err.text);
    cr_expect_eq(totals.lines, 3u);
    cr_expect_eq(totals.cut, 1u);
    cr_expect_lt(strlen(got), (size_t)1 << 20);
    cr_expect_str_eq(got + strlen(got) - 5, "xlast");
    free(got);
    free(text);
}

Test(logfile, empty_and_missing_files)
{
    struct shk_logfile *log = NULL;
    struct shk_logpiece piece;
    struct shk_error err = {""};
    write_bytes("", 0);
    cr_assert_eq(shk_logfile_open(&log, path, &err), 0);
    cr_expect_eq(shk_logfile_read(log, &piece, &err), 0);
    cr_expect_eq(shk_logfile_read(log, &piece, &err), 0);
    shk_logfile_close(log);
    unlink(path);
    cr_expect_lt(shk_logfile_open(&log, path, &err), 0);
    cr_expect_not_null(strstr(err.text, path), "%s", err.text);
    cr_expect_lt(shk_logfile_open(&log, "/", &err), 0);
}
