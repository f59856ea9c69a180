// The bytes one kernel moves: threads from shared memory, blocks from L2, all of them from DRAM.
#include "model/perf_counts.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "kernel/schedule/count.h"

/* Lines that a warp touches for those of its bytes, or what it reads of memory for them. L1 answers a line's worth of lanes at a
   time: of vectors of 16 bytes eight, which are in four lines where threads of a block are two side by side. */
static double spread(const KernelCounts *kernel, const DataTile *data)
{
    int run = (int)lround(log2((double)kernel->inner->size[data->lines_axis])),
        columns = space_last_spatial(kernel->space, kernel->space->axis_count);
    double lines = run < MAX_RUNS && data->lines_apart[run] > 0 ? data->lines_apart[run] : data->lines,
           lanes = at_most(LINE_BYTES / load_bytes(data), kernel->device->warp_size),
           across = (double)(kernel->shared->size[columns] / kernel->inner->size[columns]);
    return lines > 0 ? lines * (data->across ? at_least(lanes / across, 1) : 1) : at_least(data->scatter, 1);
}

/* Bytes that the threads read or write, in shared memory or through L1, which has the same bandwidth. */
static double thread_read_bytes(const KernelCounts *kernel, const DataTile *data)
{
    double tile_bytes = kernel->kind->registers.input_buffers
                            ? bytes_of(kernel, data)->thread
                            : all_points(kernel->space, kernel->inner) * data->element_bits / 8;
    double scatter = data->staged ? 1 : spread(kernel, data);
    return kernel->block_tiles
         * kernel->register_tiles
         * thread_visits(kernel, data)
         * tile_bytes
         * scatter;
}

/* The same of a staged tile whose family states what its threads read: halos within a tile count for each thread. */
static double read_bytes(const KernelCounts *kernel, int index)
{
    const KernelKind *kind = kernel->kind;
    const DataTile *data = &kernel->space->tiles[index];
    const int64_t first[MAX_AXES] = {0};
    int64_t bytes = COUNT_UNKNOWN;
    if (data->staged && kind->shared_moved)
        bytes = kind->shared_moved(kind, index, false, kernel->shared, kernel->inner, first);
    return bytes == COUNT_UNKNOWN ? thread_read_bytes(kernel, data) : kernel->block_tiles * (double)bytes;
}

/* Share of the padded walk along the tile's axes that lies inside the tensor: loads outside are
   not issued. Of a tile that is wider than its axis only what lies inside was counted. */
static double inside_share(const KernelCounts *kernel, const DataTile *data)
{
    double share = 1;
    for (int a = 0; a < kernel->space->axis_count; a++)
        if (depends(kernel, data, a) && kernel->padded.size[a] > kernel->shared->size[a])
            share *= (double)kernel->space->axes[a].extent / (double)kernel->padded.size[a];
    return share;
}

/* Every block reads the whole tensor, as weights of rows: no spatial axis of it is split across blocks. */
static bool is_for_all_blocks(const KernelCounts *kernel, const DataTile *data)
{
    for (int a = 0; a < kernel->space->axis_count; a++)
        if (!kernel->space->axes[a].reduction && depends(kernel, data, a) &&
            kernel->padded.size[a] > kernel->shared->size[a])
            return false;
    return !data->output && !data->staged;
}

/* Data that every block reads stays in L1 if it fits, in kernels whose blocks load, compute and store once (tuning-log 10). */
static bool stays_in_l1(const KernelCounts *kernel)
{
    double bytes = 0;
    if (kernel->cost->pace != PACE_IN_TURN)
        return false;
    for (int i = 0; i < kernel->space->tile_count; i++)
        if (is_for_all_blocks(kernel, &kernel->space->tiles[i]))
            bytes += kernel->problem->bytes[i];
    return bytes <= kernel->l1_bytes;
}

/* A request for a single sector keeps L2 busy for the time of so many: micro-kernels whose warps load 32 of them. */
static const double REQUEST_SECTORS = 1.5;

static double request_cost(const KernelCounts *kernel, const DataTile *data)
{
    double sector = kernel->device->dram.transaction_bytes;
    return !data->staged && bytes_of(kernel, data)->scatter * data->element_bits / 8 >= sector ? REQUEST_SECTORS : 1;
}

