#include "codegen/family/gemm/convolution_turn.h"

#include "base/checked.h"
#include "codegen/family/gemm/mma.h"
#include "codegen/family/gemm/parts.h"
#include "codegen/family/gemm/skips.h"
#include "ir/fuse_axes.h"
#include "ir/fuse_nest.h"
#include "ir/fuse_taps.h"
#include "ir/fuse_turn.h"

/* The axes of the group along which a dimension of the tensor goes alone. */
static uint32_t lone_axes(const AxisGroup *group, const Access *access)
{
    uint32_t axes = 0, all = axis_group_mask(group);
    for (int d = 0; d < access->rank; d++) {
        int axis = affine_single_axis(&access->dims[d].index);
        if (axis >= 0)
            axes |= all & 1u << axis;
    }
    return axes;
}

static int first_axis(uint32_t axes) { return __builtin_ctz(axes); }

static bool is_one(uint32_t axes) { return axes && !(axes & (axes - 1)); }

/* A window slides along a dimension, or steps through it. */
static bool has_windows(const Access *image)
{
    for (int d = 0; d < image->rank; d++)
        if (affine_single_axis(&image->dims[d].index) < 0 && !affine_is_constant(&image->dims[d].index))
            return true;
    return false;
}

// ---- axes in another order ----

static uint32_t moved_axes(uint32_t axes, const int *place, int count)
{
    uint32_t moved = 0;
    for (int a = 0; a < count; a++)
        moved |= (axes >> a & 1) << place[a];
    return moved;
}

static Access moved_store(Arena *arena, const Access *store, const Affine *forms, int count)
{
    Dim *dims = NEW_ARRAY(arena, Dim, store->rank);
    for (int d = 0; d < store->rank; d++)
        dims[d] = (Dim){affine_substitute(&store->dims[d].index, forms, count), store->dims[d].size};
    return (Access){store->tensor, store->rank, dims};
}

/* The same kernel, those axes behind the others that are spatial, too, or not: the innermost one of what is stored, or
   of a factor, comes last. */
static Fusion *with_axes_last(Arena *arena, const Fusion *fusion, uint32_t last)
{
    int place[MAX_AXES], next = 0;
    Affine forms[MAX_AXES];
    Fusion *moved = fusion_copy(arena, fusion);
    const int ends[] = {0, fusion->spatial_count, fusion->axis_count};
    for (int turn = 0; turn < 4; turn++)
        for (int a = ends[turn / 2]; a < ends[turn / 2 + 1]; a++)
            if ((int)(last >> a & 1) == turn % 2)
                place[a] = next++;
    for (int a = 0; a < fusion->axis_count; a++) {
        forms[a] = affine_axis(place[a]);
        moved->axes[place[a]] = fusion->axes[a];
    }
    for (int i = 0; i < fusion->op_count; i++) {
        FusedOp *op = &moved->ops[i];
        op->spatial = moved_axes(op->spatial, place, fusion->axis_count);
        op->reduced = moved_axes(op->reduced, place, fusion->axis_count);
        op->body = expr_substitute(arena, op->body, forms, fusion->axis_count);
        if (op->stored)
            op->store = moved_store(arena, &op->store, forms, fusion->axis_count);
    }
    fusion_verify(moved, "convolution_turn");
    return moved;
}

/* All of the tensor along that axis is read, and no bound is asked for there: zeros may follow. */
static bool can_be_longer(const Fusion *fusion, const Product *product, int factor, uint32_t axes)
{
    const Access *access = mma_access(product->factor[factor]);
    const Guard *guard = mma_guard(product, factor);
    bool can = true;
    for (int d = 0; d < access->rank; d++) {
        const Dim *dim = &access->dims[d];
        int axis = affine_single_axis(&dim->index);
        can &= !(affine_axes(&dim->index) & axes) || (axis >= 0 && dim->size == fusion->axes[axis].extent);
    }
    for (int i = 0; guard && i < guard->count; i++)
        can &= !(affine_axes(&guard->bounds[i].index) & axes);
    return can;
}

