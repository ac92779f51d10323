#include "probes/library/ldcache.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Layout of the current format (glibc sysdeps/generic/dl-cache.h): this header, then the entries,
 * then the strings. String offsets count from the start of the header. Older caches put a table in
 * the libc5 format before it. Integers are in host order. */
#define CACHE_MAGIC "glibc-ld.so.cache1.1"

struct cache_header {
    char magic[20];
    uint32_t entries;
    uint32_t strings_len;
    uint8_t flags;
    uint8_t pad[3];
    uint32_t extension;
    uint32_t unused[3];
};

struct cache_entry {
    int32_t flags;
    uint32_t name, path;
    uint32_t os_version;
    uint64_t hwcap;
};

enum { CACHE_TYPE_MASK = 0xff, CACHE_ELF_LIBC6 = 3 };

struct shk_ldcache {
    char *data;       /* the whole file */
    const char *base; /* the header inside */
    size_t len;       /* bytes from base */
    size_t entries;
};

int shk_ldcache_read(struct shk_ldcache **cache_p, const struct shk_host *host, const char *path,
                     struct shk_error *err)
{
    char *data;
    size_t len;
    int rc = shk_host_read(host, path, &data, &len, err);
    if (rc)
        return rc;
    struct shk_ldcache *cache = calloc(1, sizeof *cache);
    struct cache_header header;
    const char *base = memmem(data, len, CACHE_MAGIC, sizeof CACHE_MAGIC - 1);
    size_t left = base ? len - (size_t)(base - data) : 0;
    if (!cache) {
        rc = shk_error_sys(err, ENOMEM, "%s", path);
    } else if (left < sizeof header) {
        rc = shk_error_set(err, EPROTO, "%s: not a loader cache in the glibc format", path);
    } else {
        memcpy(&header, base, sizeof header);
        if ((left - sizeof header) / sizeof(struct cache_entry) < header.entries)
            rc = shk_error_set(err, EPROTO, "%s: damaged: %u entries do not fit into the file",
                               path, header.entries);
    }
    if (rc) {
        free(data);
        free(cache);
        return rc;
    }
    *cache =
        (struct shk_ldcache){.data = data, .base = base, .len = left, .entries = header.entries};
    *cache_p = cache;
    return 0;
}

void shk_ldcache_destroy(struct shk_ldcache *cache)
{
    if (!cache)
        return;
    free(cache->data);
    free(cache);
}

static const char *ldcache_text(const struct shk_ldcache *cache, uint32_t offset)
{
    if (offset >= cache->len || !memchr(cache->base + offset, '\0', cache->len - offset))
        return NULL;
    return cache->base + offset;
}

int shk_ldcache_each(const struct shk_ldcache *cache, const char *name,
                     int (*fn)(const char *path, void *arg), void *arg)
{
    for (size_t i = 0; cache && i < cache->entries; i++) {
        struct cache_entry entry;
        memcpy(&entry, cache->base + sizeof(struct cache_header) + i * sizeof entry, sizeof entry);
        if ((entry.flags & CACHE_TYPE_MASK) != CACHE_ELF_LIBC6 || entry.hwcap)
            continue;
        const char *key = ldcache_text(cache, entry.name);
        const char *path = ldcache_text(cache, entry.path);
        if (!key || !path || strcmp(key, name) != 0)
            continue;
        int rc = fn(path, arg);
        if (rc)
            return rc;
    }
    return 0;
}
