/* Files, folders and layers. */
#include "support.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Loads and returns the message without the folder's name in front. */
static const char *load_error(const char *dir, int want, struct shk_error *err)
{
    struct shk_config *config = NULL;
    int rc = shk_config_load(&config, NULL, dir, err);
    cr_expect_eq(rc, want, "status %d: %s", rc, err->text);
    cr_expect_null(config);
    size_t len = strlen(dir);
    cr_expect_eq(strncmp(err->text, dir, len), 0, "%s", err->text);
    return strlen(err->text) > len ? err->text + len : "";
}

Test(load, built_in_alone)
{
    struct shk_config *config = NULL;
    struct shk_error err = {""};
    size_t settings, profiles, diagnoses;
    cr_assert_eq(shk_config_load(&config, NULL, NULL, &err), 0, "%s", err.text);
    shk_config_settings(config, &settings);
    shk_config_profiles(config, &profiles);
    shk_config_diagnoses(config, &diagnoses);
    cr_expect_gt(settings, 0);
    cr_expect_gt(profiles, 0);
    cr_expect_not_null(shk_config_profile(config, "single-node"));
    cr_expect_null(shk_config_profile(config, "single-nod"));
    cr_expect_null(shk_config_setting(config, ""));
    cr_expect_null(shk_config_setting(config, NULL));
    cr_expect_null(shk_config_diagnosis(config, "no-such-key"));
    shk_config_free(config);
    shk_config_free(NULL);
}

Test(load, no_such_folder)
{
    struct shk_error err;
    char *dir = make_dir();
    remove_tree(dir);
    cr_expect_str_eq(load_error(dir, -ENOENT, &err),
                     ": configuration folder cannot be read: No such file or directory");
    free(dir);
}

Test(load, folder_is_a_file)
{
    struct shk_error err;
    char *dir = make_dir();
    remove_tree(dir);
    char *slash = strrchr(dir, '/');
    *slash = '\0';
    write_file(dir, slash + 1, "x");
    *slash = '/';
    cr_expect_str_eq(load_error(dir, -ENOTDIR, &err),
                     ": configuration folder cannot be read: Not a directory");
    unlink(dir);
    free(dir);
}

Test(load, nothing_of_ours)
{
    struct shk_error err;
    char *dir = make_dir();
    cr_expect_str_eq(
        load_error(dir, -ENOENT, &err),
        ": has none of the folders settings, profiles, diagnoses, conflicts, "
        "diff, signatures, rules, names, fixes, calls, codes, defects, errors, objects");
    write_file(dir, "a.yaml", SETTING_ROW("X"));
    write_file(dir, "docs/readme", "x");
    cr_expect_str_eq(
        load_error(dir, -ENOENT, &err),
        ": has none of the folders settings, profiles, diagnoses, conflicts, "
        "diff, signatures, rules, names, fixes, calls, codes, defects, errors, objects");
    remove_tree(dir);
    free(dir);
}

Test(load, misspelt_folder)
{
    struct shk_error err;
    char *dir = make_dir();
    write_file(dir, "setting/a.yaml", SETTING_ROW("X"));
    cr_expect_str_eq(load_error(dir, -EINVAL, &err),
                     "/setting: unknown folder, did you mean \"settings\"?");
    remove_tree(dir);
    free(dir);
}

Test(load, yml)
{
    struct shk_error err;
    char *dir = make_dir();
    write_file(dir, "settings/a.yml", SETTING_ROW("X"));
    cr_expect_str_eq(load_error(dir, -EINVAL, &err),
                     "/settings/a.yml: only files named *.yaml are read");
    remove_tree(dir);
    free(dir);
}

Test(load, other_files_are_left_alone)
{
    struct shk_config *config = NULL;
    struct shk_error err = {""};
    char *dir = make_dir();
    write_file(dir, "settings/README", "\tnot YAML");
    write_file(dir, "settings/a.yaml~", "\tnot YAML");
    write_file(dir, "settings/.a.yaml", "\tnot YAML");
    write_file(dir, "settings/.yaml", "\tnot YAML");
    write_file(dir, "settings/b.yaml", "# nothing yet\n");
    write_file(dir, "settings/c.yaml", "");
    write_file(dir, "slurm/x.yaml", "\tnot YAML");
    write_file(dir, "signatures/x.txt", "\tnot YAML");
    cr_assert_eq(shk_config_load(&config, NULL, dir, &err), 0, "%s", err.text);
    shk_config_free(config);
    remove_tree(dir);
    free(dir);
}

