/* An MPI job for test_hang.py: hang_job MODE VICTIM [PATH]. After some work that all share, the
 * victim does what the mode says and the others wait for it in an all-reduce; in the modes of a
 * healthy job all go on for ever. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <math.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int rank, ranks, victim;
static const char *path;
static volatile double sink = 1;

static void all_reduce(int count)
{
    static double in[1 << 16], out[1 << 16];
    MPI_Allreduce(in, out, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

__attribute__((noinline)) static void solve(void)
{
    for (;;)
        sink += sin(sink);
}

__attribute__((noinline)) static void work(double seconds)
{
    struct timespec from, now;
    clock_gettime(CLOCK_MONOTONIC, &from);
    do {
        for (int i = 0; i < 1000; i++)
            sink += sin(sink);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((double)(now.tv_sec - from.tv_sec) + (double)(now.tv_nsec - from.tv_nsec) / 1e9 <
             seconds);
}

static void lock_twice(void)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
    pthread_mutex_lock(&mutex);
}

static void *thread_main(void *arg)
{
    (void)arg;
    for (;;)
        work(0.01);
}

/* One round of a healthy job; false: no such mode. */
static int healthy(const char *mode, long round)
{
    int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks, got = 0;
    if (strcmp(mode, "tight") == 0) {
        all_reduce(1);
    } else if (strcmp(mode, "compute") == 0) {
        work(0.001);
        all_reduce(64);
    } else if (strcmp(mode, "uneven") == 0) {
        work(rank == victim ? 0.15 : 0.01);
        all_reduce(1);
    } else if (strcmp(mode, "ring") == 0) {
        MPI_Sendrecv(&rank, 1, MPI_INT, next, 0, &got, 1, MPI_INT, before, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    } else if (strcmp(mode, "barrier") == 0) {
        MPI_Barrier(MPI_COMM_WORLD);
        usleep(20000);
    } else if (strcmp(mode, "mixed") == 0) {
        MPI_Bcast(&got, 1, MPI_INT, (int)(round % ranks), MPI_COMM_WORLD);
        MPI_Reduce(&rank, &got, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
        all_reduce(1 << 12);
    } else if (strcmp(mode, "files") == 0) {
        char text[4096] = "";
        int fd = rank == victim ? open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600) : -1;
        for (int i = 0; fd >= 0 && i < 64; i++)
            if (write(fd, text, sizeof text) < 0)
                break;
        if (fd >= 0)
            close(fd);
        MPI_Barrier(MPI_COMM_WORLD);
    } else if (strcmp(mode, "request") == 0) {
        MPI_Request request;
        MPI_Ibarrier(MPI_COMM_WORLD, &request);
        work(0.002);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (strcmp(mode, "threads") == 0) {
        static pthread_t thread;
        if (!thread)
            pthread_create(&thread, NULL, thread_main, NULL);
        all_reduce(16);
    } else if (strcmp(mode, "alone") == 0) {
        work(0.05);
    } else {
        return 0;
    }
    return 1;
}

/* Another process becomes its debugger and leaves it stopped. */
static void debugged(void)
{
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* the debugger goes with the rank */
        if (getppid() == parent && ptrace(PTRACE_ATTACH, parent, NULL, NULL) == 0)
            for (;;)
                pause();
        _exit(1);
    }
    for (;;)
        pause();
}

/* At the end of a connection whose other end is silent. */
static void silent_peer(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    char byte;
    int server = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(server, (struct sockaddr *)&at, size) == 0 && listen(server, 1) == 0 &&
        getsockname(server, (struct sockaddr *)&at, &size) == 0 &&
        connect(client, (struct sockaddr *)&at, size) == 0)
        sink += (double)recv(client, &byte, 1, 0);
}

static void full_pipe(void)
{
    char text[4096] = "";
    int ends[2];
    while (pipe(ends) == 0)
        while (write(ends[1], text, sizeof text) > 0)
            ;
}

static void locked_file(void)
{
    int mine = open(path, O_CREAT | O_RDWR, 0600), other = open(path, O_RDWR);
    if (flock(mine, LOCK_EX) == 0)
        flock(other, LOCK_EX);
}

