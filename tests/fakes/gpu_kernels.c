/* The kernels of collectives/gpu/kernels/kernels.cu in C, for the stand-in driver: found by their
 * names, done by the launching thread. */
#include "collectives/gpu/gpu_data.h"
#include "tests/fakes/gpu_driver.h"
#include "tests/fakes/rest.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

static int fake_headers = 22809;

int CALL(cuModuleLoadData, hipModuleLoadData)(void **module, const void *image)
{
    *module = (void *)(uintptr_t)image;
    return shk_fake_faulty("image") ? 222 : SUCCESS;
}

int CALL(cuModuleGetGlobal_v2, hipModuleGetGlobal)(gpu_ptr *at, size_t *bytes, void *module,
                                                   const char *name)
{
    int rc = 0;

    (void)module;
    if (strcmp(name, "shk_nccl_headers") != 0) {
        return 500;
    }
    rc = CALL(cuMemAlloc_v2, hipMalloc)(at, sizeof(fake_headers));
    *bytes = sizeof(fake_headers);
    return rc == SUCCESS ? CALL(cuMemcpyHtoD_v2, hipMemcpyHtoD)(*at, &fake_headers, *bytes) : rc;
}

/* Arguments of the test kernels, in the order of their parameters. */
struct check_args {
    uint32_t type;
    gpu_ptr at;
    uint64_t count;
    struct shk_gpu_spec spec;
    gpu_ptr result;
};

static struct shk_gpu_control *control_of(const struct shk_gpu_reduce *args, unsigned rank)
{
    return (struct shk_gpu_control *)(uintptr_t)(args->base[rank] + args->control);
}

static int wait_for(const struct shk_gpu_reduce *args, const uint32_t *flag, uint32_t epoch,
                    uint32_t why, unsigned peer)
{
    uint64_t start = shk_fake_now_ns();
    unsigned turns = 0;

    while ((int32_t)(__atomic_load_n(flag, __ATOMIC_ACQUIRE) - epoch) < 0) {
        if (shk_fake_now_ns() - start > args->timeout_ns) {
            control_of(args, args->rank)->error = why;
            control_of(args, args->rank)->error_peer = peer;
            return 0;
        }
        rest(&turns);
    }
    return 1;
}

static int barrier(const struct shk_gpu_reduce *args, uint32_t epoch, int end)
{
    struct shk_gpu_control *mine = control_of(args, args->rank);
    unsigned peer = 0;

    for (peer = 0; peer < args->ranks; peer++) {
        struct shk_gpu_control *theirs = control_of(args, peer);

        __atomic_store_n(end ? &theirs->end[0][args->rank] : &theirs->start[0][args->rank], epoch,
                         __ATOMIC_RELEASE);
    }
    for (peer = 0; peer < args->ranks; peer++) {
        if (!wait_for(args, end ? &mine->end[0][peer] : &mine->start[0][peer], epoch,
                      end ? SHK_GPU_LATE_END : SHK_GPU_LATE_START, peer)) {
            return 0;
        }
    }
    return 1;
}

/* at[p]: element of rank p. */
static void sum_element(const struct shk_gpu_reduce *args, uint32_t type, const void *const *at,
                        void *to)
{
    size_t bytes = shk_gpu_type_bytes((enum shk_gpu_type)type);
    double sum = 0;
    float value = 0;
    int32_t whole = 0;
    uint16_t narrow = 0;
    unsigned p = 0;

    for (p = 0; p < args->ranks; p++) {
        sum += shk_gpu_data_number((enum shk_gpu_type)type, at[p]);
    }
    value = (float)sum;
    whole = type == SHK_GPU_I32 ? (int32_t)sum : 0;
    narrow = type == SHK_GPU_F16 ? shk_gpu_half_of(value) : shk_gpu_bfloat_of(value);
    memcpy(to,
           type == SHK_GPU_F32   ? (const void *)&value
           : type == SHK_GPU_I32 ? (const void *)&whole
                                 : (const void *)&narrow,
           bytes);
}

struct reduce_args {
    int push;
    int multimem;
    uint32_t type;
    struct shk_gpu_reduce args;
};

/* How often in a row this very operation has been launched before. */
static unsigned repeats;

static void count_repeats(const struct shk_gpu_reduce *args)
{
    static struct shk_gpu_reduce last;

    repeats =
        last.in == args->in && last.out == args->out && last.count == args->count ? repeats + 1 : 0;
    last = *args;
}

