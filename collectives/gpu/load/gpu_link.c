#include "collectives/gpu/load/gpu_copies.h"
#include "core/text/strbuf.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PCI_BUS "/sys/bus/pci/devices"

double gpu_link_rate(double speed, int width)
{
    double encoding = speed <= 5 ? 0.8 : speed <= 32 ? 128.0 / 130.0 : 242.0 / 256.0;

    return speed * width * encoding / 8;
}

/* GT/s; 0: "Unknown", or no such file. */
static double link_speed(const struct shk_host *host, const char *pci, const char *file)
{
    char *text = NULL;
    double speed = 0;

    if (pci && shk_host_line(host, &text, NULL, PCI_BUS "/%s/%s", pci, file) == 0)
        speed = strtod(text, NULL);
    free(text);
    return speed;
}

/* What the kernel tells of a link, by its lower and upper end; false where there is none (widths 0
 * and 255). */
static bool link_of(const struct shk_host *host, const char *pci, const char *above,
                    struct gpu_link *link)
{
    double port = link_speed(host, above, "max_link_speed");
    long long width = 0;

    *link = (struct gpu_link){.speed = link_speed(host, pci, "current_link_speed"),
                              .most = link_speed(host, pci, "max_link_speed")};
    link->most = port > 0 && port < link->most ? port : port > 0 ? link->most : 0;
    if (shk_host_i64(host, &width, NULL, PCI_BUS "/%s/current_link_width", pci) != 0 ||
        width <= 0 || width >= 255 || link->speed <= 0) {
        return false;
    }
    link->width = (int32_t)width;
    link->gbs = gpu_link_rate(link->speed, link->width);
    snprintf(link->at, sizeof link->at, "%.15s", pci);
    return true;
}

/* "0000:3b:00.0"? */
static bool link_address(const char *text, size_t len)
{
    return len == 12 && text[4] == ':' && text[7] == ':' && text[10] == '.' &&
           isxdigit((unsigned char)text[0]) && isxdigit((unsigned char)text[8]);
}

/* The link in sysfs runs through all ports above: …/pci0000:3a/0000:3a:01.0/0000:3b:00.0. Each
 * device's numbers are those of the link above it. */
bool gpu_link_read(const struct shk_host *host, const char *pci, struct gpu_link *link)
{
    char *path = NULL;
    char *save = NULL;
    char *part = NULL;
    const char *above = NULL;
    struct gpu_link each;
    bool found = false;

    if (shk_host_readlink(host, &path, NULL, PCI_BUS "/%s", pci) != 0)
        return link_of(host, pci, NULL, link);
    for (part = strtok_r(path, "/", &save); part != NULL; part = strtok_r(NULL, "/", &save)) {
        if (!link_address(part, strlen(part)))
            continue;
        if (link_of(host, part, above, &each) && (!found || each.gbs <= link->gbs)) {
            *link = each;
            found = true;
        }
        above = part;
    }
    free(path);
    return found;
}
