#include "config/config.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#define SIG "- id: x\n  library: nccl\n  meaning: m\n  source: s\n"

static const struct {
    const char *folder, *yaml, *says;
} bad[] = {
    {"signatures", SIG "  role: context\n", "pattern"},
    {"signatures", SIG "  role: cause\n  pattern: \"some words\"\n", "diagnosis"},
    {"messages", SIG "  role: context\n  pattern: \"some words\"\n  texts: some other words\n",
     "either this, texts or object"},
    {"signatures", SIG "  role: guess\n  object: huge-pages\n", "goes with object"},
    {"signatures", SIG "  role: guess\n  pattern: \"some words\"\n  errors: [EIO]\n",
     "goes with object"},
    {"signatures", SIG "  role: cause\n  object: huge-pages\n  errors: [EIO]\n",
     "with an object it is guess"},
    {"signatures", SIG "  role: guess\n  object: no-such\n  errors: [EIO]\n",
     "unknown named object"},
    {"signatures", SIG "  role: guess\n  object: huge-pages\n  errors: [ENONE]\n",
     "unknown system error"},
    {"errors", "- {name: ENEW, number: 4, source: s s}\n", "either this or words"},
    {"errors", "- {name: ENEW, texts: [new], number: 0, source: s s}\n", "number"},
    {"objects", "- {key: new, pattern: 'new (', is: a, source: s s}\n", "does not end"},
    {"messages", SIG "  role: context\n  pattern: \"some words\"\n  after: \"words \"\n",
     "goes with texts"},
    {"messages", SIG "  role: context\n  texts: \"rank %d waits\"\n", "needs 16 fixed letters"},
    {"messages", SIG "  role: context\n  after: \"WARN \"\n  texts: \"%s: %d\"\n",
     "fewer than 8 fixed"},
    {"messages", SIG "  role: context\n  after: \"WARN \"\n  texts: \"lost %x of the ring\"\n",
     "only %s, %d"},
    {"signatures", SIG "  role: benign\n  pattern: \"some words\"\n  diagnosis: shm-too-small\n",
     "speaks for no cause"},
    {"signatures", SIG "  role: proof\n  pattern: \"some words\"\n", "proves"},
    {"signatures", SIG "  role: context\n  pattern: \"ends openly .*\"\n", "ends in *"},
    {"signatures", SIG "  role: context\n  pattern: \"may\\\\sleave\"\n", "leave the line"},
    {"signatures", SIG "  role: context\n  pattern: \"(some)?.{0,9}\"\n", "every line would match"},
    {"signatures", SIG "  role: context\n  pattern: \"some (words\"\n", "does not end"},
    {"signatures", SIG "  role: context\n  pattern: \"looks (?=ahead)\"\n", "(?i)"},
    {"signatures", SIG "  role: context\n  pattern: \"(ab){1,5000}c\"\n", "too large"},
    {"signatures", SIG "  role: context\n  pattern: \"some words\"\n  capture: \"(no) name\"\n",
     "no group"},
    {"signatures", SIG "  role: context\n  pattern: \"some words\"\n  differs: shm-too-small\n",
     "capture"},
    {"signatures", SIG "  role: cause\n  pattern: \"some words\"\n  diagnosis: shm-to-small\n",
     "did you mean \"shm-too-small\""},
    {"rules", "- {name: r, when: [], diagnosis: shm-too-small, weight: 5, why: w, source: s}\n",
     "empty"},
    {"rules",
     "- {name: r, when: [{setting: NCCL_NET}], diagnosis: shm-too-small, weight: 5, why: w, "
     "source: s}\n",
     "exactly one test"},
    {"rules",
     "- {name: r, when: [{setting: NCCL_NET, set: true, fact: a.b}], diagnosis: shm-too-small, "
     "weight: 5, why: w, source: s}\n",
     "exactly one of log"},
    {"rules",
     "- {name: r, when: [{log: no-such}], diagnosis: shm-too-small, weight: 5, why: w, source: "
     "s}\n",
     "unknown signature"},
    {"rules",
     "- {name: r, when: [{setting: NCCL_NET, set: true}], diagnosis: shm-too-small, weight: 0, "
     "why: w, source: s}\n",
     "zero"},
};

Test(signatures, bad_rows)
{
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct shk_config *config = NULL;
        struct shk_error err = {""};
        int rc = shk_config_load_buffer(&config, bad[i].folder, "x.yaml", bad[i].yaml,
                                        strlen(bad[i].yaml), &err);
        cr_expect_eq(rc, -EINVAL, "row %zu was taken", i);
        cr_expect_not_null(strstr(err.text, "x.yaml:"), "row %zu: %s", i, err.text);
        cr_expect_not_null(strstr(err.text, bad[i].says), "row %zu: %s", i, err.text);
        shk_config_free(config);
    }
}

Test(signatures, the_catalogue_has_what_diagnose_needs)
{
    struct shk_config *config = NULL;
    size_t count, sources = 0;
    cr_assert_eq(shk_config_load(&config, NULL, NULL, NULL), 0);
    const struct shk_signature *rows = shk_config_signatures(config, &count);
    cr_expect_geq(count, 300);
    for (size_t i = 0; i < count; i++)
        sources += strchr(rows[i].source, ':') || strchr(rows[i].source, ' ');
    cr_expect_eq(sources, count, "a signature without a place in its source");
    shk_config_free(config);
}
