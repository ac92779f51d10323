#include "probes/log/logengine.h"

const struct shk_log_engine *shk_log_engine(void)
{
    return shk_log_engine_vectorscan();
}
