/* Strings as NVSHMEM's library and its modules carry them; nothing in it can be called. */
#ifdef TRANSPORT
const char *const shk_fake_names[] = {"IB_GID_INDEX", "QP_DEPTH", "NVSHMEM_HCA_LIST", "AF_INET "};
#elif defined(HSA)
const char *const shk_fake_names[] = {"HSA_ENABLE_DEBUG", "ROCR_VISIBLE_DEVICES", "HSA_%s"};
#else
const char shk_fake_version[] = "NVSHMEM v3.6.1";
const char *const shk_fake_names[] = {"DEBUG",     "REMOTE_TRANSPORT",  "SYMMETRIC_SIZE",
                                      "TRACE",     "NVSHMEM_CONF_FILE", "NVSHMEM v%d.%d",
                                      "lower_case"};
#endif
