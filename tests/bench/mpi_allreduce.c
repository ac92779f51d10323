/* MPI_Allreduce, measured the way shakedown measures its own all-reduce: the same data, the same
 * verification, the same barrier in shared memory before each operation, the same iterations, and
 * per size the largest of the ranks' medians. One JSON object on rank 0's standard output.
 *
 * usage: mpi_allreduce BARRIER_FILE MIN_BYTES MAX_BYTES      (a file of zeros that all ranks share)
 */
#include "collectives/ranks/data.h"
#include <fcntl.h>
#include <mpi.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* As in collectives/algorithm/sweep.c. */
#define BENCH_WARMUPS   2U
#define BENCH_MIN_ITERS 5U
#define BENCH_MAX_ITERS 200U
#define BENCH_BUDGET_NS UINT64_C(60000000)

#define BENCH_RANKS 64
#define BENCH_LINE  64

struct bench_slot {
    _Alignas(BENCH_LINE) _Atomic uint64_t epoch;
};

struct bench {
    struct bench_slot *slots;
    uint64_t epoch;
    int rank;
    int ranks;
    int crowded;
    uint32_t seed;
    unsigned char *send;
    unsigned char *recv;
};

static uint64_t bench_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000U + (uint64_t)ts.tv_nsec;
}

static void bench_die(const char *text)
{
    fprintf(stderr, "mpi_allreduce: %s\n", text);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Progress of what MPI still has to send goes on while this rank waits. */
static void bench_barrier(struct bench *bench)
{
    unsigned idle = 0;
    int i = 0;
    int flag = 0;

    bench->epoch++;
    atomic_store_explicit(&bench->slots[bench->rank].epoch, bench->epoch, memory_order_release);
    while (i < bench->ranks) {
        if (atomic_load_explicit(&bench->slots[i].epoch, memory_order_acquire) >= bench->epoch) {
            i++;
            continue;
        }
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        if (++idle > (bench->crowded ? 4U : 100U)) {
            sched_yield();
        }
    }
}

static uint64_t bench_once(struct bench *bench, size_t bytes)
{
    size_t count = bytes / SHK_TYPE_BYTES;
    struct shk_mismatch bad;
    uint64_t start = 0;
    uint64_t ns = 0;

    bench->seed++;
    shk_data_fill(SHK_FLOAT32, bench->send, count, (unsigned)bench->rank, (unsigned)bench->ranks,
                  bench->seed);
    memset(bench->recv, 0xff, bytes);
    bench_barrier(bench);
    start = bench_now();
    MPI_Allreduce(bench->send, bench->recv, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    ns = bench_now() - start;
    bench_barrier(bench);
    if (!shk_data_verify(SHK_FLOAT32, bench->recv, count, (unsigned)bench->ranks, bench->seed,
                         &bad)) {
        bench_die("wrong result");
    }
    return ns;
}

static int bench_compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

static double bench_size(struct bench *bench, size_t bytes)
{
    double times[BENCH_MAX_ITERS];
    uint64_t pace = 0;
    uint64_t want = 0;
    unsigned i = 0;
    double mine = 0;
    double slowest = 0;

    for (i = 0; i < BENCH_WARMUPS; i++) {
        pace = bench_now();
        (void)bench_once(bench, bytes);
        pace = bench_now() - pace;
    }
    want = BENCH_BUDGET_NS / (pace + 1);
    want = want < BENCH_MIN_ITERS ? BENCH_MIN_ITERS : want;
    want = want > BENCH_MAX_ITERS ? BENCH_MAX_ITERS : want;
    MPI_Allreduce(MPI_IN_PLACE, &want, 1, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
    for (i = 0; i < want; i++) {
        times[i] = (double)bench_once(bench, bytes) / 1000.0;
    }
    qsort(times, want, sizeof(*times), bench_compare);
    mine = want % 2 != 0 ? times[want / 2] : (times[want / 2 - 1] + times[want / 2]) / 2;
    MPI_Reduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    return slowest;
}

static void bench_run(struct bench *bench, size_t min_bytes, size_t max_bytes)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    size_t bytes = 0;
    int len = 0;

    MPI_Get_library_version(version, &len);
    version[strcspn(version, ",\n")] = '\0';
    if (bench->rank == 0) {
        printf("{\"library\": \"%s\", \"sizes\": [", version);
    }
    for (bytes = min_bytes; bytes <= max_bytes; bytes *= 2) {
        double time_us = bench_size(bench, bytes);

        if (bench->rank == 0) {
            printf("%s{\"bytes\": %zu, \"time_us\": %.3f}", bytes > min_bytes ? ", " : "", bytes,
                   time_us);
        }
    }
    if (bench->rank == 0) {
        printf("]}\n");
    }
}

int main(int argc, char **argv)
{
    struct bench bench = {0};
    size_t min_bytes = 0;
    size_t max_bytes = 0;
    int fd = -1;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &bench.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &bench.ranks);
    if (argc != 4 || bench.ranks > BENCH_RANKS) {
        bench_die("usage: mpi_allreduce BARRIER_FILE MIN_BYTES MAX_BYTES");
    }
    min_bytes = strtoull(argv[2], NULL, 10);
    max_bytes = strtoull(argv[3], NULL, 10);
    fd = open(argv[1], O_RDWR);
    bench.crowded = bench.ranks > (int)sysconf(_SC_NPROCESSORS_ONLN);
    bench.send = aligned_alloc(4096, (max_bytes + 4095) / 4096 * 4096);
    bench.recv = aligned_alloc(4096, (max_bytes + 4095) / 4096 * 4096);
    if (fd >= 0) {
        bench.slots = mmap(NULL, BENCH_RANKS * sizeof(struct bench_slot), PROT_READ | PROT_WRITE,
                           MAP_SHARED, fd, 0);
    }
    if (fd < 0 || bench.slots == MAP_FAILED || bench.send == NULL || bench.recv == NULL ||
        min_bytes < SHK_TYPE_BYTES) {
        bench_die("no barrier file, no memory or bad sizes");
    }
    bench_run(&bench, min_bytes, max_bytes);
    MPI_Finalize();
    return 0;
}
