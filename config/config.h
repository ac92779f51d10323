/* The catalogue: settings, profiles, diagnoses, conflicts, log signatures and rules from YAML.
 *
 * Sources, later ones overlay earlier ones row by row (same name or key replaces the whole row):
 *   1. embedded in the binary
 * (config/{settings,profiles,diagnoses,conflicts,diff,signatures,rules,names,fixes,calls,defects}/
 * *.yaml)
 *   2. /etc/shakedown/{settings,profiles,…}/ *.yaml
 *   3. DIR of --config, same sub-folders
 * Every schema error is one line: FILE:LINE: key: what is wrong (and "did you mean …?"). */
#ifndef SHK_CONFIG_CONFIG_H
#define SHK_CONFIG_CONFIG_H

#include "core/facts/factdiff.h"
#include "core/text/error.h"
#include "core/text/nameset.h"
#include <stdbool.h>
#include <stddef.h>

/* Which library reads a setting, and in which of its versions. */
struct shk_reader {
    const char *library; /* nccl rccl hsa hip miopen ofi-plugin libfabric efa cxi libcxi
                            rdma-core nvshmem neuron kernel cuda torch openmp mpi ucx slurm
                            container shell */
    const char *since;   /* first version that reads it; NULL = as far back as known */
    const char *until;   /* last version that reads it; NULL = still read */
    const char *file;    /* where in the library's source */
};

enum shk_value_type {
    SHK_VALUE_STRING,     /* anything */
    SHK_VALUE_BOOL,       /* libfabric's: 0/1, on/off, true/false, yes/no */
    SHK_VALUE_FLAG,       /* presence matters, value ignored */
    SHK_VALUE_INT,        /* integer; how it is parsed: int_base */
    SHK_VALUE_SIZE,       /* bytes with k/m/g suffix, as NVSHMEM and shells understand */
    SHK_VALUE_ENUM,       /* one of values */
    SHK_VALUE_LIST,       /* separator-separated; each item one of values (when given) */
    SHK_VALUE_INTERFACES, /* NCCL style: ^ or = prefix, comma list of interface name prefixes */
    SHK_VALUE_HCAS,       /* NCCL style: ^ or = prefix, comma list of device[:port] */
    SHK_VALUE_PATH,       /* file or directory; must_exist says whether that is checked */
    SHK_VALUE_PATHS,      /* colon-separated directories */
    SHK_VALUE_HOST_PORT,  /* host:port */
    SHK_VALUE_DEVICES,    /* comma list of indices, ranges or UUIDs: *_VISIBLE_DEVICES */
    SHK_VALUE_COUNT
};

enum shk_int_parser {
    SHK_INT_STRTOL0, /* strtol base 0, rest ignored: "16k" is silently 16, a word 0 (libfabric
                        src/var.c) */
    SHK_INT_NCCL,    /* strtoll base 0, rest ignored as well; only out of range is an error, and
                        the default is used (NCCL src/misc/param.cc) */
    SHK_INT_DECIMAL  /* plain decimal */
};

struct shk_grammar {
    enum shk_value_type type;
    bool ignore_case;
    bool negation;   /* a leading '^' is allowed */
    bool empty;      /* an empty value is as good as none */
    bool must_exist; /* PATH, PATHS */
    bool directory;  /* PATH must be a directory */
    bool has_min, has_max;
    long long min, max;
    enum shk_int_parser int_parser;
    char separator;            /* LIST; ',' when not given */
    const char *const *values; /* ENUM, LIST: what is allowed; INT, SIZE: words allowed besides
                                  numbers; NULL-terminated, NULL when not given */
    const char *const *wrong;  /* values that look right and are not, e.g. "1" for FI_HMEM;
                                  NULL-terminated, NULL when not given */
};

enum shk_setting_kind {
    SHK_SETTING_CURRENT,    /* read by at least one current library */
    SHK_SETTING_DEPRECATED, /* still read, replaced_by is the current name */
    SHK_SETTING_RETIRED,    /* was read by old versions only */
    SHK_SETTING_FOLKLORE    /* no library ever read it (or only as a typing error in guides) */
};

enum shk_misread {
    SHK_MISREAD_LITERAL, /* it makes of it what its parser makes of it: "16k" is 16 */
    SHK_MISREAD_DEFAULT, /* the default stays */
    SHK_MISREAD_ENDS     /* the library ends the process */
};

/* Of a wrong or missing value. */
enum shk_severity {
    SHK_SEV_NONE,
    SHK_SEV_NOISE,
    SHK_SEV_PERF_MINOR,
    SHK_SEV_PERF_MAJOR,
    SHK_SEV_HANG,
    SHK_SEV_CORRUPT,
    SHK_SEV_FATAL
};

