#include "reports/privacy/scrub_match.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>
#include <strings.h>

static bool match_is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static size_t match_span(const char *s, bool (*is)(char c), size_t max)
{
    size_t n = 0;
    while (n < max && s[n] && is(s[n]))
        n++;
    return n;
}

static bool match_is_hex(char c)
{
    return isxdigit((unsigned char)c);
}

static bool match_is_address(char c)
{
    return isxdigit((unsigned char)c) || c == ':' || c == '.';
}

/* Groups of hex digits of one size each, `sep` between them: sizes ends with 0; the last size may
 * be repeated when `more`. Returns the bytes, 0 when s does not start so. */
static size_t match_groups(const char *s, char sep, const unsigned *sizes, bool more)
{
    size_t at = 0;
    unsigned last = 0;
    for (size_t i = 0; sizes[i]; i++) {
        if (i && s[at++] != sep)
            return 0;
        if (match_span(s + at, match_is_hex, sizes[i]) != sizes[i])
            return 0;
        at += sizes[i];
        last = sizes[i];
    }
    while (more && s[at] == sep && match_span(s + at + 1, match_is_hex, last) == last)
        at += last + 1;
    return match_is_word(s[at]) || s[at] == sep ? 0 : at;
}

static size_t match_ipv4(const char *s)
{
    char text[16];
    struct in_addr addr;
    size_t n = strspn(s, "0123456789.");
    while (n && s[n - 1] == '.')
        n--;
    if (n < 7 || n >= sizeof text || match_is_word(s[n]))
        return 0;
    memcpy(text, s, n);
    text[n] = '\0';
    if (inet_pton(AF_INET, text, &addr) != 1)
        return 0;
    unsigned first = ntohl(addr.s_addr) >> 24;
    return first == 0 || first == 127 || first == 255 ? 0 : n;
}

static size_t match_ipv6(const char *s)
{
    char text[INET6_ADDRSTRLEN];
    struct in6_addr addr;
    size_t n = match_span(s, match_is_address, sizeof text);
    while (n > 2 && (s[n - 1] == '.' || (s[n - 1] == ':' && s[n - 2] != ':')))
        n--;
    if (n < 3 || n >= sizeof text || match_is_word(s[n]))
        return 0;
    memcpy(text, s, n);
    text[n] = '\0';
    if (!strchr(text, ':') || inet_pton(AF_INET6, text, &addr) != 1 ||
        IN6_IS_ADDR_LOOPBACK(&addr) || IN6_IS_ADDR_UNSPECIFIED(&addr))
        return 0;
    return n;
}

/* "0x" and 16 digits, as ibstat and NVLink print GUIDs; masks of all ones or zeros are none. */
static size_t match_hex_guid(const char *s)
{
    if (s[0] != '0' || s[1] != 'x' || match_span(s + 2, match_is_hex, 17) != 16 ||
        match_is_word(s[18]) || strspn(s + 2, "fF") >= 16 || strspn(s + 2, "0") >= 14)
        return 0;
    return 18;
}

size_t shk_scrub_match_address(const char *s, enum shk_scrub_kind *kind_p)
{
    static const unsigned uuid[] = {8, 4, 4, 4, 12, 0}, guid[] = {4, 4, 4, 4, 0};
    static const unsigned mac[] = {2, 2, 2, 2, 2, 2, 0};
    const struct {
        size_t len;
        enum shk_scrub_kind kind;
    } found[] = {
        {match_groups(s, '-', uuid, false), SHK_SCRUB_UUID},
        {match_groups(s, ':', mac, true), SHK_SCRUB_MAC},
        {match_groups(s, ':', guid, false), SHK_SCRUB_GUID},
        {match_hex_guid(s), SHK_SCRUB_GUID},
        {match_ipv4(s), SHK_SCRUB_ADDRESS},
        {match_ipv6(s), SHK_SCRUB_ADDRESS},
    };
    for (size_t i = 0; i < sizeof found / sizeof *found; i++) {
        if (found[i].len) {
            *kind_p = found[i].kind;
            return found[i].len;
        }
    }
    return 0;
}
