/* Points in time as documents have them: RFC 3339, in UTC, to the second. */
#ifndef SHK_CORE_STAMP_H
#define SHK_CORE_STAMP_H

/* "2026-11-28T18:49:07Z" and its end. */
enum { SHK_STAMP = 32 };

/* Seconds since 1970 as text; "" when no calendar has them. */
void shk_stamp(char text[SHK_STAMP], long long seconds);

/* The other way, fractions of a second left out; -1: not such a text, or before 1970. */
long long shk_stamp_read(const char *text);

#endif