Test(load, not_a_regular_file)
{
    struct shk_error err;
    char *dir = make_dir();
    char *path = shk_strf("%s/settings/a.yaml", dir);
    write_file(dir, "settings/x", "");
    cr_assert_eq(mkfifo(path, 0666), 0);
    cr_expect_str_eq(load_error(dir, -EINVAL, &err), "/settings/a.yaml: not a regular file");
    unlink(path);
    cr_assert_eq(mkdir(path, 0777), 0);
    cr_expect_str_eq(load_error(dir, -EINVAL, &err), "/settings/a.yaml: not a regular file");
    rmdir(path);
    cr_assert_eq(symlink("/dev/zero", path), 0);
    cr_expect_str_eq(load_error(dir, -EINVAL, &err), "/settings/a.yaml: not a regular file");
    unlink(path);
    cr_assert_eq(symlink("nowhere", path), 0);
    cr_expect_str_eq(load_error(dir, -ENOENT, &err),
                     "/settings/a.yaml: cannot be read: No such file or directory");
    unlink(path);
    cr_assert_eq(symlink("a.yaml", path), 0);
    cr_expect_str_eq(load_error(dir, -ELOOP, &err),
                     "/settings/a.yaml: cannot be read: Too many levels of symbolic links");
    remove_tree(dir);
    free(path);
    free(dir);
}

Test(load, unreadable)
{
    struct shk_error err;
    char *dir = make_dir();
    char *path = shk_strf("%s/settings/a.yaml", dir);
    write_file(dir, "settings/a.yaml", SETTING_ROW("X"));
    cr_assert_eq(chmod(dir, 0755), 0);
    cr_assert_eq(chmod(path, 0), 0);
    if (geteuid() == 0)
        cr_assert_eq(seteuid(65534), 0); /* root reads everything */
    bool reachable = access(dir, X_OK) == 0;
    if (!reachable) {
        cr_skip_test("the build folder cannot be reached without root's rights");
    }
    cr_expect_str_eq(load_error(dir, -EACCES, &err),
                     "/settings/a.yaml: cannot be read: Permission denied");
    if (getuid() == 0)
        cr_assert_eq(seteuid(0), 0);
    remove_tree(dir);
    free(path);
    free(dir);
}

Test(load, ten_megabyte_file)
{
    struct shk_error err;
    char *dir = make_dir();
    char *path = shk_strf("%s/settings/a.yaml", dir);
    write_file(dir, "settings/a.yaml", "# big\n");
    cr_assert_eq(truncate(path, 10 << 20), 0);
    cr_expect_str_eq(load_error(dir, -EFBIG, &err), "/settings/a.yaml: larger than 4 MiB");
    remove_tree(dir);
    free(path);
    free(dir);
}

Test(load, binary_junk)
{
    struct shk_error err;
    char *dir = make_dir();
    write_file(dir, "diagnoses/a.yaml",
               "\x7f"
               "ELF\x02\x01\x01");
    cr_expect_str_eq(load_error(dir, -EINVAL, &err),
                     "/diagnoses/a.yaml:1: YAML: control characters are not allowed");
    remove_tree(dir);
    free(dir);
}

Test(load, twice_in_one_folder)
{
    struct shk_error err;
    char *dir = make_dir();
    write_file(dir, "settings/a.yaml", SETTING_ROW("X"));
    write_file(dir, "settings/b.yaml", "\n" SETTING_ROW("Y") SETTING_ROW("X"));
    char *want =
        shk_strf("/settings/b.yaml:9: name: setting \"X\" is at %s/settings/a.yaml:1 already", dir);
    cr_expect_str_eq(load_error(dir, -EINVAL, &err), want);
    remove_tree(dir);
    free(want);
    free(dir);
}

