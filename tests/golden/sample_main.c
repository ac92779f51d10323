/* report_sample WHICH FORMAT: one report of the unit tests on stdout. WHICH is failing, healthy,
 * noted, cluster, thousand, empty, or the name of a hostile text; "list" prints all of them. */
#include "hostile.h"
#include "sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    void (*make)(struct sample *s);
} samples[] = {
    {"failing", sample_failing},   {"healthy", sample_healthy}, {"cluster", sample_cluster},
    {"thousand", sample_thousand}, {"empty", sample_empty},     {"noted", sample_noted},
};

static void list(void)
{
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
        puts(samples[i].name);
    for (size_t i = 0; i < hostile_count; i++)
        puts(hostile_texts[i].name);
}

static int make(struct sample *s, const char *which)
{
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        if (strcmp(samples[i].name, which) == 0) {
            samples[i].make(s);
            return 0;
        }
    }
    for (size_t i = 0; i < hostile_count; i++) {
        if (strcmp(hostile_texts[i].name, which) == 0) {
            sample_hostile(s, hostile_texts[i].text);
            return 0;
        }
    }
    return -1;
}

int main(int argc, char **argv)
{
    struct sample s;
    if (argc == 2 && strcmp(argv[1], "list") == 0) {
        list();
        return 0;
    }
    const struct shk_format *format = argc == 3 ? shk_format_find(argv[2]) : NULL;
    if (!format || make(&s, argv[1])) {
        fprintf(stderr, "usage: report_sample list | report_sample WHICH FORMAT\n");
        return 2;
    }
    int rc = format->render(&s.report, &s.options, stdout);
    sample_free(&s);
    return rc ? 1 : 0;
}
