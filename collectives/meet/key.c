#include "collectives/meet/key.h"
#include "core/text/uses.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
    bool there, unfit; /* unfit: too short or too long */
    char from[96];
    unsigned char bytes[SHK_SHA256_BYTES];
} key_taken;

static bool key_fits(size_t len)
{
    return len >= SHK_KEY_LEAST && len <= SHK_KEY_MOST;
}

static void key_hash(unsigned char bytes[SHK_SHA256_BYTES], const char *text, size_t len)
{
    static const char label[] = "shakedown key";
    struct shk_sha256 sha;
    shk_sha256_begin(&sha);
    shk_sha256_add(&sha, label, sizeof label);
    shk_sha256_add(&sha, text, len);
    shk_sha256_end(&sha, bytes);
    explicit_bzero(&sha, sizeof sha);
}

void shk_key_take(void)
{
    const char *name = shk_variable("rendezvous-key");
    char *text = *name ? getenv(name) : NULL;
    size_t len = text ? strlen(text) : 0;
    if (len == 0)
        return;
    key_taken.there = true;
    key_taken.unfit = !key_fits(len);
    snprintf(key_taken.from, sizeof key_taken.from, "%s", name);
    key_hash(key_taken.bytes, text, len);
    explicit_bzero(text, len);
    unsetenv(name);
}

/* The line of a key file, without blanks around it. */
static int key_line(int fd, const char *path, struct shk_key *key, struct shk_error *err)
{
    char text[SHK_KEY_MOST + 3];
    ssize_t n = read(fd, text, sizeof text - 1);
    if (n < 0)
        return shk_error_sys(err, errno, "%s", path);
    size_t len = (size_t)n;
    while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == '\r' || text[len - 1] == ' '))
        len--;
    bool fits = key_fits(len);
    if (fits)
        key_hash(key->bytes, text, len);
    explicit_bzero(text, sizeof text);
    if (!fits)
        return shk_error_set(err, EINVAL, "%s: a key has %u to %u characters", path, SHK_KEY_LEAST,
                             SHK_KEY_MOST);
    key->there = true;
    snprintf(key->from, sizeof key->from, "--key-file"); /* the path may name a person */
    return 0;
}

static int key_file(const char *path, struct shk_key *key, struct shk_error *err)
{
    struct stat st;
    int rc = 0, fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return shk_error_sys(err, errno, "%s", path);
    if (fstat(fd, &st))
        rc = shk_error_sys(err, errno, "%s", path);
    else if (!S_ISREG(st.st_mode))
        rc = shk_error_set(err, EINVAL, "%s: not a file", path);
    else if (st.st_mode & 077)
        rc = shk_error_set(err, EACCES,
                           "%s: others may read or write this key (mode %04o): chmod 600 %s", path,
                           (unsigned)st.st_mode & 07777u, path);
    else if (st.st_uid != geteuid())
        rc = shk_error_set(err, EACCES, "%s: this key belongs to another user (uid %u)", path,
                           (unsigned)st.st_uid);
    else
        rc = key_line(fd, path, key, err);
    close(fd);
    return rc;
}

int shk_key_get(struct shk_key *key, const char *file, bool launcher, struct shk_error *err)
{
    memset(key, 0, sizeof *key);
    if (key_taken.there) {
        if (key_taken.unfit)
            return shk_error_set(err, EINVAL, "%s: a key has %u to %u characters", key_taken.from,
                                 SHK_KEY_LEAST, SHK_KEY_MOST);
        key->there = true;
        memcpy(key->from, key_taken.from, sizeof key->from);
        memcpy(key->bytes, key_taken.bytes, sizeof key->bytes);
        return 0;
    }
    if (file)
        return key_file(file, key, err);
    for (const char *const *v = shk_variables("rendezvous-secret"); launcher && *v; v++) {
        const char *text = getenv(*v);
        if (text && *text) {
            key->there = true;
            snprintf(key->from, sizeof key->from, "%.95s", *v);
            key_hash(key->bytes, text, strlen(text));
            return 0;
        }
    }
    return 0;
}

void shk_key_mix(struct shk_key *key, const char *add, const char *from)
{
    struct shk_hmac hmac;
    shk_hmac_begin(&hmac, key->bytes, key->there ? sizeof key->bytes : 0);
    shk_hmac_add(&hmac, add, strlen(add));
    shk_hmac_end(&hmac, key->bytes);
    if (key->there) {
        char first[sizeof key->from];
        memcpy(first, key->from, sizeof first);
        snprintf(key->from, sizeof key->from, "%.45s and %.45s", from, first);
    } else {
        snprintf(key->from, sizeof key->from, "%.95s", from);
    }
    key->there = true;
}
