/* Strings as an NCCL or RCCL library carries them; nothing in it can be called. */
#ifdef RCCL
const char shk_fake_version[] = "RCCL version 2.20.5+hip6.2 HEAD:fake";
const char *const shk_fake_names[] = {"ncclNetPlugin_v5", "ncclNetPlugin_v6", "librccl-net",
                                      "RCCL_MSCCL_ENABLE", "NCCL_NET_PLUGIN"};
#elif defined(V228)
const char shk_fake_version[] = "NCCL version 2.28.9+cuda13.0";
const char *const shk_fake_names[] = {"ncclNetPlugin_v6",      "ncclNetPlugin_v7",
                                      "ncclNetPlugin_v8",      "ncclNetPlugin_v9",
                                      "ncclNetPlugin_v10",     "ncclNetPlugin_v11",
                                      "ncclCollNetPlugin_v6",  "ncclCollNetPlugin_v7",
                                      "ncclCollNetPlugin_v8",  "ncclCollNetPlugin_v9",
                                      "ncclCollNetPlugin_v10", "ncclCollNetPlugin_v11",
                                      "ncclTunerPlugin_v2",    "ncclTunerPlugin_v3",
                                      "ncclTunerPlugin_v4",    "ncclTunerPlugin_v5",
                                      "ncclProfiler_v1",       "ncclProfiler_v2",
                                      "ncclProfiler_v3",       "ncclProfiler_v4",
                                      "ncclProfiler_v5",       "ncclEnvPlugin_v1",
                                      "ncclGinPlugin_v11",     "libnccl-net",
                                      "STATIC_PLUGIN",         "NCCL_NET",
                                      "NCCL_NET_PLUGIN",       "NCCL_SOCKET_IFNAME"};
#elif defined(GLUED)
const char shk_fake_version[] = "NCCL version 2.18.3+cuda12.2";
/* a template without an end of its own, as 2.18.3 has it, and names that are not read */
const char *const shk_fake_names[] = {"/dev/shm/nccl-XXNCCL_NET_PLUGIN", "NCCL_DEBUG",
                                      "please set NCCL_GONE", "TORCH_NCCL_OTHER"};
#elif defined(SILENT)
const char shk_fake_version[] = "nothing to see";
const char *const shk_fake_names[] = {"nothing"};
#else
const char shk_fake_version[] = "NCCL version 2.19.3+cuda12.2";
const char *const shk_fake_names[] = {
    "ncclNetPlugin_v5", "ncclNetPlugin_v6", "ncclNetPlugin_v7", "ncclCollNetPlugin_v7",
    "ncclTunerPlugin_v1", "libnccl-net", "NCCL_NET", "NCCL_NET_PLUGIN", "NCCL_SOCKET_IFNAME",
    "NCCL_SOCKET_IFNAME", "NCCL version %d.%d.%d", "Failed to find ncclNetPlugin_v9 symbol.",
    "NCCL_", "NCCL_lower",
    /* words, no variables */
    "NCCL_SHM", "NCCL_LOG_INFO", "NCCL_ALGO_TREE", "NCCL_GIN_CONNECTION_RAIL",
    "NCCL_COMM_PROPERTIES_INITIALIZER"};
#endif
