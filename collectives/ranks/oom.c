#include "collectives/ranks/oom.h"
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

void shk_oom_offer(void)
{
    static const char most[] = "1000";
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    if (fd >= 0) {
        (void)!write(fd, most, sizeof most - 1);
        close(fd);
    }
}

uint64_t shk_oom_kills(void)
{
    FILE *file = fopen("/proc/vmstat", "re");
    uint64_t kills = UINT64_MAX;
    char line[128];

    while (file && fgets(line, sizeof line, file) &&
           sscanf(line, "oom_kill %" SCNu64, &kills) != 1) {
    }
    if (file)
        fclose(file);
    return kills;
}
