/* Room in /dev/shm, which ranks of one node share whatever they talk over. */
#include "checks/base/coded.h"
#include "checks/base/read.h"
#include "checks/base/remedy.h"

#include <limits.h>
#include <string.h>

#define MIB (1LL << 20)
#define GIB (1LL << 30)

/* One segment that NCCL makes for a connection is 9,637,888 bytes (4 MiB of Simple buffer, LL and
 * LL128 beside it; NVIDIA/nccl:src/transport/shm.cc), the region of one rank of libfabric's shm
 * provider 16 MiB, of which a quarter is written at the start (measured with libfabric 1.17). With
 * less than one segment nothing starts. */
#define SHM_ONE_SEGMENT (10 * MIB)

/* What container engines give when nobody asks, and what is nearly full on a node. */
#define SHM_OF_CONTAINER (64 * MIB)

struct room {
    long long size, unused;
    bool limited; /* a tmpfs without limit tells a size of 0 */
    bool told;    /* how much is free; else the whole size, which may be too little by itself */
};

static bool read_room(struct shk_row *row, struct room *room)
{
    enum shk_look size = shk_read_int(row, "shm.size", &room->size);
    enum shk_look unused = shk_read_int(row, "shm.free", &room->unused);
    if (size != SHK_LOOK_PRESENT)
        return false;
    room->told = unused == SHK_LOOK_PRESENT;
    if (!room->told)
        room->unused = room->size;
    bool possible = room->size >= 0 && room->size < LLONG_MAX && room->unused >= 0 &&
                    room->unused <= room->size;
    if (!possible)
        shk_row_lacks(row, "shm.size", "shm.size and shm.free have an unexpected form");
    room->limited = room->size > 0;
    return possible;
}

/* The line that makes it larger, for the engine that made it. */
static void fix_size(struct shk_row *row)
{
    const char *engine = shk_container(row->ctx->facts);
    if (!engine || strcmp(engine, "shifter") == 0 || strcmp(engine, "charliecloud") == 0)
        shk_row_fix(row, "shm-host", NULL);
    else if (strcmp(engine, "apptainer") == 0)
        shk_row_fix(row, "shm-apptainer", NULL);
    else if (strcmp(engine, "kubernetes") == 0 || strcmp(engine, "containerd") == 0)
        shk_row_fix(row, "shm-pod", NULL);
    else if (strcmp(engine, "docker") == 0 || strcmp(engine, "podman") == 0)
        shk_row_fix(row, "shm-engine", "engine", engine, NULL);
    else
        shk_row_fix(row, "shm-container", NULL);
}

static void is_full(struct shk_row *row, const struct room *room)
{
    bool none = room->unused < SHM_ONE_SEGMENT;
    shk_row_verdict(row, none ? SHK_FAIL : SHK_WARN, SHK_EFFECT);
    row->diagnosis = "shm-too-small";
    shk_row_text(&row->expected, "at least 64 MiB free");
    shk_row_text(&row->why,
                 "%s: ranks of one node share buffers there, NCCL 9.2 MiB for each "
                 "connection and libfabric's shm 16 MiB for each rank; %s",
                 none ? "full" : "nearly full",
                 none ? "without room NCCL does not initialise, and others end with a bus error"
                      : "a few of them fit");
    if (room->size <= SHM_OF_CONTAINER)
        fix_size(row);
    else
        shk_row_fix(row, "shm-clean", NULL);
}

static void is_small(struct shk_row *row, const struct room *room, long long gpus)
{
    bool breaks = room->size <= SHM_OF_CONTAINER && gpus > 1;
    shk_row_verdict(row, breaks ? SHK_FAIL : gpus > 0 ? SHK_WARN : SHK_NOTE, SHK_EFFECT);
    if (gpus > 0)
        row->diagnosis = "shm-too-small";
    shk_row_text(&row->expected, "at least 1 GiB");
    shk_row_text(&row->why, "%s: %s",
                 room->size == SHM_OF_CONTAINER && shk_container(row->ctx->facts)
                     ? "the default size of container engines"
                     : "small",
                 breaks     ? "NCCL takes 9.2 MiB of it for each connection and does not "
                              "initialise without"
                 : gpus > 0 ? "NCCL and data loaders put shared segments there"
                            : "libfabric's shm takes 16 MiB for each rank of the node");
    fix_size(row);
}

