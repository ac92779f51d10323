#include "probes/hang/hang_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "7f00-7f10 r-xp 00001000 08:01 123   /usr/lib/x.so (deleted)" */
static bool maps_line(char *line, struct hang_region *region)
{
    char rights[5] = "";
    int at = 0;
    *region = (struct hang_region){0};
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %n", &region->start,
               &region->end, rights, &region->offset, &at) < 4 ||
        !at || region->end <= region->start)
        return false;
    region->executable = strchr(rights, 'x') != NULL;
    region->shared = strchr(rights, 's') != NULL;
    char *path = line + at, *mark = strstr(path, " (deleted)");
    region->deleted = mark && !mark[10];
    if (region->deleted)
        *mark = '\0';
    region->path = strdup(path);
    return true;
}

int hang_maps_parse(char *text, struct hang_maps *maps)
{
    char *save = NULL;
    size_t room = 0;
    uint64_t last = 0;
    for (char *line = strtok_r(text, "\n", &save); line && maps->count < HANG_REGIONS;
         line = strtok_r(NULL, "\n", &save)) {
        if (maps->count == room) {
            room = room ? 2 * room : 256;
            struct hang_region *more = realloc(maps->regions, room * sizeof *more);
            if (!more)
                return -ENOMEM;
            maps->regions = more;
        }
        struct hang_region region;
        if (!maps_line(line, &region))
            continue;
        if (!region.path)
            return -ENOMEM;
        if (region.start < last) { /* not sorted: no kernel wrote it */
            free(region.path);
            continue;
        }
        last = region.end;
        maps->regions[maps->count++] = region;
    }
    return 0;
}

int hang_maps_read(const struct shk_host *host, long pid, struct hang_maps *maps,
                   struct shk_error *err)
{
    char path[64], *text = NULL;
    snprintf(path, sizeof path, "/proc/%ld/maps", pid);
    int rc = shk_host_read(host, path, &text, NULL, err);
    if (!rc && hang_maps_parse(text, maps))
        rc = shk_error_sys(err, ENOMEM, "%s", path);
    free(text);
    return rc;
}

const struct hang_region *hang_maps_find(const struct hang_maps *maps, uint64_t address)
{
    size_t low = 0, high = maps->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct hang_region *region = &maps->regions[middle];
        if (address < region->start)
            high = middle;
        else if (address >= region->end)
            low = middle + 1;
        else
            return region;
    }
    return NULL;
}

void hang_maps_free(struct hang_maps *maps)
{
    for (size_t i = 0; i < maps->count; i++)
        free(maps->regions[i].path);
    free(maps->regions);
    *maps = (struct hang_maps){0};
}
