// What a vector of a row reads: straight from memory, or from the row's copy in shared memory.
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "codegen/family/rows/rowwise_parts.h"
#include "rtile/space.h"

enum {
    LEAST_MASKED = 4      // elements of a vector: below it branches around them cost more than they save
};

/* Where the thread's vector k lies in the copy of row r. */
#define COPY_OF_VECTOR                                                                                       \
    "    SHARED(COPIES, Copy, copies, [ROWS_TOGETHER]);\n"                                                      \
    "    const int place = (int)threadIdx.x * VECTOR + k * PLACES;\n"

static const char *const kind_name[] = {"in", "weights"}, *const kind_type[] = {"Inputs", "Weights"};

/* Bit i: read i. */
static uint64_t reads_of(const RowEmitter *row, ReadKind kind)
{
    uint64_t weights = rowwise_weights(&row->reads), all = (UINT64_C(1) << row->reads.count) - 1;
    return kind == READ_WEIGHTS ? weights : all & ~weights;
}

const char *rowwise_loaded(void *context, const Expr *expr)
{
    RowEmitter *row = context;
    int index = expr->kind == EXPR_ACCESS ? reads_index(&row->reads, &expr->access) : -1;
    if (index < 0)
        return NULL;
    snprintf(row->text, sizeof row->text, "%s.x%d[e]", kind_name[rowwise_is_weight(&row->reads, index)],
             index);
    return row->text;
}

// ---- what a comparison of positions masks ----

typedef struct ConditionSearch {
    const Fusion *fusion;
    const Read *read;
    Expr *condition;
    int reads, guarded;   // occurrences of the read; those that a select with `condition` chooses
} ConditionSearch;

/* Larger sums might wrap, or products of factors. */
enum { LARGEST_SUM = 1 << 30, LARGEST_FACTOR = 1 << 20 };

static bool is_integer_constant(const Expr *expr, int64_t largest)
{
    return expr->kind == EXPR_CONST && !dtype_info[expr->type].is_real && expr->constant.integer <= largest &&
           expr->constant.integer >= -largest;
}

/* Adds `factor` times a sum of multiples of positions to `sum`. */
static bool add_positions(const Expr *expr, int64_t factor, Affine *sum)
{
    Op op = expr->kind == EXPR_APPLY ? expr->apply.op : OP_NEG;
    Expr *const *operands = expr->apply.operands;
    if (is_integer_constant(expr, LARGEST_SUM)) {
        sum->constant += factor * expr->constant.integer;
        return true;
    }
    if (expr->kind == EXPR_INDEX && !dtype_info[expr->type].is_real) {
        for (int a = 0; a < MAX_AXES; a++)
            sum->coef[a] += factor * expr->index.coef[a];
        sum->constant += factor * expr->index.constant;
        return true;
    }
    if (op == OP_ADD || op == OP_SUB)
        return add_positions(operands[0], factor, sum) &&
               add_positions(operands[1], op == OP_ADD ? factor : -factor, sum);
    for (int i = 0; i < 2 && op == OP_MUL && (factor == 1 || factor == -1); i++)
        if (is_integer_constant(operands[i], LARGEST_FACTOR))
            return add_positions(operands[1 - i], factor * operands[i]->constant.integer, sum);
    return false;
}

static bool is_small(const Affine *sum, const Fusion *fusion)
{
    int64_t extents[MAX_AXES], low, high;
    for (int a = 0; a < fusion->axis_count; a++)
        extents[a] = fusion->axes[a].extent;
    return affine_range(sum, extents, fusion->axis_count, &low, &high) && low >= -LARGEST_SUM &&
           high <= LARGEST_SUM;
}

/* Compares sums of positions: `difference` is the right one less the left one. */
static bool compares_positions(const Expr *expr, const Fusion *fusion, Affine *difference)
{
    *difference = (Affine){0};
    if (expr->kind != EXPR_APPLY || expr->apply.op < OP_LT || expr->apply.op > OP_GE)
        return false;
    for (int side = 0; side < 2; side++) {
        Affine sum = {0};
        if (!add_positions(expr->apply.operands[side], 1, &sum) || !is_small(&sum, fusion) ||
            !add_positions(expr->apply.operands[side], side ? 1 : -1, difference))
            return false;
    }
    return true;
}

static void occurrence_visit(Expr *expr, void *context)
{
    ConditionSearch *search = context;
    if (expr->kind == EXPR_ACCESS && expr->access.tensor == search->read->access->tensor)
        search->reads++;
}

