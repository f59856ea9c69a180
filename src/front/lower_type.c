// Element types: what an operation computes in, and what a definition is stored as.
#include "base/diag.h"
#include "front/lower_parts.h"

static bool is_real(DType type)
{
    return dtype_info[type].is_real;
}

DType arithmetic_type(DType type)
{
    return type == DTYPE_B1 ? DTYPE_I32 : type;
}

/* f64 over f32 over i64 over i32. */
static DType common_type(DType a, DType b)
{
    if (a == DTYPE_F64 || b == DTYPE_F64)
        return DTYPE_F64;
    if (is_real(a) || is_real(b))
        return DTYPE_F32;
    return a == DTYPE_I64 || b == DTYPE_I64 ? DTYPE_I64 : DTYPE_I32;
}

static DType common_type_of(const AffineTerm *operands, int first, int end)
{
    DType type = arithmetic_type(operands[first].expr->type);
    for (int i = first + 1; i < end; i++)
        type = common_type(type, operands[i].expr->type);
    return type;
}

// ---- terms ----

AffineTerm term_of(Expr *expr)
{
    return (AffineTerm){.expr = expr};
}

static Expr *number_expr(Arena *arena, Number number, DType type, Loc loc)
{
    Expr *expr = NEW(arena, Expr);
    expr->kind = EXPR_CONST;
    expr->type = type;
    expr->loc = loc;
    if (is_real(type))
        expr->constant.real = number_real(number);
    else
        expr->constant.integer = number.integer;
    return expr;
}

/* Until an operand beside it decides otherwise, a constant is f32, i32, or i64 if it needs that. */
AffineTerm term_number(Lower *lower, Number number, Loc loc)
{
    bool narrow = number.is_real || (number.integer >= INT32_MIN && number.integer <= INT32_MAX);
    DType type = number.is_real ? DTYPE_F32 : narrow ? DTYPE_I32 : DTYPE_I64;
    return (AffineTerm){
        .expr = number_expr(lower->arena, number, type, loc),
        .is_number = true,
        .number = number,
        .is_constant = true,
    };
}

/* Constants are converted where they stand: sqrt(2) beside an f64 is the square root of an f64. */
static void constant_retype(Expr *expr, DType type)
{
    if (expr->kind == EXPR_CONST) {
        if (is_real(type) && !is_real(expr->type))
            expr->constant.real = (double)expr->constant.integer;
    } else {
        for (int i = expr->apply.op == OP_SELECT; i < op_info[expr->apply.op].operands; i++)
            constant_retype(expr->apply.operands[i], type);
    }
    expr->type = type;
}

/* a / b * b: the cut is what is wanted, as in the remainder a - a / b * b. */
static bool takes_back(const Expr *product, int side)
{
    const Expr *quotient = product->apply.operands[side], *factor = product->apply.operands[1 - side];
    return product->apply.op == OP_MUL && quotient->kind == EXPR_APPLY && quotient->apply.op == OP_DIV &&
           expr_equal(quotient->apply.operands[1], factor);
}

/* The first quotient of integers in what is made of integers alone, of which the fraction may be missed;
   NULL: there is none. */
static const Expr *integer_quotient(const Expr *expr)
{
    if (expr->kind != EXPR_APPLY || is_real(expr->type))
        return NULL;
    if (expr->apply.op == OP_DIV)
        return expr;
    if (expr->apply.op == OP_MUL && (takes_back(expr, 0) || takes_back(expr, 1)))
        return NULL;
    const Expr *found = NULL;
    for (int i = expr->apply.op == OP_SELECT; i < op_info[expr->apply.op].operands && !found; i++)
        found = integer_quotient(expr->apply.operands[i]);
    return found;
}

/* pow(10000, -2*d / D) is 1 for all d < D/2: who wants that writes the cast. */
static void warn_of_lost_fraction(const Expr *expr)
{
    const Expr *quotient = integer_quotient(expr);
    if (quotient)
        diag_warning(
            quotient->loc,
            "a quotient of integers is cut off before it is used as a real number; if that is meant, write "
            "cast(a / b, f32), else cast(a, f32) / b");
}

/* The value in the given compute type. */
Expr *term_convert(Lower *lower, AffineTerm term, DType type)
{
    if (term.expr->type == type)
        return term.expr;
    if (is_real(type))
        warn_of_lost_fraction(term.expr);
    if (!term.is_constant)
        return expr_cast(lower->arena, type, term.expr);
    constant_retype(term.expr, type);
    return term.expr;
}

/* The operands are brought to `common`, but for the condition of a select. */
static AffineTerm apply(Lower *lower, Op op, DType type, const AffineTerm *operands, DType common, Loc loc)
{
    Expr *converted[MAX_OPERANDS] = {0};
    AffineTerm term = {.is_constant = true};
    for (int i = 0; i < op_info[op].operands; i++) {
        bool condition = op == OP_SELECT && i == 0;
        converted[i] = condition ? operands[i].expr : term_convert(lower, operands[i], common);
        term.is_constant &= condition || operands[i].is_constant;
        term.is_long |= !condition && operands[i].is_long;
    }
    term.expr = expr_apply(lower->arena, op, type, converted[0], converted[1], converted[2]);
    term.expr->loc = loc;
    return term;
}