/* A window slides along the factor, or its rows are of several axes, as pixels are. */
static bool is_image(const Product *product, int factor)
{
    return has_windows(mma_access(product->factor[factor])) || product->group[factor ? GROUP_N : GROUP_M].count > 1;
}

/* Channels of both factors come last, of the image those of all groups. Where they end within a piece zeros follow.
   `image`: which of the factors; the other one is the filter. */
static bool wish_of_factors(const Fusion *fusion, const Product *product, int image, TurnWish *wish)
{
    const Access *x = mma_access(product->factor[image]), *w = mma_access(product->factor[1 - image]);
    bool phased = mma_guard(product, 1 - image);   // taps of a filter beside it are zeros
    if (!x || !w || has_windows(w) != phased)
        return false;
    uint32_t channel = lone_axes(&product->group[GROUP_K], x), groups = axis_group_mask(&product->group[GROUP_BATCH]);
    *wish = (TurnWish){.images = {x, w}, .last = {groups | channel, channel}, .image_count = 2};
    if (!is_one(channel))
        return false;
    wish->piece = mma_piece(product);
    bool cut = is_image(product, image) && fusion->axes[first_axis(channel)].extent % wish->piece;
    if (cut && can_be_longer(fusion, product, 0, channel) && can_be_longer(fusion, product, 1, channel))
        wish->longer = channel;
    return true;
}

/* Of the axes the one with most points; 0: there is none. */
static uint32_t longest_axis(const Fusion *fusion, uint32_t axes)
{
    uint32_t longest = 0;
    for (int a = 0; a < fusion->axis_count; a++)
        if (axes >> a & 1 && (!longest || fusion->axes[a].extent > fusion->axes[first_axis(longest)].extent))
            longest = 1u << a;
    return longest;
}

/* Those of what is made, too. Of a gradient by a stride of as many taps, which has no windows, phases are axes of the
   filter beside its channels. */
static Rewritten *turn_factors(Arena *arena, const Fusion *fusion, const Product *product, int image)
{
    TurnWish wish;
    if (!wish_of_factors(fusion, product, image, &wish))
        return NULL;
    uint32_t beside = lone_axes(&product->group[image ? GROUP_M : GROUP_N], wish.images[1]), filters = longest_axis(fusion, beside);
    if (!filters || (!has_windows(wish.images[0]) && (is_one(beside) || !is_image(product, image))))
        return NULL;
    wish.results = filters | axis_group_mask(&product->group[GROUP_BATCH]);
    wish.apart = axis_group_mask(&product->group[image ? GROUP_N : GROUP_M]);
    Rewritten *turned = fusion_turn(arena, fusion, &wish);
    if (turned)
        turned->main = with_axes_last(arena, turned->main, filters);
    return turned;
}

/* The same of a filter's gradient: channels of both are of what it makes, and those of the image its last. */
static Rewritten *turn_gradient(Arena *arena, const Fusion *fusion, const Product *product, int image)
{
    const Access *x = mma_access(product->factor[image]), *dy = mma_access(product->factor[1 - image]);
    if (!x || !dy || product->factor[1 - image]->kind != EXPR_ACCESS || has_windows(dy))
        return NULL;
    uint32_t channel = lone_axes(&product->group[image ? GROUP_N : GROUP_M], x);
    uint32_t filters = lone_axes(&product->group[image ? GROUP_M : GROUP_N], dy);
    if (!is_one(channel) || !is_one(filters))
        return NULL;
    uint32_t groups = axis_group_mask(&product->group[GROUP_BATCH]);
    TurnWish wish = {.images = {x, dy}, .last = {groups | channel, groups | filters}, .image_count = 2, .results = channel};
    Rewritten *turned = fusion_turn(arena, fusion, &wish);
    if (turned)
        turned->main = with_axes_last(arena, turned->main, channel);
    return turned;
}

