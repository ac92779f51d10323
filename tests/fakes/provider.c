/* A provider of libfabric that is a file of its own, or, with NEEDY, one that cannot be loaded. */
#ifdef NEEDY
extern int shk_fake_dependency(void);
#endif
void *fi_prov_ini(void);
void *fi_prov_ini(void)
{
#ifdef NEEDY
    shk_fake_dependency();
#endif
    return 0;
}
