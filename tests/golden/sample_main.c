/* report_sample WHICH FORMAT: one report of the unit tests on stdout. WHICH is failing, healthy,
 * noted, cluster, thousand, empty, gpus, or the name of a hostile text; "list" prints all of them.
 */
#include "hostile.h"
#include "sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The failing node with a transport over GPUs, whose table is the widest. */
static void make_gpus(struct sample *s)
{
    static const char *const size =
        "{\"bytes\": %lld, \"count\": %lld, \"type\": \"bfloat16\", \"redop\": \"sum\", "
        "\"algorithm\": \"two-shot\", \"time_us\": 748.80, \"algbw\": 358.49, \"busbw\": 358.49, "
        "\"wrong\": 0, \"in_place_us\": 747.97, \"in_place_busbw\": 358.89, \"in_place_wrong\": 0, "
        "\"p50_us\": 748.80, \"p99_us\": 1751.20}";
    json_t *sizes = json_array();
    sample_failing(s);
    for (long long bytes = 1 << 20; bytes <= 1 << 28; bytes *= 4) {
        char text[512];
        snprintf(text, sizeof text, size, bytes, bytes / 4);
        json_array_append_new(sizes, json_loads(text, 0, NULL));
    }
    shk_facts_text(s->facts[0], "collective.peer.status", "ok", "test");
    shk_facts_int(s->facts[0], "collective.peer.ranks", 2, NULL, "test");
    shk_facts_present(s->facts[0], "collective.peer.sizes", sizes, NULL, "test");
}

static const struct {
    const char *name;
    void (*make)(struct sample *s);
} samples[] = {
    {"failing", sample_failing},   {"healthy", sample_healthy}, {"cluster", sample_cluster},
    {"thousand", sample_thousand}, {"empty", sample_empty},     {"noted", sample_noted},
    {"gpus", make_gpus},
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
