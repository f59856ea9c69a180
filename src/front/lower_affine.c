// Indices: affine forms of the variables in scope, and quotients and remainders of such.
//
// x[i/4, i%4] and x[(8*i + j)/8]: the dividend is nowhere negative, so that floor and truncation agree. A
// division that comes out even is folded to an affine index: the second one is x[i] where j stays below 8.
#include <inttypes.h>

#include "base/checked.h"
#include "front/foreign.h"
#include "front/lower_parts.h"

/* Folds an index. Before extents are known only what has no quotient is looked at. */
typedef struct IndexFolding {
    const Lower *lower;
    bool extents_known;
} IndexFolding;

/* A folded part of an index: a number until a variable joins in. */
typedef struct Form {
    bool is_number;
    Number number;
    IndexForm index;
    bool is_affine;   // or is_number
} Form;

static Form number_form(Number number)
{
    return (Form){.is_number = true, .number = number, .is_affine = true};
}

static Form affine_form(Affine affine) { return (Form){.index.affine = affine, .is_affine = true}; }

static int64_t integer_of(const Lower *lower, Number number, Loc loc)
{
    int64_t value;
    if (!number_is_integer(number, &value))
        reject(loc, "the index has the term %s, not an integer: wrap it in floor(...) or ceil(...)",
               number_text(lower->arena, number));
    return value;
}

static IndexForm form_index(const Lower *lower, const Form *form, Loc loc)
{
    if (!form->is_number)
        return form->index;
    return (IndexForm){.affine = affine_constant(integer_of(lower, form->number, loc))};
}

static bool add_scaled(int64_t *sum, int64_t b, int64_t factor)
{
    int64_t term;
    return checked_mul(b, factor, &term) && checked_add(*sum, term, sum);
}

static void expect_fits(bool fits, Loc loc)
{
    if (!fits)
        reject(loc, "the index overflows");
}

/* a + factor*b */
static Affine affine_add_scaled(const Affine *a, const Affine *b, int64_t factor, Loc loc)
{
    Affine sum = *a;
    bool fits = add_scaled(&sum.constant, b->constant, factor);
    for (int i = 0; i < MAX_AXES; i++)
        fits = fits && add_scaled(&sum.coef[i], b->coef[i], factor);
    expect_fits(fits, loc);
    return sum;
}

// ---- what is computed ----

static DType integer_type(int64_t low, int64_t high)
{
    return low >= INT32_MIN && high <= INT32_MAX ? DTYPE_I32 : DTYPE_I64;
}

static Expr *integer_expr(const Lower *lower, int64_t value, DType type)
{
    Expr *expr = NEW(lower->arena, Expr);
    expr->kind = EXPR_CONST;
    expr->type = type;
    expr->constant.integer = value;
    return expr;
}

static Expr *affine_expr(const Lower *lower, const Affine *affine, DType type)
{
    if (affine_is_constant(affine))
        return integer_expr(lower, affine->constant, type);
    Expr *expr = NEW(lower->arena, Expr);
    expr->kind = EXPR_INDEX;
    expr->type = type;
    expr->index = *affine;
    return expr;
}

static Expr *integer_apply(const Lower *lower, Op op, DType type, Expr *a, Expr *b)
{
    return expr_apply(lower->arena, op, type, expr_cast(lower->arena, type, a),
                      expr_cast(lower->arena, type, b), NULL);
}

static bool affine_span(const Lower *lower, const Affine *affine, int64_t *low, int64_t *high)
{
    return affine_range(affine, lower->scope.extents, lower->scope.count, low, high);
}

DType index_span(const Lower *lower, const IndexForm *index, Loc loc, int64_t *low, int64_t *high)
{
    expect_fits(affine_span(lower, &index->affine, low, high) && checked_add(*low, index->low, low) &&
                    checked_add(*high, index->high, high),
                loc);
    return integer_type(*low, *high);
}

Expr *index_expr(const Lower *lower, const IndexForm *index, DType type)
{
    bool is_zero = affine_is_constant(&index->affine) && index->affine.constant == 0;
    if (!index->computed)
        return affine_expr(lower, &index->affine, type);
    if (is_zero)
        return expr_cast(lower->arena, type, index->computed);
    return integer_apply(lower, OP_ADD, type, affine_expr(lower, &index->affine, type), index->computed);
}

