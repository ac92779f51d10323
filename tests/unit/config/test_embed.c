/* The build tool: what is wrong in the catalogue stops the build with one line. */
#include "support.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TOOL SHK_BUILD_DIR "/config/shk_config_embed"

/* Runs the tool on a folder's files; returns its exit status, its output in text. */
static int embed(const char *dir, const char *files, char *text, size_t size)
{
    char *command = shk_strf("%s %s/out.c %s %s 2>&1", TOOL, dir, dir, files);
    cr_assert_not_null(command);
    FILE *pipe = popen(command, "r");
    cr_assert_not_null(pipe);
    size_t len = fread(text, 1, size - 1, pipe);
    text[len] = '\0';
    int status = pclose(pipe);
    free(command);
    cr_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static bool has_output(const char *dir)
{
    char *path = shk_strf("%s/out.c", dir);
    bool has = access(path, F_OK) == 0;
    free(path);
    return has;
}

Test(embed, refuses)
{
    static const struct {
        const char *file, *yaml, *message;
    } cases[] = {
        {"settings/a.yaml", "- name: X\n\tfamily: nccl\n",
         "settings/a.yaml:2: YAML: a tab: indent with spaces (found a tab character that violates "
         "indentation)\n"},
        {"settings/a.yaml", "- name: X\n  famly: nccl\n",
         "settings/a.yaml:2: famly: unknown key of a setting, did you mean \"family\"?\n"},
        {"settings/a.yaml", SETTING_ROW("X") "  diagnosis: none-such\n",
         "settings/a.yaml:8: diagnosis: unknown diagnosis \"none-such\"\n"},
        {"profiles/a.yaml", PROFILE_ROW("a") "extends: a\n",
         "profiles/a.yaml:4: extends: a cycle: a -> a\n"},
        {"other/a.yaml", "", "other/a.yaml: not in a folder of the catalogue\n"},
    };
    for (size_t i = 0; i < SHK_COUNT(cases); i++) {
        char *dir = make_dir(), text[1024];
        write_file(dir, cases[i].file, cases[i].yaml);
        cr_expect_eq(embed(dir, cases[i].file, text, sizeof text), 1, "%s", text);
        cr_expect_str_eq(text, cases[i].message);
        cr_expect_not(has_output(dir));
        remove_tree(dir);
        free(dir);
    }
}

Test(embed, missing_file)
{
    char *dir = make_dir(), text[1024];
    cr_expect_eq(embed(dir, "settings/a.yaml", text, sizeof text), 1);
    cr_expect_not_null(strstr(text, "settings/a.yaml: cannot be read: No such file or directory"),
                       "%s", text);
    remove_tree(dir);
    free(dir);
}

Test(embed, output_that_cannot_be_written)
{
    char text[1024];
    char *dir = make_dir(), *command = shk_strf("%s /dev/full %s 2>&1", TOOL, dir);
    FILE *pipe = popen(command, "r");
    cr_assert_not_null(pipe);
    text[fread(text, 1, sizeof text - 1, pipe)] = '\0';
    cr_expect_eq(WEXITSTATUS(pclose(pipe)), 1);
    cr_expect_str_eq(text, "/dev/full: cannot be written: No space left on device\n");
    remove_tree(dir);
    free(command);
    free(dir);
}

Test(embed, accepts)
{
    char *dir = make_dir(), text[1024];
    write_file(dir, "settings/a.yaml",
               SETTING_ROW("X") SETTING_ROW("Y") "  default: 'a\"b\\c?\xc3\xa4'\n");
    write_file(dir, "profiles/a.yaml", PROFILE_ROW("a"));
    cr_expect_eq(embed(dir, "settings/a.yaml profiles/a.yaml", text, sizeof text), 0, "%s", text);
    cr_expect_str_eq(text, "");
    char *path = shk_strf("%s/out.c", dir), *source = NULL;
    size_t size;
    cr_assert_eq(shk_config_read(path, &source, &size, NULL), 0);
    struct shk_strbuf out = SHK_STRBUF_INIT;
    shk_strbuf_add(&out, source, size);
    cr_expect_not_null(strstr(shk_strbuf_text(&out), "a\\\"b\\\\c\\?\\303\\244"), "%s", out.data);
    cr_expect_not_null(
        strstr(shk_strbuf_text(&out), "{.rows = settings, .count = 2, .order = settings_order}"));
    cr_expect_null(strstr(shk_strbuf_text(&out), "diagnoses"));
    shk_strbuf_free(&out);
    free(source);
    free(path);
    remove_tree(dir);
    free(dir);
}
