// The parameter block of a row kernel: constants, what one vector reads, and the passes over a row.
#include <inttypes.h>
#include <string.h>

#include "codegen/family/rows/rowwise_parts.h"
#include "rtile/space.h"

enum { LEAST_MASKED = 4 };   // elements of a vector: below it branches around them cost more than they save

static bool is_of_elements(const RowEmitter *row, int op)
{
    return fusion_op_is_of_elements(row->fusion, &row->fusion->ops[op]);
}

static bool stays_in_registers(const RowEmitter *row) { return rowwise_keeps(row->variant.home); }

// ---- what depends on what ----

/* Axes whose positions the pass needs beside those of its reads. */
static uint32_t axes_of_pass(const RowEmitter *row, int pass)
{
    uint32_t used = 0;
    for (int i = 0; i < row->fusion->op_count; i++) {
        const FusedOp *op = &row->fusion->ops[i];
        if (rowwise_makes_elements(row, i, pass) || rowwise_walks_in(row, i, pass))
            used |= reads_axes_left(&row->reads, op->body);
        if (rowwise_walks_in(row, i, pass) && op->stored && is_of_elements(row, i))
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
        if (rowwise_makes_elements(row, i, pass) || (rowwise_walks_in(row, i, pass) && !row->made[i]))
            expr_visit(row->fusion->ops[i].body, kind_visit, &search);
    return search.found;
}

// ---- a pass ----

/* Where the vector's copy is, of rows that are copied. */
static const char *copy_text(const RowEmitter *row)
{
    return !rowwise_copies(row->variant.home) ? ""
           : row->together                    ? "copy[r], place + k * PLACES, "
                                              : "copy, place + k * PLACES, ";
}

/* Before the loop: what it adds up, or fills. */
static void emit_pass_variables(const RowEmitter *row, int pass)
{
    StrBuf *out = row->out;
    const char *own = rowwise_own_total(row, pass), *rows = *own ? "[ROWS_TOGETHER]" : "";
    for (int i = 0; i < row->fusion->op_count; i++) {
        const FusedOp *op = &row->fusion->ops[i];
        bool reduces = op->reduce != REDUCE_NONE && rowwise_walks_in(row, i, pass);
        const char *type = value_type(op->reduce != REDUCE_NONE ? op->body->type : op->out->dtype);
        const char *identity = arena_printf(out->arena, "%s::identity<%s>()", combiner(op->reduce), type);
        if (reduces && *own)
            strbuf_printf(
                out,
                "    %s total%d[ROWS_TOGETHER];\n    UNROLL for (int r = 0; r < ROWS_TOGETHER; ++r)\n"
                "        total%d[r] = %s;\n",
                type, i, i, identity);
        else if (reduces)
            strbuf_printf(out, "    %s total%d = %s;\n", type, i, identity);
        else if (rowwise_makes_elements(row, i, pass) && stays_in_registers(row))
            strbuf_printf(out, "    %s v%d[VECTORS][VECTOR];\n", type, i);
        if (rowwise_walks_in(row, i, pass) && rowwise_shares_parts(row->fusion, &row->passes, i))
            strbuf_printf(out, "    int count%d%s = %s;\n", i, rows, *own ? "{}" : "0");
    }
}

/* What the vector of a row reads, and whether all of it is masked. */
static void emit_vector_reads(const RowEmitter *row, int pass)
{
    if (rowwise_asks_mask(row, pass))
        strbuf_printf(row->out, "            const bool masked = !%s;   // all elements\n",
                      rowwise_condition_text(row, row->mask, false));
    if (reads_in(row, pass, READ_IN) && stays_in_registers(row))
        strbuf_puts(row->out, "            const Inputs &in = inputs[k];\n");
    else if (reads_in(row, pass, READ_IN))
        strbuf_printf(row->out, "            Inputs in%s;\n            load_elements(t, %srow, at, in%s);\n",
                      rowwise_has_conditions(row) ? " = {}" : "", copy_text(row),
                      row->shape.window ? ", ends_inside(k)" : "");
}

static void emit_weight_reads(const RowEmitter *row)
{
    if (row->weights_first)
        strbuf_puts(row->out, "            const Weights &weights = all_weights[k];\n");
    else
        strbuf_printf(row->out,
                      "            Weights weights;\n            load_weights(t, %s, at, weights%s);\n",
                      row->together ? "first" : "row", row->shape.window ? ", is_inner(k)" : "");
}

static uint32_t axes_with_mask(const RowEmitter *row, int pass)
{
    return axes_of_pass(row, pass) | (rowwise_asks_mask(row, pass) ? expr_axes(row->mask) : 0);
}

/* The loop over a thread's vectors; what stands in it sees the positions that it needs. */
static void emit_loop_opening(const RowEmitter *row, int pass)
{
    strbuf_printf(row->out,
                  "    %s for (int k = 0; k < VECTORS; ++k)\n        if (begins_inside(column, k)) {\n",
                  rowwise_unrolling(row));
    uint32_t used = axes_with_mask(row, pass);
    bool reads = reads_in(row, pass, READ_IN), weights = row->weighted >> pass & 1;
    int spatial = row->fusion->spatial_count;
    if (used >> spatial || (weights && !row->weights_first) || (reads && !stays_in_registers(row)))
        strbuf_puts(row->out, "            const Index at = column + k * STEP;\n");
    emit_used_positions(row->out, "            ", "at", &row->first, spatial, row->fusion->axis_count, used);
}

static void put_indented(StrBuf *out, const char *text)
{
    for (const char *line = text; *line;) {
        const char *end = strchr(line, '\n') + 1;
        strbuf_printf(out, "    %.*s", (int)(end - line), line);
        line = end;
    }
}

static const char *const EACH_ROW = "UNROLL for (int r = 0; r < ROWS_TOGETHER; ++r) {\n";

/* All rows that are made together at each vector, whose weights they share. */
static void emit_weighted_pass(const RowEmitter *row, int pass)
{
    RowEmitter inner = *row;
    StrBuf text = strbuf_new(row->out->arena);
    inner.out = &text;
    emit_vector_reads(&inner, pass);
    rowwise_emit_steps(&inner, pass);
    emit_pass_variables(row, pass);
    emit_loop_opening(row, pass);
    emit_weight_reads(row);
    strbuf_printf(row->out, "            %s", EACH_ROW);
    rowwise_emit_own_row(row, "                ", axes_with_mask(row, pass));
    put_indented(row->out, text.text);
    strbuf_puts(row->out, "            }\n        }\n");
    rowwise_emit_row_values(row, pass + 1);
}

/* One row after the other, each as soon as it has come. */
static void emit_pass_of_each(const RowEmitter *row, int pass)
{
    RowEmitter inner = *row;
    StrBuf text = strbuf_new(row->out->arena);
    inner.out = &text;
    emit_pass_variables(&inner, pass);
    emit_loop_opening(&inner, pass);
    emit_vector_reads(&inner, pass);
    rowwise_emit_steps(&inner, pass);
    strbuf_puts(&text, "        }\n");
    uint32_t used = rowwise_declare_row_values(row, pass + 1) | axes_with_mask(row, pass);
    strbuf_printf(row->out, "    %s", EACH_ROW);
    if (pass == 0)
        strbuf_puts(row->out, "        r + 1 < ROWS_TOGETHER ? async_wait<1>() : async_wait<0>();\n");
    rowwise_emit_own_row(row, "        ", used);
    put_indented(row->out, text.text);
    rowwise_emit_own_values(row, pass + 1);
    strbuf_puts(row->out, "    }\n");
}

static void emit_pass(const RowEmitter *row, int pass)
{
    if (row->together && row->weighted >> pass & 1) {
        emit_weighted_pass(row, pass);
        return;
    }
    if (row->together) {
        emit_pass_of_each(row, pass);
        return;
    }
    emit_pass_variables(row, pass);
    emit_loop_opening(row, pass);
    emit_vector_reads(row, pass);
    if (row->weighted >> pass & 1)
        emit_weight_reads(row);
    rowwise_emit_steps(row, pass);
    strbuf_puts(row->out, "        }\n");
    rowwise_emit_row_values(row, pass + 1);
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
    strbuf_printf(
        row->out,
        "constexpr int ROWS_TOGETHER = %d;   // and at the same time, so that what is the same for every row "
        "is read once\n"
        "constexpr Index ROWS_APART = %" PRId64 ";   // from one of them to the next, which begins alike\n",
        row->together ? row->variant.together : 1,
        row->together ? rowwise_rows_apart(row->fusion, row->shape) : 1);
    strbuf_printf(row->out, "constexpr int TURNS = %d;   // reductions of a row\n",
                  rowwise_turns(row->fusion, &row->passes));
    strbuf_printf(row->out, "constexpr int RESULT_BYTES = %d;   // of the widest one, and a warp\n",
                  rowwise_result_bytes(row->fusion, &row->passes));
    strbuf_printf(row->out,
                  "constexpr int PARTIAL_BYTES = %" PRId64
                  ";   // of shared memory, for what warps leave; copies of rows lie behind it\n",
                  row->layout.partial_bytes);
    strbuf_printf(row->out,
                  "constexpr int MIN_BLOCKS_PER_SM = %d;   // that a unit's registers must suffice for; 0: %s\n",
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
        strbuf_puts(row->out,
                    "__device__ __forceinline__ bool is_whole(Index column, int k)\n{\n"
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
        strbuf_puts(row->out,
                      "const Tensors &t, Index row, Index column)\n{\n    SHARED(PARTIAL_BYTES, Row, copy, );\n"
                      "    copy_row(t, copy, row, column);\n}\n");
    else
        strbuf_puts(row->out, "const Tensors &, Index, Index) {}\n");
}

static void emit_fetch(const RowEmitter *row)
{
    if (rowwise_copies(row->variant.home))
        strbuf_printf(
            row->out,
            "    SHARED(PARTIAL_BYTES, Row, copy, %s);\n    const int place = (int)threadIdx.x * VECTOR;\n",
            row->together ? "[ROWS_TOGETHER]" : "");
    if (row->together)
        strbuf_puts(row->out, "    UNROLL for (int r = 0; r < ROWS_TOGETHER; ++r)\n"
                              "        copy_row(t, copy[r], first + r * ROWS_APART, column);\n");
    else if (row->variant.home == ROW_IN_SHARED)
        strbuf_puts(row->out, "    copy_row(t, copy, row, column);\n");
    if (row->together ? reads_in(row, 0, READ_WEIGHTS) : rowwise_copies(row->variant.home))
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

static void emit_compute(RowEmitter *row)
{
    const Fusion *fusion = row->fusion;
    const char *name = row->together ? "first" : "row";
    strbuf_printf(
        row->out,
        "\n// %s, pass by pass. Vector k of this thread starts at column + k * STEP. Groups beyond the last\n"
        "// row repeat it without storing.\n"
        "__device__ __forceinline__ void compute(const Tensors &t, Index %s, Index column, bool stores, int "
        "made)\n{\n"
        "    (void)t, (void)%s, (void)stores, (void)made;\n",
        row->together ? "ROWS_TOGETHER rows from the first on, each ROWS_APART from the one before"
                      : "One row",
        name, name);
    emit_fetch(row);
    uint32_t used = 0;
    for (int i = 0; i < fusion->op_count; i++) {
        used |= reads_axes_left(&row->reads, fusion->ops[i].body);
        used |= fusion->ops[i].stored ? access_axes(&fusion->ops[i].store) : 0;
        used |= rowwise_divides(row->fusion, i) ? expr_axes(fusion->ops[i].body->apply.operands[1]) : 0;
        used |= is_of_elements(row, i) || fusion->ops[i].reduce ? 0 : expr_axes(fusion->ops[i].body);
    }
    if (!row->together)
        emit_used_positions(row->out, "    ", "row", &row->first, 0, fusion->spatial_count, used);
    rowwise_emit_row_values(row, 0);
    for (int pass = 0; pass < row->passes.count; pass++) {
        row->weighted |= (uint64_t)reads_in(row, pass, READ_WEIGHTS) << pass;
        emit_pass(row, pass);
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
        .shape = rowwise_shape_of(fusion, rowwise_variant(plan->rules)),
        .variant = rowwise_variant(plan->rules),
        .first = {.fusion = fusion, .wide = plan->wide},
        .made = NEW_ARRAY(out->arena, bool, fusion->op_count),
    };
    row.layout = schedule_layout(plan->rules);
    row.together = row.variant.together > 1;
    row.first.other_suffix = row.together ? "[r]" : NULL;
    row.shares_type = rowwise_shares(fusion);
    row.shares = row.shares_type != DTYPE_F32;
    if (row.shares)
        row.first.exponential = arena_printf(out->arena, "share_exp<%s>", memory_type(row.shares_type));
    row.passes = rowwise_passes(fusion, row.variant.home);
    row.reads = rowwise_reads(fusion, row.shape);
    row.reads.walk.held = row.variant.home == ROW_IN_REGISTERS;
    row.reads.walk.once = rowwise_reads_once(&row);
    row.weights_first = rowwise_reads_weights_first(&row.reads, row.variant,
                                                    rowwise_vectors(fusion, row.shape, row.variant.group));
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
