// Indices: affine forms of the variables in scope, and whether they stay inside their tensor.
#include <inttypes.h>

#include "base/checked.h"
#include "front/foreign.h"
#include "front/lower_parts.h"
#include "ir/eval.h"

/* A folded part of an index: a number until a variable joins in. */
typedef struct Form {
    bool is_number;
    Number number;
    Affine affine;
} Form;

static Form number_form(Number number)
{
    return (Form){.is_number = true, .number = number};
}

static Affine form_affine(const Lower *lower, const Form *form, Loc loc)
{
    int64_t value;
    if (!form->is_number)
        return form->affine;
    if (!number_is_integer(form->number, &value))
        reject(loc, "the index has the term %s, not an integer: wrap it in floor(...) or ceil(...)",
               number_text(lower->arena, form->number));
    return affine_constant(value);
}

static bool add_scaled(int64_t *sum, int64_t b, int64_t factor)
{
    int64_t term;
    return checked_mul(b, factor, &term) && checked_add(*sum, term, sum);
}

/* a + factor*b */
static Affine affine_add_scaled(const Affine *a, const Affine *b, int64_t factor, Loc loc)
{
    Affine sum = *a;
    bool fits = add_scaled(&sum.constant, b->constant, factor);
    for (int i = 0; i < MAX_AXES; i++)
        fits = fits && add_scaled(&sum.coef[i], b->coef[i], factor);
    if (!fits)
        reject(loc, "the index overflows");
    return sum;
}

static Form fold(const Lower *lower, const AstExpr *index);

static Form fold_name(const Lower *lower, const AstExpr *index)
{
    int axis = scope_find(&lower->scope, index->name);
    if (axis >= 0)
        return (Form){.affine = affine_axis(axis)};
    if (!symbol_find(lower, index->name))
        name_unknown(lower, "index", index->name, index->loc);
    return number_form(param_find(lower, index->name, index->loc));
}

static Form fold_product(const Lower *lower, const AstExpr *index, const Form *a, const Form *b)
{
    if (!a->is_number && !b->is_number)
        reject(index->loc, "an index cannot multiply two index variables; " FOREIGN_INDEX);
    const Form *variable = a->is_number ? b : a, *factor = a->is_number ? a : b;
    int64_t scale = form_affine(lower, factor, index->loc).constant;
    Affine zero = affine_constant(0);
    return (Form){.affine = affine_add_scaled(&zero, &variable->affine, scale, index->loc)};
}

/* x[i / 4]: i is two variables in one. */
static _Noreturn void refuse_quotient(const AstExpr *index, const Form *divisor)
{
    const AstExpr *dividend = index->apply.operands[0];
    int64_t by;
    if (dividend->kind != AST_NAME || !divisor->is_number || !number_is_integer(divisor->number, &by) ||
        by < 2)
        reject(index->loc,
               "an index is made of + - and * only, saw '/' of an index variable; " FOREIGN_INDEX);
    const char *i = dividend->name;
    reject(index->loc,
           "an index is made of + - and * only, saw '/' of an index variable; put variables a and b:%" PRId64
           " in the place of %s = %" PRId64 "*a + b: %s / %" PRId64 " is then a",
           by, i, by, i, by);
}

static Form fold_apply(const Lower *lower, const AstExpr *index)
{
    Op op = index->apply.op;
    AstExpr *const *operands = index->apply.operands;
    if (!number_folds(op))
        reject(index->loc, "an index is made of + - and * only, saw '%s'; " FOREIGN_INDEX,
               op_info[op].spelling);
    bool two = op_info[op].operands == 2;
    Form a = fold(lower, operands[0]), b = two ? fold(lower, operands[1]) : a;
    if (a.is_number && b.is_number)
        return number_form(number_apply(op, a.number, b.number, index->loc));
    if (op == OP_MUL)
        return fold_product(lower, index, &a, &b);
    if (op == OP_DIV)
        refuse_quotient(index, &b);
    if (op != OP_ADD && op != OP_SUB && op != OP_NEG)
        reject(index->loc,
               "an index is made of + - and * only, saw '%s' of an index variable; " FOREIGN_INDEX,
               op_info[op].spelling);
    Affine right = form_affine(lower, &b, operands[two]->loc), zero = affine_constant(0);
    Affine left = op == OP_NEG ? zero : form_affine(lower, &a, operands[0]->loc);
    return (Form){.affine = affine_add_scaled(&left, &right, op == OP_ADD ? 1 : -1, index->loc)};
}

static Form fold(const Lower *lower, const AstExpr *index)
{
    switch (index->kind) {
    case AST_NUMBER: return number_form(index->number);
    case AST_NAME: return fold_name(lower, index);
    case AST_APPLY: return fold_apply(lower, index);
    case AST_ACCESS:
    case AST_PAD:
        reject(index->loc,
               "an index cannot be read from a tensor; x[p[i]] is sum[k](select(k == p[i], x[k], 0))");
    case AST_REDUCTION: reject(index->loc, "an index cannot hold a reduction; " FOREIGN_INDEX);
    case AST_CAST: reject(index->loc, "an index cannot hold a cast; " FOREIGN_INDEX);
    }
    __builtin_unreachable();
}

/* affine has the form of a sum that, folded, is integer constants times index variables
   plus an integer constant */
Affine lower_index(const Lower *lower, const AstExpr *index)
{
    Form form = fold(lower, index);
    return form_affine(lower, &form, index->loc);
}

// ---- bounds ----

