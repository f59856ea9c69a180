#include "codegen/family/gemm/pack.h"

#include <string.h>

#include "base/checked.h"
#include "codegen/family/family.h"
#include "codegen/family/gemm/mma.h"
#include "ir/fuse_axes.h"

enum { LONG_ROW = 4 };   // lines of 128 bytes

/* A factor's axes as they lie in memory, the innermost last. */
typedef struct Order {
    int axes[MAX_AXES];
    int count;
} Order;

static Order order_of(const Access *access)
{
    Affine offset = access_offset(access);
    Order order = {.count = 0};
    for (int a = 0; a < MAX_AXES; a++) {
        if (!offset.coef[a])
            continue;
        int at = order.count++;
        for (; at > 0 && offset.coef[order.axes[at - 1]] < offset.coef[a]; at--)
            order.axes[at] = order.axes[at - 1];
        order.axes[at] = a;
    }
    return order;
}

/* Batch, rows, k: tensor cores may want it so. */
static Order order_along_k(const Product *product, int factor)
{
    const int groups[] = {GROUP_BATCH, factor ? GROUP_N : GROUP_M, GROUP_K};
    Order order = {.count = 0};
    for (int g = 0; g < 3; g++) {
        const AxisGroup *group = &product->group[groups[g]];
        for (int i = 0; i < group->count; i++)
            order.axes[order.count++] = group->axes[i];
    }
    return order;
}

static bool wants_k_innermost(const Product *product, const DeviceSpec *device)
{
    const Atom *atom = mma_shared_atom(product, device);
    return atom && atom->place == IN_SHARED_ALONG_K;
}

/* Rows can be lengthened where elements lie side by side along an axis, and each is read at one point: what
   is copied is no larger than the tensor then. A convolution's pixels are read once for each tap. */
static bool can_be_packed(const Fusion *fusion, const Access *access, const Order *order)
{
    if (order->count < 2 || order->count > MAX_RANK)
        return false;
    int64_t points = 1;
    for (int i = 0; i < order->count; i++)
        points = fitting_mul(points, fusion->axes[order->axes[i]].extent);
    return points <= tensor_elements(access->tensor) &&
           access_offset(access).coef[order->axes[order->count - 1]] == 1;
}

/* The fusion, and how it wants its factors, in the order in which they are multiplied. */
typedef struct Wish {
    const Fusion *fusion;
    Expr **factors;
    Order order[2];
    bool copied[2];        // or as it is
    int64_t piece, line;   // elements: of an access, and of a line of a tile, of which long rows are made
} Wish;

/* Up to whole lines where that is at most a quarter more: each line of a tile is one of memory then, and
   parts of a split sum are of equal size. */
static int64_t lengthened_extent(const Wish *wish, int64_t extent)
{
    return round_up(extent, extent < LONG_ROW * wish->line ? wish->piece : wish->line);
}

static Tensor *packed_tensor(Arena *arena, const Fusion *fusion, const Wish *wish, int f)
{
    const Tensor *from = wish->factors[f]->access.tensor;
    const Order *order = &wish->order[f];
    Tensor *tensor = NEW(arena, Tensor);
    *tensor = (Tensor){.name = arena_printf(arena, "%s.packed", from->name), .id = -1, .dtype = from->dtype,
                       .role = ROLE_TEMPORARY, .rank = order->count};   // the plan that takes it numbers it
    for (int d = 0; d < order->count; d++)
        tensor->shape[d] = fusion->axes[order->axes[d]].extent;
    tensor->shape[order->count - 1] = lengthened_extent(wish, tensor->shape[order->count - 1]);
    return tensor;
}

