/* Where a sentence for people is made. Nobody may decide upon one: a step, a fact and a row carry a
 * code beside it. */
#ifndef SHK_CORE_PROSE_H
#define SHK_CORE_PROSE_H

/* Every sentence passes here once when it is made: texts of rows and chains, reasons of facts,
 * prose of the catalogue. Does nothing, but in a build with SHK_SCRAMBLE, where each line of two
 * words or more has its words reversed and its letters changed, in place; lines that are an export
 * or unset for a shell, and single words, are values and stay. The verdicts of such a build must be
 * those of any other. NULL is fine. */
void shk_prose(char *text);

#endif
