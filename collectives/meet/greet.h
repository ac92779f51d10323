/* Greeting: what a rank and rank 0 say to each other before anything else on a new connection, so
 * that each knows that the other has the key and means the same job.
 *
 * Rank 0 begins (SHK_FRAME_CHALLENGE) with random bytes and the name of the job; a rank answers
 * (SHK_FRAME_PROOF) with its own, who it is, and an HMAC over all of it; rank 0 answers
 * (SHK_FRAME_WELCOME) with what it thinks of it and an HMAC over that and both sides' bytes. A
 * recorded exchange is worth nothing later, and neither side can be made to sign for the other: the
 * labels differ. What comes after it is neither encrypted nor signed. Pure functions: nothing here
 * reads or waits. */
#ifndef SHK_COLLECTIVES_GREET_H
#define SHK_COLLECTIVES_GREET_H

#include "collectives/meet/key.h"
#include "core/text/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum shk_greet_verdict {
    SHK_GREET_WELCOME,
    SHK_GREET_OTHER_JOB, /* this port belongs to another job: try the next one */
    SHK_GREET_WRONG_KEY, /* both have a key, not the same */
    SHK_GREET_NO_KEY,    /* rank 0 has a key, the rank has none */
    SHK_GREET_ODD_KEY,   /* the other way round */
    SHK_GREET_VERSION,   /* another version of this program */
    SHK_GREET_SIZE,      /* they do not agree on the number of ranks */
    SHK_GREET_TAKEN,     /* this rank came before */
    SHK_GREET_GARBLED,   /* no greeting */
};

/* As they go over the wire, in the byte order of the hosts (frames are, too). */
struct shk_greet_challenge {
    char magic[8];
    unsigned char nonce[32];
    unsigned char job[32]; /* hash of the names of the job */
    uint32_t keyed, zero;
};

struct shk_greet_proof {
    unsigned char nonce[32];
    unsigned char job[32];
    uint32_t keyed, rank, size;
    int32_t local_rank; /* -1: its launcher does not say */
    char host[64];
    char version[32];
    unsigned char mac[SHK_SHA256_BYTES];
};

struct shk_greet_welcome {
    uint32_t verdict;
    int32_t local_rank; /* that rank 0 gave to it */
    char version[32];
    uint32_t size, zero;
    unsigned char mac[SHK_SHA256_BYTES];
};

/* One side: what it is. */
struct shk_greet_self {
    struct shk_key key;
    unsigned char job[32];
    unsigned rank, size;
    int local_rank;
    char host[64];
    char version[32];
};

/* The hash of a job's names: texts that all of its ranks have and no other job does. */
void shk_greet_job(unsigned char job[32], const char *names);

/* Rank 0, on a new connection. -EIO: no random bytes. */
int shk_greet_challenge(struct shk_greet_challenge *challenge, const struct shk_greet_self *self);

/* A rank: takes rank 0's bytes and writes the answer. WELCOME: there is one to be sent. GARBLED and
 * OTHER_JOB: none, this is not its rank 0. NO_KEY, ODD_KEY: there is one to be sent, and it is
 * known that it will be refused. */
enum shk_greet_verdict shk_greet_answer(const struct shk_greet_self *self, const void *data,
                                        size_t len, struct shk_greet_challenge *challenge,
                                        struct shk_greet_proof *proof);

/* Rank 0: is it one of ours? Fills proof (host and version end with NUL) unless GARBLED. */
enum shk_greet_verdict shk_greet_judge(const struct shk_greet_self *self,
                                       const struct shk_greet_challenge *challenge,
                                       const void *data, size_t len, struct shk_greet_proof *proof);
/* … and the answer to it. */
void shk_greet_reply(const struct shk_greet_self *self, const struct shk_greet_challenge *challenge,
                     const struct shk_greet_proof *proof, enum shk_greet_verdict verdict,
                     int local_rank, struct shk_greet_welcome *welcome);

/* A rank: what rank 0 said. WELCOME only from one who has the key. */
enum shk_greet_verdict shk_greet_end(const struct shk_greet_self *self,
                                     const struct shk_greet_challenge *challenge,
                                     const struct shk_greet_proof *proof, const void *data,
                                     size_t len, struct shk_greet_welcome *welcome);

/* Why a rank was not welcome, as it says so itself ("rank 0 has …"); `theirs` may be NULL. */
int shk_greet_refused(const struct shk_greet_self *self, enum shk_greet_verdict verdict,
                      const struct shk_greet_welcome *theirs, struct shk_error *err);
/* … and as rank 0 says it of the rank ("its key is …"). */
void shk_greet_why(char *text, size_t size, const struct shk_greet_self *self,
                   enum shk_greet_verdict verdict, const struct shk_greet_proof *proof);

#endif
