/* Old totals and old lines of the kernel's log: a note, never more. */
#include "support.h"

#include <criterion/criterion.h>

#define TOTALS "network error totals"
#define LOG    "kernel log since boot"
#define ALSO   "'probe.history.status': 'ok', "
#define DOC(errors, unread)                                                                        \
    ALSO "'counters.totals': {'read': ['mlx5_0/1'], 'errors': {" errors "}, 'unread': {" unread "}}"
#define EVENTS(list) ALSO "'kernel.log.events': [" list "]"

static const struct support_case cases[] = {
    {"none", "single-node", "device.history", TOTALS, DOC("", ""), SHK_PASS, SHK_EFFECT, "none"},
    {"some", "single-node", "device.history", TOTALS,
     DOC("'mlx5_0/1': {'symbol_error': 12, 'link_downed': 2}", ""), SHK_NOTE, SHK_EFFECT,
     "mlx5_0/1: symbol_error 12; mlx5_0/1: link_downed 2"},
    {"unread", "single-node", "device.history", TOTALS, DOC("", "'mlx5_0/1': 'gone'"), SHK_UNKNOWN,
     SHK_NOT_COVERED, "mlx5_0/1: gone"},
    {"no device", "single-node", "device.history", TOTALS,
     ALSO "'counters.totals': {'state': 'absent', 'source': 'x', 'reason': 'y'}", SHK_NA,
     SHK_NOT_COVERED, "no RDMA or Slingshot device"},
    {"failed", "single-node", "device.history", TOTALS,
     ALSO "'counters.totals': {'state': 'failed', 'source': 'x', 'reason': 'gone'}", SHK_UNKNOWN,
     SHK_NOT_COVERED, "gone"},
    {"no errors member", "single-node", "device.history", TOTALS,
     ALSO "'counters.totals': {'read': ['mlx5_0/1'], 'unread': {}}", SHK_UNKNOWN, SHK_NOT_COVERED,
     "errors"},
    {"quiet log", "single-node", "device.history", LOG, EVENTS(""), SHK_PASS, SHK_LOG, "no Xid"},
    {"flaps", "single-node", "device.history", LOG,
     EVENTS("{'scope': '0000:9b:00.0', 'class': 'network', 'counter': 'link down', 'count': 3, "
            "'first_s': 40, 'last_s': 7200, 'line': 'x'}"),
     SHK_NOTE, SHK_LOG, "0000:9b:00.0: link down 3 times, 40 to 7200 s after boot"},
    {"Xid", "single-node", "device.history", LOG,
     EVENTS("{'scope': '0000:41:00.0', 'class': 'gpu', 'counter': 'Xid 79', 'count': 1, 'first_s': "
            "40, 'last_s': 40, 'line': 'x'}"),
     SHK_NOTE, SHK_LOG,
     "0000:41:00.0: Xid 79 40 s after boot (the GPU has fallen off the bus; NVIDIA: restart the "
     "node)"},
    {"log unread", "single-node", "device.history", LOG,
     ALSO "'kernel.log.events': {'state': 'failed', 'source': 'x', 'reason': 'only root'}",
     SHK_UNKNOWN, SHK_NOT_COVERED, "only root"},
};

Test(history, cases)
{
    support_cases(cases, sizeof cases / sizeof *cases);
}
