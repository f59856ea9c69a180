#include "codegen/family/gemm/product.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/checked.h"
#include "model/calibration.h"
#include "rtile/space.h"

enum {
    SKINNY_ROWS = 16     // more share enough of what is read to be worth tiles of both factors
};

// ---- registers ----

/* A thread of one step has no next one whose tiles pass through registers. */
int64_t product_registers_taken(const KernelKind *kind, const RTile *block, const RTile *inner,
                                RegisterBudget budget)
{
    if (!kind_is_one_step(kind, block))
        return budget.enough;
    int64_t values = kind_registers(kind, inner, 1) - kind->registers.others;
    return larger(values, budget.passing) + kind->registers.others;
}

// ---- structure ----

static bool group_axes(const Fusion *fusion, Product *product)
{
    uint32_t used[2] = {expr_axes(product->factor[0]), expr_axes(product->factor[1])};
    for (int g = 0; g < GROUP_COUNT; g++)
        product->group[g] = (AxisGroup){.extent = 1};
    for (int a = 0; a < fusion->axis_count; a++) {
        bool part = product->share.chunk && a == product->share.part, reduced = a >= fusion->spatial_count;
        bool first = part || used[0] >> a & 1, second = part || used[1] >> a & 1;
        if (reduced ? !(first && second) : !(first || second))
            return false;
        int group = reduced ? GROUP_K : first && second ? GROUP_BATCH : first ? GROUP_M : GROUP_N;
        axis_group_add(&product->group[group], fusion, a);
    }
    return product->group[GROUP_K].count;
}

void product_exchange(Product *product)
{
    AxisGroup swapped = product->group[GROUP_M];
    product->group[GROUP_M] = product->group[GROUP_N];
    product->group[GROUP_N] = swapped;
    const Expr *factor = product->factor[0];
    product->factor[0] = product->factor[1];
    product->factor[1] = factor;
}

static bool find_parts(const Fusion *fusion, Product *product)
{
    if (!fusion_is_reduction(fusion) || fusion->ops[0].reduce != REDUCE_SUM)
        return false;
    const Expr *body = fusion->ops[0].body;
    *product = (Product){.sums = 1};
    if (body->kind == EXPR_GUARD && expr_is_zero(body->guard.otherwise)) {
        product->guard = points_share_find(fusion, &body->guard, &product->share) ? NULL : &body->guard;
        body = body->guard.body;
    }
    if (body->kind != EXPR_APPLY || body->apply.op != OP_MUL)
        return false;
    product->factor[0] = body->apply.operands[0];
    product->factor[1] = body->apply.operands[1];
    return group_axes(fusion, product);
}

/* The innermost axis of the output belongs to n, so that neighbouring threads store neighbouring elements. */
bool product_find(const Fusion *fusion, Product *product)
{
    if (!find_parts(fusion, product))
        return false;
    const AxisGroup *m = &product->group[GROUP_M];
    if (!m->count || !product->group[GROUP_N].count)
        return false;
    if (axis_group_innermost(m) == fusion->spatial_count - 1)
        product_exchange(product);
    return true;
}

/* A convolution's input is no such factor: its elements serve several columns. */
static bool is_read_once(const Product *product, const Expr *large)
{
    if (large->kind != EXPR_ACCESS || large->access.tensor->dtype == DTYPE_B1)
        return false;
    int64_t points = product->group[GROUP_BATCH].extent;
    points = fitting_mul(points, product->group[GROUP_N].extent);
    return fitting_mul(points, product->group[GROUP_K].extent) <= tensor_elements(large->access.tensor);
}

bool product_find_skinny(const Fusion *fusion, Product *product)
{
    if (!find_parts(fusion, product) || product->share.chunk)
        return false;
    if (product->group[GROUP_M].extent > product->group[GROUP_N].extent)
        product_exchange(product);
    product->skinny = true;
    return product->group[GROUP_N].count && product->group[GROUP_M].extent <= SKINNY_ROWS &&
           is_read_once(product, product->factor[1]);
}

/* Where a block starts every 0.7 ns, memory moves 3 KB meanwhile: two factors of 16 x 16 elements of 16 bits
   and their product are half of that, of 32 bits as much (tuning-log 80). */
bool product_is_small(const Fusion *fusion, const Product *product, const DeviceSpec *device)
{
    const int64_t m = product->group[GROUP_M].extent, n = product->group[GROUP_N].extent,
                  k = product->group[GROUP_K].extent;
    double bits = (double)product_element_bits(product->factor[0]) * (double)m * (double)k +
                  (double)product_element_bits(product->factor[1]) * (double)n * (double)k;
    for (int i = 0; i < fusion->op_count; i++)
        if (fusion->ops[i].stored)
            bits += (double)dtype_info[fusion->ops[i].out->dtype].bits * (double)m * (double)n;
    double start_ns = device->timing.block_start_cycles / device->clock_mhz * 1e3;
    return product->group[GROUP_BATCH].extent > 1 && bits / 8 < start_ns * device->dram.bandwidth_gb_s;
}

