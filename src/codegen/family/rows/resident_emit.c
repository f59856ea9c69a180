// The parameter block of resident kernels.
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/checked.h"
#include "codegen/cuda/loop_invariant.h"
#include "codegen/family/rows/resident_parts.h"
#include "rtile/space.h"

enum { LINE_BYTES = 128 };   // that L2 fetches together

typedef struct Emitter {
    StrBuf *out;
    const KernelPlan *plan;
    const Fusion *fusion;
    int vector;
    Reads reads;
    Invariants invariants;
    Passes passes;
    uint32_t kept;
    Scope first;     // the first element of a vector
    Scope element;   // element e of it
    char text[24];
} Emitter;

/* For Scope.loaded. */
static const char *find_loaded(void *context, const Expr *expr)
{
    Emitter *emitter = context;
    int index = expr->kind == EXPR_ACCESS ? invariants_position(&emitter->invariants, &expr->access) : -1;
    if (index < 0)
        return reads_loaded(&emitter->reads, expr);
    snprintf(emitter->text, sizeof emitter->text, "f%d", index);
    return emitter->text;
}

/* Each share of what is kept ends where the next one begins, or before the block's shared memory does. */
static void emit_room(Emitter *emitter)
{
    const char *end = "SHARED_BYTES";
    for (int i = emitter->reads.count - 1; i >= 0; i--) {
        if (!(emitter->kept >> i & 1))
            continue;
        strbuf_printf(emitter->out,
                      "static_assert(KEPT_X%d + SHARE * (int)sizeof(%s) <= %s, \"what is kept has room\");\n", i,
                      memory_type(emitter->reads.reads[i].access->tensor->dtype), end);
        end = arena_printf(emitter->out->arena, "KEPT_X%d", i);
    }
}

static void emit_constants(Emitter *emitter)
{
    const KernelPlan *plan = emitter->plan;
    StrBuf *out = emitter->out;
    int cluster = plan->program->cluster;
    ScheduleLayout layout = schedule_layout(plan->rules);
    strbuf_printf(
        out,
        "constexpr Index COLUMNS = %" PRId64 ";\nconstexpr Index SHARE = %" PRId64
        ";   // columns of a block\nconstexpr int CLUSTER = %d;   // blocks of a row\n"
        "constexpr int THREADS = %d;\n"
        "constexpr int VECTOR = %d;   // neighbouring elements that a thread reads and writes at once\n"
        "constexpr int SLOTS = %d;   // reductions\n"
        "constexpr int KEPT = %" PRId64 ";   // bytes of shared memory before what is kept\n",
        reduction_points(emitter->fusion), resident_share(emitter->fusion, cluster), cluster, plan->threads,
        emitter->vector, resident_reductions(emitter->fusion),
        layout.partial_bytes);
    for (int i = 0; i < emitter->reads.count; i++)
        if (emitter->kept >> i & 1)
            strbuf_printf(out, "constexpr int KEPT_X%d = %" PRId64 ";\n", i, layout.at[i]);
    emit_room(emitter);
}

static void emit_column_positions(Emitter *emitter, const char *indent, const char *flat, uint32_t used)
{
    emit_used_positions(emitter->out, indent, flat, &emitter->first, emitter->fusion->spatial_count,
                        emitter->fusion->axis_count, used);
}

static void emit_row_positions(Emitter *emitter, uint32_t used)
{
    emit_used_positions(emitter->out, "    ", "row", &emitter->first, 0, emitter->fusion->spatial_count,
                        used);
}

static void emit_keep(Emitter *emitter)
{
    StrBuf *out = emitter->out;
    strbuf_puts(out,
                "\n// Begins the copies of the vector at `column`, which is the block's at `own`.\n"
                "__device__ __forceinline__ void keep(const Tensors &t, Index row, Index column, Index own)\n"
                "{\n    (void)row;\n");
    emit_row_positions(emitter, reads_axes(&emitter->reads));
    emit_column_positions(emitter, "    ", "column", reads_axes(&emitter->reads));
    for (int i = 0; i < emitter->reads.count; i++) {
        const Read *read = &emitter->reads.reads[i];
        if (!(emitter->kept >> i & 1))
            continue;
        strbuf_printf(out, "    keep_vector<VECTOR>((%s *)(rollerc_shared + KEPT_X%d) + own, t.in%d, ",
                      memory_type(read->access->tensor->dtype), i,
                      input_position(emitter->fusion, read->access->tensor));
        emit_affine(out, &read->offset, emitter->first.axis);
        strbuf_puts(out, ");\n");
    }
    strbuf_puts(out, "}\n");
}

