// The parameter block of products on tensor cores.
#include <inttypes.h>

#include "codegen/family/gemm/beside.h"
#include "codegen/family/gemm/mma.h"

// ---- operands ----

/* A function of the operand at (batch, row, k), up to the positions of its axes. */
static void emit_opening(StrBuf *out, const Scope *scope, const Product *product, int factor,
                         const char *returns, const char *more)
{
    int rows = factor ? GROUP_N : GROUP_M;
    uint32_t used = product_factor_axes(product, factor);
    strbuf_printf(
        out,
        "    static __device__ __forceinline__ %s(const Tensors &t, Index batch, Index %s, Index k%s)\n"
        "    {\n",
        returns, group_variable(rows), more);
    product_emit_positions(out, scope, product, GROUP_BATCH, "batch", used);
    product_emit_positions(out, scope, product, rows, group_variable(rows), used);
    product_emit_terms(out, scope, &product->group[GROUP_K], "k", used);
}

/* Where an element lies, if it exists. */
static void emit_source(StrBuf *out, const Scope *scope, const Product *product, int factor)
{
    const Access *access = mma_access(product->factor[factor]);
    emit_opening(out, scope, product, factor, "CopySource<Element> at", "");
    strbuf_printf(out, "        return {t.in%d + (%s), ", input_position(scope->fusion, access->tensor),
                  offset_text(out->arena, access, scope->axis));
    int bounds = product_emit_bounds(out, scope, product->guard, 0);
    bounds = product_emit_bounds(out, scope, mma_guard(product, factor), bounds);
    strbuf_puts(out, bounds ? "};\n    }\n" : "true};\n    }\n");
}

/* Where k ends in each batch: the last part of a reduction has fewer terms. Operands that are read by elements test that
   themselves: `tested` is false. */
static void emit_end_of_k(StrBuf *out, const Scope *scope, const Product *product, bool tested)
{
    strbuf_printf(out, "    static constexpr bool ENDS = %s;      // k ends earlier in some batches\n", tested ? "true" : "false");
    if (!tested) {
        strbuf_puts(out, "    static __device__ __forceinline__ Index end(Index) { return K; }\n");
        return;
    }
    Affine index = product->guard->bounds[0].index;
    index.coef[product->group[GROUP_K].axes[0]] = 0;
    strbuf_puts(out, "    static __device__ __forceinline__ Index end(Index batch)\n    {\n");
    product_emit_positions(out, scope, product, GROUP_BATCH, "batch", affine_axes(&index));
    strbuf_printf(out, "        return op_min<Index>(K, %" PRId64 " - (", product->guard->bounds[0].size);
    emit_affine(out, &index, scope->axis);
    strbuf_puts(out, "));\n    }\n");
}

static void emit_from_anywhere(StrBuf *out, const Scope *scope, const Product *product, int factor)
{
    const Access *access = mma_access(product->factor[factor]);
    strbuf_printf(out,
                  "    using Held = PieceAnywhere<Element>;\n"
                  "    static __device__ __forceinline__ Held::Last last(const Tensors &t)\n"
                  "    {\n        Held::Last piece;\n        piece.load<Index>(t.in%d, %" PRId64 ");\n"
                  "        return piece;\n    }\n",
                  input_position(scope->fusion, access->tensor), tensor_elements(access->tensor));
    emit_opening(out, scope, product, factor, "void read",
                 ", bool exists, const Held::Last &last, Held &held");
    strbuf_printf(out, "        held.load<Index>(t.in%d, %s, %" PRId64 ", exists, last);\n    }\n",
                  input_position(scope->fusion, access->tensor), offset_text(out->arena, access, scope->axis),
                  tensor_elements(access->tensor));
    emit_end_of_k(out, scope, product, product->guard != NULL);
}