/* Bulk copies bring its pixels. */
static bool is_granted(Arena *arena, const Rewritten *turned, const Target *target)
{
    const Products *view = product_view(arena, turned->main, target);
    return view && view->boxed;
}

/* The product that bulk copies do not bring as it is; NULL: they do, or it is none. */
static const Product *unboxed(const Products *products)
{
    const Product *product = products->tiled;
    return !product || products->boxed || product->guard ? NULL : product;
}

/* A filter's gradient is split into the parts of tiles of so many columns; NULL: tiles of `other` columns
   (0: none) have the same. */
static Rewritten *turn_for(Arena *arena, const void *view, const Fusion *fusion, const Target *target,
                           int64_t columns, int64_t other)
{
    const Product *product = unboxed(view);
    for (int image = 1; product && image >= 0; image--) {   // the second one's axes come last already
        Rewritten *turned = turn_gradient(arena, fusion, product, image);
        if (turned && is_granted(arena, turned, target))
            return parts_within(arena, turned, target, columns, other) || !other ? turned : NULL;
        turned = other ? NULL : turn_factors(arena, fusion, product, image);
        if (turned && is_granted(arena, turned, target))
            return turned;
    }
    return NULL;
}

static Rewritten *turn(Arena *arena, const void *view, const Fusion *fusion, const Target *target)
{
    return turn_for(arena, view, fusion, target, 128, 0);
}

static Rewritten *turn_in_parts(Arena *arena, const void *view, const Fusion *fusion, const Target *target)
{
    return turn_for(arena, view, fusion, target, 256, 128);
}

/* What is made stays. A factor whose lines can be copied is not turned. */
static Rewritten *turn_to_columns(Arena *arena, const void *view, const Fusion *fusion, const Target *target)
{
    const Product *product = unboxed(view);
    TurnWish wish;
    for (int turn = 0; product && turn < 3; turn++) {   // the second factor, the first one, both
        if (!wish_of_factors(fusion, product, turn != 1, &wish))
            continue;
        wish.image_count = turn < 2 ? 1 : 2;
        if (turn < 2)
            wish.longer = 0;
        Rewritten *turned = fusion_turn(arena, fusion, &wish);
        if (turned && is_granted(arena, turned, target))
            return turned;
    }
    return NULL;
}

// ---- planes whose columns are phases ----

/* The filter of a gradient by phase whose last phase is a dimension of its own, beside the channels:
   pad(w[f, c, a - 2*t + 1, b - 2*u + 1], 0) is pad(w.spread[a - 2*t + 1, u, c, b, f], 0). */
typedef struct Spread {
    const Access *filter;
    int dim;                                     // that the phase moves
    int phase, column, channel;                  // axes: b, c and f
    Affine dims[MAX_AXES], moved[MAX_AXES];      // of w.spread in the product; of the filter, by w.spread's dimensions
    int64_t sizes[MAX_AXES];
    int count;
} Spread;

static void add_dim(Spread *spread, Affine index, int64_t size)
{
    spread->dims[spread->count] = index;
    spread->sizes[spread->count++] = size;
}

/* Only one dimension moves with the axis. */
static int only_dim(const Access *access, int axis)
{
    int found = -1;
    for (int d = 0; d < access->rank; d++)
        if (access->dims[d].index.coef[axis])
            found = found == -1 ? d : -2;
    return found;
}

/* Results lie side by side along the last phase, which moves a window of the filter; zeros are outside, nothing else is. */
static bool find_phase(const Fusion *fusion, const Product *product, Spread *spread)
{
    const FusedOp *stored = fusion_only_output(fusion);
    const AxisGroup *columns = &product->group[GROUP_N];
    const Guard *guard = mma_guard(product, 1);
    spread->filter = mma_access(product->factor[1]);
    if (!stored || columns->count < 2 || (guard && !window_guards(guard, spread->filter)) || spread->filter->tensor->part_stride)
        return false;
    spread->phase = axis_group_innermost(columns);
    uint32_t column = longest_axis(fusion, lone_axes(columns, spread->filter) & ~(1u << spread->phase));
    spread->dim = only_dim(spread->filter, spread->phase);
    if (access_offset(&stored->store).coef[spread->phase] != 1 || !column || spread->dim < 0)
        return false;
    spread->column = first_axis(column);
    return affine_single_axis(&spread->filter->dims[spread->dim].index) < 0;
}

