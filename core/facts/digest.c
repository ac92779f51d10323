#include "core/facts/digest.h"

#include <stdio.h>
#include <string.h>

__extension__ typedef unsigned __int128 digest_word;

static digest_word digest_number(const struct shk_digest_sum *sum)
{
    return (digest_word)sum->high << 64 | sum->low;
}

static struct shk_digest_sum digest_sum(digest_word number)
{
    return (struct shk_digest_sum){(uint64_t)(number >> 64), (uint64_t)number};
}

void shk_digest_add(struct shk_digest_sum *sum, const void *data, size_t len)
{
    const unsigned char *at = data;
    const digest_word prime = ((digest_word)1 << 88) + 0x13b;
    digest_word hash = digest_number(sum);
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ at[i]) * prime;
    *sum = digest_sum(hash);
}

void shk_digest_mix(struct shk_digest_sum *sum, const struct shk_digest_sum *other)
{
    *sum = digest_sum(digest_number(sum) + digest_number(other));
}

struct shk_digest shk_digest_end(const struct shk_digest_sum *sum)
{
    digest_word hash = digest_number(sum);
    struct shk_digest digest;
    for (size_t i = sizeof digest.bytes; i > 0; i--, hash >>= 8)
        digest.bytes[i - 1] = (unsigned char)hash;
    return digest;
}

struct shk_digest shk_digest_of(const void *data, size_t len)
{
    struct shk_digest_sum sum = SHK_DIGEST_SUM_INIT;
    shk_digest_add(&sum, data, len);
    return shk_digest_end(&sum);
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
