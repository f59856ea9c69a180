// The parameter block of a row kernel: constants, what one vector reads, and the passes over a row.
#include <inttypes.h>
#include <string.h>

#include "codegen/rowwise_parts.h"
#include "codegen/space.h"

enum { LEAST_MASKED = 4 };   // elements of a vector: below it branches around them cost more than they save

static bool is_of_elements(const RowEmitter *row, int op)
{
    return fusion_op_is_of_elements(row->fusion, &row->fusion->ops[op]);
}

static bool stays_in_registers(const RowEmitter *row) { return rowwise_keeps(row->variant.home); }

// ---- what depends on what ----

static bool uses_value(const RowEmitter *row, int op, int value)
{
    return row->passes.needs[op] >> value & 1;
}

/* The pass ends with the op's total, or stores its elements. */
static bool walks_in(const RowEmitter *row, int op, int pass)
{
    const FusedOp *fused = &row->fusion->ops[op];
    bool walks = fused->reduce != REDUCE_NONE || (fused->stored && is_of_elements(row, op));
    return walks && row->passes.pass[op] == pass;
}

/* Elements of the op are computed in the pass. */
static bool makes_elements(const RowEmitter *row, int op, int pass)
{
    if (!is_of_elements(row, op) || row->made[op])
        return false;
    bool makes = walks_in(row, op, pass);
    for (int i = op + 1; i < row->fusion->op_count && !makes; i++)
        makes = walks_in(row, i, pass) && uses_value(row, i, op);
    return makes;
}

/* Axes whose positions the pass needs beside those of its reads. */
static uint32_t axes_of_pass(const RowEmitter *row, int pass)
{
    uint32_t used = 0;
    for (int i = 0; i < row->fusion->op_count; i++) {
        const FusedOp *op = &row->fusion->ops[i];
        if (makes_elements(row, i, pass) || walks_in(row, i, pass))
            used |= reads_axes_left(&row->reads, op->body);
        if (walks_in(row, i, pass) && op->stored && is_of_elements(row, i))
            used |= access_axes(&op->store);
    }
    return used;
}

typedef struct KindSearch {
    const RowEmitter *row;
    ReadKind kind;
    bool found;
} KindSearch;

static void kind_visit(Expr *expr, void *context)
{
    KindSearch *search = context;
    int index = expr->kind == EXPR_ACCESS ? reads_index(&search->row->reads, &expr->access) : -1;
    search->found |= index >= 0 && rowwise_kind(search->row, index) == search->kind;
}

static bool reads_in(const RowEmitter *row, int pass, ReadKind kind)
{
    KindSearch search = {.row = row, .kind = kind};
    for (int i = 0; i < row->fusion->op_count; i++)
        if (makes_elements(row, i, pass) || (walks_in(row, i, pass) && !row->made[i]))
            expr_visit(row->fusion->ops[i].body, kind_visit, &search);
    return search.found;
}

// ---- a pass ----

static const char *const EACH = "            UNROLL for (int e = 0; e < VECTOR; ++e)\n                ";

static const char *suffix_of(const RowEmitter *row) { return row->element.suffix; }

/* v3 of a vector: `v3[k]`, or `v3` where it is forgotten after the pass. */
static const char *vector_suffix(const RowEmitter *row) { return stays_in_registers(row) ? "[k]" : ""; }

static void dear_visit(Expr *expr, void *context)
{
    bool *is_dear = context;
    *is_dear |= expr->kind == EXPR_APPLY && op_info[expr->apply.op].class == OP_CLASS_REAL;
}

/* Takes so many instructions that a branch around them is worth it. */
static bool is_dear(const RowEmitter *row, Expr *expr)
{
    bool found = false;
    expr_visit(expr, dear_visit, &found);
    return found && !row->shares;
}

/* The pass asks whether a vector is masked. */
static bool asks_mask(const RowEmitter *row, int pass)
{
    for (int i = 0; i < row->fusion->op_count && row->mask; i++) {
        bool makes = makes_elements(row, i, pass) || (walks_in(row, i, pass) && !row->made[i]);
        bool divides = rowwise_divides(row->fusion, i) && !row->shares;
        if (makes && (is_dear(row, row->fusion->ops[i].body) || divides))
            return true;
    }
    return false;
}

