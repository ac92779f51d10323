/* The catalogue that is built in: complete, and the same as its YAML. */
#include "support.h"

#include "config/load/builtin.h"
#include "config/schema/valid.h"

#include <criterion/criterion.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct shk_config *config;

static void setup(void)
{
    struct shk_error err = {""};
    cr_assert_eq(shk_config_load(&config, NULL, NULL, &err), 0, "%s", err.text);
}

static void teardown(void)
{
    shk_config_free(config);
}

TestSuite(catalogue, .init = setup, .fini = teardown);

Test(catalogue, every_setting_has_reader_grammar_and_source)
{
    size_t count;
    const struct shk_setting *settings = shk_config_settings(config, &count);
    for (size_t i = 0; i < count; i++) {
        const struct shk_setting *s = &settings[i];
        cr_expect(s->readers_count > 0 || s->kind == SHK_SETTING_FOLKLORE, "%s", s->place);
        cr_expect_lt(s->grammar.type, SHK_VALUE_COUNT, "%s", s->place);
        cr_expect(s->source && *s->source, "%s", s->place);
        cr_expect(s->effect && *s->effect, "%s", s->place);
        cr_expect(s->place && strncmp(s->place, "config/settings/", 16) == 0, "%s", s->name);
        cr_expect_eq(shk_config_setting(config, s->name), s, "%s", s->name);
    }
}

/* Folklore and deprecated names are of use only with the control that does work. */
Test(catalogue, replaced_names_exist)
{
    size_t count;
    const struct shk_setting *settings = shk_config_settings(config, &count);
    for (size_t i = 0; i < count; i++) {
        const char *other = settings[i].replaced_by;
        struct shk_why why;
        if (other && shk_valid_variable(other, &why))
            cr_expect_not_null(shk_config_setting(config, other), "%s: replaced-by: %s",
                               settings[i].place, other);
    }
}

Test(catalogue, every_reference_is_known)
{
    size_t settings_count, profiles_count, diagnoses_count;
    const struct shk_setting *settings = shk_config_settings(config, &settings_count);
    const struct shk_profile *profiles = shk_config_profiles(config, &profiles_count);
    const struct shk_diagnosis *diagnoses = shk_config_diagnoses(config, &diagnoses_count);
    for (size_t i = 0; i < settings_count; i++)
        if (settings[i].diagnosis)
            cr_expect_not_null(shk_config_diagnosis(config, settings[i].diagnosis), "%s: %s",
                               settings[i].place, settings[i].diagnosis);
    for (size_t i = 0; i < profiles_count; i++)
        for (size_t j = 0; j < profiles[i].settings_count; j++)
            cr_expect_not_null(shk_config_setting(config, profiles[i].settings[j].name), "%s: %s",
                               profiles[i].place, profiles[i].settings[j].name);
    for (size_t i = 0; i < diagnoses_count; i++)
        for (const char *const *key = diagnoses[i].explains; key && *key; key++)
            cr_expect_not_null(shk_config_diagnosis(config, *key), "%s: %s", diagnoses[i].place,
                               *key);
}

Test(catalogue, profiles_can_be_chosen)
{
    size_t count;
    const struct shk_profile *profiles = shk_config_profiles(config, &count);
    for (size_t i = 0; i < count; i++) {
        const struct shk_profile *p = &profiles[i];
        int weight = 0;
        for (size_t j = 0; j < p->signals_count; j++)
            weight += p->signals[j].weight;
        cr_expect(p->abstract || weight >= 2 || strcmp(p->name, "single-node") == 0,
                  "%s: its signals cannot reach the 2 that detection needs", p->place);
        cr_expect_not(p->abstract && p->signals_count, "%s: signals of an abstract profile",
                      p->place);
    }
}

