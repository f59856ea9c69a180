// Values of a row as a whole: its reductions, and what is computed from them.
#include <string.h>

#include "codegen/family/rows/rowwise_parts.h"

#define IN ROWS_INDENT

/* What reduce_row() and share_parts() are told: rounds of a pass in the order in which they are taken. */
static const char *round_text(const RowEmitter *row, int op)
{
    uint64_t before = rowwise_rounds(row->passes, row->passes->of[op]) & (OP_BIT(op) - 1);
    return before ? arena_printf(row->out->arena, "round + %d", __builtin_popcountll(before)) : "round";
}

bool rowwise_has_parts(const RowEmitter *row)
{
    for (int i = 0; i < row->fusion->op_count; i++)
        if (rowwise_shares_parts(row->passes, i))
            return true;
    return false;
}

/* `reduce_row<Sum>(total, round)`, or within a warp `warp_reduce<Sum>(total, GROUP)`. */
static const char *reduced(const RowEmitter *row, const char *reduction, const char *total, const char *round)
{
    return arena_printf(row->out->arena, "%s<%s>(%s, %s)", row->meets ? "reduce_row" : "warp_reduce",
                        reduction, total, row->meets ? round : "GROUP");
}

/* Members of one type stand together: `float total0 = 0, v0`. */
void rowwise_declare(RowEmitter *row, const char *type, const char *declarator)
{
    bool goes_on = strcmp(row->declared, type) == 0;
    strbuf_printf(&row->members, goes_on ? ", %s%s" : ";\n    %s %s", goes_on ? "" : type, declarator);
    row->declared = type;
}

/* The total of all the row's threads. */
static const char *result(const RowEmitter *row, StrBuf *out, int op)
{
    const FusedOp *fused = &row->fusion->ops[op];
    int leader = row->passes->leader[op];
    const char *when = round_text(row, op);
    if (rowwise_shares_parts(row->passes, op)) {
        strbuf_printf(out, IN "const Part<%s> *parts%d = share_parts(total%d, total%d, count%d, %s);\n",
                      value_type(fused->body->type), op, op, row->passes->along[op], op, when);
        return arena_printf(out->arena, "row_sum(parts%d)", op);
    }
    if (leader >= 0 && rowwise_shares_parts(row->passes, leader)) {
        CentredSum sum;
        fusion_centred_sum(row->fusion, op, &sum);
        return arena_printf(out->arena, "row_distances(parts%d, v%d, row)", leader, sum.centre);
    }
    if (leader >= 0)
        return reduced(row, "Sum",
                       arena_printf(out->arena, "total%d * %s(total%d - v%d)", op,
                                    rowwise_exponential(row), leader, leader),
                       when);
    return reduced(row, combiner(fused->reduce), arena_printf(out->arena, "total%d", op), when);
}

static void emit_divisor(Step *finish, RowEmitter *row, int op)
{
    const Expr *divisor = row->fusion->ops[op].body->apply.operands[1];
    const char *value = rows_value(row->out->arena, &row->first, ROWS_NOT_ROUNDED, divisor);
    bool is_share = rowwise_takes_shares(row, op);
    finish->axes |= expr_axes(divisor);
    rowwise_declare(row, is_share ? "float" : "Divisor",
                    arena_printf(row->out->arena, is_share ? "reciprocal%d" : "divisor%d", op));
    strbuf_printf(&finish->text,
                  is_share ? IN "reciprocal%d = 1.0f / %s;\n" : IN "divisor%d = divisor_of(%s);\n", op,
                  value);
}

static void emit_row_value(Step *finish, const RowEmitter *row, int op)
{
    const FusedOp *fused = &row->fusion->ops[op];
    StrBuf *out = &finish->text;
    bool is_reduction = fused->reduce != REDUCE_NONE;
    const char *value = is_reduction ? rounded_text(out->arena, row->fusion, op, result(row, out, op))
                                     : rows_value(out->arena, &row->first, op, fused->body);
    finish->axes |= is_reduction ? 0 : expr_axes(fused->body);
    strbuf_printf(out, IN "v%d = %s;\n", op, value);
}

static void emit_row_step(const RowEmitter *row, StrBuf *function, int pass, const Step *step)
{
    StrBuf opening = strbuf_new(row->out->arena);
    rowwise_emit_positions(&opening, IN, "row", &row->first, 0, row->fusion->spatial_count, step->axes);
    rowwise_emit_part(function, pass, opening.text, step);
}

void rowwise_emit_row_values(RowEmitter *row, int pass)
{
    Step finish = rows_step(row->out->arena), store = rows_step(row->out->arena);
    const RowPass *ended = pass == BEFORE_PASSES ? &row->passes->before : &row->passes->pass[pass];
    for (int i = 0; i < row->fusion->op_count; i++) {
        if (rowwise_divides(row->fusion, i) && row->passes->of[i] == pass + 1)
            emit_divisor(&finish, row, i);
        if (!((ended->reduced | ended->values) & OP_BIT(i)))
            continue;
        rowwise_declare(row, value_type(row->fusion->ops[i].out->dtype),
                        arena_printf(row->out->arena, "v%d", i));
        emit_row_value(&finish, row, i);
        if (row->fusion->ops[i].stored)
            rows_emit_value_store(&store, &row->first, i);
    }
    emit_row_step(row, &row->finish, pass, &finish);
    emit_row_step(row, &row->store_values, pass, &store);
}