static void emit_elements(StrBuf *out, const Scope *scope, const Product *product, int factor, bool along_k)
{
    const char *rows = group_variable(factor ? GROUP_N : GROUP_M), *fast = along_k ? "k" : rows;
    emit_source(out, scope, product, factor);
    strbuf_puts(out,
                "    using Held = PieceOfElements<Element>;\n"
                "    static __device__ __forceinline__ Held::Last last(const Tensors &) { return {}; }\n");
    strbuf_printf(
        out,
        "    static __device__ __forceinline__ void read(const Tensors &t, Index batch, Index %s, Index k, "
        "bool exists, const Held::Last &, Held &held)\n    {\n        UNROLL for (int e = 0; e < %d; ++e)\n"
        "            held.load(e, at(t, batch, %s%s, k%s), exists && %s + e < %s);\n    }\n",
        rows, (int)mma_piece(product), rows, along_k ? "" : " + e", along_k ? " + e" : "", fast,
        along_k  ? "K"
        : factor ? "N"
                 : "M");
    emit_end_of_k(out, scope, product, false);
}

static void emit_operand(StrBuf *out, const Scope *scope, const Product *product, int factor)
{
    Reading reading = product->reading[factor];
    strbuf_printf(out,
                  "\nstruct Operand%c {\n"
                  "    static constexpr bool ALONG_K = %s;   // k is contiguous in memory\n"
                  "    static constexpr bool PIECES = %s;    // in aligned 16-byte vectors\n",
                  "AB"[factor], reading.along_k ? "true" : "false",
                  reading.way == BY_PIECES ? "true" : "false");
    switch (reading.way) {
    case BY_PIECES: emit_source(out, scope, product, factor); break;
    case FROM_ANYWHERE: emit_from_anywhere(out, scope, product, factor); break;
    case BY_ELEMENTS: emit_elements(out, scope, product, factor, reading.along_k); break;
    }
    strbuf_puts(out, "};\n");
}

/* Bulk copies find the elements. */
static void emit_boxed_operand(StrBuf *out, const Product *product, int factor)
{
    Lines lines = product->lines[factor];
    strbuf_printf(out, "\nstruct Operand%c {\n", "AB"[factor]);
    STATIC_CONSTEXPR(out, "bool ALONG_K", "k is contiguous in memory", lines.along_k);
    STATIC_CONSTEXPR(out, "bool BATCHED", "each batch has its own", lines.batch);
    strbuf_puts(out, "};\n");
}

static void emit_operands(StrBuf *out, const Scope *scope, const Product *product, bool boxed)
{
    for (int factor = 0; factor < 2; factor++)
        if (boxed)
            emit_boxed_operand(out, product, factor);
        else
            emit_operand(out, scope, product, factor);
}

// ---- the block ----

/* Vectors of adjacent columns do not, as of planes whose phases are columns. */
static bool has_rows_side_by_side(const Fusion *fusion, const Product *product, int columns)
{
    const FusedOp *only = fusion_only_output(fusion);
    if (!only)
        return false;
    Affine offset = access_offset(&only->store);
    return axis_group_stride(&product->group[GROUP_M], &offset) == columns &&
           product_contiguous(fusion, &product->group[GROUP_N], &only->store) == columns;
}

static void emit_constants(StrBuf *out, const KernelPlan *plan, const Product *product, int columns, bool boxed,
                           bool reduces)
{
    const int64_t *block = plan->program->tile[LEVEL_SHARED].size,
                  *own = plan->program->tile[LEVEL_REGISTER].size;
    DType element = mma_element_type(product);
    strbuf_printf(out, "using Element = %s;   // of A and B\nusing Value = %s;   // of products and sums\n",
                  dtype_info[element].name, dtype_info[element].is_real ? value_type(element) : "i32");
    if (boxed)
        strbuf_printf(out, "using Kept = %s;   // the type that the sum is rounded to\n",
                      dtype_info[mma_kept_type(plan->fusion, product)].cuda);
    product_emit_sizes(out, product, block);
    if (!boxed)
        product_emit_batch(out, product, block);
    CONSTEXPR(out, "int WM, WN", boxed ? "rTile, registers of a warp group" : "rTile, registers of a warp", own[GROUP_M],
              own[GROUP_N]);
    const Atom *atom = product->atom;
    if (!boxed)
        CONSTEXPR(out, "int AM, AN, AK", "tile of one instruction", atom->m, atom->n, atom->k);
    CONSTEXPR(out, "int STAGES", "of the pipeline", plan->kind->schedule->stages);
    if (!boxed)
        CONSTEXPR(out, "int CLUSTER", "blocks of a cluster that split k", plan->program->cluster);
    CONSTEXPR(out, "Index CHAIN", "promotion interval of the accumulators, in steps",
              mma_is_cut_off(product) ? MAX_CHAIN / block[GROUP_K] : product->group[GROUP_K].extent);
    CONSTEXPR(out, "int QN", "columns of C in one aligned access", columns);
    if (boxed)
        CONSTEXPR(out, "bool SHIFTED", "rows of C are not aligned to it", mma_is_shifted(plan->fusion, product));
    CONSTEXPR(out, "bool ROWS_FIRST", "vectors of adjacent rows of C lie side by side",
              !reduces && has_rows_side_by_side(plan->fusion, product, columns));
    CONSTEXPR(out, "bool REDUCES", "rows of C are reduced, and C is not stored", reduces);
    CONSTEXPR(out, "Index PANEL", "rasterisation: tiles along m in a panel", plan->program->panel);
}

