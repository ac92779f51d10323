#include "collectives/meet/greet.h"
#include "core/text/uses.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

static const char greet_magic[8] = {'s', 'h', 'k', 'm', 'e', 'e', 't', '1'};

void shk_greet_job(unsigned char job[32], const char *names)
{
    static const char label[] = "shakedown job";
    struct shk_sha256 sha;
    shk_sha256_begin(&sha);
    shk_sha256_add(&sha, label, sizeof label);
    shk_sha256_add(&sha, names, strlen(names));
    shk_sha256_end(&sha, job);
}

static int greet_random(unsigned char bytes[32])
{
    return getrandom(bytes, 32, 0) == 32 ? 0 : -EIO;
}

int shk_greet_challenge(struct shk_greet_challenge *challenge, const struct shk_greet_self *self)
{
    memset(challenge, 0, sizeof *challenge);
    memcpy(challenge->magic, greet_magic, sizeof greet_magic);
    memcpy(challenge->job, self->job, sizeof challenge->job);
    challenge->keyed = self->key.there;
    return greet_random(challenge->nonce);
}

static void greet_mac(unsigned char mac[SHK_SHA256_BYTES], const struct shk_greet_self *self,
                      const char *label, const struct shk_greet_challenge *challenge,
                      const struct shk_greet_proof *proof, const struct shk_greet_welcome *welcome)
{
    struct shk_hmac hmac;
    shk_hmac_begin(&hmac, self->key.bytes, self->key.there ? sizeof self->key.bytes : 0);
    shk_hmac_add(&hmac, label, strlen(label) + 1);
    shk_hmac_add(&hmac, challenge, sizeof *challenge);
    shk_hmac_add(&hmac, proof, offsetof(struct shk_greet_proof, mac));
    if (welcome)
        shk_hmac_add(&hmac, welcome, offsetof(struct shk_greet_welcome, mac));
    shk_hmac_end(&hmac, mac);
}

static const char greet_member[] = "shakedown rank", greet_root[] = "shakedown rank 0";

enum shk_greet_verdict shk_greet_answer(const struct shk_greet_self *self, const void *data,
                                        size_t len, struct shk_greet_challenge *challenge,
                                        struct shk_greet_proof *proof)
{
    if (len != sizeof *challenge)
        return SHK_GREET_GARBLED;
    memcpy(challenge, data, sizeof *challenge);
    if (memcmp(challenge->magic, greet_magic, sizeof greet_magic) != 0 || challenge->keyed > 1)
        return SHK_GREET_GARBLED;
    if (memcmp(challenge->job, self->job, sizeof self->job) != 0)
        return SHK_GREET_OTHER_JOB;
    memset(proof, 0, sizeof *proof);
    if (greet_random(proof->nonce))
        return SHK_GREET_GARBLED;
    memcpy(proof->job, self->job, sizeof proof->job);
    proof->keyed = self->key.there;
    proof->rank = self->rank;
    proof->size = self->size;
    proof->local_rank = self->local_rank;
    memcpy(proof->host, self->host, sizeof proof->host);
    memcpy(proof->version, self->version, sizeof proof->version);
    greet_mac(proof->mac, self, greet_member, challenge, proof, NULL);
    if (challenge->keyed != proof->keyed)
        return challenge->keyed ? SHK_GREET_NO_KEY : SHK_GREET_ODD_KEY;
    return SHK_GREET_WELCOME;
}

enum shk_greet_verdict shk_greet_judge(const struct shk_greet_self *self,
                                       const struct shk_greet_challenge *challenge,
                                       const void *data, size_t len, struct shk_greet_proof *proof)
{
    unsigned char mac[SHK_SHA256_BYTES];
    if (len != sizeof *proof)
        return SHK_GREET_GARBLED;
    memcpy(proof, data, sizeof *proof);
    greet_mac(mac, self, greet_member, challenge, proof, NULL);
    proof->host[sizeof proof->host - 1] = '\0';
    proof->version[sizeof proof->version - 1] = '\0';
    if (memcmp(proof->job, self->job, sizeof self->job) != 0)
        return SHK_GREET_OTHER_JOB;
    if (proof->keyed != self->key.there)
        return self->key.there ? SHK_GREET_NO_KEY : SHK_GREET_ODD_KEY;
    if (!shk_same_bytes(mac, proof->mac, sizeof mac))
        return SHK_GREET_WRONG_KEY;
    if (strcmp(proof->version, self->version) != 0)
        return SHK_GREET_VERSION;
    if (proof->size != self->size || proof->rank >= self->size)
        return SHK_GREET_SIZE;
    return SHK_GREET_WELCOME;
}