/* Values whose rules no grammar can say: who judges them. */
enum shk_value_rule {
    SHK_RULE_NONE,
    SHK_RULE_NETWORK,      /* name of a network that the collective library offers */
    SHK_RULE_PROVIDERS,    /* a list of libfabric providers, or all but some */
    SHK_RULE_ALGORITHMS,   /* the collective library's algorithms, per function */
    SHK_RULE_PROTOCOLS,    /* its protocols, likewise */
    SHK_RULE_PER_RANK,     /* a file that every rank must have for itself */
    SHK_RULE_SHORT_HOST,   /* host:port whose host part the library cuts */
    SHK_RULE_CXI_DEVICES,  /* names of CXI devices */
    SHK_RULE_RDMA_DEVICES, /* names of RDMA devices, or "all" */
    SHK_RULE_MR_MONITOR,   /* how libfabric notices that memory was freed */
    SHK_RULE_INTERFACES,   /* a list of network interfaces */
    SHK_RULE_COUNT
};

/* Whose GPUs a list of visible devices numbers. */
enum shk_mask {
    SHK_MASK_NONE,
    SHK_MASK_NVIDIA,
    SHK_MASK_AMD_FIRST, /* applied first: the others number what it leaves */
    SHK_MASK_AMD,
    SHK_MASK_AMD_OLD, /* a name of old drivers, still read */
    SHK_MASK_COUNT
};

struct shk_setting {
    const char *name;   /* variable, kernel parameter or limit */
    const char *family; /* matrix group: nccl rccl hsa hip miopen ofi-plugin libfabric efa cxi
                           nvshmem neuron kernel limits launcher container framework */
    enum shk_setting_kind kind;
    bool variable; /* false: kernel parameter or limit, checked by code */
    const struct shk_reader *readers;
    size_t readers_count;
    struct shk_grammar grammar;
    const char *default_value;
    enum shk_misread misread; /* what becomes of a value that the library cannot use */
    const char *const *moot;  /* values that ask for what is so anyway where nothing reads the name:
                                 harmless; "*": any; NULL-terminated, NULL = none */
    const char *effect;       /* what it does, one sentence */
    const char *cost;         /* what it costs when set in production; NULL = nothing */
    bool production_warning;  /* for a validation run, not for production (debug logging) */
    const char *const *costly; /* the values of production_warning that cost performance, the others
                                  only lines at the start; NULL-terminated, NULL = by severity */
    enum shk_severity severity;
    const char *if_wrong;
    const char *replaced_by; /* the real control; NULL */
    const char *diagnosis;   /* key when the value is wrong; NULL */
    const char *missed;      /* key when what a profile wants of it is not so; NULL */
    enum shk_value_rule rule;
    enum shk_mask mask;
    const char *node_local; /* PATH: what goes wrong on a shared file system; NULL = may be there */
    bool audited;           /* has a row even when nobody set it and no profile asks for it */
    const char *fix;        /* one line for a shell; NULL */
    const char *advice;     /* in words; NULL */
    const char *source;
    const char *place; /* FILE:LINE of the row, for messages */
};

enum shk_strength { SHK_OPTIONAL, SHK_RECOMMENDED, SHK_REQUIRED };

/* One line of a profile. */
struct shk_profile_setting {
    const char *name;
    const char *const *accepted; /* NULL-terminated, first one is preferred; NULL: any value */
    bool must_be_unset;
    enum shk_strength strength;
    const char *other; /* verdict of a value that is not accepted ("note", "warn", "fail"), or of
                          one that must not be there; NULL: by strength, note when optional */
    bool foreign;      /* of the fabric maker's list, and the site's own guide does not have it:
                          worth a note and no more */
    const char *condition; /* "nodes>1", "container", "gpu=amd", "plugin<1.15"; NULL = always. One
                              setting may have several lines with different conditions */
    const char *why;
    const char *source;
};

/* Signals of a profile: "fact key", optional pattern; each hit adds weight. */
struct shk_profile_signal {
    const char *fact;    /* fact key, or prefix ending in '.' (any present fact) */
    const char *matches; /* regular expression on the value; NULL: present is enough */
    int weight;          /* default 1 */
};

/* Hardware by which a node is of the profile's kind, beside GPUs and NICs: held against the node
 * when the profile is named. */
struct shk_profile_need {
    const char *fact;
    const char *matches; /* regular expression on the value, of a list on its JSON */
    const char *what;    /* in words: "InfiniBand ports" */
};

