/* Digest: 128 bits that stand for a text.
 *
 * FNV-1a (draft-eastlake-fnv, section 6: offset basis and prime of 128 bits). Texts that honest
 * programs write do not collide: among a million of them the chance is below 2^-88. It is no
 * defence against one who makes up a collision. */
#ifndef SHK_CORE_DIGEST_H
#define SHK_CORE_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shk_digest {
    unsigned char bytes[16];
};

#define SHK_DIGEST_TEXT 33

/* The same for a text that comes in pieces: between the pieces. */
struct shk_digest_sum {
    uint64_t high, low;
};

#define SHK_DIGEST_SUM_INIT ((struct shk_digest_sum){0x6c62272e07bb0142U, 0x62b821756295c58dU})

void shk_digest_add(struct shk_digest_sum *sum, const void *data, size_t len);
struct shk_digest shk_digest_end(const struct shk_digest_sum *sum);

/* Of texts in any order: adds the other's number to the sum's. */
void shk_digest_mix(struct shk_digest_sum *sum, const struct shk_digest_sum *other);

struct shk_digest shk_digest_of(const void *data, size_t len);
bool shk_digest_equal(const struct shk_digest *a, const struct shk_digest *b);

/* Hexadecimal digits and a NUL. */
void shk_digest_text(const struct shk_digest *digest, char text[SHK_DIGEST_TEXT]);

#endif
