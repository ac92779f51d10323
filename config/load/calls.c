#include "config/config.h"
#include "config/schema/schema.h"
#include "config/schema/valid.h"

static const char *const waitcall_kinds[] = {
    [SHK_WAIT_COLLECTIVE] = "collective", [SHK_WAIT_POINT] = "point",
    [SHK_WAIT_REQUEST] = "request",       [SHK_WAIT_GPU] = "gpu",
    [SHK_WAIT_SERVICE] = "service",
};

static const struct shk_field waitcall_fields[] = {
    {.key = "key",
     SHK_AT(struct shk_waitcall, key),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .check = shk_valid_key,
     .doc = "names the row"},
    {.key = "title",
     SHK_AT(struct shk_waitcall, title),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .doc = "as it follows \"3 of 4 ranks wait in\"; of kind `gpu`: \"wait for\""},
    {.key = "kind",
     SHK_AT(struct shk_waitcall, kind),
     .kind = SHK_FIELD_ENUM,
     SHK_NAMES(waitcall_kinds),
     .required = true,
     .doc = "`collective`: all ranks take part; `point`: two do; `request`: waits for what was "
            "begun before; `gpu`: for the GPU; `service`: an internal thread of a library, which "
            "says nothing about the rank"},
    {.key = "symbols",
     SHK_AT(struct shk_waitcall, symbols),
     .kind = SHK_FIELD_TEXTS,
     .required = true,
     .doc = "names of functions as the linker sees them; `*` matches any characters"},
    {.key = "libraries",
     SHK_AT(struct shk_waitcall, libraries),
     .kind = SHK_FIELD_TEXTS,
     .doc = "beginnings of the file names of libraries with such functions: a process that has one "
            "loaded is a rank, not a launcher, and their versions are compared between ranks"},
};

const struct shk_record shk_record_waitcall = {
    .what = "call",
    .type = "struct shk_waitcall",
    .size = sizeof(struct shk_waitcall),
    SHK_FIELDS(waitcall_fields),
    .name_offset = offsetof(struct shk_waitcall, key),
    .place_offset = offsetof(struct shk_waitcall, place),
};
