// The parameter block of a window kernel.
#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "codegen/family/window/window_parts.h"

static void emit_constants(StrBuf *out, const KernelPlan *plan, const Stencil *stencil)
{
    const FusedOp *op = &plan->fusion->ops[0];
    const int64_t *problem = plan->program->tile[LEVEL_GLOBAL].size;
    const int64_t *block = plan->program->tile[LEVEL_SHARED].size;
    const int64_t *each = plan->program->tile[LEVEL_REGISTER].size;
    int64_t height = each[DOWN];
    strbuf_printf(out, "using Reduction = %s;\n", combiner(op->reduce));
    strbuf_printf(out, "using A = %s;   // the type of accumulators\n", value_type(op->body->type));
    CONSTEXPR(out, "Index OUTER, DOWN, ALONG", "outputs", problem[OUTER], problem[DOWN], problem[ALONG]);
    CONSTEXPR(out, "int TAPS, DOWN_TAPS, ALONG_TAPS", "of a window: the axes that do not slide, and those that do", problem[OTHER],
              problem[DOWN_TAP], problem[ALONG_TAP]);
    CONSTEXPR(out, "int THREADS", NULL, plan->threads);
    CONSTEXPR(out, "int TO, TD, TA", "threads of a block", block[OUTER], block[DOWN] / height, block[ALONG]);
    CONSTEXPR(out, "int HEIGHT", "outputs of a thread, in a column", height);
    /* Without a common reach each output has rows of its own. */
    const WindowAxis *reach = stencil_rows(stencil);
    int64_t taps = problem[DOWN_TAP];
    CONSTEXPR(out, "int ROWS, ROW_STEP, ROW_TAP_STEP",
              "under the outputs; from one output to the next, from tap to tap",
              reach ? operand_extent(&stencil->operands[0], DIRECTION_DOWN, height) : height * taps,
              reach ? reach->stride : taps, reach ? reach->dilation : 1);
    CONSTEXPR(out, "bool SAME_TERMS", "all outputs that use a row combine the same terms", reach && stencil_same_terms(stencil));
    CONSTEXPR(out, "bool SAFE_PAST_END", "terms past the last output do not read out of bounds",
              stencil_is_safe(stencil));
}

/* A block's outputs are one piece of memory: whole planes, or a part of one. */
static bool collects(const KernelPlan *plan)
{
    const int64_t *problem = plan->program->tile[LEVEL_GLOBAL].size;
    const int64_t *block = plan->program->tile[LEVEL_SHARED].size;
    return layout_region(&plan->shared, "COLLECTED")->bytes > 0 && (block[OUTER] == 1 || block[DOWN] >= problem[DOWN]);
}

static void emit_tensor_function(StrBuf *out, const char *name, const char *type, const char *tensor,
                                 int position)
{
    strbuf_printf(out, "__device__ __forceinline__ %s *%s(const Tensors &t)\n{\n", type, name);
    if (tensor)
        strbuf_printf(out, "    return t.%s%d;\n}\n", tensor, position);
    else
        strbuf_puts(out, "    return nullptr;\n}\n");
}

static void emit_stage(StrBuf *out, const KernelPlan *plan, const StagedInput *stage)
{
    const Tensor *tensor = stage->access ? stage->access->tensor : NULL;
    int64_t copies = ceil_div(layout_region(&plan->shared, "STAGED")->bytes, VECTOR_BYTES);
    strbuf_printf(out, "\n// The input that a block stages in shared memory%s.\n", tensor ? "" : ": nothing");
    CONSTEXPR(out, "bool STAGES", NULL, tensor != NULL);
    strbuf_printf(out, "using Staged = %s;\n", tensor ? memory_type(tensor->dtype) : "unsigned char");
    CONSTEXPR(out, "int COPIES", "16-byte copies of a thread", ceil_div(copies, plan->threads));
    CONSTEXPR(out, "Index PLANE", "elements from one plane to the next,", stage->plane);
    CONSTEXPR(out, "Index DOWN_STEP", "and from one row of outputs to the next", stage->down_step);
    CONSTEXPR(out, "Index BEGIN, END", "under the windows of a line", stage->low, stage->high + 1);
    emit_tensor_function(out, "staged_tensor",
                         arena_printf(out->arena, "const %s", tensor ? memory_type(tensor->dtype) : "Staged"),
                         tensor ? "in" : NULL, tensor ? input_position(plan->fusion, tensor) : 0);
    strbuf_puts(out, "struct Tile {\n    const Staged *at;\n"
                     "    Index origin;   // position in the tensor of the first element\n};\n");
}

