/* A plugin that needs another library: one that is not installed, or one that is too old. */
#ifdef FABRIC
extern int fi_getinfo(void);
#define NEEDED fi_getinfo
#else
extern int shk_fake_dependency(void);
#define NEEDED shk_fake_dependency
#endif

static int plugin_init(void *log)
{
    (void)log;
    return NEEDED();
}

struct table {
    const char *name;
    int (*init)(void *log);
    void *rest[17];
};
extern struct table ncclNetPlugin_v8;
struct table ncclNetPlugin_v8 = {.name = "Needy", .init = plugin_init};
