#include "core/regex/pattern.h"

#include "core/regex/regex.h"

#include <stddef.h>
#include <string.h>

bool shk_pattern_matches(const char *pattern, const char *text)
{
    struct shk_regex *regex = NULL;
    struct shk_regex_work *work = shk_regex_work_create();
    int rc = work ? shk_regex_create(&regex, pattern, NULL) : -1;
    bool hit = !rc && shk_regex_find(regex, work, text, strlen(text)) == 1;
    shk_regex_destroy(regex);
    shk_regex_work_destroy(work);
    return hit;
}
