#include "config/codes.h"
#include "config/load/load.h"
#include "config/schema/schema.h"
#include "config/schema/valid.h"

#include <string.h>

static const char *const code_kinds[] = {[SHK_CODE_XID] = "xid", [SHK_CODE_SXID] = "sxid"};

static const char *const code_actions[] = {
    [SHK_ACTION_NONE] = "none",
    [SHK_ACTION_OTHER] = "other",
    [SHK_ACTION_SUPPORT] = "support",
    [SHK_ACTION_APP] = "restart-app",
    [SHK_ACTION_UPDATE] = "update",
    [SHK_ACTION_INSPECT] = "inspect",
    [SHK_ACTION_RESET] = "reset",
    [SHK_ACTION_RESTART_VM] = "restart-vm",
    [SHK_ACTION_RESTART_NODE] = "restart-node",
    [SHK_ACTION_REPLACE] = "replace",
};

static const struct shk_field code_fields[] = {
    {.key = "key",
     SHK_AT(struct shk_code, key),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .check = shk_valid_key,
     .doc = "names the row"},
    {.key = "kind",
     SHK_AT(struct shk_code, kind),
     .kind = SHK_FIELD_ENUM,
     SHK_NAMES(code_kinds),
     .required = true,
     .doc = "`xid`: of an NVIDIA GPU; `sxid`: of an NVSwitch"},
    {.key = "numbers",
     SHK_AT(struct shk_code, numbers),
     .kind = SHK_FIELD_TEXTS,
     .required = true,
     .doc = "the numbers"},
    {.key = "means",
     SHK_AT(struct shk_code, means),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .doc = "what it is, in words"},
    {.key = "action",
     SHK_AT(struct shk_code, action),
     .kind = SHK_FIELD_ENUM,
     SHK_NAMES(code_actions),
     .required = true,
     .doc = "immediate action according to the vendor: `none`; `other`: that of the error it comes "
            "with; `support`: contact the vendor; `restart-app`: the program; `update`: driver or "
            "firmware; `inspect`: power, slot, cable; `reset`: the GPU; `restart-vm`; "
            "`restart-node`; `replace`: the part"},
    {.key = "source",
     SHK_AT(struct shk_code, source),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .doc = "where the vendor documents it"},
};

const struct shk_record shk_record_code = {
    .what = "code",
    .type = "struct shk_code",
    .size = sizeof(struct shk_code),
    SHK_FIELDS(code_fields),
    .name_offset = offsetof(struct shk_code, key),
    .place_offset = offsetof(struct shk_code, place),
};

const char *shk_code_action_text(enum shk_code_action action)
{
    static const char *const texts[] = {
        [SHK_ACTION_NONE] = "nothing to be done",
        [SHK_ACTION_OTHER] = "as the error that it goes with",
        [SHK_ACTION_SUPPORT] = "ask the vendor if it comes again",
        [SHK_ACTION_APP] = "restart the program",
        [SHK_ACTION_UPDATE] = "update driver or firmware",
        [SHK_ACTION_INSPECT] = "inspect power and seat of the GPU",
        [SHK_ACTION_RESET] = "reset the GPU",
        [SHK_ACTION_RESTART_VM] = "restart the virtual machine",
        [SHK_ACTION_RESTART_NODE] = "restart the node",
        [SHK_ACTION_REPLACE] = "replace the part",
    };
    return texts[action];
}
