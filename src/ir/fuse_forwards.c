#include "ir/fuse_forwards.h"

const Fusion *fusion_with_taps_forwards(Arena *arena, const Fusion *fusion)
{
    uint32_t turned = 0, forwards = 0, outputs = (1u << fusion->spatial_count) - 1;
    FusedAccess found[MAX_ACCESSES];
    for (int i = fusion_accesses(fusion, found, MAX_ACCESSES) - 1; i >= 0; i--)
        for (int d = 0; d < found[i].access->rank; d++) {
            const Affine *index = &found[i].access->dims[d].index;
            for (int a = fusion->spatial_count; a < fusion->axis_count && affine_axes(index) & outputs; a++)
                *(index->coef[a] < 0 ? &turned : &forwards) |= index->coef[a] ? 1u << a : 0;
        }
    if (!(turned &= ~forwards))
        return fusion;
    Affine forms[MAX_AXES];
    for (int a = 0; a < fusion->axis_count; a++) {
        forms[a] = affine_axis(a);
        if (turned >> a & 1)
            forms[a].coef[a] = -1, forms[a].constant = fusion->axes[a].extent - 1;
    }
    Fusion *made = fusion_copy(arena, fusion);
    for (int i = 0; i < fusion->op_count; i++)
        made->ops[i].body = expr_substitute(arena, made->ops[i].body, forms, fusion->axis_count);
    return made;
}
