// What is known of a row as a whole: its reductions, and what is made of them.
#include "codegen/rowwise_parts.h"

/* How many turns come before this one's: pass by pass, in order. */
static int turn_of(const RowEmitter *row, int op)
{
    int turn = 0;
    for (int i = 0; i < row->fusion->op_count; i++) {
        bool is_earlier = row->passes.pass[i] < row->passes.pass[op] ||
                          (row->passes.pass[i] == row->passes.pass[op] && i < op);
        turn += rowwise_takes_turn(row->fusion, &row->passes, i) && is_earlier;
    }
    return turn;
}

/* The total of all the row's threads. */
static void emit_result(StrBuf *value, const RowEmitter *row, int op)
{
    const FusedOp *fused = &row->fusion->ops[op];
    int leader = row->passes.leader[op], turn = turn_of(row, op);
    if (rowwise_shares_parts(row->fusion, &row->passes, op)) {
        strbuf_printf(row->out,
                      "    const Part<%s> *parts%d = share_parts<%d>(total%d, total%d, count%d, made);\n",
                      value_type(fused->body->type), op, turn, op, row->passes.along[op], op);
        strbuf_printf(value, "row_sum(parts%d)", op);
    } else if (!rowwise_takes_turn(row->fusion, &row->passes, op)) {
        CentredSum sum;
        fusion_centred_sum(row->fusion, op, &sum);
        strbuf_printf(value, "row_distances(parts%d, v%d, shift_of(row))", leader, sum.centre);
    } else if (leader >= 0) {
        strbuf_printf(value, "reduce_row<Sum, %d>(op_mul(total%d, share_exp<%s>(op_sub(total%d, v%d))), made)",
                      turn, op, memory_type(row->shares_type), leader, leader);
    } else {
        strbuf_printf(value, "reduce_row<%s, %d>(total%d, made)", combiner(fused->reduce), turn, op);
    }
}

static void emit_row_store(const RowEmitter *row, int op)
{
    const FusedOp *fused = &row->fusion->ops[op];
    Affine offset = access_offset(&fused->store);
    strbuf_printf(row->out, "    if (stores && column <= 0)\n        store(t.out%d, ",
                  output_position(row->fusion, fused->out));
    emit_affine(row->out, &offset, row->first.axis);
    strbuf_printf(row->out, ", v%d);\n", op);
}

void rowwise_emit_row_values(const RowEmitter *row, int pass)
{
    for (int i = 0; i < row->fusion->op_count; i++) {
        const FusedOp *op = &row->fusion->ops[i];
        bool is_total = op->reduce != REDUCE_NONE;
        if (rowwise_divides(row->fusion, i) && row->passes.pass[i] == pass) {
            strbuf_printf(row->out, "    const Divisor divisor%d = divisor_of(", i);
            emit_expr(row->out, &row->first, op->body->apply.operands[1]);
            strbuf_puts(row->out, ");\n");
        }
        if (fusion_op_is_of_elements(row->fusion, op) || row->passes.pass[i] + is_total != pass)
            continue;
        StrBuf value = strbuf_new(row->out->arena);
        if (is_total)
            emit_result(&value, row, i);
        else
            emit_expr(&value, &row->first, op->body);
        strbuf_printf(row->out, "    const %s v%d = ", value_type(op->out->dtype), i);
        emit_rounded(row->out, row->fusion, i, value.text);
        strbuf_puts(row->out, ";\n");
        if (op->stored)
            emit_row_store(row, i);
    }
}
