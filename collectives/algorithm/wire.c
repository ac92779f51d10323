#include "collectives/algorithm/wire.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Polls of a sign before each pause between two: it comes within less than one. */
#define WIRE_LOOKS 64U

static void wire_prepare(struct shk_wire *wire, const struct shk_wire_ops *ops, struct shk_job *job,
                         struct shk_heap *heap, uint32_t indices)
{
    wire->ops = ops;
    wire->job = job;
    wire->heap = heap;
    wire->rank = shk_job_rank(job);
    wire->size = shk_job_size(job);
    wire->max_put = SIZE_MAX;
    wire->lanes = 1;
    wire->indices = indices;
}

int shk_wire_init(struct shk_wire *wire, const struct shk_wire_ops *ops, struct shk_job *job,
                  struct shk_heap *heap, uint32_t indices, struct shk_error *err)
{
    wire_prepare(wire, ops, job, heap, indices);
    wire->arrived[0] = calloc(indices, 1);
    wire->arrived[1] = calloc(indices, 1);
    if (!wire->arrived[0] || !wire->arrived[1]) {
        shk_wire_fini(wire);
        return shk_error_set(err, ENOMEM, "out of memory");
    }
    return 0;
}

void shk_wire_init_at(struct shk_wire *wire, const struct shk_wire_ops *ops, struct shk_job *job,
                      struct shk_heap *heap, uint32_t indices, uint8_t *const arrived[2])
{
    wire_prepare(wire, ops, job, heap, indices);
    wire->arrived[0] = arrived[0];
    wire->arrived[1] = arrived[1];
    wire->borrowed = true;
}

void shk_wire_fini(struct shk_wire *wire)
{
    if (!wire->borrowed) {
        free(wire->arrived[0]);
        free(wire->arrived[1]);
    }
    wire->arrived[0] = NULL;
    wire->arrived[1] = NULL;
}

int shk_wire_fail(struct shk_wire *wire, int errnum, bool by_peer, const char *fmt, ...)
{
    char text[sizeof wire->error.text];
    va_list args;

    if (wire->status == 0) {
        va_start(args, fmt);
        vsnprintf(text, sizeof text, fmt, args);
        va_end(args);
        wire->status = shk_error_set(&wire->error, errnum, "%s", text);
        wire->by_peer = by_peer;
    }
    return wire->status;
}

int shk_wire_arrived(struct shk_wire *wire, uint8_t op, uint32_t index)
{
    uint8_t ahead = (uint8_t)(op - (uint8_t)wire->op);

    if (ahead > 1 || index >= wire->indices) {
        return shk_wire_fail(wire, EPROTO, wire->size > 1,
                             "unexpected notification: operation %u, index %u, in operation %u", op,
                             index, (unsigned)(uint8_t)wire->op);
    }
    if (++wire->arrived[op & 1][index] > 1) {
        return shk_wire_fail(wire, EPROTO, wire->size > 1,
                             "notification %u arrived twice in operation %u", index, op);
    }
    return 0;
}

void shk_wire_begin(struct shk_wire *wire)
{
    wire->op++;
    shk_job_set_op(wire->job, wire->op);
}

int shk_wire_put(struct shk_wire *wire, unsigned peer, size_t from, size_t to, size_t bytes,
                 uint32_t index)
{
    if (wire->status != 0)
        return wire->status;
    wire->last_peer = peer;
    return wire->ops->put(wire, peer, from, to, bytes, index);
}

int shk_wire_get(struct shk_wire *wire, unsigned peer, size_t from, size_t to, size_t bytes,
                 uint32_t index)
{
    if (wire->status != 0)
        return wire->status;
    wire->last_peer = peer;
    return wire->ops->get(wire, peer, from, to, bytes, index);
}

int shk_wire_drop(struct shk_wire *wire, unsigned peer, size_t from, size_t to, size_t bytes)
{
    if (wire->status != 0)
        return wire->status;
    wire->last_peer = peer;
    return wire->ops->drop(wire, peer, from, to, bytes);
}

int shk_wire_watch(struct shk_wire *wire, unsigned peer, bool (*here)(void *arg), void *arg)
{
    unsigned idle = 0;

    if (wire->status == 0 && !here(arg)) {
        shk_job_set_waiting(wire->job, (int)peer);
        while (wire->status == 0 && !here(arg)) {
            if (wire->ops->progress(wire) == 0)
                shk_job_relax(wire->job, &idle);
        }
        shk_job_set_waiting(wire->job, -1);
    }
    return wire->status;
}

/* Peers that share memory set it themselves. */
static bool wire_here(const uint8_t *flag)
{
    return __atomic_load_n(flag, __ATOMIC_ACQUIRE) != 0;
}

int shk_wire_wait(struct shk_wire *wire, unsigned peer, uint32_t index)
{
    uint8_t *flag = &wire->arrived[shk_wire_parity(wire)][index];
    unsigned idle = 0;

    if (!wire_here(flag)) {
        shk_job_set_waiting(wire->job, (int)peer);
        while (!wire_here(flag) && wire->status == 0) {
            if (wire->ops->progress(wire) == 0)
                shk_job_relax(wire->job, &idle);
        }
        shk_job_set_waiting(wire->job, -1);
    }
    if (wire->status != 0)
        return wire->status;
    __atomic_store_n(flag, 0, __ATOMIC_RELAXED);
    return 0;
}

static bool wire_seen(const struct shk_wire *wire, const struct shk_wire_sign *sign)
{
    for (unsigned i = 0; i < WIRE_LOOKS; i++) {
        if (__atomic_load_n(&sign->op, __ATOMIC_ACQUIRE) >= wire->op)
            return true;
    }
    return false;
}

int shk_wire_see(struct shk_wire *wire, unsigned peer, const struct shk_wire_sign *sign)
{
    unsigned idle = 0;

    if (wire->status == 0 && !wire_seen(wire, sign)) {
        shk_job_set_waiting(wire->job, (int)peer);
        while (wire->status == 0 && !wire_seen(wire, sign))
            shk_job_relax(wire->job, &idle);
        shk_job_set_waiting(wire->job, -1);
    }
    return wire->status;
}

void shk_wire_show(struct shk_wire *wire, struct shk_wire_sign *sign)
{
    __atomic_store_n(&sign->op, wire->op, __ATOMIC_RELEASE);
}

int shk_wire_flush(struct shk_wire *wire)
{
    unsigned idle = 0;

    if (wire->pending > 0)
        shk_job_set_waiting(wire->job, (int)wire->last_peer);
    while (wire->pending > 0 && wire->status == 0) {
        if (wire->ops->progress(wire) == 0)
            shk_job_relax(wire->job, &idle);
    }
    shk_job_set_waiting(wire->job, -1);
    return wire->status;
}

int shk_wire_poll(void *wire)
{
    struct shk_wire *self = wire;
    int got = self->status != 0 ? self->status : self->ops->progress(self);

    return self->status != 0 ? self->status : got;
}