/* One request for each line. */
static void emit_announce(Emitter *emitter)
{
    StrBuf *out = emitter->out;
    uint32_t axes = 0;
    StrBuf body = strbuf_new(out->arena);
    for (int i = 0; i < emitter->reads.count; i++) {
        const Read *read = &emitter->reads.reads[i];
        const Tensor *tensor = read->access->tensor;
        if (emitter->kept >> i & 1 || tensor->dtype == DTYPE_B1)
            continue;
        axes |= access_axes(read->access);
        strbuf_printf(&body, "        if (own %% %d == 0)\n            prefetch(t.in%d + (",
                      LINE_BYTES * 8 / dtype_info[tensor->dtype].bits,
                      input_position(emitter->fusion, tensor));
        emit_affine(&body, &read->offset, emitter->first.axis);
        strbuf_puts(&body, "));\n");
    }
    strbuf_puts(
        out,
        "\n// Asks L2 for what the last walk alone reads.\n"
        "__device__ __forceinline__ void announce(const Tensors &t, Index row, Index first, Index count)\n"
        "{\n    (void)t, (void)row, (void)first, (void)count;\n");
    if (body.length) {
        emit_row_positions(emitter, axes);
        strbuf_puts(out, "    for (Index own = (Index)threadIdx.x * VECTOR; own < count; own += THREADS * VECTOR) {\n"
                         "        const Index column = first + own;\n");
        emit_column_positions(emitter, "        ", "column", axes);
        strbuf_printf(out, "%s    }\n", body.text);
    }
    strbuf_puts(out, "}\n");
}

static void emit_pass_reads(Emitter *emitter, uint32_t used)
{
    for (int i = 0; i < emitter->reads.count; i++) {
        const Read *read = &emitter->reads.reads[i];
        const Tensor *tensor = read->access->tensor;
        if (!(used >> i & 1))
            continue;
        strbuf_printf(emitter->out, "            %s<VECTOR>(",
                      tensor->dtype == DTYPE_B1 ? "load_bits" : "load_vector");
        if (emitter->kept >> i & 1) {
            strbuf_printf(emitter->out, "(const %s *)(rollerc_shared + KEPT_X%d), own",
                          memory_type(tensor->dtype), i);
        } else {
            strbuf_printf(emitter->out, "t.in%d, ", input_position(emitter->fusion, tensor));
            emit_affine(emitter->out, &read->offset, emitter->first.axis);
        }
        strbuf_printf(emitter->out, ", in.x%d);\n", i);
    }
}

/* `v3[e] = …;` for every element's value that the pass needs. */
static void emit_pass_values(Emitter *emitter, uint64_t ops, bool declare_bits)
{
    for (int i = 0; i < emitter->fusion->op_count; i++) {
        const FusedOp *op = &emitter->fusion->ops[i];
        if (!(ops >> i & 1))
            continue;
        StrBuf body = strbuf_new(emitter->out->arena);
        emit_expr(&body, &emitter->element, op->body);
        bool declared = declare_bits && op->stored && op->out->dtype == DTYPE_B1;
        if (!declared)
            strbuf_printf(emitter->out, "            %s v%d[VECTOR];\n", value_type(op->out->dtype), i);
        strbuf_printf(emitter->out,
                      "            UNROLL for (int e = 0; e < VECTOR; ++e)\n                v%d[e] = ", i);
        emit_rounded(emitter->out, emitter->fusion, i, body.text);
        strbuf_puts(emitter->out, ";\n");
    }
}

/* All threads make the same number of steps: bits are packed by whole warps. */
static void emit_pass_open(Emitter *emitter, const char *before)
{
    strbuf_printf(emitter->out,
                  "#pragma unroll 4\n    for (Index step = 0; step < SHARE; step += STEP) {\n"
                  "        const Index own = step + (Index)threadIdx.x * VECTOR, at = first + own;\n"
                  "        (void)at;\n%s        if (own < count) {\n            Inputs in;\n",
                  before);
}

static uint32_t pass_axes(const Emitter *emitter, const Needs *needs, bool stores)
{
    uint32_t used = 0;
    for (int i = 0; i < emitter->reads.count; i++)
        if (needs->reads_used >> i & ~(emitter->kept >> i) & 1)
            used |= access_axes(emitter->reads.reads[i].access);
    for (int i = 0; i < emitter->fusion->op_count; i++) {
        const FusedOp *op = &emitter->fusion->ops[i];
        if (needs->ops >> i & 1 || op->reduce != REDUCE_NONE)
            used |= reads_axes_left(&emitter->reads, op->body);
        if (stores && op->stored && fusion_op_is_of_elements(emitter->fusion, op))
            used |= access_axes(&op->store);
    }
    return used;
}