static void reduce_fault(const struct reduce_args *reduce)
{
    static uint64_t first;
    const struct shk_gpu_reduce *args = &reduce->args;

    count_repeats(args);
    first = first == 0 ? args->in : first;
    if (shk_fake_faulty("moved") &&
        args->in - first == 2 * args->count * shk_gpu_type_bytes((enum shk_gpu_type)reduce->type)) {
        shk_fake_failed = 700;
    }
    if (shk_fake_faulty("illegal")) {
        shk_fake_failed = 700;
    }
    if (shk_fake_faulty("crash")) {
        raise(SIGSEGV);
    }
    while (shk_fake_faulty("hang")) {
        sleep(1);
    }
}

/* First element of a rank's part, in whole vectors of 16 bytes as the kernel has it. */
static uint64_t push_first(const struct reduce_args *reduce, unsigned rank)
{
    uint64_t per = 16 / shk_gpu_type_bytes((enum shk_gpu_type)reduce->type);
    uint64_t vectors = reduce->args.count / per;
    uint64_t part = (vectors + reduce->args.ranks - 1) / reduce->args.ranks;

    return (rank * part < vectors ? rank * part : vectors) * per;
}

static unsigned char *scratch_of(const struct shk_gpu_reduce *args, unsigned at, unsigned from)
{
    return (unsigned char *)(uintptr_t)(args->base[at] + args->scratch +
                                        (from < at ? from : from - 1) * args->scratch_bytes);
}

/* Everyone's share of everyone's part into scratch; false when a peer does not send. */
static int push_exchange(const struct reduce_args *reduce, uint32_t epoch)
{
    const struct shk_gpu_reduce *args = &reduce->args;
    size_t bytes = shk_gpu_type_bytes((enum shk_gpu_type)reduce->type);
    uint64_t mark = (uint64_t)epoch << 32 | 1;
    uint64_t start = shk_fake_now_ns();
    unsigned turns = 0;
    unsigned p = 0;

    for (p = 0; p < args->ranks; p++) {
        uint64_t first = push_first(reduce, p);

        if (p != args->rank) {
            memcpy(scratch_of(args, p, args->rank),
                   (const void *)(uintptr_t)(args->base[args->rank] + args->in + first * bytes),
                   (push_first(reduce, p + 1) - first) * bytes);
            __atomic_store_n(&control_of(args, p)->pushed[0][args->rank], mark, __ATOMIC_RELEASE);
        }
    }
    for (p = 0; p < args->ranks; p++) {
        while (p != args->rank && __atomic_load_n(&control_of(args, args->rank)->pushed[0][p],
                                                  __ATOMIC_ACQUIRE) != mark) {
            if (shk_fake_now_ns() - start > args->timeout_ns) {
                control_of(args, args->rank)->error = SHK_GPU_LATE_DATA;
                control_of(args, args->rank)->error_peer = p;
                return 0;
            }
            rest(&turns);
        }
    }
    return 1;
}

static void reduce_at(const struct reduce_args *reduce, uint64_t i, unsigned char *element)
{
    const struct shk_gpu_reduce *args = &reduce->args;
    size_t bytes = shk_gpu_type_bytes((enum shk_gpu_type)reduce->type);
    uint64_t first = push_first(reduce, args->rank);
    int pushed = reduce->push && i < push_first(reduce, args->ranks);
    const void *at[SHK_GPU_MAX_RANKS];
    unsigned p = 0;

    for (p = 0; p < args->ranks; p++) {
        at[p] = pushed && p != args->rank
                    ? scratch_of(args, args->rank, p) + (i - first) * bytes
                    : (const unsigned char *)(uintptr_t)(args->base[p] + args->in + i * bytes);
    }
    sum_element(args, reduce->type, at, element);
}

static void reduce_damage(const struct shk_gpu_reduce *args, size_t bytes)
{
    if (shk_fake_faulty("overrun")) {
        memset((void *)(uintptr_t)(args->base[args->rank] + args->out + args->count * bytes), 7, 4);
    }
    if (shk_fake_faulty("input") && args->in != args->out) {
        *(unsigned char *)(uintptr_t)(args->base[args->rank] + args->in) ^= 1;
    }
}

