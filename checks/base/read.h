/* Reading facts for one row of the matrix. A row remembers what was read for it:
 *
 *   - a fact that was asked for and could not be read (failed, of another type, nothing looked)
 *     makes the row UNKNOWN at shk_row_end() when it would have been pass, note or n/a: the fact
 *     could have turned it;
 *   - n/a is a claim: a row for which nothing at all was read is UNKNOWN instead.
 *
 * A row that is WARN or FAIL stays so: what was found is found. So a check must call something bad
 * only for a value that a reader handed out (PRESENT), or for ABSENT where absence is bad.
 *
 * Do not use a reader for what only goes into the text of a row: take checks/base/look.h for that.
 */
#ifndef SHK_CHECKS_READ_H
#define SHK_CHECKS_READ_H

#include "checks/base/row.h"

/* As shk_look_*(), and remembered. The row must come from shk_row_begin(). */
enum shk_look shk_read(struct shk_row *row, const char *key, struct shk_fact *fact_p);
enum shk_look shk_read_text(struct shk_row *row, const char *key, const char **value_p);
enum shk_look shk_read_int(struct shk_row *row, const char *key, long long *value_p);
enum shk_look shk_read_bool(struct shk_row *row, const char *key, bool *value_p);
enum shk_look shk_read_array(struct shk_row *row, const char *key, json_t **value_p);
enum shk_look shk_read_texts(struct shk_row *row, const char *key, json_t **value_p);
enum shk_look shk_read_numbers(struct shk_row *row, const char *key, json_t **value_p);
enum shk_look shk_read_objects(struct shk_row *row, const char *key, json_t **value_p);
enum shk_look shk_read_object(struct shk_row *row, const char *key, json_t **value_p);

/* As shk_look_member_*(), and remembered; `key` names the fact that the object belongs to. */
enum shk_look shk_read_member_text(struct shk_row *row, const char *key, const json_t *object,
                                   const char *name, const char **value_p);
enum shk_look shk_read_member_int(struct shk_row *row, const char *key, const json_t *object,
                                  const char *name, long long *value_p);
enum shk_look shk_read_member_number(struct shk_row *row, const char *key, const json_t *object,
                                     const char *name, double *value_p);
enum shk_look shk_read_member_bool(struct shk_row *row, const char *key, const json_t *object,
                                   const char *name, bool *value_p);
enum shk_look shk_read_member_array(struct shk_row *row, const char *key, const json_t *object,
                                    const char *name, json_t **value_p);
enum shk_look shk_read_member_texts(struct shk_row *row, const char *key, const json_t *object,
                                    const char *name, json_t **value_p);
enum shk_look shk_read_member_numbers(struct shk_row *row, const char *key, const json_t *object,
                                      const char *name, json_t **value_p);
enum shk_look shk_read_member_object(struct shk_row *row, const char *key, const json_t *object,
                                     const char *name, json_t **value_p);

/* The same where null is no answer either (looked, there is none): true when there is a value, else
 * remembered as unread. */
bool shk_read_told_text(struct shk_row *row, const char *key, const json_t *object,
                        const char *name, const char **value_p);
bool shk_read_told_int(struct shk_row *row, const char *key, const json_t *object, const char *name,
                       long long *value_p);
bool shk_read_told_bool(struct shk_row *row, const char *key, const json_t *object,
                        const char *name, bool *value_p);
bool shk_read_told_array(struct shk_row *row, const char *key, const json_t *object,
                         const char *name, json_t **value_p);

/* Remembers, for what no reader covers, that something was not read (`key`: the fact; the text:
 * why, one clause) or that something was. */
void shk_row_lacks(struct shk_row *row, const char *key, const char *whyf, ...) SHK_PRINTF(3, 4);
void shk_row_was_read(struct shk_row *row);

/* Remembers that entries of the list `key` were lost, if so: see shk_look_lost(). The readers of
 * whole facts do it; for a list that was only looked at. */
void shk_row_lacks_lost(struct shk_row *row, const char *key);

/* Has anything that was asked for not been read so far? */
bool shk_row_lacking(const struct shk_row *row);

/* The active profile decides about this row. Lacking when the profile is not certain. */
void shk_read_profile(struct shk_row *row);

/* What several checks ask, remembered: counts are -1 when they cannot be told. */
long long shk_read_device_count(struct shk_row *row, const char *kind);
long long shk_read_gpu_count(struct shk_row *row); /* of any maker */
long long shk_read_job_nodes(struct shk_row *row);

/* *value_p: is this a virtual machine? */
enum shk_look shk_read_guest(struct shk_row *row, bool *value_p);

/* *value_p: "docker" …; ABSENT: known not to be in a container. */
enum shk_look shk_read_container(struct shk_row *row, const char **value_p);

/* The value that the job sees of an environment variable (files included, see shk_env_get());
 * ABSENT: the environment was read and does not set it. */
enum shk_look shk_read_env(struct shk_row *row, const char *name, const char **value_p);

#endif
