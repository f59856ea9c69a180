// The parameter block of a row kernel: constants, what one vector reads, and the passes over a row.

#include "codegen/family/rows/rowwise_parts.h"
#include "rtile/space.h"

// ---- constants ----

/* Rows that are made together take as many registers as there are: with 72 for 64 an SM holds one block of
   512 threads where the model counts on two (tuning-log 37). Rows that pass through them do with a few less: with 35 for 32 it
   holds one of two blocks of 1024 (tuning-log 235). Of rows in several runs compilers compute the positions of all vectors ahead:
   183 registers, one block of two of 256 threads (tuning-log 282). */
static int min_blocks(const RowEmitter *row, const KernelPlan *plan)
{
    if (row->weights_first)
        return 1;
    int resident = plan->program->perf.blocks_per_sm;
    bool halves = !rowwise_keeps(row->variant.home) && resident == 2 && 2 * plan->threads == plan->device->max_threads_per_sm;
    bool runs = !rowwise_keeps(row->variant.home) && row->fusion->axis_count > row->fusion->spatial_count + 1;
    return row->variant.together > 1 || halves || runs ? resident : 0;
}

static void emit_row_constants(const RowEmitter *row, const KernelPlan *plan)
{
    StrBuf *out = row->out;
    const RowVariant *variant = &row->variant;
    int together = variant->together > 1 ? variant->together : 1;
    CONSTEXPR(out, "Index ROWS", NULL, spatial_points(row->fusion));
    CONSTEXPR(out, "Index COLUMNS", NULL, reduction_points(row->fusion));
    CONSTEXPR(out, "int THREADS, MIN_BLOCKS_PER_SM",
              "of a block; of the launch bounds, 0: unset", plan->threads,
              min_blocks(row, plan));
    CONSTEXPR(out, "int GROUP, ROWS_OF_BLOCK", "threads of a row; groups of a block", variant->group,
              plan->threads * variant->cluster / variant->group);
    CONSTEXPR(out, "int CLUSTER", "blocks of a group", variant->cluster);
    CONSTEXPR(out, "int ROWS_OF_GROUP", "rows that a group computes one after the other", plan->program->turns);
    CONSTEXPR(out, "int ROWS_TOGETHER", "rows that it computes at a time, which share the loads of weights",
              together);
    CONSTEXPR(out, "Index ROWS_APART", "from one of these rows to the next, with the same alignment",
              together > 1 ? rowwise_rows_apart(row->fusion, row->shape) : 1);
    CONSTEXPR(out, "int RESULT_BYTES", "of the widest result, per warp", rowwise_result_bytes(row->passes));
    CONSTEXPR(out, "bool FEW", "every thread reduces the results of all warps; else lanes share them",
              ceil_div(variant->group, plan->device->warp_size) <= FEW_WARPS);
}

static void emit_vector_constants(const RowEmitter *row)
{
    StrBuf *out = row->out;
    RowHome home = row->variant.home;
    CONSTEXPR(out, "int VECTOR, VECTORS",
              "contiguous elements of an access; accesses of a thread", row->shape.vector,
              rowwise_vectors(row->fusion, row->shape, row->variant.group));
    strbuf_puts(out, "constexpr Index STEP = GROUP * VECTOR;   // from one vector of a thread to the next\n"
                     "constexpr int PLACES = GROUP / CLUSTER * VECTOR;   // and of its copy in shared memory\n");
    CONSTEXPR(out, "bool UNALIGNED", "rows are not aligned to vectors",
              row->shape.unaligned);
    CONSTEXPR(out, "bool KEPT", "in registers; else every pass reads the row, or its copy", rowwise_keeps(home));
    CONSTEXPR(out, "bool COPIED", "to shared memory,", rowwise_copies(home));
    CONSTEXPR(out, "bool AHEAD", "during the previous row", home == ROW_AHEAD);
    CONSTEXPR(out, "bool WEIGHTS_FIRST", "weights are loaded before the row, so that no reduction waits for them", row->weights_first);
    CONSTEXPR(out, "bool MASKED", "masked elements are not read", rowwise_has_conditions(row));
    int64_t vectors = rowwise_vectors(row->fusion, row->shape, row->variant.group);
    bool written_out = vectors <= ROWWISE_MOST_UNROLLED && !row->weighed;
    if (home == ROW_IN_MEMORY)
        CONSTEXPR(out, "int VECTORS_AT_ONCE", "vectors that are loaded before the first is used; 0: compilers choose",
                  written_out ? 0 : row->variant.at_once);
    strbuf_printf(out, "#define UNROLL_VECTORS %s\n", rowwise_unrolling(row));
}

