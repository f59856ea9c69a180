#include "codegen/family/gemm/beside.h"

#include <stdio.h>
#include <string.h>

// ---- structure ----

static int index_of(const Beside *beside, const Expr *expr)
{
    for (int i = 0; expr->kind == EXPR_ACCESS && i < beside->count; i++)
        if (expr->access.tensor == beside->access[i]->tensor && expr->access.dims == beside->access[i]->dims)
            return i;
    return -1;
}

typedef struct VectorSearch {
    Beside *beside;
    const Product *product;
    int columns;
} VectorSearch;

static void visit(Expr *expr, void *context)
{
    VectorSearch *search = context;
    Beside *beside = search->beside;
    if (expr->kind != EXPR_ACCESS || expr->access.tensor->dtype == DTYPE_B1 || beside->count == MAX_BESIDE ||
        index_of(beside, expr) >= 0)
        return;
    Affine offset = access_offset(&expr->access);
    if (!product_has_vectors(beside->fusion, &search->product->group[GROUP_N], &offset, search->columns))
        return;
    uint32_t rows = axis_group_mask(&search->product->group[GROUP_M]) |
                    axis_group_mask(&search->product->group[GROUP_BATCH]);
    beside->of_rows[beside->count] = access_axes(&expr->access) & rows;
    beside->access[beside->count++] = &expr->access;
}

/* An access under a guard may lie beside its tensor: it is read where it is used. */
static void visit_unguarded(Expr *expr, VectorSearch *search)
{
    if (expr->kind == EXPR_APPLY)
        for (int i = 0; i < op_info[expr->apply.op].operands; i++)
            visit_unguarded(expr->apply.operands[i], search);
    else if (expr->kind == EXPR_CAST)
        visit_unguarded(expr->cast.body, search);
    else
        visit(expr, search);
}

Beside beside_find(const Fusion *fusion, const Product *product, int columns)
{
    Beside beside = {.fusion = fusion, .columns = columns, .sums = product->sums};
    VectorSearch search = {&beside, product, columns};
    for (int i = product->sums; i < fusion->op_count; i++)
        visit_unguarded(fusion->ops[i].body, &search);
    return beside;
}

Beside beside_in_vectors(const Fusion *fusion, const Product *product, int columns)
{
    Beside vectors = {.fusion = fusion, .columns = columns, .sums = product->sums};
    for (int i = 0; product->beside && i < product->beside->count; i++) {
        const Access *access = product->beside->access[i];
        Affine offset = access_offset(access);
        if (!product_has_vectors(fusion, &product->group[GROUP_N], &offset, columns))
            continue;
        vectors.of_rows[vectors.count] = product->beside->of_rows[i];
        vectors.access[vectors.count++] = access;
    }
    return vectors;
}

// ---- text ----

/* Elements of 16 bits and less as they lie in memory. */
static bool is_held(const Access *access, int columns)
{
    return dtype_info[access->tensor->dtype].bits * columns <= 8 * VECTOR_BYTES;
}

/* Whole words of such elements are held as words. */
static bool is_packed(const Access *access, int columns)
{
    int bits = dtype_info[access->tensor->dtype].bits;
    return bits <= WORD_BITS && bits * columns % WORD_BITS == 0;
}

static void emit_member(StrBuf *out, const Beside *beside, int index, int columns)
{
    DType type = beside->access[index]->tensor->dtype;
    if (is_packed(beside->access[index], columns)) {
        strbuf_printf(out, "    Packed<%s, QN> x%d;\n", memory_type(type), index);
        return;
    }
    strbuf_printf(out, "    %s x%d[QN];\n",
                  is_held(beside->access[index], columns) ? memory_type(type)
                                                          : value_type(dtype_info[type].compute),
                  index);
}

static void emit_read(StrBuf *out, const Scope *scope, const Product *product, const Beside *beside,
                      int index, int columns)
{
    const Access *access = beside->access[index];
    bool ordered = beside->ordered && beside->of_rows[index];
    const char *tensor = arena_printf(out->arena, "t.in%d", input_position(scope->fusion, access->tensor));
    ElementPlace place = product_place(out->arena, scope->fusion, product, access, tensor, beside->apart && beside->of_rows[index]);
    const char *offset = place.index ? place.index : offset_text(out->arena, access, scope->axis);
    if (is_packed(access, columns))
        strbuf_printf(out, "    %s(%s, %s, beside.x%d);\n", ordered ? "stream_packed" : "load_packed", place.pointer, offset,
                      index);
    else if (columns == 1 && ordered)
        strbuf_printf(out, "    beside.x%d[0] = stream_global(%s + (%s));\n", index, place.pointer, offset);
    else if (is_held(access, columns))
        strbuf_printf(out, "    move_vector<QN>(beside.x%d, %s + (%s));\n", index, place.pointer, offset);
    else
        strbuf_printf(out, "    load_vector<QN>(%s, %s, beside.x%d);\n", place.pointer, offset, index);
}

