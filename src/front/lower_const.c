// Constants, folded exactly: 64-bit integers as long as they stay integers, else doubles.
#include <inttypes.h>
#include <math.h>

#include "base/checked.h"
#include "front/lower_parts.h"
#include "ir/eval.h"

static Number integer_number(int64_t value)
{
    return (Number){.integer = value};
}

static Number real_number(double value)
{
    return (Number){.is_real = true, .real = value};
}

double number_real(Number number)
{
    return number.is_real ? number.real : (double)number.integer;
}

bool number_is_integer(Number number, int64_t *value)
{
    if (!number.is_real) {
        *value = number.integer;
        return true;
    }
    if (!(fabs(number.real) < 0x1p63) || number.real != floor(number.real))
        return false;
    *value = (int64_t)number.real;
    return true;
}

const char *number_text(Arena *arena, Number number)
{
    StrBuf text = strbuf_new(arena);
    number_print(&text, number);
    return text.text;
}

bool number_fits(Number number, DType type)
{
    double value = number_real(number);
    int64_t integer;
    if (dtype_info[type].is_real)
        return isinf(value) || isfinite(dtype_round(type, value));
    return number_is_integer(number, &integer) && (type == DTYPE_I64 || dtype_round(type, value) == value);
}

const char *values_text(Arena *arena, DType type)
{
    switch (type) {
    case DTYPE_F64: return "numbers up to 1.8e308, and inf";
    case DTYPE_F32: return "numbers up to 3.402823e38, and inf";
    case DTYPE_F16: return "numbers up to 65504, and inf";
    case DTYPE_BF16: return "numbers up to 3.3895e38, and inf";
    case DTYPE_B1: return "0 and 1";
    case DTYPE_I64: return "integers of 64 bits";
    default: break;
    }
    bool positive = type == DTYPE_U8;
    int64_t count = (int64_t)1 << dtype_info[type].bits, low = positive ? 0 : -count / 2;
    return arena_printf(arena, "%" PRId64 " to %" PRId64, low, low + count - 1);
}

// ---- operations ----

static _Noreturn void overflow(Loc loc)
{
    reject(loc, "the constant overflows");
}

/* 7/2 is 3.5 and 8/2 is 4: nothing is cut off. */
static Number integer_divide(int64_t a, int64_t b, Loc loc)
{
    if (a == INT64_MIN && b == -1)
        overflow(loc);
    return a % b == 0 ? integer_number(a / b) : real_number((double)a / (double)b);
}

static Number integer_apply(Op op, int64_t a, int64_t b, Loc loc)
{
    int64_t value = 0;
    bool fits = true;
    switch (op) {
    case OP_NEG: fits = !__builtin_sub_overflow((int64_t)0, a, &value); break;
    case OP_ADD: fits = checked_add(a, b, &value); break;
    case OP_SUB: fits = !__builtin_sub_overflow(a, b, &value); break;
    case OP_MUL: fits = checked_mul(a, b, &value); break;
    case OP_DIV: return integer_divide(a, b, loc);
    case OP_MOD: value = b == -1 ? 0 : a % b; break;
    case OP_MAX: value = a > b ? a : b; break;
    case OP_MIN: value = a < b ? a : b; break;
    default: value = a; break;   // floor, ceil
    }
    if (!fits)
        overflow(loc);
    return integer_number(value);
}

static double real_apply(Op op, double a, double b)
{
    switch (op) {
    case OP_NEG: return -a;
    case OP_ADD: return a + b;
    case OP_SUB: return a - b;
    case OP_MUL: return a * b;
    case OP_DIV: return a / b;
    case OP_MAX: return a > b ? a : b;
    case OP_MIN: return a < b ? a : b;
    case OP_FLOOR: return floor(a);
    default: return ceil(a);
    }
}

bool number_folds(Op op)
{
    switch (op) {
    case OP_NEG: case OP_ADD: case OP_SUB: case OP_MUL: case OP_DIV: case OP_MOD:
    case OP_MAX: case OP_MIN: case OP_FLOOR: case OP_CEIL:
        return true;
    default:
        return false;
    }
}