/* `body` at an element where `holds` is known to hold; rounded as the op's readers see it. */
static const char *value_text(const RowEmitter *row, int op, const Expr *body, bool rounds, const Expr *holds)
{
    Scope scope = row->element;
    scope.holds = holds;
    StrBuf value = strbuf_new(row->out->arena), rounded = strbuf_new(row->out->arena);
    emit_expr(&value, &scope, body);
    if (!rounds)
        return value.text;
    emit_rounded(&rounded, row->fusion, op, value.text);
    return rounded.text;
}

/* `array[e] = body` for all elements of a vector. Those of a masked one are the same; where none is masked, nobody asks, which
   a row that is walked again would do in every pass. */
static void emit_each(const RowEmitter *row, int op, Expr *body, bool rounds, const char *array)
{
    StrBuf *out = row->out;
    const char *value = value_text(row, op, body, rounds, NULL);
    const char *open = value_text(row, op, body, rounds, row->mask);
    if (row->mask && is_dear(row, body))
        strbuf_printf(
            out,
            "            if (masked) {\n                constexpr int e = 0;\n                %s[e] = %s;\n"
            "                spread(%s);\n            } else\n"
            "                UNROLL for (int e = 0; e < VECTOR; ++e)\n                    %s[e] = %s;\n",
            array, value, array, array, value);
    else if (strcmp(value, open) && !stays_in_registers(row))
        strbuf_printf(out, "            if %s\n    %s    %s[e] = %s;\n            else\n    %s    %s[e] = %s;\n",
                      rowwise_condition_text(row, row->mask, true), EACH, array, open, EACH, array, value);
    else
        strbuf_printf(out, "%s%s[e] = %s;\n", EACH, array, value);
}

/* What lies beyond the ends of the row. */
static void emit_identities(const RowEmitter *row, int op)
{
    const FusedOp *fused = &row->fusion->ops[op];
    strbuf_printf(
        row->out,
        "            if (!is_whole(column, k))\n    %s    if (!inside(column + k * STEP + e, COLUMNS))\n"
        "                        terms%d[e] = %s::identity<%s>();\n",
        EACH, op, combiner(fused->reduce), value_type(fused->body->type));
}

static void emit_total(const RowEmitter *row, int op)
{
    const FusedOp *fused = &row->fusion->ops[op];
    const char *reduction = combiner(fused->reduce);
    int along = row->passes.along[op];
    StrBuf *out = row->out;
    strbuf_printf(out, "            %s terms%d[VECTOR];\n", value_type(fused->body->type), op);
    emit_each(row, op, fused->body, false, arena_printf(out->arena, "terms%d", op));
    if (rowwise_shares_parts(row->fusion, &row->passes, op)) {
        const char *ends = row->shape.window ? ", begin_of(column, k), end_of(column, k)" : "";
        strbuf_printf(out, "            add_values(total%d, total%d, count%d, terms%d%s);\n", op, along, op,
                      op, ends);
        return;
    }
    if (row->shape.window)
        emit_identities(row, op);
    if (along >= 0)
        strbuf_printf(out, "            add_exponentials<%s>(total%d, total%d, terms%d);\n",
                      memory_type(row->shares_type), op, along, op);
    else
        strbuf_printf(out, "            total%d = %s::combine(total%d, reduce_vector<%s>(terms%d));\n", op,
                      reduction, op, reduction, op);
}

static void emit_quotients(const RowEmitter *row, int op, const char *array)
{
    if (row->shares) {
        strbuf_printf(row->out, "%s%s[e] *= divisor%d.reciprocal;\n", EACH, array, op);
        return;
    }
    if (row->mask)
        strbuf_printf(row->out,
                      "            if (masked) {\n                %s[0] = op_div(%s[0], divisor%d.value);\n"
                      "                spread(%s);\n            } else\n    ",
                      array, array, op, array);
    strbuf_printf(row->out, "            divide_all(%s, divisor%d);\n", array, op);
}

