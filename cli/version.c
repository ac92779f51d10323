#include "cli/commands.h"

#include <hwloc.h>
#include <jansson.h>

void shk_version_print(FILE *out)
{
    fprintf(out, "shakedown %s\n", SHK_VERSION);
    fprintf(out, "compiler  %s\n", __VERSION__);
    fprintf(out, "hwloc     %d.%d.%d\n", HWLOC_API_VERSION >> 16, (HWLOC_API_VERSION >> 8) & 0xff,
            HWLOC_API_VERSION & 0xff);
    fprintf(out, "jansson   %s\n", jansson_version_str());
}
