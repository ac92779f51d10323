#include "collectives/algorithm/wire.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int shk_wire_init(struct shk_wire *wire, const struct shk_wire_ops *ops, struct shk_job *job,
                  struct shk_heap *heap, uint32_t indices, struct shk_error *err)
{
    wire->ops = ops;
    wire->job = job;
    wire->heap = heap;
    wire->rank = shk_job_rank(job);
    wire->size = shk_job_size(job);
    wire->max_put = SIZE_MAX;
    wire->lanes = 1;
    wire->indices = indices;
    wire->arrived[0] = calloc(indices, 1);
    wire->arrived[1] = calloc(indices, 1);
    if (wire->arrived[0] == NULL || wire->arrived[1] == NULL) {
        shk_wire_fini(wire);
        return shk_error_set(err, ENOMEM, "out of memory");
    }
    return 0;
}

void shk_wire_fini(struct shk_wire *wire)
{
    free(wire->arrived[0]);
    free(wire->arrived[1]);
    wire->arrived[0] = NULL;
    wire->arrived[1] = NULL;
}

int shk_wire_fail(struct shk_wire *wire, int errnum, bool by_peer, const char *fmt, ...)
{
    char text[sizeof(wire->error.text)];
    va_list args;

    if (wire->status == 0) {
        va_start(args, fmt);
        vsnprintf(text, sizeof(text), fmt, args);
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
    if (wire->status != 0) {
        return wire->status;
    }
    wire->last_peer = peer;
    return wire->ops->put(wire, peer, from, to, bytes, index);
}

int shk_wire_get(struct shk_wire *wire, unsigned peer, size_t from, size_t to, size_t bytes,
                 uint32_t index)
{
    if (wire->status != 0) {
        return wire->status;
    }
    wire->last_peer = peer;
    return wire->ops->get(wire, peer, from, to, bytes, index);
}

int shk_wire_wait(struct shk_wire *wire, unsigned peer, uint32_t index)
{
    uint8_t *flag = &wire->arrived[shk_wire_parity(wire)][index];
    unsigned idle = 0;

    if (*flag == 0) {
        shk_job_set_waiting(wire->job, (int)peer);
        while (*flag == 0 && wire->status == 0) {
            if (wire->ops->progress(wire) == 0) {
                shk_job_relax(wire->job, &idle);
            }
        }
        shk_job_set_waiting(wire->job, -1);
    }
    if (wire->status != 0) {
        return wire->status;
    }
    *flag = 0;
    return 0;
}

int shk_wire_flush(struct shk_wire *wire)
{
    unsigned idle = 0;

    if (wire->pending > 0) {
        shk_job_set_waiting(wire->job, (int)wire->last_peer);
    }
    while (wire->pending > 0 && wire->status == 0) {
        if (wire->ops->progress(wire) == 0) {
            shk_job_relax(wire->job, &idle);
        }
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