/* What is computed in `a` and, `factor` times, in `b`. */
static void add_computed(const Lower *lower, IndexForm *a, const IndexForm *b, int64_t factor, Loc loc)
{
    if (!b->computed)
        return;
    int64_t low = a->low, high = a->high;
    expect_fits(add_scaled(&low, factor < 0 ? b->high : b->low, factor) &&
                    add_scaled(&high, factor < 0 ? b->low : b->high, factor),
                loc);
    DType type = DTYPE_I64;   // whatever the parts are
    Expr *scaled = factor == 1
                       ? b->computed
                       : integer_apply(lower, OP_MUL, type, b->computed, integer_expr(lower, factor, type));
    a->computed = a->computed ? integer_apply(lower, OP_ADD, type, a->computed, scaled) : scaled;
    a->low = low;
    a->high = high;
}

/* a + factor*b */
static Form form_add_scaled(const Lower *lower, const IndexForm *a, const IndexForm *b, int64_t factor,
                            Loc loc)
{
    Form sum = {.index = *a};
    if (a->element || b->element)
        reject(loc, "an element as an index stands alone in its dimension, but for a constant, as in idx[t] "
                    "+ 1; define "
                    "what is more, and read that: j[t] = 2*idx[t], then x[j[t]]");
    sum.index.affine = affine_add_scaled(&a->affine, &b->affine, factor, loc);
    add_computed(lower, &sum.index, b, factor, loc);
    sum.is_affine = !sum.index.computed;
    return sum;
}

// ---- quotients and remainders ----

static int64_t divisor_of(const IndexFolding *folding, const Form *divisor, Loc loc)
{
    if (!divisor->is_number)
        reject(loc, "an index is divided by a constant");
    int64_t by = integer_of(folding->lower, divisor->number, loc);
    if (by <= 0)
        reject(loc, "an index is divided by a positive constant, saw %" PRId64, by);
    return by;
}

/* x[i/4], x[i%4]: of what divides nothing is left to be computed. */
static Form fold_quotient(const IndexFolding *folding, Op op, const IndexForm *dividend, int64_t by, Loc loc)
{
    const Lower *lower = folding->lower;
    const IndexScope *scope = &lower->scope;
    Affine quotient, rest;
    int64_t low, high;
    index_span(lower, dividend, loc, &low, &high);
    if (low < 0)
        reject(loc,
               "the dividend of an index reaches %" PRId64
               ": below 0 a quotient would have to be rounded; add a "
               "multiple of %" PRId64 " and take it off behind the division",
               low, by);
    if (!dividend->computed &&
        affine_divide(&dividend->affine, by, scope->extents, scope->count, &quotient, &rest))
        return affine_form(op == OP_DIV ? quotient : rest);
    DType type = integer_type(0, larger(high, by));
    bool same = low / by == high / by;
    Form result = {.index.affine = affine_constant(0)};
    result.index.computed =
        integer_apply(lower, op, type, index_expr(lower, dividend, type), integer_expr(lower, by, type));
    result.index.low = op == OP_DIV ? low / by : same ? low % by : 0;
    result.index.high = op == OP_DIV ? high / by : same ? high % by : by - 1;
    return result;
}

// ---- folding ----

static Form fold(const IndexFolding *folding, const AstExpr *index);

static Form fold_name(const Lower *lower, const AstExpr *index)
{
    int axis = scope_find(&lower->scope, index->name);
    if (axis >= 0)
        return affine_form(affine_axis(axis));
    if (!symbol_find(lower, index->name))
        name_unknown(lower, "index", index->name, index->loc);
    return number_form(param_find(lower, index->name, index->loc));
}

static Form fold_product(const Lower *lower, const AstExpr *index, const Form *a, const Form *b)
{
    if (!a->is_number && !b->is_number)
        reject(index->loc, "an index cannot multiply two index variables; " FOREIGN_INDEX);
    const Form *variable = a->is_number ? b : a, *factor = a->is_number ? a : b;
    IndexForm zero = {.affine = affine_constant(0)};
    int64_t scale = integer_of(lower, factor->number, index->loc);
    Form product = form_add_scaled(lower, &zero, &variable->index, scale, index->loc);
    product.is_affine = variable->is_affine;
    return product;
}

/* A place that is computed, while extents are not known. */
static Form unknown_form(void) { return (Form){.is_affine = false}; }

