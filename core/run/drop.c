#include "core/run/drop.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { DROP_USER = 65534 };

static int drop_limit(int resource, rlim_t most, struct shk_error *err)
{
    struct rlimit limit = {most, most};
    return setrlimit((__rlimit_resource_t)resource, &limit) ? shk_error_sys(err, errno, "setrlimit")
                                                            : 0;
}

int shk_drop_rights(unsigned seconds, struct shk_error *err)
{
    pid_t parent = getppid();
    if (geteuid() == 0 && (setgroups(0, NULL) || setresgid(DROP_USER, DROP_USER, DROP_USER) ||
                           setresuid(DROP_USER, DROP_USER, DROP_USER)))
        return shk_error_sys(err, errno, "giving up root's rights");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return shk_error_sys(err, errno, "PR_SET_NO_NEW_PRIVS");
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* another user: the kernel has forgotten it */
    if (getppid() != parent)
        return shk_error_set(err, ESRCH, "the parent is gone");
    int rc = drop_limit(RLIMIT_NOFILE, 0, err);
    rc = rc ? rc : drop_limit(RLIMIT_NPROC, 0, err);
    rc = rc ? rc : drop_limit(RLIMIT_FSIZE, 0, err);
    return rc ? rc : drop_limit(RLIMIT_CPU, seconds, err);
}

void shk_drop_admin(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
    if (syscall(SYS_capget, &head, data))
        return;
    data[CAP_TO_INDEX(CAP_SYS_ADMIN)].effective &= ~CAP_TO_MASK(CAP_SYS_ADMIN);
    data[CAP_TO_INDEX(CAP_SYS_ADMIN)].permitted &= ~CAP_TO_MASK(CAP_SYS_ADMIN);
    (void)syscall(SYS_capset, &head, data);
}
