// What a fusion is to the families of products.
#include <string.h>

#include "base/checked.h"
#include "codegen/family/gemm/beside.h"
#include "codegen/family/gemm/im2col.h"
#include "codegen/family/gemm/phases.h"
#include "codegen/family/gemm/product_rows.h"
#include "codegen/family/gemm/skips.h"

enum { MAX_BOX = 256 };   // lines of a box, at most

// ---- how the factors lie in memory ----

static const AxisGroup *fast_group(const Product *product, int factor, bool along_k)
{
    return &product->group[along_k ? GROUP_K : factor ? GROUP_N : GROUP_M];
}

/* Are the neighbours of a piece along the axis all inside or all outside? As channels are beside a padded
   pixel. */
static bool guards_pieces(const Guard *guard, int axis, int64_t piece)
{
    for (int i = 0; guard && i < guard->count; i++) {
        const Dim *bound = &guard->bounds[i];
        if (!bound->index.coef[axis])
            continue;
        if (bound->index.coef[axis] != 1 || bound->index.constant % piece || bound->size % piece)
            return false;
        for (int a = 0; a < MAX_AXES; a++)
            if (a != axis && bound->index.coef[a] % piece)
                return false;
    }
    return true;
}

static Reading reading_of(const Fusion *fusion, const Product *product, int factor)
{
    const Guard *own = mma_guard(product, factor);
    const Access *access = mma_access(product->factor[factor]);
    Affine offset = access_offset(access);
    int64_t piece = mma_piece(product);
    for (int along_k = 1; along_k >= 0; along_k--) {
        const AxisGroup *group = fast_group(product, factor, along_k);
        int axis = axis_group_innermost(group);
        if (affine_allows_vector(&offset, axis, piece) &&
            product_ends_in_vectors(fusion, access, group, piece) && guards_pieces(own, axis, piece) &&
            guards_pieces(product->guard, axis, piece))
            return (Reading){along_k, BY_PIECES};
    }
    bool guarded = own || (product->guard && !product_guard_ends_k(product));
    for (int along_k = 1; along_k >= 0 && !guarded; along_k--)
        if (axis_group_has_stride(fast_group(product, factor, along_k), fusion, &offset, 1))
            return (Reading){along_k, FROM_ANYWHERE};
    return (Reading){product_along_k(fusion, product, factor), BY_ELEMENTS};
}

/* Elements from one flat position of the group to the next; -1: they differ. */
static int64_t group_stride(const Fusion *fusion, const Affine *offset, const AxisGroup *group)
{
    int64_t stride = axis_group_stride(group, offset);
    return axis_group_has_stride(group, fusion, offset, stride) ? stride : -1;
}

/* The driver takes strides below 2^40 bytes. */
static bool is_legal(int64_t stride, int64_t piece)
{
    return stride >= 0 && stride < ((int64_t)1 << 40) / VECTOR_BYTES * piece && stride % piece == 0;
}

/* Coordinates of boxes are signed numbers of 32 bits, of boxes behind the last row, too; all lines are a stride, that of
   batches if there are none. */
static bool has_coordinates(const Product *product, int factor, const Lines *lines)
{
    int64_t most = INT32_MAX - MAX_BOX, batches = lines->batch ? product->group[GROUP_BATCH].extent : 1;
    int64_t rows = product->group[factor ? GROUP_N : GROUP_M].extent, k = product->group[GROUP_K].extent;
    return rows <= most && k <= most && batches <= most &&
           is_legal(size_product(lines->line, lines->along_k ? rows : k), mma_piece(product));
}

static bool find_box(const Fusion *fusion, const Product *product, int factor, Lines *lines)
{
    const Expr *expr = product->factor[factor];
    if (expr->kind != EXPR_ACCESS || product->guard)
        return false;
    Affine offset = access_offset(&expr->access);
    int64_t rows = group_stride(fusion, &offset, &product->group[factor ? GROUP_N : GROUP_M]);
    int64_t k = group_stride(fusion, &offset, &product->group[GROUP_K]);
    lines->start = offset.constant;
    lines->batch = group_stride(fusion, &offset, &product->group[GROUP_BATCH]);
    lines->along_k = k == 1;
    lines->line = k == 1 ? rows : k;
    int64_t piece = mma_piece(product);
    return offset.constant % piece == 0 && (k == 1 || rows == 1) && lines->line > 0 && is_legal(lines->line, piece) &&
           is_legal(lines->batch, piece) && has_coordinates(product, factor, lines);
}

