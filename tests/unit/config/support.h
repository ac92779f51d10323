/* Shared by the tests of config/. */
#ifndef SHK_TESTS_CONFIG_SUPPORT_H
#define SHK_TESTS_CONFIG_SUPPORT_H

#include "config/config.h"
#include "config/load/load.h"

/* One YAML text as the whole catalogue (no built-in rows). Returns the status; the config in
 * *config_p on success. */
int load_alone(enum shk_section section, const char *name, const void *data, size_t size,
               struct shk_config **config_p, struct shk_error *err);

/* New empty folder below the build directory; removed by remove_tree(). free() the path. */
char *make_dir(void);
void remove_tree(const char *dir);

/* Writes DIR/path, with the folders on the way. */
void write_file(const char *dir, const char *path, const char *text);

/* The catalogue's source folder. */
#define CATALOGUE SHK_TESTS_DIR "/../config"

/* Rows that are complete; more lines may follow. */
#define SETTING_ROW(name_)                                                                         \
    "- name: " name_ "\n"                                                                          \
    "  family: nccl\n"                                                                             \
    "  readers: [{library: nccl}]\n"                                                               \
    "  grammar: {type: string}\n"                                                                  \
    "  effect: Does something.\n"                                                                  \
    "  severity: noise\n"                                                                          \
    "  source: project:file\n"
#define PROFILE_ROW(name_)                                                                         \
    "name: " name_ "\n"                                                                            \
    "title: A system\n"                                                                            \
    "source: project:file\n"
#define DIAGNOSIS_ROW(key_)                                                                        \
    "- key: " key_ "\n"                                                                            \
    "  title: A cause\n"                                                                           \
    "  explanation: What it is.\n"                                                                 \
    "  fix: do-this\n"                                                                             \
    "  who: user\n"                                                                                \
    "  source: project:file\n"

#endif