static void emit_collection(StrBuf *out, const KernelPlan *plan)
{
    const FusedOp *op = collects(plan) ? window_collected(plan->fusion) : NULL;
    const char *type = op ? memory_type(op->out->dtype) : "unsigned char";
    strbuf_printf(out, "\n// The outputs that a block stages in shared memory%s.\n", op ? "" : ": none");
    CONSTEXPR(out, "bool COLLECTS", NULL, op != NULL);
    strbuf_printf(out, "using Collected = %s;\n", type);
    CONSTEXPR(out, "int PIECES", "16-byte vectors that a thread writes",
              ceil_div(ceil_div(layout_region(&plan->shared, "COLLECTED")->bytes, VECTOR_BYTES), plan->threads));
    emit_tensor_function(out, "collected_tensor", "Collected", op ? "out" : NULL,
                         op ? output_position(plan->fusion, op->out) : 0);
    strbuf_puts(out, "struct Collection {\n    Collected *at;\n"
                     "    Index origin;   // position in the tensor of the first element\n};\n");
}

static void emit_outer_positions(StrBuf *out, const Scope *scope)
{
    int end = scope->fusion->spatial_count - DIRECTIONS;
    emit_positions(out, "outer", scope, 0, end < 0 ? 0 : end);
}

/* By the flat outer position, where the outer axes lie in memory as they do in the grid. */
static const char *flat_text(Arena *arena, const Fusion *fusion, Affine offset, const char *const *names)
{
    const char *axis[MAX_AXES];
    memcpy(axis, names, sizeof axis);
    int last = fusion->spatial_count - DIRECTIONS - 1;
    for (int a = last; a > 0; a--)
        if (offset.coef[a - 1] != offset.coef[a] * fusion->axes[a].extent)
            return affine_text(arena, &offset, axis);
    for (int a = 0; a < last; a++)
        offset.coef[a] = 0;
    if (last >= 0)
        axis[last] = "outer";
    return affine_text(arena, &offset, axis);
}

/* Taps that are no direction's, from their flat position. */
static void emit_tap_positions(StrBuf *out, const Scope *scope, const Stencil *stencil)
{
    const Fusion *fusion = stencil->fusion;
    int64_t below = 1;
    for (int a = fusion->axis_count - 1; a >= fusion->spatial_count; a--) {
        if (a == stencil->tap[DIRECTION_DOWN] || a == stencil->tap[DIRECTION_ALONG])
            continue;
        strbuf_printf(out, "    [[maybe_unused]] const Index %s = tap", scope->axis[a]);
        if (below > 1)
            strbuf_printf(out, " / %" PRId64, below);
        strbuf_printf(out, " %% %" PRId64 ";\n", fusion->axes[a].extent);
        below *= fusion->axes[a].extent;
    }
}

/* Spelling of an operand's elements. */
typedef struct WindowRead {
    Arena *arena;
    const Scope *scope;
    const Stencil *stencil;
    const WindowOperand *operand;
    int index;           // of the operand
    bool staged;
    const char *first;   // address of its first element
} WindowRead;

