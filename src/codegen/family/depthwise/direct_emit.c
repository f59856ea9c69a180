// The parameter block of a direct kernel.
#include <inttypes.h>
#include <stdio.h>

#include "base/checked.h"
#include "codegen/cuda/expr.h"
#include "codegen/family/depthwise/direct.h"

static void emit_sizes(StrBuf *out, const Depthwise *shape)
{
    const WindowAxis *down = slide_down(shape), *along = slide_along(shape);
    CONSTEXPR(out, "Index BATCH, CHANNELS, MULTIPLIERS", "a multiplier: filters of a channel", shape->batch.extent,
              shape->channel.extent, shape->multiplier.extent);
    CONSTEXPR(out, "int DOWN, ALONG", "outputs", down->outputs, along->outputs);
    CONSTEXPR(out, "int ROWS, COLUMNS", "inputs", down->inputs, along->inputs);
    CONSTEXPR(out, "int DOWN_STEP, ALONG_STEP", NULL, down->stride, along->stride);
    CONSTEXPR(out, "Index ROW_STRIDE, COLUMN_STRIDE", "of x", down->x_stride, along->x_stride);
}

Scope direct_emit_problem(StrBuf *out, const KernelPlan *plan, const Depthwise *shape)
{
    Scope scope = scope_of(plan);
    strbuf_printf(out, "using X = %s;\n", memory_type(factor_access(shape->x)->tensor->dtype));
    strbuf_printf(out, "using A = %s;   // of products and sums\n", value_type(shape->type));
    emit_sizes(out, shape);
    return scope;
}

void direct_emit_window(StrBuf *out, const char *lead, const Depthwise *shape)
{
    const WindowAxis *down = slide_down(shape), *along = slide_along(shape);
    EMIT_CONSTANTS(out, lead, "int DOWN_TAPS, ALONG_TAPS", NULL, down->taps, along->taps);
    EMIT_CONSTANTS(out, lead, "int DOWN_DILATION, ALONG_DILATION", NULL, down->dilation, along->dilation);
    EMIT_CONSTANTS(out, lead, "int DOWN_OFFSET, ALONG_OFFSET", NULL, -down->pad, -along->pad);
}

static void emit_tiles(StrBuf *out, const KernelPlan *plan)
{
    const int64_t *block = plan->program->tile[LEVEL_SHARED].size,
                  *each = plan->program->tile[LEVEL_REGISTER].size;
    DirectWay way = direct_way(plan->kind);
    CONSTEXPR(out, "int TB, TC, BD, BA", "rTile, block", block[BATCH], block[CHANNEL], block[DOWN], block[ALONG]);
    CONSTEXPR(out, "int WIDTH", "rTile, registers", each[ALONG]);
    CONSTEXPR(out, "int THREADS", NULL, plan->threads);
    CONSTEXPR(out, "bool CHANNELS_LAST", "lanes and shared memory along channels", way.channels_last);
    CONSTEXPR(out, "int PIECE", "elements of a copy; 1: one by one", way.piece);
    CONSTEXPR(out, "bool PADDED", "some window crosses the image's border", way.padded);
}

static void emit_layout(StrBuf *out, const KernelPlan *plan)
{
    DirectLayout layout = direct_layout(plan->kind, &plan->program->tile[LEVEL_SHARED]);
    CONSTEXPR(out, "int STAGED_ROWS, STAGED_COLUMNS", "of an image, at most", layout.rows, layout.columns);
    CONSTEXPR(out, "int COLUMN_PITCH, ROW_PITCH, IMAGE_PITCH", "elements", layout.column_pitch, layout.row_pitch,
              layout.image_pitch);
    CONSTEXPR(out, "int SUM_ROW_PITCH, SUM_IMAGE_PITCH", NULL, layout.sum_row_pitch, layout.sum_image_pitch);
}

/* What all windows cover: a block copies that much of the images. */
static void emit_cover(StrBuf *out, const Windows *windows)
{
    const WindowAxis *down = slide_down(&windows->all), *along = slide_along(&windows->all);
    CONSTEXPR(out, "int WINDOWS", "filters over the same images", windows->count);
    CONSTEXPR(out, "int DOWN_FIRST, ALONG_FIRST", "of the first one: input of output 0", -down->pad,
              -along->pad);
    CONSTEXPR(out, "int DOWN_REACH", "rows from there to the end of the last one",
              (down->taps - 1) * down->dilation + 1);
}

