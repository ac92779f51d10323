#include "collectives/gpu/gpu_private.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Results up to this size are also compared on the host, which shares no code with the kernels. */
#define VERIFY_HOST_BYTES ((size_t)256 << 10)

/* Bytes around the result that must still be poison. */
#define VERIFY_MARGIN ((size_t)1024)

#define VERIFY_THREADS 256U

static unsigned verify_blocks(size_t count)
{
    size_t blocks = (count + VERIFY_THREADS - 1) / VERIFY_THREADS;

    return blocks < 1 ? 1 : blocks > 2048 ? 2048 : (unsigned)blocks;
}

static size_t op_bytes(const struct gpu_op *op)
{
    return op->count * shk_gpu_type_bytes(op->type);
}

static int verify_spec(struct gpu_rank *g, const struct gpu_op *op, bool sum,
                       struct shk_gpu_spec *spec, struct shk_error *err)
{
    bool fits = sum ? shk_gpu_spec_sum(spec, op->type, g->ranks, g->seed)
                    : shk_gpu_spec_for(spec, op->type, g->rank, g->ranks, g->seed);

    return fits ? 0
                : gpu_fail(g, GPU_CAUSE_NA,
                           shk_error_set(err, ERANGE, "%s cannot hold exact sums of %u ranks",
                                         shk_gpu_type_name(op->type), g->ranks));
}

int gpu_put(struct gpu_rank *g, gpu_ptr to, const void *from, size_t bytes, struct shk_error *err)
{
    int rc = gpu_ok(g, g->gpu.api.to_device(to, from, bytes), err, "copy of %zu bytes", bytes);

    /* From pageable memory the call may return before the last bytes are there, and our stream does
     * not wait for the default one. */
    return rc == 0 ? gpu_ok(g, g->gpu.api.stream_wait(NULL), err, "copy of %zu bytes", bytes) : rc;
}

static int fill_on_host(struct gpu_rank *g, gpu_ptr to, const struct shk_gpu_spec *spec,
                        size_t count, struct shk_error *err)
{
    size_t bytes = count * shk_gpu_type_bytes((enum shk_gpu_type)spec->type);
    void *data = malloc(bytes + 1);
    int rc = 0;

    if (!data)
        return shk_error_set(err, ENOMEM, "no memory for %zu bytes of test data", bytes);
    shk_gpu_data_fill(spec, data, count);
    rc = gpu_put(g, to, data, bytes, err);
    free(data);
    return rc;
}

static int fill(struct gpu_rank *g, gpu_ptr to, const struct shk_gpu_spec *spec, size_t count,
                struct shk_error *err)
{
    uint64_t elements = count;
    struct shk_gpu_spec copy = *spec;
    void *params[] = {&to, &elements, &copy};

    if (count == 0)
        return 0;
    return g->module ? gpu_launch(g, g->fill[spec->type], verify_blocks(count), VERIFY_THREADS,
                                  params, err, "the fill")
                     : fill_on_host(g, to, spec, count, err);
}

int gpu_prepare(struct gpu_rank *g, const struct gpu_op *op, struct shk_error *err)
{
    struct shk_gpu_spec spec;
    size_t end = op->out - g->heap.recv + op_bytes(op) + 2 * VERIFY_MARGIN;
    int rc = verify_spec(g, op, false, &spec, err);

    end = end > g->heap.area_bytes ? g->heap.area_bytes : end;
    if (rc == 0) {
        rc = gpu_ok(g,
                    g->gpu.api.set_words(g->base[g->rank] + g->heap.recv, SHK_GPU_POISON,
                                         end / sizeof(uint32_t), g->stream),
                    err, "poison");
    }
    if (rc == 0 && !g->module)
        rc = gpu_ok(g, g->gpu.api.stream_wait(g->stream), err, "poison");
    return rc == 0 ? fill(g, g->base[g->rank] + op->in, &spec, op->count, err) : rc;
}

