// What a pass over a row computes of one vector: elements, totals, stores.
#include <assert.h>
#include <string.h>

#include "codegen/cuda/token.h"
#include "codegen/family/rows/rowwise_parts.h"

#define IN ROWS_INDENT

// ---- elements and totals ----

static bool is_function(const Expr *expr, const void *unused)
{
    return (void)unused, expr->kind == EXPR_APPLY && op_info[expr->apply.op].class == OP_CLASS_REAL;
}

/* Has the op so many instructions that a branch around them pays? */
static bool is_expensive(const RowEmitter *row, const Expr *expr)
{
    return row->softmax == DTYPE_F32 && expr_find(expr, is_function, NULL);
}

/* A function of the pass that is about one vector. */
typedef struct VectorStep {
    const RowEmitter *row;
    Step step;
    bool asks_mask;   // whether all elements are masked
} VectorStep;

/* `array[e] = value` for all elements of a vector. Those of a masked one are the same; where none is masked,
   nobody asks, which a row that is walked again would do in every pass. */
static void emit_each(VectorStep *vector, Expr *body, int rounded_op, const char *array)
{
    const RowEmitter *row = vector->row;
    StrBuf *out = &vector->step.text;
    Scope where_open = row->element;
    where_open.holds = row->mask;
    const char *value = rows_value(out->arena, &row->element, rounded_op, body);
    const char *open = row->mask ? rows_value(out->arena, &where_open, rounded_op, body) : value;
    vector->step.axes |= rows_axes_left(&row->element, body);
    if (row->mask && is_expensive(row, body)) {
        strbuf_printf(out, IN "if (masked) {\n" IN "    constexpr int e = 0;\n" IN "    %s[e] = %s;\n", array,
                      value);
        strbuf_printf(out, IN "    spread(%s);\n" IN "} else\n", array);
        rows_emit_each(out, IN "    ", array, value);
        vector->asks_mask = true;
    } else if (strcmp(value, open) && !rowwise_keeps(row->variant.home)) {
        strbuf_printf(out, IN "if %s\n", rowwise_condition_text(row, row->mask, true));
        rows_emit_each(out, IN "    ", array, open);
        strbuf_puts(out, IN "else\n");
        rows_emit_each(out, IN "    ", array, value);
    } else
        rows_emit_each(out, IN, array, value);
}

const char *rowwise_exponential(const RowEmitter *row)
{
    return row->softmax == DTYPE_F16    ? "softmax_exp_f16"
           : row->softmax == DTYPE_BF16 ? "softmax_exp_bf16"
                                        : "op_exp";
}

static void emit_total(VectorStep *vector, int op)
{
    const RowEmitter *row = vector->row;
    const FusedOp *fused = &row->fusion->ops[op];
    const char *reduction = combiner(fused->reduce);
    int along = row->passes->along[op];
    StrBuf *out = &vector->step.text;
    bool shares_parts = rowwise_shares_parts(row->passes, op);
    strbuf_printf(out, IN "%s terms%d[VECTOR];\n", value_type(fused->body->type), op);
    emit_each(vector, fused->body, ROWS_NOT_ROUNDED, arena_printf(out->arena, "terms%d", op));
    if (row->shape.unaligned && !shares_parts)
        strbuf_printf(out, IN "leave_out<%s>(terms%d, column, k);\n", reduction, op);
    if (shares_parts)
        strbuf_printf(out, IN "add_values(total%d, total%d, count%d, terms%d%s);\n", op, along, op, op,
                      row->shape.unaligned ? ", begin_of(column, k), end_of(column, k)" : "");
    else if (along >= 0)
        strbuf_printf(out, IN "add_exponentials<%s>(total%d, total%d, terms%d);\n", rowwise_exponential(row),
                      op, along, op);
    else
        strbuf_printf(out, IN "total%d = %s::combine(total%d, reduce_vector<%s>(terms%d));\n", op, reduction,
                      op, reduction, op);
}

/* Others need not be of 16 bits, nor their divisors 1 or more. */
bool rowwise_takes_shares(const RowEmitter *row, int op)
{
    return row->softmax != DTYPE_F32 && rowwise_is_softmax(row->fusion, op);
}

static void emit_shares(VectorStep *vector, int op, const char *array)
{
    const RowEmitter *row = vector->row;
    StrBuf *out = &vector->step.text;
    Expr *term = row->fusion->ops[op].body->apply.operands[0];
    const char *value = array;
    if (row->mask) {
        emit_each(vector, term, ROWS_NOT_ROUNDED, array);
        value = arena_printf(out->arena, "%s[e]", array);
    } else {
        value = rows_value(out->arena, &row->element, ROWS_NOT_ROUNDED, term);
        vector->step.axes |= rows_axes_left(&row->element, term);
    }
    rows_emit_each(out, IN, array, arena_printf(out->arena, "%s * reciprocal%d", value, op));
}

static void emit_quotients(VectorStep *vector, int op, const char *array)
{
    const RowEmitter *row = vector->row;
    StrBuf *out = &vector->step.text;
    emit_each(vector, row->fusion->ops[op].body->apply.operands[0], ROWS_NOT_ROUNDED, array);
    if (row->mask)
        strbuf_printf(out,
                      IN "if (masked) {\n" IN "    %s[0] = op_div(%s[0], divisor%d.value);\n" IN
                         "    spread(%s);\n" IN "} else\n    ",
                      array, array, op, array);
    vector->asks_mask |= row->mask != NULL;
    strbuf_printf(out, IN "divide_all(%s, divisor%d);\n", array, op);
}

