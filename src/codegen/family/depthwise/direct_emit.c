// The parameter block of a direct kernel.
#include <inttypes.h>

#include "base/checked.h"
#include "codegen/cuda/expr.h"
#include "codegen/family/depthwise/direct.h"

static const char *truth(bool value) { return value ? "true" : "false"; }

static void emit_sizes(StrBuf *out, const Depthwise *shape)
{
    Slide down = slide_down(shape), along = slide_along(shape);
    strbuf_printf(out,
                  "constexpr Index BATCH = %" PRId64 ", CHANNELS = %" PRId64 ", MULTIPLIERS = %" PRId64
                  ";   // a multiplier: filters of a channel\n",
                  shape->batch.extent, shape->channel.extent, shape->multiplier.extent);
    strbuf_printf(out, "constexpr int DOWN = %" PRId64 ", ALONG = %" PRId64 ";   // outputs\n", down.outputs,
                  along.outputs);
    strbuf_printf(out, "constexpr int ROWS = %" PRId64 ", COLUMNS = %" PRId64 ";   // inputs\n", down.inputs,
                  along.inputs);
    strbuf_printf(out, "constexpr int DOWN_TAPS = %" PRId64 ", ALONG_TAPS = %" PRId64 ";\n", down.taps,
                  along.taps);
    strbuf_printf(out,
                  "constexpr int DOWN_STEP = %" PRId64 ", DOWN_DILATION = %" PRId64 ", DOWN_OFFSET = %" PRId64
                  ";\n",
                  down.step, down.dilation, down.offset);
    strbuf_printf(out,
                  "constexpr int ALONG_STEP = %" PRId64 ", ALONG_DILATION = %" PRId64
                  ", ALONG_OFFSET = %" PRId64 ";\n",
                  along.step, along.dilation, along.offset);
    strbuf_printf(out, "constexpr Index ROW_STRIDE = %" PRId64 ", COLUMN_STRIDE = %" PRId64 ";   // of x\n",
                  down.stride, along.stride);
}

Scope direct_emit_problem(StrBuf *out, const KernelPlan *plan, Depthwise *shape)
{
    depthwise_find(plan->fusion, shape);
    Scope scope = {.fusion = plan->fusion, .wide = plan->wide};
    for (int a = 0; a < plan->fusion->axis_count; a++)
        scope.axis[a] = axis_names[a];
    strbuf_printf(out, "using X = %s;\n", memory_type(factor_access(shape->x)->tensor->dtype));
    strbuf_printf(out, "using A = %s;   // of products and sums\n",
                  value_type(plan->fusion->ops[0].body->type));
    emit_sizes(out, shape);
    return scope;
}

static void emit_tiles(StrBuf *out, const KernelPlan *plan)
{
    const int64_t *block = plan->program->tile[LEVEL_SHARED].size,
                  *each = plan->program->tile[LEVEL_REGISTER].size;
    DirectWay way = direct_way(plan->rules);
    strbuf_printf(out,
                  "constexpr int TB = %" PRId64 ", TC = %" PRId64 ", BD = %" PRId64 ", BA = %" PRId64
                  ";   // rTile, block\n",
                  block[BATCH], block[CHANNEL], block[DOWN], block[ALONG]);
    strbuf_printf(out, "constexpr int WIDTH = %" PRId64 ";   // rTile, registers\n", each[ALONG]);
    strbuf_printf(out, "constexpr int THREADS = %d;\n", plan->threads);
    strbuf_printf(
        out,
        "constexpr bool CHANNELS_LAST = %s;   // lanes lie along channels, elements of shared memory too\n",
        truth(way.channels_last));
    strbuf_printf(out, "constexpr int PIECE = %d;   // elements that are copied together; 1: one by one\n",
                  way.piece);
    strbuf_printf(out, "constexpr bool PADDED = %s;   // some window reaches outside of the image\n",
                  truth(way.padded));
}

static void emit_layout(StrBuf *out, const KernelPlan *plan)
{
    DirectLayout layout = direct_layout(plan->rules, &plan->program->tile[LEVEL_SHARED]);
    strbuf_printf(out,
                  "constexpr int STAGED_ROWS = %" PRId64 ", STAGED_COLUMNS = %" PRId64
                  ";   // of an image, at most\n",
                  layout.rows, layout.columns);
    strbuf_printf(out,
                  "constexpr int COLUMN_PITCH = %" PRId64 ", ROW_PITCH = %" PRId64 ", IMAGE_PITCH = %" PRId64
                  ";   // elements\n",
                  layout.column_pitch, layout.row_pitch, layout.image_pitch);
    strbuf_printf(out, "constexpr int TAP_PITCH = %" PRId64 ";   // of a filter's row\n", layout.tap_pitch);
    strbuf_printf(out, "constexpr int SUM_ROW_PITCH = %" PRId64 ", SUM_IMAGE_PITCH = %" PRId64 ";\n",
                  layout.sum_row_pitch, layout.sum_image_pitch);
    strbuf_printf(out, "constexpr int FILTERS_AT = %" PRId64 ", SPOILT_AT = %" PRId64 ";   // bytes\n",
                  layout.filters_at, layout.spoilt_at);
}

