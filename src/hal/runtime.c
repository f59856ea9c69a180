#include "hal/runtime.h"

RuntimeLimits runtime_limits(const DeviceSpec *device)
{
    return (RuntimeLimits){
        .warp_size = device->warp_size,
        .max_threads_per_block = device->max_threads_per_block,
        .static_shared_bytes = device->shared_per_block,
        .shared_bytes = device->shared_per_block_optin,
        .max_blocks_per_launch = device_most_blocks(device, 1),
        .max_threads_per_launch = device->max_threads_per_launch,
        .max_cluster_blocks = device->max_blocks_per_cluster,
        .cooperative = device->has.cooperative,
        .sm_count = device->sm_count,
        .max_threads_per_sm = device->max_threads_per_sm,
        .max_blocks_per_sm = device->max_blocks_per_sm,
        .shared_per_sm = device->shared_per_sm,
        .shared_reserved_per_block = device->shared_reserved_per_block,
    };
}