static void condition_visit(Expr *expr, void *context)
{
    ConditionSearch *search = context;
    occurrence_visit(expr, context);
    Affine difference;
    if (expr->kind != EXPR_APPLY || expr->apply.op != OP_SELECT ||
        !compares_positions(expr->apply.operands[0], search->fusion, &difference))
        return;
    ConditionSearch inner = {.read = search->read};
    expr_visit(expr->apply.operands[1], occurrence_visit, &inner);
    if (inner.reads && !search->guarded)
        search->condition = expr->apply.operands[0];
    search->guarded += inner.reads;
    search->guarded = inner.reads && search->condition != expr->apply.operands[0] ? INT_MIN : search->guarded;
}

/* The comparison of positions without which no element of the read matters, as in `select(j <= i, x[i, j],
   -inf)`. What is the same for every row is read once for several of them, whose positions differ. */
static Expr *condition_of(const Reads *reads, int index)
{
    const Fusion *fusion = reads->walk.fusion;
    ConditionSearch search = {.fusion = fusion, .read = &reads->reads[index]};
    for (int i = 0; i < fusion->op_count; i++)
        expr_visit(fusion->ops[i].body, condition_visit, &search);
    uint32_t others = search.condition ? expr_axes(search.condition) & ~fusion_columns(fusion) : 0;
    bool is_shared = others && rowwise_is_weight(reads, index);
    return search.reads == search.guarded && !is_shared ? search.condition : NULL;
}

/* The vector has no element for which `condition` holds, so that its value does not depend on which one it
   is. */
static bool is_same_beyond(const Fusion *fusion, const Expr *expr, const Expr *condition)
{
    uint32_t columns = fusion_columns(fusion);
    switch (expr->kind) {
    case EXPR_INDEX: return (affine_axes(&expr->index) & columns) == 0;
    case EXPR_ACCESS: return (access_axes(&expr->access) & columns) == 0;
    case EXPR_FETCH:
    case EXPR_GUARD: return false;
    default: break;   // a value of elements has been looked at, too
    }
    const Expr *child;
    bool is_mask = expr_is(expr, OP_SELECT) && expr->apply.operands[0] == condition, same = true;
    for (int i = is_mask ? 2 : 0; same && (child = expr_child(expr, i)); i++)
        same = is_same_beyond(fusion, child, condition);
    return same;
}

Expr *rowwise_mask(const Reads *reads, RowVariant variant)
{
    const Fusion *fusion = reads->walk.fusion;
    Expr *condition = NULL;
    bool is_worth = rowwise_softmax_type(fusion) != DTYPE_F32 || variant.home != ROW_IN_MEMORY;
    if (reads->walk.vector < LEAST_MASKED || !is_worth)
        return NULL;
    for (int i = 0; i < reads->count && !condition; i++)
        if (reads->reads[i].pattern == PATTERN_ROW)
            condition = condition_of(reads, i);
    for (int i = 0; i < fusion->op_count && condition; i++)
        if (!is_same_beyond(fusion, fusion->ops[i].body, condition))
            return NULL;
    return condition;
}

const char *rowwise_condition_text(const RowEmitter *row, Expr *condition, bool all)
{
    int inner = row->fusion->axis_count - 1;
    bool is_less = condition->apply.op == OP_LT || condition->apply.op == OP_LE;
    Affine difference;
    compares_positions(condition, row->fusion, &difference);
    Scope scope = row->first;
    if (((difference.coef[inner] > 0) == is_less) != all)
        scope.axis[inner] = arena_printf(row->out->arena, "(%s + VECTOR - 1)", row->first.axis[inner]);
    return arena_printf(row->out->arena, "(%s)", expr_text(row->out->arena, &scope, condition));
}

static void emit_condition(const RowEmitter *row, int index)
{
    Expr *condition = condition_of(&row->reads, index);
    if (condition)
        strbuf_printf(row->out, "    if %s\n    ", rowwise_condition_text(row, condition, false));
}

// ---- device code ----

/* Of the loop over a thread's vectors. Unrolled it asks of only the first and the last of them whether they
   lie inside the row (tuning-log 30). */
const char *rowwise_unrolling(const RowEmitter *row)
{
    int64_t vectors = rowwise_vectors(row->fusion, row->shape, row->variant.group);
    return rowwise_keeps(row->variant.home) || vectors <= ROWWISE_MOST_UNROLLED ? "UNROLL" : "UNROLL_4";
}

/* Of a vector that begins at `at`; only axes in `used`. */
static void emit_place(const RowEmitter *row, uint32_t used)
{
    int spatial = row->fusion->spatial_count;
    rowwise_emit_positions(row->out, "    ", "row", &row->first, 0, spatial, used);
    rowwise_emit_positions(row->out, "    ", "at", &row->first, spatial, row->fusion->axis_count, used);
}

