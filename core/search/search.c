#include "core/search/search.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct shk_search {
    sqlite3 *db;
    sqlite3_stmt *add, *find;
};

bool shk_search_built(void)
{
    return true;
}

static int search_error(struct shk_search *search, int code, struct shk_error *err)
{
    if (code == SQLITE_NOMEM)
        return shk_error_sys(err, ENOMEM, "full-text index");
    return shk_error_set(err, EIO, "full-text index: %s",
                         search->db ? sqlite3_errmsg(search->db) : sqlite3_errstr(code));
}

/* One transaction: the index is written to memory when it is first searched. */
static int search_open(struct shk_search *search, struct shk_error *err)
{
    int rc = sqlite3_open_v2(":memory:", &search->db, SQLITE_OPEN_READWRITE, NULL);
    if (rc)
        return search_error(search, rc, err);
    rc = sqlite3_exec(search->db,
                      "CREATE VIRTUAL TABLE text USING fts5(words, id UNINDEXED, "
                      "tokenize = 'porter unicode61'); BEGIN",
                      NULL, NULL, NULL);
    if (rc == SQLITE_ERROR)
        return shk_error_set(err, ENOTSUP, "full-text index: %s", sqlite3_errmsg(search->db));
    rc = rc ? rc
            : sqlite3_prepare_v2(search->db, "INSERT INTO text VALUES(?, ?)", -1, &search->add,
                                 NULL);
    rc = rc ? rc
            : sqlite3_prepare_v2(search->db,
                                 "SELECT id, -bm25(text) FROM text WHERE text MATCH ? "
                                 "ORDER BY rank, rowid LIMIT ?",
                                 -1, &search->find, NULL);
    return rc ? search_error(search, rc, err) : 0;
}

int shk_search_create(struct shk_search **search_p, struct shk_error *err)
{
    struct shk_search *search = calloc(1, sizeof *search);
    int rc = search ? search_open(search, err) : shk_error_sys(err, ENOMEM, "full-text index");
    if (rc) {
        shk_search_destroy(search);
        return rc;
    }
    *search_p = search;
    return 0;
}

void shk_search_destroy(struct shk_search *search)
{
    if (!search)
        return;
    sqlite3_finalize(search->add);
    sqlite3_finalize(search->find);
    sqlite3_close(search->db);
    free(search);
}

int shk_search_add(struct shk_search *search, size_t id, const char *text, struct shk_error *err)
{
    struct shk_strbuf words = SHK_STRBUF_INIT;
    shk_search_words(&words, text);
    if (!words.len) {
        shk_strbuf_free(&words);
        return 0;
    }
    sqlite3_bind_text(search->add, 1, shk_strbuf_text(&words), -1, SQLITE_STATIC);
    sqlite3_bind_int64(search->add, 2, (sqlite3_int64)id);
    int rc = sqlite3_step(search->add);
    sqlite3_reset(search->add);
    shk_strbuf_free(&words);
    return rc == SQLITE_DONE ? 0 : search_error(search, rc, err);
}

/* The different words, as FTS5 takes them: "register" OR "memory". */
static void query_of(struct shk_strbuf *query, const char *words)
{
    size_t count = 0;
    for (const char *word = words; *word && count < SHK_SEARCH_WORDS;) {
        int len = (int)strcspn(word, " ");
        char quoted[64];
        snprintf(quoted, sizeof quoted, "\"%.*s\"", len, word);
        if (!strstr(shk_strbuf_text(query), quoted)) {
            shk_strbuf_printf(query, "%s%s", count ? " OR " : "", quoted);
            count++;
        }
        word += len;
        word += strspn(word, " ");
    }
}

static int rows_of(struct shk_search *search, const char *query, struct shk_search_hit *hits,
                   size_t cap, struct shk_error *err)
{
    size_t n = 0;
    int rc;
    sqlite3_bind_text(search->find, 1, query, -1, SQLITE_STATIC);
    sqlite3_bind_int64(search->find, 2, (sqlite3_int64)cap);
    while ((rc = sqlite3_step(search->find)) == SQLITE_ROW && n < cap)
        hits[n++] = (struct shk_search_hit){(size_t)sqlite3_column_int64(search->find, 0),
                                            sqlite3_column_double(search->find, 1)};
    sqlite3_reset(search->find);
    return rc == SQLITE_DONE || rc == SQLITE_ROW ? (int)n : search_error(search, rc, err);
}

int shk_search_find(struct shk_search *search, const char *text, struct shk_search_hit *hits,
                    size_t cap, struct shk_error *err)
{
    struct shk_strbuf words = SHK_STRBUF_INIT, query = SHK_STRBUF_INIT;
    shk_search_words(&words, text);
    query_of(&query, shk_strbuf_text(&words));
    int rc = query.len ? rows_of(search, shk_strbuf_text(&query), hits, cap, err) : 0;
    shk_strbuf_free(&words);
    shk_strbuf_free(&query);
    return rc;
}
