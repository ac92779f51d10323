/* Line breaking by display width. */
#ifndef SHK_REPORTS_WRAP_H
#define SHK_REPORTS_WRAP_H

#include "core/text/strbuf.h"
#include "reports/text/style.h"

/* Where to end the first line of printable text s so that it fits `columns` (at least 1): at a
 * space, else behind one of , ; : / = |, else anywhere. Returns its bytes (0 only for ""), and in
 * *skip_p the bytes up to the start of the next line, white space left out. */
size_t shk_wrap_line(const char *s, size_t columns, size_t *skip_p);

struct shk_wrap {
    struct shk_style style;
    enum shk_role role;
    enum shk_role lead_role; /* SHK_ROLE_PLAIN: as role */
    unsigned indent;         /* columns before lead */
    unsigned width;          /* of the terminal */
    const char *lead;        /* printable, before the first line; later lines are indented as far */
    unsigned clip;           /* columns of text at most, see shk_text_clip(); 0: no limit */
    bool shell;              /* lines to copy: never broken, cut or put into another alphabet */
    bool block;              /* lead before the first line only */
};

/* Bytes from which on nobody would copy it: then it is text like any other. */
enum { SHK_WRAP_SHELL = 65536 };

/* Appends raw text, cleaned, as lines that fit; each '\n' of it starts a line with lead again
 * (but see block). */
void shk_wrap_put(struct shk_strbuf *out, const struct shk_wrap *wrap, const char *text);

void shk_wrap_pad(struct shk_strbuf *out, size_t columns);

#endif
