// Positions along the groups of a product, and where elements lie that are evenly apart along them: without a position along each
// axis.
#include <inttypes.h>

#include "codegen/family/gemm/product.h"

const char *group_variable(int group)
{
    static const char *const names[] = {"batch", "m", "n", "k"};
    return names[group];
}

bool product_emit_offset(StrBuf *out, const Fusion *fusion, const Product *product, const Affine *offset)
{
    StrBuf text = strbuf_new(out->arena);
    for (int g = GROUP_BATCH; g <= GROUP_N; g++) {
        const AxisGroup *group = &product->group[g];
        int64_t stride = axis_group_stride(group, offset);
        if (group->count && !axis_group_has_stride(group, fusion, offset, stride))
            return false;
        if (!group->count || !stride)
            continue;
        strbuf_printf(&text, stride == 1 ? "%s%s" : "%s%s * %" PRId64, text.length ? " + " : "",
                      group_variable(g), stride);
    }
    if (offset->constant || !text.length)
        strbuf_printf(&text, "%s%" PRId64, text.length ? " + " : "", offset->constant);
    strbuf_puts(out, text.text);
    return true;
}

bool product_emit_flat_stores(StrBuf *out, const Scope *scope, const Product *product, bool moved)
{
    StrBuf text = strbuf_new(out->arena);
    for (int i = 0; i < scope->fusion->op_count; i++) {
        const FusedOp *op = &scope->fusion->ops[i];
        if (!op->stored)
            continue;
        int position = output_position(scope->fusion, op->out);
        Affine offset = access_offset(&op->store);
        strbuf_printf(&text, moved ? "    move_vector<QN>(t.out%d + (" : "    store_vector<QN>(t.out%d, ",
                      position);
        if (!product_emit_offset(&text, scope->fusion, product, &offset))
            return false;
        if (moved)
            strbuf_puts(&text, "), totals);\n");
        else
            strbuf_printf(&text, ", y%d);\n", position);
    }
    strbuf_puts(out, text.text);
    return true;
}