void direct_emit_groups(StrBuf *out, const char *indent, const Scope *scope, const Depthwise *shape,
                        uint32_t used)
{
    const AxisGroup *batch = &shape->batch, *channel = &shape->channel, *multiplier = &shape->multiplier;
    emit_group_positions(out, indent, "batch", scope, batch, used);
    emit_group_positions(out, indent, "channel", scope, channel, used);
    emit_group_positions(out, indent, "multiplier", scope, multiplier, used);
}

/* Where the groups' axes lead; the image's own are left out. */
static Affine image_form(const Depthwise *shape)
{
    Affine form = {.constant = shape->x_origin};
    const AxisGroup *groups[] = {&shape->batch, &shape->channel};
    for (int g = 0; g < 2; g++)
        for (int i = 0; i < groups[g]->count; i++)
            form.coef[groups[g]->axes[i]] = shape->x_offset.coef[groups[g]->axes[i]];
    return form;
}

void direct_emit_image(StrBuf *out, const Scope *scope, const Depthwise *shape)
{
    const Tensor *tensor = factor_access(shape->x)->tensor;
    Affine form = image_form(shape);
    strbuf_puts(out,
                "\n// The first element of an image's first line.\n"
                "__device__ __forceinline__ const X *image(const Tensors &t, Index batch, Index channel)\n{\n"
                "    (void)batch, (void)channel;\n");
    direct_emit_groups(out, "    ", scope, shape, affine_axes(&form));
    strbuf_printf(out, "    return t.in%d + (", input_position(scope->fusion, tensor));
    emit_affine(out, &form, scope->axis);
    strbuf_puts(out, ");\n}\n");
}

/* Taps are counted forwards along the image; the expression may count them backwards. */
static const char *tap_name(Arena *arena, const ImageAxis *axis, const char *name)
{
    return axis->taps_turned ? arena_printf(arena, "(%" PRId64 " - %s)", axis->taps - 1, name) : name;
}

void direct_emit_tap(StrBuf *out, const Scope *scope, const Depthwise *shape)
{
    static const char *const names[] = {"k", "l"};
    Scope tap = *scope;
    for (int i = 0; i < shape->image_count; i++)
        if (shape->image[i].tap >= 0)
            tap.axis[shape->image[i].tap] =
                tap_name(out->arena, &shape->image[i], names[i + 2 - shape->image_count]);
    strbuf_puts(out, "\n__device__ __forceinline__ A tap(const Tensors &t, Index channel, Index multiplier, "
                     "Index k, Index l)"
                     "\n{\n    (void)channel, (void)multiplier, (void)k, (void)l;\n");
    direct_emit_groups(out, "    ", scope, shape, expr_axes(shape->w));
    strbuf_puts(out, "    return ");
    emit_expr(out, &tap, shape->w);
    strbuf_puts(out, ";\n}\n");
}

static void emit_finish(StrBuf *out, const Scope *scope, const Depthwise *shape)
{
    Scope output = *scope;
    output.axis[shape->image[0].output] = "down";
    output.axis[shape->image[shape->image_count - 1].output] = "along";
    strbuf_puts(out, "\n__device__ __forceinline__ void finish(const Tensors &t, Index batch, Index channel, "
                     "Index multiplier,\n"
                     "                                       Index down, Index along, A total)\n{\n"
                     "    (void)batch, (void)channel, (void)multiplier, (void)down, (void)along;\n");
    direct_emit_groups(out, "    ", scope, shape, epilogue_axes(scope->fusion) | store_axes(scope->fusion));
    emit_epilogue(out, "    ", &output, "total");
    emit_stores(out, "    ", &output);
    strbuf_puts(out, "}\n");
}

void direct_emit(StrBuf *out, const KernelPlan *plan)
{
    Depthwise shape;
    Scope scope = direct_emit_problem(out, plan, &shape);
    emit_tiles(out, plan);
    emit_layout(out, plan);
    direct_emit_image(out, &scope, &shape);
    direct_emit_tap(out, &scope, &shape);
    emit_finish(out, &scope, &shape);
}
