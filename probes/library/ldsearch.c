#include "probes/library/ldsearch.h"

#include "core/host/hostcall.h"
#include "core/text/strbuf.h"
#include "core/text/uses.h"
#include "probes/library/ldcache.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The loader's chain of RPATHs ends at the program; real chains are a handful long. */
enum { LDSEARCH_MAX_CHAIN = 64 };

struct shk_ldsearch {
    const struct shk_host *host;
    char *library_path; /* LD_LIBRARY_PATH, "" when unset */
    struct shk_ldcache *cache;
    unsigned machine;
    char triplet[64]; /* Debian's library directory, "x86_64-linux-gnu" */
    char cwd[1024];   /* for relative entries; "" on a capture */
};

static const char *const default_dirs[] = {
    "/lib/%s", "/usr/lib/%s", "/lib64", "/usr/lib64", "/lib", "/usr/lib",
};
enum { DEFAULT_DIRS = sizeof default_dirs / sizeof default_dirs[0] };

static void ldsearch_machine(struct shk_ldsearch *s)
{
    json_t *uname = NULL;
    if (shk_hostcall(s->host, SHK_CALL_UNAME, &uname, NULL) == 0) {
        const char *name = json_string_value(json_object_get(uname, "machine"));
        s->machine = shk_elf_machine_of(name);
        if (s->machine != EM_NONE)
            snprintf(s->triplet, sizeof s->triplet, "%s-linux-gnu", name);
    }
    json_decref(uname);
    if (!*s->triplet)
        snprintf(s->triplet, sizeof s->triplet, "x86_64-linux-gnu");
}

int shk_ldsearch_create(struct shk_ldsearch **search_p, const struct shk_host *host,
                        struct shk_error *err)
{
    struct shk_error cache_err = {""};
    struct shk_ldsearch *s = calloc(1, sizeof *s);
    if (!s)
        return shk_error_sys(err, ENOMEM, "library search");
    s->host = host;
    const char *path = shk_host_getenv(host, shk_variable("loader-path"));
    s->library_path = shk_copy(path);
    if (shk_ldcache_read(&s->cache, host, "/etc/ld.so.cache", &cache_err) != 0)
        s->cache = NULL;
    if (!s->library_path) {
        shk_ldsearch_destroy(s);
        return shk_error_sys(err, ENOMEM, "library search");
    }
    ldsearch_machine(s);
    if (!shk_host_is_live(host) || !getcwd(s->cwd, sizeof s->cwd))
        s->cwd[0] = '\0';
    *search_p = s;
    return 0;
}

void shk_ldsearch_destroy(struct shk_ldsearch *search)
{
    if (!search)
        return;
    shk_ldcache_destroy(search->cache);
    free(search->library_path);
    free(search);
}

const struct shk_host *shk_ldsearch_host(const struct shk_ldsearch *search)
{
    return search->host;
}

bool shk_ldsearch_complete(const struct shk_ldsearch *search)
{
    return search->cache || shk_host_is_live(search->host);
}

unsigned shk_ldsearch_machine(const struct shk_ldsearch *search)
{
    return search->machine;
}

char *shk_ldsearch_places(const struct shk_ldsearch *search)
{
    bool set = *search->library_path;
    return shk_strf("%s%s%s%s%s, default directories", set ? "" : "no ",
                    shk_variable("loader-path"), set ? "=" : "", search->library_path,
                    search->cache ? ", ld.so.cache" : ", no ld.so.cache");
}

/* One search: the name, who asks, and where the answers go. */
struct query {
    const struct shk_ldsearch *s;
    const char *name;
    unsigned machine, bits; /* of the asker; 0: any */
    bool passed_over;       /* offer just those that the loader leaves out */
    int (*fn)(const struct shk_ldsearch_hit *hit, void *arg);
    /* what is there, but cannot be opened; NULL: nobody wants to know */
    int (*obstacle)(const struct shk_ldsearch_hit *hit, enum shk_file_state state, const char *text,
                    void *arg);
    void *arg;
};

/* Would the loader pass over this file and search on? Only for a well-formed ELF file of another
 * class or machine. */
static bool ldsearch_passed_over(const struct query *q, int fd)
{
    unsigned char head[20];
    if (pread(fd, head, sizeof head, 0) != sizeof head || memcmp(head, ELFMAG, SELFMAG) != 0)
        return false;
    unsigned bits = head[EI_CLASS] == ELFCLASS64 ? 64 : 32;
    unsigned machine = head[EI_DATA] == ELFDATA2MSB ? (unsigned)head[18] << 8 | head[19]
                                                    : (unsigned)head[19] << 8 | head[18];
    return (q->bits && bits != q->bits) || (q->machine != EM_NONE && machine != q->machine);
}

