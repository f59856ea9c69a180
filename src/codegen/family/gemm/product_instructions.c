// Instructions of products beside their multiply-adds: elements that are found one by one, and the ends.
#include "codegen/cuda/reads.h"
#include "codegen/family/gemm/skips.h"

/* Of those axes, positions along groups beside their outermost ones, which cost nothing. */
static double search_instructions(const Fusion *fusion, const Product *product, uint32_t used)
{
    double positions = 0;
    for (int a = 0; a < fusion->axis_count; a++)
        positions += used >> a & 1;
    for (int g = 0; g < GROUP_COUNT; g++)
        positions -= (used & axis_group_mask(&product->group[g])) != 0;
    return ELEMENT_INSTRUCTIONS + POSITION_INSTRUCTIONS * positions;
}

double product_search_instructions(const Fusion *fusion, const Product *product, int factor)
{
    return search_instructions(fusion, product, product_factor_axes(product, factor));
}

/* Positions along rows are found before the first step. Along k, where neighbouring threads walk it, all
   elements of a thread have the same ones. */
static double line_instructions(const Fusion *fusion, const Product *product, int factor, uint32_t used)
{
    uint32_t along = product_along_k(fusion, product, factor) ? 0 : axis_group_mask(&product->group[GROUP_K]);
    return search_instructions(fusion, product, used & along);
}

/* Of a thread to test a window's bounds, with the branches around a copy. Along k each element is of another row. */
static double guard_instructions(const Fusion *fusion, const Product *product, int factor, bool held)
{
    enum { BRANCHES = 3, BOUND = 2, ROW = 3 };   // counted in SASS
    const Expr *expr = product->factor[factor];
    int bounds = (product->guard ? product->guard->count : 0) + (expr->kind == EXPR_GUARD ? expr->guard.count : 0);
    return bounds ? (held ? 0 : BRANCHES) + (BOUND + (product_along_k(fusion, product, factor) ? ROW : 0)) * bounds : 0;
}

void product_count_search(DataTile *tile, const Fusion *fusion, const Product *product, int factor, bool held)
{
    enum { TERMS = 16 };   // of a step: all may belong to one tap, whose position is found once
    enum { WALK = 100 };   // instructions beside: loops of 16 terms have 116 to 159 less in SASS than twice those of 8
    bool of_one_tap = product_steps(fusion, product, TERMS).channel >= 0;
    uint32_t used = product_factor_axes(product, factor) & ~(of_one_tap ? axis_group_mask(&product->group[GROUP_K]) : 0);
    bool shared = held && of_one_tap && !product_along_k(fusion, product, factor);   // by elements of a row
    double vector = tile->vector, beside = (shared ? 0 : guard_instructions(fusion, product, factor, held)) -
                                           (vector > 1 ? ELEMENT_INSTRUCTIONS : 0);
    if (product->skips && factor == (product->skips->rows == GROUP_M))
        tile->step_instructions = WALK;
    tile->instructions = (search_instructions(fusion, product, used) + beside) / vector;
    tile->line_instructions = (line_instructions(fusion, product, factor, used) + beside) / vector;
}

double product_copy_instructions(const Fusion *fusion, const Product *product, int factor, bool even)
{
    enum { COPY = 1 };   // counted where staged vectors are
    uint32_t used = product_factor_axes(product, factor);
    double each = even ? line_instructions(fusion, product, factor, used) : search_instructions(fusion, product, used);
    return each - COPY;
}

double product_step_instructions(const Fusion *fusion, const Product *product, int factor)
{
    uint32_t along = product_along_k(fusion, product, factor) ? axis_group_mask(&product->group[GROUP_K]) : 0;
    return search_instructions(fusion, product, product_factor_axes(product, factor) & along) -
           ELEMENT_INSTRUCTIONS;
}

bool product_has_line_places(const Fusion *fusion, const Product *product, int factor)
{
    uint32_t rows = product_factor_axes(product, factor) & ~axis_group_mask(&product->group[GROUP_K]);
    return product_along_k(fusion, product, factor) && search_instructions(fusion, product, rows) > ELEMENT_INSTRUCTIONS;
}

/* What a function or a quotient of exact arithmetic is made of. */
enum { FUNCTION_INSTRUCTIONS = 20, QUOTIENT_INSTRUCTIONS = 10 };

static void count_instructions(Expr *expr, void *context)
{
    double *instructions = context;
    if (expr->kind != EXPR_APPLY)
        return;
    bool divides = expr->apply.op == OP_DIV && expr->apply.operands[1]->kind != EXPR_CONST;
    bool function = op_info[expr->apply.op].class == OP_CLASS_REAL;
    *instructions += function ? FUNCTION_INSTRUCTIONS : divides ? QUOTIENT_INSTRUCTIONS : 1;
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
    double made = 0, stored = 0;
    for (int i = 0; i < fusion->op_count; i++) {
        if (i > 0)
            expr_visit(fusion->ops[i].body, count_instructions, &made);
        if (fusion->ops[i].stored)
            stored += search_instructions(fusion, product, stored_axes(fusion, product, &fusion->ops[i].store));
    }
    return (made + stored / columns) / fusion->output_count;
}
