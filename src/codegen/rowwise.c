// rowwise: reductions along the inner axes, and pointwise steps before, between and after them, in one kernel: softmax,
// normalisations, their gradients. A group of threads keeps a row in registers, so that memory sees it once.
#include <inttypes.h>

#include "base/checked.h"
#include "codegen/reads.h"
#include "codegen/space.h"

enum {
    MAX_ELEMENTS =
        32,   // of a row in one thread: with 64 an H200 had too few threads to keep its memory busy
    MOST_ELEMENTS = 64,   // where a row is too long for that
    LONG_GROUP = 512,   // threads; more leave each too few registers for 32 elements and what is made of them
    MAX_GROUP = 1024,   // threads of a row: a block, on every device so far
    MAX_BLOCK = 256,    // threads of a block of several rows
    PARTIAL_BYTES = 256   // shared memory for one result of each warp
};

/* Space axes. */
enum { ROW, COLUMN };

static uint32_t spatial_axes(const Fusion *fusion) { return (1u << fusion->spatial_count) - 1; }
static uint32_t column_axes(const Fusion *fusion)
{
    return ((1u << fusion->axis_count) - 1) & ~spatial_axes(fusion);
}

static bool is_of_elements(const Fusion *fusion, const FusedOp *op)
{
    return (op->spatial & column_axes(fusion)) != 0;
}

static bool matches(const Fusion *fusion, const DeviceSpec *device)
{
    (void)device;
    int reductions = 0, of_elements = 0;
    for (int i = 0; i < fusion->op_count; i++) {
        const FusedOp *op = &fusion->ops[i];
        if (op->reduce != REDUCE_NONE && op->reduced != column_axes(fusion))
            return false;
        reductions += op->reduce != REDUCE_NONE;
        of_elements += is_of_elements(fusion, op);
    }
    bool more_than_a_reduction = reductions > 1 || (reductions == 1 && of_elements > 0);
    return column_axes(fusion) && more_than_a_reduction && count_bit_outputs(fusion) == 0;
}

// ---- rules ----

static Walk walk_of(const Fusion *fusion, int vector)
{
    return (Walk){
        .fusion = fusion, .ops = fusion->op_count, .axis = fusion->axis_count - 1, .vector = vector};
}

/* Neighbouring elements of one access: 16 bytes of the narrowest tensor that lies along the rows, if rows are whole vectors. */
static int widest_vector(const Fusion *fusion)
{
    int narrowest = 64;
    Reads reads = reads_find(walk_of(fusion, 1));
    for (int i = 0; i < reads.count; i++) {
        int bits = dtype_info[reads.reads[i].access->tensor->dtype].bits;
        if (bits > 1 && bits < narrowest && access_axes(reads.reads[i].access) & column_axes(fusion))
            narrowest = bits;
    }
    int vector = ACCESS_BYTES * 8 / narrowest;
    while (vector > 1 && fusion->axes[fusion->axis_count - 1].extent % vector)
        vector /= 2;
    return vector;
}

static TileRules group_rules(const Fusion *fusion, const DeviceSpec *device, int vector, int64_t group)
{
    int64_t columns = reduction_points(fusion);
    int64_t each = vector * ceil_div(columns, vector * group);   // elements of a thread
    TileRules rules = {.space = space_new(fusion, device), .variant = (int)group, .stages = 1};
    rules.variant_name = group <= device->warp_size ? "warp" : "block";
    space_add_axis(&rules.space, "row", spatial_points(fusion), false);
    space_add_axis(&rules.space, "column", each * group, true);
    space_add_flat_tiles(&rules.space, fusion, fusion->axis_count - 1, device);
    int64_t rows = group <= device->warp_size ? MAX_BLOCK / group : 1;
    rules.rule[LEVEL_REGISTER][ROW] = (AxisRule){1, 1};
    rules.rule[LEVEL_SHARED][ROW] = (AxisRule){1, rows};
    rules.rule[LEVEL_REGISTER][COLUMN] = (AxisRule){each, each};
    rules.rule[LEVEL_SHARED][COLUMN] = (AxisRule){each * group, each * group};
    rules.threads_reduce = true;
    rules.accumulator_bits = 32;
    rules.register_overhead = 32;
    rules.input_buffers = 1;
    rules.shared_overhead = group <= device->warp_size ? 0 : PARTIAL_BYTES;
    return rules;
}

/* Every group that leaves its threads a few vectors of the row, but not more than they can hold. */
static int rules(const Fusion *fusion, const DeviceSpec *device, TileRules *variants)
{
    int count = 0, vector = widest_vector(fusion);
    int64_t columns = reduction_points(fusion);
    int64_t most = columns > (int64_t)MAX_ELEMENTS * LONG_GROUP ? MOST_ELEMENTS : MAX_ELEMENTS;
    for (int64_t group = 1; group <= MAX_GROUP && count < MAX_VARIANTS; group *= 2) {
        int64_t each = vector * ceil_div(columns, vector * group);
        bool idle = group > 1 && (group / 2) * vector >= columns;   // half of the threads would do
        if (each <= most && !idle && group <= device->max_threads_per_block)
            variants[count++] = group_rules(fusion, device, vector, group);
    }
    return count;
}

