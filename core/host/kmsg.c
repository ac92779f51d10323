#include "core/host/kmsg.h"

#include "core/host/host_private.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char kmsg_path[] = "/dev/kmsg";

/* "6,1234,567890,-;text": one record, cut off after the text. False: not of that form. */
static bool kmsg_parse(char *line, struct shk_kmsg *record)
{
    char *text = strchr(line, ';'), *end = line;
    long long head[3]; /* level, sequence, time: thousands of lines, so without sscanf() */
    for (int i = 0; text && i < 3; i++) {
        char *from = i ? end + 1 : line;
        if (!isdigit((unsigned char)*from) || (i && *end != ','))
            return false;
        head[i] = strtoll(from, &end, 10);
    }
    if (!text || (*end != ',' && *end != ';'))
        return false;
    record->seq = head[1];
    record->usec = head[2];
    record->text = text + 1;
    return true;
}

/* A record and the lines " KEY=value" that may follow it; a file of a capture holds many. */
static int kmsg_lines(char *buf, int (*each)(const struct shk_kmsg *record, void *arg), void *arg)
{
    char *save = NULL;
    int rc = 0;
    for (char *line = strtok_r(buf, "\n", &save); line && rc >= 0;
         line = strtok_r(NULL, "\n", &save)) {
        struct shk_kmsg record = {.seq = 0};
        if (*line != ' ' && kmsg_parse(line, &record))
            rc = each(&record, arg);
    }
    return rc < 0 ? rc : 0;
}

/* Each read of the device gives one record; EPIPE: it was overwritten meanwhile, and the next read
 * gives the oldest one left. */
static int kmsg_device(int fd, int (*each)(const struct shk_kmsg *record, void *arg), void *arg)
{
    char buf[8192]; /* PRINTKRB_RECORD_MAX and its prefix are shorter */
    int rc = 0;
    while (rc == 0) {
        ssize_t n = read(fd, buf, sizeof buf - 1);
        if (n == 0 || (n < 0 && errno == EAGAIN))
            return 0;
        if (n < 0 && errno != EPIPE && errno != EINTR)
            return -errno;
        if (n > 0) {
            buf[n] = '\0';
            rc = kmsg_lines(buf, each, arg);
        }
    }
    return rc;
}

int shk_host_kmsg(const struct shk_host *host,
                  int (*each)(const struct shk_kmsg *record, void *arg), void *arg,
                  struct shk_error *err)
{
    struct stat st;
    int fd = shk_host_openat(host, kmsg_path, O_RDONLY | O_NONBLOCK);
    if (fd < 0)
        return shk_error_sys(err, errno, "%s", kmsg_path);
    bool device = fstat(fd, &st) == 0 && S_ISCHR(st.st_mode);
    int rc = host->live && device ? kmsg_device(fd, each, arg) : 0;
    close(fd);
    if (rc)
        return shk_error_sys(err, -rc, "%s", kmsg_path);
    if (!host->live || !device) {
        char *text = NULL;
        rc = shk_host_read(host, kmsg_path, &text, NULL, err);
        if (!rc)
            rc = kmsg_lines(text, each, arg);
        free(text);
    }
    return rc;
}
