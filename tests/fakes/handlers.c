/* Takes over the handlers of fatal signals as soon as it is loaded, as libpsm2 does. */
#include <signal.h>
#include <unistd.h>

static void take(int signum)
{
    (void)signum;
    _exit(42);
}

static void __attribute__((constructor)) start(void)
{
    signal(SIGSEGV, take);
    signal(SIGABRT, take);
    signal(SIGUSR2, take);
}
