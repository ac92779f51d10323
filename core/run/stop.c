#include "core/run/stop.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t stop_signal;

static const int stop_signals[] = {SIGTERM, SIGINT};

static void stop_note(int sig)
{
    stop_signal = sig;
}

void shk_stop_catch(void)
{
    struct sigaction act = {.sa_handler = stop_note, .sa_flags = (int)SA_RESETHAND}, was;
    sigemptyset(&act.sa_mask);
    for (size_t i = 0; i < sizeof stop_signals / sizeof *stop_signals; i++)
        if (sigaction(stop_signals[i], NULL, &was) == 0 && was.sa_handler != SIG_IGN)
            sigaction(stop_signals[i], &act, NULL);
}

void shk_stop_release(void)
{
    struct sigaction was;
    for (size_t i = 0; i < sizeof stop_signals / sizeof *stop_signals; i++)
        if (sigaction(stop_signals[i], NULL, &was) == 0 && was.sa_handler == stop_note)
            signal(stop_signals[i], SIG_DFL);
}

int shk_stop_signal(void)
{
    return stop_signal;
}

const char *shk_stop_name(void)
{
    return stop_signal == SIGTERM ? "SIGTERM" : stop_signal == SIGINT ? "SIGINT" : NULL;
}
