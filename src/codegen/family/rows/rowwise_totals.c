// What is known of a row as a whole: its reductions, and what is made of them.
#include "codegen/family/rows/rowwise_parts.h"

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

/* What reduce_row() and share_parts() are told of it: turns in the order in which they are taken. Rows that are made together
   take all turns that end a pass one after the other. */
static const char *turn_text(const RowEmitter *row, int op)
{
    Arena *arena = row->out->arena;
    int turn = turn_of(row, op), first = turn, count = 0;
    if (!row->together)
        return turn ? arena_printf(arena, "%d + TURNS * made", turn) : "TURNS * made";
    for (int i = 0; i < row->fusion->op_count; i++) {
        bool same =
            rowwise_takes_turn(row->fusion, &row->passes, i) && row->passes.pass[i] == row->passes.pass[op];
        count += same;
        first = same && turn_of(row, i) < first ? turn_of(row, i) : first;
    }
    int before = first * row->variant.together + turn - first;
    return arena_printf(arena, "%d + %d * r", before, count);
}

/* The total of all the row's threads. */
static void emit_result(StrBuf *value, const RowEmitter *row, int op)
{
    const FusedOp *fused = &row->fusion->ops[op];
    int leader = row->passes.leader[op];
    const char *own = rowwise_own(row), *own_total = rowwise_own_total(row, row->passes.pass[op]);
    const char *when = turn_text(row, op);
    if (rowwise_shares_parts(row->fusion, &row->passes, op)) {
        strbuf_printf(row->out,
                      "%s    const Part<%s> *parts%d = share_parts(total%d%s, total%d%s, count%d%s, %s);\n",
                      row->together ? "    " : "", value_type(fused->body->type), op, op, own_total,
                      row->passes.along[op], own_total, op, own_total, when);
        strbuf_printf(value, "row_sum(parts%d)", op);
    } else if (!rowwise_takes_turn(row->fusion, &row->passes, op)) {
        CentredSum sum;
        fusion_centred_sum(row->fusion, op, &sum);
        strbuf_printf(value, "row_distances(parts%d, v%d%s, shift_of(row))", leader, sum.centre, own);
    } else if (leader >= 0) {
        strbuf_printf(value, "reduce_row<Sum>(op_mul(total%d, share_exp<%s>(op_sub(total%d, v%d))), %s)", op,
                      memory_type(row->shares_type), leader, leader, when);
    } else {
        strbuf_printf(value, "reduce_row<%s>(total%d%s, %s)", combiner(fused->reduce), op, own_total, when);
    }
}

static void emit_row_store(const RowEmitter *row, int op)
{
    const FusedOp *fused = &row->fusion->ops[op];
    Affine offset = access_offset(&fused->store);
    const char *indent = row->together ? "        " : "    ";
    strbuf_printf(row->out, "%sif (stores && column <= 0)\n%s    store(t.out%d, ", indent, indent,
                  output_position(row->fusion, fused->out));
    emit_affine(row->out, &offset, row->first.axis);
    strbuf_printf(row->out, ", v%d%s);\n", op, rowwise_own(row));
}

const char *rowwise_own(const RowEmitter *row) { return row->together ? "[r]" : ""; }

const char *rowwise_own_total(const RowEmitter *row, int pass)
{
    return row->together && row->weighted >> pass & 1 ? "[r]" : "";
}

void rowwise_emit_own_row(const RowEmitter *row, const char *indent, uint32_t used)
{
    if (!row->together)
        return;
    strbuf_printf(row->out, "%sconst Index row = first + r * ROWS_APART;\n", indent);
    emit_used_positions(row->out, indent, "row", &row->first, 0, row->fusion->spatial_count, used);
}

static bool is_known_after(const RowEmitter *row, int op, int pass)
{
    const FusedOp *fused = &row->fusion->ops[op];
    return !fusion_op_is_of_elements(row->fusion, fused) &&
           row->passes.pass[op] + (fused->reduce != REDUCE_NONE) == pass;
}

static bool divides_after(const RowEmitter *row, int op, int pass)
{
    return rowwise_divides(row->fusion, op) && row->passes.pass[op] == pass;
}

uint32_t rowwise_declare_row_values(const RowEmitter *row, int pass)
{
    uint32_t used = 0;
    for (int i = 0; i < row->fusion->op_count; i++) {
        const FusedOp *op = &row->fusion->ops[i];
        if (divides_after(row, i, pass)) {
            strbuf_printf(row->out, "    Divisor divisor%d[ROWS_TOGETHER];\n", i);
            used |= expr_axes(op->body->apply.operands[1]);
        }
        if (is_known_after(row, i, pass)) {
            strbuf_printf(row->out, "    %s v%d[ROWS_TOGETHER];\n", value_type(op->out->dtype), i);
            used |= op->reduce == REDUCE_NONE ? expr_axes(op->body) : 0;
            used |= op->stored ? access_axes(&op->store) : 0;
        }
    }
    return used;
}

static void emit_divisor(const RowEmitter *row, int op)
{
    strbuf_printf(row->out,
                  row->together ? "        divisor%d[r] = divisor_of("
                                : "    const Divisor divisor%d = divisor_of(",
                  op);
    emit_expr(row->out, &row->first, row->fusion->ops[op].body->apply.operands[1]);
    strbuf_puts(row->out, ");\n");
}

void rowwise_emit_own_values(const RowEmitter *row, int pass)
{
    for (int i = 0; i < row->fusion->op_count; i++) {
        const FusedOp *op = &row->fusion->ops[i];
        if (divides_after(row, i, pass))
            emit_divisor(row, i);
        if (!is_known_after(row, i, pass))
            continue;
        StrBuf value = strbuf_new(row->out->arena);
        if (op->reduce != REDUCE_NONE)
            emit_result(&value, row, i);
        else
            emit_expr(&value, &row->first, op->body);
        if (row->together)
            strbuf_printf(row->out, "        v%d[r] = ", i);
        else
            strbuf_printf(row->out, "    const %s v%d = ", value_type(op->out->dtype), i);
        emit_rounded(row->out, row->fusion, i, value.text);
        strbuf_puts(row->out, ";\n");
        if (op->stored)
            emit_row_store(row, i);
    }
}

void rowwise_emit_row_values(const RowEmitter *row, int pass)
{
    bool found = !row->together;
    for (int i = 0; i < row->fusion->op_count; i++)
        found |= divides_after(row, i, pass) || is_known_after(row, i, pass);
    if (!found)
        return;
    if (row->together) {
        uint32_t used = rowwise_declare_row_values(row, pass);
        strbuf_puts(row->out, "    UNROLL for (int r = 0; r < ROWS_TOGETHER; ++r) {\n");
        rowwise_emit_own_row(row, "        ", used);
    }
    rowwise_emit_own_values(row, pass);
    strbuf_puts(row->out, row->together ? "    }\n" : "");
}
