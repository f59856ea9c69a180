#include "codegen/family/family.h"

#include "base/checked.h"

int launch_threads(const Family *family, const RProgram *program, const DeviceSpec *device)
{
    return family->whole_warps ? (int)round_up(program->threads, device->warp_size) : program->threads;
}

// clang-format off
const Family *const families[] = {
    &elementwise_family,
    &permute_family,
    &matmul_family,
    &gemm_family,
    &wgmma_family,
    &skinny_family,
    &window_family,
    &reduce_family,
    &rowwise_family,
    &channelwise_family,
    &resident_family,
    &loopnest_family,
    NULL,
};
