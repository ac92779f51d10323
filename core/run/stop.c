#include "core/run/stop.h"

#include <signal.h>
#include <stdio.h>

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

/* Not sigabbrev_np(), which came with glibc 2.32. */
const char *shk_signal_name(int sig, char *buf, size_t size)
{
#define NAME(signal_) [SIG##signal_] = "SIG" #signal_
    static const char *const names[] = {
        NAME(HUP),  NAME(INT),    NAME(QUIT), NAME(ILL),  NAME(TRAP),   NAME(ABRT), NAME(BUS),
        NAME(FPE),  NAME(KILL),   NAME(USR1), NAME(SEGV), NAME(USR2),   NAME(PIPE), NAME(ALRM),
        NAME(TERM), NAME(STKFLT), NAME(CHLD), NAME(CONT), NAME(STOP),   NAME(TSTP), NAME(TTIN),
        NAME(TTOU), NAME(URG),    NAME(XCPU), NAME(XFSZ), NAME(VTALRM), NAME(PROF), NAME(WINCH),
        NAME(POLL), NAME(PWR),    NAME(SYS),
    };
#undef NAME
    if (sig > 0 && (size_t)sig < sizeof names / sizeof *names && names[sig])
        snprintf(buf, size, "%s", names[sig]);
    else
        snprintf(buf, size, "signal %d", sig);
    return buf;
}
