#include "config/load/names.h"

#define NAME_OF(names, value)                                                                      \
    ((size_t)(value) < sizeof(names) / sizeof((names)[0]) ? (names)[value] : "unknown")

const char *const shk_value_type_names[] = {
    [SHK_VALUE_STRING] = "string",   [SHK_VALUE_BOOL] = "bool",
    [SHK_VALUE_FLAG] = "flag",       [SHK_VALUE_INT] = "int",
    [SHK_VALUE_SIZE] = "size",       [SHK_VALUE_ENUM] = "enum",
    [SHK_VALUE_LIST] = "list",       [SHK_VALUE_INTERFACES] = "interfaces",
    [SHK_VALUE_HCAS] = "hcas",       [SHK_VALUE_PATH] = "path",
    [SHK_VALUE_PATHS] = "paths",     [SHK_VALUE_HOST_PORT] = "host-port",
    [SHK_VALUE_DEVICES] = "devices",
};

const char *const shk_int_parser_names[] = {
    [SHK_INT_STRTOL0] = "strtol0",
    [SHK_INT_NCCL] = "nccl",
    [SHK_INT_DECIMAL] = "decimal",
};

const char *const shk_setting_kind_names[] = {
    [SHK_SETTING_CURRENT] = "current",
    [SHK_SETTING_DEPRECATED] = "deprecated",
    [SHK_SETTING_RETIRED] = "retired",
    [SHK_SETTING_FOLKLORE] = "folklore",
};

const char *const shk_severity_names[] = {
    [SHK_SEV_NONE] = "none",
    [SHK_SEV_NOISE] = "noise",
    [SHK_SEV_PERF_MINOR] = "perf-minor",
    [SHK_SEV_PERF_MAJOR] = "perf-major",
    [SHK_SEV_HANG] = "hang",
    [SHK_SEV_CORRUPT] = "corrupt",
    [SHK_SEV_FATAL] = "fatal",
};

const char *const shk_value_rule_names[] = {
    [SHK_RULE_NONE] = "none",
    [SHK_RULE_NETWORK] = "network",
    [SHK_RULE_PROVIDERS] = "providers",
    [SHK_RULE_ALGORITHMS] = "algorithms",
    [SHK_RULE_PROTOCOLS] = "protocols",
    [SHK_RULE_PER_RANK] = "per-rank",
    [SHK_RULE_SHORT_HOST] = "short-host",
    [SHK_RULE_CXI_DEVICES] = "cxi-devices",
    [SHK_RULE_RDMA_DEVICES] = "rdma-devices",
    [SHK_RULE_MR_MONITOR] = "mr-monitor",
    [SHK_RULE_INTERFACES] = "interfaces",
};

const char *const shk_mask_names[] = {
    [SHK_MASK_NONE] = "none", [SHK_MASK_NVIDIA] = "nvidia",   [SHK_MASK_AMD_FIRST] = "amd-first",
    [SHK_MASK_AMD] = "amd",   [SHK_MASK_AMD_OLD] = "amd-old",
};

const char *const shk_misread_names[] = {
    [SHK_MISREAD_LITERAL] = "literal",
    [SHK_MISREAD_DEFAULT] = "default",
    [SHK_MISREAD_ENDS] = "ends",
};

const char *const shk_strength_names[] = {
    [SHK_OPTIONAL] = "optional",
    [SHK_RECOMMENDED] = "recommended",
    [SHK_REQUIRED] = "required",
};

const char *shk_severity_name(enum shk_severity severity)
{
    return NAME_OF(shk_severity_names, severity);
}

const char *shk_strength_name(enum shk_strength strength)
{
    return NAME_OF(shk_strength_names, strength);
}

const char *shk_line_strength(const struct shk_profile_setting *line)
{
    if (line->foreign && line->strength != SHK_OPTIONAL)
        return "in the list of the fabric's maker";
    return shk_strength_name(line->strength);
}

const char *shk_value_type_name(enum shk_value_type type)
{
    return NAME_OF(shk_value_type_names, type);
}

const char *shk_setting_kind_name(enum shk_setting_kind kind)
{
    return NAME_OF(shk_setting_kind_names, kind);
}
