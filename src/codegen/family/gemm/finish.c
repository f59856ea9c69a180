// The epilogue of products as text: of one element of C, and of vectors of a row.
#include "codegen/family/gemm/product.h"

/* Positions of C's element (batch, m, `column`). */
static void emit_positions_of_c(StrBuf *out, const Scope *scope, const Product *product, const char *column,
                                uint32_t used)
{
    for (int g = GROUP_BATCH; g <= GROUP_N; g++)
        product_emit_positions(out, scope, product, g, g == GROUP_N ? column : group_variable(g), used);
}

static const FusedOp *only_output(const Scope *scope, const Product *product)
{
    return product_only_output(scope->fusion, product);
}

/* Up to the offset of C's element (batch, m, n), and that. */
static void emit_offset(StrBuf *out, const Scope *scope, const Product *product, const char *returns)
{
    strbuf_puts(out, "    {\n");
    emit_positions_of_c(out, scope, product, "n", store_axes(scope->fusion));
    strbuf_printf(out, returns, offset_text(out->arena, &only_output(scope, product)->store, scope->axis));
    strbuf_puts(out, "    }\n}\n");
}

void product_emit_shifted(StrBuf *out, const Scope *scope, const Product *product)
{
    const FusedOp *only = only_output(scope, product);
    begin_function(out, "Elements of C before this one in the same aligned access.",
                   "int shift_of(Index batch, Index m, Index n)");
    emit_offset(out, scope, product, "        return static_cast<int>(static_cast<unsigned>(%s) %% QN);\n");
    begin_function(out, "Where an element of C lies.",
                   "Kept *place_of(const Tensors &t, Index batch, Index m, Index n)");
    strbuf_printf(out, "    Kept *const c = t.out%d;\n", output_position(scope->fusion, only->out));
    emit_offset(out, scope, product, "        return c + (%s);\n");
    begin_function(out, "Epilogue: one element of C.",
                   "Kept result(const Tensors &t, Index batch, Index m, Index n, Value total)");
    strbuf_puts(out, "    {\n");
    emit_positions_of_c(out, scope, product, "n", epilogue_axes(scope->fusion));
    emit_epilogue(out, "        ", scope, "total");
    strbuf_printf(out, "        return narrow<Kept>(v%d);\n    }\n}\n", (int)(only - scope->fusion->ops));
}

void emit_finish(StrBuf *out, const Scope *scope, const Product *product)
{
    begin_function(out, "Epilogue: one element of C.",
                   "void finish(const Tensors &t, Index batch, Index m, Index n, Value total)");
    strbuf_puts(out, "    {\n");
    StrBuf flat = strbuf_new(out->arena);
    bool is_flat = product_emit_flat_elements(&flat, scope, product);
    emit_positions_of_c(out, scope, product, "n", epilogue_axes(scope->fusion) | (is_flat ? 0 : store_axes(scope->fusion)));
    emit_epilogue(out, "        ", scope, "total");
    if (is_flat)
        strbuf_puts(out, flat.text);
    else
        emit_stores(out, "        ", scope);
    strbuf_puts(out, "    }\n}\n");
}

/* As they are: nothing else is made of them. */
static void emit_kept_store(StrBuf *out, const Scope *scope)
{
    const FusedOp *op = &scope->fusion->ops[0];
    strbuf_printf(out, "        move_vector<QN>(t.out%d + (%s), totals);\n", output_position(scope->fusion, op->out),
                  offset_text(out->arena, &op->store, scope->axis));
}

/* Of an element: of each sum QN lie together. */
static const char *total_of(Arena *arena, int sum, bool kept)
{
    const char *first = sum > 1 ? arena_printf(arena, "%d * QN + ", sum) : sum ? "QN + " : "";
    return arena_printf(arena, kept ? "widen(totals[%se])" : "totals[%se]", first);
}

static void emit_vector_results(StrBuf *out, const Scope *scope, const Product *product, bool kept,
                                uint32_t axes)
{
    const Fusion *fusion = scope->fusion;
    emit_output_vectors(out, fusion, "QN");
    strbuf_puts(out, "    UNROLL for (int e = 0; e < QN; ++e) {\n");
    if (axes & axis_group_mask(&product->group[GROUP_N]))
        strbuf_puts(out, "        const Index column = n + e;\n");
    emit_positions_of_c(out, scope, product, "column", axes);
    for (int s = 0; s < product->sums; s++)
        emit_reduced_op(out, "        ", scope, s, total_of(out->arena, s, kept));
    emit_pointwise_ops(out, "        ", scope, product->sums);
    emit_vector_elements(out, fusion);
    strbuf_puts(out, "    }\n");
}

/* The same for QN neighbours along n, stored as vectors. */
void emit_finish_vector(StrBuf *out, const Scope *scope, const Product *product, bool vector_stores,
                        bool kept, const FinishReads *reads)
{
    const Fusion *fusion = scope->fusion;
    const char *total = kept ? "widen(totals[e])" : "totals[e]";
    bool moved = kept && fusion->op_count == 1;
    const char *more = product->sums > 1 ? "JOINED * " : "";
    strbuf_printf(
        out,
        "__device__ __forceinline__ void finish_vector(const Tensors &t, Index batch, %s, "
        "const %s (&totals)[%sQN]%s)\n{\n%s",
        position_parameters(reads->apart), kept ? "Kept" : "Value", more, reads->parameters, position_opening(reads->apart));
    if (!vector_stores) {
        strbuf_printf(out,
                      "    UNROLL for (int e = 0; e < QN; ++e)\n        finish(t, batch, m, n + e, %s);\n}\n",
                      total);
        return;
    }
    if (!moved)
        emit_vector_results(out, scope, product, kept, reads->axes);
    if (product_emit_flat_stores(out, scope, product, moved, reads->apart)) {
        strbuf_puts(out, "}\n");
        return;
    }
    strbuf_puts(out, "    {\n");
    emit_positions_of_c(out, scope, product, "n", store_axes(fusion));
    if (moved)
        emit_kept_store(out, scope);
    else
        emit_vector_stores(out, "        ", scope);
    strbuf_puts(out, "    }\n}\n");
}