static void emit_elements(const RowEmitter *row, int op)
{
    const FusedOp *fused = &row->fusion->ops[op];
    bool divides = rowwise_divides(row->fusion, op), rounds = !is_rounded_by_storing(row->fusion, op);
    Expr *made = divides ? fused->body->apply.operands[0] : fused->body;
    const char *array = arena_printf(row->out->arena, "v%d%s", op, vector_suffix(row));
    if (!stays_in_registers(row))
        strbuf_printf(row->out, "            %s v%d[VECTOR];\n", value_type(fused->out->dtype), op);
    emit_each(row, op, made, rounds && !divides, array);
    if (divides)
        emit_quotients(row, op, array);
    if (rounds && divides) {
        strbuf_printf(row->out, "%s%s[e] = ", EACH, array);
        emit_rounded(row->out, row->fusion, op, arena_printf(row->out->arena, "%s[e]", array));
        strbuf_puts(row->out, ";\n");
    }
}

/* Whether a vector of elements is one aligned access of the stored tensor. */
static bool stores_vectors(const RowEmitter *row, const FusedOp *op)
{
    Affine offset = access_offset(&op->store);
    int inner = row->fusion->axis_count - 1, vector = row->shape.vector;
    if (row->shape.window)
        return true;   // rows are stored one after the other
    for (int a = 0; a < MAX_AXES; a++)
        if (a != inner && offset.coef[a] % vector)
            return false;
    return offset.coef[inner] == 1 && offset.constant % vector == 0;
}

static void emit_element_store(const RowEmitter *row, int op)
{
    const FusedOp *fused = &row->fusion->ops[op];
    int output = output_position(row->fusion, fused->out);
    bool whole = stores_vectors(row, fused);
    const char *function = row->shape.window ? "store_inside<VECTOR>(is_whole(column, k), "
                           : whole           ? "store_vector<VECTOR>("
                                             : "store(";
    Affine offset = access_offset(&fused->store);
    strbuf_puts(row->out, stays_in_registers(row) ? "            if (stores)\n    " : "");
    strbuf_puts(row->out, whole ? "            " : EACH);
    strbuf_printf(row->out, "%st.out%d, ", function, output);
    emit_affine(row->out, &offset, whole ? row->first.axis : row->element.axis);
    strbuf_puts(row->out, row->shape.window ? ", at, COLUMNS" : "");
    strbuf_printf(row->out, ", v%d%s);\n", op, whole ? vector_suffix(row) : suffix_of(row));
}

/* Before the loop: what it adds up, or fills. */
static void emit_pass_variables(const RowEmitter *row, int pass)
{
    for (int i = 0; i < row->fusion->op_count; i++) {
        const FusedOp *op = &row->fusion->ops[i];
        const char *type = value_type(op->reduce != REDUCE_NONE ? op->body->type : op->out->dtype);
        if (op->reduce != REDUCE_NONE && walks_in(row, i, pass))
            strbuf_printf(row->out, "    %s total%d = %s::identity<%s>();\n", type, i, combiner(op->reduce),
                          type);
        else if (makes_elements(row, i, pass) && stays_in_registers(row))
            strbuf_printf(row->out, "    %s v%d[VECTORS][VECTOR];\n", type, i);
        if (walks_in(row, i, pass) && rowwise_shares_parts(row->fusion, &row->passes, i))
            strbuf_printf(row->out, "    int count%d = 0;\n", i);
    }
}

