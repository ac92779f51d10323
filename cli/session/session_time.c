/* When a run began, how long it took and on what hardware: facts of the run, so that whoever judges
 * the document later says the same. */
#include "cli/session/session.h"
#include "core/run/clock.h"
#include "core/text/stamp.h"
#include "reports/model/hardware.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static double time_passed(const struct shk_session *session)
{
    return round((shk_clock_s() - session->started_s) * 1000) / 1000;
}

int shk_session_stamp(const struct shk_session *session, struct shk_facts *facts)
{
    char text[SHK_STAMP];
    json_t *parts = json_array();
    char *hardware = shk_hardware_of(facts), *save = NULL;
    bool bad = !parts || !hardware;
    for (char *p = bad ? NULL : strtok_r(hardware, "\n", &save); p; p = strtok_r(NULL, "\n", &save))
        bad |= json_array_append_new(parts, shk_json_text(p, strlen(p))) != 0;
    shk_stamp(text, (long long)session->started_at);
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
