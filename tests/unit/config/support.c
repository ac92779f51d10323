#include "support.h"

#include "core/text/strbuf.h"

#include <criterion/criterion.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int load_alone(enum shk_section section, const char *name, const void *data, size_t size,
               struct shk_config **config_p, struct shk_error *err)
{
    struct shk_config *config = shk_config_create();
    cr_assert_not_null(config);
    int rc = shk_config_add_buffer(config, section, name, data, size, err);
    if (!rc)
        rc = shk_config_finish(config, err);
    if (rc < 0) {
        shk_config_free(config);
        return rc;
    }
    *config_p = config;
    return 0;
}

char *make_dir(void)
{
    char *dir = shk_strf("%s/config-test-XXXXXX", SHK_BUILD_DIR);
    cr_assert_not_null(dir);
    cr_assert_not_null(mkdtemp(dir));
    return dir;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

void remove_tree(const char *dir)
{
    cr_assert_eq(nftw(dir, remove_entry, 8, FTW_DEPTH | FTW_PHYS), 0);
}

void write_file(const char *dir, const char *path, const char *text)
{
    char *full = shk_strf("%s/%s", dir, path);
    cr_assert_not_null(full);
    for (char *slash = strchr(full + strlen(dir) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(full, 0777);
        *slash = '/';
    }
    FILE *file = fopen(full, "w");
    cr_assert_not_null(file, "%s", full);
    cr_assert_eq(fwrite(text, 1, strlen(text), file), strlen(text));
    cr_assert_eq(fclose(file), 0);
    free(full);
}
