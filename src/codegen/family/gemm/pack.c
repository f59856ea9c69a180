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

/* Up to whole lines where that is at most a quarter more: each line of a tile is one of memory then, and
   parts of a split sum are of equal size. */
static int64_t lengthened_extent(int64_t extent, int64_t piece)
{
    int64_t line = LINE_PIECES * piece;
    return round_up(extent, extent < LONG_ROW * line ? piece : line);
}

static Tensor *packed_tensor(Arena *arena, const Fusion *fusion, const Tensor *from, const Order *order,
                             int64_t piece)
{
    Tensor *tensor = NEW(arena, Tensor);
    *tensor = (Tensor){.name = arena_printf(arena, "%s.packed", from->name), .id = -1, .dtype = from->dtype,
                       .role = ROLE_TEMPORARY, .rank = order->count};   // the plan that takes it numbers it
    for (int d = 0; d < order->count; d++)
        tensor->shape[d] = fusion->axes[order->axes[d]].extent;
    tensor->shape[order->count - 1] = lengthened_extent(tensor->shape[order->count - 1], piece);
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
static Expr *pack_factor(Arena *arena, Packed *packed, const Fusion *fusion, const Expr *factor,
                         const Order *order, int64_t piece)
{
    Tensor *tensor = packed_tensor(arena, packed->product, factor->access.tensor, order, piece);
    TensorOp *op = NEW(arena, TensorOp);
    *op = (TensorOp){.out = tensor, .spatial_count = order->count, .axis_count = order->count};
    Affine dims[MAX_AXES];
    for (int d = 0; d < order->count; d++) {
        op->axes[d] = (Axis){.name = fusion->axes[order->axes[d]].name, .extent = tensor->shape[d]};
        dims[d] = affine_axis(order->axes[d]);
    }
    op->body = padded_factor(arena, fusion, factor, tensor, order);
    packed->definitions[packed->count] = op;
    packed->copies[packed->count++] = copy_fusion(arena, op, factor->access.tensor);
    Expr *read = expr_copy(arena, factor);
    read->access = access_new(arena, tensor, dims);
    return read;
}

/* The reduced axes along which rows of a factor end within a piece are lengthened: bit a. */
static uint32_t lengthened_axes(const Fusion *fusion, const Order order[2], int64_t piece)
{
    uint32_t axes = 0;
    for (int f = 0; f < 2; f++) {
        int axis = order[f].axes[order[f].count - 1];
        if (axis >= fusion->spatial_count && fusion->axes[axis].extent % piece)
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

/* Rows of several axes are not, where the innermost ends within a piece. */
static bool is_in_pieces(const Fusion *fusion)
{
    Product product;
    return product_find(fusion, &product) && mma_reading(fusion, &product, 0).way == BY_PIECES &&
           mma_reading(fusion, &product, 1).way == BY_PIECES;
}

Packed *gemm_pack(Arena *arena, const Fusion *fusion, const DeviceSpec *device)
{
    Product product;
    if (!gemm_family.matches(fusion, device) || !product_find(fusion, &product) || product.guard)
        return NULL;
    Expr **factors = fusion->ops[0].body->apply.operands;
    int64_t piece = mma_piece(&product);
    bool along_k = wants_k_innermost(&product, device);
    Order order[2];
    for (int f = 0; f < 2; f++) {
        if (factors[f]->kind != EXPR_ACCESS)
            return NULL;
        order[f] = order_of(&factors[f]->access);
        if (!can_be_packed(fusion, &factors[f]->access, &order[f]))
            return NULL;
        if (along_k)
            order[f] = order_along_k(&product, factors[f] == product.factor[1]);
    }
    Packed *packed = NEW(arena, Packed);
    packed->definitions = NEW_ARRAY(arena, const TensorOp *, 2);
    packed->product = NEW(arena, Fusion);
    *packed->product = *fusion;
    uint32_t lengthened = lengthened_axes(fusion, order, piece);
    for (int a = 0; a < fusion->axis_count; a++)
        if (lengthened >> a & 1)
            packed->product->axes[a].extent = lengthened_extent(fusion->axes[a].extent, piece);
    packed->product->ops = NEW_ARRAY(arena, FusedOp, fusion->op_count);
    memcpy(packed->product->ops, fusion->ops, sizeof(FusedOp) * (size_t)fusion->op_count);
    Expr *body = expr_copy(arena, fusion->ops[0].body);
    for (int f = 0; f < 2; f++) {
        Reading reading = mma_reading(fusion, &product, factors[f] == product.factor[1]);
        if (reading.way != BY_PIECES || (along_k && !reading.along_k) || (lengthened & expr_axes(factors[f])))
            body->apply.operands[f] = pack_factor(arena, packed, fusion, factors[f], &order[f], piece);
    }
    if (!packed->count)
        return NULL;
    packed->product->ops[0].body = body;
    choose_inputs(arena, fusion, packed);
    fusion_verify(packed->product, "gemm_pack");
    return is_in_pieces(packed->product) ? packed : NULL;
}
