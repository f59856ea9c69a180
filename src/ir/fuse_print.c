// What `-d fusion` shows.
#include <inttypes.h>

#include "ir/fuse.h"

static void tensors_print(StrBuf *out, const char *word, Tensor *const *tensors, int count)
{
    strbuf_printf(out, "    %s", word);
    for (int i = 0; i < count; i++)
        strbuf_printf(out, "%s%s:%s", i ? ", " : " ", tensors[i]->name, dtype_info[tensors[i]->dtype].name);
    strbuf_puts(out, "\n");
}

static void fused_op_print(StrBuf *out, const Fusion *fusion, int index)
{
    const FusedOp *op = &fusion->ops[index];
    strbuf_printf(out, "    v%d = ", index);
    if (op->reduce != REDUCE_NONE) {
        strbuf_printf(out, "%s[", reduce_name[op->reduce]);
        bool first = true;
        for (int a = 0; a < fusion->axis_count; a++)
            if (op->reduced >> a & 1) {
                strbuf_printf(out, "%s%s", first ? "" : ", ", fusion->axes[a].name);
                first = false;
            }
        strbuf_puts(out, "] ");
    }
    expr_print(out, op->body, fusion->axes, fusion->axis_count);
    if (op->stored) {
        strbuf_printf(out, " -> %s[", op->out->name);
        for (int d = 0; d < op->store.rank; d++) {
            strbuf_puts(out, d ? ", " : "");
            affine_print(out, &op->store.dims[d].index, fusion->axes, fusion->axis_count);
        }
        strbuf_puts(out, "]");
        if (op->out->part_of)
            strbuf_printf(out, " in %s from %" PRId64 " on", op->out->part_of->name, op->out->part_first);
    }
    strbuf_printf(out, " : %s\n", dtype_info[op->out->dtype].name);
}

void fusion_print(StrBuf *out, const Fusion *fusion)
{
    strbuf_puts(out, "    axes");
    for (int a = 0; a < fusion->axis_count; a++)
        strbuf_printf(out, "%s%s:%" PRId64 "%s", a ? ", " : " ", fusion->axes[a].name, fusion->axes[a].extent,
                      fusion->axes[a].reduction ? " (reduced)" : "");
    strbuf_puts(out, "\n");
    tensors_print(out, "reads", fusion->inputs, fusion->input_count);
    tensors_print(out, "writes", fusion->outputs, fusion->output_count);
    for (int i = 0; i < fusion->op_count; i++)
        fused_op_print(out, fusion, i);
}

void fusion_plans_print(StrBuf *out, const FusionPlans *plans)
{
    for (int p = 0; p < plans->count; p++) {
        strbuf_printf(out, "plan %s: %d kernel%s\n", plans->plans[p].name, plans->plans[p].count,
                      plans->plans[p].count == 1 ? "" : "s");
        for (int f = 0; f < plans->plans[p].count; f++) {
            strbuf_printf(out, "  kernel %d\n", f);
            fusion_print(out, plans->plans[p].fusions[f]);
        }
    }
}
