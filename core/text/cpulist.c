#include "core/text/cpulist.h"

#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>

bool shk_cpulist_next(const char **list_p, long *first_p, long *last_p)
{
    const char *list = *list_p;
    char *end;
    if (!list || !isdigit((unsigned char)*list))
        return false;
    *first_p = *last_p = strtol(list, &end, 10);
    if (*end == '-') {
        if (!isdigit((unsigned char)end[1]))
            return false;
        *last_p = strtol(end + 1, &end, 10);
    }
    *list_p = end + (*end == ',');
    return true;
}

bool shk_cpulist_valid(const char *list)
{
    long first, last;
    bool any = false;
    while (shk_cpulist_next(&list, &first, &last))
        any = true;
    return any && !*list && list[-1] != ',';
}

long long shk_cpulist_count(const char *list)
{
    long long count = 0;
    long first, last;
    while (shk_cpulist_next(&list, &first, &last))
        count += last >= first ? (long long)last - first + 1 : 0;
    return count;
}

long shk_cpulist_last(const char *list)
{
    long first, last, most = -1;
    while (shk_cpulist_next(&list, &first, &last))
        most = last > most ? last : most;
    return most;
}

bool shk_cpulist_has(const char *list, long cpu)
{
    long first, last;
    while (shk_cpulist_next(&list, &first, &last))
        if (cpu >= first && cpu <= last)
            return true;
    return false;
}

bool shk_cpulist_meet(const char *a, const char *b)
{
    long first, last, low, high;
    while (shk_cpulist_next(&a, &first, &last))
        for (const char *rest = b; shk_cpulist_next(&rest, &low, &high);)
            if (first <= high && low <= last)
                return true;
    return false;
}