// ---- passes ----

/* `template <int PASS> constexpr bool READS = PASS == 0 || PASS == 1;` */
static void emit_reading(const RowEmitter *row, const char *name, uint32_t reads, const char *what)
{
    strbuf_printf(row->out, "template <int PASS> constexpr bool %s = false", name);
    for (int pass = 0; pass < row->passes->count; pass++)
        if (row->passes->pass[pass].reads & reads)
            strbuf_printf(row->out, " || PASS == %d", pass);
    strbuf_printf(row->out, ";   // %s\n", what);
}

static void emit_rounds(const RowEmitter *row)
{
    int rounds = 0;
    StrBuf before = strbuf_new(row->out->arena);
    for (int pass = 0; pass < row->passes->count; pass++) {
        strbuf_printf(&before, "PASS == %d ? %d : ", pass, rounds);
        rounds += __builtin_popcountll(rowwise_rounds(row->passes, pass));
    }
    CONSTEXPR(row->out, "int ROUNDS", "reductions of a row", rounds);
    strbuf_printf(row->out, "template <int PASS> constexpr int ROUNDS_BEFORE = %s%d;\n", before.text, rounds);
}

static void emit_pass_constants(const RowEmitter *row)
{
    StrBuf *out = row->out;
    CONSTEXPR(out, "int PASSES", "over a row", row->passes->count);
    emit_reading(row, "READS", ~rowwise_weights(&row->reads), "elements of the row");
    emit_reading(row, "WEIGHS", rowwise_weights(&row->reads), "weights: the same for every row");
    emit_rounds(row);
    CONSTEXPR(out, "bool MEETS", "each reduction crosses warps, through shared memory", row->meets);
    CONSTEXPR(out, "bool WEIGHED", "some inputs are the same for every row", row->weighed);
    CONSTEXPR(out, "bool STARTS", "some values of a row precede its first pass", row->starts);
    CONSTEXPR(out, "bool STORES_ELEMENTS, STORES_VALUES", "of a row; its results", row->store_elements.length > 0,
              row->store_values.length > 0);
}

/* Totals of this thread that the pass accumulates. */
static void emit_totals(RowEmitter *row, int pass)
{
    FOR_BITS (i, row->passes->pass[pass].reduced) {
        const FusedOp *op = &row->fusion->ops[i];
        const char *type = value_type(op->body->type);
        rowwise_declare(
            row, type,
            arena_printf(row->out->arena, "total%d = %s::identity<%s>()", i, combiner(op->reduce), type));
        if (rowwise_shares_parts(row->passes, i))
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
    for (int pass = 0; pass < row->passes->count; pass++) {
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
    rows_emit_elements(out, row->fusion, passes_made(row->passes));
    strbuf_printf(out,
                  "\n// A row, the column of the thread's vector 0, and the results of the passes.\n"
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
        .shape = rowwise_shape_of(plan->view, rowwise_variant(plan->kind)),
        .variant = rowwise_variant(plan->kind),
        .first = scope_of(plan),
    };
    row.softmax = rowwise_softmax_type(fusion);
    if (row.softmax != DTYPE_F32)
        row.first.exponential = rowwise_exponential(&row);
    row.passes = ((const RowView *)plan->view)->passes[row.variant.home];
    row.reads = *rowwise_reads_of(plan->view, row.shape);
    row.weighed = rowwise_weights(&row.reads) != 0;
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
    row.reads.walk.ends_later = row.shape.unaligned && rowwise_widens_in_branches(&row) && !rowwise_has_conditions(&row);

    emit_row_constants(&row, plan);
    emit_vector_constants(&row);
    emit_pass_constants(&row);
    rowwise_emit_copies(&row);
    rowwise_emit_reads(&row, READ_IN);
    rowwise_emit_reads(&row, READ_WEIGHTS);
    emit_passes(&row);
}
