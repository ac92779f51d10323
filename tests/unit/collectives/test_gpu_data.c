/* Test data of the GPU all-reduce, conversions, and what NCCL's log says. */
#include "collectives/gpu/gpu_data.h"
#include "collectives/gpu/gpu_private.h"
#include "collectives/gpu/nccl/nccl_api.h"
#include "collectives/gpu/nccl/nccl_log.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

enum { ELEMENTS = 257, BYTES = ELEMENTS * 4 };

/* Adds b to a in the type, rounding each sum as the type does. */
static void add(enum shk_gpu_type type, void *a, const void *b)
{
    size_t bytes = shk_gpu_type_bytes(type);
    size_t i = 0;

    for (i = 0; i < ELEMENTS; i++) {
        unsigned char *at = (unsigned char *)a + i * bytes;
        double sum = shk_gpu_data_number(type, at) +
                     shk_gpu_data_number(type, (const unsigned char *)b + i * bytes);
        float value = (float)sum;
        int32_t whole = (int32_t)(type == SHK_GPU_I32 ? sum : 0);
        uint16_t narrow = type == SHK_GPU_F16 ? shk_gpu_half_of(value) : shk_gpu_bfloat_of(value);

        memcpy(at,
               type == SHK_GPU_F32   ? (void *)&value
               : type == SHK_GPU_I32 ? (void *)&whole
                                     : (void *)&narrow,
               bytes);
    }
}

static void sums_are_exact(enum shk_gpu_type type, unsigned ranks)
{
    unsigned char sum[BYTES] = {0};
    unsigned char part[BYTES];
    struct shk_gpu_spec spec;
    struct shk_gpu_check found = {0, ~0ULL};
    unsigned step = 0;

    /* In an order other than that of the ranks. */
    for (step = 0; step < ranks; step++) {
        unsigned rank = (step * 7 + 3) % ranks;

        rank = ranks % 7 == 0 ? step : rank;
        cr_assert(shk_gpu_spec_for(&spec, type, rank, ranks, 5));
        shk_gpu_data_fill(&spec, part, ELEMENTS);
        add(type, sum, part);
    }
    cr_assert(shk_gpu_spec_sum(&spec, type, ranks, 5));
    shk_gpu_data_check(&spec, sum, ELEMENTS, &found);
    cr_expect_eq(found.wrong, 0, "%s, %u ranks: %llu wrong", shk_gpu_type_name(type), ranks,
                 found.wrong);

    /* Without the last rank's part every element is wrong. */
    if (ranks > 1) {
        memset(sum, 0, sizeof(sum));
        for (step = 0; step + 1 < ranks; step++) {
            cr_assert(shk_gpu_spec_for(&spec, type, step, ranks, 5));
            shk_gpu_data_fill(&spec, part, ELEMENTS);
            add(type, sum, part);
        }
        cr_assert(shk_gpu_spec_sum(&spec, type, ranks, 5));
        found = (struct shk_gpu_check){0, ~0ULL};
        shk_gpu_data_check(&spec, sum, ELEMENTS, &found);
        cr_expect_eq(found.wrong, ELEMENTS, "%s, %u ranks", shk_gpu_type_name(type), ranks);
        cr_expect_eq(found.first, 0);
    }
}

Test(gpu_data, sums_are_exact_in_every_type)
{
    static const unsigned ranks[] = {1, 2, 3, 4, 7, 8, 16, 64, 128};
    unsigned type = 0;
    size_t i = 0;

    for (type = 0; type < SHK_GPU_TYPE_COUNT; type++) {
        for (i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
            sums_are_exact((enum shk_gpu_type)type, ranks[i]);
        }
    }
}

Test(gpu_data, too_many_ranks_for_the_type)
{
    struct shk_gpu_spec spec;

    cr_expect_not(shk_gpu_spec_for(&spec, SHK_GPU_BF16, 0, 1000, 1));
    cr_expect(shk_gpu_spec_for(&spec, SHK_GPU_F32, 0, 1000, 1));
}

Test(gpu_data, poison_is_never_an_element)
{
    static const uint32_t poison[2] = {SHK_GPU_POISON, SHK_GPU_POISON};
    uint32_t data[4096];
    struct shk_gpu_spec spec;
    unsigned type = 0;
    size_t i = 0;

    for (type = 0; type < SHK_GPU_TYPE_COUNT; type++) {
        size_t bytes = shk_gpu_type_bytes((enum shk_gpu_type)type);

        cr_assert(shk_gpu_spec_sum(&spec, (enum shk_gpu_type)type, 8, 3));
        shk_gpu_data_fill(&spec, data, 4096);
        for (i = 0; i < 4096; i++) {
            cr_assert_neq(memcmp((unsigned char *)data + i * bytes, poison, bytes), 0);
        }
    }
}

