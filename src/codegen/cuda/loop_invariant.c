#include "codegen/cuda/loop_invariant.h"

#include <string.h>

int fixed_position(const Fixed *fixed, const Access *access)
{
    Affine offset = access_offset(access);
    for (int i = 0; i < fixed->count; i++)
        if (fixed->access[i]->tensor == access->tensor &&
            memcmp(&fixed->offset[i], &offset, sizeof offset) == 0)
            return i;
    return -1;
}

Fixed fixed_find(const Fusion *fusion, uint32_t moving)
{
    Fixed fixed = {.count = 0};
    FusedAccess found[MAX_ACCESSES];
    int count = fusion_accesses(fusion, found, MAX_ACCESSES);
    for (int i = 0; i < count && fixed.count < MAX_FIXED; i++) {
        const Access *access = found[i].access;
        if (found[i].guarded || access_axes(access) & moving || fixed_position(&fixed, access) >= 0)
            continue;
        fixed.access[fixed.count] = access;
        fixed.offset[fixed.count++] = access_offset(access);
    }
    return fixed;
}

uint32_t fixed_axes(const Fixed *fixed)
{
    uint32_t axes = 0;
    for (int i = 0; i < fixed->count; i++)
        axes |= access_axes(fixed->access[i]);
    return axes;
}
