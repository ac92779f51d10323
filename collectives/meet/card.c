#include "collectives/meet/card.h"
#include "collectives/meet/meet.h"
#include "core/text/strbuf.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define CARD_WORD "shakedown2"

/* The least MTU of IPv6 without its header and that of TCP (RFC 8200, section 5). */
#define CARD_SEGMENT (1280 - 60)

void shk_card_segments(int fd)
{
    int mss = CARD_SEGMENT;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &mss, sizeof mss);
}

/* Listening at one port (0: any) of one family. */
static int card_bind(int family, bool loopback, unsigned port)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    bool inet6 = family == AF_INET6;
    const struct sockaddr *to = inet6 ? (struct sockaddr *)&six : (struct sockaddr *)&four;
    int off = 0, on = 1, errnum;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    six.sin6_addr = (struct in6_addr)IN6ADDR_ANY_INIT;
    four.sin_addr.s_addr = htonl(loopback ? INADDR_LOOPBACK : INADDR_ANY);
    if (inet6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (port)
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    shk_card_segments(fd);
    if (!bind(fd, to, inet6 ? sizeof six : sizeof four) && !listen(fd, SOMAXCONN))
        return fd;
    errnum = errno;
    close(fd);
    return -errnum;
}

static int card_listen_at(bool loopback, unsigned port)
{
    int fd = loopback ? -EAFNOSUPPORT : card_bind(AF_INET6, false, port);
    return fd >= 0 ? fd : card_bind(AF_INET, loopback, port);
}

int shk_card_listen(const unsigned *port, unsigned ports, bool loopback, unsigned *port_p,
                    struct shk_error *err)
{
    struct sockaddr_storage bound;
    socklen_t len = sizeof bound;
    int fd = ports ? -EADDRINUSE : card_listen_at(loopback, 0);
    for (unsigned i = 0; fd < 0 && i < ports; i++)
        fd = card_listen_at(loopback, port[i]);
    if (fd >= 0 && getsockname(fd, (struct sockaddr *)&bound, &len)) {
        int errnum = errno;
        close(fd);
        fd = -errnum;
    }
    if (fd < 0 && ports)
        return shk_error_sys(err, -fd, "rank 0 cannot listen at port %u%s", port[0],
                             ports > 1 ? " nor at those after it" : "");
    if (fd < 0)
        return shk_error_sys(err, -fd, "rank 0 cannot listen");
    *port_p = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
                                                : ((struct sockaddr_in *)&bound)->sin_port);
    return fd;
}

int shk_card_key(char key[SHK_CARD_KEY + 1])
{
    unsigned char bytes[SHK_CARD_KEY / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return -EIO;
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(key + 2 * i, 3, "%02x", bytes[i]);
    explicit_bzero(bytes, sizeof bytes);
    return 0;
}

/* The address as text, when another host may reach it. */
static bool card_reachable(const struct ifaddrs *at, char text[NI_MAXHOST])
{
    int family = at->ifa_addr ? at->ifa_addr->sa_family : AF_UNSPEC;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(void *)at->ifa_addr;
    bool inet6 = family == AF_INET6;
    if ((!inet6 && family != AF_INET) || at->ifa_flags & IFF_LOOPBACK ||
        !(at->ifa_flags & IFF_UP) || (inet6 && IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr)))
        return false;
    return !getnameinfo(at->ifa_addr, inet6 ? sizeof *six : sizeof(struct sockaddr_in), text,
                        NI_MAXHOST, NULL, 0, NI_NUMERICHOST);
}

char *shk_card_write(const char *key, unsigned port, bool loopback, size_t most)
{
    struct shk_strbuf card = SHK_STRBUF_INIT;
    struct ifaddrs *all = NULL;
    char text[NI_MAXHOST];
    unsigned found = 0;
    shk_strbuf_printf(&card, CARD_WORD ",%s,%u", key, port);
    if (!loopback && !getifaddrs(&all)) {
        for (const struct ifaddrs *at = all; at; at = at->ifa_next)
            if (card_reachable(at, text) && card.len + strlen(text) + 1 <= most) {
                shk_strbuf_printf(&card, ",%s", text);
                found++;
            }
        freeifaddrs(all);
    }
    if (!found)
        shk_strbuf_puts(&card, ",127.0.0.1");
    return shk_strbuf_take(&card);
}

int shk_card_read(const char *card, char key[SHK_CARD_KEY + 1], unsigned *port_p,
                  json_t **addresses_p)
{
    size_t word = strlen(CARD_WORD), hex = 0;
    char number[8];
    *addresses_p = NULL;
    if (strncmp(card, CARD_WORD ",", word + 1) != 0)
        return -EPROTO;
    card += word + 1;
    hex = strspn(card, "0123456789abcdef");
    if (hex != SHK_CARD_KEY || card[hex] != ',')
        return -EPROTO;
    memcpy(key, card, hex);
    key[hex] = '\0';
    card += hex + 1;
    size_t len = strcspn(card, ",");
    snprintf(number, sizeof number, "%.*s", (int)(len < sizeof number ? len : 0), card);
    if (!shk_meet_number(number, port_p) || *port_p == 0 || *port_p > 65535)
        return -EPROTO;
    json_t *addresses = json_array();
    bool sound = addresses;
    for (card += len; sound && *card == ','; card += len) {
        card++;
        len = strcspn(card, ",");
        sound = len > 0 && len < 64 && !json_array_append_new(addresses, json_stringn(card, len));
    }
    if (!sound || *card || json_array_size(addresses) == 0) {
        json_decref(addresses);
        return -EPROTO;
    }
    *addresses_p = addresses;
    return 0;
}