/* The dimensions in their order. Those that have one axis each, and the windows of other phases, stay as they are. */
static void find_dims(const Fusion *fusion, const TurnWish *wish, Spread *spread)
{
    const Access *filter = spread->filter;
    const int last[] = {spread->column, spread->phase, spread->channel};
    uint32_t own = 1u << spread->column | 1u << spread->channel;
    uint32_t taps = affine_axes(&filter->dims[spread->dim].index) & ~(own | 1u << spread->phase);
    int place[MAX_AXES] = {0};   // of axes that are dimensions
    for (int d = 0; d < filter->rank; d++)
        if (d != spread->dim && !(affine_axes(&filter->dims[d].index) & own)) {
            spread->moved[d] = affine_axis(spread->count);
            add_dim(spread, filter->dims[d].index, filter->dims[d].size);
        }
    for (int a = 0; a < fusion->axis_count; a++)
        if (taps >> a & 1) {
            place[a] = spread->count;
            add_dim(spread, affine_axis(a), fusion->axes[a].extent);
        }
    for (int i = 0; i < 3; i++) {
        int64_t extent = fusion->axes[last[i]].extent;
        place[last[i]] = spread->count;
        add_dim(spread, affine_axis(last[i]), wish->longer >> last[i] & 1 ? round_up(extent, wish->piece) : extent);
    }
    Affine forms[MAX_AXES];
    for (int a = 0; a < MAX_AXES; a++)
        forms[a] = affine_axis(place[a]);
    for (int d = 0; d < filter->rank; d++)
        if (d == spread->dim || affine_axes(&filter->dims[d].index) & own)
            spread->moved[d] = affine_substitute(&filter->dims[d].index, forms, fusion->axis_count);
}

/* Zeros where the phase has no such tap, and behind the last channel. */
static TensorOp *definition_of(Arena *arena, const Expr *factor, const Spread *spread)
{
    Tensor *tensor = NEW(arena, Tensor);
    *tensor = (Tensor){.name = arena_printf(arena, "%s.spread", spread->filter->tensor->name), .id = -1,
                       .dtype = spread->filter->tensor->dtype, .role = ROLE_TEMPORARY, .rank = spread->count};
    TensorOp *op = NEW(arena, TensorOp);
    *op = (TensorOp){.out = tensor, .spatial_count = spread->count, .axis_count = spread->count};
    for (int d = 0; d < spread->count; d++) {
        tensor->shape[d] = spread->sizes[d];
        op->axes[d] = (Axis){.name = arena_printf(arena, "dim %d", d), .extent = spread->sizes[d]};
    }
    const Access *filter = spread->filter;
    Dim *dims = NEW_ARRAY(arena, Dim, filter->rank), *bounds = NEW_ARRAY(arena, Dim, filter->rank);
    int count = 0;
    for (int d = 0; d < filter->rank; d++) {
        dims[d] = (Dim){spread->moved[d], filter->dims[d].size};
        int axis = affine_single_axis(&dims[d].index);
        if (axis < 0 || spread->sizes[axis] > dims[d].size)
            bounds[count++] = dims[d];
    }
    Expr *element = expr_access(arena, factor->type, (Access){filter->tensor, filter->rank, dims});
    op->body = expr_guard(arena, element, bounds, count, NULL);
    return op;
}

