#include "rtile/space.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "base/checked.h"

static void take_work(TileSpace *space, const Fusion *fusion)
{
    FusionWork work = fusion_work(fusion);
    space->flops = work.flops;
    space->special = work.special;
    space->unit = work.is_f64 ? UNIT_FP64 : UNIT_FP32;
}

TileSpace *space_new(Arena *arena, const Fusion *fusion)
{
    TileSpace *space = arena_room(arena, sizeof *space);
    memset(space, 0, offsetof(TileSpace, tiles));
    take_work(space, fusion);
    return space;
}

DataTile data_tile_of(const Tensor *tensor)
{
    return (DataTile){.name = tensor->name, .element_bits = dtype_info[tensor->dtype].bits, .scatter = 1};
}

int space_add_axis(TileSpace *space, const char *name, int64_t extent, bool reduction)
{
    assert(space->axis_count < MAX_AXES);
    space->axes[space->axis_count] = (Axis){.name = name, .extent = extent, .reduction = reduction};
    return space->axis_count++;
}

void space_fix_axis(TileSpace *space, int axis, int64_t of_registers, int64_t of_block)
{
    space->rule[LEVEL_REGISTER][axis] = axis_fixed(of_registers);
    space->rule[LEVEL_SHARED][axis] = axis_fixed(of_block);
}

static int64_t points(const Fusion *fusion, int first, int end)
{
    int64_t product = 1;
    for (int a = first; a < end; a++)
        product = fitting_mul(product, fusion->axes[a].extent);
    return product;
}

int64_t spatial_points(const Fusion *fusion) { return points(fusion, 0, fusion->spatial_count); }

int64_t reduction_points(const Fusion *fusion)
{
    return points(fusion, fusion->spatial_count, fusion->axis_count);
}

Affine flat_position(const Fusion *fusion)
{
    Affine flat = {.constant = 0};
    int64_t stride = 1;
    for (int a = fusion->spatial_count - 1; a >= 0; a--) {
        flat.coef[a] = stride;
        stride = fitting_mul(stride, fusion->axes[a].extent);
    }
    return flat;
}

bool access_is_flat(const Access *access, const Fusion *fusion)
{
    Affine flat = flat_position(fusion), offset = access_offset(access);
    return memcmp(&flat, &offset, sizeof flat) == 0;
}

bool bits_are_flat(const Fusion *fusion)
{
    for (int i = 0; i < fusion->op_count; i++) {
        const FusedOp *op = &fusion->ops[i];
        if (op->stored && op->out->dtype == DTYPE_B1 && !access_is_flat(&op->store, fusion))
            return false;
    }
    return true;
}

static double offset_scatter(const Affine *offset, const Tensor *tensor, const Fusion *fusion, int fast,
                             const DeviceSpec *device)
{
    if (fast < 0)
        return 1;
    double element_bytes = dtype_info[tensor->dtype].bits / 8.0;
    double stride = (double)(offset->coef[fast] < 0 ? -offset->coef[fast] : offset->coef[fast]);
    double step = stride * element_bytes, transaction = device->dram.transaction_bytes;
    if (stride <= 1)
        return 1;
    if ((double)fusion->axes[fast].extent * step <=
        transaction)   // the whole line of threads fits one transaction
        return 1;
    return step < transaction ? stride : transaction / element_bytes;
}

double access_scatter(const Access *access, const Fusion *fusion, int fast, const DeviceSpec *device)
{
    Affine offset = access_offset(access);
    return offset_scatter(&offset, access->tensor, fusion, fast, device);
}

/* Adjacent points, at least so many, that hold so many contiguous elements; 0: no number of them does. */
static double points_holding(const Affine *offset, const Fusion *fusion, int64_t elements)
{
    int64_t run = 1, among = 1;
    for (int a = fusion->spatial_count - 1; a >= 0 && run < elements; a--) {
        if (offset->coef[a] != run || fusion->axes[a].extent == 1)
            continue;
        int64_t found = smaller(ceil_div(elements, run), fusion->axes[a].extent);
        among = larger(among, points(fusion, a + 1, fusion->spatial_count) * found);
        run *= found;
        a = fusion->spatial_count;
    }
    return run >= elements ? (double)among : 0;
}

