// The parameter block of templates/toeplitz.cu.
#include <inttypes.h>

#include "base/checked.h"
#include "codegen/cuda/expr.h"
#include "codegen/family/depthwise/toeplitz.h"

// ---- positions ----

/* The kernel's channels are those of the image, each with its multipliers. */
static AxisGroup all_channels(const Depthwise *shape)
{
    AxisGroup group = shape->channel;
    for (int i = 0; i < shape->multiplier.count; i++)
        group.axes[group.count++] = shape->multiplier.axes[i];
    group.extent *= shape->multiplier.extent;
    return group;
}

static void emit_groups(StrBuf *out, const Scope *scope, const Depthwise *shape, uint32_t used)
{
    AxisGroup channels = all_channels(shape);
    emit_group_positions(out, "    ", "channel", scope, &channels, used);
    emit_group_positions(out, "    ", "image", scope, &shape->batch, used);
}

// ---- what is read ----

/* ` + row * 32`, or nothing. */
static void emit_steps(StrBuf *out, const char *position, int64_t stride)
{
    if (!stride)
        return;
    strbuf_printf(out, " %c %s", stride < 0 ? '-' : '+', position);
    if (stride != 1 && stride != -1)
        strbuf_printf(out, " * %" PRId64, stride < 0 ? -stride : stride);
}

static void emit_input(StrBuf *out, const Scope *scope, const Toeplitz *toeplitz)
{
    const Depthwise *shape = &toeplitz->shape;
    begin_function(out, "The element at column 0 of a row of the image.",
                   "Index input_at(Index channel, Index image, Index row)");
    Affine form = depthwise_form(&shape->x_offset, shape->x_origin, &shape->batch, &shape->channel);
    emit_groups(out, scope, shape, affine_axes(&form));
    strbuf_puts(out, "    return ");
    emit_affine(out, &form, scope->axis);
    emit_steps(out, "row", toeplitz->row.x_stride);
    const Tensor *x = factor_access(shape->x)->tensor;
    strbuf_printf(
        out,
        ";\n}\n__device__ __forceinline__ const Element *input(const Tensors &t) { return t.in%d; }\n"
        "__device__ __forceinline__ Index input_size() { return %" PRId64 "; }\n",
        input_position(scope->fusion, x), tensor_elements(x));
}

static void emit_filter(StrBuf *out, const Scope *scope, const Toeplitz *toeplitz)
{
    const Depthwise *shape = &toeplitz->shape;
    strbuf_puts(
        out,
        "__device__ __forceinline__ Element filter(const Tensors &t, Index channel, Index kh, Index kw)\n{\n");
    Affine form = depthwise_form(&shape->w_offset, shape->w_origin, &shape->channel, &shape->multiplier);
    emit_groups(out, scope, shape, affine_axes(&form));
    strbuf_printf(out, "    return t.in%d[", input_position(scope->fusion, factor_access(shape->w)->tensor));
    emit_affine(out, &form, scope->axis);
    emit_steps(out, "kh", toeplitz->row.w_stride);
    emit_steps(out, "kw", toeplitz->column.w_stride);
    strbuf_puts(out, "];\n}\n");
}

// ---- what is stored ----

static void emit_finish(StrBuf *out, Scope *scope, const Toeplitz *toeplitz)
{
    const Fusion *fusion = scope->fusion;
    begin_function(
        out, "The epilogue of QN adjacent outputs.",
        "void finish(const Tensors &t, Index channel, Index image, Index row, Index first, const Value (&totals)[QN])");
    emit_output_vectors(out, fusion, "QN");
    emit_groups(out, scope, &toeplitz->shape, epilogue_axes(fusion) | store_axes(fusion));
    strbuf_puts(out, "    UNROLL for (int e = 0; e < QN; ++e) {\n"
                     "        [[maybe_unused]] const Index column = first + e;\n");
    emit_epilogue(out, "        ", scope, "totals[e]");
    emit_vector_elements(out, fusion);
    strbuf_puts(out, "    }\n");
    scope->axis[toeplitz->column.output] = "first";
    emit_vector_stores(out, "    ", scope);
    strbuf_puts(out, "}\n");
}

