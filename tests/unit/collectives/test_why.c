#include "collectives/fabric/fabric_private.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* A library with the provider "odd", which lacks one thing (or has no device), and "good". */

static struct {
    uint64_t caps; /* that odd offers */
    enum fi_ep_type type;
    int mr_mode; /* that it needs */
    uint64_t mode;
    bool device;
} odd;

static struct fi_info *fake_dupinfo(const struct fi_info *info)
{
    struct fi_info *copy = calloc(1, sizeof(*copy));

    cr_assert_not_null(copy);
    copy->tx_attr = calloc(1, sizeof(*copy->tx_attr));
    copy->rx_attr = calloc(1, sizeof(*copy->rx_attr));
    copy->ep_attr = calloc(1, sizeof(*copy->ep_attr));
    copy->domain_attr = calloc(1, sizeof(*copy->domain_attr));
    copy->fabric_attr = calloc(1, sizeof(*copy->fabric_attr));
    if (info != NULL && info->fabric_attr->prov_name != NULL) {
        copy->fabric_attr->prov_name = strdup(info->fabric_attr->prov_name);
    }
    return copy;
}

static void fake_freeinfo(struct fi_info *info)
{
    while (info != NULL) {
        struct fi_info *next = info->next;

        free(info->fabric_attr->prov_name);
        free(info->tx_attr);
        free(info->rx_attr);
        free(info->ep_attr);
        free(info->domain_attr);
        free(info->fabric_attr);
        free(info);
        info = next;
    }
}

static void fake_add(struct fi_info **list, const char *name)
{
    struct fi_info *info = fake_dupinfo(NULL);

    info->fabric_attr->prov_name = strdup(name);
    info->next = *list;
    *list = info;
}

static bool fake_odd_fits(const struct fi_info *hints)
{
    return odd.device && (hints->caps & ~odd.caps) == 0 &&
           (hints->ep_attr->type == FI_EP_UNSPEC || hints->ep_attr->type == odd.type) &&
           (odd.mr_mode & ~hints->domain_attr->mr_mode) == 0 && (odd.mode & ~hints->mode) == 0;
}

static int fake_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
                        const struct fi_info *hints, struct fi_info **info)
{
    const char *wanted = hints != NULL ? hints->fabric_attr->prov_name : NULL;

    (void)version, (void)node, (void)service;
    *info = NULL;
    if (flags == FI_PROV_ATTR_ONLY) {
        fake_add(info, "ofi_hook_debug");
        fake_add(info, "odd");
        fake_add(info, "good");
        return 0;
    }
    if ((wanted == NULL || strcmp(wanted, "odd") == 0) && fake_odd_fits(hints)) {
        fake_add(info, "odd");
    }
    if (wanted == NULL || strcmp(wanted, "good") == 0) {
        fake_add(info, "good");
    }
    return *info != NULL ? 0 : -FI_ENODATA;
}

static const struct fabric_lib lib = {
    .api = {.getinfo = fake_getinfo, .freeinfo = fake_freeinfo, .dupinfo = fake_dupinfo},
    .dynlib = {.path = "/opt/libfabric.so.1"},
    .text = "9.9",
};

#define FITS                                                                                       \
    {                                                                                              \
        .caps = FI_MSG | FI_RMA, .type = FI_EP_RDM, .device = true                                 \
    }

static void expect_text(const char *provider, const char *filter, const char *want)
{
    struct shk_strbuf text = SHK_STRBUF_INIT;

    fabric_why_text(&lib, provider, filter, &text);
    cr_expect_not_null(strstr(shk_strbuf_text(&text), want), "\"%s\" lacks \"%s\"",
                       shk_strbuf_text(&text), want);
    cr_expect_not_null(strstr(shk_strbuf_text(&text), "; it has good, odd; usable here: good"),
                       "%s", shk_strbuf_text(&text));
    shk_strbuf_free(&text);
}

Test(why, the_hint_that_excludes_is_named)
{
    odd = (typeof(odd))FITS;
    odd.caps = FI_MSG;
    expect_text("odd", NULL, "provider odd: odd does not offer FI_RMA");
    odd = (typeof(odd))FITS;
    odd.type = FI_EP_MSG;
    expect_text(NULL, "odd", "FI_PROVIDER=odd: odd does not offer FI_EP_RDM");
    odd = (typeof(odd))FITS;
    odd.mr_mode = FI_MR_RAW;
    expect_text("odd", NULL, "memory registration modes");
    odd = (typeof(odd))FITS;
    odd.mode = FI_MSG_PREFIX;
    expect_text("odd", NULL, "mode bits");
}

Test(why, no_device_and_several_lacks_are_told_apart)
{
    odd = (typeof(odd))FITS;
    odd.device = false;
    expect_text("odd", NULL, "odd is built in but finds no device or interface on this host");
    odd = (typeof(odd))FITS;
    odd.type = FI_EP_DGRAM;
    odd.mode = FI_MSG_PREFIX;
    expect_text("odd", NULL, "odd lacks several required features");
}

Test(why, names_that_do_not_exist)
{
    odd = (typeof(odd)){0};
    expect_text(NULL, "cxi",
                "FI_PROVIDER=cxi: libfabric 9.9 (/opt/libfabric.so.1) has no provider cxi");
    expect_text(NULL, "cxi,odd", "has no provider cxi; odd is built in");
    expect_text("od", NULL, "has no provider od;");
    expect_text(NULL, "^good",
                "no provider of libfabric 9.9 (/opt/libfabric.so.1) fits with "
                "FI_PROVIDER=^good");
    expect_text(NULL, NULL, "no provider of libfabric 9.9");
    expect_text(NULL, "", "no provider of libfabric 9.9");
    expect_text(NULL, ",;,", "FI_PROVIDER=,;,: ");
}

Test(why, a_filter_that_hides_a_good_provider)
{
    odd = (typeof(odd)){0};
    expect_text("good", "odd", "good would fit, FI_PROVIDER=odd excludes it");
}
