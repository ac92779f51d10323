/* SHA-256 (FIPS 180-4) and HMAC-SHA-256 (RFC 2104), by which ranks prove to each other that they
 * have the same key.
 *
 * Own code, checked against the vectors of FIPS 180-4 and RFC 4231: both ends of a connection need
 * it, on hosts and in images of any age, and no library that has it is there on all of them
 * (libcrypto alone has four names that do not go together). It keeps no state that outlives a call
 * but struct shk_sha256. */
#ifndef SHK_COLLECTIVES_SHA256_H
#define SHK_COLLECTIVES_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHK_SHA256_BYTES 32U
#define SHK_SHA256_BLOCK 64U

struct shk_sha256 {
    uint32_t state[8];
    uint64_t bytes;
    unsigned char block[SHK_SHA256_BLOCK];
};

void shk_sha256_begin(struct shk_sha256 *sha);
void shk_sha256_add(struct shk_sha256 *sha, const void *data, size_t len);
void shk_sha256_end(struct shk_sha256 *sha, unsigned char digest[SHK_SHA256_BYTES]);

/* HMAC in pieces; keys of any length. */
struct shk_hmac {
    struct shk_sha256 inner, outer;
};

void shk_hmac_begin(struct shk_hmac *hmac, const void *key, size_t len);
void shk_hmac_add(struct shk_hmac *hmac, const void *data, size_t len);
void shk_hmac_end(struct shk_hmac *hmac, unsigned char mac[SHK_SHA256_BYTES]);

/* Are they equal? Takes as long when they differ in the first byte as in the last. */
bool shk_same_bytes(const void *a, const void *b, size_t len);

#endif