/* Of a convolution's filter: channels or rows lie side by side, and taps are its batches. */
static bool find_filter(const Fusion *fusion, const Product *product, const Im2col *im2col, Lines *lines)
{
    int factor = 1 - im2col->factor;
    const Expr *expr = product->factor[factor];
    if (expr->kind != EXPR_ACCESS)
        return false;
    Affine offset = access_offset(&expr->access);
    int64_t rows = group_stride(fusion, &offset, &product->group[factor ? GROUP_N : GROUP_M]);
    int64_t channels = offset.coef[im2col->channel], piece = mma_piece(product);
    lines->start = offset.constant;
    lines->along_k = channels == 1;
    lines->line = lines->along_k ? rows : channels;
    lines->batch = im2col->taps.count ? group_stride(fusion, &offset, &im2col->taps) : 0;
    int64_t each = size_product(lines->line, lines->along_k ? product->group[factor ? GROUP_N : GROUP_M].extent : im2col->channels);
    if (im2col->groups > 1 && group_stride(fusion, &offset, &product->group[GROUP_BATCH]) != each)   // lines follow those of a group
        return false;
    return offset.constant % piece == 0 && (lines->along_k || rows == 1) && lines->line > 0 &&
           is_legal(lines->line, piece) && is_legal(lines->batch, piece) &&
           has_coordinates(product, factor, lines);
}

// ---- the view ----

/* Elements of 16 bits may lie in shared memory along k or along their rows, others along k. */
static void find_atoms(const Target *target, Product *product)
{
    const Access *a = mma_access(product->factor[0]), *b = mma_access(product->factor[1]);
    if (!a || !b || a->tensor->dtype != b->tensor->dtype)
        return;
    DType type = a->tensor->dtype;
    product->atom = target_atom(target, type, IN_REGISTERS);
    product->shared_atom = target_atom(target, type, IN_SHARED);
    if (!product->shared_atom)
        product->shared_atom = target_atom(target, type, IN_SHARED_ALONG_K);
}

static bool find_tiled(const Fusion *fusion, const Target *target, Product *product)
{
    if (!product_find(fusion, product))
        return false;
    find_atoms(target, product);
    for (int factor = 0; factor < 2; factor++)
        if (mma_access(product->factor[factor]))
            product->reading[factor] = reading_of(fusion, product, factor);
    return true;
}

/* Of several sums it may be empty. */
static void find_beside(Arena *arena, const Fusion *fusion, Product *product, int columns)
{
    Beside beside = beside_find(fusion, product, columns);
    if (beside.count || product->sums > 1)
        product->beside = arena_copy(arena, &beside, sizeof beside);
}

/* Rows of a factor are no lines, but pixels. Columns may be phases, and then rows of the first one are. */
static bool find_pixels_of(Arena *arena, const Fusion *fusion, int factor, Product *product)
{
    Im2col im2col;
    PhasedFilter phased;
    if (!im2col_find(fusion, product, factor, &im2col))
        return false;
    if (!find_filter(fusion, product, &im2col, &product->lines[1 - factor])) {
        if (factor == 1 || !phases_find(arena, fusion, product, &im2col, &phased))
            return false;
        product->phased = arena_copy(arena, &phased, sizeof phased);
        product->lines[1] = (Lines){.along_k = phased.along_k, .line = phased.along_k ? im2col.channels : phased.phases.columns};
    }
    product->lines[factor] = (Lines){.along_k = true, .line = im2col.pixel};
    product->group[GROUP_K].extent = size_product(im2col.taps.extent, im2col.step);
    product->pixels = arena_copy(arena, &im2col, sizeof im2col);
    return true;
}

/* k is pixels: of one factor as they lie, of the other one under taps. */
static bool find_pixels_along_k(Arena *arena, const Fusion *fusion, Product *product)
{
    for (int factor = 0; factor < 2; factor++) {
        Im2col im2col;
        Product walked = *product;
        if (!im2col_find_along_k(fusion, product, factor, &im2col))
            continue;
        walked.group[GROUP_K] = im2col.outputs;
        if (!find_box(fusion, &walked, 1 - factor, &walked.lines[1 - factor]) || walked.lines[1 - factor].along_k)
            continue;
        walked.lines[factor] = (Lines){.line = im2col.pixel};
        if (product->share.chunk)
            walked.group[GROUP_K].extent = product->share.chunk;
        walked.pixels = arena_copy(arena, &im2col, sizeof im2col);
        *product = walked;
        return true;
    }
    return false;
}

static bool find_lines(const Fusion *fusion, Product *product)
{
    return !product->share.chunk && !mma_guard(product, 1) &&
           find_box(fusion, product, 0, &product->lines[0]) && find_box(fusion, product, 1, &product->lines[1]);
}

/* Rows of a factor lie evenly apart only within each step along their outermost axis, as pixels of planes do within an
   image: that one is the batch, and the other factor has none. */
static bool find_lines_in_batches(const Fusion *fusion, int group, Product *product)
{
    const AxisGroup *rows = &product->group[group];
    if (product->group[GROUP_BATCH].count || rows->count < 2)
        return false;
    Product batched = *product;
    AxisGroup *within = &batched.group[group];
    axis_group_add(&batched.group[GROUP_BATCH], fusion, rows->axes[0]);
    *within = (AxisGroup){.extent = 1};
    for (int i = 1; i < rows->count; i++)
        axis_group_add(within, fusion, rows->axes[i]);
    if (!find_lines(fusion, &batched))
        return false;
    *product = batched;
    return true;
}

