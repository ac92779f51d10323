/* A library that a fake plugin needs. */
int shk_fake_dependency(void);
int shk_fake_dependency(void)
{
    return 1;
}
