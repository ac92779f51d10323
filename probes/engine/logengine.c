#include "probes/engine/logengine.h"

const struct shk_log_engine *shk_log_engine(void)
{
    const struct shk_log_engine *vectorscan = shk_log_engine_vectorscan();
    return vectorscan && vectorscan->runs_here() ? vectorscan : shk_log_engine_pcre2();
}

#ifndef SHK_HS_VERSION
const struct shk_log_engine *shk_log_engine_vectorscan(void)
{
    return NULL;
}
#endif
