// resident: reductions along rows that registers cannot hold, of which one may use another's result, and pointwise steps.
// The row is held in the shared memory of one block or of a cluster: batch norm (NCHW), group and instance norm, gradients.
#include "base/checked.h"
#include "codegen/family/rows/resident_parts.h"
#include "rtile/space.h"

enum {
    SMALL_THREADS = 256,    // of a block with a small share
    THREADS = 512
};

/* Space axes. */
enum { ROW, COLUMN };

// ---- which kernels ----

static bool packs_bits(const Fusion *fusion, int vector)
{
    for (int i = 0; i < fusion->op_count; i++)
        if (fusion->ops[i].stored && fusion->ops[i].out->dtype == DTYPE_B1 &&
            (!fusion_is_of_elements(fusion, &fusion->ops[i]) ||
             !resident_bit_run(fusion, vector, &fusion->ops[i])))
            return false;
    return true;
}

/* Inputs that more than one pass reads are held; bits are read again. */
static uint32_t find_kept(const Reads *reads, const PassPlan *plan)
{
    uint32_t seen = 0, kept = 0;
    for (int pass = 0; pass < plan->count; pass++) {
        uint32_t used = plan->pass[pass].reads;
        kept |= seen & used;
        seen |= used;
    }
    for (int i = 0; i < reads->count; i++)
        if (reads->reads[i].access->tensor->dtype == DTYPE_B1)
            kept &= ~(1u << i);
    return kept;
}

static Reads find_reads(const Fusion *fusion, int vector)
{
    return reads_find((Walk){
        .fusion = fusion,
        .ops = fusion->op_count,
        .axis = fusion->axis_count - 1,
        .vector = vector,
        .along = fusion_columns(fusion),
    });
}

static const void *view_of(Arena *arena, const Fusion *fusion, const Target *target)
{
    bool of_elements = false;
    (void)target;
    if (fusion->axis_count - fusion->spatial_count < 2 || !fusion_reduces(fusion) || !passes_hold(fusion))
        return NULL;   // rowwise serves rows that are one run
    for (int i = 0; i < fusion->op_count; i++) {
        const FusedOp *op = &fusion->ops[i];
        if (op->reduce != REDUCE_NONE && op->reduced != fusion_columns(fusion))
            return NULL;
        of_elements |= fusion_is_of_elements(fusion, &fusion->ops[i]) && op->stored;
    }
    Reads each = find_reads(fusion, 1);
    int vector = reads_widest_vector(&each, fusion->axes[fusion->axis_count - 1].extent);
    ResidentView view = {.reads = find_reads(fusion, vector)};
    view.passes = passes_find(arena, &view.reads, (PassKind){0});
    for (int i = 0; i < view.reads.count; i++)
        if (view.reads.reads[i].pattern != PATTERN_ROW)
            return NULL;
    view.kept = find_kept(&view.reads, view.passes);
    bool fits = of_elements && tiles_hold(fusion, view.reads.count) && view.kept && packs_bits(fusion, vector);
    return fits ? arena_copy(arena, &view, sizeof view) : NULL;
}

// ---- kinds ----

static void add_tile(TileSpace *space, const Fusion *fusion, const Access *access, bool output, bool kept)
{
    if (space->tile_count == MAX_DATA_TILES)
        return;
    uint32_t axes = access_axes(access);
    DataTile tile = data_tile_of(access->tensor);
    tile.output = output;
    tile.staged = kept;
    tile.staged_granule = 1;
    if (axes & ~fusion_columns(fusion))
        tile.dims[tile.rank++] = (Dim){affine_axis(ROW), space->axes[ROW].extent};
    if (axes & fusion_columns(fusion))
        tile.dims[tile.rank++] = (Dim){affine_axis(COLUMN), space->axes[COLUMN].extent};
    tile.staged_inner = tile.rank - 1;
    space->tiles[space->tile_count++] = tile;
}

static void add_tiles(TileSpace *space, const Fusion *fusion, const Reads *reads, uint32_t kept)
{
    for (int i = 0; i < reads->count; i++)
        add_tile(space, fusion, reads->reads[i].access, false, kept >> i & 1);
    for (int i = 0; i < fusion->op_count; i++)
        if (fusion->ops[i].stored)
            add_tile(space, fusion, &fusion->ops[i].store, true, false);
}

static void cluster_kind(Arena *arena, KernelKind *kind, const ResidentView *view, const Fusion *fusion,
                          const DeviceSpec *device, int cluster, int threads)
{
    int64_t step = (int64_t)threads * view->reads.walk.vector;
    int64_t share = round_up(resident_share(fusion, cluster), step);
    kind_begin(arena, kind, fusion);
    kind->name = cluster > 1 ? "cluster" : "block";
    space_add_axis(kind->space, "row", spatial_points(fusion), false);
    space_add_axis(kind->space, "column", share * cluster, true);
    add_tiles(kind->space, fusion, &view->reads, view->kept);
    resident_state(kind->schedule, &(ResidentKernel){
                                         .fusion = fusion,
                                         .space = kind->space,
                                         .view = view,
                                         .cluster = cluster,
                                         .threads = threads,
                                         .warp = device->warp_size,
                                     });
    schedule_set_shared(kind);
    space_fix_axis(kind->space, ROW, 1, 1);
    space_fix_axis(kind->space, COLUMN, step, share);
    kind->threads.of_tile = threads;
    kind->schedule->vectors = (int)(share / step);
    kind->registers.accumulator_bits = 32;
    kind->registers.others = 24;
    kind->registers.input_buffers = 1;
}

/* Clusters of every size that can hold the row and leave each block work for all its threads. Sizes that are not portable
   are slower, and only for rows that no other can hold (tuning-log 34). */
static int kinds(Arena *arena, const void *view, const Fusion *fusion, const DeviceSpec *device,
                 KernelKind *variants)
{
    int count = 0;
    int most = device_most_cluster_blocks(device);
    for (int cluster = 1; cluster <= most && count < MAX_VARIANTS; cluster *= 2) {
        int64_t vectors = resident_share(fusion, cluster) / ((const ResidentView *)view)->reads.walk.vector;
        int threads = vectors > 4 * THREADS ? THREADS : SMALL_THREADS;
        bool works = cluster == 1 || vectors >= threads;
        if (!works || (cluster > PORTABLE_CLUSTER_BLOCKS && count > 0))
            continue;
        cluster_kind(arena, &variants[count], view, fusion, device, cluster, threads);
        RTile share = {.size = {[ROW] = 1, [COLUMN] = variants[count].space->rule[LEVEL_SHARED][COLUMN].limit}};
        count += kind_footprint(&variants[count], &share, &share, device, LEVEL_SHARED) <=
                 device->shared_per_block_optin;
    }
    return count;
}

const Family resident_family = {
    .name = "resident",
    .template_path = "templates/resident.cu",
    .variants = (const char *const[]){"block", "cluster", NULL},
    .view = view_of,
    .kinds = kinds,
    .emit = resident_emit,
};
