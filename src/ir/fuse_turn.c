#include "ir/fuse_turn.h"

#include "base/checked.h"
#include "ir/concatenation.h"

/* Dimension `from[d]` of a tensor is dimension d of its transposed copy, and `size` long there: those along
   some axes come last. */
typedef struct Turning {
    int from[MAX_AXES];
    int64_t size[MAX_AXES];
    int stepped[MAX_AXES];   // along an axis in steps of several elements, which are adjacent in the copy; -1: as it is
    int count;
    bool moves;   // any of them, or is longer or shorter
} Turning;

static int64_t length_of(const Dim *dim, const TurnWish *wish)
{
    int axis = affine_single_axis(&dim->index);
    if (axis >= 0 && wish->first >> axis & 1)
        return 1;
    return axis >= 0 && wish->longer >> axis & 1 ? round_up(dim->size, wish->piece) : dim->size;
}

/* The only axis that moves the dimension, by several elements; -1: there is none. */
static int stepped_axis(const Affine *index)
{
    uint32_t axes = affine_axes(index);
    int axis = axes ? __builtin_ctz(axes) : 0;
    return axes == 1u << axis && index->coef[axis] > 1 ? axis : -1;
}

static Turning turning_of(const Fusion *fusion, const Access *access, uint32_t last, const TurnWish *wish)
{
    Turning turning = {0};
    for (int comes_last = 0; comes_last < 2; comes_last++)
        for (int d = 0; d < access->rank; d++)
            if (!!(affine_axes(&access->dims[d].index) & last) == comes_last) {
                int stepped = wish->steps ? stepped_axis(&access->dims[d].index) : -1;
                int64_t size = stepped < 0 ? length_of(&access->dims[d], wish) : fusion->axes[stepped].extent;
                turning.moves |= turning.count != d || size != access->dims[d].size || stepped >= 0;
                turning.size[turning.count] = size;
                turning.stepped[turning.count] = stepped;
                turning.from[turning.count++] = d;
            }
    return turning;
}

static Tensor *turned_tensor(Arena *arena, const Access *access, const Turning *turning)
{
    Tensor *tensor = NEW(arena, Tensor);
    *tensor = (Tensor){.name = arena_printf(arena, "%s.turned", access->tensor->name),
                       .id = -1,
                       .dtype = access->tensor->dtype,
                       .role = ROLE_TEMPORARY,
                       .rank = access->rank};   // the plan that takes it numbers it
    for (int d = 0; d < access->rank; d++)
        tensor->shape[d] = turning->size[d];
    return tensor;
}

static Access turned_access(Arena *arena, Tensor *tensor, const Access *access, const Turning *turning)
{
    Affine indices[MAX_AXES];
    for (int d = 0; d < access->rank; d++)
        indices[d] = turning->stepped[d] < 0 ? access->dims[turning->from[d]].index : affine_axis(turning->stepped[d]);
    return access_new(arena, tensor, indices);
}

/* The same view of the tensor, at the point whose coordinate along its dimension d is axis[d], in steps if `wish` has them. */
static Access point_of(Arena *arena, const Access *view, const int *axis, const TurnWish *wish)
{
    Dim *dims = NEW_ARRAY(arena, Dim, view->rank);
    for (int d = 0; d < view->rank; d++) {
        int stepped = wish && wish->steps ? stepped_axis(&view->dims[d].index) : -1;
        Affine index = affine_constant(stepped < 0 ? 0 : view->dims[d].index.constant);
        index.coef[axis[d]] = stepped < 0 ? 1 : view->dims[d].index.coef[stepped];
        dims[d] = (Dim){index, view->dims[d].size};
    }
    return (Access){view->tensor, view->rank, dims};
}

/* The element, or a zero beyond the end of one of its dimensions. */
static Expr *element_inside(Arena *arena, const Access *to, const Access *from, const int *axis,
                            Expr *element)
{
    Dim *bounds = NEW_ARRAY(arena, Dim, from->rank);
    int count = 0;
    for (int d = 0; d < from->rank; d++)
        if (to->dims[axis[d]].size > from->dims[d].size)
            bounds[count++] = (Dim){affine_axis(axis[d]), from->dims[d].size};
    return expr_guard(arena, element, bounds, count, NULL);
}

/* to[d, …] = from[…, d, …]: dimension d of `from` goes along dimension axis[d] of `to`. */
static TensorOp *copy_of(Arena *arena, const Access *to, const Access *from, const int *axis, const TurnWish *wish)
{
    TensorOp *op = NEW(arena, TensorOp);
    *op = (TensorOp){.out = to->tensor, .spatial_count = to->rank, .axis_count = to->rank};
    for (int d = 0; d < to->rank; d++)
        op->axes[d] = (Axis){.name = arena_printf(arena, "dim %d", d), .extent = to->dims[d].size};
    Expr *element = expr_access(arena, dtype_info[from->tensor->dtype].compute, point_of(arena, from, axis, wish));
    op->body = element_inside(arena, to, from, axis, element);
    return op;
}