/* `load(first0, p * 16)`: compilers find each address anew where only its guard's branch needs it. */
static const char *window_loaded(void *context, const Expr *expr)
{
    WindowRead *read = context;
    if (expr->kind != EXPR_ACCESS || expr->access.tensor->dtype == DTYPE_B1)
        return NULL;
    Affine first = access_offset(&expr->access), step = {0};
    for (Direction direction = 0; direction < DIRECTIONS; direction++) {
        const WindowAxis *reach = &read->operand->reach[direction];
        int axis = operand_counts_outputs(reach) ? read->stencil->axis[direction] : reach->tap;
        if (reach->output < 0)
            continue;
        step.coef[direction] = first.coef[axis];
        first.coef[axis] *= operand_counts_outputs(reach);
    }
    const Fusion *fusion = read->scope->fusion;
    const char *offset = flat_text(read->arena, fusion, first, read->scope->axis),
               *text = read->staged
                           ? arena_printf(read->arena, "tile.at + (%s - tile.origin)", offset)
                           : arena_printf(read->arena, "t.in%d + (%s)", input_position(fusion, expr->access.tensor), offset);
    if (read->first && strcmp(read->first, text))
        return NULL;
    read->first = text;
    static const char *const elements[MAX_AXES] = {"p", "q"};
    return arena_printf(read->arena, "load(first%d, %s)", read->index, affine_text(read->arena, &step, elements));
}

/* Rows in shared memory are near; loads from the tensor are under way together. */
static bool loads_rows(const Stencil *stencil, const StagedInput *stage)
{
    return stage->access && stencil_rows(stencil);
}

static void emit_leaf(StrBuf *out, const KernelPlan *plan, const Scope *scope, const Stencil *stencil,
                      const StagedInput *stage, int index)
{
    const WindowOperand *operand = &stencil->operands[index];
    const int64_t *each = plan->program->tile[LEVEL_REGISTER].size;
    Scope element = *scope;
    WindowRead read = {.arena = out->arena, .scope = scope, .stencil = stencil, .operand = operand, .index = index};
    read.staged = stage->access && operand_access(operand->expr) == stage->access;
    element.loaded = window_loaded;
    element.context = &read;
    StrBuf text = strbuf_new(out->arena);
    operand_emit(&text, stencil, operand, each[DOWN], &element);
    if (read.first)
        strbuf_printf(out, "    const auto *const first%d = %s;\n", index, read.first);
    bool by_rows = loads_rows(stencil, stage);
    if (!by_rows)
        strbuf_printf(out, "    UNROLL for (Index p = 0; p < %" PRId64 "; ++p)\n    ",
                      operand_extent(operand, DIRECTION_DOWN, each[DOWN]));
    strbuf_printf(out, "    UNROLL for (Index q = 0; q < %" PRId64 "; ++q)\n        %sin.x%d[p][q] = %s;\n",
                  operand_extent(operand, DIRECTION_ALONG, 1), by_rows ? "" : "    ", index, text.text);
}

static void emit_windows(StrBuf *out, const KernelPlan *plan, const Scope *scope, const Stencil *stencil,
                         const StagedInput *stage)
{
    const int64_t *each = plan->program->tile[LEVEL_REGISTER].size;
    strbuf_puts(out, "\n// The input under a thread's windows. What is staged is loaded row by row, else all with the first row.\nstruct Windows {\n");
    for (int i = 0; i < stencil->count; i++)
        strbuf_printf(out, "    %s x%d[%" PRId64 "][%" PRId64 "];\n",
                      value_type(stencil->operands[i].expr->type), i,
                      operand_extent(&stencil->operands[i], DIRECTION_DOWN, each[DOWN]),
                      operand_extent(&stencil->operands[i], DIRECTION_ALONG, 1));
    for (int i = 0; i < stencil->filter_count; i++)
        strbuf_printf(out, "    %s w%d[%" PRId64 "][%" PRId64 "];   // taps\n",
                      value_type(stencil->filters[i].expr->type), i, stencil->filters[i].taps[DIRECTION_DOWN],
                      stencil->filters[i].taps[DIRECTION_ALONG]);
    strbuf_puts(
        out, "};\n\n"
             "__device__ __forceinline__ void load_windows(const Tensors &t, const Tile &tile, Index outer, "
             "Index down, Index along, Index tap, int row, Windows &in)\n{\n");
    strbuf_puts(out, loads_rows(stencil, stage) ? "    const Index p = row;\n" : "    if (row > 0)\n        return;\n");
    if (stencil->count) {
        emit_outer_positions(out, scope);
        emit_tap_positions(out, scope, stencil);
    }
    for (int i = 0; i < stencil->count; i++)
        emit_leaf(out, plan, scope, stencil, stage, i);
    strbuf_puts(out, "}\n");
}

