#include "config/load/index.h"
#include "config/schema/arena.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Test(index, many_names)
{
    enum { COUNT = 5000 };
    struct shk_index index = {0};
    struct shk_arena arena = {0};
    size_t row = 77;
    cr_expect_not(shk_index_find(&index, "none", &row));
    for (size_t i = 0; i < COUNT; i++) {
        const char *name = shk_arena_printf(&arena, "NAME_%zu", i);
        cr_assert_not_null(name);
        cr_assert_eq(shk_index_set(&index, name, i), 0);
    }
    for (size_t i = 0; i < COUNT; i++) {
        char name[32];
        snprintf(name, sizeof name, "NAME_%zu", i);
        cr_assert(shk_index_find(&index, name, &row));
        cr_assert_eq(row, i);
    }
    cr_expect_eq(index.count, COUNT);
    cr_expect_eq(shk_index_set(&index, "NAME_7", 99), 0);
    cr_expect(shk_index_find(&index, "NAME_7", &row));
    cr_expect_eq(row, 99);
    cr_expect_eq(index.count, COUNT, "replaced, not added");
    cr_expect_not(shk_index_find(&index, "NAME_5000", &row));
    cr_expect_eq(row, 99, "untouched");
    shk_index_free(&index);
    shk_arena_free(&arena);
}

Test(arena, blocks_are_zeroed_aligned_and_apart)
{
    struct shk_arena arena = {0};
    char *last = NULL;
    for (size_t i = 0; i < 2000; i++) {
        size_t size = i % 97 + (i % 500 == 0 ? 40000 : 0);
        char *p = shk_arena_alloc(&arena, size);
        cr_assert_not_null(p);
        cr_assert_eq((uintptr_t)p % _Alignof(max_align_t), 0);
        for (size_t j = 0; j < size; j++)
            cr_assert_eq(p[j], 0);
        if (size)
            memset(p, 0xa5, size);
        cr_assert(!size || p != last);
        last = p;
    }
    cr_expect_null(shk_arena_alloc(&arena, SIZE_MAX));
    cr_expect_null(shk_arena_array(&arena, SIZE_MAX / 4, 8));
    cr_expect_str_eq(shk_arena_text(&arena, "abcdef", 3), "abc");
    shk_arena_free(&arena);
    shk_arena_free(&arena);
}