// ---- the parameter block ----

static void emit_constants(StrBuf *out, const KernelPlan *plan)
{
    const RTile *each = &plan->program->tile[LEVEL_REGISTER];
    int vector = widest_vector(plan->fusion);
    strbuf_printf(out, "constexpr Index ROWS = %" PRId64 ", COLUMNS = %" PRId64 ";\n",
                  spatial_points(plan->fusion), reduction_points(plan->fusion));
    strbuf_printf(out, "constexpr int GROUP = %d;   // threads of a row\n", plan->program->variant);
    strbuf_printf(out, "constexpr int ROWS_OF_BLOCK = %d;   // groups\n",
                  plan->threads / plan->program->variant);
    strbuf_printf(
        out, "constexpr int VECTOR = %d;   // neighbouring elements that a thread reads and writes at once\n",
        vector);
    strbuf_printf(out, "constexpr int VECTORS = %" PRId64 ";   // of a thread\n",
                  each->size[COLUMN] / vector);
}

static void emit_load_elements(StrBuf *out, const Scope *first, const Scope *element, const Reads *reads)
{
    strbuf_puts(out, "\n// What one vector of a row's elements reads.\n");
    reads_emit_inputs(out, reads);
    strbuf_puts(out, "\n__device__ __forceinline__ void load_elements(const Tensors &t, Index row, Index at, "
                     "Inputs &in)\n{\n"
                     "    (void)t, (void)row, (void)at, (void)in;\n");
    uint32_t used = reads_axes(reads);
    emit_used_positions(out, "    ", "row", first, 0, first->fusion->spatial_count, used);
    emit_used_positions(out, "    ", "at", first, first->fusion->spatial_count, first->fusion->axis_count,
                        used);
    reads_emit_vectors(out, "    ", first, reads, "row");
    if (reads_have(reads, PATTERN_GATHER)) {
        strbuf_puts(out, "    UNROLL for (int e = 0; e < VECTOR; ++e) {\n");
        reads_emit_gathers(out, "        ", element, reads);
        strbuf_puts(out, "    }\n");
    }
    strbuf_puts(out, "}\n");
}

/* The loop over a thread's vectors; what stands in it sees the vector's reads and the positions of the `used` axes. */
static void emit_vectors_open(StrBuf *out, const Scope *first, const char *condition, uint32_t used)
{
    const Fusion *fusion = first->fusion;
    strbuf_printf(
        out, "    UNROLL for (int k = 0; k < VECTORS; ++k)\n        if (%scolumn + k * STEP < COLUMNS) {\n",
        condition);
    if (used >> fusion->spatial_count) {
        strbuf_puts(out, "            const Index at = column + k * STEP;\n");
        emit_used_positions(out, "            ", "at", first, fusion->spatial_count, fusion->axis_count,
                            used);
    }
}

static void emit_reads(StrBuf *out, const Reads *reads, const Expr *expr)
{
    if (reads_are_used(reads, expr))
        strbuf_puts(out, "            const Inputs &in = inputs[k];\n");
}

static void emit_reduction(StrBuf *out, const Scope *first, const Scope *element, const Reads *reads,
                           int index)
{
    const FusedOp *op = &first->fusion->ops[index];
    const char *type = value_type(op->body->type), *reduction = combiner(op->reduce);
    strbuf_printf(out, "    %s total%d = %s::identity<%s>();\n", type, index, reduction, type);
    emit_vectors_open(out, first, "", reads_axes_left(reads, op->body));
    emit_reads(out, reads, op->body);
    strbuf_printf(out,
                  "            UNROLL for (int e = 0; e < VECTOR; ++e)\n                total%d = "
                  "%s::combine(total%d, ",
                  index, reduction, index);
    emit_expr(out, element, op->body);
    strbuf_puts(out, ");\n        }\n");
    StrBuf total = strbuf_new(out->arena);
    strbuf_printf(&total, "reduce_row<%s>(total%d)", reduction, index);
    strbuf_printf(out, "    const %s v%d = ", value_type(op->out->dtype), index);
    emit_rounded(out, op, total.text);
    strbuf_puts(out, ";\n");
}

static void emit_row_value(StrBuf *out, const Scope *scope, int index)
{
    const FusedOp *op = &scope->fusion->ops[index];
    StrBuf body = strbuf_new(out->arena);
    emit_expr(&body, scope, op->body);
    strbuf_printf(out, "    const %s v%d = ", value_type(op->out->dtype), index);
    emit_rounded(out, op, body.text);
    strbuf_puts(out, ";\n");
}

