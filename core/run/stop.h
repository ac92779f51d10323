/* A request to end early: SIGTERM, as launchers and time limits send it, and SIGINT of the
 * keyboard. Whoever waits looks at it and goes on as if the time were over, so that what is known
 * by then is still reported. */
#ifndef SHK_CORE_STOP_H
#define SHK_CORE_STOP_H

#include <stddef.h>

/* From now on the first such signal is remembered; the second ends the process as ever. A signal
 * that the parent ignores stays ignored. */
void shk_stop_catch(void);

/* Back to the defaults, for children. */
void shk_stop_release(void);

/* The signal that came, 0: none. */
int shk_stop_signal(void);

/* "SIGTERM", "SIGINT"; NULL: none came. */
const char *shk_stop_name(void);

/* The name of any signal, "SIGSEGV", in buf, which is returned; one without a name, as those of
 * real time, is "signal 35". */
const char *shk_signal_name(int sig, char *buf, size_t size);

#endif
