// The one printer of the tensor IR. Its output is what `-d op` shows and what the goldens hold.
#include <ctype.h>
#include <inttypes.h>
#include <math.h>

#include "ir/tensor_op.h"

void affine_print(StrBuf *out, const Affine *form, const Axis *axes, int axis_count)
{
    bool first = true;
    for (int a = 0; a < axis_count; a++) {
        int64_t coef = form->coef[a];
        if (!coef)
            continue;
        strbuf_puts(out, coef < 0 ? (first ? "-" : " - ") : first ? "" : " + ");
        if (coef != 1 && coef != -1)
            strbuf_printf(out, "%" PRIu64 "*", coef < 0 ? 0 - (uint64_t)coef : (uint64_t)coef);
        strbuf_puts(out, axes[a].name);
        first = false;
    }
    if (first)
        strbuf_printf(out, "%" PRId64, form->constant);
    else if (form->constant)
        strbuf_printf(out, " %c %" PRIu64, form->constant < 0 ? '-' : '+',
                      form->constant < 0 ? 0 - (uint64_t)form->constant : (uint64_t)form->constant);
}

static void dims_print(StrBuf *out, const Dim *dims, int count, const Axis *axes, int axis_count, bool sizes)
{
    for (int d = 0; d < count; d++) {
        strbuf_puts(out, d ? ", " : "");
        affine_print(out, &dims[d].index, axes, axis_count);
        if (sizes)
            strbuf_printf(out, " < %" PRId64, dims[d].size);
    }
}

static void constant_print(StrBuf *out, const Expr *expr)
{
    if (!dtype_info[expr->type].is_real)
        strbuf_printf(out, "%" PRId64, expr->constant.integer);
    else if (isnan(expr->constant.real))
        strbuf_puts(out, "nan");
    else if (isinf(expr->constant.real))
        strbuf_puts(out, expr->constant.real < 0 ? "-inf" : "inf");
    else if (expr->type == DTYPE_F32)
        strbuf_float(out, (float)expr->constant.real);
    else
        strbuf_double(out, expr->constant.real);
}

static void lower_case(StrBuf *out, const char *text)
{
    for (; *text; text++)
        strbuf_putc(out, (char)tolower((unsigned char)*text));
}

/* table[0, d; 64*idx[t]]: each place with the elements that one more of it is. */
static void fetch_print(StrBuf *out, const Fetch *fetch, const Axis *axes, int axis_count)
{
    strbuf_printf(out, "%s[", fetch->access.tensor->name);
    dims_print(out, fetch->access.dims, fetch->access.rank, axes, axis_count, false);
    for (int i = 0; i < fetch->count; i++) {
        strbuf_printf(out, "; %" PRId64 "*", fetch->places[i].stride);
        expr_print(out, fetch->places[i].value, axes, axis_count);
    }
    strbuf_puts(out, "]");
}

void expr_print(StrBuf *out, const Expr *expr, const Axis *axes, int axis_count)
{
    switch (expr->kind) {
    case EXPR_CONST:
        constant_print(out, expr);
        break;
    case EXPR_INDEX:
        strbuf_puts(out, "(");
        affine_print(out, &expr->index, axes, axis_count);
        strbuf_puts(out, ")");
        break;
    case EXPR_ACCESS:
        strbuf_printf(out, "%s[", expr->access.tensor->name);
        dims_print(out, expr->access.dims, expr->access.rank, axes, axis_count, false);
        strbuf_puts(out, "]");
        break;
    case EXPR_FETCH:
        fetch_print(out, &expr->fetch, axes, axis_count);
        break;
    case EXPR_GUARD:
        strbuf_puts(out, "guard(");
        dims_print(out, expr->guard.bounds, expr->guard.count, axes, axis_count, true);
        strbuf_puts(out, "; ");
        expr_print(out, expr->guard.body, axes, axis_count);
        strbuf_puts(out, "; ");
        expr_print(out, expr->guard.otherwise, axes, axis_count);
        strbuf_puts(out, ")");
        break;
    case EXPR_APPLY:
        lower_case(out, op_info[expr->apply.op].name);
        strbuf_puts(out, "(");
        for (int i = 0; i < op_info[expr->apply.op].operands; i++) {
            strbuf_puts(out, i ? ", " : "");
            expr_print(out, expr->apply.operands[i], axes, axis_count);
        }
        strbuf_puts(out, ")");
        break;
    case EXPR_CAST:
        strbuf_printf(out, "%s(", dtype_info[expr->cast.to].name);
        expr_print(out, expr->cast.body, axes, axis_count);
        strbuf_puts(out, ")");
        break;
    case EXPR_VALUE:
        strbuf_printf(out, "v%d", expr->value);
        break;
    }
}

static void axes_print(StrBuf *out, const Axis *axes, int first, int end)
{
    for (int a = first; a < end; a++)
        strbuf_printf(out, "%s%s:%" PRId64, a > first ? ", " : "", axes[a].name, axes[a].extent);
}

void op_print(StrBuf *out, const TensorOp *op)
{
    strbuf_printf(out, "%s[", op->out->name);
    axes_print(out, op->axes, 0, op->spatial_count);
    strbuf_printf(out, "] : %s = ", dtype_info[op->out->dtype].name);
    if (op->reduce != REDUCE_NONE) {
        strbuf_printf(out, "%s[", reduce_name[op->reduce]);
        axes_print(out, op->axes, op->spatial_count, op->axis_count);
        strbuf_puts(out, "] ");
    }
    expr_print(out, op->body, op->axes, op->axis_count);
    strbuf_puts(out, "\n");
}

static void tensor_print(StrBuf *out, const char *word, const Tensor *tensor)
{
    strbuf_printf(out, "%s %s[", word, tensor->name);
    for (int d = 0; d < tensor->rank; d++)
        strbuf_printf(out, "%s%" PRId64, d ? ", " : "", tensor->shape[d]);
    strbuf_printf(out, "] : %s\n", dtype_info[tensor->dtype].name);
}

void program_print(StrBuf *out, const Program *program)
{
    for (int i = 0; i < program->input_count; i++)
        tensor_print(out, program->inputs[i]->is_weight ? "weight" : "input", program->inputs[i]);
    for (int i = 0; i < program->op_count; i++)
        op_print(out, program->ops[i]);
    for (int i = 0; i < program->output_count; i++)
        tensor_print(out, "output", program->outputs[i]);
}