/* The loop over a thread's vectors; what stands in it sees the vector's reads and the positions it needs. */
static void emit_pass_opening(const RowEmitter *row, int pass)
{
    strbuf_printf(row->out,
                  "    %s for (int k = 0; k < VECTORS; ++k)\n        if (begins_inside(column, k)) {\n",
                  rowwise_unrolling(row));
    bool asks = asks_mask(row, pass);
    uint32_t used = axes_of_pass(row, pass) | (asks ? expr_axes(row->mask) : 0);
    bool reads = reads_in(row, pass, READ_IN), weights = reads_in(row, pass, READ_WEIGHTS);
    int spatial = row->fusion->spatial_count;
    if (used >> spatial || (weights && !row->weights_first) || (reads && !stays_in_registers(row)))
        strbuf_puts(row->out, "            const Index at = column + k * STEP;\n");
    emit_used_positions(row->out, "            ", "at", &row->first, spatial, row->fusion->axis_count, used);
    if (asks)
        strbuf_printf(row->out, "            const bool masked = !%s;   // all elements\n",
                      rowwise_condition_text(row, row->mask, false));
    const char *open = rowwise_has_conditions(row) ? " = {}" : "";
    if (reads && stays_in_registers(row))
        strbuf_puts(row->out, "            const Inputs &in = inputs[k];\n");
    else if (reads)
        strbuf_printf(row->out, "            Inputs in%s;\n            load_elements(t, %srow, at, in%s);\n", open,
                      rowwise_copies(row->variant.home) ? "copy, place + k * PLACES, " : "",
                      row->shape.window ? ", ends_inside(k)" : "");
    if (weights && row->weights_first)
        strbuf_puts(row->out, "            const Weights &weights = all_weights[k];\n");
    else if (weights)
        strbuf_printf(row->out, "            Weights weights;\n            load_weights(t, row, at, weights%s);\n",
                      row->shape.window ? ", is_inner(k)" : "");
}

static void emit_pass(const RowEmitter *row, int pass)
{
    emit_pass_variables(row, pass);
    emit_pass_opening(row, pass);
    for (int i = 0; i < row->fusion->op_count; i++) {
        const FusedOp *op = &row->fusion->ops[i];
        if (op->reduce != REDUCE_NONE && walks_in(row, i, pass) && row->passes.leader[i] < 0)
            emit_total(row, i);
        if (!makes_elements(row, i, pass) && !(walks_in(row, i, pass) && is_of_elements(row, i)))
            continue;
        if (!row->made[i])
            emit_elements(row, i);
        row->made[i] = stays_in_registers(row);
        if (op->stored && walks_in(row, i, pass))
            emit_element_store(row, i);
    }
    strbuf_puts(row->out, "        }\n");
}

// ---- the row ----

/* Which elements of a vector lie in the row, where their number counts. */
static void emit_ends(const RowEmitter *row)
{
    bool counts = false;
    for (int i = 0; i < row->fusion->op_count && row->shape.window; i++)
        counts |= rowwise_shares_parts(row->fusion, &row->passes, i);
    if (counts)
        strbuf_puts(row->out, "\n// Its elements from `begin` up to `end` do.\n"
                              "__device__ __forceinline__ int begin_of(Index column, int k)\n{\n"
                              "    return k > 0 || column >= 0 ? 0 : static_cast<int>(-column);\n}\n"
                              "__device__ __forceinline__ int end_of(Index column, int k)\n{\n"
                              "    return is_whole(column, k) ? VECTOR : "
                              "static_cast<int>(op_min<Index>(COLUMNS - column - k * STEP, VECTOR));\n}\n");
}