/* What the product reads in its place, within the windows of other phases. */
static Expr *spread_factor(Arena *arena, const Expr *factor, const Spread *spread, Tensor *tensor)
{
    const Guard *guard = factor->kind == EXPR_GUARD ? &factor->guard : NULL;
    Dim *bounds = NEW_ARRAY(arena, Dim, MAX_AXES);
    int count = 0;
    for (int i = 0; guard && i < guard->count; i++)
        if (!guard->bounds[i].index.coef[spread->phase])
            bounds[count++] = guard->bounds[i];
    return expr_guard(arena, expr_access(arena, factor->type, access_new(arena, tensor, spread->dims)), bounds, count, NULL);
}

/* The operand of the product's multiplication. */
static Expr **operand_of(Expr *body, const Expr *original, const Expr *factor)
{
    for (int i = 0; original->kind == EXPR_APPLY && i < 2; i++)
        if (original->apply.operands[i] == factor)
            return &body->apply.operands[i];
    return NULL;
}

static Rewritten *spread(Arena *arena, const Fusion *fusion, const Product *product)
{
    TurnWish wish;
    Spread spread = {0};
    if (!wish_of_factors(fusion, product, 0, &wish) || product->group[GROUP_BATCH].count || !find_phase(fusion, product, &spread))
        return NULL;
    spread.channel = first_axis(wish.last[1]);
    wish.image_count = 1;
    Fusion *spreading = fusion_copy(arena, fusion);
    spreading->ops[0].body = expr_copy(arena, fusion->ops[0].body);
    Expr **operand = operand_of(spreading->ops[0].body, fusion->ops[0].body, product->factor[1]);
    find_dims(fusion, &wish, &spread);
    if (!operand || spread.count > MAX_MAP_RANK)
        return NULL;
    TensorOp *op = definition_of(arena, product->factor[1], &spread);
    *operand = spread_factor(arena, product->factor[1], &spread, op->out);
    fusion_choose_inputs_beside(arena, spreading, fusion, &op->out, 1);
    Rewritten *turned = fusion_turn(arena, spreading, &wish);
    if (!turned)
        return NULL;
    Affine own[MAX_AXES];
    for (int d = 0; d < spread.count; d++)
        own[d] = affine_axis(d);
    turned->definitions[turned->definition_count++] = op;
    turned->before[turned->before_count++] =
        fusion_of_copy(arena, op, access_new(arena, op->out, own), fusion->inputs, fusion->input_count);
    turned->main = with_axes_last(arena, turned->main, 1u << spread.column | 1u << spread.phase);
    return turned;
}

/* What is made stays: of planes by phase elements of the last phase lie side by side. */
static Rewritten *turn_phases(Arena *arena, const void *view, const Fusion *fusion, const Target *target)
{
    const Product *product = unboxed(view);
    Rewritten *turned = product ? spread(arena, fusion, product) : NULL;
    return turned && is_granted(arena, turned, target) ? turned : NULL;
}

// ---- filters of CUDA cores ----

/* Channels of one tap are apart in a filter of planes, as are its rows: each element is a sector of its own. */
static bool is_apart(const Fusion *fusion, const Product *product, const Access *filter)
{
    int channel = product_steps(fusion, product, SKIPPED_STEP).channel;
    return filter && channel >= 0 && access_offset(filter).coef[channel] > 1;
}

/* Rows become contiguous. */
static Rewritten *turn_filter(Arena *arena, const void *view, const Fusion *fusion, const Target *target)
{
    const Product *product = ((const Products *)view)->tiled;
    for (int factor = 0; product && !product->atom && !product->guard && factor < 2; factor++) {
        const Access *filter = mma_access(product->factor[factor]), *image = mma_access(product->factor[1 - factor]);
        int64_t piece = mma_piece(product);
        if (!is_apart(fusion, product, filter) || !image || !has_windows(image) ||
            product_vector(fusion, product, factor, piece) == piece)
            continue;
        const AxisGroup *rows = &product->group[factor ? GROUP_N : GROUP_M];
        TurnWish wish = {.images = {filter}, .last = {lone_axes(rows, filter)}, .image_count = 1};
        Rewritten *turned = is_one(wish.last[0]) ? fusion_turn(arena, fusion, &wish) : NULL;
        const Products *products = turned ? product_view(arena, turned->main, target) : NULL;
        if (!products || !products->tiled)
            continue;
        if (product->skips || product_vector(turned->main, products->tiled, factor, piece) == piece)
            return turned;   // of few taps of many the others are read in vain
    }
    return NULL;
}

