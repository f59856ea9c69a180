#include "codegen/family/gemm/pack.h"

#include "base/checked.h"
#include "codegen/family/gemm/mma.h"
#include "ir/exact_type.h"

enum { LONG_ROW = 4 };   // lines of 128 bytes

/* A factor's axes as they lie in memory, the innermost last. */
typedef struct Order {
    int axes[MAX_AXES];
    int count;
    const Tensor *from;   // that lies so
} Order;

static Order order_of(const Access *access)
{
    Affine offset = access_offset(access);
    Order order = {.from = access->tensor};
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
static Order order_along_k(const Product *product, int factor, const Tensor *from)
{
    const int groups[] = {GROUP_BATCH, factor ? GROUP_N : GROUP_M, GROUP_K};
    Order order = {.from = from};
    for (int g = 0; g < 3; g++) {
        const AxisGroup *group = &product->group[groups[g]];
        for (int i = 0; i < group->count; i++)
            order.axes[order.count++] = group->axes[i];
    }
    return order;
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
    DType type[2];         // of what is read
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
    const Order *order = &wish->order[f];
    Tensor *tensor = NEW(arena, Tensor);
    *tensor = (Tensor){.name = arena_printf(arena, "%s.packed", order->from->name), .id = -1,
                       .dtype = wish->type[f], .role = ROLE_TEMPORARY,
                       .rank = order->count};   // the plan that takes it numbers it
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
    return expr_guard(arena, expr_substitute(arena, factor, forms, fusion->axis_count), bounds, count, NULL);
}

/* Copies the factor; what the product reads in its place. */
static Expr *pack_factor(Arena *arena, Rewritten *packed, const Wish *wish, int f)
{
    const Expr *factor = wish->factors[f];
    const Order *order = &wish->order[f];
    Tensor *tensor = packed_tensor(arena, packed->main, wish, f);
    TensorOp *op = NEW(arena, TensorOp);
    *op = (TensorOp){.out = tensor, .spatial_count = order->count, .axis_count = order->count};
    Affine dims[MAX_AXES], own[MAX_AXES];
    for (int d = 0; d < order->count; d++) {
        own[d] = affine_axis(d);
        op->axes[d] = (Axis){.name = wish->fusion->axes[order->axes[d]].name, .extent = tensor->shape[d]};
        dims[d] = affine_axis(order->axes[d]);
    }
    op->body = padded_factor(arena, wish->fusion, factor, tensor, order);
    packed->definitions[packed->definition_count++] = op;
    packed->before[packed->before_count++] =
        fusion_of_copy(arena, op, access_new(arena, tensor, own), wish->fusion->inputs, wish->fusion->input_count);
    return expr_access(arena, factor->type, access_new(arena, tensor, dims));
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

static Rewritten *pack(Arena *arena, const Wish *wish)
{
    const Fusion *fusion = wish->fusion;
    Rewritten *packed = NEW(arena, Rewritten);
    packed->main = fusion_copy(arena, fusion);
    uint32_t lengthened = lengthened_axes(wish);
    for (int a = 0; a < fusion->axis_count; a++)
        if (lengthened >> a & 1)
            packed->main->axes[a].extent = lengthened_extent(wish, fusion->axes[a].extent);
    Expr *body = expr_copy(arena, fusion->ops[0].body);
    for (int f = 0; f < 2; f++)
        if (wish->copied[f] || (lengthened & expr_axes(wish->factors[f])))
            body->apply.operands[f] = pack_factor(arena, packed, wish, f);
    if (!packed->before_count)
        return NULL;
    packed->main->ops[0].body = body;
    Tensor *ahead[MAX_BEFORE];
    for (int i = 0; i < packed->before_count; i++)
        ahead[i] = packed->before[i]->outputs[0];
    fusion_choose_inputs_beside(arena, packed->main, fusion, ahead, packed->before_count);
    fusion_verify(packed->main, "product_pack");
    return packed;
}

static void wish_for_tensor_cores(Wish *wish, const Product *product, const Target *target)
{
    DType type = wish->type[0];
    bool along_k = !target_atom(target, type, IN_SHARED) && target_atom(target, type, IN_SHARED_ALONG_K);
    wish->line = LINE_PIECES * wish->piece;
    for (int f = 0; f < 2; f++) {
        int factor = wish->factors[f] == product->factor[1];
        const Expr *own = wish->factors[f];
        wish->copied[f] = own->kind != EXPR_ACCESS || own->access.tensor->dtype != wish->type[f];
        if (!wish->copied[f]) {
            Reading reading = product->reading[factor];
            wish->copied[f] = reading.way != BY_PIECES || (along_k && !reading.along_k);
        }
        if (along_k)
            wish->order[f] = order_along_k(product, factor, wish->order[f].from);
    }
}

/* Rows of several axes are not in pieces, where the innermost ends within one. */
static bool is_granted(Arena *arena, const Rewritten *packed, const Target *target)
{
    const Products *view = product_view(arena, packed->main, target);
    const Product *product = view ? view->tiled : NULL;
    bool granted = product && product->atom;
    for (int f = 0; f < 2 && granted; f++)
        granted = product->reading[f].way == BY_PIECES;
    return granted;
}

/* Of elements that tensor cores multiply: that of both factors, or one that holds all values of both. */
static bool find_type(Wish *wish, const Target *target)
{
    static const DType narrow_first[] = {DTYPE_I8, DTYPE_U8, DTYPE_F16, DTYPE_BF16, DTYPE_F32, DTYPE_F64};
    for (size_t i = 0; i < sizeof narrow_first / sizeof *narrow_first; i++) {
        DType type = wish->type[0] = wish->type[1] = narrow_first[i];
        bool holds = target_atom(target, type, IN_REGISTERS);
        for (int f = 0; f < 2; f++)
            holds = holds && wish->factors[f]->type == dtype_info[type].compute &&
                    expr_is_exact(wish->factors[f], type);
        if (holds)
            return true;
    }
    return false;
}

typedef struct ElementSearch {
    const Fusion *fusion;
    uint32_t axes;   // of the factor
    Order *order;
} ElementSearch;

static bool has_order(const Expr *expr, const void *context)
{
    const ElementSearch *search = context;
    if (expr->kind != EXPR_ACCESS || access_axes(&expr->access) != search->axes)
        return false;
    *search->order = order_of(&expr->access);
    return can_be_packed(search->fusion, &expr->access, search->order);
}

/* As the first of its elements lie that has all its axes. False: nothing of the factor's size is read. */
static bool find_order(const Fusion *fusion, const Expr *factor, Order *order)
{
    return expr_find(factor, has_order, &(ElementSearch){fusion, expr_axes(factor), order});
}

static Rewritten *pack_product(Arena *arena, const void *view, const Fusion *fusion, const Target *target)
{
    const Product *product = ((const Products *)view)->tiled;
    if (!product || product->guard)
        return NULL;
    Wish wish = {.fusion = fusion, .factors = fusion->ops[0].body->apply.operands};
    if (!find_type(&wish, target))
        return NULL;
    for (int f = 0; f < 2; f++)   // both are elements where tensor cores multiply them as they are
        if ((product->atom && wish.factors[f]->kind != EXPR_ACCESS) ||
            !find_order(fusion, wish.factors[f], &wish.order[f]))
            return NULL;
    wish.piece = 8 * VECTOR_BYTES / dtype_info[wish.type[0]].bits;
    wish_for_tensor_cores(&wish, product, target);
    Rewritten *packed = pack(arena, &wish);
    return packed && is_granted(arena, packed, target) ? packed : NULL;
}

const Rewrite pack_for_tensor_cores = {.make = pack_product, .splits = true};