/* Where an element at the flat position along the axes [first, end) lies, of `apart` every so many, from that at 0. */
static int64_t offset_at(const Affine *offset, const Fusion *fusion, int first, int end, int apart, int64_t each, int64_t position)
{
    int64_t at = 0;
    for (int a = end - 1; a >= first; a--) {
        int64_t step = a == apart ? each : 1, count = ceil_div(fusion->axes[a].extent, step);
        at += position % count * step * offset->coef[a];
        position /= count;
    }
    return at;
}

static int64_t place_of(int64_t at, int64_t size) { return at >= 0 ? at / size : -ceil_div(-at, size); }

/* Adds the place to those that are there, unless it is one of them. */
static bool is_new(int64_t *places, int count, int64_t place)
{
    int known = 0;
    while (known < count && places[known] != place)
        known++;
    places[known] = place;
    return known == count;
}

double access_lines(const Access *access, const Fusion *fusion, int first, int end, int vector, int together,
                    const DeviceSpec *device)
{
    enum { MOST = 64 };
    Affine offset = access_offset(access);
    int64_t lines[MOST], bits = dtype_info[access->tensor->dtype].bits;
    int64_t line_elements = 8 * device->shared.transaction_bytes / bits;
    int count = 0;
    for (int lane = 0; lane < device->warp_size && count < MOST; lane++) {
        int64_t at = offset_at(&offset, fusion, first, end, -1, 1, (int64_t)lane * vector);
        count += is_new(lines, count, place_of(at, line_elements));
    }
    double each = (double)(count * line_elements) / (double)(device->warp_size * together);
    return each > 1 ? each : 1;
}

double access_cycles(const Access *access, const Fusion *fusion, int axis, int64_t each, double least, const DeviceSpec *device)
{
    enum { MOST = 64, WORD_BYTES = 4, LINES_A_CYCLE = 4 };   // that L1 looks up: micro-kernels
    Affine offset = access_offset(access);
    int64_t lines[MOST], words[MOST], bits = dtype_info[access->tensor->dtype].bits,
            line_bits = 8 * (int64_t)device->shared.transaction_bytes, banks = line_bits / (8 * WORD_BYTES);
    int line_count = 0, word_count = 0, of_bank[MOST] = {0}, most = 0;
    for (int lane = 0; lane < device->warp_size && lane < MOST; lane++) {
        int64_t at = offset_at(&offset, fusion, 0, fusion->spatial_count, axis, each, lane) * bits,
                word = place_of(at, 8 * WORD_BYTES);
        line_count += is_new(lines, line_count, place_of(at, line_bits));
        if (!is_new(words, word_count, word))
            continue;
        word_count++;
        int *same = &of_bank[(word % banks + banks) % banks];
        most = ++*same > most ? *same : most;
    }
    double looked_up = (double)line_count / LINES_A_CYCLE, cycles = most > looked_up ? most : looked_up;
    return (cycles > least ? cycles : least) * (double)line_bits / (double)(device->warp_size * bits);
}

/* The smallest distance in memory of neighbours along one of the axes [first, end); INT64_MAX: they share an
   element. */
static int64_t least_stride(const Affine *offset, int first, int end)
{
    int64_t least = INT64_MAX;
    for (int a = first; a < end; a++) {
        int64_t stride = offset->coef[a] < 0 ? -offset->coef[a] : offset->coef[a];
        if (stride && stride < least)
            least = stride;
    }
    return least;
}

