#include "probes/topology/topology_xml.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char mark_version[] = "<topology version=\"";
static const char mark_device[] = " osdev_type=\"";

/* Bits of hwloc 3 and the value of hwloc 2, in the order in which hwloc's own export to version 2
 * decides; a GPU which also is a coprocessor stays a GPU. */
static char device_of(unsigned long bits)
{
    static const struct {
        unsigned long bits;
        char type;
    } types[] = {
        {0x03, '0'}, /* storage, memory: block */
        {0x20, '3'}, /* OpenFabrics */
        {0x10, '2'}, /* network */
        {0x40, '4'}, /* DMA */
        {0x04, '1'}, /* GPU */
        {0x08, '5'}, /* coprocessor */
    };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (bits & types[i].bits)
            return types[i].type;
    return '0';
}

bool shk_topology_xml_lower(char *xml, unsigned library)
{
    char *version = strstr(xml, mark_version);
    if (!version || library != 2)
        return false;
    version += strlen(mark_version);
    if (version[0] != '3' || version[1] != '.')
        return false;
    version[0] = '2';
    for (char *at = strstr(version, mark_device); at; at = strstr(at, mark_device)) {
        char *end = NULL;
        at += strlen(mark_device);
        unsigned long bits = strtoul(at, &end, 10);
        if (end == at || *end != '"')
            continue;
        memset(at, ' ', (size_t)(end - at)); /* hwloc's sscanf stops there */
        at[0] = device_of(bits);
    }
    return true;
}
