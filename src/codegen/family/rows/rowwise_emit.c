// The parameter block of a row kernel: constants, what one vector reads, and the passes over a row.
#include <inttypes.h>

#include "codegen/family/rows/rowwise_parts.h"
#include "rtile/space.h"

// ---- constants ----

/* Rows that are made together take as many registers as there are: with 72 for 64 an SM holds one block of
   512 threads where the model counts on two (tuning-log 37). */
static int min_blocks(const RowEmitter *row, const KernelPlan *plan)
{
    if (row->weights_first)
        return 1;
    return row->variant.together > 1 ? plan->program->perf.blocks_per_sm : 0;
}

static const char *truth(bool value) { return value ? "true" : "false"; }

static void emit_row_constants(const RowEmitter *row, const KernelPlan *plan)
{
    strbuf_printf(row->out, "constexpr Index ROWS = %" PRId64 ";\nconstexpr Index COLUMNS = %" PRId64 ";\n",
                  spatial_points(row->fusion), reduction_points(row->fusion));
    strbuf_printf(
        row->out,
        "constexpr int THREADS = %d, MIN_BLOCKS_PER_SM = %d;   // of a block; that its registers must "
        "suffice for, 0: the compiler chooses\n"
        "constexpr int GROUP = %d, ROWS_OF_BLOCK = %d;   // threads of a row; groups of a block\n"
        "constexpr int CLUSTER = %d;   // blocks of a group\n",
        plan->threads, min_blocks(row, plan), row->variant.group,
        plan->threads * row->variant.cluster / row->variant.group, row->variant.cluster);
    strbuf_printf(row->out, "constexpr int ROWS_OF_GROUP = %d;   // which it makes one after the other\n",
                  plan->program->turns);
    strbuf_printf(
        row->out,
        "constexpr int ROWS_TOGETHER = %d;   // and at the same time, so that what is the same for every row "
        "is read once\n"
        "constexpr Index ROWS_APART = %" PRId64 ";   // from one of them to the next, which begins alike\n",
        row->variant.together > 1 ? row->variant.together : 1,
        row->variant.together > 1 ? rowwise_rows_apart(row->fusion, row->shape) : 1);
    strbuf_printf(row->out, "constexpr int RESULT_BYTES = %d;   // of the widest one, and a warp\n",
                  rowwise_result_bytes(row->fusion, &row->passes));
    strbuf_printf(row->out,
                  "constexpr int PARTIAL_BYTES = %" PRId64
                  ";   // of shared memory, for what warps leave; copies of rows lie behind it\n",
                  row->layout.partial_bytes);
}

static void emit_vector_constants(const RowEmitter *row)
{
    strbuf_printf(row->out,
                  "constexpr int VECTOR = %d, VECTORS = %" PRId64
                  ";   // neighbouring elements that a thread reads "
                  "and writes at once; how often it does\n",
                  row->shape.vector, rowwise_vectors(row->fusion, row->shape, row->variant.group));
    strbuf_puts(row->out,
                "constexpr Index STEP = GROUP * VECTOR;   // from one vector of a thread to its next one\n"
                "constexpr int PLACES = GROUP / CLUSTER * VECTOR;   // and of its copy in shared memory\n");
    strbuf_printf(
        row->out,
        "constexpr bool UNALIGNED = %s;   // rows are no whole vectors: each begins within its first one\n",
        truth(row->shape.unaligned));
    strbuf_printf(row->out,
                  "constexpr bool KEPT = %s;   // in registers; else every pass reads the row, or its copy\n",
                  truth(rowwise_keeps(row->variant.home)));
    strbuf_printf(row->out, "constexpr bool COPIED = %s;   // to shared memory,\n",
                  truth(rowwise_copies(row->variant.home)));
    strbuf_printf(row->out, "constexpr bool AHEAD = %s;   // while the row before is made\n",
                  truth(row->variant.home == ROW_AHEAD));
    strbuf_printf(
        row->out,
        "constexpr bool WEIGHTS_FIRST = %s;   // before the row, so that no reduction waits for them\n",
        truth(row->weights_first));
    strbuf_printf(row->out, "constexpr bool MASKED = %s;   // what a mask leaves out is not read\n",
                  truth(rowwise_has_conditions(row)));
    strbuf_printf(row->out, "#define UNROLL_VECTORS %s\n", rowwise_unrolling(row));
}

// ---- passes ----

/* `template <int PASS> constexpr bool READS = PASS == 0 || PASS == 1;` */
static void emit_reading(const RowEmitter *row, const char *name, ReadKind kind, const char *what)
{
    strbuf_printf(row->out, "template <int PASS> constexpr bool %s = false", name);
    for (int pass = 0; pass < row->passes.count; pass++)
        if (row->reading[kind] >> pass & 1)
            strbuf_printf(row->out, " || PASS == %d", pass);
    strbuf_printf(row->out, ";   // %s\n", what);
}

static void emit_rounds(const RowEmitter *row)
{
    int rounds = rowwise_rounds(row->fusion, &row->passes), before = 0;
    strbuf_printf(row->out, "constexpr int ROUNDS = %d;   // reductions of a row\n", rounds);
    strbuf_puts(row->out, "template <int PASS> constexpr int ROUNDS_BEFORE = ");
    for (int pass = 0; pass < row->passes.count; before += rowwise_rounds_of(row, pass++))
        strbuf_printf(row->out, "PASS == %d ? %d : ", pass, before);
    strbuf_printf(row->out, "%d;\n", rounds);
}