/* On the device: all elements at `at`. */
static int check_on_device(struct gpu_rank *g, gpu_ptr at, const struct shk_gpu_spec *spec,
                           size_t count, struct shk_gpu_check *found, struct shk_error *err)
{
    uint64_t elements = count;
    struct shk_gpu_spec copy = *spec;
    void *params[] = {&at, &elements, &copy, &g->result};
    gpu_ptr first = g->result + offsetof(struct shk_gpu_check, first);
    int rc = gpu_ok(g, g->gpu.api.set_words(g->result, 0, 2, g->stream), err, "check");

    if (rc == 0)
        rc = gpu_ok(g, g->gpu.api.set_words(first, ~0U, 2, g->stream), err, "check");
    if (rc == 0) {
        rc = gpu_launch(g, g->check[spec->type], verify_blocks(count), VERIFY_THREADS, params, err,
                        "the check");
    }
    if (rc == 0)
        rc = gpu_ok(g, g->gpu.api.stream_wait(g->stream), err, "check");
    return rc == 0 ? gpu_ok(g, g->gpu.api.to_host(found, g->result, sizeof *found), err, "check")
                   : rc;
}

static int check_on_host(struct gpu_rank *g, gpu_ptr at, const struct shk_gpu_spec *spec,
                         size_t count, struct shk_gpu_check *found, struct shk_error *err)
{
    size_t bytes = count * shk_gpu_type_bytes((enum shk_gpu_type)spec->type);
    void *data = malloc(bytes + 1);
    int rc = 0;

    if (!data)
        return shk_error_set(err, ENOMEM, "no memory to verify %zu bytes", bytes);
    rc = gpu_ok(g, g->gpu.api.to_host(data, at, bytes), err, "copy of %zu bytes", bytes);
    *found = (struct shk_gpu_check){0, ~0ULL};
    if (rc == 0)
        shk_gpu_data_check(spec, data, count, found);
    free(data);
    return rc;
}

/* Device and host look at small results both, and must agree. */
static int check(struct gpu_rank *g, gpu_ptr at, const struct shk_gpu_spec *spec, size_t count,
                 struct shk_gpu_check *found, struct shk_error *err)
{
    size_t bytes = count * shk_gpu_type_bytes((enum shk_gpu_type)spec->type);
    struct shk_gpu_check host = {0, ~0ULL};
    int rc = 0;

    *found = host;
    if (count == 0)
        return 0;
    if (!g->module)
        return check_on_host(g, at, spec, count, found, err);
    rc = check_on_device(g, at, spec, count, found, err);
    if (rc == 0 && bytes <= VERIFY_HOST_BYTES) {
        rc = check_on_host(g, at, spec, count, &host, err);
        if (rc == 0 && (host.wrong != found->wrong || host.first != found->first)) {
            rc = shk_error_set(err, EILSEQ,
                               "the check on the GPU finds %llu wrong elements from %llu on, the "
                               "one on the host %llu from %llu on",
                               found->wrong, found->first, host.wrong, host.first);
        }
    }
    return rc;
}

/* Poison in bytes [from, to) of the receive area: damage text when there is something else. */
static int margin(struct gpu_rank *g, size_t from, size_t to, struct gpu_wrong *wrong,
                  struct shk_error *err)
{
    static const uint32_t poison = SHK_GPU_POISON;
    unsigned char bytes[2 * VERIFY_MARGIN];
    int rc = 0;

    to = to > g->heap.area_bytes ? g->heap.area_bytes : to;
    if (from >= to || wrong->damage[0] != '\0')
        return 0;
    rc = gpu_ok(g, g->gpu.api.to_host(bytes, g->base[g->rank] + g->heap.recv + from, to - from),
                err, "read around the result");
    for (size_t i = from; i < to && rc == 0; i++) {
        if (bytes[i - from] != ((const unsigned char *)&poison)[i % sizeof poison]) {
            snprintf(wrong->damage, sizeof wrong->damage,
                     "memory outside the result was written to, at %+lld bytes from its %s",
                     (long long)(to <= VERIFY_MARGIN && from == 0 ? to - i : i - from),
                     from == 0 ? "start backwards" : "end");
            break;
        }
    }
    return rc;
}

