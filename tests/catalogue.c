/* In a test's executable: the built-in uses of variables and launchers, as the main program
 * installs them. */
#include "config/config.h"

__attribute__((constructor)) static void catalogue_install(void)
{
    shk_config_install(NULL);
}
