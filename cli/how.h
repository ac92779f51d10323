/* How a report is to look: terminal, locale and options. */
#ifndef SHK_CLI_HOW_H
#define SHK_CLI_HOW_H

#include "cli/options.h"
#include "reports/report.h"

/* Width and colour are those of the terminal when the report goes there; NO_COLOR and TERM=dumb
 * turn colour off, a locale that is not UTF-8 every character beyond ASCII. */
struct shk_report_options shk_how(const struct shk_options *options, bool to_stdout);
/* As for a report on stderr. */
struct shk_report_options shk_how_stderr(const struct shk_options *options);

/* Does the name of a file end in the extension (".md"), in any case of letters? */
bool shk_how_extension(const char *path, const char *extension);

/* A file whose extension is none of `known` is a mistake: -EINVAL with the list. "-" and names
 * without an extension are fine. */
int shk_how_known(const char *path, const char *const *known, size_t count,
                  struct shk_error *err) SHK_MUST_CHECK;

/* For commands with a document of their own. Before the work: --format, and extensions and places
 * of each -o. What is wrong is said. Returns an enum shk_exit. */
int shk_how_outputs(const struct shk_options *options, const struct shk_form *forms, size_t count);

/* After it: calls `write` for each -o, or once for stdout, in the form of --format or of the
 * extension; the first form is for the terminal. When all went to files, what the screen would have
 * begun with (all of the form "line", where there is one) and the names of the files go to stderr.
 * `what` stands in messages. Returns the worst enum shk_exit. */
typedef int shk_how_write(void *arg, const struct shk_form *form,
                          const struct shk_report_options *how, FILE *out);
int shk_how_write_all(const struct shk_options *options, const struct shk_form *forms, size_t count,
                      const char *what, shk_how_write *write, void *arg);

/* To stderr: what the screen would have begun with, up to its first empty line; of the form "line",
 * where there is one, all. */
void shk_how_headline(const struct shk_options *options, const struct shk_form *forms, size_t count,
                      shk_how_write *write, void *arg);

#endif