static Rewritten *sum_behind(Arena *arena, const void *view, const Fusion *fusion, const Target *target)
{
    return (void)target, ((const Products *)view)->tiled ? fusion_sum_taps_behind(arena, fusion) : NULL;
}

// ---- channels in whole pieces ----

/* Threads copy both factors piece by piece. */
static bool is_by_pieces(const Product *product)
{
    return product->reading[0].way == BY_PIECES && product->reading[1].way == BY_PIECES;
}

static Rewritten *in_pieces(Arena *arena, const Fusion *fusion, const Product *product, TurnWish *wish,
                            const Target *target)
{
    wish->piece = mma_piece(product);
    wish->image_count = 2;
    for (int i = 0; i < 2; i++)
        if (!can_be_longer(fusion, product, i, wish->longer))
            return NULL;
    Rewritten *turned = fusion_turn(arena, fusion, wish);
    if (!turned)
        return NULL;
    turned->main = with_axes_last(arena, turned->main, wish->results ? wish->results : wish->longer);
    const Products *view = product_view(arena, turned->main, target);
    const Product *made = view ? view->tiled : NULL;
    return made && made->atom && is_by_pieces(made) ? turned : NULL;
}

/* A convolution that threads would read element by element. */
static const Product *of_elements(const Products *products)
{
    const Product *product = products->tiled;
    return product && product->atom && !product->guard && !is_by_pieces(product) ? product : NULL;
}

/* k ends with an axis of both factors that no window moves: channels, or images of a filter's gradient. */
static Rewritten *lengthen_along_k(Arena *arena, const void *view, const Fusion *fusion, const Target *target)
{
    const Product *product = of_elements(view);
    if (!product)
        return NULL;
    const Access *a = mma_access(product->factor[0]), *b = mma_access(product->factor[1]);
    uint32_t channel = lone_axes(&product->group[GROUP_K], a) & lone_axes(&product->group[GROUP_K], b);
    if (!is_one(channel) || (!has_windows(a) && !has_windows(b)))
        return NULL;
    bool first = has_windows(a);
    TurnWish wish = {.images = {first ? a : b, first ? b : a}, .last = {channel, channel}, .longer = channel};
    return in_pieces(arena, fusion, product, &wish, target);
}

/* Rows of both factors end with channels, as of a filter's gradient. */
static Rewritten *lengthen_rows(Arena *arena, const void *view, const Fusion *fusion, const Target *target)
{
    const Product *product = of_elements(view);
    if (!product)
        return NULL;
    const Access *a = mma_access(product->factor[0]), *b = mma_access(product->factor[1]);
    uint32_t rows = lone_axes(&product->group[GROUP_M], a), columns = lone_axes(&product->group[GROUP_N], b);
    if (!is_one(rows) || !is_one(columns) || (!has_windows(a) && !has_windows(b)))
        return NULL;
    TurnWish wish = {.images = {a, b}, .last = {rows, columns}, .longer = rows | columns, .results = columns};
    return in_pieces(arena, fusion, product, &wish, target);
}

// ---- what no window reads ----

static bool has_vectors(const Fusion *fusion, const Product *product, int factor)
{
    Affine offset = access_offset(mma_access(product->factor[factor]));
    int64_t piece = mma_piece(product);
    return product_has_vectors(fusion, &product->group[factor ? GROUP_N : GROUP_M], &offset, piece) ||
           product_has_vectors(fusion, &product->group[GROUP_K], &offset, piece);
}