/* Where lanes read side by side a request for a part of a line keeps L2 busy for the time of a line: 32 elements of 16 bits are 64
   bytes of 128, and count twice. Warps that load these read memory at 3.1 to 3.5 TB/s, of 32 bits at 4.3 (tuning-log 255). */
static double line_share(const KernelCounts *kernel, const DataTile *data)
{
    const DeviceSpec *device = kernel->device;
    bool single = data->loop_bytes[0] > 0 || data->lines_apart[0] > 0, vectors = data->vector && data->lines > 0;
    double lane_bytes = single ? data->element_bits / 8.0 : load_bytes(data),
           request = lane_bytes * device->warp_size * bytes_of(kernel, data)->scatter;
    bool side_by_side = (single || vectors) && !data->staged && !kernel->problem->schedule.multiplies;
    return side_by_side && request > device->dram.transaction_bytes ? at_least(device->shared.transaction_bytes / request, 1) : 1;
}

/* A tensor that L1 keeps comes to each SM once at most. */
static double loop_bytes_of(const KernelCounts *kernel, const DataTile *data)
{
    int run = (int)at_most(ceil(log2(kernel->warps)), MAX_RUNS - 1);
    double bytes = kernel->block_tiles * data->loop_bytes[run];
    return data->kept >> run & 1 ? at_most(bytes, kernel->device->sm_count * problem_bytes_of(kernel, data)) : bytes;
}

/* Different bytes of all tensors inside a tile of the axes. */
static double touched_bytes(const KernelCounts *kernel, const RTile *of)
{
    const TileSpace *space = kernel->space;
    double bytes = 0;
    for (int i = 0; i < space->tile_count; i++)
        bytes += data_tile_bytes(&space->tiles[i], of, space->axis_count);
    return bytes;
}

/* What the blocks read until they read the same elements again: all of the problem, unless positions share
   elements. Elements that adjacent tiles share are read again at once, periodic ones after a period. */
static RTile before_again(const KernelCounts *kernel, const DataTile *data, const RTile *wave)
{
    RTile before = kernel->problem->whole;
    for (int d = 0; d < data->rank && d < MAX_REPEATED; d++)
        for (int a = 0; a < kernel->space->axis_count && data->repeats[d].run; a++) {
            const Repeats *repeats = &data->repeats[d];
            if (kernel->space->axes[a].reduction || !data->dims[d].index.coef[a])
                continue;
            int64_t cycle = repeats->again > 1 ? repeats->run * repeats->cycle : 0;
            before.size[a] = cycle > wave->size[a] ? cycle : wave->size[a];
        }
    return before;
}

/* What an SM's blocks read until they read an element of a periodic tensor again fits L1, as scales of channels:
   888 innermost ones of x, a mean, a variance, a scale and a shift are 9 KB in 16 bits. */
static bool period_stays_in_l1(const KernelCounts *kernel, const DataTile *data)
{
    if (data->staged || data->output || data->repeats[0].again <= 1)
        return false;
    RTile before = before_again(kernel, data, kernel->shared);
    return touched_bytes(kernel, &before) <= kernel->l1_bytes;
}

/* Bytes all blocks move between L2 and their tiles. */
static double l2_bytes_of(const KernelCounts *kernel, const DataTile *data)
{
    if (is_for_all_blocks(kernel, data) && stays_in_l1(kernel))
        return at_most(kernel->blocks, kernel->device->sm_count) * problem_bytes_of(kernel, data);
    if (data->loop_bytes[0] > 0)
        return loop_bytes_of(kernel, data);
    /* Each block of a multicast cluster reads its part. */
    bool shared = data->staged && !depends(kernel, data, kernel->kind->schedule->cluster_axis);
    double share = data->staged && kernel->cost->read_share > 0 ? kernel->cost->read_share : 1;
    double bytes = kernel->block_tiles * share / (shared ? kind_multicast(kernel->kind) : 1)
                 * block_visits(kernel, data)
                 * bytes_of(kernel, data)->asked
                 * inside_share(kernel, data)
                 * bytes_of(kernel, data)->scatter * request_cost(kernel, data);
    double each_sm = kernel->device->sm_count * problem_bytes_of(kernel, data);
    return period_stays_in_l1(kernel, data) ? at_most(bytes, each_sm) : bytes;
}