static void emit_reduction_pass(Emitter *emitter, int pass)
{
    const Fusion *fusion = emitter->fusion;
    StrBuf *out = emitter->out;
    Needs needs = passes_needs(fusion, &emitter->reads, &emitter->passes, pass);
    for (int i = 0; i < fusion->op_count; i++)
        if (fusion->ops[i].reduce != REDUCE_NONE && emitter->passes.of[i] == pass)
            strbuf_printf(out, "    %s total%d = %s::identity<%s>();\n",
                          value_type(fusion->ops[i].body->type), i, combiner(fusion->ops[i].reduce),
                          value_type(fusion->ops[i].body->type));
    emit_pass_open(emitter, "");
    emit_column_positions(emitter, "            ", "at", pass_axes(emitter, &needs, false));
    emit_pass_reads(emitter, needs.reads_used);
    emit_pass_values(emitter, needs.ops, false);
    for (int i = 0; i < fusion->op_count; i++) {
        const FusedOp *op = &fusion->ops[i];
        if (op->reduce == REDUCE_NONE || emitter->passes.of[i] != pass)
            continue;
        strbuf_printf(out,
                      "            UNROLL for (int e = 0; e < VECTOR; ++e)\n                total%d = "
                      "%s::combine(total%d, ",
                      i, combiner(op->reduce), i);
        emit_expr(out, &emitter->element, op->body);
        strbuf_puts(out, ");\n");
    }
    strbuf_puts(out, "        }\n    }\n");
}

/* The pass's reductions, all with one barrier of the row. */
static void emit_totals(Emitter *emitter, int pass)
{
    StrBuf *out = emitter->out, totals = strbuf_new(out->arena);
    int slot = 0;
    for (int i = 0; i < emitter->fusion->op_count; i++) {
        const FusedOp *op = &emitter->fusion->ops[i];
        if (op->reduce == REDUCE_NONE)
            continue;
        if (emitter->passes.of[i] == pass) {
            strbuf_printf(out, "    reduce_block<%s>(total%d, %d);\n", combiner(op->reduce), i, slot);
            strbuf_printf(&totals, "    const %s v%d = ", value_type(op->out->dtype), i);
            emit_rounded(&totals, emitter->fusion, i,
                         arena_printf(out->arena, "row_total<%s, %s>(%d)", combiner(op->reduce),
                                      value_type(op->body->type), slot));
            strbuf_puts(&totals, ";\n");
        }
        slot++;
    }
    strbuf_printf(out, "    row_sync();\n%s", totals.text);
}

/* The row's own values that are there after so many passes. */
static void emit_row_values(Emitter *emitter, int passes)
{
    for (int i = 0; i < emitter->fusion->op_count; i++) {
        const FusedOp *op = &emitter->fusion->ops[i];
        if (op->reduce == REDUCE_NONE && !fusion_op_is_of_elements(emitter->fusion, op) &&
            emitter->passes.of[i] == passes)
            emit_pointwise_op(emitter->out, "    ", &emitter->element, i);
    }
}

static void emit_row_stores(Emitter *emitter)
{
    StrBuf *out = emitter->out;
    for (int i = 0; i < emitter->fusion->op_count; i++) {
        const FusedOp *op = &emitter->fusion->ops[i];
        if (!op->stored || fusion_op_is_of_elements(emitter->fusion, op))
            continue;
        Affine offset = access_offset(&op->store);
        strbuf_printf(out, "    if (first == 0 && threadIdx.x == 0)\n        store(t.out%d, ",
                      output_position(emitter->fusion, op->out));
        emit_affine(out, &offset, emitter->first.axis);
        strbuf_printf(out, ", v%d);\n", i);
    }
}

static void emit_element_store(Emitter *emitter, int index)
{
    const FusedOp *op = &emitter->fusion->ops[index];
    Affine offset = access_offset(&op->store);
    bool whole = resident_is_run(emitter->fusion, &offset, emitter->vector);
    strbuf_puts(emitter->out, whole
                                  ? "            "
                                  : "            UNROLL for (int e = 0; e < VECTOR; ++e)\n                ");
    strbuf_printf(emitter->out, whole ? "store_vector<VECTOR>(t.out%d, " : "store(t.out%d, ",
                  output_position(emitter->fusion, op->out));
    emit_affine(emitter->out, &offset, whole ? emitter->first.axis : emitter->element.axis);
    strbuf_printf(emitter->out, whole ? ", v%d);\n" : ", v%d[e]);\n", index);
}

static void emit_bits_store(Emitter *emitter, int index)
{
    static const char *const words[] = {[8] = "unsigned char", [16] = "unsigned short", [32] = "unsigned"};
    const FusedOp *op = &emitter->fusion->ops[index];
    Affine offset = access_offset(&op->store);
    int run = resident_bit_run(emitter->fusion, op);
    assert(run);   // else words are shared with other rows
    strbuf_printf(emitter->out, "        store_bits<VECTOR>((%s *)t.out%d, ", words[run],
                  output_position(emitter->fusion, op->out));
    emit_affine(emitter->out, &offset, emitter->first.axis);
    strbuf_printf(emitter->out, ", v%d, own < count);\n", index);
}