/* The filters lie one after the other; the last window's sums where images were, the others' apart. */
static void emit_windows(StrBuf *out, const KernelPlan *plan, const Windows *windows)
{
    const int64_t *block = plan->program->tile[LEVEL_SHARED].size;
    DirectLayout layout = direct_layout(plan->kind, &plan->program->tile[LEVEL_SHARED]);
    int64_t filters_at = layout.filters_at;
    strbuf_puts(out, "\ntemplate <int> struct Window;\n");
    for (int w = 0; w < windows->count; w++) {
        const Depthwise *shape = &windows->shape[w];
        bool is_last = w == windows->count - 1;
        strbuf_printf(out, "template <> struct Window<%d> {   // %s\n", w,
                      factor_access(shape->w)->tensor->name);
        direct_emit_window(out, "    static constexpr ", shape);
        STATIC_CONSTEXPR(out, "int TAP_PITCH", "of a filter's row", direct_tap_pitch(shape));
        STATIC_CONSTEXPR(out, "int FILTERS_AT, SUMS_AT", "bytes", filters_at,
                         is_last ? 0 : layout.sums_at + w * layout.sum_bytes);
        strbuf_puts(out, "};\n");
        filters_at += block[CHANNEL] * direct_filter(shape) * plan->kind->registers.accumulator_bits / 8;
    }
}

void direct_emit_groups(StrBuf *out, const Scope *scope, const Depthwise *shape, uint32_t used)
{
    emit_group_positions(out, "    ", "summed", scope, &shape->summed, used);
    emit_group_positions(out, "    ", "batch", scope, &shape->batch, used);
    emit_group_positions(out, "    ", "channel", scope, &shape->channel, used);
    emit_group_positions(out, "    ", "multiplier", scope, &shape->multiplier, used);
}

void direct_emit_image(StrBuf *out, const Scope *scope, const Depthwise *shape)
{
    const Tensor *tensor = factor_access(shape->x)->tensor;
    Affine form = depthwise_form(&shape->x_offset, shape->x_origin, &shape->batch, &shape->channel);
    begin_function(out, "The first element of an image's first row.",
                   "const X *image(const Tensors &t, Index batch, Index channel)");
    direct_emit_groups(out, scope, shape, affine_axes(&form));
    strbuf_printf(out, "    return t.in%d + (%s);\n}\n", input_position(scope->fusion, tensor),
                  affine_text(out->arena, &form, scope->axis));
}

/* Taps are counted forwards along the image; the expression may count them backwards. */
static const char *tap_name(Arena *arena, const WindowAxis *axis, const char *name)
{
    return axis->taps_turned ? arena_printf(arena, "(%" PRId64 " - %s)", axis->taps - 1, name) : name;
}

static Scope scope_of_tap(StrBuf *out, const Scope *scope, const Depthwise *shape)
{
    static const char *const names[] = {"k", "l"};
    Scope tap = *scope;
    for (int i = 0; i < shape->image_count; i++)
        if (shape->image[i].tap >= 0)
            tap.axis[shape->image[i].tap] =
                tap_name(out->arena, &shape->image[i], names[i + 2 - shape->image_count]);
    return tap;
}

void direct_emit_tap(StrBuf *out, const char *lead, const Scope *scope, const Depthwise *shape)
{
    Scope tap = scope_of_tap(out, scope, shape);
    begin_function(
        out, NULL,
        arena_printf(out->arena, "A tap(%sconst Tensors &t, Index channel, Index multiplier, Index k, Index l)", lead));
    direct_emit_groups(out, scope, shape, expr_axes(shape->w));
    strbuf_printf(out, "    return %s;\n}\n", expr_text(out->arena, &tap, shape->w));
}

void direct_emit_tap_at(StrBuf *out, const char *lead, const Scope *scope, const Depthwise *shape)
{
    Scope tap = scope_of_tap(out, scope, shape);
    begin_function(out, "Where it lies.",
                   arena_printf(out->arena, "Index tap_at(%sIndex channel, Index multiplier, Index k, Index l)", lead));
    direct_emit_groups(out, scope, shape, expr_axes(shape->w));
    strbuf_printf(out, "    return %s;\n}\n", offset_text(out->arena, factor_access(shape->w), tap.axis));
}

void direct_emit_finish_opening(StrBuf *out, const char *why, const char *sums)
{
    const char *position = "const Tensors &t, Index batch, Index channel, Index multiplier,\n"
                           "                                       Index down, Index along";
    begin_function(out, why, arena_printf(out->arena, "void finish(%s, %s)", position, sums));
}

/* What the epilogue of adjacent outputs loads in aligned vectors. */
typedef struct Vectors {
    const Fusion *fusion;
    int axis, size;   // along which they are adjacent; elements
    const Access *access[8];   // more are read one by one
    int count;
    char text[16];
} Vectors;

static int vectors_index(const Vectors *vectors, const Expr *expr)
{
    for (int i = 0; expr->kind == EXPR_ACCESS && i < vectors->count; i++)
        if (expr->access.tensor == vectors->access[i]->tensor && expr->access.dims == vectors->access[i]->dims)
            return i;
    return -1;
}