/* The tile of the blocks that run at the same time, and the number of waves. */
typedef struct Wave {
    RTile tile;
    double count;
} Wave;

/* The wave's tile grows along the axis, to at most so many shared tiles; of the blocks that are left those
   remain that each of these stands for. */
static double widen(const KernelCounts *kernel, RTile *wave, int axis, double most, double left)
{
    int64_t extent = kernel->problem->whole.size[axis], block = kernel->shared->size[axis];
    double made = (double)ceil_div(wave->size[axis], block);
    double times = at_most(ceil(left), ceil(at_most((double)ceil_div(extent, block), most) / made));
    double reached = times * made * (double)block;
    wave->size[axis] = reached < (double)extent ? (int64_t)reached : extent;
    return left / times;
}

/* As many shared tiles as are resident: the rows of a panel first, then the last axis, and all of every reduction axis
   (blocks advance along it together, so that L2 serves all but the first). A wave continues the panel of the one before;
   otherwise it begins with a whole row. */
static Wave find_wave(const KernelCounts *kernel)
{
    const TileSpace *space = kernel->space;
    RTile tile = kernel->problem->whole;
    for (int a = 0; a < space->axis_count; a++)
        if (!space->axes[a].reduction && tile.size[a] > kernel->shared->size[a])
            tile.size[a] = kernel->shared->size[a];
    double together = at_most(kernel->resident * kernel->device->sm_count, kernel->blocks), left = together;
    int columns = space_last_spatial(space, space->axis_count);
    if (kernel->panel)
        left = widen(kernel, &tile, space_last_spatial(space, columns), kernel->panel, left);
    for (int a = columns; a >= 0; a = space_last_spatial(space, a))
        left = widen(kernel, &tile, a, INFINITY, left);
    double tiles = rtile_tiles(space, &kernel->padded, &tile, false);
    return (Wave){tile, kernel->panel ? kernel->blocks / together : tiles};
}

/* Share of the bytes read between two reads of an element that L2 holds. What a pass reads again comes in the order of the pass
   before: where half as much again passes in between as L2 holds half of it is left, where twice as much, nothing (tuning-log 255). */
static double hit_share(const KernelCounts *kernel, const DataTile *data, const RTile *wave,
                        double problem_bytes)
{
    double bytes = data->again ? touched_bytes(kernel, wave) : problem_bytes;
    if (data->repeats[0].run || data->repeats[1].run) {
        RTile before = before_again(kernel, data, wave);
        bool all = memcmp(&before, &kernel->problem->whole, sizeof before) == 0;
        bytes = all ? problem_bytes : touched_bytes(kernel, &before);
    }
    double share = (double)kernel->device->l2_bytes / at_least(bytes, 1);
    return at_most(data->again ? at_least(2 - 1 / share, 0) : share, 1);
}

/* Bytes that a wave reads for each one that it uses. */
static double wave_scatter(const KernelCounts *kernel, const DataTile *data, const RTile *wave)
{
    double scatter = at_least(data->scatter, 1);
    if (data->run_points[0] == 0)
        return scatter;
    return at_most(points_spread(data, all_points(kernel->space, wave), kernel->device->dram.transaction_bytes), scatter);
}

/* Lines at the ends of a tile's pieces are asked for by two blocks at about the same time; so many of them come twice. */
static const double ENDS_TWICE = 0.1;   // tuning-log 208

bool is_read_once(const KernelCounts *kernel, const DataTile *data)
{
    const TileSpace *space = kernel->space;
    for (int a = 0; a < space->axis_count; a++)
        if (!space->axes[a].reduction && space->axes[a].extent > 1 && !depends(kernel, data, a))
            return false;
    return true;
}

