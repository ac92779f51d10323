/* Exit codes: official interface, see the manual. */
#ifndef SHK_CLI_EXIT_CODE_H
#define SHK_CLI_EXIT_CODE_H

enum shk_exit {
    SHK_EXIT_OK = 0,       /* nothing failed */
    SHK_EXIT_FAIL = 1,     /* at least one FAIL (or WARN with --fail-on warn) */
    SHK_EXIT_USAGE = 2,    /* usage or configuration error, unusable input */
    SHK_EXIT_UNKNOWN = 3,  /* no FAIL, but what the command line names could not be tested; with
                              --fail-on unknown also any other required check that is UNKNOWN */
    SHK_EXIT_INTERNAL = 4, /* internal error, or output could not be written */
    SHK_EXIT_SIGNAL = 128, /* and the signal's number: ended early, what was known was reported */
};

#endif
