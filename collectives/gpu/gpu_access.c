#include "collectives/gpu/gpu_private.h"
#include "core/text/strbuf.h"
#include <stdio.h>
#include <string.h>

#define ACCESS_KEY "gpu.access"

/* Pairs that are named one by one. */
#define ACCESS_NAMED 4U

struct access_map {
    unsigned ranks;
    uint8_t way[SHK_GPU_MAX_RANKS][SHK_GPU_MAX_RANKS]; /* enum gpu_access: from, to */
    char pci[SHK_GPU_MAX_RANKS][32];
};

/* As the driver knows that GPU in this process; -1: it does not show it. */
static int access_device(const struct gpu_rank *g, const char *pci)
{
    int count = 0;
    int device = 0;
    char here[32];

    if (g->gpu.api.device_count(&count) != GPU_SUCCESS)
        return -1;
    for (int ordinal = 0; ordinal < count; ordinal++) {
        memset(here, 0, sizeof here);
        if (g->gpu.api.device_get(&device, ordinal) == GPU_SUCCESS &&
            g->gpu.api.device_pci(here, (int)sizeof here - 1, device) == GPU_SUCCESS &&
            strcmp(here, pci) == 0) {
            return device;
        }
    }
    return -1;
}

enum gpu_access gpu_access_offered(const struct gpu_rank *g, unsigned peer)
{
    char pci[32] = "";
    int can = 0;
    int device = gpu_device_pci(g->job, peer, pci, sizeof pci) ? access_device(g, pci) : -1;

    return device < 0 || g->gpu.api.can_access(&can, g->device, device) != GPU_SUCCESS
               ? GPU_ACCESS_UNKNOWN
           : can != 0 ? GPU_ACCESS_OK
                      : GPU_ACCESS_REFUSED;
}

int gpu_access_put(struct gpu_rank *g, const uint8_t ways[SHK_GPU_MAX_RANKS], struct shk_error *err)
{
    int rc = shk_job_put(g->job, ACCESS_KEY, ways, SHK_GPU_MAX_RANKS, err);

    return rc == 0 ? shk_job_fence(g->job, 0, err) : rc;
}

int gpu_access_tell(struct gpu_rank *g, struct shk_error *err)
{
    uint8_t ways[SHK_GPU_MAX_RANKS] = {GPU_ACCESS_UNKNOWN};

    if (g->ranks > SHK_GPU_MAX_RANKS)
        return 0;
    for (unsigned peer = 0; peer < g->ranks; peer++) {
        if (peer != g->rank)
            ways[peer] = (uint8_t)gpu_access_offered(g, peer);
    }
    return gpu_access_put(g, ways, err);
}

/* Over PCIe there are no atomic operations on another GPU's memory, over NVLink there are. */
static bool access_linked(const struct gpu_rank *g, unsigned peer)
{
    char pci[32] = "";
    int atomics = 0;
    int device = gpu_device_pci(g->job, peer, pci, sizeof pci) ? access_device(g, pci) : -1;

    return g->gpu.api.peer_attribute && device >= 0 &&
           g->gpu.api.peer_attribute(&atomics, GPU_PEER_ATOMICS, g->device, device) ==
               GPU_SUCCESS &&
           atomics != 0;
}

int gpu_access_lines(struct gpu_rank *g, bool *lines_p, struct shk_error *err)
{
    uint64_t lacking = 0;
    int rc = 0;

    for (unsigned peer = 0; peer < g->ranks && lacking == 0; peer++)
        lacking = peer != g->rank && !access_linked(g, peer);
    rc = shk_job_barrier(g->job, lacking, &lacking, NULL, NULL);
    *lines_p = rc == 0 && lacking == 0;
    return rc == 0 ? 0 : shk_error_sys(err, -rc, "barrier");
}

