/* A fuzz target: one file fuzz_<name>.c with LLVMFuzzerTestOneInput(). clang links it with
 * libFuzzer (SHK_FUZZ), any compiler with replay_main.c, which runs the files that it is given. */
#ifndef SHK_TESTS_FUZZ_H
#define SHK_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Always returns 0; what is wrong aborts or makes a sanitizer speak. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A folder of this process in /dev/shm (or $TMPDIR), removed at exit; "" on failure. The first call
 * fills it with a copy of `from`, unless that is NULL. */
const char *shk_fuzz_dir(const char *from);

/* Replaces a file's content. 0 or -1. */
int shk_fuzz_put(const char *path, const void *data, size_t size);

/* Freezes the facts and runs every check on them, as the program does; aborts when that fails. */
struct shk_facts;
void shk_fuzz_judge(struct shk_facts *facts);

#endif