void shk_greet_reply(const struct shk_greet_self *self, const struct shk_greet_challenge *challenge,
                     const struct shk_greet_proof *proof, enum shk_greet_verdict verdict,
                     int local_rank, struct shk_greet_welcome *welcome)
{
    memset(welcome, 0, sizeof *welcome);
    welcome->verdict = (uint32_t)verdict;
    welcome->local_rank = local_rank;
    welcome->size = self->size;
    memcpy(welcome->version, self->version, sizeof welcome->version);
    greet_mac(welcome->mac, self, greet_root, challenge, proof, welcome);
}

enum shk_greet_verdict shk_greet_end(const struct shk_greet_self *self,
                                     const struct shk_greet_challenge *challenge,
                                     const struct shk_greet_proof *proof, const void *data,
                                     size_t len, struct shk_greet_welcome *welcome)
{
    unsigned char mac[SHK_SHA256_BYTES];
    if (len != sizeof *welcome)
        return SHK_GREET_GARBLED;
    memcpy(welcome, data, sizeof *welcome);
    greet_mac(mac, self, greet_root, challenge, proof, welcome);
    welcome->version[sizeof welcome->version - 1] = '\0';
    for (char *c = welcome->version; *c; c++)
        *c = isalnum((unsigned char)*c) || strchr(".-+~", *c) ? *c : '?';
    if (welcome->verdict >= SHK_GREET_GARBLED)
        return SHK_GREET_GARBLED;
    if (welcome->verdict == SHK_GREET_WELCOME && !shk_same_bytes(mac, welcome->mac, sizeof mac))
        return SHK_GREET_WRONG_KEY;
    return (enum shk_greet_verdict)welcome->verdict;
}

int shk_greet_refused(const struct shk_greet_self *self, enum shk_greet_verdict verdict,
                      const struct shk_greet_welcome *theirs, struct shk_error *err)
{
    const char *name = shk_variable("rendezvous-key");
    unsigned rank = self->rank;
    switch (verdict) {
    case SHK_GREET_WRONG_KEY:
        return shk_error_set(err, EACCES, "rank %u: rank 0 has another key than %s here", rank,
                             self->key.from);
    case SHK_GREET_NO_KEY:
        return shk_error_set(
            err, EACCES, "rank %u: rank 0 asks for a key, and there is none here (%s)", rank, name);
    case SHK_GREET_ODD_KEY:
        return shk_error_set(err, EACCES,
                             "rank %u: rank 0 has no key, this rank has one (%s): give it to all "
                             "ranks or to none",
                             rank, self->key.from);
    case SHK_GREET_VERSION:
        return shk_error_set(err, EPROTO, "rank %u is shakedown %s, rank 0 is %s", rank,
                             self->version, theirs ? theirs->version : "another one");
    case SHK_GREET_SIZE:
        return shk_error_set(err, EPROTO, "rank %u of %u: rank 0 was started as one of %u", rank,
                             self->size, theirs ? theirs->size : 0);
    case SHK_GREET_TAKEN:
        return shk_error_set(err, EEXIST,
                             "rank %u is already connected to rank 0: two tasks have the same rank",
                             rank);
    default:
        return shk_error_set(err, EPROTO, "rank %u: what answers is not the rank 0 of this job",
                             rank);
    }
}

void shk_greet_why(char *text, size_t size, const struct shk_greet_self *self,
                   enum shk_greet_verdict verdict, const struct shk_greet_proof *proof)
{
    switch (verdict) {
    case SHK_GREET_WRONG_KEY: snprintf(text, size, "its key is not that of rank 0"); break;
    case SHK_GREET_NO_KEY: snprintf(text, size, "it has no key, rank 0 has one"); break;
    case SHK_GREET_ODD_KEY: snprintf(text, size, "it has a key, rank 0 has none"); break;
    case SHK_GREET_VERSION:
        snprintf(text, size, "it is shakedown %.31s, rank 0 is %.31s", proof->version,
                 self->version);
        break;
    case SHK_GREET_SIZE:
        snprintf(text, size, "it was started as one of %u ranks, rank 0 as one of %u", proof->size,
                 self->size);
        break;
    default: snprintf(text, size, "rank 0 rejected it"); break;
    }
}
