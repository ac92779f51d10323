/* Sums of 16-bit data at places that are no multiple of 4 bytes, which a library may get wrong. */
#ifndef SHK_CHECKS_UNALIGNED_H
#define SHK_CHECKS_UNALIGNED_H

#include "checks/base/check.h"

/* The row of collective.<transport>.unaligned, if it was measured. Wrong sums warn; those inside
 * symmetric windows are a note unless something shows that the job uses windows: --transport
 * nccl-window (collective.asked), a variable that asks for symmetric memory, a line of NCCL that
 * names such a kernel. `ran`: the transport gave a result, so the measurement is due. */
void shk_unaligned_row(const struct shk_check_context *ctx, struct shk_findings *findings,
                       const char *transport, bool ran);

#endif