/* Of factors whose lines bulk copies bring as the instruction reads them. */
static bool find_boxed(Arena *arena, const Fusion *fusion, const Target *target, Product *product)
{
    const Lines *lines = product->lines;
    if (!target->device->has.bulk_tensor_copy || !product->shared_atom)
        return false;
    if (!find_lines(fusion, product) && !find_lines_in_batches(fusion, GROUP_N, product) &&
        !find_lines_in_batches(fusion, GROUP_M, product) && !find_pixels_of(arena, fusion, 0, product) &&
        !find_pixels_of(arena, fusion, 1, product) && !find_pixels_along_k(arena, fusion, product))
        return false;
    find_beside(arena, fusion, product, mma_columns(fusion, product));
    return product->shared_atom->place == IN_SHARED || (lines[0].along_k && lines[1].along_k);
}

/* Of one whose rows are reduced: no family of few rows, nor pixels, does so. */
static const Products *view_of_rows(Arena *arena, const Fusion *fusion, const Target *target)
{
    Product product;
    Products found = {.rows = product_rows_find(arena, fusion)};
    if (!found.rows || !find_tiled(&found.rows->product, target, &product) || !product_rows_fit(found.rows, &product))
        return NULL;
    found.tiled = arena_copy(arena, &product, sizeof product);
    if (find_boxed(arena, &found.rows->product, target, &product) && !product.pixels)
        found.boxed = arena_copy(arena, &product, sizeof product);
    return arena_copy(arena, &found, sizeof found);
}

/* One of several sums, by itself. */
static bool find_one(const Fusion *fusion, const Target *target, int sum, Product *product)
{
    Fusion one = *fusion;
    one.ops = fusion->ops + sum;
    one.op_count = 1;
    return find_tiled(&one, target, product) && product->shared_atom &&
           find_box(&one, product, 0, &product->lines[0]) && find_box(&one, product, 1, &product->lines[1]);
}

/* Both have the same rows, and B's that lie alike. */
static bool goes_with(const Fusion *fusion, const Product *first, const Product *other, int sum)
{
    return expr_equal(first->factor[0], other->factor[0]) &&
           memcmp(&first->group, &other->group, sizeof first->group) == 0 &&
           mma_element_type(first) == mma_element_type(other) &&
           first->lines[1].along_k == other->lines[1].along_k &&
           !first->lines[1].batch == !other->lines[1].batch &&
           fusion->ops[0].out->dtype == fusion->ops[sum].out->dtype;
}

/* Several sums of which a thread has those of the same points, in vectors. */
static bool find_joined(Arena *arena, const Fusion *fusion, const Target *target, Product *product)
{
    if (!target->device->has.bulk_tensor_copy || !find_one(fusion, target, 0, product))
        return false;
    for (int s = 1; s < fusion->joined; s++) {
        Product other;
        if (!find_one(fusion, target, s, &other) || !goes_with(fusion, product, &other, s))
            return false;
        product->more[s - 1] = other.factor[1];
        product->more_lines[s - 1] = other.lines[1];
    }
    product->sums = fusion->joined;
    find_beside(arena, fusion, product, mma_columns(fusion, product));
    bool along_k = product->lines[0].along_k && product->lines[1].along_k;
    return beside_has_vectors(product->beside) && (along_k || product->shared_atom->place == IN_SHARED);
}

/* Without tensor cores threads store straight to memory. Taps are left out where rows of a factor are phases. */
static const Product *tiled_of(Arena *arena, const Fusion *fusion, Product product)
{
    if (product.atom) {
        find_beside(arena, fusion, &product, mma_columns(fusion, &product));
        product.skips = skips_find(arena, fusion, &product);
    } else {
        product_store_together(fusion, &product);
        Product other = product;
        product_exchange(&other);
        product.skips = skips_find(arena, fusion, &product);
        other.skips = product.skips ? NULL : skips_find(arena, fusion, &other);
        product = other.skips && other.skips->by_stride ? other : product;
        find_beside(arena, fusion, &product, 1);
    }
    return arena_copy(arena, &product, sizeof product);
}

const void *product_view(Arena *arena, const Fusion *fusion, const Target *target)
{
    Product product;
    Products found = {.tiled = NULL};
    if (fusion->streams)
        return view_of_rows(arena, fusion, target);
    if (count_bit_outputs(fusion))
        return NULL;
    if (fusion->joined) {
        if (find_joined(arena, fusion, target, &product))
            found.boxed = arena_copy(arena, &product, sizeof product);
        return found.boxed ? arena_copy(arena, &found, sizeof found) : NULL;
    }
    if (product_find_skinny(fusion, &product)) {
        find_beside(arena, fusion, &product, 1);
        found.skinny = arena_copy(arena, &product, sizeof product);
    }
    if (find_tiled(fusion, target, &product)) {
        if (!product.share.chunk)
            found.tiled = tiled_of(arena, fusion, product);
        if (find_boxed(arena, fusion, target, &product))
            found.boxed = arena_copy(arena, &product, sizeof product);
    }
    return found.tiled || found.boxed || found.skinny ? arena_copy(arena, &found, sizeof found) : NULL;
}