void rowwise_emit_positions(StrBuf *out, const char *indent, const char *flat, const Scope *scope, int first,
                            int end, uint32_t used)
{
    if (end > first && strcmp(scope->axis[first], flat) != 0)
        emit_used_positions(out, indent, flat, scope, first, end, used);
}

/* How one vector of a read is copied. */
static void emit_copy(const RowEmitter *row, int index)
{
    const Read *read = &row->reads.reads[index];
    emit_condition(row, index);
    strbuf_printf(row->out, "    %s<VECTOR>(%scopies[r].x%d + place, t.in%d, ", row->shape.unaligned ? "copy_inside" : "copy_async",
                  row->shape.unaligned ? "whole, " : "", index, input_position(row->fusion, read->access->tensor));
    emit_affine(row->out, &read->offset, row->first.axis);
    if (row->shape.unaligned)
        strbuf_printf(row->out, ", Index(%" PRId64 ")", tensor_elements(read->access->tensor));
    strbuf_puts(row->out, ");\n");
}

void rowwise_emit_copies(const RowEmitter *row)
{
    bool copies = rowwise_copies(row->variant.home);
    uint32_t used = 0;
    strbuf_puts(
        row->out,
        "\n// A copy of a row in shared memory. Each thread reads only what it has copied itself.\n");
    if (!copies) {
        strbuf_puts(row->out, "struct Copy {};\n\n__device__ __forceinline__ void copy_elements(const "
                              "Tensors &, Index, Index, int, int) {}\n");
        return;
    }
    strbuf_puts(row->out, "struct Copy {\n");
    FOR_BITS (i, rowwise_copied(&row->reads, row->passes, row->variant.home)) {
        const Access *access = row->reads.reads[i].access;
        strbuf_printf(row->out, "    %s x%d[VECTORS * PLACES];\n", memory_type(access->tensor->dtype), i);
        used |= access_axes(access);
    }
    strbuf_puts(row->out, "};\n\n__device__ __forceinline__ void copy_elements(const Tensors &t, Index row, "
                          "Index at, int k, int r)"
                          "\n{\n" COPY_OF_VECTOR);
    if (row->shape.unaligned)
        strbuf_puts(row->out, "    const bool whole = ends_inside(k);\n");
    emit_place(row, used);
    FOR_BITS (i, rowwise_copied(&row->reads, row->passes, row->variant.home))
        emit_copy(row, i);
    strbuf_puts(row->out, "}\n");
}

static bool is_from_copy(const RowEmitter *row, int index)
{
    return rowwise_copies(row->variant.home) && rowwise_copied(&row->reads, row->passes, row->variant.home) >> index & 1;
}

/* Axes whose positions the loads of a kind need. */
static uint32_t axes_of_loads(const RowEmitter *row, ReadKind kind)
{
    uint32_t used = 0;
    FOR_BITS (i, reads_of(row, kind)) {
        const Read *read = &row->reads.reads[i];
        const Expr *condition = read->pattern == PATTERN_ROW ? condition_of(&row->reads, i) : NULL;
        if (!is_from_copy(row, i) || condition)
            used |= access_axes(read->access);
        used |= condition ? expr_axes(condition) : 0;
    }
    return used;
}

/* Reads of single elements. Of vectors that hang over the ends of a row those beyond read the first or the last element, which
   nothing uses: under a guard the conversion would wait for the load as soon as predicates are short. */
static void emit_gathers(const RowEmitter *row, ReadKind kind)
{
    StrBuf gathers = strbuf_new(row->out->arena);
    Scope element = row->element;
    int inner = row->fusion->axis_count - 1;
    bool hangs = row->shape.unaligned, clamps = hangs && strcmp(row->first.axis[inner], "at") == 0;
    if (clamps)
        element.axis[inner] = "op_min<Index>(op_max<Index>(at + e, 0), COLUMNS - 1)";
    FOR_BITS (i, reads_of(row, kind))
        if (row->reads.reads[i].pattern == PATTERN_GATHER)
            reads_emit_one(&gathers, "            ", &element, &row->reads, i, "e");
    if (gathers.length)
        rows_emit_block_each(row->out, hangs && !clamps ? "if (inside(at + e, COLUMNS)) " : "", gathers.text);
}

