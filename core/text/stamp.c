#include "core/text/stamp.h"

#include <string.h>
#include <time.h>

void shk_stamp(char text[SHK_STAMP], long long seconds)
{
    time_t t = (time_t)seconds;
    struct tm tm;
    *text = '\0';
    if (t == seconds && gmtime_r(&t, &tm) && !strftime(text, SHK_STAMP, "%Y-%m-%dT%H:%M:%SZ", &tm))
        *text = '\0';
}

long long shk_stamp_read(const char *text)
{
    struct tm tm = {0};
    const char *end = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
    if (end && *end == '.')
        end += 1 + strspn(end + 1, "0123456789");
    if (!end || (strcmp(end, "Z") != 0 && strcmp(end, "+00:00") != 0))
        return -1;
    time_t t = timegm(&tm);
    return t < 0 ? -1 : (long long)t;
}
