/* Link: frames over one stream socket between rank 0 and a rank. Nothing here blocks. */
#ifndef SHK_COLLECTIVES_LINK_H
#define SHK_COLLECTIVES_LINK_H

#include "core/text/error.h"
#include "core/text/strbuf.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum shk_frame_type {
    SHK_FRAME_HELLO = 1, /* to rank 0, after the greeting: JSON {token, version, rank, host, pid,
                            local_rank}; the token is rank 0's own rank's, which is not greeted */
    SHK_FRAME_NODE,      /* to rank 0: what the first rank of a node found out: digest of the list
                            of its sections, then what is its own, packed (core/facts/factparts.h) */
    SHK_FRAME_WANT,      /* from rank 0: u32 indices of sections; none: the list itself */
    SHK_FRAME_SECTION,   /* to rank 0: u32 index, then the text, packed */
    SHK_FRAME_RUN,       /* from rank 0: struct world_run_frame */
    SHK_FRAME_STATE,     /* to rank 0: struct world_state_frame; also the sign of life */
    SHK_FRAME_PUT,       /* to rank 0: u32 run, then bytes of the slot's space */
    SHK_FRAME_PUTS, /* from rank 0: struct world_puts_frame, then {u32 index, u32 len, bytes} …,
                       packed */
    SHK_FRAME_RELEASE,   /* from rank 0: struct world_release_frame */
    SHK_FRAME_RESULT,    /* to rank 0: u32 run, then bytes of the result, zeros at its end cut */
    SHK_FRAME_ENDED,     /* to rank 0: JSON, how the worker ended */
    SHK_FRAME_STOP,      /* from rank 0: u32 run */
    SHK_FRAME_BYE,       /* from rank 0: i32 exit code */
    SHK_FRAME_CLOCK,     /* both ways: struct world_clock_frame */
    SHK_FRAME_LIST,      /* to rank 0: {digest, u32 length, u8 length of the name, name} … */
    SHK_FRAME_NO_FACTS,  /* to rank 0, instead of NODE: text, why there are none */
    SHK_FRAME_ALIVE,     /* to rank 0: sign of life of a rank without a worker */
    SHK_FRAME_CHALLENGE, /* from rank 0, the first word: struct shk_greet_challenge */
    SHK_FRAME_PROOF,     /* to rank 0: struct shk_greet_proof */
    SHK_FRAME_WELCOME,   /* from rank 0: struct shk_greet_welcome */
    SHK_FRAME_RELAY,     /* from rank 0: u32 ranks that PUTS are to be passed on to; to rank 0: u32
                            port at which they find this rank */
    SHK_FRAME_PARENT,    /* from rank 0: struct world_parent_frame; to rank 0: u32 1, joined */
    SHK_FRAME_WANT_PUTS, /* to rank 0: struct world_puts_frame, the last that came: what is behind
                            it did not come from the parent */
};

struct shk_frame {
    uint32_t type;
    uint32_t len;
    const unsigned char *data; /* valid until the next shk_link_fill() */
};

struct shk_link {
    int fd; /* -1: closed */
    struct shk_strbuf in, out;
    size_t taken;            /* bytes of in that were handed out */
    size_t limit;            /* largest frame accepted; 0: SHK_LINK_MAX */
    uint64_t heard_ns;       /* when bytes last came, CLOCK_MONOTONIC */
    uint64_t received, sent; /* bytes, over its life */
    void *greeting;          /* rank 0: of one that has to say who it is; goes with the link */
};

/* A facts section of a large node is below 1 MiB; this bounds what a broken peer can cost. */
#define SHK_LINK_MAX ((size_t)64 << 20)

/* Takes over a connected stream socket and makes it non-blocking. */
void shk_link_open(struct shk_link *link, int fd);
void shk_link_close(struct shk_link *link);

/* Queues a frame and sends what goes without waiting. -EPIPE, -ENOMEM …; the link is closed then.
 */
int shk_link_send(struct shk_link *link, uint32_t type, const void *data, size_t len);

/* Sends what is queued. Something is left when link->out.len > 0: wait for POLLOUT. */
int shk_link_flush(struct shk_link *link);

/* Reads what is there. -EPIPE at the end of the stream; the link is closed then, and frames that
 * came before are still handed out. */
int shk_link_fill(struct shk_link *link);

/* Next whole frame; false: none yet. A frame above the limit closes the link. */
bool shk_link_next(struct shk_link *link, struct shk_frame *frame);

#endif
