// The parameter block of a row kernel: constants, what one vector reads, and the passes over a row.
#include <inttypes.h>

#include "codegen/family/rows/rowwise_parts.h"
#include "rtile/space.h"

// ---- constants ----

/* Rows that are made together take as many registers as there are: with 72 for 64 an SM holds one block of 512 threads where the
   model counts on two (tuning-log 37). */
static int min_blocks(const RowEmitter *row, const KernelPlan *plan)
{
    if (row->weights_first)
        return 1;
    return row->variant.together > 1 ? plan->program->perf.blocks_per_sm : 0;
}

static void emit_row_constants(const RowEmitter *row, const KernelPlan *plan)
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
        row->variant.together > 1 ? row->variant.together : 1,
        row->variant.together > 1 ? rowwise_rows_apart(row->fusion, row->shape) : 1);
    strbuf_printf(row->out, "constexpr int ROUNDS = %d;   // reductions of a row\n",
                  rowwise_rounds(row->fusion, &row->passes));
    strbuf_printf(row->out, "constexpr int RESULT_BYTES = %d;   // of the widest one, and a warp\n",
                  rowwise_result_bytes(row->fusion, &row->passes));
    strbuf_printf(row->out,
                  "constexpr int PARTIAL_BYTES = %" PRId64
                  ";   // of shared memory, for what warps leave; copies of rows lie behind it\n",
                  row->layout.partial_bytes);
    strbuf_printf(
        row->out,
        "constexpr int MIN_BLOCKS_PER_SM = %d;   // that its registers must suffice for; 0: the compiler chooses\n",
        min_blocks(row, plan));
}

static const char *truth(bool value) { return value ? "true" : "false"; }

static void emit_vector_constants(const RowEmitter *row)
{
    strbuf_printf(
        row->out,
        "constexpr int VECTOR = %d;   // neighbouring elements that a thread reads and writes at once\n",
        row->shape.vector);
    strbuf_printf(row->out, "constexpr int VECTORS = %" PRId64 ";   // of a thread\n",
                  rowwise_vectors(row->fusion, row->shape, row->variant.group));
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

/* Totals of this thread, and what finish() makes of those of all. */
static void emit_members(const RowEmitter *row, int pass)
{
    StrBuf *out = row->out;
    for (int i = 0; i < row->fusion->op_count; i++) {
        const FusedOp *op = &row->fusion->ops[i];
        if (op->reduce == REDUCE_NONE || !rowwise_walks_in(row, i, pass))
            continue;
        const char *type = value_type(op->body->type);
        strbuf_printf(out, "    %s total%d = %s::identity<%s>();\n", type, i, combiner(op->reduce), type);
        if (rowwise_shares_parts(row->fusion, &row->passes, i))
            strbuf_printf(out, "    int count%d = 0;\n", i);
    }
    rowwise_declare_row_values(row, pass + 1);
}

static void emit_pass(RowEmitter *row, int pass)
{
    StrBuf *out = row->out;
    const char *before = pass ? arena_printf(out->arena, "Pass%d", pass - 1) : "Start";
    int rounds = rowwise_rounds_of(row, pass);
    strbuf_printf(out, "\nstruct Pass%d : Pass<%s> {\n", pass, before);
    size_t start = out->length;
    if (rounds)
        strbuf_printf(out, "    static constexpr int ROUNDS = %d;\n", rounds);
    if (rowwise_reads_in(row, pass, READ_IN))
        strbuf_puts(out, "    static constexpr bool READS = true;\n");
    if (rowwise_reads_in(row, pass, READ_WEIGHTS))
        strbuf_puts(out, "    static constexpr bool WEIGHTS = true;\n");
    emit_members(row, pass);
    strbuf_puts(out, out->length > start ? "\n" : "");
    rowwise_emit_vector(row, pass);
    rowwise_emit_row_values(row, pass + 1);
    strbuf_puts(out, "};\n");
}

/* What is known without a pass. */
static void emit_start(RowEmitter *row)
{
    StrBuf *out = row->out, values = strbuf_new(out->arena);
    row->out = &values;
    rowwise_declare_row_values(row, 0);
    strbuf_puts(&values, values.length ? "\n" : "");
    rowwise_emit_row_values(row, 0);
    row->out = out;
    strbuf_printf(out,
                  "\n// A row, pass by pass: each knows what those before have found out.\n"
                  "struct Start : RowStart<Index> {%s%s};\n",
                  values.length ? "\n" : "", values.text);
}

static void emit_passes(RowEmitter *row)
{
    StrBuf text = strbuf_new(row->out->arena), *out = row->out;
    row->out = &text;
    emit_start(row);
    for (int pass = 0; pass < row->passes.count; pass++)
        emit_pass(row, pass);
    strbuf_printf(&text, "using LastPass = Pass%d;\n", row->passes.count - 1);
    row->out = out;
    rows_emit_elements(out, row->fusion, row->elements);
    strbuf_puts(out, text.text);
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
    };
    row.layout = schedule_layout(plan->rules);
    row.softmax = rowwise_softmax_type(fusion);
    if (row.softmax != DTYPE_F32)
        row.first.exponential = arena_printf(out->arena, "softmax_exp<%s>", memory_type(row.softmax));
    row.passes = rowwise_passes(fusion, row.variant.home);
    row.reads = rowwise_reads(fusion, row.shape);
    row.reads.walk.held = row.variant.home == ROW_IN_REGISTERS;
    row.reads.walk.once = rowwise_reads_once(&row);
    row.weights_first = rowwise_reads_weights_first(&row.reads, row.variant,
                                                    rowwise_vectors(fusion, row.shape, row.variant.group));
    for (int a = 0; a < fusion->axis_count; a++)
        row.first.axis[a] = axis_names[a];
    row.element = rows_element_scope(out->arena, &row.first, fusion->axis_count - 1, fusion_columns(fusion));

    emit_row_constants(&row, plan);
    emit_vector_constants(&row);
    rowwise_emit_copies(&row);
    rowwise_emit_reads(&row, READ_IN);
    rowwise_emit_reads(&row, READ_WEIGHTS);
    row.mask = rowwise_mask(&row.reads, row.variant);
    row.element.loaded = rowwise_loaded;
    row.element.context = &row;
    emit_passes(&row);
}