/* packed[m, k] = pad(A[m, k], 0), where k or m are longer than they were in `fusion`. */
static Expr *padded_factor(Arena *arena, const Fusion *fusion, const Expr *factor, const Tensor *tensor,
                           const Order *order)
{
    Affine forms[MAX_AXES] = {0};
    Dim *bounds = NEW_ARRAY(arena, Dim, order->count);
    int count = 0;
    for (int d = 0; d < order->count; d++) {
        forms[order->axes[d]] = affine_axis(d);
        if (tensor->shape[d] > fusion->axes[order->axes[d]].extent)
            bounds[count++] = (Dim){affine_axis(d), fusion->axes[order->axes[d]].extent};
    }
    Expr *read = expr_substitute(arena, factor, forms, fusion->axis_count);
    if (!count)
        return read;
    Expr *guarded = NEW(arena, Expr);
    *guarded = (Expr){.kind = EXPR_GUARD, .type = factor->type};
    guarded->guard = (Guard){count, bounds, read, expr_constant(arena, factor->type, 0)};
    return guarded;
}

static Fusion *copy_fusion(Arena *arena, const TensorOp *op, Tensor *from)
{
    Affine dims[MAX_AXES];
    for (int d = 0; d < op->axis_count; d++)
        dims[d] = affine_axis(d);
    Fusion *copy = NEW(arena, Fusion);
    copy->spatial_count = copy->axis_count = op->axis_count;
    memcpy(copy->axes, op->axes, sizeof copy->axes);
    copy->op_count = 1;
    copy->ops = NEW(arena, FusedOp);
    copy->ops[0] = (FusedOp){.out = op->out, .stored = true, .spatial = (1u << op->axis_count) - 1,
                             .body = op->body, .store = access_new(arena, op->out, dims)};
    fusion_choose_inputs(arena, copy, &from, 1);
    copy->outputs = NEW(arena, Tensor *);
    copy->outputs[copy->output_count++] = op->out;
    fuse_axes(arena, copy);
    fusion_verify(copy, "gemm_pack (copy)");
    return copy;
}

/* Copies the factor; what the product reads in its place. */
static Expr *pack_factor(Arena *arena, Packed *packed, const Wish *wish, int f)
{
    const Expr *factor = wish->factors[f];
    const Order *order = &wish->order[f];
    Tensor *tensor = packed_tensor(arena, packed->product, wish, f);
    TensorOp *op = NEW(arena, TensorOp);
    *op = (TensorOp){.out = tensor, .spatial_count = order->count, .axis_count = order->count};
    Affine dims[MAX_AXES];
    for (int d = 0; d < order->count; d++) {
        op->axes[d] = (Axis){.name = wish->fusion->axes[order->axes[d]].name, .extent = tensor->shape[d]};
        dims[d] = affine_axis(order->axes[d]);
    }
    op->body = padded_factor(arena, wish->fusion, factor, tensor, order);
    packed->definitions[packed->count] = op;
    packed->copies[packed->count++] = copy_fusion(arena, op, factor->access.tensor);
    Expr *read = expr_copy(arena, factor);
    read->access = access_new(arena, tensor, dims);
    return read;
}

/* The reduced axes along which rows of a factor end within a piece are lengthened: bit a. */
static uint32_t lengthened_axes(const Wish *wish)
{
    uint32_t axes = 0;
    for (int f = 0; f < 2; f++) {
        int axis = wish->order[f].axes[wish->order[f].count - 1];
        if (axis >= wish->fusion->spatial_count && wish->fusion->axes[axis].extent % wish->piece)
            axes |= 1u << axis;
    }
    return axes;
}

static void choose_inputs(Arena *arena, const Fusion *fusion, Packed *packed)
{
    Tensor **candidates = NEW_ARRAY(arena, Tensor *, fusion->input_count + packed->count);
    memcpy(candidates, fusion->inputs, sizeof(Tensor *) * (size_t)fusion->input_count);
    for (int i = 0; i < packed->count; i++)
        candidates[fusion->input_count + i] = packed->copies[i]->outputs[0];
    fusion_choose_inputs(arena, packed->product, candidates, fusion->input_count + packed->count);
}