/* --config over /etc over the built-in rows, whole rows each. */
Test(load, layers)
{
    struct shk_config *config = NULL;
    struct shk_error err = {""};
    size_t built_in, count;
    char *etc = make_dir(), *dir = make_dir();
    cr_assert_eq(shk_config_load(&config, NULL, NULL, &err), 0, "%s", err.text);
    const struct shk_setting *rows = shk_config_settings(config, &built_in);
    char *name = strdup(rows[1].name), *next = strdup(rows[2].name);
    shk_config_free(config);

    char *yaml = shk_strf(SETTING_ROW("%s") "  cost: etc\n" SETTING_ROW(
                              "SITE_A") "  cost: etc\n" SETTING_ROW("SITE_B") "  cost: etc\n",
                          name);
    write_file(etc, "settings/a.yaml", yaml);
    write_file(dir, "settings/a.yaml", SETTING_ROW("SITE_B") SETTING_ROW("SITE_C"));
    cr_assert_eq(shk_config_load(&config, etc, dir, &err), 0, "%s", err.text);
    rows = shk_config_settings(config, &count);
    cr_expect_eq(count, built_in + 3);
    cr_expect_eq(shk_config_setting(config, name), &rows[1], "a replaced row keeps its place");
    cr_expect_str_eq(rows[1].cost, "etc");
    cr_expect_null(rows[1].default_value, "the whole row is replaced");
    cr_expect_str_eq(rows[2].name, next);
    cr_expect_str_eq(shk_config_setting(config, "SITE_A")->cost, "etc");
    cr_expect_null(shk_config_setting(config, "SITE_B")->cost);
    cr_expect_str_eq(rows[built_in].name, "SITE_A");
    cr_expect_str_eq(rows[built_in + 2].name, "SITE_C");
    char *place = shk_strf("%s/settings/a.yaml:1", dir);
    cr_expect_str_eq(shk_config_setting(config, "SITE_B")->place, place);
    shk_config_free(config);
    remove_tree(etc);
    remove_tree(dir);
    free(place);
    free(yaml);
    free(name);
    free(next);
    free(etc);
    free(dir);
}

Test(load, etc_need_not_exist)
{
    struct shk_config *config = NULL;
    struct shk_error err = {""};
    char *etc = make_dir();
    cr_assert_eq(shk_config_load(&config, etc, NULL, &err), 0, "%s", err.text);
    shk_config_free(config);
    remove_tree(etc);
    cr_assert_eq(shk_config_load(&config, etc, NULL, &err), 0, "%s", err.text);
    shk_config_free(config);
    free(etc);
}

Test(load, etc_must_be_right)
{
    struct shk_config *config = NULL;
    struct shk_error err = {""};
    char *etc = make_dir();
    write_file(etc, "settings/a.yaml", "- nmae: X\n");
    cr_expect_eq(shk_config_load(&config, etc, NULL, &err), -EINVAL);
    cr_expect_null(config);
    char *want = shk_strf(
        "%s/settings/a.yaml:1: nmae: unknown key of a setting, did you mean \"name\"?", etc);
    cr_expect_str_eq(err.text, want);
    remove_tree(etc);
    free(want);
    free(etc);
}

Test(load, references_may_point_into_other_layers)
{
    struct shk_config *config = NULL;
    struct shk_error err = {""};
    char *etc = make_dir(), *dir = make_dir();
    write_file(etc, "settings/a.yaml", SETTING_ROW("SITE_A") "  diagnosis: site-cause\n");
    write_file(dir, "diagnoses/a.yaml", DIAGNOSIS_ROW("site-cause"));
    write_file(dir, "profiles/site.yaml",
               PROFILE_ROW("site") "extends: single-node\n"
                                   "settings: [{name: SITE_A, why: x, source: y}]\n");
    cr_assert_eq(shk_config_load(&config, etc, dir, &err), 0, "%s", err.text);
    cr_expect_not_null(shk_config_diagnosis(config, "site-cause"));
    shk_config_free(config);
    cr_expect_eq(shk_config_load(&config, etc, NULL, &err), -EINVAL);
    char *want = shk_strf("%s/settings/a.yaml:8: diagnosis: unknown diagnosis \"site-cause\"", etc);
    cr_expect_str_eq(err.text, want);
    remove_tree(etc);
    remove_tree(dir);
    free(want);
    free(etc);
    free(dir);
}

