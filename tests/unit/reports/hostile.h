/* Texts that try to break out of a report, one per trick. */
#ifndef SHK_TESTS_REPORTS_HOSTILE_H
#define SHK_TESTS_REPORTS_HOSTILE_H

#include <stddef.h>

struct hostile {
    const char *name;
    const char *text;
};

extern const struct hostile hostile_texts[];
extern const size_t hostile_count;

/* A long text; free it. */
enum { HOSTILE_LONG = 1 << 18 };
char *hostile_long(void);

/* Fails the test when text holds a control character other than newline, an invisible or
 * reordering character, or bytes that are not UTF-8. */
void hostile_expect_clean(const char *what, const char *text);

#endif
