#include "hal/interp_shadow.h"

#include <stdlib.h>
#include <sys/mman.h>

enum {
    BYTES_PER_WORD = 4,
    BYTES_PER_SECTOR = 32
};

/* Zeros. Only what is touched costs memory. */
static void *map_zeros(int64_t bytes)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *memory = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static bool shadow_map(InterpShadow *shadow, int64_t words)
{
    shadow->words = map_zeros(words * INTERP_CELL_BYTES);
    shadow->bytes = map_zeros(words * BYTES_PER_WORD * INTERP_CELL_BYTES);
    return shadow->words && shadow->bytes;
}

static void shadow_unmap(InterpShadow *shadow, int64_t words)
{
    if (shadow->words)
        munmap(shadow->words, (size_t)(words * INTERP_CELL_BYTES));
    if (shadow->bytes)
        munmap(shadow->bytes, (size_t)(words * BYTES_PER_WORD * INTERP_CELL_BYTES));
}

bool interp_shadow_cast(InterpShadow *shadow)
{
    return shadow_map(shadow, INTERP_STRETCH_BYTES / BYTES_PER_WORD);
}

static int64_t words_of(int64_t bytes) { return bytes / BYTES_PER_WORD + 2; }

static bool region_make(InterpRegion *region, const InterpMemory *memory, const RuntimeJob *job,
                        const RuntimeTensor *tensor)
{
    bool costly = tensor->costly && job->lazy;
    int64_t sector_bits = tensor->bytes / BYTES_PER_SECTOR / 8 + 1;
    *region = (InterpRegion){
        .start = (unsigned char *)interp_memory_buffer(memory, tensor->buffer) + tensor->offset,
        .bytes = tensor->bytes,
        .written = tensor->written,
        .costly = costly,
        .read_sectors = map_zeros(sector_bits),
        .written_sectors = map_zeros(sector_bits),
    };
    if (job->lazy)
        region->opened = interp_memory_opened(memory, tensor->buffer, &region->first_page);
    if (tensor->written || costly)
        region->shadows =
            map_zeros((tensor->bytes / INTERP_STRETCH_BYTES + 1) * (int64_t)sizeof *region->shadows);
    bool mapped = region->read_sectors && region->written_sectors;
    for (int b = 0; b < INTERP_COUNTED_BLOCKS && job->counts; b++) {
        region->read_by[b] = map_zeros(sector_bits);
        region->written_by[b] = map_zeros(sector_bits);
        mapped = mapped && region->read_by[b] && region->written_by[b];
    }
    return mapped && (!(tensor->written || costly) || region->shadows);
}

bool interp_shadow_make(InterpHost *host, const InterpMemory *memory, const RuntimeJob *job)
{
    InterpRegion *regions = calloc((size_t)job->tensor_count + 1, sizeof *regions);
    bool made = regions != NULL;
    for (int i = 0; i < job->tensor_count && made; i++)
        made = region_make(&regions[i], memory, job, &job->tensors[i]);
    host->regions = regions;
    host->region_count = job->tensor_count;
    return made;
}

static void forget_region(InterpRegion *region)
{
    const int64_t words = INTERP_STRETCH_BYTES / BYTES_PER_WORD;
    for (int64_t s = 0; region->shadows && s <= region->bytes / INTERP_STRETCH_BYTES; s++) {
        shadow_unmap(&region->shadows[s], words);
        region->shadows[s] = (InterpShadow){0};
    }
}

void interp_shadow_change(InterpHost *host, const RuntimeJob *job, int first, int last, ShadowChange change)
{
    for (int i = 0; i < host->region_count; i++) {
        InterpRegion *region = &host->regions[i];
        if (job->tensors[i].buffer < first || job->tensors[i].buffer > last)
            continue;
        switch (change) {
        case SHADOW_SEAL: region->sealed = true; break;
        case SHADOW_CLOSE: region->bytes = 0; break;   // no access lies in it
        case SHADOW_FORGET: forget_region(region); break;
        }
    }
}

bool interp_shadow_make_shared(InterpHost *host, int64_t bytes, int blocks)
{
    static int64_t mapped;   // words, by the call before
    shadow_unmap(&host->shared_shadow, mapped);
    host->shared_shadow_stride = words_of(bytes);
    mapped = blocks * words_of(bytes);
    return shadow_map(&host->shared_shadow, mapped);
}