/* An access under a guard may lie beside its tensor: it is read where it is used. */
static void find_vectors(Vectors *vectors, Expr *expr)
{
    if (expr->kind == EXPR_APPLY)
        for (int i = 0; i < op_info[expr->apply.op].operands; i++)
            find_vectors(vectors, expr->apply.operands[i]);
    if (expr->kind == EXPR_CAST)
        find_vectors(vectors, expr->cast.body);
    int most = sizeof vectors->access / sizeof *vectors->access;
    if (expr->kind != EXPR_ACCESS || expr->access.tensor->dtype == DTYPE_B1 || vectors->count == most ||
        vectors_index(vectors, expr) >= 0)
        return;
    Affine offset = access_offset(&expr->access);
    if (depthwise_are_together(vectors->fusion, &offset, vectors->axis, vectors->size) == vectors->size)
        vectors->access[vectors->count++] = &expr->access;
}

static const char *vector_element(void *context, const Expr *expr)
{
    Vectors *vectors = context;
    int index = vectors_index(vectors, expr);
    if (index < 0)
        return NULL;
    snprintf(vectors->text, sizeof vectors->text, "x%d[e]", index);
    return vectors->text;
}

static void emit_vector_loads(StrBuf *out, const Scope *scope, const Vectors *vectors)
{
    for (int i = 0; i < vectors->count; i++) {
        const Tensor *tensor = vectors->access[i]->tensor;
        strbuf_printf(out, "    %s x%d[QN];\n    load_vector<QN>(t.in%d, %s, x%d);\n",
                      value_type(dtype_info[tensor->dtype].compute), i, input_position(scope->fusion, tensor),
                      offset_text(out->arena, vectors->access[i], scope->axis), i);
    }
}

void direct_emit_finish(StrBuf *out, Scope *scope, const Depthwise *shape, int inner, int guarded)
{
    const Fusion *fusion = scope->fusion;
    Vectors vectors = {.fusion = fusion, .axis = inner, .size = guarded};
    for (int i = 1; i < fusion->op_count && guarded > 1; i++)
        find_vectors(&vectors, fusion->ops[i].body);
    direct_emit_finish_opening(out, guarded ? "The epilogue of QN outputs, which are stored where they exist."
                                            : "The epilogue of QN outputs.",
                               guarded ? "bool exists, const A (&totals)[QN]" : "const A (&totals)[QN]");
    scope->axis[shape->image[0].output] = "down";
    scope->axis[shape->image[shape->image_count - 1].output] = "along";
    const char *first = scope->axis[inner];
    emit_output_vectors(out, fusion, "QN");
    direct_emit_groups(out, scope, shape, epilogue_axes(fusion) | store_axes(fusion));
    emit_vector_loads(out, scope, &vectors);
    strbuf_puts(out, "    UNROLL for (int e = 0; e < QN; ++e) {\n");
    strbuf_printf(out, "        [[maybe_unused]] const Index own = %s + e;\n", first);
    scope->axis[inner] = "own";
    scope->loaded = vector_element;
    scope->context = &vectors;
    emit_epilogue(out, "        ", scope, "totals[e]");
    scope->loaded = NULL;
    emit_vector_elements(out, fusion);
    strbuf_puts(out, "    }\n");
    scope->axis[inner] = first;
    strbuf_puts(out, guarded ? "    if (exists) {\n" : "");
    emit_vector_stores(out, guarded ? "        " : "    ", scope);
    strbuf_puts(out, guarded ? "    }\n}\n" : "}\n");
}

/* Totals where a window makes them; everything else in the order of the expression. */
static void emit_values(StrBuf *out, const Scope *scope, const Windows *windows)
{
    for (int i = 0; i < scope->fusion->op_count; i++) {
        int w = windows_number(windows, i);
        if (w < 0)
            emit_pointwise_op(out, "    ", scope, i);
        else
            emit_reduced_op(out, "    ", scope, i, arena_printf(out->arena, "totals[%d]", w));
    }
}

static void emit_finish(StrBuf *out, const Scope *scope, const Windows *windows)
{
    const Depthwise *shape = &windows->all;
    Scope output = *scope;
    output.axis[shape->image[0].output] = "down";
    output.axis[shape->image[shape->image_count - 1].output] = "along";
    direct_emit_finish_opening(out, NULL, "const A (&totals)[WINDOWS]");
    direct_emit_groups(out, scope, shape, epilogue_axes(scope->fusion) | store_axes(scope->fusion));
    emit_values(out, &output, windows);
    emit_stores(out, "    ", &output);
    strbuf_puts(out, "}\n");
}

void direct_emit(StrBuf *out, const KernelPlan *plan)
{
    const Windows *windows = ((const DepthwiseView *)plan->view)->windows;
    Scope scope = direct_emit_problem(out, plan, &windows->all);
    emit_cover(out, windows);
    emit_tiles(out, plan);
    emit_layout(out, plan);
    emit_windows(out, plan, windows);
    direct_emit_image(out, &scope, &windows->all);
    for (int w = 0; w < windows->count; w++)
        direct_emit_tap(out, arena_printf(out->arena, "Window<%d>, ", w), &scope, &windows->shape[w]);
    emit_finish(out, &scope, windows);
}
