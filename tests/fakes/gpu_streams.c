/* Streams of the stand-in libcuda.so.1 that write words and wait for them. What follows a wait is
 * done by the calling thread after it, so a wait that is in vain ends after a while, and nothing
 * that follows is done.
 *
 *   SHK_FAKE_STREAM_OPS 0: has none of it
 *   SHK_FAKE_STREAM_MS  how long a wait lasts at most, 20000 by default */
#include "tests/fakes/gpu_driver.h"
#include "tests/fakes/rest.h"

#include <stdlib.h>

struct word {
    gpu_ptr at;
    uint32_t value;
};

int cuStreamQuery(void *stream)
{
    (void)stream;
    return shk_fake_stuck ? GPU_UNFINISHED : shk_fake_failed;
}

int cuStreamWaitEvent(void *stream, void *event, unsigned flags)
{
    (void)stream;
    return event == NULL || flags != 0 ? INVALID : shk_fake_failed;
}

static void run_write(void *arg)
{
    const struct word *word = arg;

    __atomic_store_n((uint32_t *)(uintptr_t)word->at, word->value, __ATOMIC_RELEASE);
}

static void run_until(void *arg)
{
    const struct word *word = arg;
    const char *ms = getenv("SHK_FAKE_STREAM_MS");
    uint64_t end = shk_fake_now_ns() + (uint64_t)atoi(ms != NULL ? ms : "20000") * 1000000U;
    unsigned turns = 0;

    while ((int32_t)(__atomic_load_n((uint32_t *)(uintptr_t)word->at, __ATOMIC_ACQUIRE) -
                     word->value) < 0) {
        if (shk_fake_now_ns() > end) {
            shk_fake_stuck = 1;
            return;
        }
        rest(&turns);
    }
}

int cuStreamWriteValue32_v2(void *stream, gpu_ptr at, uint32_t value, unsigned flags)
{
    struct word word = {at, value};

    (void)stream;
    return flags != 0 || at % 4 != 0 ? INVALID : shk_fake_enqueue(run_write, &word, sizeof(word));
}

int cuStreamWaitValue32_v2(void *stream, gpu_ptr at, uint32_t value, unsigned flags)
{
    struct word word = {at, value};

    (void)stream;
    return flags != GPU_WAIT_REACHED || at % 4 != 0
               ? INVALID
               : shk_fake_enqueue(run_until, &word, sizeof(word));
}