Number number_apply(Op op, Number a, Number b, Loc loc)
{
    bool two = op_info[op].operands == 2;
    if ((op == OP_DIV || op == OP_MOD) && number_real(b) == 0)
        reject(loc, "division by zero in a constant");
    if (!a.is_real && !(two && b.is_real))
        return integer_apply(op, a.integer, two ? b.integer : 0, loc);
    if (op == OP_MOD)
        reject(loc, "'%%' is the remainder of integers; of reals it is a - floor(a / b) * b");
    double x = number_real(a), y = two ? number_real(b) : 0;
    Number result = real_number(real_apply(op, x, y));
    if (isnan(result.real))
        reject(loc, "the constant is not a number (inf - inf, 0 * inf or inf / inf)");
    if (isinf(result.real) && isfinite(x) && isfinite(y))
        overflow(loc);
    int64_t integer;
    if ((op == OP_FLOOR || op == OP_CEIL) && number_is_integer(result, &integer))
        return integer_number(integer);
    return result;
}

// ---- syntax ----

static Number const_name(const Lower *lower, const AstExpr *expr)
{
    if (scope_find(&lower->scope, expr->name) >= 0)
        reject(expr->loc, "expected a constant, saw the index variable '%s'", expr->name);
    return param_find(lower, expr->name, expr->loc);
}

static Number const_apply(const Lower *lower, const AstExpr *expr)
{
    Op op = expr->apply.op;
    if (!number_folds(op))
        reject(expr->loc, "'%s' cannot stand in a constant; + - * / %% floor ceil min max can",
               op_info[op].spelling);
    Number a = lower_const(lower, expr->apply.operands[0]);
    bool two = op_info[op].operands == 2;
    return number_apply(op, a, two ? lower_const(lower, expr->apply.operands[1]) : a, expr->loc);
}

/* const has the form of a sum over numbers, inf, pi, params, parentheses and floor ceil min max */
Number lower_const(const Lower *lower, const AstExpr *expr)
{
    switch (expr->kind) {
    case AST_NUMBER: return expr->number;
    case AST_NAME: return const_name(lower, expr);
    case AST_APPLY: return const_apply(lower, expr);
    case AST_ACCESS: reject(expr->loc, "expected a constant, saw an element of a tensor");
    case AST_REDUCTION: reject(expr->loc, "expected a constant, saw a reduction");
    case AST_PAD: reject(expr->loc, "expected a constant, saw 'pad'");
    case AST_CAST: reject(expr->loc, "expected a constant, saw 'cast'");
    }
    __builtin_unreachable();
}

int64_t lower_extent(const Lower *lower, const AstExpr *expr)
{
    Number number = lower_const(lower, expr);
    int64_t extent;
    if (!number_is_integer(number, &extent))
        reject(expr->loc, "extent is %s, not an integer: wrap it in floor(...) or ceil(...)",
               number_text(lower->arena, number));
    if (extent < 1)
        reject(expr->loc, "extent is %" PRId64 "; zero and negative sizes are not allowed", extent);
    if (extent > MAX_ELEMENTS)
        reject(expr->loc, "extent is %" PRId64 "; at most 2^40 is allowed", extent);
    return extent;
}

// ---- `-D NAME=NUMBER` ----

static Number override_number(const ParamOverride *override)
{
    bool negative = *override->text == '-';
    const char *problem, *text = override->text + (negative || *override->text == '+');
    Number number;
    const char *end = lex_number(text, &number, &problem);
    if (problem || *end)
        fatal(EXIT_USAGE, "-D %s=%s: %s", override->name, override->text,
              problem ? problem : "malformed number");
    return negative ? number_apply(OP_NEG, number, number, (Loc){0}) : number;
}

/* `; it has M, N, K` */
static const char *param_list(const Lower *lower)
{
    StrBuf list = strbuf_new(lower->arena);
    for (int i = 0; i < lower->symbol_count; i++)
        if (lower->symbols[i].statement->kind == STATEMENT_PARAM)
            strbuf_printf(&list, "%s%s", list.length ? ", " : "; it has ", lower->symbols[i].statement->name);
    return list.length ? list.text : "; it has none";
}

/* The value replaces the one that the statement gives; of two overrides the last one counts. */
void override_params(Lower *lower, const ParamOverride *overrides, int count)
{
    for (int i = 0; i < count; i++) {
        Symbol *symbol = symbol_find(lower, overrides[i].name);
        if (!symbol)
            diag_finish();   // it may be one that is wrong
        if (!symbol || symbol->statement->kind != STATEMENT_PARAM)
            fatal(EXIT_USAGE, "-D %s: the program has no param of that name%s%s", overrides[i].name,
                  name_suggestion(lower, overrides[i].name, true), param_list(lower));
        if (!overrides[i].text)
            fatal(EXIT_USAGE, "-D %s wants a number, like -D %s=64", overrides[i].name, overrides[i].name);
        symbol->value = override_number(&overrides[i]);
        symbol->overridden = true;
    }
}
