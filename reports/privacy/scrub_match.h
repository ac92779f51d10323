/* Patterns of scrub.c. Each looks at the start of s only; `before` is the character before it, 0
 * at the start of the text. Returns the bytes that match, 0 when it does not. */
#ifndef SHK_REPORTS_SCRUB_MATCH_H
#define SHK_REPORTS_SCRUB_MATCH_H

#include "reports/privacy/scrub.h"

/* IP and MAC addresses, GUIDs, UUIDs; *kind_p says which. Loopback, unspecified and netmask
 * addresses do not match, PCI addresses neither. */
size_t shk_scrub_match_address(const char *s, enum shk_scrub_kind *kind_p);

#endif
