#include "reports/text/wrap.h"
#include "reports/text/utf8.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

size_t shk_wrap_line(const char *s, size_t columns, size_t *skip_p)
{
    /* Looking no further than a line may reach, marks included, keeps long texts linear. */
    size_t len = strnlen(s, columns * 16 + 64), at = 0, width = 0, space = 0, soft = 0;
    while (at < len) {
        uint32_t cp;
        size_t n = shk_utf8_next(s + at, len - at, &cp);
        width += shk_utf8_width(cp);
        if (cp == ' ')
            space = at;
        if (width > columns && at)
            break;
        at += n;
        if (cp < 0x80 && strchr(",;:/=|", (int)cp))
            soft = at;
    }
    if (at < len) {
        if (space)
            at = space;
        else if (soft)
            at = soft;
    }
    size_t next = at + strspn(s + at, " ");
    while (at && s[at - 1] == ' ' && next < len)
        at--;
    *skip_p = next;
    return at;
}

void shk_wrap_pad(struct shk_strbuf *out, size_t columns)
{
    while (columns--)
        shk_strbuf_putc(out, ' ');
}

bool shk_wrap_is_command(const char *line)
{
    static const char *const words[] = {
        "$",        "#",        "apptainer", "apt",      "apt-get",     "cat",       "chmod",
        "chown",    "cp",       "csh",       "dmesg",    "dnf",         "docker",    "echo",
        "env",      "export",   "fi_info",   "find",     "getfacl",     "grep",      "grubby",
        "ibstat",   "ip",       "ldd",       "ln",       "ls",          "lsmod",     "lspci",
        "mkdir",    "modprobe", "module",    "mount",    "mpirun",      "mv",        "nvidia-smi",
        "pip",      "pip3",     "podman",    "ps",       "python3",     "rdma",      "rm",
        "rocm-smi", "rpm",      "sbatch",    "scontrol", "sed",         "setenv",    "shakedown",
        "sinfo",    "spack",    "srun",      "sudo",     "sysctl",      "systemctl", "tee",
        "udevadm",  "ulimit",   "unset",     "unsetenv", "update-grub", "yum",
    };
    size_t n = strcspn(line, " ");
    if (line[n] != ' ')
        return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == n && strncmp(line, words[i], n) == 0)
            return true;
    size_t name = strspn(line, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    return name > 1 && line[name] == '='; /* NAME=value command */
}

/* As shk_wrap_line(), but only at spaces outside of quotes; the whole rest when there is none. */
static size_t wrap_command(const char *s, size_t columns, size_t *skip_p)
{
    size_t len = strlen(s), at = 0, width = 0, space = 0;
    char quote = 0;
    if (shk_text_width(s) > columns + 2) {
        while (at < len && (width <= columns || !space)) {
            uint32_t cp;
            size_t n = shk_utf8_next(s + at, len - at, &cp);
            width += shk_utf8_width(cp);
            if (quote ? cp == (unsigned char)quote : cp == '\'' || cp == '"')
                quote = quote ? 0 : (char)cp;
            else if (cp == ' ' && !quote && at)
                space = at;
            at += n;
        }
    }
    if (!space) {
        *skip_p = len;
        return len;
    }
    *skip_p = space + strspn(s + space, " ");
    return *skip_p < len ? space : len;
}

static void wrap_one(struct shk_strbuf *out, const struct shk_wrap *wrap, const char *line)
{
    const char *lead = wrap->lead ? wrap->lead : "";
    size_t hang = wrap->indent + shk_text_width(lead);
    size_t columns = wrap->width > hang + 8 ? wrap->width - hang : 8;
    enum shk_role lead_role = wrap->lead_role ? wrap->lead_role : wrap->role;
    bool command = wrap->shell && shk_wrap_is_command(line), first = true;
    do {
        size_t skip, n = command ? wrap_command(line, columns - 2, &skip)
                                 : shk_wrap_line(line, columns, &skip);
        shk_wrap_pad(out, first ? wrap->indent : hang);
        if (first && *lead)
            shk_strbuf_printf(out, "%s%s%s", shk_style_on(wrap->style, lead_role), lead,
                              shk_style_off(wrap->style, lead_role));
        shk_strbuf_puts(out, shk_style_on(wrap->style, wrap->role));
        shk_strbuf_add(out, line, n);
        line += skip;
        if (command && *line)
            shk_strbuf_puts(out, " \\");
        shk_strbuf_puts(out, shk_style_off(wrap->style, wrap->role));
        shk_strbuf_putc(out, '\n');
        first = false;
    } while (*line);
}

void shk_wrap_put(struct shk_strbuf *out, const struct shk_wrap *wrap, const char *text)
{
    unsigned flags = wrap->style.unicode ? 0 : SHK_CLEAN_ASCII;
    struct shk_strbuf clean = SHK_STRBUF_INIT;
    shk_text_clip_lines(&clean, text, wrap->clip ? wrap->clip : SIZE_MAX / 8, flags);
    out->failed |= clean.failed;
    for (char *line = clean.data, *end; line && !clean.failed; line = end) {
        end = strchr(line, '\n');
        if (end)
            *end++ = '\0';
        wrap_one(out, wrap, line);
    }
    shk_strbuf_free(&clean);
}