static Packed *pack(Arena *arena, const Wish *wish)
{
    const Fusion *fusion = wish->fusion;
    Packed *packed = NEW(arena, Packed);
    packed->definitions = NEW_ARRAY(arena, const TensorOp *, 2);
    packed->product = NEW(arena, Fusion);
    *packed->product = *fusion;
    uint32_t lengthened = lengthened_axes(wish);
    for (int a = 0; a < fusion->axis_count; a++)
        if (lengthened >> a & 1)
            packed->product->axes[a].extent = lengthened_extent(wish, fusion->axes[a].extent);
    packed->product->ops = NEW_ARRAY(arena, FusedOp, fusion->op_count);
    memcpy(packed->product->ops, fusion->ops, sizeof(FusedOp) * (size_t)fusion->op_count);
    Expr *body = expr_copy(arena, fusion->ops[0].body);
    for (int f = 0; f < 2; f++)
        if (wish->copied[f] || (lengthened & expr_axes(wish->factors[f])))
            body->apply.operands[f] = pack_factor(arena, packed, wish, f);
    if (!packed->count)
        return NULL;
    packed->product->ops[0].body = body;
    choose_inputs(arena, fusion, packed);
    fusion_verify(packed->product, "product_pack");
    return packed;
}

static void wish_for_tensor_cores(Wish *wish, const Product *product, const DeviceSpec *device)
{
    bool along_k = wants_k_innermost(product, device);
    wish->line = LINE_PIECES * wish->piece;
    for (int f = 0; f < 2; f++) {
        int factor = wish->factors[f] == product->factor[1];
        Reading reading = mma_reading(wish->fusion, product, factor);
        wish->copied[f] = reading.way != BY_PIECES || (along_k && !reading.along_k);
        if (along_k)
            wish->order[f] = order_along_k(product, factor);
    }
}

static bool is_in_pieces(const Fusion *fusion, const Product *product, int factor)
{
    int64_t piece = mma_piece(product);
    return product_vector(fusion, product, factor, piece) == piece;
}

static void wish_for_lanes(Wish *wish, const Product *product)
{
    wish->line = wish->piece;   // of k no more than that is added in vain
    for (int f = 0; f < 2; f++)
        wish->copied[f] = !is_in_pieces(wish->fusion, product, wish->factors[f] == product->factor[1]);
}

/* Rows of several axes are not in pieces, where the innermost ends within one. */
static bool is_granted(const Packed *packed)
{
    Product product;
    bool granted = product_find(packed->product, &product);
    for (int f = 0; f < 2 && granted; f++)
        granted = packed->for_lanes ? is_in_pieces(packed->product, &product, f)
                                    : mma_reading(packed->product, &product, f).way == BY_PIECES;
    return granted;
}

Packed *product_pack(Arena *arena, const Fusion *fusion, const DeviceSpec *device)
{
    Product product;
    bool for_lanes = !gemm_family.matches(fusion, device);
    if (for_lanes && !matmul_family.matches(fusion, device))
        return NULL;
    if (!product_find(fusion, &product) || product.guard)
        return NULL;
    Wish wish = {.fusion = fusion, .factors = fusion->ops[0].body->apply.operands};
    for (int f = 0; f < 2; f++) {
        if (wish.factors[f]->kind != EXPR_ACCESS)
            return NULL;
        wish.order[f] = order_of(&wish.factors[f]->access);
        if (!can_be_packed(fusion, &wish.factors[f]->access, &wish.order[f]))
            return NULL;
    }
    wish.piece = mma_piece(&product);
    if (for_lanes)
        wish_for_lanes(&wish, &product);
    else
        wish_for_tensor_cores(&wish, &product, device);
    Packed *packed = pack(arena, &wish);
    if (!packed)
        return NULL;
    packed->for_lanes = for_lanes;
    return is_granted(packed) ? packed : NULL;
}