/* Elements [first, last) of all ranks, written to all. */
static void reduce_range(const struct reduce_args *reduce, uint64_t first, uint64_t last)
{
    const struct shk_gpu_reduce *args = &reduce->args;
    size_t bytes = shk_gpu_type_bytes((enum shk_gpu_type)reduce->type);
    unsigned char element[8];
    uint64_t i = 0;
    unsigned p = 0;

    for (i = first; i < last; i++) {
        reduce_at(reduce, i, element);
        if (i == last / 2 &&
            (shk_fake_faulty("corrupt") || (shk_fake_faulty("tired") && repeats > 1))) {
            element[0] ^= 1;
        }
        for (p = 0; p < args->ranks && !(i == first && shk_fake_faulty("skip")); p++) {
            memcpy((void *)(uintptr_t)(args->base[p] + args->out + i * bytes), element, bytes);
        }
    }
}

#ifndef HIP
/* The vectors of 16 bytes of one's part, through the multicast address. */
static uint64_t run_multimem(const struct reduce_args *reduce)
{
    const struct shk_gpu_reduce *args = &reduce->args;
    size_t bytes = shk_gpu_type_bytes((enum shk_gpu_type)reduce->type);
    uint64_t per = 16 / bytes;
    uint64_t vectors = ((args->in | args->out) & 15) == 0 ? args->count / per : 0;
    uint64_t i = vectors * args->rank / args->ranks * per;
    uint64_t last = vectors * (args->rank + 1) / args->ranks * per;
    unsigned char *in[SHK_GPU_MAX_RANKS];
    unsigned char *out[SHK_GPU_MAX_RANKS];

    for (; i < last; i++) {
        struct shk_gpu_reduce part = *args;
        const void *at[SHK_GPU_MAX_RANKS];
        unsigned char element[8];
        unsigned p = 0;

        part.ranks = shk_fake_multicast(args->multicast + args->in + i * bytes, in);
        if (part.ranks == 0 ||
            shk_fake_multicast(args->multicast + args->out + i * bytes, out) != part.ranks) {
            shk_fake_failed = 700;
            return vectors * per;
        }
        for (p = 0; p < part.ranks; p++) {
            at[p] = in[p];
        }
        sum_element(&part, reduce->type, at, element);
        if (i == last / 2 && shk_fake_faulty("corrupt")) {
            element[0] ^= 1;
        }
        for (p = 0; p < part.ranks; p++) {
            memcpy(out[p], element, bytes);
        }
    }
    return vectors * per;
}
#else
static uint64_t run_multimem(const struct reduce_args *reduce)
{
    (void)reduce;
    shk_fake_failed = 700;
    return 0;
}
#endif

/* Each rank does its part of the elements, everyone writes all the results. The data is read
 * between the barriers, so one-shot in place needs no copy. */
static void run_reduce(void *arg)
{
    const struct reduce_args *reduce = arg;
    const struct shk_gpu_reduce *args = &reduce->args;
    struct shk_gpu_control *mine = control_of(args, args->rank);
    uint64_t whole = reduce->push ? push_first(reduce, args->ranks) : 0;
    uint64_t rest = 0;
    uint32_t epoch = shk_gpu_next_epoch(mine->epoch);

    reduce_fault(reduce);
    if (epoch == 0 || mine->error != SHK_GPU_OK || shk_fake_failed != 0 ||
        !barrier(args, epoch, 0) || (reduce->push && !push_exchange(reduce, epoch))) {
        return;
    }
    mine->epoch = epoch;
    if (reduce->push) {
        reduce_range(reduce, push_first(reduce, args->rank), push_first(reduce, args->rank + 1));
    }
    if (reduce->multimem) {
        whole = run_multimem(reduce);
    }
    rest = args->count - whole;
    reduce_range(reduce, whole + rest * args->rank / args->ranks,
                 whole + rest * (args->rank + 1) / args->ranks);
    reduce_damage(args, shk_gpu_type_bytes((enum shk_gpu_type)reduce->type));
    (void)barrier(args, epoch, 1);
}

static void run_fill(void *arg)
{
    const struct check_args *fill = arg;

    shk_gpu_data_fill(&fill->spec, (void *)(uintptr_t)fill->at, fill->count);
}

static void run_check(void *arg)
{
    const struct check_args *check = arg;
    struct shk_gpu_check *result = (struct shk_gpu_check *)(uintptr_t)check->result;

    shk_gpu_data_check(&check->spec, (const void *)(uintptr_t)check->at, check->count, result);
}

