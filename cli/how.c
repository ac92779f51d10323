#include "cli/how.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "core/text/strbuf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Columns: without a terminal, and what is believed of COLUMNS. */
enum { HOW_WIDTH = 100, HOW_NARROW = 40, HOW_WIDE = 1000 };

static bool how_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
    }
    return false;
}

/* COLUMNS is what a shell exports for programs that have no terminal to ask. */
static unsigned how_width(int fd)
{
    const char *columns = getenv("COLUMNS");
    long asked = columns ? strtol(columns, NULL, 10) : 0;
    struct winsize size;
    if (isatty(fd) && ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col >= HOW_NARROW)
        return size.ws_col;
    return asked >= HOW_NARROW && asked <= HOW_WIDE ? (unsigned)asked : HOW_WIDTH;
}

/* --color, else as https://no-color.org has it. */
static bool how_color(const struct shk_options *options, int fd)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    if (options->color && strcmp(options->color, "auto") != 0)
        return strcmp(options->color, "always") == 0;
    return isatty(fd) && !(no_color && *no_color) && !(term && strcmp(term, "dumb") == 0);
}

static struct shk_report_options how_on(const struct shk_options *options, int fd)
{
    return (struct shk_report_options){.width = fd < 0 ? HOW_WIDTH : how_width(fd),
                                       .unicode = how_utf8(),
                                       .color = fd >= 0 && how_color(options, fd),
                                       .verbose = options->verbose > 0,
                                       .anonymize = options->anonymize};
}

struct shk_report_options shk_how(const struct shk_options *options, bool to_stdout)
{
    return how_on(options, to_stdout ? STDOUT_FILENO : -1);
}

struct shk_report_options shk_how_stderr(const struct shk_options *options)
{
    return how_on(options, STDERR_FILENO);
}

static int how_cmp(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int shk_how_known(const char *path, const char *const *known, size_t count, struct shk_error *err)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.'), *sorted[16];
    struct shk_strbuf list = SHK_STRBUF_INIT;
    if (!dot || dot == name || !dot[1])
        return 0;
    for (size_t i = 0; i < count; i++)
        if (shk_how_extension(name, known[i]))
            return 0;
    count = count < sizeof sorted / sizeof *sorted ? count : sizeof sorted / sizeof *sorted;
    memcpy(sorted, known, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, how_cmp);
    for (size_t i = 0; i < count; i++)
        shk_strbuf_printf(&list, "%s%s", !i ? "" : i + 1 < count ? ", " : " and ", sorted[i]);
    int rc = shk_error_set(
        err, EINVAL, "-o %s: no format has the extension '%s'; known are %s (or give --format)",
        path, dot, shk_strbuf_text(&list));
    shk_strbuf_free(&list);
    return rc;
}

bool shk_how_extension(const char *path, const char *extension)
{
    const char *dot = path ? strrchr(path, '.') : NULL;
    return dot && extension && strcasecmp(dot, extension) == 0;
}

static const struct shk_form *how_form(const struct shk_form *forms, size_t count, const char *name,
                                       const char *path)
{
    for (size_t i = 0; i < count; i++)
        if (name ? strcmp(forms[i].name, name) == 0
                 : path && forms[i].extension && shk_how_extension(path, forms[i].extension))
            return &forms[i];
    return name ? NULL : &forms[0];
}

static int how_bad_form(const struct shk_form *forms, size_t count, const char *name)
{
    struct shk_strbuf names = SHK_STRBUF_INIT;
    for (size_t i = 0; i < count; i++)
        shk_strbuf_printf(&names, "%s%s", i ? ", " : "", forms[i].name);
    shk_say("--format: '%s' is not one of %s", name, shk_strbuf_text(&names));
    shk_strbuf_free(&names);
    return SHK_EXIT_USAGE;
}

int shk_how_outputs(const struct shk_options *options, const struct shk_form *forms, size_t count)
{
    const char *extensions[16];
    struct shk_error err = {""};
    size_t known = 0;
    int rc = 0;
    if (options->format && !how_form(forms, count, options->format, NULL))
        return how_bad_form(forms, count, options->format);
    for (size_t i = 0; i < count && known < sizeof extensions / sizeof *extensions; i++)
        if (forms[i].extension)
            extensions[known++] = forms[i].extension;
    for (size_t i = 0; !rc && i < options->outputs.count; i++) {
        const char *path = options->outputs.items[i];
        rc = options->format ? 0 : shk_how_known(path, extensions, known, &err);
        rc = rc ? rc : shk_output_check(path, &err);
    }
    if (rc)
        shk_say("%s", err.text);
    return rc ? SHK_EXIT_USAGE : SHK_EXIT_OK;
}

static int how_write_one(const struct shk_options *options, const struct shk_form *form,
                         const char *path, const char *what, shk_how_write *write, void *arg)
{
    struct shk_error err = {""};
    struct shk_output out;
    struct shk_report_options how = shk_how(options, !path);
    int rc = shk_output_begin(&out, &err);
    if (!rc && (rc = write(arg, form, &how, out.stream))) {
        shk_error_sys(&err, -rc, "%s", what);
        shk_output_discard(&out);
    } else if (!rc) {
        rc = shk_output_finish(&out, path, &err);
    }
    if (rc)
        shk_say("%s", err.text);
    return rc ? SHK_EXIT_INTERNAL : SHK_EXIT_OK;
}

void shk_how_headline(const struct shk_options *options, const struct shk_form *forms, size_t count,
                      shk_how_write *write, void *arg)
{
    const struct shk_form *line = how_form(forms, count, "line", NULL);
    const struct shk_form *form = line ? line : how_form(forms, count, "term", NULL);
    struct shk_report_options how = shk_how_stderr(options);
    char *text = NULL, *end = NULL;
    size_t len = 0;
    FILE *out = form ? open_memstream(&text, &len) : NULL;
    bool good = out && !write(arg, form, &how, out);
    if (out && fclose(out) == 0 && good && text) {
        if ((end = strstr(text, "\n\n")))
            end[1] = '\0';
        shk_tell(text);
    }
    free(text);
}

int shk_how_write_all(const struct shk_options *options, const struct shk_form *forms, size_t count,
                      const char *what, shk_how_write *write, void *arg)
{
    struct shk_strbuf written = SHK_STRBUF_INIT;
    bool on_stdout = !options->outputs.count;
    int worst = SHK_EXIT_OK;
    for (size_t i = 0; i < options->outputs.count + !options->outputs.count; i++) {
        const char *path = options->outputs.count ? options->outputs.items[i] : NULL;
        path = path && strcmp(path, "-") != 0 ? path : NULL;
        on_stdout |= !path;
        int code = how_write_one(options, how_form(forms, count, options->format, path), path, what,
                                 write, arg);
        if (path && code == SHK_EXIT_OK)
            shk_strbuf_printf(&written, "%s%s", written.len ? ", " : "", path);
        worst = code > worst ? code : worst;
    }
    if (!on_stdout) {
        shk_how_headline(options, forms, count, write, arg);
        if (written.len)
            shk_say("wrote %s", shk_strbuf_text(&written));
    }
    shk_strbuf_free(&written);
    return worst;
}