static void emit_loads(const RowEmitter *row, ReadKind kind)
{
    Reads reads = row->reads;
    reads.walk.once &= kind == READ_IN || !row->weights_first;   // few weights come from L1
    reads.walk.ends_later &= kind == READ_IN;   // what a single row reads counts as weights
    FOR_BITS (i, reads_of(row, kind)) {
        if (row->reads.reads[i].pattern == PATTERN_ROW)
            emit_condition(row, i);
        if (is_from_copy(row, i))
            strbuf_printf(row->out, "    load_vector<VECTOR>(copies[r].x%d, place, in.x%d);\n", i, i);
        else
            reads_emit_vector(row->out, "    ", &row->first, &reads, i, "row");
    }
}

/* A vector may hang over the ends of its row, and the pieces of a line reach further than that. */
static void emit_insides(const RowEmitter *row, const char *loads)
{
    if (row->shape.unaligned && strstr(loads, "within"))
        strbuf_puts(row->out, "    const bool within = ends_inside(k);\n");
    if (row->shape.unaligned && strstr(loads, "inner"))
        strbuf_puts(row->out, "    const bool inner = is_inner(k);\n");
}

static void emit_load_function(RowEmitter *row, ReadKind kind)
{
    StrBuf *out = row->out, loads = strbuf_new(out->arena);
    bool is_row = kind == READ_IN;
    row->out = &loads;
    emit_loads(row, kind);
    emit_gathers(row, kind);
    row->out = out;
    strbuf_printf(out,
                  "\n__device__ __forceinline__ void load_%s(const Tensors &t, Index row, Index at, int k, %s"
                  "%s &in)\n{\n%s",
                  is_row ? "elements" : "weights", is_row ? "int r, " : "", kind_type[kind],
                  is_row && rowwise_copies(row->variant.home) ? COPY_OF_VECTOR : "");
    emit_insides(row, loads.text);
    emit_place(row, axes_of_loads(row, kind));
    strbuf_printf(out, "%s}\n", loads.text);
}

static void emit_ends(const RowEmitter *row)
{
    begin_function(row->out, NULL, "void load_ends(const Tensors &t, Index row, Index at, Inputs &in)");
    StrBuf ends = strbuf_new(row->out->arena);
    FOR_BITS (i, row->reads.walk.ends_later ? reads_of(row, READ_IN) : 0)
        reads_emit_end(&ends, &row->first, &row->reads, i);
    if (ends.length)
        emit_place(row, axes_of_loads(row, READ_IN));
    strbuf_printf(row->out, "%s}\n", ends.text);
}

void rowwise_emit_reads(RowEmitter *row, ReadKind kind)
{
    StrBuf *out = row->out;
    if (kind == READ_WEIGHTS && rowwise_weights(&row->reads) == 0) {
        strbuf_puts(out, "\nstruct Weights {};\n");
        return;
    }
    strbuf_printf(out, "\nstruct %s {   // %s\n", kind_type[kind],
                  kind == READ_IN ? "what one vector of a row's elements loads"
                                  : "weights: the same for every row");
    FOR_BITS (i, reads_of(row, kind))
        reads_emit_member(out, &row->reads, i);
    strbuf_puts(out, "};\n");
    emit_load_function(row, kind);
    if (kind == READ_IN)
        emit_ends(row);
}

bool rowwise_has_conditions(const RowEmitter *row)
{
    for (int i = 0; i < row->reads.count; i++)
        if (row->reads.reads[i].pattern == PATTERN_ROW && condition_of(&row->reads, i))
            return true;
    return false;
}

/* A branch around a vector, because it may lie beyond its row or be masked, makes the compiler widen narrow
   elements between the loads (tuning-log 31). */
bool rowwise_widens_in_branches(const RowEmitter *row)
{
    bool narrow = false;
    for (int i = 0; i < row->reads.count; i++)
        narrow |= dtype_info[row->reads.reads[i].access->tensor->dtype].bits < 32;
    bool whole = reduction_points(row->fusion) % (row->variant.group * row->shape.vector) == 0;
    return narrow && row->variant.home == ROW_IN_REGISTERS && (!whole || rowwise_has_conditions(row));
}

/* Rows in shared memory that a cluster shares, or that begin anywhere, gain nothing (tuning-log 31). */
bool rowwise_reads_once(const RowEmitter *row)
{
    bool stores = false;
    for (int i = 0; i < row->fusion->op_count; i++)
        stores |= row->fusion->ops[i].stored && fusion_is_of_elements(row->fusion, &row->fusion->ops[i]);
    return stores && row->variant.home != ROW_IN_MEMORY && row->variant.cluster == 1 &&
           !row->shape.unaligned && !rowwise_widens_in_branches(row);
}