// ---- how the factors lie in memory ----

static bool is_access(const Expr *expr, const void *unused) { return (void)unused, expr->kind == EXPR_ACCESS; }

static const Access *first_access(const Expr *factor)
{
    const Expr *found = expr_find(factor, is_access, NULL);
    return found ? &found->access : NULL;
}

/* Elements from one point to the next along a group's innermost axis; 0: it does not move. */
static int64_t stride_along(const Access *access, const AxisGroup *group)
{
    if (!access)
        return 0;
    Affine offset = access_offset(access);
    return llabs(axis_group_stride(group, &offset));
}

/* How coalesced a warp's access is if adjacent threads have adjacent positions along the group's innermost axis: its
   extent, at most a warp, over its stride; 0: the access does not move. Of [5827, 64] rows of 64 are coalesced, not
   columns. */
static double run_along(const Fusion *fusion, const Access *access, const AxisGroup *group)
{
    int64_t stride = stride_along(access, group);
    if (!stride)
        return 0;
    int64_t extent = fusion->axes[axis_group_innermost(group)].extent;
    return (double)(extent < LANES ? extent : LANES) / (double)stride;
}

void product_store_together(const Fusion *fusion, Product *product)
{
    const Access *store = NULL;
    for (int i = 0; i < fusion->op_count; i++)
        store = fusion->ops[i].stored ? &fusion->ops[i].store : store;
    if (store && run_along(fusion, store, &product->group[GROUP_M]) >
                     run_along(fusion, store, &product->group[GROUP_N]))
        product_exchange(product);
}

/* Adjacent threads should have adjacent elements of the factor. A thread that takes all rows takes contiguous ones as
   vectors, however few they are. */
bool product_along_k(const Fusion *fusion, const Product *product, int factor)
{
    const Access *access = first_access(product->factor[factor]);
    const AxisGroup *rows = &product->group[factor ? GROUP_N : GROUP_M];
    if (product->skinny && !factor && stride_along(access, rows) == 1)
        return stride_along(access, &product->group[GROUP_K]) == 1;
    return run_along(fusion, access, &product->group[GROUP_K]) > run_along(fusion, access, rows);
}

/* Contiguous elements along the group; the axes that they lie along are left out of its offset. */
static int64_t take_contiguous(const Fusion *fusion, const AxisGroup *group, Affine *offset)
{
    int64_t contiguous = 1;
    for (int i = group->count - 1; i >= 0 && offset->coef[group->axes[i]] == contiguous; i--) {
        offset->coef[group->axes[i]] = 0;
        contiguous *= fusion->axes[group->axes[i]].extent;
    }
    return contiguous;
}

int64_t product_contiguous(const Fusion *fusion, const AxisGroup *group, const Access *access)
{
    Affine offset = access_offset(access);
    return take_contiguous(fusion, group, &offset);
}

bool product_has_vectors(const Fusion *fusion, const AxisGroup *group, const Affine *offset, int64_t vector)
{
    Affine others = *offset;
    int64_t contiguous = take_contiguous(fusion, group, &others);
    bool aligned = contiguous > 1 && contiguous % vector == 0 && others.constant % vector == 0;
    for (int a = 0; a < MAX_AXES; a++)
        aligned &= others.coef[a] % vector == 0;
    return aligned;
}

bool product_ends_in_vectors(const Fusion *fusion, const Access *access, const AxisGroup *group,
                             int64_t vector)
{
    int axis = axis_group_innermost(group);
    const Dim *row = &access->dims[access->rank - 1];
    return fusion->axes[axis].extent % vector == 0 ||
           (group->count == 1 && axis < fusion->spatial_count && affine_single_axis(&row->index) == axis &&
            row->size >= round_up(fusion->axes[axis].extent, vector));
}

bool product_lies_in_order(const Fusion *fusion, const Product *product, const Access *access, const int group[3])
{
    Affine offset = access_offset(access);
    int64_t stride = 1;
    for (int d = 2; d >= 0; d--) {
        const AxisGroup *axes = &product->group[group[d]];
        for (int i = axes->count - 1; i >= 0; i--) {
            if (!offset.coef[axes->axes[i]])
                continue;
            if (offset.coef[axes->axes[i]] != stride)
                return false;
            stride *= fusion->axes[axes->axes[i]].extent;
        }
    }
    return stride == tensor_elements(access->tensor);
}

bool product_lies_apart(const Fusion *fusion, const Product *product, int factor)
{
    const Expr *expr = product->factor[factor];
    int rows = factor ? GROUP_N : GROUP_M;
    bool along_k = product_along_k(fusion, product, factor);
    const int group[] = {GROUP_BATCH, along_k ? rows : GROUP_K, along_k ? GROUP_K : rows};
    return expr->kind != EXPR_ACCESS || product->guard || !product_lies_in_order(fusion, product, &expr->access, group);
}