static void emit_constants(const RowEmitter *row, const KernelPlan *plan)
{
    strbuf_printf(row->out, "constexpr Index ROWS = %" PRId64 ", COLUMNS = %" PRId64 ";\n",
                  spatial_points(row->fusion), reduction_points(row->fusion));
    strbuf_printf(row->out, "constexpr int GROUP = %d;   // threads of a row\n", row->variant.group);
    strbuf_printf(row->out, "constexpr int CLUSTER = %d;   // blocks of a group\n", row->variant.cluster);
    strbuf_printf(row->out, "constexpr int ROWS_OF_BLOCK = %d;   // groups\n",
                  plan->threads * row->variant.cluster / row->variant.group);
    strbuf_printf(row->out, "constexpr int ROWS_OF_GROUP = %d;   // which it makes one after the other\n",
                  plan->program->turns);
    strbuf_printf(row->out, "constexpr int TURNS = %d;   // reductions of a row\n",
                  rowwise_turns(row->fusion, &row->passes));
    strbuf_printf(row->out, "constexpr int RESULT_BYTES = %d;   // of the widest one, and a warp\n",
                  rowwise_result_bytes(row->fusion, &row->passes));
    strbuf_printf(row->out, "constexpr int LEAST_BLOCKS = %d;   // that a unit's registers must suffice for; 0: %s\n",
                  row->weights_first, "the compiler chooses");
    strbuf_printf(
        row->out,
        "constexpr int VECTOR = %d;   // neighbouring elements that a thread reads and writes at once\n",
        row->shape.vector);
    strbuf_printf(row->out, "constexpr int VECTORS = %" PRId64 ";   // of a thread\n",
                  rowwise_vectors(row->fusion, row->shape, row->variant.group));
    strbuf_puts(row->out,
                "constexpr Index STEP = GROUP * VECTOR;   // from one vector of a thread to its next one\n"
                "\n// Whether any of the thread's vector k, or all of it, lies in the row; `column` is where "
                "vector 0 begins. Of all\n"
                "// but the row's first and last vectors that is known as the loop over k is unrolled.\n"
                "__device__ __forceinline__ bool begins_inside(Index column, int k)\n{\n"
                "    return (k + 1) * STEP <= COLUMNS || column + k * STEP < COLUMNS;\n}\n");
    if (row->shape.window)
        strbuf_puts(row->out, "__device__ __forceinline__ bool is_whole(Index column, int k)\n{\n"
                              "    return (k > 0 || column >= 0) && ((k + 1) * STEP <= COLUMNS || "
                              "column + k * STEP + VECTOR <= COLUMNS);\n}\n"
                              "\n// Of vector k of every thread: it ends in the row; it and its neighbours lie in the "
                              "row.\n"
                              "__device__ __forceinline__ bool ends_inside(int k) { return (k + 1) * STEP <= "
                              "COLUMNS; }\n"
                              "__device__ __forceinline__ bool is_inner(int k)\n{\n"
                              "    return k > 0 && (k + 1) * STEP + VECTOR <= COLUMNS;\n}\n");
    emit_ends(row);
    strbuf_printf(row->out,
                  "\n// Elements of the row before that its first aligned vector begins with.\n"
                  "__device__ __forceinline__ Index shift_of(Index%s) { return %s; }\n",
                  row->shape.window ? " row" : "", row->shape.window ? "row * COLUMNS % VECTOR" : "0");
}

/* Begins to copy the row that comes next, where rows are copied ahead of their turn. */
static void emit_copy_ahead(const RowEmitter *row)
{
    strbuf_puts(
        row->out,
        "\n// Begins to copy the row that comes next, where rows are copied to shared memory ahead of "
        "their turn.\n__device__ __forceinline__ void copy_ahead(");
    if (row->variant.home == ROW_AHEAD)
        strbuf_printf(row->out,
                      "const Tensors &t, Index row, Index column)\n{\n    SHARED(%d, Row, copy, );\n"
                      "    copy_row(t, copy, row, column);\n}\n",
                      rowwise_partial_bytes(row->fusion, row->variant));
    else
        strbuf_puts(row->out, "const Tensors &, Index, Index) {}\n");
}

static void emit_fetch(const RowEmitter *row)
{
    if (rowwise_copies(row->variant.home))
        strbuf_printf(row->out,
                      "    SHARED(%d, Row, copy, );\n    const int place = (int)threadIdx.x * VECTOR;\n",
                      rowwise_partial_bytes(row->fusion, row->variant));
    if (row->variant.home == ROW_IN_SHARED)
        strbuf_puts(row->out, "    copy_row(t, copy, row, column);\n");
    if (rowwise_copies(row->variant.home))
        strbuf_puts(row->out, "    async_wait<0>();\n");
    if (row->weights_first)
        strbuf_printf(row->out,
                      "    Weights all_weights[VECTORS];   // so that no reduction waits for them\n"
                      "    UNROLL for (int k = 0; k < VECTORS; ++k)\n"
                      "        if (begins_inside(column, k))\n"
                      "            load_weights(t, row, column + k * STEP, all_weights[k]%s);\n",
                      row->shape.window ? ", is_inner(k)" : "");
    if (stays_in_registers(row))
        strbuf_printf(row->out,
                      "    Inputs inputs[VECTORS]%s;\n"
                      "    UNROLL for (int k = 0; k < VECTORS; ++k)\n"
                      "        if (begins_inside(column, k))\n"
                      "            load_elements(t, %srow, column + k * STEP, inputs[k]%s);\n",
                      rowwise_has_conditions(row) ? " = {}" : "",
                      rowwise_copies(row->variant.home) ? "copy, place + k * PLACES, " : "",
                      row->shape.window ? ", ends_inside(k)" : "");
}

