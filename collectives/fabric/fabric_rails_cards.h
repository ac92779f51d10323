/* What the ranks tell each other of their rails: inside of fabric_rails_cards.c (opening, telling)
 * and fabric_rails_agree.c (which of them carry data). */
#ifndef SHK_COLLECTIVES_FABRIC_RAILS_CARDS_H
#define SHK_COLLECTIVES_FABRIC_RAILS_CARDS_H

#include "collectives/fabric/fabric_private.h"

#define AGREE_ADDR_MAX 64 /* bytes */

/* What a rank tells the others of one rail. */
struct agree_entry {
    uint64_t base;
    uint64_t key;
    uint32_t ready;
    uint32_t addr_len;
    char fabric[48];
    uint8_t addr[AGREE_ADDR_MAX];
};

struct agree_card {
    uint64_t host; /* equal where the network is the same machine's */
    uint64_t count;
    struct agree_entry entry[SHK_RAILS_MAX];
};

/* Who is to blame, in place of a rank. */
#define AGREE_HEARD      (-2) /* another rank saw it */
#define AGREE_SIDES_TELL (-1)

/* The first reason counts. */
void agree_drop(struct fabric_rail *rail, enum fabric_rail_status status, int blamed,
                const char *fmt, ...) SHK_PRINTF(4, 5);

int agree_read(struct fabric *fabric, unsigned rank, struct agree_card *card,
               struct shk_error *err) SHK_MUST_CHECK;

/* The entry that pairs with rail `index` of `ours`: the n-th of the same fabric, the first rails
 * apart. NULL when there is none. */
const struct agree_entry *agree_pair(const struct agree_card *ours, size_t index,
                                     const struct agree_card *theirs);

/* Do both addresses name the same interface? Only addresses of the Internet can. */
bool agree_same_address(uint32_t format, const struct agree_entry *a, const struct agree_entry *b);

#endif
