#include "core/job/pairspeed.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

TestSuite(pairspeed, .timeout = 100);

/* A run of one pair with two parts: latencies, waits of the ping-pongs, GB/s, waits of the puts. */
#define RUN(l0, l1, w, b0, b1, p)                                                                  \
    "{'latency_us': [" #l0 "," #l1 "], 'ping_wait_us': [" #w "," #w "], 'bandwidth': [" #b0        \
    "," #b1 "], 'mean_us': [50, 50], 'put_wait_us': [" #p "," #p "]}"
#define FAST                     RUN(2, 2, 0, 20, 20, 0)
#define PAIR(a, b, first, again) "{'a': '" a "', 'b': '" b "', 'runs': [" first "," again "]}"
#define ROWS(pairs, rows)        "{'pairs': " #pairs ", 'runs': 2, 'bytes': 1048576, 'rows': [" rows "]}"

/* Four nodes that all meet; those with d are given. */
#define WITH_D(first, again)                                                                       \
    ROWS(6, PAIR("a", "b", FAST, FAST) "," PAIR("a", "c", FAST, FAST) "," PAIR(                    \
                "b", "c", FAST, FAST) "," PAIR("a", "d", first,                                    \
                                               again) "," PAIR("b", "d", first,                    \
                                                               again) "," PAIR("c", "d", first,    \
                                                                               again))

static int pairspeed_of(const char *text, char **slow_p)
{
    char *quoted = strdup(text);
    for (char *p = quoted; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    json_t *measured = json_loads(quoted, 0, NULL);
    struct shk_pairspeed speed;
    cr_assert_not_null(measured, "%s", quoted);
    int rc = shk_pairspeed_of(measured, &speed);
    *slow_p = rc ? NULL : json_dumps(speed.slow, JSON_COMPACT | JSON_REAL_PRECISION(3));
    shk_pairspeed_clear(&speed);
    json_decref(measured);
    free(quoted);
    return rc;
}

Test(pairspeed, judged)
{
    static const char slow_d[] =
        "[{\"nodes\":[\"d\"],\"what\":\"latency_us\",\"value\":9.0,\"median\":2.0}]";
    static const struct {
        const char *what, *measured, *slow;
    } cases[] = {
        {"alike", WITH_D(FAST, FAST), "[]"},
        {"no pair at all", ROWS(0, ""), "[]"},
        {"a node", WITH_D(RUN(9, 9, 0, 20, 20, 0), RUN(9, 9, 0, 20, 20, 0)), slow_d},
        {"in one part only", WITH_D(RUN(9, 2, 0, 20, 20, 0), RUN(9, 9, 0, 20, 20, 0)), "[]"},
        {"in one run only", WITH_D(RUN(9, 9, 0, 20, 20, 0), FAST), "[]"},
        {"not measured again", WITH_D(RUN(9, 9, 0, 20, 20, 0), "null"), "[]"},
        {"for want of a CPU", WITH_D(RUN(9, 9, 6, 20, 20, 0), RUN(9, 9, 6, 20, 20, 0)), "[]"},
        {"not twice the median", WITH_D(RUN(3, 3, 0, 20, 20, 0), RUN(3, 3, 0, 20, 20, 0)), "[]"},
        {"bandwidth", WITH_D(RUN(2, 2, 0, 5, 5, 0), RUN(2, 2, 0, 4, 4, 0)),
         "[{\"nodes\":[\"d\"],\"what\":\"bandwidth\",\"value\":4.0,\"median\":20.0}]"},
        {"a pair of good nodes",
         ROWS(4, PAIR("a", "b", FAST, FAST) "," PAIR("a", "c", FAST, FAST) "," PAIR(
                     "b", "d", FAST, FAST) "," PAIR("c", "d", RUN(9, 9, 0, 20, 20, 0),
                                                    RUN(9, 9, 0, 20, 20, 0))),
         "[{\"nodes\":[\"c\",\"d\"],\"what\":\"latency_us\",\"value\":9.0,\"median\":2.0}]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *slow = NULL;
        cr_expect_eq(pairspeed_of(cases[i].measured, &slow), 0, "%s", cases[i].what);
        cr_expect_str_eq(slow, cases[i].slow, "%s: %s", cases[i].what, slow);
        free(slow);
    }
}

Test(pairspeed, of_another_form)
{
    static const char *const bad[] = {
        "{}",
        "[]",
        ROWS(2, PAIR("a", "b", FAST, FAST)), /* a row is missing */
        ROWS(1, "{'a': 'a', 'b': 'b', 'runs': [" FAST "]}"),
        ROWS(1, PAIR("a", "a", FAST, FAST)),
        ROWS(1, "{'a': 1, 'b': 'b', 'runs': [" FAST "," FAST "]}"),
        ROWS(1, PAIR("a", "b", FAST, "{}")),
        ROWS(1, PAIR("a", "b", FAST, "7")),
        ROWS(1, PAIR("a", "b", FAST, RUN(2, null, 0, 20, 20, 0))),
        "{'pairs': 0, 'runs': 0, 'bytes': 1, 'rows': []}",
        "{'pairs': 0, 'runs': 1, 'bytes': 0, 'rows': []}",
        "{'pairs': 0, 'runs': 1, 'bytes': 1, 'rows': {}}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char *slow = NULL;
        cr_expect_eq(pairspeed_of(bad[i], &slow), -22, "%s", bad[i]);
        free(slow);
    }
}