typedef struct Spelling {
    const Beside *beside;
    char text[32];
} Spelling;

static const char *loaded(void *context, const Expr *expr)
{
    Spelling *spelling = context;
    int index = index_of(spelling->beside, expr);
    if (index < 0)
        return NULL;
    const Beside *beside = spelling->beside;
    snprintf(spelling->text, sizeof spelling->text,
             is_packed(beside->access[index], beside->columns) ? "%s.x%d[e]" : "widen(%s.x%d[e])",
             beside->of_rows[index] ? "beside" : "columns", index);
    return spelling->text;
}

static bool is_read(const void *beside, const Expr *expr) { return index_of(beside, expr) >= 0; }

/* Axes whose positions an element needs when those vectors are there. */
static uint32_t axes_left(const Beside *beside)
{
    uint32_t axes = 0;
    for (int i = beside->sums; i < beside->fusion->op_count; i++)
        axes |= expr_axes_left(beside->fusion->ops[i].body, is_read, beside);
    return axes;
}

/* Positions along axes that a read needs whose elements lie unevenly apart. */
static uint32_t uneven_axes(Arena *arena, const Scope *scope, const Product *product, const Beside *beside,
                            bool of_rows)
{
    uint32_t axes = 0;
    for (int i = 0; i < beside->count; i++)
        if (beside->of_rows[i] == of_rows && !product_place(arena, scope->fusion, product, beside->access[i], "", false).index)
            axes |= access_axes(beside->access[i]);
    return axes;
}

static bool has_part(const Beside *beside, bool of_rows)
{
    for (int i = 0; i < beside->count; i++)
        if (beside->of_rows[i] == of_rows)
            return true;
    return false;
}

/* A struct of all that is of rows, or of all that is not, and the function that reads it. */
static void emit_part(StrBuf *out, const Scope *scope, const Product *product, const Beside *beside,
                      int columns, bool of_rows)
{
    const char *type = of_rows ? "Beside" : "Columns", *reader = of_rows ? "read_beside" : "read_columns";
    bool apart = beside->apart && of_rows;
    if (!has_part(beside, of_rows)) {
        strbuf_printf(out,
                      "struct %s {};\n"
                      "__device__ __forceinline__ void %s(const Tensors &, Index, Index, Index%s, %s &) {}\n",
                      type, reader, apart ? ", Index, Index" : "", type);
        return;
    }
    strbuf_printf(out, "struct %s {\n", type);
    for (int i = 0; i < beside->count; i++)
        if (beside->of_rows[i] == of_rows)
            emit_member(out, beside, i, columns);
    strbuf_printf(
        out,
        "};\n__device__ __forceinline__ void %s(const Tensors &t, Index batch, %s, %s &beside)\n{\n%s",
        reader, position_parameters(apart), type, position_opening(apart));
    uint32_t axes = uneven_axes(out->arena, scope, product, beside, of_rows);
    for (int g = GROUP_BATCH; g <= GROUP_N; g++)
        emit_group_positions(out, "    ", group_variable(g), scope, &product->group[g], axes);
    for (int i = 0; i < beside->count; i++)
        if (beside->of_rows[i] == of_rows)
            emit_read(out, scope, product, beside, i, columns);
    strbuf_puts(out, "}\n");
}

void beside_emit_reads(StrBuf *out, const Scope *scope, const Product *product, const Beside *beside,
                       int columns)
{
    strbuf_puts(out, "\n// What the epilogue loads besides the sums of QN columns of a row: per row, and per "
                     "column.\n");
    emit_part(out, scope, product, beside, columns, true);
    emit_part(out, scope, product, beside, columns, false);
}

void beside_emit(StrBuf *out, const Scope *scope, const Product *product, const Beside *beside, int columns,
                 bool kept)
{
    beside_emit_reads(out, scope, product, beside, columns);
    Scope own = *scope;
    own.loaded = loaded;
    own.context = &(Spelling){.beside = beside};
    FinishReads reads = {", const Beside &beside, const Columns &columns", axes_left(beside), beside->apart};
    emit_finish_vector(out, &own, product, true, kept, &reads);
}
