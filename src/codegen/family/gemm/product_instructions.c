// Instructions of products beside their multiply-adds: elements that are found one by one, and the ends.
#include "codegen/cuda/reads.h"
#include "codegen/family/gemm/skips.h"

/* Quotients of a position along the group's axes that are used. */
static int quotients(const AxisGroup *group, uint32_t used)
{
    int positions = 0;
    for (int i = 0; i < group->count; i++)
        positions += (used >> group->axes[i] & 1) != 0;
    return positions > 1 ? positions - 1 : 0;
}

static double search_instructions(const Product *product, uint32_t used)
{
    double positions = 0;
    for (int g = 0; g < GROUP_COUNT; g++)
        positions += quotients(&product->group[g], used);
    return ELEMENT_INSTRUCTIONS + POSITION_INSTRUCTIONS * positions;
}

double product_search_instructions(const Product *product, int factor)
{
    return search_instructions(product, product_factor_axes(product, factor));
}

void product_count_search(DataTile *tile, const Fusion *fusion, const Product *product, int factor, bool held)
{
    /* Counted in SASS of 134 loops of two stages, beside loads and stores: of an element an address, tests of bounds, and
       quotients with remainders; of the next term of a row that is found, a test or the zeros in its place. */
    static const double ADDRESS = 4.5, TEST = 2.3, QUOTIENT = 4.5, NEXT = 2;
    enum { BRANCHES = 3, BOUND = 2, ROW = 3 };   // counted in SASS, of a copy: along k each is of another row
    const Expr *expr = product->factor[factor];
    int bounds = (product->guard ? product->guard->count : 0) + (expr->kind == EXPR_GUARD ? expr->guard.count : 0);
    uint32_t used = product_factor_axes(product, factor);
    bool along_k = product_along_k(fusion, product, factor);
    double quotient = held ? QUOTIENT : POSITION_INSTRUCTIONS, test = held ? TEST : along_k ? BOUND + ROW : BOUND,
           each = (held ? ADDRESS : ELEMENT_INSTRUCTIONS + (bounds ? BRANCHES : 0)) + test * bounds,
           rows = quotient * quotients(&product->group[factor ? GROUP_N : GROUP_M], used);
    tile->step_instructions = quotient * quotients(&product->group[GROUP_K], used);
    tile->line_instructions = (along_k || !held ? each : NEXT) / tile->vector;
    tile->instructions = (each + tile->step_instructions + (along_k ? rows : 0)) / tile->vector;
}

bool product_has_line_places(const Fusion *fusion, const Product *product, int factor)
{
    return product_along_k(fusion, product, factor) &&
           quotients(&product->group[factor ? GROUP_N : GROUP_M], product_factor_axes(product, factor)) > 0;
}

/* Axes whose positions a store needs: groups along which the tensor is contiguous, or has one stride, need none. */
static uint32_t stored_axes(const Fusion *fusion, const Product *product, const Access *store)
{
    Affine offset = access_offset(store);
    uint32_t axes = access_axes(store);
    for (int g = 0; g < GROUP_COUNT; g++)
        if (axis_group_has_stride(&product->group[g], fusion, &offset, axis_group_stride(&product->group[g], &offset)))
            axes &= ~axis_group_mask(&product->group[g]);
    return axes;
}

double product_end_instructions(const Fusion *fusion, const Product *product, int columns)
{
    double stored = 0;
    for (int i = 0; i < fusion->op_count; i++)
        if (fusion->ops[i].stored)
            stored += search_instructions(product, stored_axes(fusion, product, &fusion->ops[i].store));
    return epilogue_instructions(fusion) + stored / columns / fusion->output_count;
}