struct sum_args {
    uint32_t type;
    gpu_ptr to, a, b;
    uint64_t count;
};

static void run_sum(void *arg)
{
    const struct sum_args *sum = arg;
    const void *a = (const void *)(uintptr_t)sum->a;
    const void *b = (const void *)(uintptr_t)sum->b;
    void *to = (void *)(uintptr_t)sum->to;
    uint64_t i = 0;

    for (i = 0; i < sum->count; i++) {
        if (sum->type == SHK_GPU_F32) {
            ((float *)to)[i] = ((const float *)a)[i] + ((const float *)b)[i];
        } else {
            ((uint32_t *)to)[i] = ((const uint32_t *)a)[i] + ((const uint32_t *)b)[i];
        }
    }
    if (shk_fake_faulty("corrupt")) {
        *(unsigned char *)to ^= 1;
    }
    if (shk_fake_faulty("illegal")) {
        shk_fake_failed = 700;
    }
}

static void run_delay(void *arg)
{
    uint64_t ns = *(const uint64_t *)arg;

    usleep((useconds_t)(ns / 1000));
}

#ifndef HIP
struct probe_args {
    gpu_ptr from, to;
    uint32_t mark;
    gpu_ptr sum;
};

static void run_probe(void *arg)
{
    const struct probe_args *args = arg;
    unsigned char *member[SHK_GPU_MAX_RANKS];
    unsigned ranks = shk_fake_multicast(args->from, member);
    uint32_t sum = 0;
    uint32_t word = 0;
    unsigned p = 0;

    for (p = 0; p + (shk_fake_faulty("mc-sum") ? 1 : 0) < ranks; p++) {
        memcpy(&word, member[p], sizeof(word));
        sum += word;
    }
    memcpy((void *)(uintptr_t)args->sum, &sum, sizeof(sum));
    ranks = shk_fake_multicast(args->to, member);
    for (p = shk_fake_faulty("mc-store") ? 1 : 0; p < ranks; p++) {
        memcpy(member[p], &args->mark, sizeof(args->mark));
    }
    shk_fake_failed = ranks == 0 ? 700 : 0;
}
#endif

struct pointers_args {
    struct shk_fake_window *window;
    int ranks;
    gpu_ptr to;
};

static void run_pointers(void *arg)
{
    const struct pointers_args *args = arg;

    memcpy((void *)(uintptr_t)args->to, args->window->base,
           (size_t)args->ranks * sizeof(args->window->base[0]));
}

static const char *const kernel_names[] = {
    "shk_oneshot_", "shk_twoshot_",  "shk_exchange_",    "shk_ll128_",
    "shk_push_",    "shk_multimem_", "shk_fill_",        "shk_check_",
    "shk_sum_",     "shk_delay",     "shk_lsa_pointers", "shk_multicast_probe"};
enum {
    ONESHOT,
    TWOSHOT,
    EXCHANGE,
    LL128,
    PUSH,
    MULTIMEM,
    FILL,
    CHECK,
    SUM,
    DELAY,
    POINTERS,
    PROBE,
    KERNELS
};

static struct function {
    int kernel;
    uint32_t type;
} functions[64];

int CALL(cuModuleGetFunction, hipModuleGetFunction)(void **function, void *module, const char *name)
{
    static unsigned used;
    uint32_t type = 0;
    int k = 0;

    (void)module;
    for (k = 0; k < KERNELS; k++) {
        size_t len = strlen(kernel_names[k]);

        if (strncmp(name, kernel_names[k], len) != 0 || used == 64) {
            continue;
        }
        for (type = 0; k < DELAY && type + 1 < SHK_GPU_TYPE_COUNT; type++) {
            const char *tag = shk_gpu_type_tag((enum shk_gpu_type)type);

            if (strncmp(name + len, tag, strlen(tag)) == 0) {
                break;
            }
        }
        functions[used] = (struct function){k, type};
        *function = &functions[used++];
        return SUCCESS;
    }
    return 500;
}

/* Two ranks with an address for whole vectors, room for their lines, and flags that are no epoch to
 * come. */
