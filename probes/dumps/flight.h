/* Dumps of PyTorch's flight recorder (TORCH_FR_DUMP_TEMP_FILE, one pickle for each rank) next to
 * each other: which collectives the ranks called, in which order, with which sizes. What stands out
 * becomes lines that logs are searched for like any other (config/signatures/flight.yaml); a code
 * in brackets says what it is:
 *   flight-recorder[order]    at one place of the sequence ranks called different collectives
 *   flight-recorder[size]     the same collective with different numbers of elements or types
 *   flight-recorder[behind]   ranks have not called what others wait in
 *   flight-recorder[waits]    the same, and those ranks wait in another group themselves
 *   flight-recorder[stuck]    all called the same one, and it does not end
 *   flight-recorder[unbegun]  the same, and it runs on some GPUs and has not begun on others
 *   flight-recorder[open]     ranks wait, and what the others do their dumps do not say
 *   flight-recorder[missing]  ranks of a group without a dump, where most ranks have one
 *   flight-recorder[done]     nothing waits
 * Of versions 2.x of the format (torch/csrc/distributed/c10d/FlightRecorder.hpp). */
#ifndef SHK_PROBES_FLIGHT_H
#define SHK_PROBES_FLIGHT_H

#include "core/text/error.h"
#include "core/text/strbuf.h"
#include <jansson.h>
#include <stddef.h>

/* Of one file. */
#define SHK_FLIGHT_FILE_MAX ((size_t)64 << 20)

struct shk_flight;

struct shk_flight *shk_flight_create(void); /* NULL: out of memory */
void shk_flight_destroy(struct shk_flight *flight);

/* A dump; its rank is the number at the end of the file's name. -EINVAL (err says why): not such a
 * dump, or no number; it is left out. -ENOMEM. */
int shk_flight_add(struct shk_flight *flight, const char *name, const void *data, size_t len,
                   struct shk_error *err) SHK_MUST_CHECK;

size_t shk_flight_count(const struct shk_flight *flight);

/* Adds the lines to `text`, and to `findings` (an array, or NULL) for each of [order], [size] (one
 * for each kind of call), [behind], [waits], [unbegun] and [open] {code, call: its name,
 * collective: its number, ranks: who is meant}. */
void shk_flight_compare(const struct shk_flight *flight, struct shk_strbuf *text, json_t *findings);

#endif
