#include "core/text/pattern.h"

#include <regex.h>
#include <stddef.h>

bool shk_pattern_matches(const char *pattern, const char *text)
{
    regex_t re;
    if (regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB) != 0)
        return false;
    bool hit = regexec(&re, text, 0, NULL, 0) == 0;
    regfree(&re);
    return hit;
}
