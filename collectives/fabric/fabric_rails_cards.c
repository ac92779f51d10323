/* Opens the rails and tells the other ranks of them. */
#include "collectives/fabric/fabric_rails_cards.h"
#include "collectives/ranks/job_private.h"
#include "core/facts/digest.h"
#include "core/run/isolate.h"
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AGREE_KEY "fabric.rails"

void agree_drop(struct fabric_rail *rail, enum fabric_rail_status status, int blamed,
                const char *fmt, ...)
{
    struct fabric_rail_report *report = rail->report;
    va_list args;

    if (report->reason[0] == '\0') {
        va_start(args, fmt);
        vsnprintf(report->reason, sizeof report->reason, fmt, args);
        va_end(args);
        report->witness = blamed != AGREE_HEARD;
        report->blamed = blamed >= 0 ? (uint32_t)blamed + 1 : 0;
    }
    report->status = status;
}

static uint64_t agree_host(void)
{
    struct shk_host *host = NULL;
    char *boot = NULL;
    char *space = NULL;
    char text[128] = "";
    struct shk_digest digest;
    uint64_t value = 0;

    if (shk_host_open(&host, NULL, NULL) != 0)
        return 0;
    if (shk_host_line(host, &boot, NULL, "/proc/sys/kernel/random/boot_id") == 0 &&
        shk_host_readlink(host, &space, NULL, "/proc/self/ns/net") == 0) {
        snprintf(text, sizeof text, "%s %s", boot, space);
        digest = shk_digest_of(text, strlen(text));
        memcpy(&value, digest.bytes, sizeof value);
    }
    free(boot);
    free(space);
    shk_host_close(host);
    return value;
}

void fabric_rails_open(struct fabric *fabric)
{
    for (unsigned i = 1; i < fabric->rails; i++) {
        struct fabric_rail *rail = &fabric->rail[i];
        struct shk_error why = {{0}};
        int rc = fabric_rail_open(fabric, rail, &why);

        rail->report->status = FABRIC_RAIL_USED;
        if (rc == 0)
            rc = fabric_rail_register(fabric, rail, &why);
        if (rc < 0)
            agree_drop(rail, FABRIC_RAIL_DEAD, (int)fabric->wire.rank, "%.180s", why.text);
    }
    if (fabric->rails > 1)
        memset(shk_heap_at(fabric->wire.heap, SHK_AREA_RAIL), 0, FABRIC_TOKEN_BYTES);
}

static void agree_describe(const struct fabric *fabric, struct fabric_rail *rail,
                           struct agree_entry *entry)
{
    bool virtual = (rail->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
    size_t len = sizeof entry->addr;
    int rc = 0;

    snprintf(entry->fabric, sizeof entry->fabric, "%s", rail->report->fabric);
    if (!rail->ready)
        return;
    shk_crumb_call("fi_getname");
    rc = fi_getname(&rail->ep->fid, entry->addr, &len);
    entry->key = fi_mr_key(rail->mr);
    if (rc != 0 || len > sizeof entry->addr || entry->key == FI_KEY_NOTAVAIL) {
        agree_drop(rail, FABRIC_RAIL_DEAD, (int)fabric->wire.rank,
                   "fi_getname, fi_mr_key: no address or key");
        return;
    }
    entry->base = virtual ? (uint64_t)(uintptr_t)fabric->wire.heap->base : 0;
    entry->addr_len = (uint32_t)len;
    entry->ready = 1;
}

int fabric_rails_publish(struct fabric *fabric, struct shk_error *err)
{
    struct agree_card card = {.host = agree_host(), .count = fabric->rails};

    for (unsigned i = 0; i < fabric->rails; i++)
        agree_describe(fabric, &fabric->rail[i], &card.entry[i]);
    return shk_job_put(fabric->wire.job, AGREE_KEY, &card,
                       offsetof(struct agree_card, entry) + fabric->rails * sizeof card.entry[0],
                       err);
}

int agree_read(struct fabric *fabric, unsigned rank, struct agree_card *card, struct shk_error *err)
{
    size_t len = 0;
    int rc = 0;

    memset(card, 0, sizeof *card);
    rc = shk_job_get(fabric->wire.job, rank, AGREE_KEY, card, sizeof *card, &len, err);
    if (rc < 0)
        return rc;
    if (card->count == 0 || card->count > SHK_RAILS_MAX ||
        len != offsetof(struct agree_card, entry) + card->count * sizeof card->entry[0]) {
        return shk_error_set(err, EPROTO, "rank %u published malformed rails", rank);
    }
    for (size_t i = 0; i < card->count; i++) {
        card->entry[i].fabric[sizeof card->entry[i].fabric - 1] = '\0';
        if (card->entry[i].addr_len > AGREE_ADDR_MAX)
            return shk_error_set(err, EPROTO, "rank %u published malformed rails", rank);
    }
    return 0;
}

const struct agree_entry *agree_pair(const struct agree_card *ours, size_t index,
                                     const struct agree_card *theirs)
{
    const char *fabric = ours->entry[index].fabric;
    size_t nth = 0;

    for (size_t i = 1; i < index; i++)
        nth += strcmp(ours->entry[i].fabric, fabric) == 0;
    for (size_t i = 1; i < theirs->count; i++) {
        if (strcmp(theirs->entry[i].fabric, fabric) == 0 && nth-- == 0)
            return &theirs->entry[i];
    }
    return NULL;
}

bool agree_same_address(uint32_t format, const struct agree_entry *a, const struct agree_entry *b)
{
    struct sockaddr_in four[2];
    struct sockaddr_in6 six[2];

    if (format == FI_SOCKADDR_IN && a->addr_len >= sizeof four[0] &&
        b->addr_len >= sizeof four[0]) {
        memcpy(&four[0], a->addr, sizeof four[0]);
        memcpy(&four[1], b->addr, sizeof four[1]);
        return four[0].sin_addr.s_addr == four[1].sin_addr.s_addr;
    }
    if (format == FI_SOCKADDR_IN6 && a->addr_len >= sizeof six[0] && b->addr_len >= sizeof six[0]) {
        memcpy(&six[0], a->addr, sizeof six[0]);
        memcpy(&six[1], b->addr, sizeof six[1]);
        return memcmp(&six[0].sin6_addr, &six[1].sin6_addr, sizeof six[0].sin6_addr) == 0;
    }
    return false;
}