static void emit_element_pass(Emitter *emitter)
{
    const Fusion *fusion = emitter->fusion;
    Needs needs = passes_needs(fusion, &emitter->reads, &emitter->passes, emitter->passes.count - 1);
    StrBuf before = strbuf_new(emitter->out->arena);
    emit_used_positions(&before, "        ", "at", &emitter->first, fusion->spatial_count, fusion->axis_count,
                        pass_axes(emitter, &needs, true));
    for (int i = 0; i < fusion->op_count; i++)
        if (fusion->ops[i].stored && fusion->ops[i].out->dtype == DTYPE_B1)
            strbuf_printf(&before, "        bool v%d[VECTOR] = {};\n", i);
    emit_pass_open(emitter, before.text);
    emit_pass_reads(emitter, needs.reads_used);
    emit_pass_values(emitter, needs.ops, true);
    for (int i = 0; i < fusion->op_count; i++)
        if (fusion->ops[i].stored && fusion_op_is_of_elements(fusion, &fusion->ops[i]) &&
            fusion->ops[i].out->dtype != DTYPE_B1)
            emit_element_store(emitter, i);
    strbuf_puts(emitter->out, "        }\n");
    for (int i = 0; i < fusion->op_count; i++)
        if (fusion->ops[i].stored && fusion->ops[i].out->dtype == DTYPE_B1)
            emit_bits_store(emitter, i);
    strbuf_puts(emitter->out, "    }\n");
}

static void emit_compute(Emitter *emitter)
{
    const Fusion *fusion = emitter->fusion;
    StrBuf *out = emitter->out;
    uint32_t used = 0;
    for (int i = 0; i < fusion->op_count; i++) {
        used |= expr_axes(fusion->ops[i].body);
        used |= fusion->ops[i].stored ? access_axes(&fusion->ops[i].store) : 0;
    }
    strbuf_puts(
        out,
        "\n// One row, step by step: this block's columns are [first, first + count).\n"
        "__device__ __forceinline__ void compute(const Tensors &t, Index row, Index first, Index count)\n"
        "{\n    (void)row;\n    constexpr Index STEP = THREADS * VECTOR;\n");
    emit_row_positions(emitter, used);
    for (int i = 0; i < emitter->invariants.count; i++) {
        const Tensor *tensor = emitter->invariants.access[i]->tensor;
        strbuf_printf(out, "    const %s f%d = %s(t.in%d, ", value_type(tensor->dtype), i,
                      tensor->dtype == DTYPE_B1 ? "load_bit" : "load", input_position(fusion, tensor));
        emit_affine(out, &emitter->invariants.offset[i], emitter->first.axis);
        strbuf_puts(out, ");\n");
    }
    emit_row_values(emitter, 0);
    for (int pass = 0; pass + 1 < emitter->passes.count; pass++) {
        emit_reduction_pass(emitter, pass);
        emit_totals(emitter, pass);
        emit_row_values(emitter, pass + 1);
    }
    strbuf_puts(
        out,
        "    if (CLUSTER > 1)\n        cluster_arrive();   // has read all that it wants of the others\n");
    emit_row_stores(emitter);
    emit_element_pass(emitter);
    strbuf_puts(out, "}\n");
}

void resident_emit(StrBuf *out, const KernelPlan *plan)
{
    const Fusion *fusion = plan->fusion;
    int vector = resident_vector(fusion), inner = fusion->axis_count - 1;
    Emitter emitter = {
        .out = out,
        .plan = plan,
        .fusion = fusion,
        .vector = vector,
        .reads = resident_reads(fusion, vector),
        .invariants = invariants_find(fusion, fusion_columns(fusion)),
        .passes = passes_find(fusion),
    };
    emitter.kept = resident_kept(fusion, &emitter.reads, &emitter.passes);
    emitter.first = (Scope){.fusion = fusion, .wide = plan->wide, .loaded = find_loaded, .context = &emitter};
    for (int a = 0; a < fusion->axis_count; a++)
        emitter.first.axis[a] = axis_names[a];
    emitter.element = emitter.first;
    emitter.element.axis[inner] = arena_printf(out->arena, "(%s + e)", axis_names[inner]);
    emitter.element.suffix = "[e]";
    emitter.element.suffix_axes = fusion_columns(fusion);
    emit_constants(&emitter);
    strbuf_puts(out, "\n// What a vector of elements reads.\n");
    reads_emit_inputs(out, &emitter.reads);
    emit_keep(&emitter);
    emit_announce(&emitter);
    emit_compute(&emitter);
}
