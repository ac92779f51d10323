#include "checks/hang/hang_private.h"

#include <string.h>

void hang_say_rank(struct shk_strbuf *out, const struct hang_place *place)
{
    const char *command = place->rank ? hang_text(place->rank, "command") : NULL;
    if (place->number >= 0)
        shk_strbuf_printf(out, "rank %ld", place->number);
    else if (place->process >= 0 && command)
        shk_strbuf_printf(out, "process %ld %s", place->process, command);
    else if (place->process >= 0)
        shk_strbuf_printf(out, "process %ld", place->process);
    else
        shk_strbuf_puts(out, "a rank");
    if (place->host && place->number >= 0 && place->process >= 0)
        shk_strbuf_printf(out, " (%s, process %ld)", place->host, place->process);
    else if (place->host)
        shk_strbuf_printf(out, " (%s)", place->host);
}

static void say_seconds(struct shk_strbuf *out, const struct hang_place *place)
{
    if (place->seconds >= 1)
        shk_strbuf_printf(out, " for %.0f s", place->seconds);
}

static void say_file_system(struct shk_strbuf *out, const struct hang_place *place)
{
    if (place->file_system)
        shk_strbuf_printf(out, " (%s%s%s)", place->file_system, place->mount ? " at " : "",
                          place->mount ? place->mount : "");
}

void hang_say_place(struct shk_strbuf *out, const struct hang_place *place)
{
    const char *where = place->where;
    switch (place->kind) {
    case HANG_DEAD: shk_strbuf_puts(out, "has ended"); break;
    case HANG_ABSENT: shk_strbuf_puts(out, "has no process: it never started, or has ended"); break;
    case HANG_STOPPED: shk_strbuf_puts(out, "is stopped by a signal"); break;
    case HANG_DEBUGGED: shk_strbuf_puts(out, "is stopped by a debugger"); break;
    case HANG_BEHIND:
        shk_strbuf_printf(out, "is behind: %s", where ? where : "it launched fewer collectives");
        break;
    case HANG_CALL:
        shk_strbuf_printf(out, "waits %s %s", place->call->kind == SHK_WAIT_GPU ? "for" : "in",
                          place->call->title);
        break;
    case HANG_INPUT:
        shk_strbuf_puts(out, "waits for input: a prompt of a debugger or of the program");
        break;
    case HANG_IO:
        shk_strbuf_printf(out, "is in %s", where ? where : "a call on a file");
        say_file_system(out, place);
        break;
    case HANG_DRIVER:
        shk_strbuf_printf(out, "is in the GPU driver%s%s", where ? ": " : "", where ? where : "");
        break;
    case HANG_KERNEL:
        shk_strbuf_printf(out, "is in the kernel and cannot be interrupted%s%s", where ? ": " : "",
                          where ? where : "");
        break;
    case HANG_SLEEP:
        shk_strbuf_printf(out, "sleeps in its own code%s%s", where ? ": " : "", where ? where : "");
        break;
    case HANG_LOCK:
        shk_strbuf_printf(out, "waits for a thread or process of its own%s%s", where ? ": " : "",
                          where ? where : "");
        break;
    case HANG_USER:
        shk_strbuf_printf(out, "runs in its own code%s%s", where ? ": " : "", where ? where : "");
        break;
    case HANG_PEER:
        shk_strbuf_printf(out, "waits for another process%s%s", where ? ": " : "",
                          where ? where : "");
        break;
    default: shk_strbuf_puts(out, "could not be inspected");
    }
    say_seconds(out, place);
}

void hang_say_group(struct shk_strbuf *out, const struct hang_group *group, bool one)
{
    static const char *const many[HANG_KINDS] = {
        [HANG_DEAD] = "have ended",
        [HANG_ABSENT] = "have no process",
        [HANG_STOPPED] = "are stopped by a signal",
        [HANG_DEBUGGED] = "are stopped by a debugger",
        [HANG_IO] = "are in",
        [HANG_DRIVER] = "are in the GPU driver",
        [HANG_KERNEL] = "are in the kernel and cannot be interrupted",
        [HANG_SLEEP] = "sleep in their own code",
        [HANG_LOCK] = "wait for a thread or process of their own",
        [HANG_USER] = "run in their own code",
        [HANG_INPUT] = "wait for input",
        [HANG_CALL] = "wait",
        [HANG_BEHIND] = "are behind the others",
        [HANG_PEER] = "wait for other processes",
        [HANG_UNKNOWN] = "could not be inspected",
    };
    static const char *const single[HANG_KINDS] = {
        [HANG_DEAD] = "has ended",
        [HANG_ABSENT] = "has no process",
        [HANG_STOPPED] = "is stopped by a signal",
        [HANG_DEBUGGED] = "is stopped by a debugger",
        [HANG_IO] = "is in",
        [HANG_DRIVER] = "is in the GPU driver",
        [HANG_KERNEL] = "is in the kernel and cannot be interrupted",
        [HANG_SLEEP] = "sleeps in its own code",
        [HANG_LOCK] = "waits for a thread or process of its own",
        [HANG_USER] = "runs in its own code",
        [HANG_INPUT] = "waits for input",
        [HANG_CALL] = "waits",
        [HANG_BEHIND] = "is behind the others",
        [HANG_PEER] = "waits for another process",
        [HANG_UNKNOWN] = "could not be inspected",
    };
    shk_strbuf_puts(out, one ? single[group->kind] : many[group->kind]);
    if (group->kind == HANG_CALL)
        shk_strbuf_printf(out, " %s %s", group->call->kind == SHK_WAIT_GPU ? "for" : "in",
                          group->call->title);
    else if (group->kind == HANG_IO)
        shk_strbuf_printf(out, " %s", group->where ? group->where : "calls on files");
    else if (group->where)
        shk_strbuf_printf(out, ": %s", group->where);
}

char *hang_say_advice(const struct hang_place *place)
{
    switch (place->kind) {
    case HANG_STOPPED:
        return shk_strf("resume it with kill -CONT %ld, and find out what stopped it",
                        place->process);
    case HANG_DEBUGGED:
        return shk_strf("continue or detach the debugger (process %ld)",
                        hang_number(place->rank, "tracer"));
    case HANG_DEAD:
    case HANG_ABSENT:
        return shk_strf(
            "the job cannot continue without it: cancel the job; the launcher's log and the "
            "kernel log of %s say why it ended",
            place->host ? place->host : "its node");
    case HANG_IO:
        return place->mount ? shk_strf("does %s answer on %s? (timeout 5 stat -f %s)", place->mount,
                                       place->host ? place->host : "that node", place->mount)
                            : NULL;
    case HANG_INPUT:
        return shk_strf(
            "answer it, or take the breakpoint out of the program: nobody can type to a "
            "rank of a batch job");
    case HANG_DRIVER:
    case HANG_KERNEL:
        return shk_strf(
            "check the kernel log of %s; no signal can end such a process until the kernel "
            "call returns",
            place->host ? place->host : "that node");
    default: return NULL;
    }
}