static void emit_compute(const RowEmitter *row)
{
    const Fusion *fusion = row->fusion;
    strbuf_puts(
        row->out,
        "\n// One row, pass by pass. Vector k of this thread starts at column + k * STEP. Groups beyond "
        "the last\n"
        "// row repeat it without storing.\n"
        "__device__ __forceinline__ void compute(const Tensors &t, Index row, Index column, bool stores, int "
        "made)\n{\n"
        "    (void)t, (void)row, (void)stores, (void)made;\n");
    emit_fetch(row);
    uint32_t used = 0;
    for (int i = 0; i < fusion->op_count; i++) {
        used |= reads_axes_left(&row->reads, fusion->ops[i].body);
        used |= fusion->ops[i].stored ? access_axes(&fusion->ops[i].store) : 0;
        used |= rowwise_divides(row->fusion, i) ? expr_axes(fusion->ops[i].body->apply.operands[1]) : 0;
        used |= is_of_elements(row, i) || fusion->ops[i].reduce ? 0 : expr_axes(fusion->ops[i].body);
    }
    emit_used_positions(row->out, "    ", "row", &row->first, 0, fusion->spatial_count, used);
    rowwise_emit_row_values(row, 0);
    for (int pass = 0; pass < row->passes.count; pass++) {
        emit_pass(row, pass);
        rowwise_emit_row_values(row, pass + 1);
        if (pass == 0 && row->variant.home == ROW_AHEAD)
            strbuf_puts(row->out,
                        "    if (made + 1 < ROWS_OF_GROUP && row + 1 < ROWS)\n"
                        "        copy_ahead(t, row + 1, column + shift_of(row) - shift_of(row + 1));\n");
    }
    strbuf_puts(row->out, "}\n");
}

void rowwise_emit(StrBuf *out, const KernelPlan *plan)
{
    const Fusion *fusion = plan->fusion;
    RowEmitter row = {
        .out = out,
        .fusion = fusion,
        .shape = rowwise_shape(fusion),
        .variant = rowwise_variant(plan->program->variant),
        .first = {.fusion = fusion, .wide = plan->wide},
        .made = NEW_ARRAY(out->arena, bool, fusion->op_count),
    };
    row.shares_type = rowwise_shares(fusion);
    row.shares = row.shares_type != DTYPE_F32;
    if (row.shares)
        row.first.exponential = arena_printf(out->arena, "share_exp<%s>", memory_type(row.shares_type));
    row.passes = rowwise_passes(fusion, row.variant.home);
    row.reads = rowwise_reads(fusion, row.shape);
    row.reads.walk.held = row.variant.home == ROW_IN_REGISTERS;
    row.reads.walk.once = rowwise_reads_once(&row);
    row.weights_first = rowwise_reads_weights_first(
        &row.reads, row.variant, rowwise_vectors(fusion, row.shape, row.variant.group));
    for (int a = 0; a < fusion->axis_count; a++)
        row.first.axis[a] = axis_names[a];
    row.element = row.first;
    int inner = fusion->axis_count - 1;
    row.element.axis[inner] = arena_printf(out->arena, "(%s + e)", axis_names[inner]);
    row.element.suffix = stays_in_registers(&row) ? "[k][e]" : "[e]";
    row.element.suffix_axes = fusion_columns(fusion);

    emit_constants(&row, plan);
    rowwise_emit_reads(&row, READ_IN);
    if (rowwise_has_kind(&row, READ_WEIGHTS))
        rowwise_emit_reads(&row, READ_WEIGHTS);
    emit_copy_ahead(&row);
    if (row.shape.vector >= LEAST_MASKED && (row.shares || row.variant.home != ROW_IN_MEMORY))
        row.mask = rowwise_mask(&row);
    row.element.loaded = rowwise_loaded;
    row.element.context = &row;
    emit_compute(&row);
}
