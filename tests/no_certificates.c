/* In a test's executable, in the place of mbedtls's: Criterion brings libgit2, which reads all
 * certificate authorities of the machine when a process starts, and each test is one. */
int mbedtls_x509_crt_parse_file(void *chain, const char *path);
int mbedtls_x509_crt_parse_path(void *chain, const char *path);

int mbedtls_x509_crt_parse_file(void *chain, const char *path)
{
    (void)chain, (void)path;
    return 0;
}

int mbedtls_x509_crt_parse_path(void *chain, const char *path)
{
    (void)chain, (void)path;
    return 0;
}