Test(gpu_data, seeds_and_ranks_differ)
{
    float a[64];
    float b[64];
    struct shk_gpu_spec spec;

    cr_assert(shk_gpu_spec_for(&spec, SHK_GPU_F32, 0, 2, 1));
    shk_gpu_data_fill(&spec, a, 64);
    cr_assert(shk_gpu_spec_for(&spec, SHK_GPU_F32, 1, 2, 1));
    shk_gpu_data_fill(&spec, b, 64);
    cr_expect_neq(memcmp(a, b, sizeof(a)), 0);
    cr_assert(shk_gpu_spec_for(&spec, SHK_GPU_F32, 0, 2, 2));
    shk_gpu_data_fill(&spec, b, 64);
    cr_expect_neq(memcmp(a, b, sizeof(a)), 0);
}

/* Bit patterns from IEEE 754 binary16 and bfloat16. */
Test(gpu_data, narrow_floats)
{
    static const struct {
        float value;
        uint16_t half, bfloat;
    } cases[] = {
        {0.0F, 0x0000, 0x0000},           {1.0F, 0x3c00, 0x3f80},
        {-2.0F, 0xc000, 0xc000},          {65504.0F, 0x7bff, 0x4780},
        {65520.0F, 0x7c00, 0x4780},       {5.9604645e-08F, 0x0001, 0x3380},
        {0.0625F, 0x2c00, 0x3d80},        {1.00048828125F, 0x3c00, 0x3f80},
        {1.00146484375F, 0x3c02, 0x3f80}, {255.0F, 0x5bf8, 0x437f},
    };
    unsigned bits = 0;
    size_t i = 0;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        cr_expect_eq(shk_gpu_half_of(cases[i].value), cases[i].half, "%g: %04x",
                     (double)cases[i].value, shk_gpu_half_of(cases[i].value));
        cr_expect_eq(shk_gpu_bfloat_of(cases[i].value), cases[i].bfloat, "%g: %04x",
                     (double)cases[i].value, shk_gpu_bfloat_of(cases[i].value));
    }
    for (bits = 0; bits < 0x10000; bits++) {
        float value = shk_gpu_float_of_half((uint16_t)bits);

        cr_assert(isnan(value) || shk_gpu_half_of(value) == bits, "%04x", bits);
        value = shk_gpu_float_of_bfloat((uint16_t)bits);
        cr_assert(isnan(value) || shk_gpu_bfloat_of(value) == bits, "%04x", bits);
    }
}

Test(gpu_data, plan_covers_every_size_and_type)
{
    struct gpu_row rows[GPU_ROWS_MAX];
    unsigned seen[SHK_GPU_TYPE_COUNT] = {0};
    unsigned count = gpu_plan(8, (size_t)1 << 30, false, rows);
    unsigned i = 0;

    for (i = 0; i < count; i++) {
        seen[rows[i].type]++;
        cr_expect_eq(rows[i].count * shk_gpu_type_bytes((enum shk_gpu_type)rows[i].type),
                     rows[i].bytes);
    }
    cr_expect_eq(seen[SHK_GPU_F32], 28);
    cr_expect_eq(seen[SHK_GPU_F16], 3);
    cr_expect_eq(rows[0].bytes, 8);
    cr_expect_eq(rows[27].bytes, (uint64_t)1 << 30);
    cr_expect_eq(gpu_plan(16, 16, false, rows), 1);
    count = gpu_plan(4, (size_t)256 << 20, true, rows);
    cr_expect_eq(rows[7].bytes, (size_t)8 << 20);
    cr_expect_eq(rows[8].bytes, (size_t)64 << 20);
    cr_expect_eq(rows[9].bytes, (size_t)256 << 20, "a brief run ends with the largest size");
    cr_expect_eq(rows[9].type, SHK_GPU_F32);
    cr_expect_eq(rows[10].bytes, 8);
    cr_expect_eq(count, 19U, "%u", count);
}

Test(gpu_data, headers_and_libraries_that_fit)
{
    static const struct {
        int headers, library;
        bool fits;
    } cases[] = {
        {22809, 22809, true}, {22809, 22803, true},  {22803, 22809, true}, {22809, 22705, false},
        {0, 22809, false},    {22809, 22902, false}, {23007, 22809, true}, {99999, 22809, false},
    };
    char text[24];
    size_t i = 0;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        cr_expect_eq(nccl_window_fits(cases[i].headers, cases[i].library), cases[i].fits, "%d %d",
                     cases[i].headers, cases[i].library);
    }
    nccl_version_text(22803, text, sizeof(text));
    cr_expect_str_eq(text, "2.28.3");
}

static struct nccl_log parse(const char *text)
{
    struct nccl_log log = {0};