Repeats axes_repeats(const Fusion *fusion, const Affine *offset, const int *axes, int count)
{
    Repeats repeats = {.run = 1, .cycle = 1, .again = 1};
    int i = count - 1;
    for (; i >= 0 && (!offset->coef[axes[i]] || fusion->axes[axes[i]].extent == 1); i--)
        repeats.run *= fusion->axes[axes[i]].extent;
    for (; i >= 0 && offset->coef[axes[i]]; i--)
        repeats.cycle *= fusion->axes[axes[i]].extent;
    for (; i >= 0 && !offset->coef[axes[i]]; i--)
        repeats.again *= fusion->axes[axes[i]].extent;
    return repeats;
}

/* Of neighbouring axes [first, end). */
static Repeats flat_repeats(const Fusion *fusion, const Affine *offset, int first, int end)
{
    int axes[MAX_AXES];
    for (int a = first; a < end; a++)
        axes[a - first] = a;
    return axes_repeats(fusion, offset, axes, end - first);
}

/* An access along flat spatial and reduction positions. Of the two dimensions the last is the one along which
   memory is contiguous. */
static DataTile flat_tile(const TileSpace *space, const Tensor *tensor, Affine offset, const Fusion *fusion)
{
    const int ends[] = {0, fusion->spatial_count, fusion->axis_count};
    int last = least_stride(&offset, 0, fusion->spatial_count) >=
               least_stride(&offset, fusion->spatial_count, fusion->axis_count);
    DataTile tile = data_tile_of(tensor);
    tile.elements = tensor_elements(tensor);
    for (int i = 0; i < 2; i++) {
        int side = i ? last : !last;
        Repeats repeats = flat_repeats(fusion, &offset, ends[side], ends[side + 1]);
        if (repeats.cycle == 1 || side >= space->axis_count)
            continue;   // one element for all positions
        if (repeats.run > 1 || repeats.again > 1)
            tile.repeats[tile.rank] = repeats;
        tile.dims[tile.rank++] = (Dim){affine_axis(side), space->axes[side].extent};
    }
    RTile problem = rtile_problem(space);
    tile.apart = data_tile_distinct(&tile, &problem, space->axis_count) != tensor_elements(tensor);
    return tile;
}

bool tiles_hold(const Fusion *fusion, int accesses)
{
    return accesses + fusion->output_count <= MAX_DATA_TILES;
}

/* The same element was read before: it is loaded once. */
static bool is_repeated(const Fusion *fusion, const FusedAccess *found, int index)
{
    Affine offset = fused_offset(fusion, &found[index]);
    for (int i = 0; i < index; i++) {
        Affine earlier = fused_offset(fusion, &found[i]);
        if (found[i].access->tensor == found[index].access->tensor &&
            memcmp(&earlier, &offset, sizeof offset) == 0)
            return true;
    }
    return false;
}

DataTile *space_flat_tile(TileSpace *space, const Fusion *fusion, const Tensor *tensor, const Affine *wanted)
{
    FusedAccess found[MAX_DATA_TILES];
    int count = fusion_accesses(fusion, found, MAX_DATA_TILES - fusion->output_count), tile = 0;
    for (int i = 0; i < count; i++) {
        Affine offset = fused_offset(fusion, &found[i]);
        if (found[i].access->tensor == tensor && memcmp(&offset, wanted, sizeof offset) == 0)
            return &space->tiles[tile];
        tile += !is_repeated(fusion, found, i);
    }
    return NULL;
}

void space_add_flat_tiles(TileSpace *space, const Fusion *fusion, int fast, const DeviceSpec *device)
{
    FusedAccess found[MAX_DATA_TILES];
    int count = fusion_accesses(fusion, found, MAX_DATA_TILES - fusion->output_count);
    for (int i = 0; i < count; i++) {
        if (is_repeated(fusion, found, i))
            continue;
        Affine offset = fused_offset(fusion, &found[i]);
        DataTile tile = flat_tile(space, found[i].access->tensor, offset, fusion);
        tile.scatter = offset_scatter(&offset, found[i].access->tensor, fusion, fast, device);
        for (int r = 0; r < MAX_RUNS && fusion->axis_count == fusion->spatial_count; r++)
            tile.run_points[r] = points_holding(&offset, fusion, (int64_t)1 << r);
        space->tiles[space->tile_count++] = tile;
    }
    for (int i = 0; i < fusion->op_count && space->tile_count < MAX_DATA_TILES; i++) {
        if (!fusion->ops[i].stored)
            continue;
        const Access *store = &fusion->ops[i].store;
        DataTile tile = flat_tile(space, store->tensor, access_offset(store), fusion);
        tile.output = true;
        tile.scatter = access_scatter(store, fusion, fast, device);
        space->tiles[space->tile_count++] = tile;
    }
}

