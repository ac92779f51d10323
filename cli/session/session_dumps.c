/* Dumps of PyTorch's flight recorder among the files that diagnose is given. */
#include "cli/output.h"
#include "cli/session/session.h"
#include "probes/dumps/flight.h"
#include "probes/dumps/pickle.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The whole of a file that begins like a pickle; NULL: it is none, or too large (said). */
static char *dump_read(const char *path, size_t *len_p)
{
    char head[3];
    FILE *in = strcmp(path, "-") == 0 ? NULL : fopen(path, "re");
    if (!in)
        return NULL; /* who reads it as a log says why */
    bool is = fread(head, 1, sizeof head, in) == sizeof head && shk_pickle_is(head, sizeof head);
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    char buf[65536];
    size_t got;
    if (is)
        shk_strbuf_add(&sb, head, sizeof head);
    while (is && sb.len <= SHK_FLIGHT_FILE_MAX && (got = fread(buf, 1, sizeof buf, in)) > 0)
        shk_strbuf_add(&sb, buf, got);
    fclose(in);
    *len_p = sb.len;
    return is ? shk_strbuf_take(&sb) : NULL;
}

int shk_session_take_dump(struct shk_flight *flight, const char *path, bool *taken_p,
                          struct shk_error *err)
{
    size_t len = 0;
    char *data = dump_read(path, &len);
    int rc = 0;
    *taken_p = data != NULL;
    if (data && len > SHK_FLIGHT_FILE_MAX)
        shk_say("%s: left out: a dump of more than %zu MiB", path, SHK_FLIGHT_FILE_MAX >> 20);
    else if (data)
        rc = shk_flight_add(flight, path, data, len, err);
    if (rc && rc != -ENOMEM) {
        shk_say("%s: left out: %s", path, err->text);
        rc = 0;
    }
    free(data);
    return rc;
}
