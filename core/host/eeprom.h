/* Memory of the module in the cage of a network interface, as `ethtool -m` gets it: ethtool's
 * netlink family (Linux 5.13), else the ioctl. Takes CAP_NET_ADMIN. */
#ifndef SHK_CORE_EEPROM_H
#define SHK_CORE_EEPROM_H

#include "core/host/module.h"

struct shk_eeprom;

/* An interface of this network namespace; opens sockets only. Close with shk_eeprom_close(). */
int shk_eeprom_open(struct shk_eeprom **eeprom_p, const char *iface,
                    struct shk_error *err) SHK_MUST_CHECK;
void shk_eeprom_close(struct shk_eeprom *eeprom);

/* For shk_module_read(). Answers: -EOPNOTSUPP: the driver offers it for no module of this
 * interface; -EPERM: not without the capability; others as the driver has them. */
struct shk_module_bytes shk_eeprom_bytes(struct shk_eeprom *eeprom);

#endif