/* The taps of its channel, which all outputs of a thread meet. */
static void emit_filters(StrBuf *out, const Scope *scope, const Stencil *stencil)
{
    strbuf_putc(out, '\n');
    CONSTEXPR(out, "bool FILTERS_FIRST", "taps are loaded before the input is staged", stencil->filter_count);
    strbuf_puts(out, "__device__ __forceinline__ void load_filters(const Tensors &t, Index outer, Windows &in)\n{\n");
    if (stencil->filter_count)
        emit_outer_positions(out, scope);
    for (int i = 0; i < stencil->filter_count; i++) {
        const Filter *filter = &stencil->filters[i];
        strbuf_printf(out,
                      "    UNROLL for (int r = 0; r < %" PRId64 "; ++r)\n        UNROLL for (int s = 0; s < %" PRId64
                      "; ++s)\n            in.w%d[r][s] = %s;\n",
                      filter->taps[DIRECTION_DOWN], filter->taps[DIRECTION_ALONG], i,
                      expr_text(out->arena, scope, filter->expr));
    }
    strbuf_puts(out, "}\n");
}

static void emit_term(StrBuf *out, const Scope *scope, Stencil *stencil)
{
    Scope kept = *scope;
    kept.loaded = stencil_loaded;
    kept.context = stencil;
    if (stencil->axis[DIRECTION_DOWN] >= 0)
        kept.axis[stencil->axis[DIRECTION_DOWN]] = "(down + a)";
    begin_function(out, "The term of the thread's output a at one point of its window.",
                   "A term(const Tensors &t, Index outer, Index down, Index along, Index tap, int a, int r, int s, "
                   "const Windows &in)");
    emit_outer_positions(out, scope);
    emit_tap_positions(out, scope, stencil);
    strbuf_printf(out, "    return %s;\n}\n", expr_text(out->arena, &kept, scope->fusion->ops[0].body));
}

static void emit_finish(StrBuf *out, const KernelPlan *plan, const Scope *scope)
{
    begin_function(
        out, NULL,
        "void finish(const Tensors &t, const Collection &out, Index outer, Index down, Index along, A total)");
    emit_outer_positions(out, scope);
    emit_epilogue(out, "    ", scope, "total");
    const FusedOp *op = collects(plan) ? window_collected(plan->fusion) : NULL;
    if (op) {
        strbuf_printf(out, "    store(out.at, %s - out.origin, v%d);\n",
                      flat_text(out->arena, plan->fusion, access_offset(&op->store), scope->axis), (int)(op - plan->fusion->ops));
    } else
        emit_stores(out, "    ", scope);
    strbuf_puts(out, "}\n");
}

void window_emit(StrBuf *out, const KernelPlan *plan)
{
    const WindowView *view = plan->view;
    Stencil stencil = view->stencil;
    StagedInput stage = *(const bool *)plan->kind->choice.value ? view->stage : (StagedInput){0};
    if (!window_reads_filters_first(&stencil, &stage))
        stencil.filter_count = 0;
    Scope scope = scope_of(plan);
    scope.fusion = stencil.fusion;
    static const char *const direction_names[DIRECTIONS] = {"down", "along"}, *const tap_names[DIRECTIONS] = {
                                                                                  "r", "s"};
    for (Direction direction = 0; direction < DIRECTIONS; direction++) {
        if (stencil.axis[direction] >= 0)
            scope.axis[stencil.axis[direction]] = direction_names[direction];
        if (stencil.tap[direction] >= 0)
            scope.axis[stencil.tap[direction]] = tap_names[direction];
    }
    emit_constants(out, plan, &stencil);
    emit_stage(out, plan, &stage);
    emit_collection(out, plan);
    emit_windows(out, plan, &scope, &stencil, &stage);
    emit_filters(out, &scope, &stencil);
    emit_term(out, &scope, &stencil);
    emit_finish(out, plan, &scope);
}