/* Tiles share no element, but for the edges of windows. */
static bool is_in_one_tile(const KernelCounts *kernel, const DataTile *data)
{
    return data->staged && is_read_once(kernel, data) &&
           problem_bytes_of(kernel, data) >= positions_bytes_of(kernel, data);
}

/* Bytes of an input that come from DRAM:
 *
 *     dram = once + (streamed - once) * (1 - hit)
 *
 *     once      every byte of the tensor, one time
 *     streamed  what all waves ask for, each byte once a wave
 *     hit       see hit_share
 */
static double dram_bytes_of(const KernelCounts *kernel, const DataTile *data, const Wave *wave,
                            double l2_bytes, double hit)
{
    double once = problem_bytes_of(kernel, data);
    if (data->again)
        return once * (1 - hit);
    if (is_in_one_tile(kernel, data))
        return once + ENDS_TWICE * at_least(l2_bytes - once, 0);
    int axes = kernel->space->axis_count;
    double distinct = once / positions_bytes_of(kernel, data);   // overlapping windows share elements
    double wave_bytes = data_tile_bytes(data, &wave->tile, axes) * distinct;
    if (!data->staged)   // of each sector a wave may use a part
        wave_bytes = at_most(wave_bytes * wave_scatter(kernel, data, &wave->tile), once);
    double streamed = at_most(wave->count * wave_bytes, l2_bytes);
    return once + at_least(streamed - once, 0) * (1 - hit);
}

static bool copies_directly(const KernelCounts *kernel)
{
    return kernel->staging_instructions > 0 && kernel->stages > 1 && !kind_passes_registers(kernel->kind, kernel->device);
}

/* Pieces in which four adjacent lanes copy 64 bytes, each of which takes as long as one of all of them: runs of 16 bytes
   are four, of 48 bytes two. A run that begins at an odd multiple of 16 bytes takes twice as long, as half of the runs of
   such lengths do (tuning-log 186, 206). */
static double copied_pieces(const KernelCounts *kernel, const DataTile *data)
{
    const double GROUP_BYTES = 4 * VECTOR_BYTES;
    double run = (double)(data->run ? data->run : data->dims[data->rank - 1].size) * data->element_bits / 8;
    if (run >= GROUP_BYTES && !data->run)
        return 1;
    double shared = (double)greatest_common_divisor((int64_t)run, (int64_t)GROUP_BYTES),
           pieces = 1 + (GROUP_BYTES - (data->run ? shared : run)) / run;
    bool odd = (int64_t)run % kernel->device->dram.transaction_bytes != 0 && run > VECTOR_BYTES;
    return odd ? 1.5 * pieces : pieces;
}

/* What lies side by side is in one slice of L2, which answers a request a clock: copies of four lanes are one, or as many as
   the pieces that L1 makes of them. Where all blocks read the same few lines, their slice is the last to be done: by counters
   such slices were busy for 65 to 83 % of the time, all on average for 24 to 45 % (tuning-log 206). */
static double hottest_slice_us(const KernelCounts *kernel)
{
    const double SLICE_BYTES = 256, GROUP_BYTES = 4 * VECTOR_BYTES;
    double most = 0;
    for (int i = 0; i < kernel->space->tile_count && copies_directly(kernel); i++) {
        const DataTile *data = &kernel->space->tiles[i];
        double parts = 1;
        for (int a = 0; a < kernel->space->axis_count; a++)
            if (!kernel->space->axes[a].reduction && depends(kernel, data, a))
                parts *= (double)ceil_div(kernel->space->axes[a].extent, kernel->shared->size[a]);
        double bytes = at_most(SLICE_BYTES, problem_bytes_of(kernel, data) / parts);
        if (data->staged && !data->output)
            most = at_least(most, kernel->blocks / parts * copied_pieces(kernel, data) * bytes / GROUP_BYTES);
    }
    return most / kernel->device->clock_mhz;
}

/* Time of L1 for what threads copy to shared memory, over that of its bytes. */
static double copy_time(const KernelCounts *kernel, const DataTile *data)
{
    const DeviceSpec *device = kernel->device;
    if (!copies_directly(kernel) || data->vector == 1)
        return 1;
    return copied_pieces(kernel, data) * device->timing.warp_copy_cycles * device->shared.transaction_bytes /
           (device->warp_size * VECTOR_BYTES);
}