static void judge(struct shk_row *row, const struct room *room)
{
    char *size = shk_bytes_text(room->size), *unused = shk_bytes_text(room->unused);
    if (room->limited && !room->told)
        shk_row_text(&row->observed, "%s", size ? size : "");
    else if (room->limited)
        shk_row_text(&row->observed, "%s, free %s", size ? size : "", unused ? unused : "");
    else
        shk_row_text(&row->observed, "no size limit of its own");
    free(size);
    free(unused);
    shk_row_verdict(row, SHK_PASS, SHK_EFFECT);
    if (!room->limited)
        return;
    long long gpus = room->size < GIB ? shk_read_gpu_count(row) : 0;
    bool default_size = room->size <= SHM_OF_CONTAINER;
    if (room->unused < SHM_ONE_SEGMENT && !(default_size && gpus > 1))
        is_full(row, room);
    else if (gpus > 0 || default_size)
        is_small(row, room, gpus);
    else if (room->unused < SHM_OF_CONTAINER)
        is_full(row, room);
}

static void not_there(struct shk_row *row)
{
    long long gpus = shk_read_gpu_count(row);
    shk_row_verdict(row, gpus > 1 ? SHK_FAIL : SHK_WARN, SHK_EFFECT);
    row->diagnosis = "shm-too-small";
    shk_row_text(&row->observed, "not there");
    shk_row_text(&row->expected, "a tmpfs");
    shk_row_text(&row->why, "shm_open(3) has no place: ranks of one node cannot share memory");
    shk_row_fix(row, "shm-mount", NULL);
}

/* Room that this user may not use is none. True: the row is about that. */
static bool not_writable(struct shk_row *row)
{
    json_t *folder = NULL;
    bool rw = true;
    enum shk_look look = shk_look(row->ctx->facts, "dev.shm", NULL);
    if (look == SHK_LOOK_MISSING || look == SHK_LOOK_ABSENT)
        return false; /* of older documents; shm.size says whether it is there */
    if (shk_read_object(row, "dev.shm", &folder) != SHK_LOOK_PRESENT ||
        !shk_read_told_bool(row, "dev.shm", folder, "rw", &rw) || rw)
        return false;
    long long gpus = shk_read_gpu_count(row);
    shk_row_verdict(row, gpus > 1 ? SHK_FAIL : SHK_WARN, SHK_EFFECT);
    row->diagnosis = "shm-permission";
    row->fact = "dev.shm";
    const char *error = shk_member_words(folder, "error");
    shk_row_text(&row->observed, "mode %s, not writable for this user%s%s",
                 shk_member_name(folder, "mode"), error ? ": " : "", error ? error : "");
    shk_row_fix(row, error ? "shm-remount" : "shm-mode", NULL);
    shk_row_text(&row->expected, "mode 1777, mounted for reading and writing");
    shk_row_text(&row->why, "no file can be made there: ranks of one node cannot share memory");
    return true;
}

static void eval(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_shm, "/dev/shm");
    struct room room = {0};
    row.fact = "shm.size, shm.free";
    row.source = "NVIDIA/nccl:docs/userguide/source/troubleshooting.rst";
    if (shk_look(ctx->facts, "shm.size", NULL) == SHK_LOOK_ABSENT)
        not_there(&row);
    else if (!not_writable(&row) && read_room(&row, &room))
        judge(&row, &room);
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_shm = {
    .id = "shm.size",
    .diagnosis = "shm-too-small",
    .family = "limits",
    .title = "/dev/shm has room for shared-memory transport",
    .eval = eval,
    .doc = "Facts: shm.size, shm.free, dev.shm, pci.count.*; for the fix host.container.\n"
           "On every node: less than 10 MiB free is FAIL (not one segment of NCCL, 9.2 MiB, "
           "fits), less than 64 MiB WARN. With GPUs a size below 1 GiB is WARN (what NCCL's "
           "troubleshooting page gives containers), at 64 MiB or less, the container default, "
           "with several GPUs FAIL; without GPUs that default is a note. No /dev/shm at all, "
           "or one that this user cannot write to, is WARN, with several GPUs FAIL.",
};
