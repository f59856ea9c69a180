// The data tiles of what a product leaves, and of what its epilogue reads beside the sums.
#include "codegen/family/gemm/product.h"
#include "rtile/space.h"

enum { FLAT_GROUPS = 3 };   // batch, m and n

/* Contiguous columns, of planes those of one image; 0: all are, or none. Where these are one access of tensor
   cores' results at most, the next rows may follow in memory, as of planes by phase, whose last axis is one. */
static int64_t run_of(const Fusion *fusion, const Product *product, const Access *access, int bits)
{
    const AxisGroup *rows = &product->group[GROUP_M];
    Affine offset = access_offset(access);
    int64_t run = product_contiguous(fusion, &product->group[GROUP_N], access);
    if (run == 1 || run >= product->group[GROUP_N].extent)
        return 0;
    bool vectors = product->atom && run * bits <= 8 * VECTOR_BYTES;
    for (int i = rows->count - 1; vectors && i >= 0 && offset.coef[rows->axes[i]] == run; i--)
        run *= fusion->axes[rows->axes[i]].extent;
    return run;
}

static DataTile tile_of(const Fusion *fusion, const Product *product, const Access *access)
{
    DataTile tile = data_tile_of(access->tensor);
    tile.rank = FLAT_GROUPS;
    static const int groups[FLAT_GROUPS] = {GROUP_BATCH, GROUP_M, GROUP_N};
    tile.apart = tile.element_bits < 8 || !product_lies_in_order(fusion, product, access, groups);
    tile.run = tile.element_bits >= 8 ? run_of(fusion, product, access, tile.element_bits) : 0;
    return tile;
}

static DataTile output_tile(const Fusion *fusion, const Product *product, const FusedOp *op)
{
    DataTile tile = tile_of(fusion, product, &op->store);
    tile.output = true;
    for (int g = 0; g < FLAT_GROUPS; g++)
        tile.dims[g] = (Dim){affine_axis(g), product->group[g].extent};
    return tile;
}

/* Of a bias one row serves all positions of m, of a gate[b, n] runs of them. */
static DataTile beside_tile(const Fusion *fusion, const Product *product, const FusedAccess *found,
                            const DeviceSpec *device)
{
    const AxisGroup *columns = &product->group[GROUP_N];
    DataTile tile = tile_of(fusion, product, found->access);
    Affine offset = fused_offset(fusion, found);
    tile.beside = true;
    tile.apart |= found->guarded;
    if (columns->count)
        tile.scatter = access_scatter(found->access, fusion, axis_group_innermost(columns), device);
    for (int g = 0; g < FLAT_GROUPS; g++) {
        Repeats repeats = axes_repeats(fusion, &offset, product->group[g].axes, product->group[g].count);
        bool moves = repeats.cycle > 1;
        tile.dims[g] = moves ? (Dim){affine_axis(g), product->group[g].extent} : (Dim){.size = 1};
        if (moves && g < MAX_REPEATED && (repeats.run > 1 || repeats.again > 1))
            tile.repeats[g] = repeats;
    }
    return tile;
}

static bool is_repeated(const FusedAccess *found, int sums, int index)
{
    for (int i = 0; i < index; i++)
        if (found[i].op >= sums && found[i].access->tensor == found[index].access->tensor &&
            found[i].access->dims == found[index].access->dims)
            return true;
    return false;
}

void product_add_results(TileSpace *space, const Fusion *fusion, const Product *product,
                         const DeviceSpec *device)
{
    for (int g = 0; g < FLAT_GROUPS; g++)
        space->fused[g] = axis_group_mask(&product->group[g]);
    for (int i = 0; i < fusion->op_count && space->tile_count < MAX_DATA_TILES; i++)
        if (fusion->ops[i].stored)
            space->tiles[space->tile_count++] = output_tile(fusion, product, &fusion->ops[i]);
    FusedAccess found[MAX_DATA_TILES];
    int count = fusion_accesses(fusion, found, MAX_DATA_TILES);
    for (int i = 0; i < count && space->tile_count < MAX_DATA_TILES; i++)
        if (found[i].op >= product->sums && !is_repeated(found, product->sums, i))
            space->tiles[space->tile_count++] = beside_tile(fusion, product, &found[i], device);
}

uint32_t product_read_beside(const TileSpace *space)
{
    uint32_t tiles = 0;
    for (int i = 0; i < space->tile_count; i++)
        tiles |= (uint32_t)space->tiles[i].beside << i;
    return tiles;
}
