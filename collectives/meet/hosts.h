/* --hosts: a rank for each line of a file, started over ssh as its user would.
 *
 * The shakedown that is called with it stays where it is and is no rank. It starts itself on every
 * host with --rendezvous stdin, tells each which rank it is, takes the card from rank 0's output
 * and gives it to the others' input: all of it within the connections of ssh, which are encrypted
 * and know both ends. What rank 0 prints is printed here, and its exit code is the code. */
#ifndef SHK_COLLECTIVES_HOSTS_H
#define SHK_COLLECTIVES_HOSTS_H

#include "collectives/meet/meet.h"
#include "core/text/error.h"

#include <stddef.h>

/* Ranks of one file. */
#define SHK_HOSTS_MOST 16384U

/* Reads HOST [slots=N] lines, # for remarks, into an array with the host of each rank. -EINVAL with
 * FILE:LINE. */
int shk_hosts_read(const char *path, json_t **hosts_p, struct shk_error *err) SHK_MUST_CHECK;

/* Runs this command line on the hosts of the file, without its --hosts. *code_p: exit code of rank
 * 0, 1 when it could not be started. Each host has `deadline_ms` to answer ssh. */
int shk_hosts_run(const char *path, unsigned deadline_ms, int *code_p,
                  struct shk_error *err) SHK_MUST_CHECK;

/* The other end: who this rank is, from stdin. */
int shk_hosts_hear(struct shk_meet *meet, unsigned deadline_ms,
                   struct shk_error *err) SHK_MUST_CHECK;
/* Rank 0 tells its card. */
int shk_hosts_tell(const char *card, struct shk_error *err) SHK_MUST_CHECK;
/* The others take it (free()). */
int shk_hosts_card(char **card_p, unsigned deadline_ms, struct shk_error *err) SHK_MUST_CHECK;

#endif