/* |constant| + sum of |coefficient| * extent: further than the index ever gets from 0. */
static bool index_reach(const IndexScope *scope, const Affine *index, int64_t *reach)
{
    if (index->constant == INT64_MIN)
        return false;
    *reach = index->constant < 0 ? -index->constant : index->constant;
    for (int a = 0; a < scope->count; a++) {
        int64_t term;
        if (!checked_mul(index->coef[a], scope->extents[a], &term) || term == INT64_MIN ||
            !checked_add(*reach, term < 0 ? -term : term, reach))
            return false;
    }
    return true;
}

/* Even where a pad hides it, the flat offset of what an access would read has to fit in 64 bits. */
static bool offset_fits(const IndexScope *scope, const Access *access)
{
    int64_t total = 0, stride = 1;
    for (int d = access->rank - 1; d >= 0; d--) {
        int64_t reach;
        if (!index_reach(scope, &access->dims[d].index, &reach) ||
            !checked_mul(reach, stride, &reach) || !checked_add(total, reach, &total))
            return false;
        stride *= access->dims[d].size;
    }
    return true;
}

static bool stays_inside(const Lower *lower, const Dim *dim, int64_t *low, int64_t *high)
{
    affine_range(&dim->index, lower->scope.extents, lower->scope.count, low, high);
    return *low >= 0 && *high < dim->size;
}

Tensor *accessed(const Lower *lower, const AstExpr *access)
{
    Tensor *tensor = tensor_find(lower, access->access.name, access->loc);
    if (access->access.count != tensor->rank)
        reject(access->loc, "'%s' has %d dimension%s, saw %d %s", tensor->name, tensor->rank,
               tensor->rank == 1 ? "" : "s", access->access.count,
               access->access.count == 1 ? "index" : "indices");
    return tensor;
}

static Expr *element(Lower *lower, const AstExpr *access)
{
    Tensor *tensor = accessed(lower, access);
    Expr *expr = NEW(lower->arena, Expr);
    expr->kind = EXPR_ACCESS;
    expr->type = dtype_info[tensor->dtype].compute;
    expr->loc = access->loc;
    Affine indices[MAX_AXES];
    for (int d = 0; d < tensor->rank; d++)
        indices[d] = lower_index(lower, access->access.indices[d]);
    expr->access = access_new(lower->arena, tensor, indices);
    if (!offset_fits(&lower->scope, &expr->access))
        reject(access->loc, "an index reaches too far outside '%s' for 64-bit arithmetic",
               tensor->name);
    return expr;
}

static AffineTerm moved(Expr *expr, const Tensor *tensor)
{
    return (AffineTerm){.expr = expr, .moves = true, .element = tensor->dtype};
}

const char *read_of_only(const Lower *lower, const AstExpr *access, int dimension)
{
    Loc whole = access->loc, index = access->access.indices[dimension]->loc;
    const char *text = whole.source->text, *behind = text + index.offset + index.length;
    return arena_printf(lower->arena, "%.*s0%.*s", (int)(index.offset - whole.offset), text + whole.offset,
                        (int)(text + whole.offset + whole.length - behind), behind);
}

static const char *mend_of_outside(const Lower *lower, const AstExpr *access, int dimension, int64_t size)
{
    if (size > 1)
        return "wrap the access in pad(..., 0)";
    return arena_printf(lower->arena, "to read its only element write %s",
                        read_of_only(lower, access, dimension));
}

AffineTerm lower_access(Lower *lower, const AstExpr *access)
{
    Expr *expr = element(lower, access);
    for (int d = 0; d < expr->access.rank; d++) {
        int64_t low, high;
        if (!stays_inside(lower, &expr->access.dims[d], &low, &high))
            reject(access->access.indices[d]->loc,
                   "index reaches %" PRId64 " .. %" PRId64 " but dimension %d of '%s' has size "
                   "%" PRId64 "; %s",
                   low, high, d, expr->access.tensor->name, expr->access.dims[d].size,
                   mend_of_outside(lower, access, d, expr->access.dims[d].size));
    }
    return moved(expr, expr->access.tensor);
}

// ---- pad ----

/* An element as the tensor could hold it: 0 or 1 for b1, the real number rounded to f16 for f16. */
static Expr *padding(Lower *lower, const AstExpr *pad, const Tensor *tensor)
{
    Number number = lower_const(lower, pad->pad.otherwise);
    if (!number_fits(number, tensor->dtype))
        reject(pad->pad.otherwise->loc, "the padding %s is no value of '%s', which holds %s: %s",
               number_text(lower->arena, number), tensor->name, dtype_info[tensor->dtype].name,
               values_text(lower->arena, tensor->dtype));
    Expr *expr = expr_constant(lower->arena, dtype_info[tensor->dtype].compute,
                               dtype_round(tensor->dtype, number_real(number)));
    expr->loc = pad->pad.otherwise->loc;
    return expr;
}

/* "pad" "(" access "," const ")": a guard on the dimensions that can leave the tensor */
AffineTerm lower_pad(Lower *lower, const AstExpr *pad)
{
    Expr *body = element(lower, pad->pad.access);
    const Access *access = &body->access;
    Dim *bounds = NEW_ARRAY(lower->arena, Dim, access->rank);
    Expr *guard = NEW(lower->arena, Expr);
    guard->kind = EXPR_GUARD;
    guard->type = body->type;
    guard->loc = pad->loc;
    guard->guard = (Guard){.bounds = bounds, .body = body,
                           .otherwise = padding(lower, pad, access->tensor)};
    for (int d = 0; d < access->rank; d++) {
        int64_t low, high;
        if (!stays_inside(lower, &access->dims[d], &low, &high))
            bounds[guard->guard.count++] = access->dims[d];
    }
    return moved(guard->guard.count ? guard : body, access->tensor);
}
