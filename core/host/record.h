/* Captures: a live handle that writes down what is read through it, so that --sysroot replays it.
 *
 *   shk_record_begin()   before the probes run; their children write into the same folder
 *   shk_record_finish()  after them: .shakedown/hostcalls.json, facts.json and topology.xml
 *   shk_record_scrub()   takes secrets, names and addresses out of everything that was written
 *
 * Links stay links, so a capture has the shape of the host. Under /proc only what belongs to this
 * process, to process 1 and to NVIDIA's daemons is kept; libraries are left out, what they said is
 * in facts.json. */
#ifndef SHK_CORE_RECORD_H
#define SHK_CORE_RECORD_H

#include "core/facts/facts.h"
#include "core/host/host.h"

/* dir must not exist or be empty. host must be live. */
int shk_record_begin(struct shk_host *host, const char *dir, struct shk_error *err) SHK_MUST_CHECK;

/* `keep` says which facts a replay cannot find out again (those of libraries). Only variables that
 * somebody asked for go into the environment. */
int shk_record_finish(struct shk_host *host, const struct shk_facts *facts,
                      bool (*keep)(const char *key), struct shk_error *err) SHK_MUST_CHECK;

/* Rewrites the files below dir: the host's name, this user's names, MAC and IP addresses, GIDs,
 * GUIDs, UUIDs and serial numbers become made-up ones of the same form, the same one wherever it
 * occurs; networks that were one stay one. Without names_too these stay. Secrets are redacted in
 * either case (core/redact/redact.h). */
int shk_record_scrub(const char *dir, bool names_too, struct shk_error *err) SHK_MUST_CHECK;

#endif