static bool is_early(const KernelPlan *plan, const Expr *factor)
{
    return plan->early[input_position(plan->fusion, mma_access(factor)->tensor)];
}

void mma_emit_early(StrBuf *out, const KernelPlan *plan, const Product *product, unsigned able)
{
    bool early[2] = {is_early(plan, product->factor[0]), is_early(plan, product->factor[1])};
    for (int s = 1; s < product->sums; s++)
        early[1] = early[1] && is_early(plan, product->more[s - 1]);
    CONSTEXPR(out, "bool EARLY_A, EARLY_B", "no launch of the program writes it", early[0] && able & 1,
              early[1] && able & 2);
}

/* C is not stored: no column of it is an access. */
static void emit_of_rows(StrBuf *out, const KernelPlan *plan, const Product *product, const ProductRows *rows, bool boxed)
{
    KernelPlan own = *plan;
    own.fusion = &rows->product;
    Scope scope = scope_of(&own);
    emit_constants(out, &own, product, 1, boxed, true);
    emit_operands(out, &scope, product, boxed);
    if (boxed)
        strbuf_puts(out, "constexpr bool BESIDE = false;\n");
    else
        beside_emit_reads(out, &scope, product, &(Beside){.fusion = scope.fusion, .apart = !boxed}, 1);
    product_rows_emit(out, &own, rows, product);
}

/* Columns of C in an access, at most `most`, so that as few lanes as possible of a warp, which stores eight rows at a time, idle
   in the epilogue. */
static int columns_of_lanes(const KernelPlan *plan, int most)
{
    const RProgram *program = plan->program;
    const int64_t *own = program->tile[LEVEL_REGISTER].size;
    int64_t rows = program->cluster > 1 ? own[GROUP_M] / program->cluster : 8, least = INT64_MAX;
    int columns = most;
    for (int c = most; c >= 1; c /= 2) {
        int64_t each = ceil_div(rows * own[GROUP_N] / c, LANES) * c;   // of a lane
        columns = each < least ? c : columns;
        least = each < least ? each : least;
    }
    return columns;
}

void mma_emit(StrBuf *out, const KernelPlan *plan, const Product *product, const ProductRows *rows, bool boxed)
{
    Scope scope = scope_of(plan);
    if (rows) {
        emit_of_rows(out, plan, product, rows, boxed);
        return;
    }
    bool shifted = boxed && mma_is_shifted(plan->fusion, product);
    int columns = shifted ? MAX_VECTOR : mma_columns(plan->fusion, product);
    if (!boxed)
        columns = columns_of_lanes(plan, columns);
    emit_constants(out, plan, product, columns, boxed, false);
    emit_operands(out, &scope, product, boxed);
    bool ahead = !boxed || (!shifted && beside_has_vectors(product->beside));
    if (boxed)
        CONSTEXPR(out, "bool BESIDE", "the epilogue loads vectors, which are prefetched", ahead);
    if (shifted) {
        product_emit_shifted(out, &scope, product);
        return;
    }
    if (!ahead && columns == 1)
        emit_finish(out, &scope, product);
    bool kept = boxed && mma_is_kept(plan->fusion, product);
    Beside beside = product->beside ? *product->beside : (Beside){.fusion = plan->fusion, .sums = product->sums};
    beside.columns = columns;
    beside.ordered = beside.apart = !boxed;
    if (ahead)
        beside_emit(out, &scope, product, &beside, columns, kept);
    else
        emit_finish_vector(out, &scope, product, columns > 1, kept, &(FinishReads){"", epilogue_axes(plan->fusion), false});
}
