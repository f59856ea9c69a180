#include "hal/interp_counts.h"

#include <string.h>
#include <sys/mman.h>

static size_t bytes_of(int tensors)
{
    return INTERP_COUNTED_BLOCKS * (sizeof(InterpCounts) + 2 * (size_t)tensors * sizeof(long long));
}

InterpCounts *interp_counts_map(int tensors)
{
    InterpCounts *counts =
        mmap(NULL, bytes_of(tensors), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (counts == MAP_FAILED)
        return NULL;
    long long *sectors = (long long *)(counts + INTERP_COUNTED_BLOCKS);
    for (int b = 0; b < INTERP_COUNTED_BLOCKS; b++) {
        counts[b].read_sectors = sectors + 2 * b * tensors;
        counts[b].written_sectors = sectors + (2 * b + 1) * tensors;
    }
    return counts;
}

static int64_t *copy_sectors(Arena *arena, const long long *sectors, int tensors)
{
    int64_t *copy = NEW_ARRAY(arena, int64_t, tensors + 1);
    for (int i = 0; i < tensors; i++)
        copy[i] = sectors[i];
    return copy;
}

RuntimeCounts *interp_counts_take(Arena *arena, InterpCounts *counts, int tensors)
{
    RuntimeCounts *taken = NEW_ARRAY(arena, RuntimeCounts, INTERP_COUNTED_BLOCKS);
    for (int b = 0; b < INTERP_COUNTED_BLOCKS; b++) {
        const InterpCounts *from = &counts[b];
        taken[b] = (RuntimeCounts){
            .shared_read = from->shared_read,
            .shared_written = from->shared_written,
            .warp_meetings = from->warp_meetings,
            .block_barriers = from->block_barriers,
            .cluster_barriers = from->cluster_barriers,
            .grid_barriers = from->grid_barriers,
            .waits = from->waits,
            .pending = from->pending,
            .additions = from->arithmetic[0],
            .multiplications = from->arithmetic[1],
            .divisions = from->arithmetic[2],
            .comparisons = from->arithmetic[3],
            .functions = from->arithmetic[4],
            .tensor_products = from->tensor_products,
            .copying_warps = __builtin_popcount(from->copying_warps),
            .multiplying_warps = __builtin_popcount(from->multiplying_warps),
            .read_sectors = copy_sectors(arena, from->read_sectors, tensors),
            .written_sectors = copy_sectors(arena, from->written_sectors, tensors),
        };
    }
    munmap(counts, bytes_of(tensors));
    return taken;
}