    nccl_log_add(&log, text, strlen(text), NCCL_LOG_ALL);
    return log;
}

Test(nccl_log, channels)
{
    struct nccl_log log = parse("n1:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n"
                                "n1:1:1 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[1] via P2P/CUMEM\n"
                                "n1:1:1 [0] NCCL INFO Channel 00 : 0[0] -> 1[1] via SHM/direct\n"
                                "n1:1:1 [0] NCCL INFO Channel 00/0 : 1[1] -> 2[0] [send] via "
                                "NET/OFI/0/GDRDMA\n");

    cr_expect_eq(log.p2p, 2);
    cr_expect_eq(log.shm, 1);
    cr_expect_eq(log.net, 1);
    cr_expect_eq(log.gdr, 1);
    cr_expect_str_eq(log.via, "P2P/CUMEM");
    cr_expect_str_eq(log.net_name, "NET/OFI/0/GDRDMA");
    cr_expect_eq(log.choices, 0);
}

Test(nccl_log, choices_and_symmetry)
{
    struct nccl_log log =
        parse("a NCCL INFO Symmetric VA size=144GB\n"
              "a NCCL INFO AllReduce [Symmetric]: 1024 Bytes -> Kernel AllReduce_AGxLL_R "
              "nchannels 1 nthreads 512 nWorks 1\n"
              "a NCCL INFO AllReduce: 268435456 Bytes -> Algo RING proto SIMPLE "
              "channel{Lo..Hi}={0..15}\n"
              "a NCCL INFO AllReduce: 268435456 Bytes -> Algo TREE proto LL channel{}\n"
              "a NCCL WARN Something is odd\nb NCCL WARN later\n");

    cr_expect(log.symmetric_va);
    cr_assert_eq(log.choices, 2);
    cr_expect(nccl_log_find(&log, 1024)->symmetric);
    cr_expect_str_eq(nccl_log_find(&log, 1024)->how, "AllReduce_AGxLL_R");
    cr_expect_not(nccl_log_find(&log, 268435456)->symmetric);
    cr_expect_str_eq(nccl_log_find(&log, 268435456)->how, "RING SIMPLE");
    cr_expect_null(nccl_log_find(&log, 4));
    cr_expect_str_eq(log.warning, "Something is odd");
}

/* What was before a path over the same communicator tells how its ranks are connected, no more. */
Test(nccl_log, parts_of_other_paths)
{
    static const char text[] = "a NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n"
                               "a NCCL INFO Symmetric VA size=144GB\n"
                               "a NCCL INFO Symmetric memory is not supported\n"
                               "a NCCL INFO AllReduce: 64 Bytes -> Algo RING proto LL channel{}\n"
                               "a NCCL INFO register comm 0x1\n"
                               "a NCCL INFO Using network Socket\n"
                               "a NCCL WARN Something is odd\n";
    enum nccl_log_part part = 0;

    for (part = NCCL_LOG_ALL; part <= NCCL_LOG_WINDOWS; part++) {
        struct nccl_log log = parse("a NCCL INFO Channel 01/0 : 0[0] -> 1[1] via P2P/CUMEM\n");
        bool all = part == NCCL_LOG_ALL;

        nccl_log_add(&log, text, strlen(text), part);
        cr_expect_eq(log.p2p, 2, "connections count for all: %d", (int)part);
        cr_expect_eq(log.symmetric_va, part != NCCL_LOG_CONNECTION);
        cr_expect_eq(log.symmetric_no, all);
        cr_expect_eq(log.choices, all);
        cr_expect_eq(log.registered, all);
        cr_expect_eq(log.warning[0] != '\0', all);
        cr_expect_eq(log.kept_len > 0, all);
    }
}

/* Channels come by the hundred and are not kept; a warning is, whatever it speaks of. */
Test(nccl_log, warnings_are_kept)
{
    struct nccl_log log = parse("n1:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via NET/IB/0\n"
                                "n1:1:1 [0] misc/x.cc:1 NCCL WARN Channel 01 : no progress\n");

    cr_expect_str_eq(log.kept, "n1:1:1 [0] misc/x.cc:1 NCCL WARN Channel 01 : no progress\n");
    cr_expect_str_eq(log.warning, "Channel 01 : no progress");
}

Test(nccl_log, nothing_and_nonsense)
{
    static const char noise[] = "\0\xff\xfe Channel via\n -> \n: Bytes -> Kernel\n Bytes -> Algo";
    struct nccl_log log = parse("");

    cr_expect_eq(log.p2p + log.shm + log.net + log.choices, 0);
    nccl_log_add(&log, noise, sizeof(noise) - 1, NCCL_LOG_ALL);
    cr_expect_eq(log.p2p + log.shm + log.net, 0);
    cr_expect_str_eq(log.warning, "");
}