static void emit_elements(VectorStep *vector, int op)
{
    const RowEmitter *row = vector->row;
    StrBuf *out = &vector->step.text;
    const char *array = arena_printf(out->arena, "el.v%d", op);
    if (!rowwise_divides(row->fusion, op)) {
        emit_each(vector, row->fusion->ops[op].body, op, array);
        return;
    }
    if (rowwise_takes_shares(row, op))
        emit_shares(vector, op, array);
    else
        emit_quotients(vector, op, array);
    if (!is_rounded_by_storing(row->fusion, op))
        rows_emit_each(out, IN, array,
                       rounded_text(out->arena, row->fusion, op, arena_printf(out->arena, "%s[e]", array)));
}

// ---- stores ----

/* Unaligned rows are stored one after the other. */
static void emit_unaligned_store(Step *step, const RowEmitter *row, int op)
{
    const FusedOp *fused = &row->fusion->ops[op];
    step->axes |= access_axes(&fused->store);
    strbuf_printf(
        &step->text, IN "store_inside<VECTOR>(is_whole(column, k), t.out%d, %s, column + k * STEP, COLUMNS, el.v%d);\n",
        output_position(row->fusion, fused->out), offset_text(step->text.arena, &fused->store, row->first.axis), op);
}

/* A vector's bits are a byte or two. */
static void emit_bits_store(Step *step, const RowEmitter *row, int op)
{
    const FusedOp *fused = &row->fusion->ops[op];
    Affine offset = access_offset(&fused->store);
    assert(affine_allows_vector(&offset, row->fusion->axis_count - 1, row->shape.vector));   // own bytes
    step->axes |= access_axes(&fused->store);
    strbuf_printf(&step->text, IN "store_own_bits<VECTOR>((unsigned %s *)t.out%d, %s, el.v%d);\n",
                  row->shape.vector == ROWWISE_BITS ? "char" : "short",
                  output_position(row->fusion, fused->out),
                  affine_text(step->text.arena, &offset, row->first.axis), op);
}

// ---- functions ----

/* The positions that they need, and whether all elements are masked. */
static const char *opening(const VectorStep *vector)
{
    const RowEmitter *row = vector->row;
    int spatial = row->fusion->spatial_count, count = row->fusion->axis_count;
    uint32_t used = vector->step.axes | (vector->asks_mask ? expr_axes(row->mask) : 0);
    StrBuf text = strbuf_new(row->out->arena);
    rowwise_emit_positions(&text, IN, "row", &row->first, 0, spatial, used);
    rowwise_emit_positions(&text, IN, "at", &row->first, spatial, count, used);
    if (vector->asks_mask)
        strbuf_printf(&text, IN "const bool masked = !%s;   // all elements\n",
                      rowwise_condition_text(row, row->mask, false));
    return text.text;
}

/* Each line a step further to the right. */
static void write_deeper(StrBuf *out, const char *lines)
{
    Slice rest = slice_of(lines);
    while (rest.start < rest.end) {
        Slice line = line_read(&rest);
        strbuf_puts(out, "    ");
        strbuf_write(out, line.start, slice_length(line));
    }
}

/* A line, or a loop with one. */
static bool is_statement(const char *text)
{
    const char *last = strncmp(text, IN "UNROLL", strlen(IN "UNROLL")) == 0 ? strchr(text, '\n') + 1 : text;
    return strchr(last, '\n')[1] == '\0';
}

void rowwise_emit_part(StrBuf *function, int pass, const char *opening, const Step *step)
{
    if (!step->text.length)
        return;
    bool is_line = !*opening && is_statement(step->text.text);
    strbuf_printf(function, IN "if constexpr (PASS == %d)%s\n", pass, is_line ? "" : " {");
    write_deeper(function, opening);
    write_deeper(function, step->text.text);
    strbuf_puts(function, is_line ? "" : IN "}\n");
}

void rowwise_emit_vector(RowEmitter *row, int pass)
{
    VectorStep make = {row, rows_step(row->out->arena), false}, add = make, store = make;
    add.step = rows_step(row->out->arena);
    store.step = rows_step(row->out->arena);
    const RowPass *does = &row->passes->pass[pass];
    FOR_BITS (i, does->made)
        emit_elements(&make, i);
    FOR_BITS (i, does->reduced)
        if (row->passes->leader[i] < 0)
            emit_total(&add, i);
    FOR_BITS (i, does->stored)
        if (row->fusion->ops[i].out->dtype == DTYPE_B1)
            emit_bits_store(&store.step, row, i);
        else if (row->shape.unaligned)
            emit_unaligned_store(&store.step, row, i);
        else
            rows_emit_store(&store.step, &row->first, &row->element, i,
                            arena_printf(row->out->arena, "el.v%d", i), row->fusion->axis_count - 1, row->shape.vector);
    strbuf_puts(&make.step.text, add.step.text.text);
    make.step.axes |= add.step.axes;
    make.asks_mask |= add.asks_mask;
    rowwise_emit_part(&row->make, pass, opening(&make), &make.step);
    rowwise_emit_part(&row->store_elements, pass, opening(&store), &store.step);
}