static int ldsearch_obstacle(const struct query *q, const struct shk_ldsearch_hit *hit)
{
    char text[512];
    enum shk_file_state state;
    if (!q->obstacle)
        return 0;
    state = shk_file_state(q->s->host, hit->path, text, sizeof text);
    return state == SHK_FILE_MISSING || state == SHK_FILE_READABLE
               ? 0
               : q->obstacle(hit, state, text, q->arg);
}

static int ldsearch_offer(const struct query *q, const char *path, const char *via)
{
    struct shk_ldsearch_hit hit = {.via = via};
    int fd, n;
    if (path[0] == '/')
        n = snprintf(hit.path, sizeof hit.path, "%s", path);
    else if (*q->s->cwd)
        n = snprintf(hit.path, sizeof hit.path, "%s/%s", q->s->cwd, path);
    else
        return 0; /* relative to a directory that a capture does not know */
    if (n < 0 || (size_t)n >= sizeof hit.path)
        return 0;
    int rc = shk_host_open_file(q->s->host, hit.path, &fd, NULL);
    if (rc == -EINVAL) /* a directory or special file: taken, and then it cannot be read */
        return q->passed_over ? 0 : q->fn(&hit, q->arg);
    if (rc)
        return ldsearch_obstacle(q, &hit);
    bool skip = ldsearch_passed_over(q, fd);
    close(fd);
    return skip != q->passed_over ? 0 : q->fn(&hit, q->arg);
}

static int ldsearch_dir(const struct query *q, const char *dir, const char *via)
{
    char path[1024];
    int n = snprintf(path, sizeof path, "%s/%s", *dir ? dir : ".", q->name);
    return n > 0 && (size_t)n < sizeof path ? ldsearch_offer(q, path, via) : 0;
}

/* Expands $ORIGIN, $LIB and $PLATFORM (also ${…}) of one entry into buf. */
static void ldsearch_expand(const struct shk_ldsearch *s, const char *entry, size_t len,
                            const char *origin_file, char *buf, size_t size)
{
    const char *slash = origin_file ? strrchr(origin_file, '/') : NULL;
    char origin[1024], lib[80];
    snprintf(origin, sizeof origin, "%.*s", slash ? (int)(slash - origin_file) : 1,
             slash ? origin_file : ".");
    snprintf(lib, sizeof lib, "lib/%s", s->triplet);
    const struct {
        const char *token, *value;
    } tokens[] = {
        {.token = "ORIGIN", .value = origin},
        {.token = "LIB", .value = lib},
        {.token = "PLATFORM", .value = shk_elf_machine_name(s->machine)},
    };
    size_t out = 0;
    for (size_t i = 0; i < len && out + 1 < size;) {
        bool done = false;
        for (size_t t = 0; entry[i] == '$' && t < 3 && !done; t++) {
            size_t brace = i + 1 < len && entry[i + 1] == '{', n = strlen(tokens[t].token);
            if (i + 1 + 2 * brace + n > len || strncmp(entry + i + 1 + brace, tokens[t].token, n))
                continue;
            if (brace && entry[i + 2 + n] != '}')
                continue;
            int w = snprintf(buf + out, size - out, "%s", tokens[t].value);
            out = w > 0 && (size_t)w < size - out ? out + (size_t)w : size - 1;
            i += 1 + 2 * brace + n;
            done = true;
        }
        if (!done)
            buf[out++] = entry[i++];
    }
    buf[out] = '\0';
}

static int ldsearch_list(const struct query *q, const char *list, const char *separators,
                         const char *origin_file, const char *via)
{
    for (const char *p = list;; p++) {
        size_t len = strcspn(p, separators);
        char dir[1024];
        ldsearch_expand(q->s, p, len, origin_file, dir, sizeof dir);
        int rc = ldsearch_dir(q, dir, via);
        if (rc)
            return rc;
        p += len;
        if (!*p)
            return 0;
    }
}

static int ldsearch_cached(const char *path, void *arg)
{
    return ldsearch_offer(arg, path, "ld.so.cache");
}

static int ldsearch_rpaths(const struct query *q, const struct shk_ldsearch_asker *asker)
{
    int budget = LDSEARCH_MAX_CHAIN;
    if (asker && shk_elf_runpath(asker->elf))
        return 0; /* DT_RUNPATH turns every DT_RPATH off, those of the loaders too */
    for (; asker && budget--; asker = asker->loader) {
        const char *rpath = shk_elf_runpath(asker->elf) ? NULL : shk_elf_rpath(asker->elf);
        int rc = rpath ? ldsearch_list(q, rpath, ":", asker->path, "RPATH") : 0;
        if (rc)
            return rc;
    }
    return 0;
}

static int ldsearch_defaults(const struct query *q)
{
    for (int i = 0; i < DEFAULT_DIRS; i++) {
        char dir[128];
        snprintf(dir, sizeof dir, default_dirs[i], q->s->triplet);
        int rc = ldsearch_dir(q, dir, "default");
        if (rc)
            return rc;
    }
    return 0;
}

