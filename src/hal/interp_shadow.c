#include "hal/interp_shadow.h"

#include <stdlib.h>
#include <sys/mman.h>

enum {
    BYTES_PER_CELL = 4,
    BYTES_PER_SECTOR = 32
};

/* Zeros. Only what is touched costs memory. */
static void *map_zeros(int64_t bytes)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *memory = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static void *map_cells(int64_t bytes)
{
    return map_zeros((bytes / BYTES_PER_CELL + 2) * INTERP_CELL_BYTES);
}

static bool region_make(InterpRegion *region, const InterpMemory *memory, const RuntimeTensor *tensor, bool costly)
{
    int64_t sector_bits = tensor->bytes / BYTES_PER_SECTOR / 8 + 1;
    *region = (InterpRegion){
        .start = (unsigned char *)interp_memory_buffer(memory, tensor->buffer) + tensor->offset,
        .bytes = tensor->bytes,
        .written = tensor->written,
        .costly = costly,
        .cells = tensor->written || costly ? map_cells(tensor->bytes) : NULL,
        .read_sectors = map_zeros(sector_bits),
        .written_sectors = map_zeros(sector_bits),
    };
    return (region->cells || !(tensor->written || costly)) && region->read_sectors && region->written_sectors;
}

bool interp_shadow_make(InterpHost *host, const InterpMemory *memory, const RuntimeJob *job)
{
    InterpRegion *regions = calloc((size_t)job->tensor_count + 1, sizeof *regions);
    host->shared_cells = map_cells(host->shared_limit);
    bool made = regions && host->shared_cells;
    for (int i = 0; i < job->tensor_count && made; i++)
        made = region_make(&regions[i], memory, &job->tensors[i], job->tensors[i].costly && job->lazy);
    host->regions = regions;
    host->region_count = job->tensor_count;
    return made;
}
