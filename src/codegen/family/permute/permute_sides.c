#include "codegen/family/permute/permute_parts.h"

#include <string.h>

#include "rtile/space.h"

enum { MAX_READS = 32 };   // of a fusion that is looked at; a permutation has few

/* Pointwise, and every output dense in the order of the axes. */
static bool stores_in_order(const Fusion *fusion)
{
    for (int i = 0; i < fusion->op_count; i++) {
        const FusedOp *op = &fusion->ops[i];
        if (op->reduce != REDUCE_NONE ||
            (op->stored && (op->out->dtype == DTYPE_B1 || !access_is_flat(&op->store, fusion))))
            return false;
    }
    return true;
}

/* The axis along which the access is contiguous; -1: there is none. */
static int unit_axis(const Fusion *fusion, const Affine *offset)
{
    for (int a = 0; a < fusion->spatial_count; a++)
        if (offset->coef[a] == 1)
            return a;
    return -1;
}

/* Nothing is computed: elements move as they are. */
static bool is_pure_move(const Fusion *fusion, const Access *access)
{
    return fusion->op_count == 1 && fusion->ops[0].body->kind == EXPR_ACCESS &&
           fusion->ops[0].out->dtype == access->tensor->dtype;
}

/* Elements move as they are, and the output is longer than the input along an axis, by zeros. */
static bool find_bound(const Fusion *fusion, Permute *permute)
{
    const Expr *body = fusion->ops[0].body;
    if (fusion->op_count != 1 || body->kind != EXPR_GUARD || body->guard.count != 1 || !expr_is_zero(body->guard.otherwise) ||
        body->guard.body->kind != EXPR_ACCESS || fusion->ops[0].out->dtype != body->guard.body->access.tensor->dtype)
        return false;
    permute->bound = body->guard.bounds[0];
    for (int a = 0; a < fusion->spatial_count; a++) {
        Affine axis = affine_axis(a);
        if (affine_equal(&axis, &permute->bound.index))
            return true;
    }
    return false;
}

/* The one input that is not read in the order of the output. */
static bool find_access(const Fusion *fusion, Permute *permute)
{
    FusedAccess found[MAX_READS];
    int count = fusion_accesses(fusion, found, MAX_READS), inner = fusion->spatial_count - 1;
    for (int i = 0; i < count; i++) {
        Affine offset = access_offset(found[i].access);
        if (offset.coef[inner] == 0 || offset.coef[inner] == 1)
            continue;
        bool another = permute->access && (permute->access->tensor != found[i].access->tensor ||
                                           !affine_equal(&permute->source, &offset));
        if ((found[i].guarded && !find_bound(fusion, permute)) || found[i].access->tensor->dtype == DTYPE_B1 || another ||
            unit_axis(fusion, &offset) < 0)
            return false;
        permute->access = found[i].access;
        permute->source = offset;
    }
    return permute->access && count < MAX_READS;
}

/* Further out than those that it has. */
static void side_add(AxisGroup *side, const Fusion *fusion, int axis)
{
    memmove(side->axes + 1, side->axes, sizeof(int) * (size_t)side->count);
    side->axes[0] = axis;
    side->count++;
    side->extent *= fusion->axes[axis].extent;
}

static bool side_has(const AxisGroup *side, int axis) { return axis_group_mask(side) >> axis & 1; }

/* The side with the next axis of its tensor, if that is free and the side stays contiguous. */
static bool side_extend(AxisGroup *side, const AxisGroup *other, const Fusion *fusion, const Affine *offset)
{
    for (int a = 0; a < fusion->spatial_count; a++)
        if (offset->coef[a] == side->extent && !side_has(side, a)) {
            if (!side_has(other, a))
                side_add(side, fusion, a);
            return !side_has(other, a);
        }
    return false;
}

static void find_sides(const Fusion *fusion, Permute *permute)
{
    AxisGroup *rows = &permute->side[ROWS], *columns = &permute->side[COLUMNS];
    for (int s = 0; s < SIDE_COUNT; s++)
        permute->side[s] = (AxisGroup){.extent = 1};
    side_add(rows, fusion, unit_axis(fusion, &permute->source));
    side_add(columns, fusion, fusion->spatial_count - 1);
    for (bool grown = true; grown;) {   // an axis that both could take goes to the shorter one
        bool short_rows = rows->extent * permute->element_bytes < LINE_BYTES;
        bool short_columns = columns->extent * permute->widest_bytes < LINE_BYTES;
        bool rows_first = rows->extent <= columns->extent;
        grown = false;
        if (short_rows && (rows_first || !short_columns))
            grown = side_extend(rows, columns, fusion, &permute->source);
        if (short_columns && !grown)
            grown = side_extend(columns, rows, fusion, &permute->target);
        if (short_rows && !grown)
            grown = side_extend(rows, columns, fusion, &permute->source);
    }
    for (int a = fusion->spatial_count - 1; a >= 0; a--)
        if (!side_has(rows, a) && !side_has(columns, a))
            side_add(&permute->side[OUTER], fusion, a);
}

bool permute_find(const Fusion *fusion, Permute *permute)
{
    *permute = (Permute){.target = flat_position(fusion)};
    if (fusion->spatial_count < 2 || fusion->spatial_count != fusion->axis_count ||
        !stores_in_order(fusion) || !find_access(fusion, permute))
        return false;
    permute->element_bytes = permute->widest_bytes = dtype_info[permute->access->tensor->dtype].bits / 8;
    for (int i = 0; i < fusion->output_count; i++)
        if (dtype_info[fusion->outputs[i]->dtype].bits / 8 > permute->widest_bytes)
            permute->widest_bytes = dtype_info[fusion->outputs[i]->dtype].bits / 8;
    permute->moves = is_pure_move(fusion, permute->access);
    find_sides(fusion, permute);
    return !permute->bound.size || affine_axes(&permute->bound.index) & axis_group_mask(&permute->side[COLUMNS]);
}
