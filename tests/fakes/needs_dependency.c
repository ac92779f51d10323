/* A plugin that needs a library which is not installed. */
extern int shk_fake_dependency(void);

static int plugin_init(void *log)
{
    (void)log;
    return shk_fake_dependency();
}

struct table {
    const char *name;
    int (*init)(void *log);
    void *rest[17];
};
extern struct table ncclNetPlugin_v8;
struct table ncclNetPlugin_v8 = {.name = "Needy", .init = plugin_init};