static void emit_pass_constants(const RowEmitter *row)
{
    StrBuf *out = row->out;
    strbuf_printf(out, "constexpr int PASSES = %d;   // over a row\n", row->passes.count);
    emit_reading(row, "READS", READ_IN, "elements of the row");
    emit_reading(row, "WEIGHS", READ_WEIGHTS, "what is the same for every row");
    emit_rounds(row);
    strbuf_printf(out, "constexpr bool MEETS = %s;   // a group's warps in shared memory, each round\n",
                  truth(row->meets));
    strbuf_printf(out, "constexpr bool WEIGHED = %s;   // something is the same for every row\n",
                  truth(row->weighed));
    strbuf_printf(out, "constexpr bool STARTS = %s;   // something is known of a row before its first pass\n",
                  truth(row->starts));
    strbuf_printf(
        out, "constexpr bool STORES_ELEMENTS = %s, STORES_VALUES = %s;   // of a row; what is known of it\n",
        truth(row->store_elements.length), truth(row->store_values.length));
}

/* Totals of this thread that grow in the pass. */
static void emit_totals(RowEmitter *row, int pass)
{
    for (int i = 0; i < row->fusion->op_count; i++) {
        const FusedOp *op = &row->fusion->ops[i];
        if (op->reduce == REDUCE_NONE || !rowwise_walks_in(row, i, pass))
            continue;
        const char *type = value_type(op->body->type);
        rowwise_declare(
            row, type,
            arena_printf(row->out->arena, "total%d = %s::identity<%s>()", i, combiner(op->reduce), type));
        if (rowwise_shares_parts(row->fusion, &row->passes, i))
            rowwise_declare(row, "int", arena_printf(row->out->arena, "count%d = 0", i));
    }
}

/* What the passes do, function by function. */
static void make_passes(RowEmitter *row)
{
    StrBuf *const texts[] = {&row->members, &row->make, &row->store_elements, &row->finish,
                             &row->store_values};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        *texts[i] = strbuf_new(row->out->arena);
    row->declared = "";
    rowwise_emit_row_values(row, BEFORE_PASSES);
    row->starts = row->finish.length > 0;
    for (int pass = 0; pass < row->passes.count; pass++) {
        for (ReadKind kind = READ_IN; kind <= READ_WEIGHTS; kind++)
            row->reading[kind] |= (uint64_t)rowwise_reads_in(row, pass, kind) << pass;
        emit_totals(row, pass);
        rowwise_emit_vector(row, pass);
        rowwise_emit_row_values(row, pass);
    }
}

static void emit_function(const RowEmitter *row, const char *signature, const StrBuf *body)
{
    if (body->length)
        strbuf_printf(row->out,
                      "    template <int PASS> __device__ __forceinline__ void %s\n    {\n%s    }\n",
                      signature, body->text);
}

static void emit_passes(const RowEmitter *row)
{
    StrBuf *out = row->out;
    rows_emit_elements(out, row->fusion, row->elements);
    strbuf_printf(out,
                  "\n// A row, where the thread's vector 0 begins in it, and what the passes find out.\n"
                  "struct Row {\n    Index row, column%s%s;\n\n",
                  row->weights_first ? ";\n    Weights weights[VECTORS]" : "", row->members.text);
    emit_function(row,
                  row->weighed ? "make(const Tensors &t, Index at, int k, const Inputs &in, Elements &el, "
                                 "const Weights &weights)"
                               : "make(const Tensors &t, Index at, int k, const Inputs &in, Elements &el)",
                  &row->make);
    emit_function(row, "store_elements(const Tensors &t, Index at, int k, const Elements &el) const",
                  &row->store_elements);
    emit_function(row, row->meets ? "finish(const Tensors &t, int round)" : "finish(const Tensors &t)",
                  &row->finish);
    emit_function(row, "store_values(const Tensors &t) const", &row->store_values);
    strbuf_puts(out, "};\n");
}

/* The names of axes that are all of the row's positions, or all along it. */
static void name_axes(RowEmitter *row)
{
    const Fusion *fusion = row->fusion;
    if (fusion->spatial_count == 1)
        row->first.axis[0] = "row";
    if (fusion->axis_count == fusion->spatial_count + 1)
        row->first.axis[fusion->spatial_count] = "at";
}

void rowwise_emit(StrBuf *out, const KernelPlan *plan)
{
    const Fusion *fusion = plan->fusion;
    RowEmitter row = {
        .out = out,
        .fusion = fusion,
        .shape = rowwise_shape_of(plan->view, rowwise_variant(plan->rules)),
        .variant = rowwise_variant(plan->rules),
        .first = scope_of(plan),
    };
    row.layout = schedule_layout(plan->rules);
    row.softmax = rowwise_softmax_type(fusion);
    if (row.softmax != DTYPE_F32)
        row.first.exponential = rowwise_exponential(&row);
    row.passes = rowwise_passes(fusion, row.variant.home);
    row.reads = *rowwise_reads_of(plan->view, row.shape);
    row.weighed = rowwise_weights(&row.reads) > 0;
    row.meets = row.variant.group > plan->device->warp_size || rowwise_has_parts(&row);
    row.reads.walk.held = row.variant.home == ROW_IN_REGISTERS;
    row.reads.walk.once = rowwise_reads_once(&row);
    row.weights_first = rowwise_reads_weights_first(&row.reads, row.variant,
                                                    rowwise_vectors(fusion, row.shape, row.variant.group));
    name_axes(&row);
    row.element = rows_element_scope(out->arena, &row.first, fusion->axis_count - 1, fusion_columns(fusion));

    row.mask = rowwise_mask(&row.reads, row.variant);
    row.element.loaded = rowwise_loaded;
    row.element.context = &row;
    make_passes(&row);

    emit_row_constants(&row, plan);
    emit_vector_constants(&row);
    emit_pass_constants(&row);
    rowwise_emit_copies(&row);
    rowwise_emit_reads(&row, READ_IN);
    rowwise_emit_reads(&row, READ_WEIGHTS);
    emit_passes(&row);
}
