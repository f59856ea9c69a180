// What a pass over a row makes of one vector: elements, what they add to totals, and their stores.
#include <string.h>

#include "codegen/family/rows/rowwise_parts.h"
#include "rtile/space.h"

static const char *const EACH = "            UNROLL for (int e = 0; e < VECTOR; ++e)\n                ";

static const char *suffix_of(const RowEmitter *row) { return row->element.suffix; }

static bool is_of_elements(const RowEmitter *row, int op)
{
    return fusion_op_is_of_elements(row->fusion, &row->fusion->ops[op]);
}

static bool stays_in_registers(const RowEmitter *row) { return rowwise_keeps(row->variant.home); }

// ---- what depends on what ----

static bool uses_value(const RowEmitter *row, int op, int value)
{
    return row->passes.needs[op] >> value & 1;
}

bool rowwise_walks_in(const RowEmitter *row, int op, int pass)
{
    const FusedOp *fused = &row->fusion->ops[op];
    bool walks = fused->reduce != REDUCE_NONE || (fused->stored && is_of_elements(row, op));
    return walks && row->passes.pass[op] == pass;
}

bool rowwise_makes_elements(const RowEmitter *row, int op, int pass)
{
    if (!is_of_elements(row, op) || row->made[op])
        return false;
    bool makes = rowwise_walks_in(row, op, pass);
    for (int i = op + 1; i < row->fusion->op_count && !makes; i++)
        makes = rowwise_walks_in(row, i, pass) && uses_value(row, i, op);
    return makes;
}

// ---- elements and totals ----

/* v3 of a vector: `v3[k]`, or `v3` where it is forgotten after the pass. */
static const char *vector_suffix(const RowEmitter *row) { return stays_in_registers(row) ? "[k]" : ""; }

static void expensive_visit(Expr *expr, void *context)
{
    bool *is_expensive = context;
    *is_expensive |= expr->kind == EXPR_APPLY && op_info[expr->apply.op].class == OP_CLASS_REAL;
}

/* Takes so many instructions that a branch around them is worth it. */
static bool is_expensive(const RowEmitter *row, Expr *expr)
{
    bool found = false;
    expr_visit(expr, expensive_visit, &found);
    return found && !row->shares;
}

bool rowwise_asks_mask(const RowEmitter *row, int pass)
{
    for (int i = 0; i < row->fusion->op_count && row->mask; i++) {
        bool makes =
            rowwise_makes_elements(row, i, pass) || (rowwise_walks_in(row, i, pass) && !row->made[i]);
        bool divides = rowwise_divides(row->fusion, i) && !(row->shares && rowwise_is_share(row->fusion, i));
        if (makes && (is_expensive(row, row->fusion->ops[i].body) || divides))
            return true;
    }
    return false;
}

/* `body` at an element where `holds` is known to hold; rounded as the op's readers see it. */
static const char *value_text(const RowEmitter *row, int op, const Expr *body, bool rounds, const Expr *holds)
{
    Scope scope = row->element;
    scope.holds = holds;
    StrBuf value = strbuf_new(row->out->arena), rounded = strbuf_new(row->out->arena);
    emit_expr(&value, &scope, body);
    if (!rounds)
        return value.text;
    emit_rounded(&rounded, row->fusion, op, value.text);
    return rounded.text;
}

/* `array[e] = body` for all elements of a vector. Those of a masked one are the same; where none is masked, nobody asks, which
   a row that is walked again would do in every pass. */
static void emit_each(const RowEmitter *row, int op, Expr *body, bool rounds, const char *array)
{
    StrBuf *out = row->out;
    const char *value = value_text(row, op, body, rounds, NULL);
    const char *open = value_text(row, op, body, rounds, row->mask);
    if (row->mask && is_expensive(row, body))
        strbuf_printf(
            out,
            "            if (masked) {\n                constexpr int e = 0;\n                %s[e] = %s;\n"
            "                spread(%s);\n            } else\n"
            "                UNROLL for (int e = 0; e < VECTOR; ++e)\n                    %s[e] = %s;\n",
            array, value, array, array, value);
    else if (strcmp(value, open) && !stays_in_registers(row))
        strbuf_printf(out,
                      "            if %s\n    %s    %s[e] = %s;\n            else\n    %s    %s[e] = %s;\n",
                      rowwise_condition_text(row, row->mask, true), EACH, array, open, EACH, array, value);
    else
        strbuf_printf(out, "%s%s[e] = %s;\n", EACH, array, value);
}

/* What lies beyond the ends of the row. */
static void emit_identities(const RowEmitter *row, int op)
{
    const FusedOp *fused = &row->fusion->ops[op];
    strbuf_printf(
        row->out,
        "            if (!is_whole(column, k))\n    %s    if (!inside(column + k * STEP + e, COLUMNS))\n"
        "                        terms%d[e] = %s::identity<%s>();\n",
        EACH, op, combiner(fused->reduce), value_type(fused->body->type));
}