// ---- constants ----

/* The bits that are all ones in what is infinite or no number. */
static const char *exponent_of(DType type)
{
    return type == DTYPE_F16 ? "7c00" : type == DTYPE_BF16 ? "7f80" : "7f800000";
}

static void emit_constants(StrBuf *out, const KernelPlan *plan, const Toeplitz *toeplitz)
{
    const RTile *block = &plan->program->tile[LEVEL_SHARED], *warp = &plan->program->tile[LEVEL_REGISTER];
    const WindowAxis *row = &toeplitz->row, *column = &toeplitz->column;
    const ToeplitzWindow *window = plan->kind->choice.value;
    ToeplitzLayout layout = toeplitz_layout(window, block, warp);
    strbuf_printf(out,
                  "using Element = %s;   // of the image and the filter\n"
                  "using Value = float;   // of products and sums\n"
                  "constexpr unsigned EXPONENT = 0x%su;   // all ones: infinite or NaN\n",
                  toeplitz->atom->element, exponent_of(factor_access(toeplitz->shape.w)->tensor->dtype));
    CONSTEXPR(out, "Index CHANNELS, IMAGES", "problem", toeplitz->channels, toeplitz->images);
    CONSTEXPR(out, "int IH, IW, OH, OW", "of an image: inputs, outputs,", row->inputs, column->inputs, row->outputs,
              column->outputs);
    CONSTEXPR(out, "int KH, KW, TOP, SIDE", "taps; those of the first output out of bounds", row->taps,
              column->taps, row->pad, column->pad);
    CONSTEXPR(out, "int BI, BH, BN", "rTile, shared memory", block->size[TOEPLITZ_IMAGE], block->size[TOEPLITZ_ROW],
              window->width);
    CONSTEXPR(out, "int WI, WH", "rTile, registers of a warp: rows of images; BN columns", warp->size[TOEPLITZ_IMAGE],
              warp->size[TOEPLITZ_ROW]);
    CONSTEXPR(out, "int WARPS", "which take tiles in turn", layout.warps);
    CONSTEXPR(out, "int MIN_BLOCKS_PER_SM", "of the launch bounds",
              rprogram_least_blocks(plan->program, plan->threads));
    CONSTEXPR(out, "int LEFT", "columns in shared memory before the first output's", window->left);
    CONSTEXPR(out, "int ROW, ROWS", "16-byte vectors of a row; rows of an image", layout.row, layout.rows);
    CONSTEXPR(out, "int GROUP_PITCH, IMAGE_PITCH", "16-byte vectors", layout.group_pitch, layout.image_pitch);
    CONSTEXPR(out, "int NEAREST, DISTANCES", "of vectors of inputs from blocks of outputs", layout.nearest,
              layout.distances);
    CONSTEXPR(out, "bool HALVED", "fragments begin in the middle of a vector", layout.halved);
    CONSTEXPR(out, "int TAP_WORDS", "of a filter's row", layout.tap_words);
    CONSTEXPR(out, "bool PIECES", "rows of the image are aligned to 16 bytes",
              toeplitz_reads_pieces(toeplitz));
    CONSTEXPR(out, "int QN", "columns of outputs in one aligned access", toeplitz_vector(toeplitz, plan->fusion));
}

void toeplitz_emit(StrBuf *out, const KernelPlan *plan)
{
    const Toeplitz *toeplitz = ((const DepthwiseView *)plan->view)->toeplitz;
    Scope scope = scope_of(plan);
    if (toeplitz->row.output >= 0)
        scope.axis[toeplitz->row.output] = "row";
    scope.axis[toeplitz->column.output] = "column";
    emit_constants(out, plan, toeplitz);
    emit_input(out, &scope, toeplitz);
    emit_filter(out, &scope, toeplitz);
    emit_finish(out, &scope, toeplitz);
}