void space_set_lines(TileSpace *space, const Fusion *fusion, const DeviceSpec *device)
{
    FusedAccess found[MAX_DATA_TILES];
    int count = fusion_accesses(fusion, found, MAX_DATA_TILES - fusion->output_count);
    for (int i = 0; i < count; i++) {
        const Access *access = found[i].access;
        Affine offset = fused_offset(fusion, &found[i]);
        DataTile *tile = space_flat_tile(space, fusion, access->tensor, &offset);
        if (tile && !found[i].fetch && tile->element_bits >= 8)
            tile->lines = access_lines(access, fusion, 0, fusion->spatial_count, 1, 1, device);
    }
}

/* Different bytes, in whole transactions, that an access reads in a box of the fusion's axes. */
static double box_bytes(const Access *access, const Fusion *fusion, const int64_t *sizes, const DeviceSpec *device)
{
    double element = dtype_info[access->tensor->dtype].bits / 8.0, bytes = element, elements = 1, points = 1,
           transaction = device->dram.transaction_bytes;
    for (int d = 0; d < access->rank; d++) {
        const Dim *dim = &access->dims[d];
        int64_t reached = smaller(affine_extent(&dim->index, sizes, fusion->axis_count), dim->size), positions = 1;
        for (int a = 0; a < fusion->axis_count; a++)
            positions = dim->index.coef[a] ? fitting_mul(positions, sizes[a]) : positions;
        double found = (double)smaller(positions, reached);
        elements *= found;
        if (d == access->rank - 1 && reached < dim->size) {
            double span = (double)reached * element + transaction - element, apart = found * transaction;
            found = (span < apart ? span : apart) / element;
        }
        bytes *= found;
    }
    for (int a = 0; a < fusion->axis_count; a++)
        points *= access_axes(access) >> a & 1 ? (double)sizes[a] : 1;
    return points < elements ? bytes * points / elements : bytes;   // a tap may move several dimensions
}

/* The points of a block: whole lines, as far as they go. */
static void set_box(int64_t *sizes, const Fusion *fusion, int64_t threads)
{
    for (int a = fusion->spatial_count - 1; a >= 0; a--) {
        sizes[a] = smaller(fusion->axes[a].extent, threads);
        threads = ceil_div(threads, sizes[a]);
    }
}

/* Blocks follow one another on an SM: a tensor that all of them read stays in L1, if it fits beside what each reads alone. */
static bool stays(const Access *access, double all, double own, double room, double share)
{
    double whole = (double)tensor_elements(access->tensor) * dtype_info[access->tensor->dtype].bits / 8;
    return all - own + whole * share <= room;
}

/* The loops from `outer` on read what L1 keeps. Those outside of them read it again, unless no loop moves it. */
static double bytes_again(const Access *access, const Fusion *fusion, int outer)
{
    double again = 1;
    bool moves = access_axes(access) >> fusion->spatial_count;
    for (int a = fusion->spatial_count; a < outer && moves; a++)
        again *= (double)fusion->axes[a].extent;
    return again;
}

/* No two points or terms read the same element: each load of a warp misses L1, which takes a cycle for each line (tuning-log 207). */
static bool is_read_once_in(const Affine *offset, const Fusion *fusion)
{
    for (int a = 0; a < fusion->axis_count; a++)
        if (fusion->axes[a].extent > 1 && !offset->coef[a])
            return false;
    return true;
}