static void emit_total(const RowEmitter *row, int op)
{
    const FusedOp *fused = &row->fusion->ops[op];
    const char *reduction = combiner(fused->reduce), *own = rowwise_own_total(row, row->passes.pass[op]);
    int along = row->passes.along[op];
    StrBuf *out = row->out;
    strbuf_printf(out, "            %s terms%d[VECTOR];\n", value_type(fused->body->type), op);
    emit_each(row, op, fused->body, false, arena_printf(out->arena, "terms%d", op));
    if (rowwise_shares_parts(row->fusion, &row->passes, op)) {
        const char *ends = row->shape.window ? ", begin_of(column, k), end_of(column, k)" : "";
        strbuf_printf(out, "            add_values(total%d%s, total%d%s, count%d%s, terms%d%s);\n", op, own,
                      along, own, op, own, op, ends);
        return;
    }
    if (row->shape.window)
        emit_identities(row, op);
    if (along >= 0)
        strbuf_printf(out, "            add_exponentials<%s>(total%d, total%d, terms%d);\n",
                      memory_type(row->shares_type), op, along, op);
    else
        strbuf_printf(out, "            total%d%s = %s::combine(total%d%s, reduce_vector<%s>(terms%d));\n",
                      op, own, reduction, op, own, reduction, op);
}

static void emit_quotients(const RowEmitter *row, int op, const char *array)
{
    if (row->shares &&
        rowwise_is_share(row->fusion, op)) {   // others need not be of 16 bits, nor their divisors 1 or more
        strbuf_printf(row->out, "%s%s[e] *= divisor%d%s.reciprocal;\n", EACH, array, op, rowwise_own(row));
        return;
    }
    if (row->mask)
        strbuf_printf(row->out,
                      "            if (masked) {\n                %s[0] = op_div(%s[0], divisor%d%s.value);\n"
                      "                spread(%s);\n            } else\n    ",
                      array, array, op, rowwise_own(row), array);
    strbuf_printf(row->out, "            divide_all(%s, divisor%d%s);\n", array, op, rowwise_own(row));
}

static void emit_elements(const RowEmitter *row, int op)
{
    const FusedOp *fused = &row->fusion->ops[op];
    bool divides = rowwise_divides(row->fusion, op), rounds = !is_rounded_by_storing(row->fusion, op);
    Expr *made = divides ? fused->body->apply.operands[0] : fused->body;
    const char *array = arena_printf(row->out->arena, "v%d%s", op, vector_suffix(row));
    if (!stays_in_registers(row))
        strbuf_printf(row->out, "            %s v%d[VECTOR];\n", value_type(fused->out->dtype), op);
    emit_each(row, op, made, rounds && !divides, array);
    if (divides)
        emit_quotients(row, op, array);
    if (rounds && divides) {
        strbuf_printf(row->out, "%s%s[e] = ", EACH, array);
        emit_rounded(row->out, row->fusion, op, arena_printf(row->out->arena, "%s[e]", array));
        strbuf_puts(row->out, ";\n");
    }
}

/* Whether a vector of elements is one aligned access of the stored tensor. */
static bool stores_vectors(const RowEmitter *row, const FusedOp *op)
{
    Affine offset = access_offset(&op->store);
    int inner = row->fusion->axis_count - 1, vector = row->shape.vector;
    if (row->shape.window)
        return true;   // rows are stored one after the other
    for (int a = 0; a < MAX_AXES; a++)
        if (a != inner && offset.coef[a] % vector)
            return false;
    return offset.coef[inner] == 1 && offset.constant % vector == 0;
}

static void emit_element_store(const RowEmitter *row, int op)
{
    const FusedOp *fused = &row->fusion->ops[op];
    int output = output_position(row->fusion, fused->out);
    bool whole = stores_vectors(row, fused);
    const char *function = row->shape.window ? "store_inside<VECTOR>(is_whole(column, k), "
                           : whole           ? "store_vector<VECTOR>("
                                             : "store(";
    Affine offset = access_offset(&fused->store);
    strbuf_puts(row->out, stays_in_registers(row) ? "            if (stores)\n    " : "");
    strbuf_puts(row->out, whole ? "            " : EACH);
    strbuf_printf(row->out, "%st.out%d, ", function, output);
    emit_affine(row->out, &offset, whole ? row->first.axis : row->element.axis);
    strbuf_puts(row->out, row->shape.window ? ", at, COLUMNS" : "");
    strbuf_printf(row->out, ", v%d%s);\n", op, whole ? vector_suffix(row) : suffix_of(row));
}

void rowwise_emit_steps(const RowEmitter *row, int pass)
{
    for (int i = 0; i < row->fusion->op_count; i++) {
        const FusedOp *op = &row->fusion->ops[i];
        if (op->reduce != REDUCE_NONE && rowwise_walks_in(row, i, pass) && row->passes.leader[i] < 0)
            emit_total(row, i);
        if (!rowwise_makes_elements(row, i, pass) &&
            !(rowwise_walks_in(row, i, pass) && is_of_elements(row, i)))
            continue;
        if (!row->made[i])
            emit_elements(row, i);
        row->made[i] = stays_in_registers(row);
        if (op->stored && rowwise_walks_in(row, i, pass))
            emit_element_store(row, i);
    }
}
