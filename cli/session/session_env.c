/* An environment from a file, as facts of every node. */
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/session/session.h"
#include "core/text/strbuf.h"
#include "probes/base/probe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int session_fail(const struct shk_error *err, int code)
{
    shk_say("%s", err->text);
    return code;
}

/* What `env` printed is a whole environment: what it does not hold is not set. */
static int session_env_whole(struct shk_facts *facts, const struct shk_name_set *names,
                             const char *path)
{
    struct shk_fact fact;
    if (shk_facts_get(facts, "probe.env.status", &fact))
        return 0;
    int rc = shk_probe_env_looked_for(facts, names, path);
    return rc ? rc : shk_facts_text(facts, "probe.env.status", "ok", path);
}

/* "export NAME=VALUE", "NAME=VALUE"; blank lines and comments are skipped. */
static int session_env_line(struct shk_session *session, char *text, const char *source,
                            struct shk_error *err)
{
    char *eq = strchr(text, '=');
    int rc = 0;
    if (!*text || *text == '#')
        return 0;
    if (strncmp(text, "export ", 7) == 0)
        text = shk_trim(text + 7);
    if (!eq || eq == text)
        return shk_error_set(err, EINVAL, "%s: not NAME=VALUE", source);
    *eq = '\0';
    for (size_t i = 0; i < session->nodes && !rc; i++)
        rc = shk_probe_env_fact(session->facts[i], session->names, text, eq + 1, source);
    return rc ? shk_error_set(err, -rc, "%s: '%.60s' is not a variable name", source, text) : 0;
}

static FILE *session_env_open(const char *path, struct shk_error *err)
{
    struct stat st;
    FILE *in = fopen(path, "re");
    if (in && fstat(fileno(in), &st) == 0 && S_ISDIR(st.st_mode)) {
        fclose(in);
        in = NULL;
        errno = EISDIR;
    }
    if (!in)
        shk_error_sys(err, errno, "%s", path);
    return in;
}

/* Every environment of a process that a shell or a launcher started has one of these, a list of
 * variables from a report hardly ever. */
static bool session_env_is_whole(const char *line)
{
    static const char *const marks[] = {"PATH=", "HOME=", "PWD=", "SHLVL="};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (strncmp(line, marks[i], strlen(marks[i])) == 0)
            return true;
    return false;
}

int shk_session_load_env(struct shk_session *session, const char *path)
{
    struct shk_error err = {""};
    FILE *in = session_env_open(path, &err);
    if (!in)
        return session_fail(&err, SHK_EXIT_USAGE);
    char *line = NULL, source[300];
    size_t cap = 0;
    bool whole = !session->part;
    int rc = shk_session_names(session, &err);
    for (int at = 1; !rc && getline(&line, &cap, in) >= 0; at++) {
        snprintf(source, sizeof source, "%s:%d", path, at);
        char *text = at == 1 ? line + shk_bom(line, strlen(line)) : line;
        text = shk_trim(text);
        whole |= session_env_is_whole(text);
        rc = session_env_line(session, text, source, &err);
    }
    if (!rc && ferror(in))
        rc = shk_error_sys(&err, EIO, "%s", path);
    free(line);
    fclose(in);
    for (size_t i = 0; i < session->nodes && !rc && whole; i++)
        rc = session_env_whole(session->facts[i], session->names, path);
    return rc ? session_fail(&err, SHK_EXIT_USAGE) : SHK_EXIT_OK;
}