static void emit_element_value(StrBuf *out, const Scope *first, const Scope *element, const Reads *reads,
                               int index)
{
    const FusedOp *op = &first->fusion->ops[index];
    StrBuf body = strbuf_new(out->arena);
    emit_expr(&body, element, op->body);
    strbuf_printf(out, "    %s v%d[VECTORS][VECTOR];\n", value_type(op->out->dtype), index);
    emit_vectors_open(out, first, "", reads_axes_left(reads, op->body));
    emit_reads(out, reads, op->body);
    strbuf_printf(out,
                  "            UNROLL for (int e = 0; e < VECTOR; ++e)\n                v%d[k][e] = ", index);
    emit_rounded(out, op, body.text);
    strbuf_puts(out, ";\n        }\n");
}

/* Whether a vector of elements is one aligned access of the stored tensor. */
static bool stores_vectors(const Fusion *fusion, const FusedOp *op, int vector)
{
    Affine offset = access_offset(&op->store);
    int inner = fusion->axis_count - 1;
    for (int a = 0; a < MAX_AXES; a++)
        if (a != inner && offset.coef[a] % vector)
            return false;
    return offset.coef[inner] == 1 && offset.constant % vector == 0;
}

static void emit_element_store(StrBuf *out, const Scope *first, const Scope *element, int index)
{
    const FusedOp *op = &first->fusion->ops[index];
    int output = output_position(first->fusion, op->out), vector = widest_vector(first->fusion);
    bool whole = stores_vectors(first->fusion, op, vector);
    Affine offset = access_offset(&op->store);
    emit_vectors_open(out, first, "stores && ", access_axes(&op->store));
    strbuf_puts(out, whole ? "            "
                           : "            UNROLL for (int e = 0; e < VECTOR; ++e)\n                ");
    strbuf_printf(out, whole ? "store_vector<VECTOR>(t.out%d, " : "store(t.out%d, ", output);
    emit_affine(out, &offset, whole ? first->axis : element->axis);
    strbuf_printf(out, whole ? ", v%d[k]);\n        }\n" : ", v%d[k][e]);\n        }\n", index);
}

static void emit_row_store(StrBuf *out, const Scope *scope, int index)
{
    const FusedOp *op = &scope->fusion->ops[index];
    Affine offset = access_offset(&op->store);
    strbuf_printf(out, "    if (stores && column == 0)\n        store(t.out%d, ",
                  output_position(scope->fusion, op->out));
    emit_affine(out, &offset, scope->axis);
    strbuf_printf(out, ", v%d);\n", index);
}

static void emit_compute(StrBuf *out, const Scope *first, const Scope *element, const Reads *reads)
{
    const Fusion *fusion = first->fusion;
    strbuf_puts(
        out,
        "\n// One row, step by step. Vector k of this thread starts at column + k * STEP.\n"
        "__device__ __forceinline__ void compute(const Tensors &t, Index row, Index column, bool stores,\n"
        "                                        const Inputs (&inputs)[VECTORS])\n{\n"
        "    (void)t, (void)row;\n    constexpr Index STEP = GROUP * VECTOR;\n");
    uint32_t used = 0;
    for (int i = 0; i < fusion->op_count; i++) {
        used |= reads_axes_left(reads, fusion->ops[i].body);
        used |= fusion->ops[i].stored ? access_axes(&fusion->ops[i].store) : 0;
    }
    emit_used_positions(out, "    ", "row", first, 0, fusion->spatial_count, used);
    for (int i = 0; i < fusion->op_count; i++) {
        const FusedOp *op = &fusion->ops[i];
        if (op->reduce != REDUCE_NONE)
            emit_reduction(out, first, element, reads, i);
        else if (is_of_elements(fusion, op))
            emit_element_value(out, first, element, reads, i);
        else
            emit_row_value(out, first, i);
        if (op->stored && is_of_elements(fusion, op))
            emit_element_store(out, first, element, i);
        else if (op->stored)
            emit_row_store(out, first, i);
    }
    strbuf_puts(out, "}\n");
}

static void emit(StrBuf *out, const KernelPlan *plan)
{
    const Fusion *fusion = plan->fusion;
    int vector = widest_vector(fusion), inner = fusion->axis_count - 1;
    Reads reads = reads_find(walk_of(fusion, vector));
    Scope first = {.fusion = fusion, .wide = plan->wide};
    for (int a = 0; a < fusion->axis_count; a++)
        first.axis[a] = axis_names[a];
    Scope element = first;
    element.axis[inner] = arena_printf(out->arena, "(%s + e)", axis_names[inner]);
    element.suffix = "[k][e]";
    element.suffix_axes = column_axes(fusion);

    emit_constants(out, plan);
    emit_load_elements(out, &first, &element, &reads);
    element.loaded = reads_loaded;
    element.context = &reads;
    emit_compute(out, &first, &element, &reads);
}

const Family rowwise_family = {
    .name = "rowwise",
    .template_path = "templates/rowwise.cu",
    .whole_warps = true,
    .matches = matches,
    .rules = rules,
    .emit = emit,
};
