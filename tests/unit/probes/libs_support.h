/* Shared by the tests of the library probes: captures made on the fly, fakes, facts as text. */
#ifndef SHK_TESTS_LIBS_SUPPORT_H
#define SHK_TESTS_LIBS_SUPPORT_H

#include "core/facts/facts.h"
#include "core/host/host.h"
#include "probes/base/probe.h"

#define FAKES SHK_BUILD_DIR "/tests/fakes"

/* A capture in a temporary directory, removed by capture_end(). */
extern char capture_root[64];
void capture_begin(void);
void capture_end(void);
void capture_put(const char *name, const void *data, size_t len);
void capture_text(const char *name, const char *text);
void capture_copy(const char *name, const char *file); /* a file of the build into the capture */
/* hostcalls.json with x86_64 (or the machine of this build) and the environment given as JSON. */
void capture_environ(const char *json_object);

/* Runs a probe in this process and returns its facts; asserts that it returned `rc`. sysroot NULL
 * is the live host. known may be NULL. */
struct shk_facts *probe_facts(const struct shk_probe *probe, const char *sysroot,
                              const struct shk_facts *known, bool quick, int rc);

/* The value of a present fact as compact JSON, sorted keys; "absent: reason", "failed: reason" or
 * "missing". In a ring of static buffers: for messages and comparisons at once. */
const char *fact_text(const struct shk_facts *facts, const char *key);

#endif
