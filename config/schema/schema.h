/* Rows of a catalogue as data: one table says how a YAML mapping becomes a C structure, how it is
 * checked, documented and written out as a C initialiser, so these cannot drift apart. */
#ifndef SHK_CONFIG_SCHEMA_H
#define SHK_CONFIG_SCHEMA_H

#include "config/schema/arena.h"
#include "config/schema/yaml.h"
#include "core/text/error.h"
#include "core/text/strbuf.h"
#include <stdbool.h>
#include <stddef.h>

enum shk_section {
    SHK_SECTION_SETTINGS,
    SHK_SECTION_PROFILES,
    SHK_SECTION_DIAGNOSES,
    SHK_SECTION_CONFLICTS,
    SHK_SECTION_DIFF,
    SHK_SECTION_SIGNATURES,
    SHK_SECTION_RULES,
    SHK_SECTION_NAMES,
    SHK_SECTION_USES,
    SHK_SECTION_LAUNCHERS,
    SHK_SECTION_FIXES,
    SHK_SECTION_CALLS,
    SHK_SECTION_CODES,
    SHK_SECTION_DEFECTS,
    SHK_SECTION_ERRORS,
    SHK_SECTION_OBJECTS,
    SHK_SECTION_COUNT
};

enum shk_field_kind {
    SHK_FIELD_TEXT,   /* const char *, one line */
    SHK_FIELD_LINES,  /* const char *, line breaks allowed */
    SHK_FIELD_WORD,   /* const char *, one of names */
    SHK_FIELD_TEXTS,  /* const char *const *, NULL-terminated; NULL when the list is empty */
    SHK_FIELD_BOOL,   /* bool */
    SHK_FIELD_INT,    /* int, within min and max */
    SHK_FIELD_INT64,  /* long long; extra: a bool, set when the key is given */
    SHK_FIELD_CHAR,   /* char */
    SHK_FIELD_ENUM,   /* an enum; names are indexed by it */
    SHK_FIELD_RECORD, /* a structure */
    SHK_FIELD_RECORDS /* const structure *; extra: a size_t, their number */
};

/* Is a text fine? If not, *why says what is wrong with it. */
struct shk_why {
    char text[256];
};
typedef bool shk_text_check_f(const char *text, struct shk_why *why);

struct shk_record;

struct shk_field {
    const char *key;    /* in YAML */
    const char *member; /* in C */
    enum shk_field_kind kind;
    bool required;
    size_t offset;
    const char *const *names; /* WORD, ENUM */
    size_t names_count;
    const struct shk_record *record; /* RECORD, RECORDS */
    const char *extra_member;        /* INT64, RECORDS */
    size_t extra_offset;
    long long min, max;      /* INT */
    shk_text_check_f *check; /* TEXT, and each item of TEXTS */
    bool refers;             /* TEXT, each item of TEXTS: the name of a row in section */
    enum shk_section section;
    const char *doc;
};

#define SHK_MAX_FIELDS 32 /* of one record */

struct shk_fill;

struct shk_record {
    const char *what; /* "setting", for messages */
    const char *type; /* "struct shk_setting" */
    size_t size;
    const struct shk_field *fields;
    size_t fields_count;
    const void *defaults; /* a row with what absent keys mean; NULL: zeros */
    /* Rules over several keys; may be NULL. Reports with shk_fill_error(). */
    int (*check)(const struct shk_fill *fill, const struct shk_yaml_node *node, const void *row);
    bool apart; /* a nested record that several have: documented once, by itself */
    /* Rows of a section only. */
    size_t name_offset;  /* const char *: the field that names the row, fields[0] */
    size_t place_offset; /* const char *: FILE:LINE, not in YAML */
};

/* A name that must exist once all files are read. */
struct shk_ref {
    struct shk_ref *next;
    const char *file;
    unsigned line;
    const char *key;
    enum shk_section section;
    const char *name;
};

struct shk_refs {
    struct shk_ref *first, **tail;
};

/* One conversion in progress. */
struct shk_fill {
    struct shk_arena *arena; /* owns what the rows point to */
    const char *file;
    struct shk_refs *refs;         /* collects; may be NULL */
    const struct shk_fill *parent; /* of a nested record */
    const char *key;               /* of the nested record in its parent */
    struct shk_error *err;
};

/* Converts a mapping into *row (record->size bytes, overwritten). -EINVAL with the message, or
 * -ENOMEM. */
int shk_schema_fill(const struct shk_fill *fill, const struct shk_record *record,
                    const struct shk_yaml_node *node, void *row) SHK_MUST_CHECK;

/* Reports a problem with a key of the mapping `node`: at the line of its value if it is given,
 * else at the line of the mapping. Returns -EINVAL. */
int shk_fill_error(const struct shk_fill *fill, const struct shk_yaml_node *node, const char *key,
                   const char *fmt, ...) SHK_PRINTF(4, 5);

/* Text of a name for messages: cut to a readable length at a character boundary. */
#define SHK_EXCERPT 64
const char *shk_excerpt(char buf[SHK_EXCERPT + 4], const char *text);

/* ", did you mean "x"?" for the nearest name, else "". */
#define SHK_HINT 160
const char *shk_hint(char buf[SHK_HINT], const char *word, const char *const *names, size_t count);

/* Writes rows as a C table `static const TYPE SYMBOL[]`. Emits nothing for zero rows. */
void shk_schema_emit(struct shk_strbuf *out, const struct shk_record *record, const void *rows,
                     size_t count, const char *symbol);

/* Writes the record's keys as a markdown table, nested records after it. */
void shk_schema_markdown(struct shk_strbuf *out, const struct shk_record *record);

/* The records, in settings.c, profiles.c, diagnoses.c, conflicts.c, diff.c, signatures.c,
 * rules.c, terms.c, variables.c, uses.c, fixes.c, calls.c, codes.c, defects.c and parts.c. */
extern const struct shk_record shk_record_setting, shk_record_profile, shk_record_diagnosis,
    shk_record_conflict, shk_record_diff, shk_record_signature, shk_record_rule, shk_record_name,
    shk_record_term, shk_record_use, shk_record_launcher, shk_record_fix, shk_record_waitcall,
    shk_record_code, shk_record_defect, shk_record_errno, shk_record_object;

/* Shorthands for the tables. */
#define SHK_COUNT(array)      (sizeof(array) / sizeof((array)[0]))
#define SHK_AT(type, name)    .member = #name, .offset = offsetof(type, name)
#define SHK_EXTRA(type, name) .extra_member = #name, .extra_offset = offsetof(type, name)
#define SHK_NAMES(array)      .names = (array), .names_count = SHK_COUNT(array)
#define SHK_FIELDS(array)     .fields = (array), .fields_count = SHK_COUNT(array)

#endif