static void condition(void)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    pthread_mutex_lock(&mutex);
    pthread_cond_wait(&never, &mutex);
}

/* The others reduce more numbers than this rank, which gets an error, ignores it and goes on. */
static void counts(void)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    all_reduce(1);
    MPI_Barrier(MPI_COMM_WORLD);
}

__attribute__((noinline)) static void deep(int levels)
{
    if (levels)
        deep(levels - 1);
    else
        solve();
    sink += levels;
}

/* Stands in MPI; false: no such mode. */
static int stand_in_mpi(const char *mode)
{
    int got = 0, next = (rank + 1) % ranks;
    static double much[1 << 20];
    MPI_Request request;
    if (strcmp(mode, "other") == 0)
        MPI_Barrier(MPI_COMM_WORLD);
    else if (strcmp(mode, "receive") == 0)
        MPI_Recv(&got, 1, MPI_INT, next, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else if (strcmp(mode, "wait") == 0)
        return !(MPI_Irecv(&got, 1, MPI_INT, next, 77, MPI_COMM_WORLD, &request) ||
                 MPI_Wait(&request, MPI_STATUS_IGNORE));
    else if (strcmp(mode, "ssend") == 0)
        MPI_Ssend(&rank, 1, MPI_INT, next, 77, MPI_COMM_WORLD);
    else if (strcmp(mode, "send") == 0)
        MPI_Send(much, 1 << 20, MPI_DOUBLE, next, 77, MPI_COMM_WORLD);
    else if (strcmp(mode, "bcast") == 0)
        MPI_Bcast(&got, 1, MPI_INT, next, MPI_COMM_WORLD);
    else if (strcmp(mode, "probe") == 0)
        MPI_Probe(next, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else if (strcmp(mode, "counts") == 0)
        counts();
    else
        return 0;
    return 1;
}

static void stand(const char *mode)
{
    int got = 0;
    struct stat st;
    pthread_t thread;
    char text[16];
    if (stand_in_mpi(mode))
        return;
    if (strcmp(mode, "loop") == 0)
        solve();
    else if (strcmp(mode, "deep") == 0)
        deep(40);
    else if (strcmp(mode, "sleep") == 0)
        sleep(100000);
    else if (strcmp(mode, "pause") == 0)
        pause();
    else if (strcmp(mode, "stop") == 0)
        raise(SIGSTOP);
    else if (strcmp(mode, "debugged") == 0)
        debugged();
    else if (strcmp(mode, "open") == 0)
        got = open(path, O_RDONLY);
    else if (strcmp(mode, "read") == 0)
        got = (int)read(open(path, O_RDWR), text, sizeof text);
    else if (strcmp(mode, "stat") == 0)
        got = stat(path, &st);
    else if (strcmp(mode, "flock") == 0)
        locked_file();
    else if (strcmp(mode, "lock") == 0)
        lock_twice();
    else if (strcmp(mode, "condition") == 0)
        condition();
    else if (strcmp(mode, "join") == 0)
        got = pthread_create(&thread, NULL, thread_main, NULL) || pthread_join(thread, NULL);
    else if (strcmp(mode, "child") == 0)
        got = system("sleep 100000");
    else if (strcmp(mode, "pipe") == 0)
        full_pipe();
    else if (strcmp(mode, "peer") == 0)
        silent_peer();
    else if (strcmp(mode, "exit") == 0)
        _exit(0);
    sink += got;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "tight";
    victim = argc > 2 ? atoi(argv[2]) : 0;
    path = argc > 3 ? argv[3] : "";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 0; i < 10; i++)
        all_reduce(1);
    printf("rank %d process %d\n", rank, (int)getpid());
    fflush(stdout);
    if (strcmp(mode, "counts") == 0)
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (long round = 0; healthy(mode, round); round++)
        ;
    if (rank == victim)
        stand(mode);
    all_reduce(strcmp(mode, "counts") == 0 ? 1 << 16 : 1);
    MPI_Finalize();
    return 0;
}