/* Its kernel. */
static Fusion *copy_kernel(Arena *arena, const TensorOp *op, const Access *to, Tensor *const *candidates,
                           int count)
{
    int own[MAX_AXES];
    for (int d = 0; d < to->rank; d++)
        own[d] = d;
    return fusion_of_copy(arena, op, point_of(arena, to, own, NULL), candidates, count);
}

/* Dimension `from[d]` goes along dimension d of the transposed tensor, and the other way round. */
static void invert(const Turning *turning, int *place)
{
    for (int d = 0; d < turning->count; d++)
        place[turning->from[d]] = d;
}

static void define(Rewritten *turned, TensorOp *op) { turned->definitions[turned->definition_count++] = op; }

typedef struct Replacement {
    const Access *old;
    Access new;
} Replacement;

static void replace_visit(Expr *expr, void *context)
{
    const Replacement *replacement = context;
    if (expr->kind == EXPR_ACCESS && expr->access.tensor == replacement->old->tensor &&
        expr->access.dims == replacement->old->dims)
        expr->access = replacement->new;
}

/* The kernel reads the transposed image, unless it has that order already. */
static void turn_image(Arena *arena, Rewritten *turned, const Fusion *fusion, const TurnWish *wish, int image)
{
    const Access *x = wish->images[image];
    Turning turning = turning_of(fusion, x, wish->last[image], wish);
    if (!turning.moves)
        return;
    int place[MAX_AXES];
    invert(&turning, place);
    Replacement replacement = {x, turned_access(arena, turned_tensor(arena, x, &turning), x, &turning)};
    expr_visit(turned->main->ops[0].body, replace_visit, &replacement);
    TensorOp *op = copy_of(arena, &replacement.new, x, place, wish);
    define(turned, op);
    turned->before[turned->before_count++] =
        copy_kernel(arena, op, &replacement.new, fusion->inputs, fusion->input_count);
}

/* The kernel writes the transposed result. */
static void turn_result(Arena *arena, Rewritten *turned, FusedOp *op, const Turning *turning)
{
    int place[MAX_AXES];
    invert(turning, place);
    Tensor *tensor = turned_tensor(arena, &op->store, turning);
    Access store = turned_access(arena, tensor, &op->store, turning);
    define(turned, copy_of(arena, &store, &op->store, place, NULL));
    turned->behind[turned->behind_count++] =
        copy_kernel(arena, copy_of(arena, &op->store, &store, turning->from, NULL), &op->store, &tensor, 1);
    op->store = store;
    op->out = tensor;
}

/* How many are: all, or none; -1: only some, or more than can be transposed back. */
static int turned_results(const Fusion *fusion, const TurnWish *wish)
{
    int moving = 0, stored = 0;
    for (int i = 0; i < fusion->op_count; i++)
        if (fusion->ops[i].stored) {
            stored++;
            moving += turning_of(fusion, &fusion->ops[i].store, wish->results, wish).moves;
        }
    return stored > MAX_BEHIND || (moving && moving < stored) ? -1 : moving;
}

/* Its epilogue reads an element for each output, which would be read at a large stride. */
static bool reads_outputs_behind(const Fusion *fusion, uint32_t apart)
{
    FusedAccess found[MAX_ACCESSES];
    int count = fusion_accesses(fusion, found, MAX_ACCESSES);
    for (int i = 0; i < count; i++)
        if (found[i].op > 0 && (access_axes(found[i].access) & apart))
            return true;
    return count == MAX_ACCESSES;
}

/* The sums' definition, by the axes that their transposed tensor has. NULL: a dimension is made of
   several. */
static TensorOp *turned_sum(Arena *arena, const Fusion *fusion, Tensor *tensor, const Access *store)
{
    const FusedOp *sum = &fusion->ops[0];
    TensorOp *op = NEW(arena, TensorOp);
    *op = (TensorOp){.out = tensor, .spatial_count = tensor->rank, .reduce = sum->reduce};
    Affine forms[MAX_AXES] = {0};
    for (int d = 0; d < store->rank; d++) {
        int axis = affine_single_axis(&store->dims[d].index);
        if (axis < 0)
            return NULL;
        forms[axis] = affine_axis(op->axis_count);
        op->axes[op->axis_count++] = fusion->axes[axis];
    }
    for (int a = fusion->spatial_count; a < fusion->axis_count; a++) {
        forms[a] = affine_axis(op->axis_count);
        op->axes[op->axis_count++] = fusion->axes[a];
    }
    op->body = expr_substitute(arena, sum->body, forms, fusion->axis_count);
    return op;
}