static Form fold_division(const IndexFolding *folding, const AstExpr *index, const Form *a, const Form *b)
{
    const Lower *lower = folding->lower;
    int64_t by = divisor_of(folding, b, index->apply.operands[1]->loc);
    IndexForm dividend = form_index(lower, a, index->apply.operands[0]->loc);
    if (dividend.element)
        reject(
            index->loc,
            "an element as an index stands alone in its dimension, but for a constant; define the quotient, "
            "and read that: j[t] = idx[t] %s %" PRId64 ", then x[j[t]]",
            op_info[index->apply.op].spelling, by);
    return folding->extents_known ? fold_quotient(folding, index->apply.op, &dividend, by, index->loc)
                                  : unknown_form();
}

/* x[idx[t]], x[idx[t] + 1] */
static Form fold_element_sum(const Lower *lower, const AstExpr *index, const Form *a, const Form *b)
{
    const Form *element = a->index.element ? a : b, *constant = a->index.element ? b : a;
    bool allowed =
        constant->is_number && (index->apply.op == OP_ADD || (index->apply.op == OP_SUB && element == a));
    IndexForm right = constant->is_number ? form_index(lower, constant, index->loc) : constant->index;
    Form sum = *element;
    IndexForm without = element->index;
    without.element = NULL;
    if (!allowed)
        return form_add_scaled(lower, &element->index, &right, 1, index->loc);   // says why not
    sum.index =
        form_add_scaled(lower, &without, &right, index->apply.op == OP_ADD ? 1 : -1, index->loc).index;
    sum.index.element = element->index.element;
    return sum;
}

static Form fold_apply(const IndexFolding *folding, const AstExpr *index)
{
    const Lower *lower = folding->lower;
    Op op = index->apply.op;
    AstExpr *const *operands = index->apply.operands;
    if (!number_folds(op))
        reject(index->loc, "an index is made of + - * / and %% only, saw '%s'; " FOREIGN_INDEX,
               op_info[op].spelling);
    bool two = op_info[op].operands == 2;
    Form a = fold(folding, operands[0]), b = two ? fold(folding, operands[1]) : a;
    if (a.is_number && b.is_number)
        return number_form(number_apply(op, a.number, b.number, index->loc));
    if (op == OP_DIV || op == OP_MOD)
        return fold_division(folding, index, &a, &b);
    if (op == OP_MUL)
        return fold_product(lower, index, &a, &b);
    if (op != OP_ADD && op != OP_SUB && op != OP_NEG)
        reject(index->loc,
               "an index is made of + - * / and %% only, saw '%s' of an index variable; " FOREIGN_INDEX,
               op_info[op].spelling);
    if (two && (a.index.element || b.index.element))
        return fold_element_sum(lower, index, &a, &b);
    IndexForm right = form_index(lower, &b, operands[two]->loc), zero = {.affine = affine_constant(0)};
    IndexForm left = op == OP_NEG ? zero : form_index(lower, &a, operands[0]->loc);
    Form sum = form_add_scaled(lower, &left, &right, op == OP_ADD ? 1 : -1, index->loc);
    sum.is_affine = a.is_affine && b.is_affine;
    return sum;
}

static Form fold(const IndexFolding *folding, const AstExpr *index)
{
    switch (index->kind) {
    case AST_NUMBER: return number_form(index->number);
    case AST_NAME: return fold_name(folding->lower, index);
    case AST_APPLY: return fold_apply(folding, index);
    case AST_ACCESS: return (Form){.index.element = index};
    case AST_PAD: reject(index->loc, "an index cannot hold a pad; " FOREIGN_INDEX);
    case AST_REDUCTION: reject(index->loc, "an index cannot hold a reduction; " FOREIGN_INDEX);
    case AST_CAST: reject(index->loc, "an index cannot hold a cast; " FOREIGN_INDEX);
    }
    __builtin_unreachable();
}

/* affine has the form of a sum that, folded, is integer constants times index variables
   plus an integer constant, or quotients and remainders of such */
IndexForm lower_index(const Lower *lower, const AstExpr *index)
{
    IndexFolding folding = {lower, true};
    Form form = fold(&folding, index);
    return form_index(lower, &form, index->loc);
}

bool index_is_affine(const Lower *lower, const AstExpr *index, Affine *affine)
{
    IndexFolding folding = {lower, false};
    Form form = fold(&folding, index);
    *affine = form_index(lower, &form, index->loc).affine;
    return form.is_affine;
}