Test(load, long_paths_keep_the_end)
{
    struct shk_error err;
    struct shk_config *config = NULL;
    char name[2000];
    memset(name, 'd', sizeof name);
    strcpy(name + sizeof name - 10, "/end.yaml");
    cr_expect_eq(load_alone(SHK_SECTION_SETTINGS, name, "a", 1, &config, &err), -EINVAL);
    cr_expect_eq(strncmp(err.text, "...ddd", 6), 0);
    cr_expect_not_null(strstr(err.text, "/end.yaml:1: settings: must be a list"), "%s", err.text);
}

Test(load, buffer)
{
    static const char yaml[] = SETTING_ROW("SITE_A");
    struct shk_config *config = NULL;
    struct shk_error err = {""};
    cr_assert_eq(shk_config_load_buffer(&config, "settings", "mem", yaml, sizeof yaml - 1, &err), 0,
                 "%s", err.text);
    cr_expect_str_eq(shk_config_setting(config, "SITE_A")->place, "mem:1");
    cr_expect_not_null(shk_config_profile(config, "single-node"));
    shk_config_free(config);
    config = NULL;
    cr_expect_eq(shk_config_load_buffer(&config, "setting", "mem", yaml, 1, &err), -EINVAL);
    cr_expect_str_eq(err.text, "setting: no such part of the configuration");
    cr_expect_eq(shk_config_load_buffer(&config, "profiles", "mem", yaml, sizeof yaml - 1, &err),
                 -EINVAL);
    cr_expect_str_eq(err.text, "mem:1: profile: must be a mapping, not a list");
    cr_expect_eq(shk_config_load_buffer(&config, "settings", "mem", NULL, 0, &err), 0);
    shk_config_free(config);
}

Test(load, profile_file)
{
    struct shk_config *config = NULL;
    struct shk_error err = {""};
    const struct shk_profile *profile = NULL;
    char *dir = make_dir();
    char *good = shk_strf("%s/good", dir), *bad = shk_strf("%s/bad.yaml", dir),
         *none = shk_strf("%s/none.yaml", dir);
    write_file(dir, "good", PROFILE_ROW("mine") "extends: single-node\nnics: 3\n");
    write_file(dir, "bad.yaml", PROFILE_ROW("single-node") "extends: mine\n");
    write_file(dir, "none.yaml", "# nothing\n");
    cr_assert_eq(shk_config_load(&config, NULL, NULL, &err), 0, "%s", err.text);
    size_t before, after;
    const struct shk_profile *rows = shk_config_profiles(config, &before);
    const struct shk_profile *single = shk_config_profile(config, "single-node");

    cr_assert_eq(shk_config_load_profile(config, good, &profile, &err), 0, "%s", err.text);
    cr_expect_str_eq(profile->name, "mine");
    cr_expect_eq(profile->nics, 3);
    cr_expect_eq(profile->settings_count, single->settings_count, "inherited");
    cr_expect_eq(shk_config_profile(config, "mine"), profile);
    shk_config_profiles(config, &after);
    cr_expect_eq(after, before + 1);
    cr_expect_str_eq(single->name, "single-node", "old pointers stay valid");
    cr_expect_str_eq(rows[0].name, shk_config_profiles(config, &after)[0].name);

    const struct shk_profile *kept = profile;
    char *cycle = shk_strf("%s:4: extends: a cycle: single-node -> mine -> single-node", bad);
    cr_expect_eq(shk_config_load_profile(config, bad, &profile, &err), -EINVAL);
    cr_expect_str_eq(err.text, cycle);
    cr_expect_eq(profile, kept);
    cr_expect_null(shk_config_profile(config, "single-node")->extends, "nothing changed");
    cr_expect_eq(shk_config_load_profile(config, none, &profile, &err), -EINVAL);
    char *empty = shk_strf("%s: there is no profile in it", none);
    cr_expect_str_eq(err.text, empty);
    cr_expect_eq(shk_config_load_profile(config, dir, &profile, &err), -EINVAL);
    cr_expect_eq(shk_config_load_profile(config, good, &profile, &err), 0, "again: replaces");
    cr_expect_eq(shk_config_profile(config, "mine"), profile);
    shk_config_profiles(config, &after);
    cr_expect_eq(after, before + 1);
    shk_config_free(config);
    remove_tree(dir);
    free(cycle);
    free(empty);
    free(good);
    free(bad);
    free(none);
    free(dir);
}