static void access_read(const struct gpu_rank *g, struct access_map *map)
{
    size_t len = 0;

    memset(map, 0, sizeof *map);
    map->ranks = g->ranks < SHK_GPU_MAX_RANKS ? g->ranks : SHK_GPU_MAX_RANKS;
    for (unsigned rank = 0; rank < map->ranks; rank++) {
        if (shk_job_get(g->job, rank, ACCESS_KEY, map->way[rank], sizeof map->way[rank], &len,
                        NULL) != 0) {
            memset(map->way[rank], GPU_ACCESS_UNKNOWN, sizeof map->way[rank]);
        }
        if (!gpu_device_pci(g->job, rank, map->pci[rank], sizeof map->pci[rank]))
            snprintf(map->pci[rank], sizeof map->pci[rank], "rank %u", rank);
    }
}

static bool access_is(const struct access_map *map, unsigned from, unsigned to,
                      enum gpu_access what)
{
    return from != to && map->way[from][to] == what;
}

/* Neither way, or (both false) one of them. */
static bool access_lacks(const struct access_map *map, unsigned a, unsigned b, enum gpu_access what,
                         bool both)
{
    return both ? access_is(map, a, b, what) && access_is(map, b, a, what)
                : access_is(map, a, b, what) || access_is(map, b, a, what);
}

/* Groups within which all reach all, and between which nobody does: group[rank] is the first rank
 * of its group. 0: the pairs are no such groups. */
static unsigned access_groups(const struct access_map *map, enum gpu_access what,
                              unsigned group[SHK_GPU_MAX_RANKS])
{
    unsigned groups = 0;

    for (unsigned a = 0; a < map->ranks; a++) {
        group[a] = a;
        for (unsigned b = 0; b < a && group[a] == a; b++)
            group[a] = access_lacks(map, a, b, what, false) ? a : group[b];
        groups += group[a] == a;
    }
    for (unsigned a = 0; a < map->ranks; a++) {
        for (unsigned b = 0; b < a; b++) {
            if (group[a] == group[b] ? access_lacks(map, a, b, what, false)
                                     : !access_lacks(map, a, b, what, true)) {
                return 0;
            }
        }
    }
    return groups;
}

static void access_say_groups(const struct access_map *map, const unsigned group[SHK_GPU_MAX_RANKS],
                              struct shk_strbuf *text)
{
    for (unsigned first = 0; first < map->ranks; first++) {
        if (group[first] != first)
            continue;
        shk_strbuf_printf(text, "%s%s", first > 0 ? " and " : "", map->pci[first]);
        for (unsigned rank = first + 1; rank < map->ranks; rank++) {
            if (group[rank] == first)
                shk_strbuf_printf(text, ", %s", map->pci[rank]);
        }
    }
}

static unsigned access_say_pairs(const struct access_map *map, enum gpu_access what,
                                 struct shk_strbuf *text)
{
    unsigned count = 0;

    for (unsigned a = 0; a < map->ranks; a++) {
        for (unsigned b = a + 1; b < map->ranks; b++) {
            bool there = access_is(map, a, b, what);
            bool back = access_is(map, b, a, what);

            if ((there || back) && count++ < ACCESS_NAMED) {
                shk_strbuf_printf(text, "%s%s %s %s", count > 1 ? "; " : "",
                                  map->pci[there ? a : b], there && back ? "and" : "to",
                                  map->pci[there ? b : a]);
            }
        }
    }
    if (count > ACCESS_NAMED) {
        shk_strbuf_printf(text, "; and %u more of %u pairs", count - ACCESS_NAMED,
                          map->ranks * (map->ranks - 1) / 2);
    }
    return count;
}

unsigned gpu_access_lacking(const struct gpu_rank *g, enum gpu_access what, char *buf, size_t size)
{
    struct access_map map;
    struct shk_strbuf text = SHK_STRBUF_INIT;
    unsigned group[SHK_GPU_MAX_RANKS];
    unsigned pairs = 0;

    access_read(g, &map);
    pairs = access_say_pairs(&map, what, &text);
    if (pairs > 1 && access_groups(&map, what, group) > 1 && map.ranks > 2) {
        shk_strbuf_free(&text);
        text = (struct shk_strbuf)SHK_STRBUF_INIT;
        access_say_groups(&map, group, &text);
    }
    snprintf(buf, size, "%s", shk_strbuf_text(&text));
    shk_strbuf_free(&text);
    return pairs;
}
