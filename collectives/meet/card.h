/* Card: what rank 0 tells the others of where it listens, and the key to come in with:
 * "shakedown2,KEY,PORT,ADDRESS,ADDRESS…". No blanks: PMI's lines are made of words. */
#ifndef SHK_COLLECTIVES_CARD_H
#define SHK_COLLECTIVES_CARD_H

#include "core/text/error.h"

#include <jansson.h>
#include <stdbool.h>

/* Hexadecimal digits of the key that is made for one run: 128 random bits. */
#define SHK_CARD_KEY 32U

/* Listens at the first free one of `ports` ports, at any when there are none: of all addresses of
 * this host or, loopback, only of those that others do not reach. The socket, or -errno with text;
 * *port_p: which port it is. What comes is sent in segments that every network carries. */
int shk_card_listen(const unsigned *port, unsigned ports, bool loopback, unsigned *port_p,
                    struct shk_error *err);

/* Sets the size of segments of a connection's socket, before it connects or listens: so that what
 * ranks tell each other passes where large packets vanish. */
void shk_card_segments(int fd);

/* Random hexadecimal digits and a NUL. -EIO. */
int shk_card_key(char key[SHK_CARD_KEY + 1]);

/* The card, at most `most` bytes: addresses that do not fit are left out. free(); NULL: out of
 * memory. */
char *shk_card_write(const char *key, unsigned port, bool loopback, size_t most);

/* What is in a card. -EPROTO: it is none. */
int shk_card_read(const char *card, char key[SHK_CARD_KEY + 1], unsigned *port_p,
                  json_t **addresses_p);

#endif