/* What good nodes have: a version, a name, a number as text. */
struct shk_profile_fact {
    const char *fact;
    const char *const *accepted; /* NULL-terminated, at least one */
    const char *other;           /* verdict of another value ("note", "warn", "fail"); NULL: warn */
    const char *why;
    const char *source;
};

/* What good nodes reach; exactly one bound is given, a number as text. */
struct shk_profile_floor {
    const char *metric;   /* "busbw.TRANSPORT" (GB/s), "latency.TRANSPORT" (us) */
    const char *at_least; /* NULL */
    const char *at_most;  /* NULL */
    const char *why;
    const char *source;
};

struct shk_profile {
    const char *name;
    const char *title;
    const char *extends; /* resolved at load: settings and expectations of the base come first, own
                            rows replace those of the same name */
    bool abstract;       /* base only, never detected nor listed for --profile */
    bool of_maker;       /* the settings are the list of the fabric's maker, not of a site */
    const char *const *follows; /* settings of such a base that this site's own guide has, too; "*":
                                   all; NULL-terminated, NULL = none */
    const struct shk_profile_signal *signals;
    size_t signals_count;
    const struct shk_profile_need *needs;
    size_t needs_count;
    const struct shk_profile_setting *settings;
    size_t settings_count;
    const struct shk_profile_fact *facts;
    size_t facts_count;
    const struct shk_profile_floor *floors;
    size_t floors_count;
    const char *const *providers; /* libfabric providers that must be there; NULL-terminated, NULL
                                     when there is none */
    const char *plugin;           /* "required", "recommended", "none" (also when not given) */
    const char *gpu;              /* "nvidia", "amd", "neuron", "none", "any" (or not given) */
    int nics;                     /* at least, per node; 0 = do not check */
    int gpus;                     /* accelerators on the bus of a node; 0 = do not check */
    const char *source;
    const char *place;
};

struct shk_diagnosis {
    const char *key;
    const char *title;
    const char *explanation;     /* for a user, two or three sentences */
    const char *shows;           /* how it shows */
    const char *like;            /* what messages say of it, phrases between commas; NULL */
    const char *confirm;         /* command or observation that confirms it */
    const char *fix;             /* one line for a shell; NULL */
    const char *advice;          /* in words; NULL */
    const char *who;             /* "user", "admin", "user, admin" */
    const char *const *explains; /* keys that are mere effects of this cause; NULL-terminated, NULL
                                    when there is none */
    const char *const *only_on;  /* fabrics, GPUs or surroundings; NULL: anywhere */
    const char *scope;           /* whose fault: "node", "launch"; NULL: node */
    const char *const
        *confirmed;             /* conditions on facts that show it; NULL-terminated, NULL: none */
    const char *const *refuted; /* conditions that hold only where it cannot be; as above */
    bool benign;                /* the lines look like errors but are not */
    bool symptom;               /* generic consequence: never outranks a cause */
    const char *source;
    const char *place;
};

/* One term of `when:`, of a conflict or a rule: what it looks at, and what must be so there
 * (checks/when/term.h decides). */
struct shk_term {
    const char *log, *no_log; /* signature seen, not seen */
    const char *setting, *fact;
    const char *differs;       /* a fact, between nodes */
    const char *member;        /* of fact or differs: path in its value, through arrays */
    const char *capture;       /* of log */
    const char *const *is;     /* one of these; NULL-terminated */
    const char *const *is_not; /* there, and none of these; NULL-terminated */
    const char *matches;       /* regular expressions */
    const char *matches_not;   /* there, and does not match */
    const char *lacks;         /* not there, or does not match */
    const char *differs_from;  /* a setting: both are set, to different values */
    const char *in, *not_in;   /* a fact whose members have the names, or lack one of them */
    const char *in_member;     /* of in and not_in */
    const char *same_as;       /* a setting that holds the captured name */
    int lines;                 /* of log: at least so many of them; 0: one */
    int at_most;               /* of log: no more than so many; 0: any */
    const char *fewer_than;    /* of log: fewer than the number of this fact; NULL: any */
    bool set, unset;           /* of setting */
    bool present, absent;      /* of fact */
    bool every;                /* of member: not one element, all of them */
};

/* Settings that do not go together: all terms hold at once. */
struct shk_conflict {
    const char *name;
    const struct shk_term *when;
    size_t when_count;
    const char *condition; /* as in a profile line: on what nodes it is a conflict; NULL = all */
    const char *verdict;   /* "note", "warn" or "fail" */
    const char *why;
    const char *fix;       /* one line for a shell; NULL */
    const char *advice;    /* in words; NULL */
    const char *diagnosis; /* NULL */
    const char *source;
    const char *place;
};

