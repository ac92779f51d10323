/* A second MPI job for hang_score, of kinds that hang_job.c lacks: hang_kinds MODE VICTIM PATH.
 * After some work that all share, the victim does what the mode says and the others wait for it in
 * an all-reduce; in the modes of a healthy job all go on for ever. */
#include <fcntl.h>
#include <mpi.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static int rank, ranks, victim;
static const char *path;
static volatile double sink = 1;
static volatile int never;
static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;

static void all_reduce(void)
{
    int one = 1, sum = 0;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

__attribute__((noinline)) static void yields(void)
{
    while (!never)
        sched_yield();
}

__attribute__((noinline)) static void short_sleeps(void)
{
    while (!never)
        usleep(1000);
}

__attribute__((noinline)) static void polls_mpi(void)
{
    int flag = 0;
    while (!flag)
        MPI_Iprobe(MPI_ANY_SOURCE, 4711, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}

__attribute__((noinline)) static int recursion(int levels)
{
    while (levels == 0 && !never)
        sink += 1;
    if (levels == 0)
        return 0;
    int r = recursion(levels - 1);
    sink += r;
    return r + 1;
}

static void *takes_second(void *arg)
{
    pthread_mutex_lock(&second);
    usleep(200000);
    pthread_mutex_lock(&first);
    return arg;
}

static void crossed_locks(void)
{
    pthread_t thread;
    pthread_mutex_lock(&first);
    pthread_create(&thread, NULL, takes_second, NULL);
    usleep(300000);
    pthread_mutex_lock(&second);
}

static void *barrier_thread(void *arg)
{
    pthread_barrier_wait(arg);
    return NULL;
}

static void thread_barrier(void)
{
    pthread_t thread;
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, 3);
    pthread_create(&thread, NULL, barrier_thread, &barrier);
    pthread_barrier_wait(&barrier);
}

static void shared_semaphore(void)
{
    sem_t *sem = mmap(NULL, sizeof *sem, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    sem_init(sem, 1, 0);
    sem_wait(sem);
}

static void selects(void)
{
    int ends[2];
    fd_set set;
    if (pipe(ends))
        return;
    FD_ZERO(&set);
    FD_SET(ends[0], &set);
    select(ends[0] + 1, &set, NULL, NULL, NULL);
}

static void epolls(void)
{
    struct epoll_event event = {.events = EPOLLIN};
    int set = epoll_create1(0), number = eventfd(0, 0);
    epoll_ctl(set, EPOLL_CTL_ADD, number, &event);
    for (;;)
        epoll_wait(set, &event, 1, -1);
}

static void child_that_is_silent(void)
{
    char text[16];
    FILE *of = popen("sleep 100000", "r");
    sink += of && fgets(text, sizeof text, of) ? 1 : 0;
}

static void locked_range(void)
{
    int fd = open(path, O_CREAT | O_RDWR, 0600), ends[2];
    char byte;
    if (pipe(ends))
        return;
    if (fork() == 0) {
        lockf(fd, F_LOCK, 1);
        sink += (double)write(ends[1], "x", 1);
        for (;;)
            pause();
    }
    sink += (double)read(ends[0], &byte, 1);
    lockf(fd, F_LOCK, 1);
}

static void message_queue(void)
{
    struct {
        long type;
        char text[8];
    } message;
    int queue = msgget(IPC_PRIVATE, 0600);
    sink += (double)msgrcv(queue, &message, sizeof message.text, 0, 0);
}

static void posix_queue(void)
{
    char name[40], text[8];
    snprintf(name, sizeof name, "/hang_kinds.%d", (int)getpid());
    struct mq_attr attr = {.mq_maxmsg = 1, .mq_msgsize = 8};
    mqd_t queue = mq_open(name, O_CREAT | O_RDWR, 0600, &attr);
    mq_unlink(name);
    sink += (double)mq_receive(queue, text, sizeof text, NULL);
}

/* No one accepts: the second or third connection waits for room. */
static void full_backlog(void)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(at.sun_path + 1, sizeof at.sun_path - 1, "hang_kinds.%d", (int)getpid());
    int server = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(server, (struct sockaddr *)&at, sizeof at) || listen(server, 0))
        return;
    while (connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&at, sizeof at) == 0)
        ;
}

static void accepts(void)
{
    int server = socket(AF_INET, SOCK_STREAM, 0);
    if (listen(server, 1) == 0)
        sink += accept(server, NULL, NULL);
}

static void datagram(void)
{
    char byte;
    sink += (double)recv(socket(AF_INET, SOCK_DGRAM, 0), &byte, 1, 0);
}

static void signals(void)
{
    sigset_t set;
    int got;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, NULL);
    sigwait(&set, &got);
}

