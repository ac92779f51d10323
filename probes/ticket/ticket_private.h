/* Inside of the ticket's readers. */
#ifndef SHK_PROBES_TICKET_PRIVATE_H
#define SHK_PROBES_TICKET_PRIVATE_H

#include "probes/dumps/inspector.h"
#include "probes/ticket/ticket.h"
#include <stdbool.h>
#include <string.h>

/* Lines that belong together, without prefixes and colours, tabs and leading blanks as they were;
 * each is NUL-terminated. */
struct ticket_block {
    char *const *lines;
    size_t count;
    size_t before; /* of a reader of single lines: how many lines stand in front of lines[0] */
    const char *command; /* as typed behind a prompt, else NULL */
    bool part;           /* a pipe follows the command, or "..." stands for lines */
    bool silent;         /* the next prompt follows: nothing of the output is missing at its end */
    bool ended;          /* by a fence or a prompt, not by the end of the file */
};

/* Where a reader puts what it found. */
struct ticket_out {
    struct shk_facts *facts;
    const struct shk_name_set *names; /* may be NULL */
    const char *source;               /* of the facts: "job.log: ulimit -a" */
    struct shk_strbuf *lines;         /* that are searched like those of a log */
    struct shk_inspector *inspector;  /* for what is compared at the end; may be NULL */
    const char *note;                 /* why something is left out: a literal; NULL */
    size_t wrote;
    int rc; /* -ENOMEM once that happened */
};

struct ticket_reader {
    const char *name;     /* as said to people */
    const char *commands; /* separated by '|', how the command line begins; NULL */
    /* Does an output of this kind begin at this line? `left`: lines from here on, at least 1. */
    bool (*starts)(char *const *lines, size_t left);
    /* Writes facts; nothing when it is not what it looked like. */
    void (*read)(struct ticket_out *out, const struct ticket_block *block);
    /* Each line says something by itself: `starts` is asked for each one, and `read` gets it, with
     * all that follows. */
    bool single;
    /* Another output is of another device or node, and tells which. */
    bool names_its_own;
};

/* The table, `count_p` entries. */
const struct ticket_reader *const *ticket_readers(size_t *count_p);

/* ticket_stream.c: the lines of one process or node, in order; their texts stay with the caller. */
struct ticket_stream {
    char tag[72];
    char node[64];
    char **lines;
    size_t count, cap;
    bool cut; /* the text ends within a line */
};
int ticket_stream_read(struct shk_ticket *ticket, const struct ticket_stream *stream,
                       const char *file);

/* ticket.c: facts of the node of that name, NULL: out of memory. */
struct shk_facts *ticket_facts(struct shk_ticket *ticket, const char *node);
/* An empty one that writes to the node's facts and to the ticket's lines. */
struct ticket_out ticket_out_of(struct shk_ticket *ticket, struct shk_facts *facts,
                                const char *source);
/* A reader found something (`wrote` facts), or left something out for a reason (note, else NULL).
 */
int ticket_tell(struct shk_ticket *ticket, const char *reader, size_t wrote, const char *note);
/* Did it find something before? */
bool ticket_said(const struct shk_ticket *ticket, const char *reader);

/* ticket_env.c: what a command line sets: assignments in front of it, export, -x, -e, --env. */
void ticket_env_command(struct ticket_out *out, const char *command);

/* ticket_line.c: what stands around a line. */
struct ticket_mark {
    const char *text; /* the line itself */
    char tag[72];     /* of the process or node that printed it: a stream of its own; "" */
    char node[64];    /* the node, when the prefix tells; "" */
};
/* Takes prefixes and colours off `line` (NUL-terminated, changed in place). `hosts`: an object
 * whose members are what stands as "node01: " in front of lines (pdsh, clush). */
struct ticket_mark ticket_line_parse(char *line, const json_t *hosts);
/* "node01" between two lines of dashes (dshbak, clush -b), "node01 | CHANGED | rc=0 >>" (Ansible),
 * "=== node01 ===", "### node01", "node01:" above a fence: the name. False: no such header. */
bool ticket_line_header(char *const *lines, size_t left, char *host, size_t size);
/* Of a command that runs another one elsewhere (ssh, srun, kubectl exec, …): true, and the node's
 * name, "" when the command does not tell it. */
bool ticket_line_remote(const char *command, char *host, size_t size);
/* "name: " as pdsh writes it; its length, 0: none. */
size_t ticket_line_host(const char *line);
/* "``` " or "~~~". */
bool ticket_line_is_fence(const char *line);
/* "user@host:~$ cmd", "[user@host dir]# cmd", "$ cmd", "+ cmd": the command (inside line), NULL:
 * none. */
const char *ticket_line_prompt(const char *line, char *host, size_t size);
/* Does it stand for lines that were left out? */
bool ticket_line_is_gap(const char *line);

/* ticket_tool.c: for the readers. */
/* behind prefix, else NULL. Each line of a log is asked dozens of times, and hardly ever fits. */
static inline const char *ticket_after(const char *line, const char *prefix)
{
    if (*line != *prefix)
        return NULL;
    size_t len = strlen(prefix);
    return strncmp(line, prefix, len) == 0 ? line + len : NULL;
}
const char *ticket_skip(const char *p); /* white space: whatever ends a word */
/* Value of "Key : value" or "Key=value" after blanks; NULL: another key. Trailing blanks stay. */
const char *ticket_value(const char *line, const char *key);
/* Copies a word (up to a blank, or one of `stop`), cut to size; its length in the line. */
size_t ticket_word(char *out, size_t size, const char *p, const char *stop);
bool ticket_long(const char *p, long long *value_p); /* the whole word is a number */
/* Normalises "00000000:3B:00.0", "3b:00.0", "0000:3b:00.0" to the kernel's form; false: none. */
bool ticket_pci(char out[16], const char *text);
/* New JSON text without trailing blanks. */
json_t *ticket_text(const char *text, size_t len);
/* The JSON value that begins with the block, whatever stands behind it, up to 4 MiB; a new
 * reference. NULL: none, or cut. */
json_t *ticket_json(const struct ticket_block *block);

/* Writers: a key that was written before stays (the first one counts). */
void ticket_put(struct ticket_out *out, const char *key, json_t *value, const char *unit);
void ticket_put_text(struct ticket_out *out, const char *key, const char *text);
void ticket_put_int(struct ticket_out *out, const char *key, long long value, const char *unit);
/* The entry of the list `key` whose member `id` is `value` (stolen), a new one when there is none;
 * borrowed, its members may be set with ticket_member(). Lists of several outputs about the same
 * devices join in this way. NULL: out of memory. */
json_t *ticket_device(struct ticket_out *out, const char *key, const char *id, json_t *value);
/* The object `key`, a new one when there is none; as ticket_device(). */
json_t *ticket_object(struct ticket_out *out, const char *key);
/* Is there an entry like that? value is stolen. */
bool ticket_has_device(const struct ticket_out *out, const char *key, const char *id,
                       json_t *value);
/* Sets a member (stolen) unless it is there. */
void ticket_member(struct ticket_out *out, json_t *entry, const char *name, json_t *value);
void ticket_absent(struct ticket_out *out, const char *key, const char *reason);

#endif
