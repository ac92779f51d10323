#include "core/facts/digest.h"

#include <stdio.h>
#include <string.h>

__extension__ typedef unsigned __int128 digest_word;

struct shk_digest shk_digest_of(const void *data, size_t len)
{
    const unsigned char *at = data;
    const digest_word prime = ((digest_word)1 << 88) + 0x13b;
    digest_word hash = ((digest_word)0x6c62272e07bb0142U << 64) + 0x62b821756295c58dU;
    struct shk_digest digest;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ at[i]) * prime;
    for (size_t i = sizeof digest.bytes; i > 0; i--, hash >>= 8)
        digest.bytes[i - 1] = (unsigned char)hash;
    return digest;
}

bool shk_digest_equal(const struct shk_digest *a, const struct shk_digest *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

void shk_digest_text(const struct shk_digest *digest, char text[SHK_DIGEST_TEXT])
{
    for (size_t i = 0; i < sizeof digest->bytes; i++)
        snprintf(text + 2 * i, 3, "%02x", digest->bytes[i]);
}