static int lines_fit(const struct shk_gpu_reduce *args, uint32_t type)
{
    uint64_t step = (uint64_t)SHK_GPU_LL128_VECTORS * 16;
    uint64_t steps = (args->count * shk_gpu_type_bytes((enum shk_gpu_type)type) + step - 1) / step;

    return args->ranks == 2 && ((args->in | args->out) & 15) == 0 &&
           steps * SHK_GPU_LL128_BYTES <= args->stage_bytes &&
           *(const uint64_t *)(uintptr_t)(args->base[args->rank] + args->stage + 120) == 0;
}

int CALL(cuLaunchKernel, hipModuleLaunchKernel)(void *function, unsigned gx, unsigned gy,
                                                unsigned gz, unsigned bx, unsigned by, unsigned bz,
                                                unsigned shared, void *stream, void **params,
                                                void **extra)
{
    const struct function *f = function;
    struct check_args check = {.type = f->type};
    struct reduce_args reduce = {
        .push = f->kernel == PUSH, .multimem = f->kernel == MULTIMEM, .type = f->type};
    struct sum_args sum = {.type = f->type};
    struct pointers_args pointers;
#ifndef HIP
    struct probe_args probe;
#endif

    (void)shared, (void)stream, (void)extra;
    if (gx * gy * gz == 0 || bx * by * bz == 0 || bx * by * bz > 1024) {
        return INVALID;
    }
    switch (f->kernel) {
    case ONESHOT:
    case TWOSHOT:
    case EXCHANGE:
    case LL128:
    case PUSH:
    case MULTIMEM:
        memcpy(&reduce.args, params[0], sizeof(reduce.args));
        if (f->kernel == EXCHANGE &&
            (reduce.args.ranks != 2 ||
             reduce.args.stage_bytes < reduce.args.count * shk_gpu_type_bytes(f->type))) {
            return INVALID;
        }
        if (f->kernel == LL128 &&
            (bx != SHK_GPU_LL128_THREADS || !lines_fit(&reduce.args, f->type))) {
            return INVALID;
        }
        return shk_fake_enqueue(run_reduce, &reduce, sizeof(reduce));
    case FILL:
    case CHECK:
        memcpy(&check.at, params[0], sizeof(check.at));
        memcpy(&check.count, params[1], sizeof(check.count));
        memcpy(&check.spec, params[2], sizeof(check.spec));
        if (f->kernel == CHECK) {
            memcpy(&check.result, params[3], sizeof(check.result));
        }
        return shk_fake_enqueue(f->kernel == FILL ? run_fill : run_check, &check, sizeof(check));
    case SUM:
        memcpy(&sum.to, params[0], sizeof(sum.to));
        memcpy(&sum.a, params[1], sizeof(sum.a));
        memcpy(&sum.b, params[2], sizeof(sum.b));
        memcpy(&sum.count, params[3], sizeof(sum.count));
        return shk_fake_enqueue(run_sum, &sum, sizeof(sum));
    case DELAY: return shk_fake_enqueue(run_delay, params[0], sizeof(uint64_t));
#ifndef HIP
    case PROBE:
        memcpy(&probe.from, params[0], sizeof(probe.from));
        memcpy(&probe.to, params[1], sizeof(probe.to));
        memcpy(&probe.mark, params[2], sizeof(probe.mark));
        memcpy(&probe.sum, params[3], sizeof(probe.sum));
        return shk_fake_enqueue(run_probe, &probe, sizeof(probe));
#endif
    default:
        memcpy(&pointers.window, params[0], sizeof(pointers.window));
        memcpy(&pointers.ranks, params[1], sizeof(pointers.ranks));
        memcpy(&pointers.to, params[2], sizeof(pointers.to));
        return shk_fake_enqueue(run_pointers, &pointers, sizeof(pointers));
    }
}

#ifndef HIP
/* Nothing overlaps here: whoever launches so has said that his kernel waits for what is ahead of
 * it. */
int cuLaunchKernelEx(const struct gpu_launch_config *config, void *function, void **params,
                     void **extra)
{
    const struct function *f = function;

    if (config->attribute_count != 1 || config->attributes[0].id != GPU_ATTRIBUTE_OVERLAP ||
        config->attributes[0].value.on != 1 || f->kernel > MULTIMEM || shk_fake_faulty("overlap")) {
        return INVALID;
    }
    return cuLaunchKernel(function, config->grid[0], config->grid[1], config->grid[2],
                          config->block[0], config->block[1], config->block[2],
                          config->shared_bytes, config->stream, params, extra);
}
#endif
