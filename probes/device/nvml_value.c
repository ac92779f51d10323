#include "probes/device/nvml_value.h"

#include "probes/base/gather.h"

#include <stdio.h>

bool shk_nvml_none(int rc)
{
    return rc == NVML_ERROR_NOT_SUPPORTED || rc == NVML_ERROR_INVALID_ARGUMENT ||
           rc == NVML_ERROR_FUNCTION_NOT_FOUND || rc == NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
}

void shk_nvml_unread(json_t *object, const char *member, int rc)
{
    char why[48];
    if (rc == NVML_ERROR_NO_PERMISSION)
        snprintf(why, sizeof why, "NVML tells it to root only");
    else
        snprintf(why, sizeof why, "NVML error %d", rc);
    json_object_set_new(object, member, json_null());
    shk_gather_member_problem(object, member, why);
}

void shk_nvml_member(json_t *object, const char *member, int rc, json_t *value)
{
    if (rc == NVML_SUCCESS) {
        json_object_set_new(object, member, value);
        return;
    }
    json_decref(value);
    if (shk_nvml_none(rc))
        json_object_set_new(object, member, json_null());
    else
        shk_nvml_unread(object, member, rc);
}

void shk_nvml_address(char *buf, size_t size, const nvmlPciInfo_t *pci)
{
    snprintf(buf, size, "%04x:%02x:%02x.0", pci->domain, pci->bus & 0xff, pci->device & 0x1f);
}
