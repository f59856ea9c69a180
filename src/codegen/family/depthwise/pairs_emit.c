// The parameter block of templates/pairs.cu.

#include "base/checked.h"
#include "codegen/family/depthwise/pairs.h"

static void emit_tiles(StrBuf *out, const KernelPlan *plan, const PairsWay *way)
{
    const int64_t *block = plan->program->tile[LEVEL_SHARED].size;
    const FusedOp *op = &plan->fusion->ops[0];
    CONSTEXPR(out, "int TB, TC, BD, BA", "rTile, block", block[BATCH], block[CHANNEL], block[DOWN], block[ALONG]);
    CONSTEXPR(out, "int PAIRS", "rTile, registers: of channels, of a warp", way->pairs);
    CONSTEXPR(out, "int THREADS, MIN_BLOCKS_PER_SM", "of the launch bounds", plan->threads,
              rprogram_least_blocks(plan->program, plan->threads));
    CONSTEXPR(out, "int RING", "rows of the input in shared memory", PAIRS_RING);
    strbuf_printf(out, "using Staged = %s;   // the type of staged sums\n",
                  way->staged_bits == 16 ? memory_type(op->out->dtype) : "float");
    CONSTEXPR(out, "int QN", "channels in one aligned access of outputs", way->stored);
}

/* Sums that are outputs already. */
static void emit_plain_finish(StrBuf *out, Scope *scope, const Depthwise *shape)
{
    const FusedOp *op = &scope->fusion->ops[0];
    Affine offset = access_offset(&op->store);
    scope->axis[shape->image[0].output] = "down";
    scope->axis[shape->image[shape->image_count - 1].output] = "along";
    strbuf_puts(out, "\n__device__ __forceinline__ void finish(const Tensors &t, Index batch, Index channel, Index "
                     "multiplier,\n"
                     "                                       Index down, Index along, const Staged (&sums)[QN])\n{\n"
                     "    (void)batch, (void)channel, (void)multiplier, (void)down, (void)along;\n");
    direct_emit_groups(out, "    ", scope, shape, store_axes(scope->fusion));
    strbuf_printf(out, "    move_vector<QN>(t.out%d + (", output_position(scope->fusion, op->out));
    emit_affine(out, &offset, scope->axis);
    strbuf_puts(out, "), sums);\n}\n");
}

void pairs_emit(StrBuf *out, const KernelPlan *plan)
{
    const Depthwise *shape = ((const DepthwiseView *)plan->view)->sum;
    const PairsWay *way = plan->kind->choice.value;
    Scope scope = direct_emit_problem(out, plan, shape);
    direct_emit_window(out, "constexpr ", shape);
    emit_tiles(out, plan, way);
    direct_emit_image(out, &scope, shape);
    direct_emit_tap(out, "", &scope, shape);
    if (way->staged_bits == 16)
        emit_plain_finish(out, &scope, shape);
    else
        direct_emit_finish(out, &scope, shape, axis_group_innermost(&shape->channel));
}
