/* What the probes that ask NVML share: its errors and addresses as members of a fact. */
#ifndef SHK_PROBES_NVML_VALUE_H
#define SHK_PROBES_NVML_VALUE_H

#include "core/facts/facts.h"
#include "probes/device/nvml_abi.h"

#include <stdbool.h>

/* NVML's words for "there is no such thing", on this GPU or in this driver; every other error means
 * that it was not read. */
bool shk_nvml_none(int rc);

/* Sets the member to null, with a line in the object's "problems" that gives NVML's error. */
void shk_nvml_unread(json_t *object, const char *member, int rc);

/* Sets the member to `value` (stolen) after NVML_SUCCESS, else to null: without a problem when
 * there is no such thing. */
void shk_nvml_member(json_t *object, const char *member, int rc, json_t *value);

/* As sysfs writes it: four digits of domain, lower case, function 0. */
void shk_nvml_address(char *buf, size_t size, const nvmlPciInfo_t *pci);

#endif