static int describe(struct gpu_rank *g, const struct gpu_op *op, const struct shk_gpu_spec *spec,
                    const struct shk_gpu_check *found, struct gpu_wrong *wrong,
                    struct shk_error *err)
{
    size_t bytes = shk_gpu_type_bytes(op->type);
    unsigned char element[8] = {0};
    void *expected = NULL;
    int rc = 0;

    wrong->wrong = found->wrong;
    if (found->wrong == 0)
        return 0;
    wrong->index = found->first;
    rc = gpu_ok(
        g, g->gpu.api.to_host(element, g->base[g->rank] + op->out + found->first * bytes, bytes),
        err, "read of the wrong element");
    wrong->got = shk_gpu_data_number(op->type, element);
    expected = malloc((found->first + 1) * bytes);
    if (expected) {
        shk_gpu_data_fill(spec, expected, found->first + 1);
        wrong->expected =
            shk_gpu_data_number(op->type, (const unsigned char *)expected + found->first * bytes);
    }
    free(expected);
    return rc;
}

int gpu_verify(struct gpu_rank *g, const struct gpu_op *op, struct gpu_wrong *wrong,
               struct shk_error *err)
{
    struct shk_gpu_spec spec;
    struct shk_gpu_check found = {0, ~0ULL};
    size_t first = op->out - g->heap.recv;
    size_t last = first + op_bytes(op);
    int rc = verify_spec(g, op, true, &spec, err);

    memset(wrong, 0, sizeof *wrong);
    if (rc == 0)
        rc = check(g, g->base[g->rank] + op->out, &spec, op->count, &found, err);
    if (rc == 0)
        rc = describe(g, op, &spec, &found, wrong, err);
    if (rc == 0)
        rc = margin(g, first > VERIFY_MARGIN ? first - VERIFY_MARGIN : 0, first, wrong, err);
    if (rc == 0)
        rc = margin(g, last, last + VERIFY_MARGIN, wrong, err);
    if (rc == 0 && op->in != op->out) {
        rc = verify_spec(g, op, false, &spec, err);
        if (rc == 0)
            rc = check(g, g->base[g->rank] + op->in, &spec, op->count, &found, err);
        if (rc == 0 && found.wrong > 0 && wrong->damage[0] == '\0') {
            snprintf(wrong->damage, sizeof wrong->damage,
                     "%llu elements of the input were changed, from %llu on", found.wrong,
                     found.first);
        }
    }
    return rc;
}

int gpu_verify_selftest(struct gpu_rank *g, struct shk_error *err)
{
    struct gpu_op op = {.type = SHK_GPU_F32, .count = 100003, .in = 0, .out = g->heap.recv};
    struct shk_gpu_spec spec;
    struct shk_gpu_check found = {0, ~0ULL};
    const size_t at = 77777;
    float bad = 0.1F; /* never an element */
    int rc = verify_spec(g, &op, true, &spec, err);

    if (op_bytes(&op) > g->heap.area_bytes)
        op.count = g->heap.area_bytes / 8;
    if (rc == 0)
        rc = fill(g, g->base[g->rank] + op.out, &spec, op.count, err);
    if (rc == 0)
        rc = gpu_ok(g, g->gpu.api.stream_wait(g->stream), err, "fill");
    if (rc == 0) {
        rc = gpu_put(g, g->base[g->rank] + op.out + (at % op.count) * sizeof bad, &bad, sizeof bad,
                     err);
    }
    if (rc == 0) {
        rc = g->module ? check_on_device(g, g->base[g->rank] + op.out, &spec, op.count, &found, err)
                       : check_on_host(g, g->base[g->rank] + op.out, &spec, op.count, &found, err);
    }
    if (rc == 0 && (found.wrong != 1 || found.first != at % op.count)) {
        rc = shk_error_set(err, EILSEQ,
                           "the check of results does not work: of one planted error it finds %llu",
                           found.wrong);
    }
    return rc;
}
