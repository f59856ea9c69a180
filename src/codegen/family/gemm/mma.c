#include "codegen/family/gemm/mma.h"

#include "base/checked.h"
#include "codegen/family/gemm/beside.h"
#include "model/calibration.h"
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
    return 8 * VECTOR_BYTES / product_element_bits(product->factor[0]);
}

DType mma_element_type(const Product *product) { return mma_access(product->factor[0])->tensor->dtype; }

bool mma_is_cut_off(const Product *product)
{
    return dtype_info[mma_element_type(product)].compute == DTYPE_F32;
}

// ---- tiles ----

static DataTile operand_tile(const Fusion *fusion, const Product *product, int factor)
{
    int rows = factor ? GROUP_N : GROUP_M;
    Reading reading = product->reading[factor];
    DataTile tile = product_factor_tile(product, factor, reading.along_k);
    tile.staged = tile.swizzled = true;
    tile.staged_inner = 2;
    tile.scatter = reading.way == FROM_ANYWHERE ? 2 : 1;   // two pieces are read for one
    tile.vector = reading.way == BY_ELEMENTS;   // uneven ones have an address each
    if (reading.way != BY_PIECES)
        tile.instructions = reading.way == FROM_ANYWHERE
                                ? calibration.gemm.shift_instructions
                                : product_search_instructions(product, factor);
    if (reading.way == BY_PIECES) {
        const AxisGroup *along = &product->group[reading.along_k ? GROUP_K : rows];
        int64_t run =
            round_up(product_contiguous(fusion, along, mma_access(product->factor[factor])), mma_piece(product));
        tile.run = run < along->extent ? run : 0;
        tile.dims[2].size = round_up(tile.dims[2].size, mma_piece(product));
    }
    return tile;
}

TileSpace *mma_space(Arena *arena, const Fusion *fusion, const Product *product, const Atom *atom,
                     const DeviceSpec *device)
{
    TileSpace *space = product_space(arena, fusion, product);
    space->unit = atom->unit;
    for (int factor = 0; factor < 2; factor++)
        space->tiles[space->tile_count++] = operand_tile(fusion, product, factor);
    for (int s = 1; s < product->sums; s++) {   // they lie as the first one's
        DataTile *tile = &space->tiles[space->tile_count++];
        *tile = space->tiles[1];
        tile->name = mma_access(product->more[s - 1])->tensor->name;
    }
    product_add_results(space, fusion, product, device);
    return space;
}

void mma_count_copies(TileSpace *space, const Fusion *fusion, const Product *product)
{
    int64_t piece = mma_piece(product);
    for (int factor = 0; factor < 2; factor++) {
        DataTile *tile = &space->tiles[factor];
        if (product->reading[factor].way != BY_PIECES)
            continue;
        tile->vector = (int)piece;
        tile->line_places = mma_guard(product, factor);
        product_count_search(tile, fusion, product, factor, true);
    }
}

// ---- kinds ----

DType mma_sum_type(const Product *product) { return dtype_info[mma_element_type(product)].compute; }

int mma_value_bytes(const Product *product)
{
    return dtype_info[mma_sum_type(product)].bits / 8;
}

int mma_columns(const Fusion *fusion, const Product *product)
{
    int columns = MAX_VECTOR;
    while (columns > 1 && !product_stores_vectors(fusion, &product->group[GROUP_N], columns))
        columns /= 2;
    return columns;
}

bool mma_is_shifted(const Fusion *fusion, const Product *product)
{
    const FusedOp *only = product_only_output(fusion, product);
    int columns = mma_columns(fusion, product);
    bool alone = columns == 1 || !beside_has_vectors(product->beside);   // which would be prefetched
    return product->sums == 1 && columns < MAX_VECTOR && alone && only && dtype_info[only->out->dtype].bits == 16;
}

DType mma_kept_type(const Fusion *fusion, const Product *product)
{
    if (mma_is_shifted(fusion, product))
        return product_only_output(fusion, product)->out->dtype;
    DType sum = mma_sum_type(product), to = fusion->ops[0].out->dtype;
    return dtype_info[to].bits == 16 && dtype_info[to].compute == sum ? to : sum;
}

bool mma_is_kept(const Fusion *fusion, const Product *product)
{
    return mma_kept_type(fusion, product) != mma_sum_type(product);
}

void mma_schedule_store(Schedule *schedule, const Fusion *fusion, const Product *product, const TileSpace *space,
                        Exchange exchange, DType passed, int ahead)
{
    exchange.value_bytes = (uint8_t)(dtype_info[passed].bits / 8);
    exchange.width = 2;
    int in_turn = exchange.scope == SCOPE_WARP ? fusion->joined : 0;   // whose sums go through the same rows
    for (int op = 0; op < in_turn; op++) {
        exchange.ops = UINT64_C(1) << op;
        schedule_exchange(schedule, exchange);
    }
    exchange.ops = schedule_ops(fusion, true);
    if (!in_turn)
        schedule_exchange(schedule, exchange);
    schedule_load(schedule, (Move){.tiles = product_read_beside(space),
                                   .ahead = (uint8_t)ahead,
                                   .held = ahead ? BESIDE_BYTES : FIT_BYTES,
                                   .each = SLAB_EACH});
    schedule_map(schedule, schedule_ops(fusion, false));
    bool boxed = space->unit >= UNIT_WGMMA_F16;
    int columns = boxed && mma_is_shifted(fusion, product) ? MAX_VECTOR : mma_columns(fusion, product);
    int threads = boxed ? GROUP_LANES : LANES;   // that hold a tile
    double each = product_end_instructions(fusion, product, columns) / threads;
    schedule_store(schedule, (Move){.tiles = space_outputs(space), .instructions = each});
}

int mma_sum_bits(const Product *product)
{
    bool chains = mma_is_cut_off(product) && product->group[GROUP_K].extent > MAX_CHAIN;
    return mma_value_bytes(product) * (chains ? 16 : 8);
}

void mma_group_kind(Arena *arena, KernelKind *kind, const Fusion *fusion, const DeviceSpec *device,
                     const Product *product, const Atom *atom)
{
    int64_t k_step = LINE_PIECES * mma_piece(product);
    *kind = (KernelKind){.space = mma_space(arena, fusion, product, atom, device)};
    space_fix_axis(kind->space, GROUP_BATCH, 1, 1);
    space_fix_axis(kind->space, GROUP_K, k_step, k_step);
    kind->space->rule[LEVEL_REGISTER][GROUP_M] = axis_fixed(atom->m);   // more would read b more often
    int64_t granule = atom->n / 4, columns = atom->n / product->sums / granule * granule;   // of each sum
    kind->space->rule[LEVEL_REGISTER][GROUP_N] = (AxisRule){granule, columns};
    kind->space->rule[LEVEL_SHARED][GROUP_M] = kind->space->rule[LEVEL_SHARED][GROUP_N] = (AxisRule){1, MAX_GROUP_TILE};
    kind->threads.of_tile = GROUP_WARPS * device->warp_size;
    kind->threads.most = MAX_GROUPS * kind->threads.of_tile;
    kind->registers.accumulator_bits = mma_sum_bits(product);
    if (product->sums > 1)   // they are counted by outputs
        kind->registers.accumulator_bits =
            (int)ceil_div(kind->registers.accumulator_bits * product->sums, fusion->output_count);
    kind->registers.others = 72;
    kind->registers.input_buffers = kind->registers.most_inputs = 1;   // read by tiles, and never held
}