uint32_t guard_axes(const Guard *guard)
{
    uint32_t axes = 0;
    for (int i = 0; guard && i < guard->count; i++)
        axes |= affine_axes(&guard->bounds[i].index);
    return axes;
}

uint32_t product_factor_axes(const Product *product, int factor)
{
    return expr_axes(product->factor[factor]) | guard_axes(product->guard);
}

int product_element_bits(const Expr *factor)
{
    const Access *access = first_access(factor);
    return access ? dtype_info[access->tensor->dtype].bits : 32;
}

TileSpace *product_space(Arena *arena, const Fusion *fusion, const Product *product)
{
    TileSpace *space = space_new(arena, fusion);
    for (int g = 0; g < GROUP_COUNT; g++)
        space_add_axis(space, group_variable(g), product->group[g].extent, g == GROUP_K);
    return space;
}

DataTile product_factor_tile(const Product *product, int factor, bool along_k)
{
    const Access *access = first_access(product->factor[factor]);
    int rows = factor ? GROUP_N : GROUP_M, row_dim = along_k ? 1 : 2;
    DataTile tile = {.name = access ? access->tensor->name : NULL,
                     .rank = 3,
                     .scatter = 1,
                     .elements = access ? tensor_elements(access->tensor) : 0,
                     .element_bits = product_element_bits(product->factor[factor])};
    tile.dims[0] = (Dim){affine_axis(GROUP_BATCH), product->group[GROUP_BATCH].extent};
    tile.dims[row_dim] = (Dim){affine_axis(rows), product->group[rows].extent};
    tile.dims[3 - row_dim] = (Dim){affine_axis(GROUP_K), product->group[GROUP_K].extent};
    return tile;
}

// ---- text ----

void product_emit_sizes(StrBuf *out, const Product *product, const int64_t *block)
{
    CONSTEXPR(out, "Index M, N, K", NULL, product->group[GROUP_M].extent, product->group[GROUP_N].extent,
              product->group[GROUP_K].extent);
    CONSTEXPR(out, "int BM, BN, BK", "rTile, shared memory", block[GROUP_M], block[GROUP_N], block[GROUP_K]);
}

/* Elements of adjacent products lie in one line of memory, as those of groups of few channels do. */
static bool shares_lines(const Product *product)
{
    bool shares = false;
    for (int i = 0; i < 2; i++) {
        const Access *access = first_access(product->factor[i]);
        int64_t stride = llabs(stride_along(access, &product->group[GROUP_BATCH]));
        int64_t row = llabs(stride_along(access, &product->group[i ? GROUP_N : GROUP_M]));
        shares |= stride && stride < row && stride * product_element_bits(product->factor[i]) < 8 * LINE_BYTES;
    }
    return shares;
}

void product_emit_batch(StrBuf *out, const Product *product, const int64_t *block)
{
    CONSTEXPR(out, "Index BATCH", "products", product->group[GROUP_BATCH].extent);
    CONSTEXPR(out, "bool SIDE_BY_SIDE", "adjacent blocks make adjacent products, which share lines of memory",
              shares_lines(product));
    CONSTEXPR(out, "int BB", "products of a block", block[GROUP_BATCH]);
}

void product_emit_positions(StrBuf *out, const Scope *scope, const Product *product, int group,
                            const char *flat, uint32_t used)
{
    emit_group_positions(out, "        ", flat, scope, &product->group[group], used);
}

void product_emit_terms(StrBuf *out, const Scope *scope, const AxisGroup *terms, const char *flat, uint32_t used)
{
    int64_t below = 1;   // extents of axes that are passed over
    for (int i = terms->count - 1; i >= 0; i--) {
        int axis = terms->axes[i];
        below *= used >> axis & 1 ? 1 : scope->fusion->axes[axis].extent;
        if (!(used >> axis & 1))
            continue;
        if (below > 1)
            flat = arena_printf(out->arena, "quotient_by<%" PRId64 ">(%s)", below, flat);
        below = scope->fusion->axes[axis].extent;
        strbuf_printf(out, "        const Index %s = ", scope->axis[axis]);
        strbuf_printf(out, i > 0 ? "remainder_by<%2$" PRId64 ">(%1$s);\n" : "%s;\n", flat, below);
    }
}

bool product_stores_vectors(const Fusion *fusion, const AxisGroup *group, int64_t elements)
{
    for (int i = 0; i < fusion->op_count; i++) {
        Affine offset = access_offset(&fusion->ops[i].store);
        if (fusion->ops[i].stored && !product_has_vectors(fusion, group, &offset, elements))
            return false;
    }
    return true;
}

const FusedOp *product_only_output(const Fusion *fusion, const Product *product)
{
    const FusedOp *only = fusion_only_output(fusion);
    if (!only)
        return NULL;
    Affine offset = access_offset(&only->store);
    return axis_group_has_stride(&product->group[GROUP_N], fusion, &offset, 1) ? only : NULL;
}