/* Depth first; a cause must not come back to itself over its effects. */
static bool leads_to(const char *from, const char *key, size_t depth)
{
    const struct shk_diagnosis *row = depth ? shk_config_diagnosis(config, from) : NULL;
    for (const char *const *next = row ? row->explains : NULL; next && *next; next++)
        if (strcmp(*next, key) == 0 || leads_to(*next, key, depth - 1))
            return true;
    return false;
}

Test(catalogue, causes_do_not_explain_each_other)
{
    size_t count;
    const struct shk_diagnosis *rows = shk_config_diagnoses(config, &count);
    for (size_t i = 0; i < count; i++)
        cr_expect_not(leads_to(rows[i].key, rows[i].key, 8), "%s: %s explains itself",
                      rows[i].place, rows[i].key);
}

Test(catalogue, every_diagnosis_says_how_it_shows_and_is_confirmed)
{
    size_t count;
    const struct shk_diagnosis *rows = shk_config_diagnoses(config, &count);
    cr_assert_gt(count, 140);
    for (size_t i = 0; i < count; i++) {
        const struct shk_diagnosis *row = &rows[i];
        cr_expect(row->shows && row->confirm, "%s: %s", row->place, row->key);
        for (const char *const *key = row->explains; key && *key; key++) {
            const struct shk_diagnosis *effect = shk_config_diagnosis(config, *key);
            cr_expect(effect && !effect->benign, "%s: explains the harmless %s", row->place, *key);
            cr_expect(!row->symptom || (effect && effect->symptom),
                      "%s: a symptom explains the cause %s", row->place, *key);
        }
    }
}

/* Quoted words of lines that speak of a diagnosis, in the source of a check. */
static size_t keys_of_source(const char *path)
{
    char *data = NULL, *save = NULL;
    size_t size = 0, found = 0;
    struct shk_error err = {""};
    cr_assert_eq(shk_config_read(path, &data, &size, &err), 0, "%s", err.text);
    char *text = strndup(data, size);
    free(data);
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        const char *word = strstr(line, "diagnosis");
        word = word ? strchr(word, '"') : NULL;
        size_t len = word ? strspn(word + 1, "abcdefghijklmnopqrstuvwxyz0123456789-") : 0;
        if (!len || word[len + 1] != '"')
            continue;
        char *key = strndup(word + 1, len);
        cr_expect_not_null(shk_config_diagnosis(config, key), "%s: %s", path, key);
        free(key);
        found++;
    }
    free(text);
    return found;
}

Test(catalogue, diagnoses_of_the_checks_exist)
{
    size_t found = 0;
    glob_t sources = {0};
    cr_assert_eq(glob(SHK_TESTS_DIR "/../checks/*/*.c", 0, NULL, &sources), 0);
    for (size_t i = 0; i < sources.gl_pathc; i++)
        found += keys_of_source(sources.gl_pathv[i]);
    globfree(&sources);
    cr_expect_gt(found, 10);
}

/* Every built-in row is found by its name, borrowed as well as after a file has added one. */
Test(catalogue, built_in_is_found)
{
    static const char row[] = SETTING_ROW("A_SITES_OWN");
    struct shk_config *plain = NULL, *more = NULL;
    struct shk_error err = {""};
    cr_assert_eq(shk_config_load(&plain, NULL, NULL, &err), 0, "%s", err.text);
    cr_assert_eq(shk_config_load_buffer(&more, "settings", "x.yaml", row, sizeof row - 1, &err), 0,
                 "%s", err.text);
    for (enum shk_section s = 0; s < SHK_SECTION_COUNT; s++)
        for (size_t i = 0; i < shk_builtin[s].count; i++) {
            const struct shk_record *record = shk_sections[s].record;
            const char *at = (const char *)shk_builtin[s].rows + i * record->size;
            const char *name = *(const char *const *)(const void *)(at + record->name_offset);
            size_t borrowed, owned;
            cr_assert(shk_table_find(&plain->tables[s], record, name, &borrowed), "%s", name);
            cr_assert(shk_table_find(&more->tables[s], record, name, &owned), "%s", name);
            cr_assert_eq(borrowed, i);
            cr_assert_eq(owned, i);
        }
    cr_expect_null(shk_config_setting(plain, "A_SITES_OWN"));
    cr_expect_null(shk_config_setting(plain, ""));
    cr_expect_null(shk_config_setting(plain, "~"));
    cr_expect_not_null(shk_config_setting(more, "A_SITES_OWN"));
    shk_config_free(plain);
    shk_config_free(more);
}

