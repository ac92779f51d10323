#include "core/host/eeprom.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/ethtool_netlink.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { EEPROM_MESSAGE = 512, EEPROM_ANSWER = 8192, EEPROM_WAIT_S = 2, EEPROM_FLAT = 1024 };

struct shk_eeprom {
    char iface[IFNAMSIZ];
    int genl, ioctl;
    unsigned family; /* of ethtool; 0: this kernel has none */
    unsigned seq;
    unsigned char *flat; /* all that the ioctl gives; NULL: not asked yet */
    uint32_t flat_len, flat_type;
};

struct message {
    union {
        struct nlmsghdr head;
        char bytes[EEPROM_MESSAGE];
    };
};

static void message_begin(struct message *m, unsigned type, unsigned seq, unsigned char command)
{
    struct genlmsghdr command_head = {.cmd = command, .version = 1};
    memset(m, 0, sizeof *m);
    m->head = (struct nlmsghdr){.nlmsg_len = NLMSG_LENGTH(sizeof command_head),
                                .nlmsg_type = (uint16_t)type,
                                .nlmsg_flags = NLM_F_REQUEST,
                                .nlmsg_seq = seq};
    memcpy(NLMSG_DATA(&m->head), &command_head, sizeof command_head);
}

/* Returns where the attribute starts, for nests. Attributes are small and few: all fit. */
static uint32_t message_put(struct message *m, unsigned type, const void *data, size_t len)
{
    uint32_t at = NLMSG_ALIGN(m->head.nlmsg_len);
    struct nlattr head = {.nla_len = (uint16_t)(NLA_HDRLEN + len), .nla_type = (uint16_t)type};
    memcpy(m->bytes + at, &head, sizeof head);
    if (len)
        memcpy(m->bytes + at + NLA_HDRLEN, data, len);
    m->head.nlmsg_len = at + NLA_ALIGN(head.nla_len);
    return at;
}

static void message_nest_end(struct message *m, uint32_t at)
{
    uint16_t len = (uint16_t)(m->head.nlmsg_len - at);
    memcpy(m->bytes + at, &len, sizeof len);
}

/* The data of that attribute in the answer; NULL: it is not there. */
static const char *answer_find(const char *answer, size_t len, unsigned type, size_t *size_p)
{
    size_t at = NLMSG_HDRLEN + NLMSG_ALIGN(sizeof(struct genlmsghdr));
    struct nlattr head;
    while (at + sizeof head <= len) {
        memcpy(&head, answer + at, sizeof head);
        if (head.nla_len < sizeof head || at + head.nla_len > len)
            return NULL;
        if ((head.nla_type & NLA_TYPE_MASK) == type) {
            *size_p = head.nla_len - sizeof head;
            return answer + at + NLA_HDRLEN;
        }
        at += NLA_ALIGN(head.nla_len);
    }
    return NULL;
}

/* Bytes of the answer, or a negative errno. */
static ssize_t genl_ask(struct shk_eeprom *e, struct message *m, char *answer)
{
    struct nlmsghdr head;
    struct nlmsgerr failed;
    if (send(e->genl, m->bytes, m->head.nlmsg_len, 0) < 0)
        return -errno;
    for (;;) {
        ssize_t got = recv(e->genl, answer, EEPROM_ANSWER, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < (ssize_t)sizeof head)
            return got < 0 ? -errno : -EIO;
        memcpy(&head, answer, sizeof head);
        if (head.nlmsg_seq != m->head.nlmsg_seq)
            continue;
        if (head.nlmsg_len > (size_t)got)
            return -EIO;
        if (head.nlmsg_type != NLMSG_ERROR)
            return (ssize_t)head.nlmsg_len;
        if (head.nlmsg_len < NLMSG_LENGTH(sizeof failed))
            return -EIO;
        memcpy(&failed, answer + NLMSG_HDRLEN, sizeof failed);
        return failed.error ? failed.error : -EIO;
    }
}

/* 0: this kernel has no such family, or none that we may ask. */
static unsigned genl_family(struct shk_eeprom *e)
{
    struct message m;
    char answer[EEPROM_ANSWER];
    uint16_t id = 0;
    size_t size = 0;
    message_begin(&m, GENL_ID_CTRL, ++e->seq, CTRL_CMD_GETFAMILY);
    message_put(&m, CTRL_ATTR_FAMILY_NAME, ETHTOOL_GENL_NAME, sizeof ETHTOOL_GENL_NAME);
    ssize_t got = genl_ask(e, &m, answer);
    const char *data =
        got > 0 ? answer_find(answer, (size_t)got, CTRL_ATTR_FAMILY_ID, &size) : NULL;
    if (data && size >= sizeof id)
        memcpy(&id, data, sizeof id);
    return id;
}

