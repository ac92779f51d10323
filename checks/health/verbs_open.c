/* RDMA devices that are listed and cannot be opened. */
#include "checks/base/coded.h"
#include "checks/base/remedy.h"
#include "checks/base/tally.h"

#include <errno.h>
#include <string.h>

static const char key[] = "verbs.devices";

static void eval(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_verbs_open, "opening RDMA devices");
    struct shk_tally tally = SHK_TALLY_INIT;
    json_t *list = NULL, *item;
    long long code = 0;
    size_t i;
    row.fact = key;
    row.source = "linux-rdma/rdma-core:libibverbs/device.c, ibv_open_device";
    enum shk_look look = shk_read_objects(&row, key, &list);
    if (look == SHK_LOOK_ABSENT || (look == SHK_LOOK_PRESENT && !json_array_size(list))) {
        shk_row_na(findings, &row, "libibverbs lists no device");
        return;
    }
    json_array_foreach(list, i, item)
    {
        bool opens = false;
        const char *name = shk_member_name(item, "name"), *error = shk_member_words(item, "error");
        if (shk_look_member_bool(item, "opens", &opens) != SHK_LOOK_PRESENT)
            shk_tally_unread(&tally, "%s", name);
        else if (opens)
            shk_tally_good(&tally);
        else
            shk_tally_bad(&tally, "%s%s%s", name, error ? ": " : "", error ? error : "");
        if (!opens && shk_look_member_int(item, "errno", &code) != SHK_LOOK_PRESENT && error)
            code = strstr(error, strerror(EACCES))  ? EACCES
                   : strstr(error, strerror(EPERM)) ? EPERM
                                                    : code;
    }
    (void)shk_tally_judge(&tally, &row, SHK_WARN, SHK_TESTED, key, "devices");
    if (tally.bad) {
        bool some = tally.good && shk_container(ctx->facts);
        bool denied = code == EACCES || code == EPERM;
        row.diagnosis = denied && some ? "rdma-device-partially-exposed"
                        : denied       ? "rdma-device-no-permission"
                                       : "nic-driver-failed";
        shk_row_text(&row.observed, "%s", shk_strbuf_text(&tally.bad_names));
        shk_row_text(&row.expected, "every listed device opens");
        shk_row_text(&row.why, "libraries see the device and leave it out, or fail on it");
        shk_row_fix(&row, "list-infiniband", NULL);
    } else if (tally.good) {
        shk_row_text(&row.observed, "%u open", tally.good);
    }
    shk_row_end(findings, &row);
    shk_tally_free(&tally);
}

const struct shk_check shk_check_verbs_open = {
    .id = "nic.opens",
    .family = "devices",
    .title = "RDMA devices that libibverbs lists can be opened",
    .eval = eval,
    .doc = "Facts: verbs.devices, host.container.\n"
           "A device that ibv_open_device() refuses is WARN; n/a when libibverbs lists none. The "
           "number "
           "or text of the error tells permission from other reasons.",
};
