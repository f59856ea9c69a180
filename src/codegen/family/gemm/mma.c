#include "codegen/family/gemm/mma.h"

#include "base/checked.h"
#include "rprogram/cost/calibration.h"
#include "rtile/space.h"

// ---- structure ----

const Access *mma_access(const Expr *factor)
{
    if (factor->kind == EXPR_GUARD && expr_is_zero(factor->guard.otherwise))
        factor = factor->guard.body;
    return factor->kind == EXPR_ACCESS ? &factor->access : NULL;
}

const Guard *mma_guard(const Product *product, int factor)
{
    const Expr *expr = product->factor[factor];
    return expr->kind == EXPR_GUARD ? &expr->guard : NULL;
}

int64_t mma_piece(const Product *product)
{
    return 8 * PIECE_BYTES / product_element_bits(product->factor[0]);
}

DType mma_element_type(const Product *product) { return mma_access(product->factor[0])->tensor->dtype; }

bool mma_is_cut_off(const Product *product)
{
    return dtype_info[mma_element_type(product)].compute == DTYPE_F32;
}

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

static Reading mma_reading(const Fusion *fusion, const Product *product, int factor)
{
    const Guard *own = mma_guard(product, factor);
    const Access *access = mma_access(product->factor[factor]);
    Affine offset = access_offset(access);
    int64_t piece = mma_piece(product);
    for (int along_k = 1; along_k >= 0; along_k--) {
        const AxisGroup *group = fast_group(product, factor, along_k);
        int axis = axis_group_innermost(group);
        if (offset_allows_vector(&offset, axis, piece) &&
            product_ends_in_vectors(fusion, access, group, piece) &&
            guards_pieces(own, axis, piece) && guards_pieces(product->guard, axis, piece))
            return (Reading){along_k, BY_PIECES};
    }
    for (int along_k = 1; along_k >= 0 && !own && !product->guard; along_k--)
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
    return stride >= 0 && stride < ((int64_t)1 << 40) / PIECE_BYTES * piece && stride % piece == 0;
}

static bool find_lines(const Fusion *fusion, const Product *product, int factor, Lines *lines)
{
    const Expr *expr = product->factor[factor];
    if (expr->kind != EXPR_ACCESS || product->guard)
        return false;
    Affine offset = access_offset(&expr->access);
    int64_t rows = group_stride(fusion, &offset, &product->group[factor ? GROUP_N : GROUP_M]);
    int64_t k = group_stride(fusion, &offset, &product->group[GROUP_K]);
    lines->batch = group_stride(fusion, &offset, &product->group[GROUP_BATCH]);
    lines->along_k = k == 1;
    lines->line = k == 1 ? rows : k;
    int64_t piece = mma_piece(product);
    return offset.constant == 0 && (k == 1 || rows == 1) && lines->line > 0 && is_legal(lines->line, piece) &&
           is_legal(lines->batch, piece);
}

/* Elements of 16 bits may lie in shared memory along k or along their rows, others along k. */
static void find_atoms(const Fusion *fusion, const Target *target, Product *product)
{
    const Access *a = mma_access(product->factor[0]), *b = mma_access(product->factor[1]);
    if (!a || !b || a->tensor->dtype != b->tensor->dtype)
        return;
    DType type = a->tensor->dtype;
    product->atom = target_atom(target, type, IN_REGISTERS);
    const Atom *atom = target_atom(target, type, IN_SHARED);
    product->shared_atom = atom ? atom : target_atom(target, type, IN_SHARED_ALONG_K);
    Lines *lines = product->lines;
    product->boxes = target->device->has.bulk_tensor_copy && product->shared_atom &&
                     find_lines(fusion, product, 0, &lines[0]) && find_lines(fusion, product, 1, &lines[1]) &&
                     (atom || (lines[0].along_k && lines[1].along_k));
}

const void *product_view(Arena *arena, const Fusion *fusion, const Target *target)
{
    Product tiled, skinny;
    Products found = {NULL, NULL};
    if (count_bit_outputs(fusion))
        return NULL;
    if (product_find(fusion, &tiled)) {
        for (int factor = 0; factor < 2; factor++)
            if (mma_access(tiled.factor[factor]))
                tiled.reading[factor] = mma_reading(fusion, &tiled, factor);
        find_atoms(fusion, target, &tiled);
        found.tiled = arena_copy(arena, &tiled, sizeof tiled);
    }
    if (product_find_skinny(fusion, &skinny))
        found.skinny = arena_copy(arena, &skinny, sizeof skinny);
    return found.tiled || found.skinny ? arena_copy(arena, &found, sizeof found) : NULL;
}

// ---- tiles ----