/* The new process cannot begin until someone opens the fifo, and the rank waits for that. */
static void vforked(void)
{
    if (vfork() == 0) {
        (void)!open(path, O_RDONLY);
        _exit(0);
    }
}

static void in_communicator(void)
{
    MPI_Comm split;
    MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &split);
}

static void in_window(void)
{
    MPI_Win window;
    void *memory;
    MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
}

static void in_reduce_scatter(void)
{
    int in[64] = {0}, out = 0;
    MPI_Reduce_scatter_block(in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

static void *takes_part(void *arg)
{
    for (;;)
        all_reduce();
    return arg;
}

static void folder_of(void)
{
    struct statvfs of;
    statvfs(path, &of);
}

static void writes_fifo(void)
{
    char text[1 << 16];
    memset(text, 0, sizeof text);
    int fd = open(path, O_RDWR);
    while (write(fd, text, sizeof text) > 0)
        ;
}

/* Code that no file has, as compilers make it at run time: a loop without an end. */
static void made_code(void)
{
#if defined __x86_64__
    static const unsigned char loop[] = {0xeb, 0xfe};
#else
    static const unsigned char loop[] = {0x00, 0x00, 0x00, 0x14};
#endif
    void *code =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void (*run)(void);
    memcpy(code, loop, sizeof loop);
    memcpy(&run, &code, sizeof run);
    run();
}

static void semaphore_set(void)
{
    struct sembuf down = {.sem_op = -1};
    int set = semget(IPC_PRIVATE, 1, 0600);
    semop(set, &down, 1);
}

static void watches_folder(void)
{
    char events[256];
    int watch = inotify_init();
    inotify_add_watch(watch, "/", IN_DELETE_SELF);
    sink += (double)read(watch, events, sizeof events);
}

static void full_queue(void)
{
    struct {
        long type;
        char text[1024];
    } message = {.type = 1};
    int queue = msgget(IPC_PRIVATE, 0600);
    while (msgsnd(queue, &message, sizeof message.text, 0) == 0)
        ;
}

__attribute__((noinline)) static double large_frame(int levels)
{
    volatile char room[64 << 10];
    room[levels] = 1;
    while (levels == 0 && !never)
        sink += 1;
    return levels ? large_frame(levels - 1) + room[levels] : 0;
}

static void large_frames(void)
{
    sink += large_frame(60);
}

static void *receives(void *arg)
{
    int got;
    MPI_Recv(&got, 1, MPI_INT, (rank + 1) % ranks, 4711, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return arg;
}

static void worker(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, receives, NULL);
    pthread_join(thread, NULL);
}

static const struct {
    const char *name;
    void (*stand)(void);
} modes[] = {
    {"yields", yields},
    {"short-sleeps", short_sleeps},
    {"polls-mpi", polls_mpi},
    {"crossed-locks", crossed_locks},
    {"thread-barrier", thread_barrier},
    {"shared-semaphore", shared_semaphore},
    {"selects", selects},
    {"epolls", epolls},
    {"silent-child", child_that_is_silent},
    {"locked-range", locked_range},
    {"message-queue", message_queue},
    {"posix-queue", posix_queue},
    {"full-backlog", full_backlog},
    {"accepts", accepts},
    {"datagram", datagram},
    {"signals", signals},
    {"vforked", vforked},
    {"communicator", in_communicator},
    {"window", in_window},
    {"reduce-scatter", in_reduce_scatter},
    {"statvfs", folder_of},
    {"writes-fifo", writes_fifo},
    {"made-code", made_code},
    {"semop", semaphore_set},
    {"inotify", watches_folder},
    {"full-queue", full_queue},
    {"large-frames", large_frames},
    {"worker", worker},
};

/* Healthy: the process's first thread is over, or sleeps for ever; another one takes part. */
static void other_thread(const char *mode)
{
    pthread_t thread;
    if (rank != victim)
        takes_part(NULL);
    pthread_create(&thread, NULL, takes_part, NULL);
    if (strcmp(mode, "first-thread-over") == 0)
        pthread_exit(NULL);
    if (strcmp(mode, "first-thread-polls") == 0)
        epolls();
    for (;;)
        pause();
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "yields";
    int got;
    victim = argc > 2 ? atoi(argv[2]) : 0;
    path = argc > 3 ? argv[3] : "";
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &got);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 0; i < 10; i++)
        all_reduce();
    printf("rank %d process %d\n", rank, (int)getpid());
    fflush(stdout);
    if (strncmp(mode, "first-thread-", 13) == 0)
        other_thread(mode);
    if (rank == victim && strcmp(mode, "recursion") == 0)
        sink += recursion(5000);
    for (size_t i = 0; rank == victim && i < sizeof modes / sizeof *modes; i++)
        if (strcmp(mode, modes[i].name) == 0)
            modes[i].stand();
    all_reduce();
    MPI_Finalize();
    return 0;
}
