#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/session/session.h"
#include "collectives/meet/hosts.h"

#include <errno.h>

int shk_session_over_ssh(const struct shk_session *session)
{
    const struct shk_options *o = session->options;
    struct shk_error err = {""};
    int code = SHK_EXIT_FAIL;
    int rc = shk_hosts_run(o->hosts, (unsigned)o->timeout_s * 1000u / 3, &code, &err);
    if (!rc)
        return code;
    shk_say("%s", err.text);
    return rc == -EHOSTUNREACH ? SHK_EXIT_FAIL : SHK_EXIT_USAGE;
}
