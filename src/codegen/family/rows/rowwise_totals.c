// What is known of a row as a whole: its reductions, and what is made of them.
#include "codegen/family/rows/rowwise_parts.h"

#define IN ROWS_INDENT

/* What reduce_row() and share_parts() are told: rounds of a pass in the order in which they are taken. */
static const char *round_text(const RowEmitter *row, int op)
{
    int round = 0;
    for (int i = 0; i < op; i++)
        round +=
            rowwise_takes_round(row->fusion, &row->passes, i) && row->passes.pass[i] == row->passes.pass[op];
    return round ? arena_printf(row->out->arena, "round + %d", round) : "round";
}

int rowwise_rounds_of(const RowEmitter *row, int pass)
{
    int rounds = 0;
    for (int i = 0; i < row->fusion->op_count; i++)
        rounds += rowwise_takes_round(row->fusion, &row->passes, i) && row->passes.pass[i] == pass;
    return rounds;
}

/* The total of all the row's threads. */
static const char *result(const RowEmitter *row, StrBuf *out, int op)
{
    const FusedOp *fused = &row->fusion->ops[op];
    int leader = row->passes.leader[op];
    const char *when = round_text(row, op);
    if (rowwise_shares_parts(row->fusion, &row->passes, op)) {
        strbuf_printf(out, IN "const Part<%s> *parts%d = share_parts(total%d, total%d, count%d, %s);\n",
                      value_type(fused->body->type), op, op, row->passes.along[op], op, when);
        return arena_printf(out->arena, "row_sum(parts%d)", op);
    }
    if (!rowwise_takes_round(row->fusion, &row->passes, op)) {
        CentredSum sum;
        fusion_centred_sum(row->fusion, op, &sum);
        return arena_printf(out->arena, "row_distances(parts%d, v%d, row)", leader, sum.centre);
    }
    if (leader >= 0)
        return arena_printf(out->arena,
                            "reduce_row<Sum>(op_mul(total%d, softmax_exp<%s>(op_sub(total%d, v%d))), %s)", op,
                            memory_type(row->softmax), leader, leader, when);
    return arena_printf(out->arena, "reduce_row<%s>(total%d, %s)", combiner(fused->reduce), op, when);
}

static bool is_known_after(const RowEmitter *row, int op, int passes)
{
    const FusedOp *fused = &row->fusion->ops[op];
    return !fusion_op_is_of_elements(row->fusion, fused) &&
           row->passes.pass[op] + (fused->reduce != REDUCE_NONE) == passes;
}

static bool divides_after(const RowEmitter *row, int op, int passes)
{
    return rowwise_divides(row->fusion, op) && row->passes.pass[op] == passes;
}

void rowwise_declare_row_values(const RowEmitter *row, int passes)
{
    for (int i = 0; i < row->fusion->op_count; i++) {
        if (divides_after(row, i, passes))
            strbuf_printf(row->out, "    Divisor divisor%d;\n", i);
        if (is_known_after(row, i, passes))
            strbuf_printf(row->out, "    %s v%d;\n", value_type(row->fusion->ops[i].out->dtype), i);
    }
}

static void emit_divisor(Step *finish, const RowEmitter *row, int op)
{
    const Expr *divisor = row->fusion->ops[op].body->apply.operands[1];
    finish->axes |= expr_axes(divisor);
    strbuf_printf(&finish->text, IN "divisor%d = divisor_of(", op);
    emit_expr(&finish->text, &row->first, divisor);
    strbuf_puts(&finish->text, ");\n");
}

static void emit_row_value(Step *finish, const RowEmitter *row, int op)
{
    const FusedOp *fused = &row->fusion->ops[op];
    StrBuf *out = &finish->text, rounded = strbuf_new(out->arena);
    if (fused->reduce != REDUCE_NONE)
        emit_rounded(&rounded, row->fusion, op, result(row, out, op));
    else
        strbuf_puts(&rounded, rows_value(out->arena, &row->first, op, fused->body));
    finish->axes |= fused->reduce != REDUCE_NONE ? 0 : expr_axes(fused->body);
    strbuf_printf(out, IN "v%d = %s;\n", op, rounded.text);
}

static void emit_row_store(Step *store, const RowEmitter *row, int op)
{
    const FusedOp *fused = &row->fusion->ops[op];
    Affine offset = access_offset(&fused->store);
    store->axes |= access_axes(&fused->store);
    strbuf_printf(&store->text, IN "store(t.out%d, ", output_position(row->fusion, fused->out));
    emit_affine(&store->text, &offset, row->first.axis);
    strbuf_printf(&store->text, ", v%d);\n", op);
}

static void emit_row_step(const RowEmitter *row, const char *signature, const Step *step)
{
    StrBuf opening = strbuf_new(row->out->arena);
    emit_used_positions(&opening, IN, "row", &row->first, 0, row->fusion->spatial_count, step->axes);
    rows_emit_function(row->out, signature, opening.text, step);
}

void rowwise_emit_row_values(const RowEmitter *row, int passes)
{
    Step finish = rows_step(row->out->arena), store = rows_step(row->out->arena);
    for (int i = 0; i < row->fusion->op_count; i++) {
        if (divides_after(row, i, passes))
            emit_divisor(&finish, row, i);
        if (!is_known_after(row, i, passes))
            continue;
        emit_row_value(&finish, row, i);
        if (row->fusion->ops[i].stored)
            emit_row_store(&store, row, i);
    }
    emit_row_step(row, "finish(const Tensors &t, int round)", &finish);
    emit_row_step(row, "store_row(const Tensors &t) const", &store);
}