/* Of the rewrite's kernel planes become pixels. NULL: bulk copies do not bring these either. */
static Rewritten *with_planes_turned(Arena *arena, Rewritten *outer, const Target *target)
{
    const void *view = product_view(arena, outer->main, target);
    const Rewritten *inner = view ? turn_to_columns(arena, view, outer->main, target) : NULL;
    return inner && fusion_nest(outer, inner) ? outer : NULL;
}

/* Pixels of planes under a filter of one tap that are apart become adjacent: whole vectors are copied then.
   Where a plane is no whole number of vectors (7 x 7), those of all images follow each other. */
static Rewritten *take_steps(Arena *arena, const void *view, const Fusion *fusion, const Target *target)
{
    const Product *product = of_elements(view);
    for (int turn = 0; product && turn < 4; turn++) {
        int image = turn % 2;
        const AxisGroup *rows = &product->group[image ? GROUP_N : GROUP_M];
        const Access *x = mma_access(product->factor[image]);
        if (!x || product->factor[image]->kind != EXPR_ACCESS || !has_windows(x) || (turn >= 2 && rows->count < 2))
            continue;
        TurnWish wish = {.images = {x}, .image_count = 1, .steps = true};
        wish.last[0] = turn < 2 ? 0 : axis_group_mask(rows);
        Rewritten *taken = fusion_turn(arena, fusion, &wish);
        const Products *products = taken ? product_view(arena, taken->main, target) : NULL;
        if (products && products->tiled && has_vectors(taken->main, products->tiled, image))
            return taken;
    }
    return NULL;
}

/* Axes that only the bound of a dimension of one element goes along: beyond their first position products are zeros. */
static uint32_t axes_of_one(const Product *product, const Guard *guard, int factor)
{
    uint32_t axes = 0, rows = axis_group_mask(&product->group[factor ? GROUP_N : GROUP_M]);
    for (int i = 0; i < guard->count; i++) {
        int axis = affine_single_axis(&guard->bounds[i].index);
        if (axis < 0 || guard->bounds[i].size != 1 || !(rows >> axis & 1))
            return 0;   // there are others
        axes |= 1u << axis;
    }
    return axes;
}

/* Of a gradient by a filter of one tap and a stride, only the pixels that were read are products. */
static Rewritten *make_first(Arena *arena, const void *view, const Fusion *fusion, const Target *target)
{
    const Product *product = unboxed(view);
    for (int factor = 0; product && factor < 2; factor++) {
        const Guard *guard = mma_guard(product, factor);
        const Access *filter = mma_access(product->factor[factor]);
        TurnWish wish = {.first = guard && filter && window_guards(guard, filter) ? axes_of_one(product, guard, factor) : 0};
        Rewritten *made = wish.first ? fusion_turn(arena, fusion, &wish) : NULL;
        Expr **operand = made ? operand_of(made->main->ops[0].body, fusion->ops[0].body, product->factor[factor]) : NULL;
        if (!operand)
            continue;
        *operand = expr_access(arena, product->factor[factor]->type, *filter);
        fuse_drop_unit_axes(arena, made->main);
        return is_granted(arena, made, target) ? made : with_planes_turned(arena, made, target);
    }
    return NULL;
}

const Rewrite turn_planes = {.make = turn};
const Rewrite turn_planes_in_parts = {.make = turn_in_parts};
const Rewrite turn_planes_to_columns = {.make = turn_to_columns};
const Rewrite turn_planes_to_phases = {.make = turn_phases};
const Rewrite turn_filter_of_lanes = {.make = turn_filter, .splits = true};
const Rewrite sum_taps_behind = {.make = sum_behind, .splits = true};
const Rewrite take_pixels = {.make = take_steps, .splits = true};
const Rewrite make_first_pixels = {.make = make_first};
const Rewrite lengthen_channels = {.make = lengthen_along_k, .splits = true};
const Rewrite lengthen_channels_of_rows = {.make = lengthen_rows, .splits = true};
