/* Known defects of releases: what a row must have, and which releases a range holds. */
#include "config/defects.h"
#include "config/load/load.h"
#include "support.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#define ROW(library, releases, sign)                                                               \
    "- name: d\n  library: " library "\n  title: T\n  meaning: M.\n  releases: " releases "\n"     \
    "  source: s\n" sign

static const struct {
    const char *name, *yaml, *error;
} cases[] = {
    {"unknown library", ROW("ncl", "[{from: \"1\"}]", "  pattern: sign\n  advice: a\n"),
     "not a library whose releases are known, did you mean \"nccl\"?"},
    {"no sign", ROW("nccl", "[{fixed-in: \"2.1\"}]", ""),
     "pattern: or signs or when is needed: how it shows"},
    {"no releases", ROW("nccl", "[]", "  pattern: sign\n"), "releases: is empty"},
    {"a range without an end", ROW("nccl", "[{}]", "  pattern: sign\n"),
     "from: or fixed-in is needed"},
    {"a range of nothing",
     ROW("nccl", "[{from: \"2.10\", fixed-in: \"2.9\"}]", "  pattern: sign\n"),
     "fixed-in: is not after from"},
    {"no way out", ROW("nccl", "[{from: \"2.10\"}]", "  pattern: sign\n"),
     "advice: or fix is needed, where no release is without it"},
    {"not a version", ROW("nccl", "[{from: new}]", "  pattern: sign\n  advice: a\n"), "from: "},
    {"specific without a line",
     ROW("nccl", "[{fixed-in: \"2.1\"}]",
         "  specific: true\n  when: [{fact: host.virt, is: [kvm]}]\n"),
     "specific: needs a line"},
    {"a difference", ROW("nccl", "[{fixed-in: \"2.1\"}]", "  when: [{differs: host.virt}]\n"),
     "when: differs is for rules"},
    {"unknown signature", ROW("nccl", "[{fixed-in: \"2.1\"}]", "  signs: [nccl-versoin]\n"),
     "unknown signature \"nccl-versoin\""},
    {"unknown diagnosis",
     ROW("nccl", "[{fixed-in: \"2.1\"}]", "  pattern: sign\n  diagnosis: release-defct\n"),
     "unknown diagnosis \"release-defct\""},
};

Test(defects, bad_rows)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct shk_config *config = NULL;
        struct shk_error err = {""};
        int rc = shk_config_load_buffer(&config, "defects", "d.yaml", cases[i].yaml,
                                        strlen(cases[i].yaml), &err);
        cr_expect_eq(rc, -EINVAL, "%s: %d", cases[i].name, rc);
        cr_expect(strncmp(err.text, "d.yaml:", 7) == 0 && strstr(err.text, cases[i].error),
                  "%s: %s", cases[i].name, err.text);
        cr_expect_null(config);
    }
}

Test(defects, a_name_of_a_signature)
{
    static const char yaml[] = "- name: nccl-version\n  library: nccl\n  title: T\n  meaning: M.\n"
                               "  releases: [{fixed-in: \"2.1\"}]\n  pattern: sign\n  source: s\n";
    struct shk_config *config = NULL;
    struct shk_error err = {""};
    cr_expect_eq(shk_config_load_buffer(&config, "defects", "d.yaml", yaml, strlen(yaml), &err),
                 -EINVAL);
    cr_expect_str_eq(err.text, "d.yaml:1: name: a signature is called \"nccl-version\", too");
}

Test(defects, branches)
{
    static const struct shk_defect_range ranges[] = {
        {.fixed_in = "2.10.4"}, {.from = "2.11", .fixed_in = "2.11.2"}, {.from = "3.0.1"}};
    static const struct shk_defect defect = {.releases = ranges, .releases_count = 3};
    static const struct {
        const char *version;
        int range; /* -1: none */
    } rows[] = {{"1.0", 0},     {"2.9.9", 0},    {"2.10.3-1", 0}, {"2.10.3+cuda12.2", 0},
                {"2.10.4", -1}, {"2.10.12", -1}, {"2.11", 1},     {"2.11.1", 1},
                {"2.11.2", -1}, {"2.12", -1},    {"3.0.0", -1},   {"3.0.1", 2},
                {"v3.1", 2},    {"10.0", 2},     {"2.11.2-1", -1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_expect_eq(shk_defect_range_of(&defect, rows[i].version),
                     rows[i].range < 0 ? NULL : &ranges[rows[i].range], "%s", rows[i].version);
}

Test(defects, every_library_has_a_line_that_names_its_release)
{
    struct shk_config *config = NULL;
    struct shk_error err = {""};
    size_t defects, signatures;
    cr_assert_eq(shk_config_load(&config, NULL, NULL, &err), 0, "%s", err.text);
    const struct shk_defect *all = shk_config_defects(config, &defects);
    const struct shk_signature *sigs = shk_config_signatures(config, &signatures);
    for (size_t i = 0; i < defects; i++) {
        bool found = shk_defect_library(all[i].library)->versions[0] != NULL;
        for (size_t k = 0; k < signatures && !found; k++)
            found = sigs[k].version_of && strcmp(sigs[k].version_of, all[i].library) == 0;
        cr_expect(found, "%s: %s", all[i].place, all[i].library);
    }
    cr_expect_gt(defects, 0);
    shk_config_free(config);
}
