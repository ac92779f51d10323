/* Texts that name a variable by its use. */
#ifndef SHK_CHECKS_EXPAND_H
#define SHK_CHECKS_EXPAND_H

/* As shk_row_text() of a text in which "{use}" stands for the variable of that use
 * (core/text/uses.h). */
void shk_row_expand(char **slot, const char *text);

#endif