enum shk_log_role {
    SHK_LOG_CAUSE,   /* speaks for a diagnosis */
    SHK_LOG_SYMPTOM, /* general consequence: never outranks a cause */
    SHK_LOG_CONTEXT, /* only rules look at it */
    SHK_LOG_PROOF,   /* shows what a setting did */
    SHK_LOG_BENIGN,  /* looks like an error and is none */
    SHK_LOG_WORDS,   /* only says that a line looks like an error */
    SHK_LOG_DOUBT,   /* only says that a line may tell of trouble */
    SHK_LOG_NAMES,   /* only names what is there: a device, a container */
    SHK_LOG_GUESS    /* a symptom, of a line that nothing else decides */
};
extern const char *const shk_log_role_names[];

/* A line that a library prints. */
struct shk_signature {
    const char *id;
    const char *library;
    const char *pattern;       /* part of one line (core/regex/regex.h); NULL: after and texts */
    const char *after;         /* what stands before the texts */
    const char *texts;         /* one message per line, core/text/messages.h */
    const char *object;        /* in place of these: the line names this object, */
    const char *const *errors; /* and one of these errors (core/text/errnos.h) */
    bool yields;               /* to an object that is named in the same line */
    const char *meaning;
    enum shk_log_role role;
    const char *diagnosis;        /* NULL: none */
    const char *const *also;      /* other causes, likelier first; NULL */
    int weight;                   /* 1 to 100: how surely it means the diagnosis */
    const char *const *proves;    /* settings seen in effect; NULL */
    const char *const *refutes;   /* settings seen without effect; NULL */
    const char *const *excludes;  /* causes that it speaks against; NULL */
    const char *capture;          /* PCRE2 with named groups on the line; NULL */
    const char *differs;          /* cause when captured values are not all the same; NULL */
    const char *const *elsewhere; /* lines that the other nodes print instead; NULL */
    const char *const *ended_by;  /* lines that say later that it is over; NULL */
    const char *behind;     /* cause when one process has a lower count than the others; NULL */
    const char *more;       /* what gives more detail of the same kind; NULL */
    const char *version_of; /* library whose release the group version is (config/defects.h);
                               NULL */
    const char *reads;      /* the variable that the line says was read; NULL: it says of none */
    const char *const *prefixes; /* with reads: how such variables begin */
    const char *source;
    const char *place;
};

/* A thing that lines name: a device node, a library, a port, a function (config/objects). */
struct shk_object {
    const char *key;
    const char *pattern; /* core/regex/regex.h */
    const char *is;      /* in words */
    bool general;        /* of many kinds: a signature that yields to objects does not to this */
    const char *source;
    const char *place;
};

/* Evidence that no single line gives: lines, settings and facts together speak for or against a
 * cause. */
struct shk_rule {
    const char *name;
    const struct shk_term *when;
    size_t when_count;
    const char *condition; /* NULL = everywhere */
    bool stated;           /* not of a probe's facts */
    const char *diagnosis;
    int weight; /* below zero: against */
    const char *why;
    const char *source;
    const char *place;
};

/* What is made of a variable that begins so and is not in the catalogue. */
enum shk_name_unknown {
    SHK_NAME_IGNORED, /* nothing, unless it is all but equal to a known name */
    SHK_NAME_FOREIGN, /* it belongs to programs that are not judged */
    SHK_NAME_LOOSE,   /* its libraries are asked; other programs use the prefix, too */
    SHK_NAME_STRICT   /* its libraries are asked: every variable of the prefix is meant for them */
};

/* A variable, or the beginning of variables' names. */
struct shk_name {
    const char *name;
    bool prefix;
    bool wraps;    /* a prefix whose rest is a variable's name, and counts as that */
    bool captured; /* written down from the environment */
    const char *family;
    const char *const *near;      /* as in core/text/nameset.h; NULL-terminated, NULL = none */
    const char *const *libraries; /* asked about an unknown name; NULL-terminated, NULL = none */
    enum shk_name_unknown unknown;
    const char *place;
};

/* What the checks say to do about what they find, see checks/base/remedy.h. */
struct shk_fix {
    const char *key;
    const char *fix, *advice; /* one of them may be NULL */
    const char *place;
};

/* What it means that a thread is in one of the functions (shakedown hang). */
enum shk_wait_kind {
    SHK_WAIT_COLLECTIVE, /* waits for all ranks */
    SHK_WAIT_POINT,      /* for one */
    SHK_WAIT_REQUEST,    /* for what was begun before */
    SHK_WAIT_GPU,
    SHK_WAIT_SERVICE /* a library's own thread */
};

