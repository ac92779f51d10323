#include "core/run/readonce.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static const char once_path[] = "/proc/kallsyms";

/* A kernel with all its modules has some 12 MB. In huge pages, where there are some: 4 page faults
 * for 1,300. */
enum { ONCE_FIRST = 8 << 20, ONCE_MOST = 128 << 20, ONCE_PAGE = 2 << 20 };

/* How often it is looked for new libraries: at first, and at last. */
enum { ONCE_NAP_US = 500, ONCE_LONG_NAP_US = 16000 };

static struct {
    atomic_bool begun, loaded;
    bool watched; /* by `watcher`, which is not joined yet */
    bool tried;
    pthread_t watcher;
    pthread_mutex_t lock;
    size_t before;            /* objects that were there at the beginning */
    unsigned long long added; /* objects ever added, at the last look */
    char *text;               /* kept until the process ends */
    size_t len;
} once = {.lock = PTHREAD_MUTEX_INITIALIZER};

static char *once_read(size_t *len_p)
{
    int fd = open(once_path, O_RDONLY | O_CLOEXEC);
    size_t size = ONCE_FIRST, len = 0;
    char *text = fd < 0 ? NULL : aligned_alloc(ONCE_PAGE, size);
    ssize_t n = -1;
    if (text)
        (void)madvise(text, size, MADV_HUGEPAGE);
    while (text && size <= ONCE_MOST) {
        n = read(fd, text + len, size - len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        len += (size_t)n;
        char *more = len < size ? text : realloc(text, size * 2);
        size *= len < size ? 1 : 2;
        if (!more)
            break;
        text = more;
    }
    if (fd >= 0)
        close(fd);
    *len_p = len;
    if (n == 0 && len)
        return text;
    free(text);
    return NULL;
}

/* Has one of the objects that came since the beginning the name of the file in it? They are walked
 * in the order in which they came. */
static int once_named(struct dl_phdr_info *object, size_t size, void *arg)
{
    size_t *at = arg;
    (void)size;
    if ((*at)++ < once.before)
        return 0;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &object->dlpi_phdr[i];
        /* what can be written is still being relocated */
        bool text = p->p_type == PT_LOAD && (p->p_flags & PF_R) && !(p->p_flags & PF_W);
        if (text && memmem((const void *)(object->dlpi_addr + p->p_vaddr), p->p_filesz, once_path,
                           sizeof once_path))
            return 1;
    }
    return 0;
}

static int once_count(struct dl_phdr_info *object, size_t size, void *arg)
{
    size_t *count = arg;
    (void)size;
    once.added = object->dlpi_adds;
    ++*count;
    return 0;
}

static bool once_wanted(void)
{
    unsigned long long added = once.added;
    size_t count = 0, at = 0;
    dl_iterate_phdr(once_count, &count);
    return once.added != added && dl_iterate_phdr(once_named, &at) != 0;
}

static void *once_watch(void *arg)
{
    long us = ONCE_NAP_US;
    (void)arg;
    while (!atomic_load(&once.loaded)) {
        if (once_wanted()) {
            once.text = once_read(&once.len);
            once.tried = true;
            break;
        }
        nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
        us = us * 2 < ONCE_LONG_NAP_US ? us * 2 : ONCE_LONG_NAP_US;
    }
    return NULL;
}

void shk_readonce_begin(void)
{
    if (atomic_exchange(&once.begun, true))
        return;
    dl_iterate_phdr(once_count, &once.before);
    once.watched = pthread_create(&once.watcher, NULL, once_watch, NULL) == 0;
}

void shk_readonce_loaded(void)
{
    atomic_store(&once.loaded, true);
}

static FILE *once_open(const char *mode)
{
    pthread_mutex_lock(&once.lock);
    shk_readonce_loaded();
    if (once.watched)
        pthread_join(once.watcher, NULL);
    once.watched = false;
    if (!once.tried)
        once.text = once_read(&once.len);
    once.tried = true;
    pthread_mutex_unlock(&once.lock);
    return once.text ? fmemopen(once.text, once.len, mode) : NULL;
}

/* The program's symbols come before those of the C library, for every library that it loads. */
__attribute__((visibility("default"))) FILE *fopen(const char *path, const char *mode)
{
    static FILE *(*_Atomic next)(const char *, const char *);
    FILE *(*real)(const char *, const char *) = atomic_load(&next);
    if (!real) {
        *(void **)&real = dlsym(RTLD_NEXT, "fopen");
        atomic_store(&next, real);
    }
    bool ours = atomic_load(&once.begun) && *mode == 'r' && !strchr(mode, '+') &&
                strcmp(path, once_path) == 0;
    FILE *f = ours ? once_open("r") : NULL;
    return f ? f : real(path, mode);
}
