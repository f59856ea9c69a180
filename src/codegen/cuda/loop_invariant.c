#include "codegen/cuda/loop_invariant.h"

#include <string.h>

int invariants_position(const Invariants *invariants, const Access *access)
{
    Affine offset = access_offset(access);
    for (int i = 0; i < invariants->count; i++)
        if (invariants->access[i]->tensor == access->tensor &&
            memcmp(&invariants->offset[i], &offset, sizeof offset) == 0)
            return i;
    return -1;
}

Invariants invariants_find(const Fusion *fusion, uint32_t moving)
{
    Invariants invariants = {.count = 0};
    FusedAccess found[MAX_ACCESSES];
    int count = fusion_accesses(fusion, found, MAX_ACCESSES);
    for (int i = 0; i < count && invariants.count < MAX_INVARIANTS; i++) {
        const Access *access = found[i].access;
        if (found[i].fetch || found[i].guarded || access_axes(access) & moving ||
            invariants_position(&invariants, access) >= 0)
            continue;
        invariants.access[invariants.count] = access;
        invariants.offset[invariants.count++] = access_offset(access);
    }
    return invariants;
}

uint32_t invariants_axes(const Invariants *invariants)
{
    uint32_t axes = 0;
    for (int i = 0; i < invariants->count; i++)
        axes |= access_axes(invariants->access[i]);
    return axes;
}