struct shk_waitcall {
    const char *key, *title;
    enum shk_wait_kind kind;
    const char *const *symbols;   /* as the linker has them; '*': any characters */
    const char *const *libraries; /* beginnings of file names; NULL */
    const char *place;
};

struct shk_config;

/* config_dir may be NULL. etc_dir is "/etc/shakedown" for the live tool, NULL to skip; it need not
 * exist, config_dir must, with at least one of the sub-folders. -EINVAL: what a file says is wrong;
 * other negative errno: a file or folder cannot be read; *config_p is then untouched. */
int shk_config_load(struct shk_config **config_p, const char *etc_dir, const char *config_dir,
                    struct shk_error *err) SHK_MUST_CHECK;
void shk_config_free(struct shk_config *config);

/* Hands the uses of variables and the launchers to core/text/uses.h and core/job/launch.h, borrowed
 * until the next call; NULL: the built-in ones. The main program does so before anything else, and
 * again when it has loaded a catalogue and before it frees that. */
void shk_config_install(const struct shk_config *config);

/* All rows in catalogue order; everything is owned by config. */
const struct shk_setting *shk_config_settings(const struct shk_config *config, size_t *count_p);
const struct shk_profile *shk_config_profiles(const struct shk_config *config, size_t *count_p);
const struct shk_diagnosis *shk_config_diagnoses(const struct shk_config *config, size_t *count_p);
const struct shk_conflict *shk_config_conflicts(const struct shk_config *config, size_t *count_p);
/* What `shakedown diff` sets aside (core/facts/factdiff.h). */
const struct shk_diff_rule *shk_config_diff(const struct shk_config *config, size_t *count_p);
const struct shk_signature *shk_config_signatures(const struct shk_config *config, size_t *count_p);
const struct shk_rule *shk_config_rules(const struct shk_config *config, size_t *count_p);
const struct shk_object *shk_config_object(const struct shk_config *config, const char *key);

const struct shk_fix *shk_config_fixes(const struct shk_config *config, size_t *count_p);
const struct shk_name *shk_config_names(const struct shk_config *config, size_t *count_p);
const struct shk_waitcall *shk_config_calls(const struct shk_config *config, size_t *count_p);

/* What a probe of the environment writes down: the names above, every variable of the settings,
 * and those that signals of profiles and rules ask for as facts. New in *set_p
 * (shk_name_set_destroy()), borrows from config. 0 or -ENOMEM. */
int shk_config_name_set(const struct shk_config *config,
                        struct shk_name_set **set_p) SHK_MUST_CHECK;

/* Was the variable looked for by who wrote facts that do not say what was looked for? True for what
 * the built-in catalogue names, false for what only files of this site do. */
bool shk_config_name_is_builtin(const struct shk_config *config, const char *name);

/* NULL when there is none. Exact names. */
const struct shk_setting *shk_config_setting(const struct shk_config *config, const char *name);
const struct shk_profile *shk_config_profile(const struct shk_config *config, const char *name);
const struct shk_diagnosis *shk_config_diagnosis(const struct shk_config *config, const char *key);
const struct shk_fix *shk_config_fix(const struct shk_config *config, const char *key);

/* As shk_config_load(), with the YAML text in memory as the only overlay. `folder` says what is in
 * it ("settings", "profiles", "diagnoses", "conflicts", "diff", "signatures", "rules", "names" or
 * "fixes"), `name` stands for the file in messages.
 */
int shk_config_load_buffer(struct shk_config **config_p, const char *folder, const char *name,
                           const void *data, size_t size, struct shk_error *err) SHK_MUST_CHECK;

/* Loads one profile file (for --profile FILE) on top of config. It may extend any profile and
 * replaces the one of the same name; pointers to rows that were handed out before stay valid and
 * unchanged. On failure config is as before. */
int shk_config_load_profile(struct shk_config *config, const char *path,
                            const struct shk_profile **profile_p,
                            struct shk_error *err) SHK_MUST_CHECK;

/* The words that YAML uses; "unknown" for a value out of range. */
const char *shk_severity_name(enum shk_severity severity);
const char *shk_strength_name(enum shk_strength strength);
/* The same of a line, or "in the list of the fabric's maker" when that is all. */
const char *shk_line_strength(const struct shk_profile_setting *line);
const char *shk_value_type_name(enum shk_value_type type);
const char *shk_setting_kind_name(enum shk_setting_kind kind);

#endif