/* Only the sums are transposed back, by a kernel that makes the rest of them. */
static bool leave_epilogue(Arena *arena, Rewritten *turned, const Fusion *fusion, const TurnWish *wish)
{
    FusedOp *sum = &turned->main->ops[0];
    Turning turning = turning_of(fusion, &sum->store, wish->results, wish);
    Tensor *tensor = turned_tensor(arena, &sum->store, &turning);
    Access access = turned_access(arena, tensor, &sum->store, &turning);
    TensorOp *definition = turned_sum(arena, fusion, tensor, &access);
    if (!definition)
        return false;
    define(turned, definition);
    sum->store = access;
    sum->out = tensor;
    sum->stored = true;
    turned->main->op_count = 1;

    Fusion *rest = turned->behind[turned->behind_count++] = fusion_copy(arena, fusion);
    rest->axis_count = rest->spatial_count;
    rest->ops[0].reduce = REDUCE_NONE;
    rest->ops[0].reduced = 0;
    rest->ops[0].body = expr_access(arena, fusion->ops[0].body->type, access);
    fusion_choose_inputs_beside(arena, rest, fusion, &tensor, 1);
    fusion_verify(rest, "fusion_turn (epilogue)");
    return true;
}

static void choose_tensors(Arena *arena, Rewritten *turned, const Fusion *fusion)
{
    Fusion *sums = turned->main;
    Tensor *images[MAX_BEFORE];
    for (int i = 0; i < turned->before_count; i++)
        images[i] = turned->before[i]->outputs[0];
    fusion_choose_inputs_beside(arena, sums, fusion, images, turned->before_count);
    sums->outputs = NEW_ARRAY(arena, Tensor *, fusion->output_count);
    sums->output_count = 0;
    for (int i = 0; i < sums->op_count; i++)
        if (sums->ops[i].stored)
            sums->outputs[sums->output_count++] = sums->ops[i].out;
    fusion_verify(sums, "fusion_turn");
}

/* The kernel writes all results transposed; copies bring them back. */
static void turn_results(Arena *arena, Rewritten *turned, const Fusion *fusion, const TurnWish *wish)
{
    for (int i = 0; i < fusion->op_count; i++)
        if (fusion->ops[i].stored) {
            Turning turning = turning_of(fusion, &fusion->ops[i].store, wish->results, wish);
            turn_result(arena, turned, &turned->main->ops[i], &turning);
        }
}

/* Copies are of whole tensors: others may be making the rest of this one. */
static bool has_part(const Fusion *fusion, const Access *access)
{
    RowPart part = access_part(fusion, access);
    return access->tensor->part_stride && part.end - part.first < access->tensor->part_stride;
}

static bool has_parts(const Fusion *fusion, const TurnWish *wish)
{
    bool found = false;
    for (int i = 0; i < wish->image_count; i++)
        found |= has_part(fusion, wish->images[i]);
    for (int i = 0; i < fusion->op_count && (wish->results || wish->first); i++)
        found |= fusion->ops[i].stored && has_part(fusion, &fusion->ops[i].store);
    return found;
}

/* Of what is longer the kernel makes more, of which its epilogue would read more. */
static void change_lengths(Fusion *main, const TurnWish *wish)
{
    for (int a = 0; a < main->axis_count; a++)
        if (wish->longer >> a & 1)
            main->axes[a].extent = round_up(main->axes[a].extent, wish->piece);
        else if (wish->first >> a & 1)
            main->axes[a].extent = 1;
}

Rewritten *fusion_turn(Arena *arena, const Fusion *fusion, const TurnWish *wish)
{
    if (has_parts(fusion, wish) || (wish->longer && reads_outputs_behind(fusion, wish->longer)) ||
        (wish->first && fusion->op_count > 1))
        return NULL;
    int results = wish->results || wish->first ? turned_results(fusion, wish) : 0;
    Rewritten *turned = NEW(arena, Rewritten);
    turned->main = fusion_copy(arena, fusion);
    turned->main->ops[0].body = expr_copy(arena, fusion->ops[0].body);
    for (int i = 0; i < wish->image_count; i++)
        turn_image(arena, turned, fusion, wish, i);
    if (results < 0 || (!results && !turned->before_count))
        return NULL;
    if (results && reads_outputs_behind(fusion, wish->apart)) {
        if (!leave_epilogue(arena, turned, fusion, wish))
            return NULL;
    } else if (results)
        turn_results(arena, turned, fusion, wish);
    change_lengths(turned->main, wish);
    choose_tensors(arena, turned, fusion);
    return turned;
}
