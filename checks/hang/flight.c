/* What PyTorch's flight recorder wrote of the ranks during the look (probes/dumps/flight.h), where
 * they stand as well: who has not called, or not begun on its GPU, what the others wait in. */
#include "checks/hang/hang_private.h"

#include <string.h>

static char *flight_where(const json_t *finding, const json_t *most)
{
    const char *code = hang_text(finding, "code"), *call = hang_text(finding, "call");
    long number = hang_number(finding, "collective");
    if (strcmp(code, "unbegun") == 0)
        return shk_strf(
            "%s, collective %ld, has not begun on its GPU, where what was enqueued before "
            "it does not end; it runs on the others",
            call, number);
    if (strcmp(code, "size") == 0)
        return shk_strf("it called %s, collective %ld, with another size or type than the others",
                        call, number);
    if (most)
        return shk_strf("collective %ld is %s for it, and %s for the others", number, call,
                        hang_text(most, "call"));
    return shk_strf("it has not called %s, collective %ld", call, number);
}

static size_t flight_mark(const struct hang_case *c, const json_t *finding, const json_t *most,
                          bool *behind)
{
    size_t marked = 0;
    for (size_t i = 0; i < c->count; i++) {
        struct hang_place *place = &c->places[i];
        if (behind[i] || place->kind != HANG_CALL || place->number < 0 ||
            !hang_lists(finding, "ranks", place->number))
            continue;
        behind[i] = true;
        marked++;
        place->kind = HANG_BEHIND;
        place->moving &= place->call->kind != SHK_WAIT_GPU; /* it polls the GPU */
        place->where = flight_where(finding, most);
    }
    return marked;
}

/* Of what ranks called in one place of the sequence the kind that more than half of the job have.
 */
static const json_t *flight_most(const struct hang_case *c, const json_t *findings,
                                 const json_t *of)
{
    size_t i;
    json_t *other;
    json_array_foreach(findings, i, other)
    {
        const char *code = hang_text(other, "code");
        if (code && strcmp(code, hang_text(of, "code")) == 0 &&
            hang_number(other, "collective") == hang_number(of, "collective") &&
            2 * json_array_size(json_object_get(other, "ranks")) > c->count)
            return other;
    }
    return NULL;
}

static size_t flight_one(const struct hang_case *c, const json_t *findings, const json_t *finding,
                         struct behind_marks *marks)
{
    const char *code = hang_text(finding, "code");
    size_t ranks = json_array_size(json_object_get(finding, "ranks"));
    if (!code || !hang_text(finding, "call"))
        return 0;
    if (strcmp(code, "order") == 0 || strcmp(code, "size") == 0) {
        const json_t *most = flight_most(c, findings, finding);
        marks->apart |= !most;
        return most && most != finding ? flight_mark(c, finding, most, marks->behind) : 0;
    }
    for (size_t i = 0; strcmp(code, "open") == 0 && marks->open && i < c->count; i++)
        marks->open[i] |=
            c->places[i].number >= 0 && hang_lists(finding, "ranks", c->places[i].number);
    bool names = strcmp(code, "behind") == 0 || strcmp(code, "unbegun") == 0;
    return names && 2 * ranks <= c->count ? flight_mark(c, finding, NULL, marks->behind) : 0;
}

size_t hang_flight(const struct hang_case *c, const json_t *node, struct behind_marks *marks)
{
    size_t i, marked = 0;
    json_t *finding;
    const json_t *findings = json_object_get(node, "flight");
    json_array_foreach(findings, i, finding)
    {
        if (marks->behind)
            marked += flight_one(c, findings, finding, marks);
    }
    /* what they launched after they parted tells nothing */
    if (marks->apart)
        marks->behind = NULL;
    return marked;
}