void space_set_loops(TileSpace *space, const Fusion *fusion, const DeviceSpec *device)
{
    FusedAccess found[MAX_DATA_TILES];
    int count = fusion_accesses(fusion, found, MAX_DATA_TILES - fusion->output_count);
    for (int r = 0; r < MAX_RUNS; r++) {
        int64_t sizes[MAX_AXES], threads = (int64_t)device->warp_size << r;
        double share = (double)threads / device->max_threads_per_sm, room = (double)device->shared_per_sm * share;
        double bytes[MAX_DATA_TILES], all;
        int outer = fusion->spatial_count;
        set_box(sizes, fusion, threads);
        for (int a = outer; a < fusion->axis_count; a++)
            sizes[a] = fusion->axes[a].extent;
        for (;; sizes[outer++] = 1) {
            all = 0;
            for (int i = 0; i < count; i++)
                all += bytes[i] = box_bytes(found[i].access, fusion, sizes, device);
            if (all <= room || outer == fusion->axis_count)
                break;
        }
        for (int i = 0; i < count; i++) {
            Affine offset = fused_offset(fusion, &found[i]);
            DataTile *tile = space_flat_tile(space, fusion, found[i].access->tensor, &offset);
            if (!tile || found[i].fetch)
                continue;
            tile->lines = is_read_once_in(&offset, fusion)
                              ? access_lines(found[i].access, fusion, 0, fusion->spatial_count, 1, 1, device)
                              : access_cycles(found[i].access, fusion, -1, 1, 1, device);
            tile->kept |= (uint32_t)stays(found[i].access, all, bytes[i], room, share) << r;
            tile->loop_bytes[r] = bytes[i] * bytes_again(found[i].access, fusion, outer);
        }
    }
}

static DataTile staged_tile(const Tensor *tensor, const Access *access, const Affine *fetched)
{
    DataTile tile = data_tile_of(tensor);
    tile.staged = true;
    if (fetched)
        tile.dims[tile.rank++] = (Dim){*fetched, tensor_elements(tensor)};
    for (int d = 0; d < access->rank && !fetched; d++)
        tile.dims[tile.rank++] = access->dims[d];
    tile.staged_inner = tile.rank ? tile.rank - 1 : 0;
    return tile;
}

void space_add_staged_tiles(TileSpace *space, const Fusion *fusion)
{
    FusedAccess found[MAX_DATA_TILES];
    int count = fusion_accesses(fusion, found, MAX_DATA_TILES - fusion->output_count);
    for (int i = 0; i < count; i++) {
        if (is_repeated(fusion, found, i))
            continue;
        Affine offset = fused_offset(fusion, &found[i]);
        bool fetches = found[i].fetch != NULL;
        space->tiles[space->tile_count++] =
            staged_tile(found[i].access->tensor, found[i].access, fetches ? &offset : NULL);
    }
    for (int i = 0; i < fusion->op_count && space->tile_count < MAX_DATA_TILES; i++) {
        if (!fusion->ops[i].stored)
            continue;
        DataTile tile = staged_tile(fusion->ops[i].store.tensor, &fusion->ops[i].store, NULL);
        tile.output = true;
        space->tiles[space->tile_count++] = tile;
    }
}

uint32_t space_outputs(const TileSpace *space)
{
    uint32_t tiles = 0;
    for (int i = 0; i < space->tile_count; i++)
        tiles |= (uint32_t)space->tiles[i].output << i;
    return tiles;
}

uint32_t space_inputs(const TileSpace *space)
{
    return ((1u << space->tile_count) - 1) & ~space_outputs(space);
}

uint32_t space_along(const TileSpace *space, int axis)
{
    uint32_t tiles = 0;
    for (int i = 0; i < space->tile_count; i++)
        tiles |= (uint32_t)data_tile_depends(&space->tiles[i], axis) << i;
    return tiles;
}

uint32_t space_staged(const TileSpace *space)
{
    uint32_t tiles = 0;
    for (int i = 0; i < space->tile_count; i++)
        tiles |= (uint32_t)space->tiles[i].staged << i;
    return tiles;
}
