/* When a run began, how long it took and on what hardware: facts of the run, so that whoever judges
 * the document later says the same. */
#include "cli/session/session.h"
#include "reports/model/hardware.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double time_passed(const struct shk_session *session)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    double s = (double)ts.tv_sec + (double)ts.tv_nsec / 1e9 - session->started_s;
    return round(s * 1000) / 1000;
}

int shk_session_stamp(const struct shk_session *session, struct shk_facts *facts)
{
    char text[32];
    struct tm tm;
    json_t *parts = json_array();
    char *hardware = shk_hardware_of(facts), *save = NULL;
    bool bad = !parts || !hardware || !gmtime_r(&session->started_at, &tm);
    for (char *p = bad ? NULL : strtok_r(hardware, "\n", &save); p; p = strtok_r(NULL, "\n", &save))
        bad |= json_array_append_new(parts, shk_json_text(p, strlen(p))) != 0;
    if (!bad)
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
    bad = bad || shk_facts_text(facts, "run.start", text, "clock_gettime") ||
          shk_facts_present(facts, "run.hardware", json_incref(parts), NULL, "other facts") ||
          shk_session_stamp_end(session, facts);
    json_decref(parts);
    free(hardware);
    return bad ? -ENOMEM : 0;
}

int shk_session_stamp_end(const struct shk_session *session, struct shk_facts *facts)
{
    return shk_facts_present(facts, "run.seconds", json_real(time_passed(session)), "s",
                             "clock_gettime");
}
