// Positions along the groups of a product, and where elements lie that are evenly apart along them: without a position along each
// axis.
#include <inttypes.h>

#include "codegen/family/gemm/product.h"

const char *group_variable(int group)
{
    static const char *const names[] = {"batch", "m", "n", "k"};
    return names[group];
}

/* So many of the group's outermost axes, or the others. */
static AxisGroup part_of(const Fusion *fusion, const AxisGroup *group, int first, int end)
{
    AxisGroup part = {.extent = 1};
    for (int i = first; i < end; i++)
        axis_group_add(&part, fusion, group->axes[i]);
    return part;
}

static void emit_term(StrBuf *out, const char *flat, int64_t stride)
{
    if (stride)
        strbuf_printf(out, stride == 1 ? "%s%s" : "%s%s * %" PRId64, out->length ? " + " : "", flat, stride);
}

/* Elements are evenly apart along all of the group, as `n * 128`; or along its inner axes and along the others, as pixels
   of planes: `n / 784 * 100352 + n % 784`. */
static bool emit_group_term(StrBuf *out, const Fusion *fusion, const AxisGroup *group, const char *flat,
                            const Affine *offset)
{
    for (int split = 0; split < group->count; split++) {
        AxisGroup outer = part_of(fusion, group, 0, split), inner = part_of(fusion, group, split, group->count);
        int64_t far = split ? axis_group_stride(&outer, offset) : 0, near = axis_group_stride(&inner, offset);
        if (!axis_group_has_stride(&inner, fusion, offset, near) ||
            (split && !axis_group_has_stride(&outer, fusion, offset, far)))
            continue;
        if (split)
            emit_term(out, arena_printf(out->arena, "%s / %" PRId64, flat, inner.extent), far);
        emit_term(out, split ? arena_printf(out->arena, "%s %% %" PRId64, flat, inner.extent) : flat, near);
        return true;
    }
    return !group->count;
}

ElementPlace product_place(Arena *arena, const Fusion *fusion, const Product *product, const Access *access,
                           const char *tensor, bool apart)
{
    static const char *const first[] = {"batch", "m0", "n0"}, *const beyond[] = {"", "down", "right"};
    StrBuf text = strbuf_new(arena), more = strbuf_new(arena);
    Affine offset = access_offset(access);
    for (int g = GROUP_BATCH; g <= GROUP_N; g++) {
        const AxisGroup *group = &product->group[g];
        int64_t stride = axis_group_stride(group, &offset);
        bool splits = apart && g != GROUP_BATCH && axis_group_has_stride(group, fusion, &offset, stride);
        if (!emit_group_term(&text, fusion, group, splits ? first[g] : group_variable(g), &offset))
            return (ElementPlace){tensor, NULL};
        emit_term(&more, beyond[g], splits ? stride : 0);
    }
    if (offset.constant || !text.length)
        strbuf_printf(&text, "%s%" PRId64, text.length ? " + " : "", offset.constant);
    if (!apart)
        return (ElementPlace){tensor, text.text};
    return (ElementPlace){arena_printf(arena, "%s + (%s)", tensor, text.text), more.length ? more.text : "0"};
}

bool product_emit_flat_elements(StrBuf *out, const Scope *scope, const Product *product)
{
    StrBuf text = strbuf_new(out->arena);
    for (int i = 0; i < scope->fusion->op_count; i++) {
        const FusedOp *op = &scope->fusion->ops[i];
        if (!op->stored)
            continue;
        const char *offset = product_place(out->arena, scope->fusion, product, &op->store, "", false).index;
        if (op->out->dtype == DTYPE_B1 || !offset)
            return false;
        strbuf_printf(&text, "        store(t.out%d, %s, v%d);\n", output_position(scope->fusion, op->out), offset, i);
    }
    strbuf_puts(out, text.text);
    return true;
}

bool product_emit_flat_stores(StrBuf *out, const Scope *scope, const Product *product, bool moved, bool apart)
{
    StrBuf text = strbuf_new(out->arena);
    for (int i = 0; i < scope->fusion->op_count; i++) {
        const FusedOp *op = &scope->fusion->ops[i];
        if (!op->stored)
            continue;
        int position = output_position(scope->fusion, op->out);
        const char *tensor = arena_printf(out->arena, "t.out%d", position);
        ElementPlace place = product_place(out->arena, scope->fusion, product, &op->store, tensor, apart);
        if (!place.index)
            return false;
        if (moved)
            strbuf_printf(&text, "    move_vector<QN>(%s + (%s), totals);\n", place.pointer, place.index);
        else
            strbuf_printf(&text, "    store_vector<QN>(%s, %s, y%d);\n", place.pointer, place.index, position);
    }
    strbuf_puts(out, text.text);
    return true;
}
