/* Numbers of errors that a driver logs, and what its vendor says is to be done (config/codes). */
#ifndef SHK_CONFIG_CODES_H
#define SHK_CONFIG_CODES_H

#include "config/config.h"

enum shk_code_kind {
    SHK_CODE_XID, /* of NVIDIA GPUs */
    SHK_CODE_SXID /* of NVSwitches */
};

/* From nothing to the most, as far as they can be compared. */
enum shk_code_action {
    SHK_ACTION_NONE,         /* the vendor says: ignore */
    SHK_ACTION_OTHER,        /* goes with another error, which decides */
    SHK_ACTION_SUPPORT,      /* ask the vendor; nothing helps by itself */
    SHK_ACTION_APP,          /* restart the program */
    SHK_ACTION_UPDATE,       /* driver or firmware */
    SHK_ACTION_INSPECT,      /* power, slot, cable */
    SHK_ACTION_RESET,        /* the GPU */
    SHK_ACTION_RESTART_VM,   /* the virtual machine */
    SHK_ACTION_RESTART_NODE, /* the node */
    SHK_ACTION_REPLACE       /* the part */
};

struct shk_code {
    const char *key, *means; /* in words, as they follow "Xid 79: " */
    enum shk_code_kind kind;
    enum shk_code_action action;
    const char *const *numbers;
    const char *source;
    const char *place;
};

const struct shk_code *shk_config_codes(const struct shk_config *config, size_t *count_p);

/* The row of a counter of the kernel log ("Xid 79", "SXid 20001"); NULL: none. */
const struct shk_code *shk_config_code(const struct shk_config *config, const char *counter);

/* "restart the node", as it follows "NVIDIA: ". */
const char *shk_code_action_text(enum shk_code_action action);

#endif
