/* Meeting: by which way the tasks of a launcher find rank 0.
 *
 * Ways that pass something on (PMIx, PMI, a folder, the shakedown that started them over ssh) carry
 * rank 0's card: its addresses, and a random key that nobody else sees. The others know beforehand
 * where rank 0 will be, from their launcher's variables or from --rendezvous. */
#ifndef SHK_COLLECTIVES_MEET_H
#define SHK_COLLECTIVES_MEET_H

#include "collectives/meet/key.h"
#include "core/job/launch.h"
#include "core/text/error.h"

#include <jansson.h>
#include <stdbool.h>

enum shk_meet_way {
    SHK_MEET_NONE,    /* why_not: of several tasks; "" there is one */
    SHK_MEET_PMIX,    /* collectives/meet/pmix.h */
    SHK_MEET_PMI,     /* a process manager's socket, collectives/meet/pmi.h */
    SHK_MEET_FOLDER,  /* collectives/meet/folder.h */
    SHK_MEET_SSH,     /* collectives/meet/hosts.h */
    SHK_MEET_ADDRESS, /* where rank 0 is, is known */
};

/* Ports that rank 0 tries in turn, so that one that is in use, by another job or a stranger, is no
 * obstacle; the greeting tells whose it is. */
#define SHK_MEET_PORTS 8U
/* The first of them is that far from the launcher's own port: the ports next to it belong to other
 * jobs on the same host, which count them up from torch's default. */
#define SHK_MEET_BESIDE 101U
/* Hosts of a list that may have rank 0: it is the first unless tasks were placed in another order.
 */
#define SHK_MEET_HOSTS 16U

struct shk_meet {
    enum shk_meet_way way;
    unsigned rank, size, local_size; /* local_size: 0 not known */
    int local_rank;                  /* -1: not known */
    unsigned nodes;                  /* 0: not known */
    json_t *addresses;               /* of rank 0: hosts or addresses, the likeliest first */
    json_t *hosts;                   /* of each rank, where that is known; else NULL */
    unsigned port[SHK_MEET_PORTS], ports;
    bool loopback; /* all ranks are on this host */
    char *folder;
    char *card;            /* what rank 0 published, once it is known */
    unsigned char job[32]; /* hash of what only this job has, see shk_greet_job() */
    const char *by;        /* key for job.joined: pmix, pmi, variables, ssh, tcp or folder */
    const char *why; /* why this way and no other: offered, no-pmix, no-pmi, pmi-late, asked */
    const char
        *launcher; /* title of the row it was taken from; NULL: none. Borrowed, as the next */
    const char *variable; /* that told where rank 0 is; NULL: none did */
    char why_not[200];  /* NONE: "torchrun does not say where rank 0 is (MASTER_ADDR is not set)" */
    struct shk_key key; /* that was given; the card's comes on top */
};

/* Looks at what the user asked for (--rendezvous; NULL: nothing) and at the variables. `without`:
 * a set of 1 << enum shk_meet_way that were tried. `more`: a name of the job that a process manager
 * told, NULL or "" for none. -EINVAL with text: what was asked for cannot be,
 * -ENOMEM. Always to be cleared. */
int shk_meet_choose(struct shk_meet *meet, const char *asked, const struct shk_launch *launch,
                    shk_launch_get *get, void *arg, unsigned without, const char *more,
                    struct shk_error *err) SHK_MUST_CHECK;
void shk_meet_clear(struct shk_meet *meet);

/* A count in a variable: digits, at most 2^24. */
bool shk_meet_number(const char *text, unsigned *value_p);

/* The first `most` hosts of a list in Slurm's notation ("nid[001-003,7],login"), as texts. An empty
 * array: not a list. NULL: out of memory. */
json_t *shk_meet_hostlist(const char *text, size_t most);

#endif