static int genl_read(struct shk_eeprom *e, unsigned i2c, unsigned page, unsigned offset,
                     unsigned len, unsigned char *bytes)
{
    struct message m;
    char answer[EEPROM_ANSWER];
    uint32_t from = offset, count = len;
    unsigned char address = (unsigned char)i2c, number = (unsigned char)page, bank = 0;
    size_t size = 0;
    message_begin(&m, e->family, ++e->seq, ETHTOOL_MSG_MODULE_EEPROM_GET);
    uint32_t nest = message_put(&m, ETHTOOL_A_MODULE_EEPROM_HEADER | NLA_F_NESTED, NULL, 0);
    message_put(&m, ETHTOOL_A_HEADER_DEV_NAME, e->iface, strlen(e->iface) + 1);
    message_nest_end(&m, nest);
    message_put(&m, ETHTOOL_A_MODULE_EEPROM_OFFSET, &from, sizeof from);
    message_put(&m, ETHTOOL_A_MODULE_EEPROM_LENGTH, &count, sizeof count);
    message_put(&m, ETHTOOL_A_MODULE_EEPROM_PAGE, &number, sizeof number);
    message_put(&m, ETHTOOL_A_MODULE_EEPROM_BANK, &bank, sizeof bank);
    message_put(&m, ETHTOOL_A_MODULE_EEPROM_I2C_ADDRESS, &address, sizeof address);
    ssize_t got = genl_ask(e, &m, answer);
    if (got < 0)
        return (int)got;
    const char *data = answer_find(answer, (size_t)got, ETHTOOL_A_MODULE_EEPROM_DATA, &size);
    if (!data || size < len)
        return -EIO;
    memcpy(bytes, data, len);
    return 0;
}

static int ioctl_ask(struct shk_eeprom *e, void *command)
{
    struct ifreq request = {.ifr_data = command};
    memcpy(request.ifr_name, e->iface, sizeof request.ifr_name);
    return ioctl(e->ioctl, SIOCETHTOOL, &request) ? -errno : 0;
}

static int ioctl_all(struct shk_eeprom *e)
{
    struct ethtool_modinfo info = {.cmd = ETHTOOL_GMODULEINFO};
    int rc = ioctl_ask(e, &info);
    if (rc)
        return rc;
    uint32_t len = info.eeprom_len < EEPROM_FLAT ? info.eeprom_len : EEPROM_FLAT;
    struct ethtool_eeprom *ask = calloc(1, sizeof *ask + EEPROM_FLAT);
    unsigned char *flat = calloc(1, EEPROM_FLAT);
    if (!ask || !flat)
        rc = -ENOMEM;
    if (!rc) {
        ask->cmd = ETHTOOL_GMODULEEEPROM;
        ask->len = len;
        rc = ioctl_ask(e, ask);
    }
    if (!rc) {
        memcpy(flat, ask->data, len);
        e->flat = flat;
        e->flat_len = len;
        e->flat_type = info.type;
        flat = NULL;
    }
    free(flat);
    free(ask);
    return rc;
}

/* SFP: 256 bytes for each address. Else the lower half, and then the upper halves of all pages. */
static int ioctl_read(struct shk_eeprom *e, unsigned i2c, unsigned page, unsigned offset,
                      unsigned len, unsigned char *bytes)
{
    int rc = e->flat ? 0 : ioctl_all(e);
    bool sfp = e->flat_type == ETH_MODULE_SFF_8079 || e->flat_type == ETH_MODULE_SFF_8472;
    size_t at = sfp ? (i2c == 0x51 ? 256 : 0) + offset : offset + (offset < 128 ? 0 : page * 128);
    if (rc)
        return rc;
    if (at + len > e->flat_len)
        return -ENODATA;
    memcpy(bytes, e->flat + at, len);
    return 0;
}

static int eeprom_read(void *arg, unsigned i2c, unsigned page, unsigned offset, unsigned len,
                       unsigned char *bytes, struct shk_error *err)
{
    struct shk_eeprom *e = arg;
    int rc = e->family ? genl_read(e, i2c, page, offset, len, bytes)
                       : ioctl_read(e, i2c, page, offset, len, bytes);
    return rc ? shk_error_sys(err, -rc, "module of %s", e->iface) : 0;
}

struct shk_module_bytes shk_eeprom_bytes(struct shk_eeprom *eeprom)
{
    return (struct shk_module_bytes){.read = eeprom_read, .arg = eeprom};
}

int shk_eeprom_open(struct shk_eeprom **eeprom_p, const char *iface, struct shk_error *err)
{
    struct timeval wait = {.tv_sec = EEPROM_WAIT_S};
    struct shk_eeprom *e = calloc(1, sizeof *e);
    *eeprom_p = NULL;
    if (!e)
        return shk_error_sys(err, ENOMEM, "module of %s", iface);
    snprintf(e->iface, sizeof e->iface, "%s", iface);
    e->ioctl = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    e->genl = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
    if (e->ioctl < 0) {
        int rc = shk_error_sys(err, errno, "module of %s: a socket", iface);
        shk_eeprom_close(e);
        return rc;
    }
    if (e->genl >= 0 && setsockopt(e->genl, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait) == 0)
        e->family = genl_family(e);
    *eeprom_p = e;
    return 0;
}

void shk_eeprom_close(struct shk_eeprom *eeprom)
{
    if (!eeprom)
        return;
    if (eeprom->ioctl >= 0)
        close(eeprom->ioctl);
    if (eeprom->genl >= 0)
        close(eeprom->genl);
    free(eeprom->flat);
    free(eeprom);
}