/* Bytes all blocks write into shared memory when they stage the tile. */
static double staging_bytes(const KernelCounts *kernel, const DataTile *data)
{
    if (!data->staged)
        return 0;
    return kernel->block_tiles
         * block_visits(kernel, data)
         * bytes_of(kernel, data)->block
         * copy_time(kernel, data);
}

/* Bytes that L1 could bring while it answers the loads of what passes through registers: a warp's load takes the time
   of a line for each run of contiguous elements, however short (tuning-log 168). */
static double loading_bytes(const KernelCounts *kernel, const DataTile *data)
{
    if (!data->staged || !kind_passes_registers(kernel->kind, kernel->device))
        return 0;
    return kernel->block_tiles * block_visits(kernel, data) * inside_share(kernel, data) * bytes_of(kernel, data)->lines;
}

/* Contiguous elements of an output. */
static int64_t row_elements(const DataTile *data) { return data->run ? data->run : data->dims[data->rank - 1].size; }

/* Threads of a tile share its rows. */
static bool shares_rows(const KernelCounts *kernel)
{
    return kind_tile_threads(kernel->kind) == 1 && schedule_in_panels(kernel->kind->schedule);
}

/* Elements of an output that a thread stores with one access. Rows that begin anywhere may be cut where aligned
   accesses begin. Threads that share rows store all of their vector or single elements. */
static double stored_vector(const KernelCounts *kernel, const DataTile *data, int columns)
{
    int64_t most = (int64_t)VECTOR_BYTES * 8 / data->element_bits;
    if (kernel->problem->schedule.cuts_rows)
        return (double)most;
    int64_t whole = greatest_common_divisor(kernel->inner->size[columns], most),
            vector = greatest_common_divisor(whole, row_elements(data));
    return shares_rows(kernel) && vector < whole ? 1 : (double)vector;
}

static bool stores_elements(const KernelCounts *kernel, double vector) { return vector == 1 && shares_rows(kernel); }

/* Contiguous elements that a warp stores at once: a vector for each thread that shares a row, and where these are single
   elements, those of the following accesses, too; or a whole row of the tile, as far as lanes reach, where rows pass through
   shared memory; or that and the next ones, where a tile has whole rows. */
static double stored_run(const KernelCounts *kernel, const DataTile *data, int columns, double vector)
{
    double across = (double)kernel->shared->size[columns], own = (double)kernel->inner->size[columns];
    double most = kernel->device->warp_size * vector;
    bool of_warps = kind_tile_threads(kernel->kind) > 1;
    double lanes = of_warps ? own / vector : across / own;
    bool collected = lanes < kernel->problem->schedule.collecting_lanes;
    double size = (double)row_elements(data);
    if (collected || of_warps)
        return across >= size ? most : collected ? at_most(across, most) : at_most(lanes * vector, most);
    int64_t group = (int64_t)VECTOR_BYTES * 8 / data->element_bits;
    double following = stores_elements(kernel, vector) ? (double)greatest_common_divisor((int64_t)own, group) : 1,
           run = at_most(lanes * vector, most) * following;
    return across >= size && run >= size ? at_least(most, run) : run;
}

/* The axis along which the output is contiguous. */
static int contiguous_axis(const KernelCounts *kernel, const DataTile *data)
{
    for (int a = 0; a < kernel->space->axis_count; a++)
        if (!kernel->space->axes[a].reduction && data->dims[data->rank - 1].index.coef[a] == 1)
            return a;
    return space_last_spatial(kernel->space, kernel->space->axis_count);
}

/* Accesses of L2 for a sector at the end of a run of single elements (tuning-log 184), and for a line of which a warp stores
   single elements (tuning-log 206). */
static const double END_ACCESSES = 4;

/* Sectors that an output's stores keep L2 busy for, over those that it has: a sector of which a part is stored takes
   two accesses, since the rest of it is kept (tuning-log 176). 8 elements of 4 bytes at any alignment touch
   (32 - 4) / 32 + 1 = 1.9 sectors. */