static int ldsearch_walk(const struct query *q, const struct shk_ldsearch_asker *asker)
{
    const char *library_path = q->s->library_path;
    if (strchr(q->name, '/'))
        return ldsearch_offer(q, q->name, "path");
    int rc = ldsearch_rpaths(q, asker);
    if (!rc && *library_path)
        rc = ldsearch_list(q, library_path, ":;", NULL, shk_variable("loader-path"));
    if (!rc && asker && shk_elf_runpath(asker->elf))
        rc = ldsearch_list(q, shk_elf_runpath(asker->elf), ":", asker->path, "RUNPATH");
    if (rc || (asker && shk_elf_nodeflib(asker->elf)))
        return rc;
    rc = shk_ldcache_each(q->s->cache, q->name, ldsearch_cached, (void *)q);
    return rc ? rc : ldsearch_defaults(q);
}

static int ldsearch_take(const struct shk_ldsearch_hit *hit, void *arg)
{
    *(struct shk_ldsearch_hit *)arg = *hit;
    return 1;
}

static struct query ldsearch_query(const struct shk_ldsearch *search, const char *name,
                                   const struct shk_ldsearch_asker *asker)
{
    /* a path is taken or refused, never passed over */
    bool path = strchr(name, '/') != NULL;
    return (struct query){
        .s = search,
        .name = name,
        .machine = path    ? EM_NONE
                   : asker ? shk_elf_machine(asker->elf)
                           : search->machine,
        .bits = path || !asker ? 0 : (unsigned)shk_elf_bits(asker->elf),
    };
}

static int ldsearch_first(const struct shk_ldsearch *search, const char *name,
                          const struct shk_ldsearch_asker *asker, bool passed_over,
                          struct shk_ldsearch_hit *hit_p)
{
    struct shk_ldsearch_hit hit;
    struct query q = ldsearch_query(search, name, asker);
    q.passed_over = passed_over;
    q.fn = ldsearch_take;
    q.arg = &hit;
    if (!*name || !ldsearch_walk(&q, asker))
        return -ENOENT;
    *hit_p = hit;
    return 0;
}

int shk_ldsearch_find(const struct shk_ldsearch *search, const char *name,
                      const struct shk_ldsearch_asker *asker, struct shk_ldsearch_hit *hit_p)
{
    return ldsearch_first(search, name, asker, false, hit_p);
}

int shk_ldsearch_passed_over(const struct shk_ldsearch *search, const char *name,
                             const struct shk_ldsearch_asker *asker, struct shk_ldsearch_hit *hit_p)
{
    return ldsearch_first(search, name, asker, true, hit_p);
}

struct obstacle_walk {
    int (*fn)(const struct shk_ldsearch_hit *hit, enum shk_file_state state, const char *text,
              void *arg);
    void *arg;
    int rc;
};

static int ldsearch_in_the_way(const struct shk_ldsearch_hit *hit, enum shk_file_state state,
                               const char *text, void *arg)
{
    struct obstacle_walk *walk = arg;
    return walk->rc = walk->fn(hit, state, text, walk->arg);
}

static int ldsearch_stop(const struct shk_ldsearch_hit *hit, void *arg)
{
    (void)hit, (void)arg;
    return 1;
}

int shk_ldsearch_each_obstacle(const struct shk_ldsearch *search, const char *name,
                               const struct shk_ldsearch_asker *asker,
                               int (*fn)(const struct shk_ldsearch_hit *hit,
                                         enum shk_file_state state, const char *text, void *arg),
                               void *arg)
{
    struct obstacle_walk walk = {.fn = fn, .arg = arg};
    struct query q = ldsearch_query(search, name, asker);
    q.fn = ldsearch_stop;
    q.obstacle = ldsearch_in_the_way;
    q.arg = &walk;
    if (*name)
        ldsearch_walk(&q, asker);
    return walk.rc;
}

int shk_ldsearch_each(const struct shk_ldsearch *search, const char *name,
                      int (*fn)(const struct shk_ldsearch_hit *hit, void *arg), void *arg)
{
    struct query q = {.s = search, .name = name, .machine = search->machine, .fn = fn, .arg = arg};
    return ldsearch_walk(&q, NULL);
}

bool shk_ldsearch_lacks(const struct shk_host *host, const struct shk_library *library)
{
    const char *path = shk_host_getenv(host, shk_variable("loader-path"));
    struct shk_ldsearch *search = NULL;
    struct shk_ldsearch_hit hit;
    struct shk_error err = {""};
    bool lacks = true;
    if (!shk_host_is_live(host))
        return true;
    if ((path && *path) || (library->env_override && getenv(library->env_override)) ||
        shk_ldsearch_create(&search, host, &err) != 0)
        return false;
    for (const char *const *name = library->names; *name; name++)
        lacks &= shk_ldsearch_find(search, *name, NULL, &hit) == -ENOENT;
    lacks &= shk_ldsearch_complete(search);
    shk_ldsearch_destroy(search);
    return lacks;
}