static DataTile operand_tile(const Fusion *fusion, const Product *product, int factor)
{
    int rows = factor ? GROUP_N : GROUP_M;
    Reading reading = product->reading[factor];
    DataTile tile = {.rank = 3, .scatter = 1, .staged = true, .staged_inner = 2, .swizzled = true};
    tile.name = product_factor_name(product, factor);
    tile.scatter = reading.way == FROM_ANYWHERE ? 2 : 1;   // two pieces are read for one
    tile.element_bits = product_element_bits(product->factor[factor]);
    if (reading.way != BY_PIECES)
        tile.instructions = reading.way == FROM_ANYWHERE
                                ? calibration.gemm.shift_instructions
                                : product_search_instructions(fusion, product, factor);
    int row_dim = reading.along_k ? 1 : 2, k_dim = reading.along_k ? 2 : 1;
    tile.dims[0] = (Dim){affine_axis(GROUP_BATCH), product->group[GROUP_BATCH].extent};
    tile.dims[row_dim] = (Dim){affine_axis(rows), product->group[rows].extent};
    tile.dims[k_dim] = (Dim){affine_axis(GROUP_K), product->group[GROUP_K].extent};
    if (reading.way == BY_PIECES)
        tile.dims[2].size = round_up(tile.dims[2].size, mma_piece(product));
    return tile;
}

TileSpace mma_space(const Fusion *fusion, const DeviceSpec *device, const Product *product, const Atom *atom)
{
    TileSpace space = space_new(fusion, device);
    space.unit = atom->unit;
    for (int g = 0; g < GROUP_COUNT; g++)
        space_add_axis(&space, group_variable(g), product->group[g].extent, g == GROUP_K);
    for (int factor = 0; factor < 2; factor++)
        space.tiles[space.tile_count++] = operand_tile(fusion, product, factor);
    for (int i = 0; i < fusion->op_count && space.tile_count < MAX_DATA_TILES; i++)
        if (fusion->ops[i].stored)
            space.tiles[space.tile_count++] = product_output_tile(fusion, product, i);
    return space;
}

// ---- rules ----

DType mma_sum_type(const Product *product) { return dtype_info[mma_element_type(product)].compute; }

int mma_value_bytes(const Product *product)
{
    return dtype_info[mma_sum_type(product)].bits / 8;
}

DType mma_kept_type(const Fusion *fusion, const Product *product)
{
    DType sum = mma_sum_type(product), to = fusion->ops[0].out->dtype;
    return dtype_info[to].bits == 16 && dtype_info[to].compute == sum ? to : sum;
}

bool mma_is_kept(const Fusion *fusion, const Product *product)
{
    return mma_kept_type(fusion, product) != mma_sum_type(product);
}

void mma_schedule_end(Schedule *schedule, const Fusion *fusion, const TileSpace *space, ThreadScope scope,
                      DType passed)
{
    Exchange exchange = {.scope = (uint8_t)scope, .combine = COMBINE_ROWS};
    mma_schedule_store(schedule, fusion, space, exchange, passed);
}

void mma_schedule_store(Schedule *schedule, const Fusion *fusion, const TileSpace *space, Exchange exchange,
                        DType passed)
{
    exchange.ops = schedule_ops(fusion, true);
    exchange.value_bytes = (uint8_t)(dtype_info[passed].bits / 8);
    exchange.width = 2;
    schedule_exchange(schedule, exchange);
    schedule_map(schedule, schedule_ops(fusion, false));
    schedule_store(schedule,
                   (Move){.tiles = space_outputs(space), .from = PLACE_REGISTERS, .to = PLACE_MEMORY});
}

int mma_sum_bits(const Product *product)
{
    bool chains = mma_is_cut_off(product) && product->group[GROUP_K].extent > MAX_CHAIN;
    return mma_value_bytes(product) * (chains ? 16 : 8);
}

void mma_group_rules(TileRules *rules, const Fusion *fusion, const DeviceSpec *device, const Product *product,
                     const Atom *atom)
{
    int64_t k_step = LINE_PIECES * mma_piece(product);
    *rules = (TileRules){.space = mma_space(fusion, device, product, atom)};
    rules->rule[LEVEL_REGISTER][GROUP_BATCH] = rules->rule[LEVEL_SHARED][GROUP_BATCH] = (AxisRule){1, 1};
    rules->rule[LEVEL_REGISTER][GROUP_K] = rules->rule[LEVEL_SHARED][GROUP_K] = (AxisRule){k_step, k_step};
    rules->rule[LEVEL_REGISTER][GROUP_M] = (AxisRule){atom->m, atom->m};   // more would read b more often
    rules->rule[LEVEL_REGISTER][GROUP_N] = (AxisRule){atom->n / 4, atom->n};
    rules->rule[LEVEL_SHARED][GROUP_M] = rules->rule[LEVEL_SHARED][GROUP_N] = (AxisRule){1, MAX_GROUP_TILE};
    rules->tile_threads = GROUP_WARPS * device->warp_size;
    rules->most_threads = MAX_GROUPS * rules->tile_threads;
    rules->accumulator_bits = mma_sum_bits(product);
    rules->sum_cycles = calibration.tensor_cores.sum_cycles;
    rules->register_overhead = 72;
    rules->input_buffers = rules->input_registers = 1;   // read by tiles, and never held
}