static double busy_sectors(const KernelCounts *kernel, const DataTile *data)
{
    if (!data->rank)
        return 1;   // a lone element is no row
    if (data->parts > 0)
        return data->parts;
    int columns = contiguous_axis(kernel, data);
    int64_t sector = kernel->device->dram.transaction_bytes,
            row_bits = row_elements(data) * data->element_bits;
    double vector = stored_vector(kernel, data, columns), element_bytes = data->element_bits / 8.0,
           run = stored_run(kernel, data, columns, vector) * element_bytes,
           granule = at_least((double)greatest_common_divisor(row_bits, sector * 8) / 8, vector * element_bytes),
           touched = at_least(run - granule, 0) / (double)sector + 1,
           whole = at_least(run + granule - (double)sector, 0) / (double)sector,
           part = stores_elements(kernel, vector) ? END_ACCESSES : 2;
    /* Single elements at both ends of a row that is cut. A row that begins aligned has none there: one of `vector` rows. */
    double ends = kernel->problem->schedule.cuts_rows ? 2 * (1 - 1 / vector) * END_ACCESSES : 0;
    const Move *store = kernel->problem->schedule.last_store;
    if (store && store->accesses > 0)
        return store->accesses;
    if (store && store->lines > 0)
        return END_ACCESSES * store->lines * (double)sector / (kernel->device->warp_size * element_bytes);
    return data->apart && !data->run ? 1 : (part * (touched - whole) + whole + ends) * (double)sector / run;
}

/* A block's pieces of rows that begin anywhere end in sectors whose rest others store at another time: these
   reach memory twice. Micro-kernels: pieces of 128 bytes 1.3 TB/s, of 256 1.8, of 512 2.0. A share of all. */
static double sectors_twice(const KernelCounts *kernel, const DataTile *data)
{
    int64_t sector = 8 * kernel->device->dram.transaction_bytes, row = data->rank ? row_elements(data) : 0;
    if (kind_tile_threads(kernel->kind) == 1 || row * data->element_bits % sector == 0)
        return 0;
    int64_t piece = kernel->shared->size[contiguous_axis(kernel, data)];
    return piece < row ? (double)sector / (double)(piece * data->element_bits) : 0;
}

static void count_stores(KernelCounts *kernel)
{
    for (int i = 0; i < kernel->space->tile_count; i++) {
        const DataTile *data = &kernel->space->tiles[i];
        if (!data->output)
            continue;
        double sectors = busy_sectors(kernel, data);
        kernel->busy_l2_bytes += kernel->problem->bytes[i] * sectors;
        kernel->busy_dram_bytes += kernel->problem->bytes[i] * (sectors + sectors_twice(kernel, data));
    }
}

void estimate_traffic(KernelCounts *kernel, PerfEstimate *perf)
{
    kernel->hottest_us = hottest_slice_us(kernel);
    count_stores(kernel);
    const TileSpace *space = kernel->space;
    Wave wave = find_wave(kernel);
    double problem_bytes = 0;
    for (int i = 0; i < space->tile_count; i++)
        problem_bytes += kernel->problem->bytes[i];
    for (int i = 0; i < space->tile_count; i++) {
        const DataTile *data = &space->tiles[i];
        double l2_bytes = l2_bytes_of(kernel, data);
        if (data->output) {
            perf->l2_store_bytes += l2_bytes;
            perf->dram_store_bytes += kernel->problem->bytes[i];
            if (data->staged || data->lines > 0 || data->lines_apart[0] > 0)
                perf->shared_store_bytes += thread_read_bytes(kernel, data);
        } else {
            double share = line_share(kernel, data), hit = hit_share(kernel, data, &wave.tile, problem_bytes),
                   dram_bytes = dram_bytes_of(kernel, data, &wave, l2_bytes, hit);
            perf->l2_load_bytes += l2_bytes * share;
            perf->dram_load_bytes += dram_bytes;
            perf->line_load_bytes += dram_bytes * share;
            perf->shared_load_bytes += read_bytes(kernel, i) + loading_bytes(kernel, data);
            perf->shared_store_bytes += staging_bytes(kernel, data);
        }
    }
}