static AffineTerm apply_number(Lower *lower, Op op, const AffineTerm *operands, Loc loc)
{
    return term_number(lower, number_apply(op, operands[0].number, operands[1].number, loc), loc);
}

static void expect_condition(const AffineTerm *operand, Op op)
{
    if (operand->expr->type != DTYPE_B1)
        reject(operand->expr->loc, "'%s' takes a b1 condition, saw %s; compare it, like != 0",
               op_info[op].spelling, dtype_info[operand->expr->type].name);
}

static AffineTerm apply_logic(Lower *lower, Op op, const AffineTerm *operands, Loc loc)
{
    for (int i = 0; i < op_info[op].operands; i++)
        expect_condition(&operands[i], op);
    return apply(lower, op, DTYPE_B1, operands, DTYPE_B1, loc);
}

/* select(condition, a, b) brings a and b to one type. */
static AffineTerm apply_select(Lower *lower, const AffineTerm *operands, Loc loc)
{
    expect_condition(&operands[0], OP_SELECT);
    const AffineTerm *a = &operands[1], *b = &operands[2];
    bool logic = a->expr->type == DTYPE_B1 && b->expr->type == DTYPE_B1;
    DType type = logic ? DTYPE_B1 : common_type_of(operands, 1, 3);
    AffineTerm term = apply(lower, OP_SELECT, type, operands, type, loc);
    term.moves = a->moves && b->moves && a->element == b->element;
    term.element = a->element;
    return term;
}

AffineTerm term_apply(Lower *lower, Op op, const AffineTerm *operands, Loc loc)
{
    bool two = op_info[op].operands == 2;
    if (number_folds(op) && operands[0].is_number && (!two || operands[1].is_number))
        return apply_number(lower, op, operands, loc);
    DType type = common_type_of(operands, 0, op_info[op].operands);
    switch (op_info[op].class) {
    case OP_CLASS_ARITH: return apply(lower, op, type, operands, type, loc);
    case OP_CLASS_WHOLE:
        if (is_real(type))
            reject(loc, "'%%' is the remainder of integers; of reals it is a - floor(a / b) * b");
        return apply(lower, op, type, operands, type, loc);
    case OP_CLASS_REAL:
        type = common_type(type, DTYPE_F32);
        return apply(lower, op, type, operands, type, loc);
    case OP_CLASS_COMPARE: {
        AffineTerm comparison = apply(lower, op, DTYPE_B1, operands, type, loc);
        comparison.is_constant = false;
        return comparison;
    }
    case OP_CLASS_LOGIC: return apply_logic(lower, op, operands, loc);
    case OP_CLASS_SELECT: return apply_select(lower, operands, loc);
    }
    __builtin_unreachable();
}

/* cast(a, b1) is a != 0, said so that no later stage has to know. */
static AffineTerm cast_to_b1(Lower *lower, AffineTerm term, Loc loc)
{
    if (term.expr->type == DTYPE_B1)
        return term_of(term.expr);
    AffineTerm operands[] = {term, term_number(lower, (Number){.integer = 0}, loc)};
    return term_apply(lower, OP_NE, operands, loc);
}

/* A constant that is cast has a type of its own; a real one is converted from its exact value. */
AffineTerm term_cast(Lower *lower, AffineTerm term, DType to, Loc loc)
{
    DType compute = dtype_info[to].compute;
    if (to == DTYPE_B1)
        return cast_to_b1(lower, term, loc);
    if (term.is_constant && is_real(compute))
        term.expr = term_convert(lower, term, compute);
    AffineTerm result = term_of(expr_cast(lower->arena, to, term.expr));
    result.expr->loc = loc;
    result.is_long = to == DTYPE_I64;
    return result;
}

// ---- definitions ----

DType definition_type(AffineTerm term, Reduce reduce)
{
    DType type = term.expr->type;
    if (reduce == REDUCE_NONE && term.moves)
        return term.element;
    if (reduce == REDUCE_NONE && type == DTYPE_B1)
        return DTYPE_B1;
    if (is_real(type))
        return type == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32;
    return term.is_long ? DTYPE_I64 : DTYPE_I32;   // an index variable past 2^31 alone makes no i64
}

/* A stored body has the class of its tensor: real, integer or b1. Within a class, and after a
   reduction, the store itself converts. */
Expr *term_store(Lower *lower, AffineTerm term, Reduce reduce, DType to)
{
    DType type = term.expr->type, compute = dtype_info[to].compute;
    if (is_real(type) && !is_real(to))
        reject(term.expr->loc, "a real value does not become %s silently; write cast(..., %s)",
               dtype_info[to].name, dtype_info[to].name);
    if (type != DTYPE_B1 && to == DTYPE_B1)
        reject(term.expr->loc, "an integer does not become b1 silently; compare it, like != 0");
    if (term.is_constant && is_real(to))
        return term_convert(lower, term, compute);
    bool same_class = is_real(type) == is_real(to) && (type == DTYPE_B1) == (to == DTYPE_B1);
    return same_class || reduce != REDUCE_NONE ? term.expr : term_convert(lower, term, compute);
}
