#include "ir/product_sides.h"

#include <math.h>

enum { MOST_FACTORS = 8 };   // more are left as they stand

typedef struct Factors {
    Expr *factors[MOST_FACTORS];   // from left to right
    uint32_t axes[MOST_FACTORS];
    int count;   // may be more
} Factors;

static void list_factors(Factors *list, Expr *expr)
{
    if (expr->kind == EXPR_APPLY && expr->apply.op == OP_MUL) {
        list_factors(list, expr->apply.operands[0]);
        list_factors(list, expr->apply.operands[1]);
        return;
    }
    if (list->count < MOST_FACTORS) {
        list->factors[list->count] = expr;
        list->axes[list->count] = expr_axes(expr);
    }
    list->count++;
}

static uint32_t axes_of(const Factors *list, uint32_t side)
{
    uint32_t axes = 0;
    for (int i = 0; i < list->count; i++)
        axes |= side >> i & 1 ? list->axes[i] : 0;
    return axes;
}

/* Powers of two between which a value lies that is not 0. */
typedef struct Powers {
    int low, high;
} Powers;

static Powers powers_of_type(DType type)
{
    switch (type) {
    case DTYPE_B1: return (Powers){0, 0};
    case DTYPE_I8:
    case DTYPE_U8: return (Powers){0, 8};
    case DTYPE_F16: return (Powers){-24, 16};
    case DTYPE_F32:
    case DTYPE_BF16: return (Powers){-126, 128};
    case DTYPE_F64: return (Powers){-1022, 1024};
    default: return (Powers){0, 63};
    }
}

static Powers powers_of(const Expr *factor)
{
    while (factor->kind == EXPR_CAST && !dtype_info[factor->cast.body->type].is_real)
        factor = factor->cast.body;
    return powers_of_type(factor->kind == EXPR_ACCESS ? factor->access.tensor->dtype : factor->type);
}

/* A product of several factors must not leave the range of its type, nor lose digits to denormal numbers,
   where the text multiplies them in another order: 1e30 * (1e-30 * 1e30). Elements of f16, bytes and bits
   never do, and one factor of any range may be multiplied with bits. Integers wrap. */
static bool stays_in_range(const Factors *list, uint32_t side, DType type)
{
    Powers product = {0, 0}, most = powers_of_type(type);
    int wide = 0;   // more than bits
    for (int i = 0; i < list->count; i++) {
        Powers range = side >> i & 1 ? powers_of(list->factors[i]) : (Powers){0, 0};
        wide += range.low < range.high;
        product.low += range.low;
        product.high += range.high;
    }
    return !dtype_info[type].is_real || wide <= 1 || (product.low >= most.low && product.high <= most.high);
}

static bool are_sides(uint32_t left, uint32_t right, uint32_t reduced)
{
    return (left & reduced) == reduced && (right & reduced) == reduced && (left & ~right) && (right & ~left);
}

static double points_of(const Axis *axes, uint32_t set)
{
    double points = 1;
    for (int a = 0; a < MAX_AXES; a++)
        points *= set >> a & 1 ? (double)axes[a].extent : 1;
    return points;
}

static bool has_several(uint32_t side) { return side & (side - 1); }

/* Points of the axes that both have and, less than one of them, of what is made of several factors. */
static double cost_of(const Factors *list, const Axis *axes, uint32_t side, uint32_t other)
{
    uint32_t left = axes_of(list, side), right = axes_of(list, other);
    double made =
        (has_several(side) ? points_of(axes, left) : 0) + (has_several(other) ? points_of(axes, right) : 0);
    return points_of(axes, left & right) + made / points_of(axes, left | right) / 2;
}

static Expr *product_of(Arena *arena, const Factors *list, uint32_t side)
{
    Expr *product = NULL;
    for (int i = 0; i < list->count; i++)
        if (side >> i & 1)
            product = product ? expr_apply(arena, OP_MUL, product->type, product, list->factors[i], NULL)
                              : list->factors[i];
    return product;
}

Expr *product_of_sides(Arena *arena, Expr *term, const Axis *axes, uint32_t reduced)
{
    Factors list = {.count = 0};
    list_factors(&list, term);
    if (list.count < 3 || list.count > MOST_FACTORS ||
        are_sides(expr_axes(term->apply.operands[0]), expr_axes(term->apply.operands[1]), reduced))
        return term;
    uint32_t all = (1u << list.count) - 1, best = 0;
    double least = INFINITY;
    for (uint32_t side = 1; side < all; side += 2) {   // the first factor is on it
        uint32_t other = all & ~side;
        bool fits = stays_in_range(&list, side, term->type) && stays_in_range(&list, other, term->type) &&
                    are_sides(axes_of(&list, side), axes_of(&list, other), reduced);
        double cost = fits ? cost_of(&list, axes, side, other) : INFINITY;
        best = cost < least ? side : best;
        least = fmin(cost, least);
    }
    if (!best)
        return term;
    return expr_apply(arena, OP_MUL, term->type, product_of(arena, &list, best),
                      product_of(arena, &list, all & ~best), NULL);
}