/* The generated tables and the YAML files say the same. */
Test(catalogue, built_in_equals_yaml)
{
    struct shk_config *parsed = shk_config_create();
    struct shk_error err = {""};
    cr_assert_not_null(parsed);
    cr_assert_eq(shk_config_add_dir(parsed, CATALOGUE, true, &err), 0, "%s", err.text);
    for (enum shk_section s = 0; s < SHK_SECTION_COUNT; s++) {
        struct shk_strbuf want = SHK_STRBUF_INIT, got = SHK_STRBUF_INIT;
        struct shk_table *table = &parsed->tables[s];
        const struct shk_record *record = shk_sections[s].record;
        cr_assert_eq(table->count, shk_builtin[s].count, "%s", shk_sections[s].folder);
        for (size_t i = 0; i < table->count; i++) { /* the path is another one */
            const char **place =
                (const char **)(void *)(table->rows + i * record->size + record->place_offset);
            *place += strlen(CATALOGUE) - strlen("config");
        }
        shk_schema_emit(&want, record, table->rows, table->count, "rows");
        shk_schema_emit(&got, record, shk_builtin[s].rows, shk_builtin[s].count, "rows");
        cr_assert_not(want.failed || got.failed);
        cr_expect_eq(want.len, got.len, "%s", shk_sections[s].folder);
        cr_expect(strcmp(shk_strbuf_text(&want), shk_strbuf_text(&got)) == 0, "%s",
                  shk_sections[s].folder);
        shk_strbuf_free(&want);
        shk_strbuf_free(&got);
    }
    shk_config_free(parsed);
}

/* The page's tables are those of the schema; config/shk_config_embed --markdown prints them. */
Test(catalogue, documentation_is_up_to_date)
{
    char *page = NULL;
    size_t size = 0;
    struct shk_error err = {""};
    cr_assert_eq(shk_config_read(SHK_TESTS_DIR "/../docs/config.md", &page, &size, &err), 0, "%s",
                 err.text);
    struct shk_strbuf text = SHK_STRBUF_INIT;
    shk_strbuf_add(&text, page, size);
    free(page);
    for (enum shk_section s = 0; s <= SHK_SECTION_COUNT; s++) {
        struct shk_strbuf table = SHK_STRBUF_INIT;
        bool of_terms = s == SHK_SECTION_COUNT;
        shk_schema_markdown(&table, of_terms ? &shk_record_term : shk_sections[s].record);
        cr_expect_not_null(strstr(shk_strbuf_text(&text), shk_strbuf_text(&table)), "%s:\n%s",
                           of_terms ? "when" : shk_sections[s].folder, shk_strbuf_text(&table));
        shk_strbuf_free(&table);
    }
    shk_strbuf_free(&text);
}

/* Start-up pays for copying rows, not for parsing: 10 ms even with sanitizers. */
Test(catalogue, loads_fast)
{
    struct timespec a, b;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
    for (int i = 0; i < 10; i++) {
        struct shk_config *again = NULL;
        cr_assert_eq(shk_config_load(&again, NULL, NULL, NULL), 0);
        shk_config_free(again);
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
    double ms = ((double)(b.tv_sec - a.tv_sec) * 1e3 + (double)(b.tv_nsec - a.tv_nsec) / 1e6) / 10;
    cr_expect_lt(ms, 10, "%.2f ms", ms);
}
