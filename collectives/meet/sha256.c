#include "collectives/meet/sha256.h"

#include <string.h>

/* FIPS 180-4, section 4.2.2. */
static const uint32_t sha_words[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t sha_right(uint32_t x, unsigned n)
{
    return x >> n | x << (32 - n);
}

/* The message schedule of a block, section 6.2.2 step 1. */
static void sha_schedule(uint32_t w[64], const unsigned char *block)
{
    for (unsigned i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (unsigned i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (sha_right(a, 7) ^ sha_right(a, 18) ^ a >> 3) + w[i - 7] +
               (sha_right(b, 17) ^ sha_right(b, 19) ^ b >> 10);
    }
}

static void sha_block(struct shk_sha256 *sha, const unsigned char *block)
{
    uint32_t w[64], v[8];
    sha_schedule(w, block);
    memcpy(v, sha->state, sizeof v);
    for (unsigned i = 0; i < 64; i++) {
        uint32_t big1 = sha_right(v[4], 6) ^ sha_right(v[4], 11) ^ sha_right(v[4], 25);
        uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
        uint32_t t1 = v[7] + big1 + choice + sha_words[i] + w[i];
        uint32_t big0 = sha_right(v[0], 2) ^ sha_right(v[0], 13) ^ sha_right(v[0], 22);
        uint32_t most = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += t1;
        v[0] = t1 + big0 + most;
    }
    for (unsigned i = 0; i < 8; i++)
        sha->state[i] += v[i];
}

void shk_sha256_begin(struct shk_sha256 *sha)
{
    /* section 5.3.3 */
    static const uint32_t first[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memset(sha, 0, sizeof *sha);
    memcpy(sha->state, first, sizeof first);
}

void shk_sha256_add(struct shk_sha256 *sha, const void *data, size_t len)
{
    const unsigned char *at = data;
    size_t held = sha->bytes % SHK_SHA256_BLOCK;
    sha->bytes += len;
    while (len > 0) {
        size_t n = SHK_SHA256_BLOCK - held < len ? SHK_SHA256_BLOCK - held : len;
        memcpy(sha->block + held, at, n);
        at += n;
        len -= n;
        held += n;
        if (held == SHK_SHA256_BLOCK) {
            sha_block(sha, sha->block);
            held = 0;
        }
    }
}

void shk_sha256_end(struct shk_sha256 *sha, unsigned char digest[SHK_SHA256_BYTES])
{
    static const unsigned char pad[SHK_SHA256_BLOCK] = {0x80};
    uint64_t bits = sha->bytes * 8;
    size_t held = sha->bytes % SHK_SHA256_BLOCK;
    unsigned char tail[8];
    for (unsigned i = 0; i < 8; i++)
        tail[i] = (unsigned char)(bits >> (56 - 8 * i));
    shk_sha256_add(sha, pad, (held < 56 ? 56 : 120) - held);
    shk_sha256_add(sha, tail, sizeof tail);
    for (unsigned i = 0; i < 32; i++)
        digest[i] = (unsigned char)(sha->state[i / 4] >> (24 - 8 * (i % 4)));
}

void shk_hmac_begin(struct shk_hmac *hmac, const void *key, size_t len)
{
    unsigned char block[SHK_SHA256_BLOCK] = {0};
    struct shk_sha256 sha;
    if (len > sizeof block) {
        shk_sha256_begin(&sha);
        shk_sha256_add(&sha, key, len);
        shk_sha256_end(&sha, block);
    } else if (len > 0) {
        memcpy(block, key, len);
    }
    for (size_t i = 0; i < sizeof block; i++)
        block[i] ^= 0x36;
    shk_sha256_begin(&hmac->inner);
    shk_sha256_add(&hmac->inner, block, sizeof block);
    for (size_t i = 0; i < sizeof block; i++)
        block[i] ^= 0x36 ^ 0x5c;
    shk_sha256_begin(&hmac->outer);
    shk_sha256_add(&hmac->outer, block, sizeof block);
    explicit_bzero(block, sizeof block);
}

void shk_hmac_add(struct shk_hmac *hmac, const void *data, size_t len)
{
    shk_sha256_add(&hmac->inner, data, len);
}

void shk_hmac_end(struct shk_hmac *hmac, unsigned char mac[SHK_SHA256_BYTES])
{
    shk_sha256_end(&hmac->inner, mac);
    shk_sha256_add(&hmac->outer, mac, SHK_SHA256_BYTES);
    shk_sha256_end(&hmac->outer, mac);
    explicit_bzero(hmac, sizeof *hmac);
}

bool shk_same_bytes(const void *a, const void *b, size_t len)
{
    const volatile unsigned char *x = a, *y = b;
    unsigned char differ = 0;
    for (size_t i = 0; i < len; i++)
        differ |= x[i] ^ y[i];
    return differ == 0;
}
