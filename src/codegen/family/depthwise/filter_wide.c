// filter_wide: the gradient of a convolution of many channels, or of groups of many, for its filters on tensor cores that read
// shared memory, where channels are innermost in memory. Bulk copies bring each element once for all taps.

#include "base/checked.h"
#include "codegen/family/depthwise/filter_gradient.h"
#include "codegen/family/depthwise/turn.h"
#include "hal/atoms.h"
#include "hal/launch.h"
#include "model/calibration.h"
#include "rtile/space.h"

enum {
    X_TILE, D_TILE,      // of the space
    SIDE = 64,           // channels and filters of a block: a line of 128 bytes
    EIGHT = 8,           // pixels of a run
    GROUP_WARPS = 4,     // that multiply together
    MOST_COLUMNS = 256,  // of their product
    MOST_GROUPS = 3,     // of warps
    MOST_BOX = 256,      // columns, rows or images
    LEAST_STAGES = 2,
    MOST_STAGES = 4,
    BARRIER_BYTES = 8,
    BANKS = 32,          // of shared memory
    ALIGNMENT = 1024     // of tiles
};

/* The family's choice. */
typedef struct WideWay {
    int stages, rows, images;      // of a step: rows of d in a strip, or whole images
    int products;                  // of a row of taps: phases that have some
    int64_t runs;                  // of eight pixels of d
    int64_t pixels_x;              // of a stage
} WideWay;

// ---- which ones ----

static int64_t image_stride(const Pictures *pictures) { return pictures->row_stride * pictures->rows; }

/* Rows are pixels side by side, images whole rows, and other axes say which image it is or where channels begin in a pixel. */
static bool lies_in_images(const Fusion *fusion, const Depthwise *shape, const Pictures *pictures, const AxisGroup *inner)
{
    Affine form = pictures_form(pictures, shape);
    int64_t pixel = pictures->column_stride, row = pictures->row_stride, image = image_stride(pictures), end = inner->extent;
    if (pixel <= 0 || pixel % EIGHT || row < pictures->columns * pixel || row % EIGHT)
        return false;
    for (int a = 0; a < fusion->axis_count; a++) {
        if (form.coef[a] < 0 || form.coef[a] % EIGHT || (form.coef[a] >= pixel && form.coef[a] % image))
            return false;
        end += form.coef[a] < pixel ? form.coef[a] * (fusion->axes[a].extent - 1) : 0;
    }
    return form.constant == 0 && inner->count == 1 && inner->extent % EIGHT == 0 && end <= pixel &&
           axis_group_stride(inner, pictures->offset) == 1 && tensor_elements(pictures->access->tensor) % image == 0;
}

/* Channels of several groups lie side by side, or no lines are whole: `bulk` serves the others, whose larger tiles are faster
   (tuning-log 226). */
static bool is_narrow(const FilterGradient *gradient)
{
    const Depthwise *shape = &gradient->shape;
    return shape->batch.extent < gradient->x.column_stride || shape->batch.extent % SIDE != 0;
}

static bool takes(const Fusion *fusion, const FilterGradient *gradient, const DeviceSpec *device)
{
    const Depthwise *shape = &gradient->shape;
    const Atom *atom = gradient->shared_atom;
    return atom && atom->place == IN_SHARED && device->has.bulk_tensor_copy && is_narrow(gradient) &&
           gradient->x.columns % gradient->along.stride == 0 &&
           dtype_info[gradient->x.access->tensor->dtype].bits == 16 && SIDE * gradient->along.taps <= MOST_COLUMNS &&
           lies_in_images(fusion, shape, &gradient->x, &shape->batch) &&
           lies_in_images(fusion, shape, &gradient->d, &shape->multiplier);
}

// ---- tiles ----

static int64_t blocks_of(const FilterGradient *gradient)
{
    const Depthwise *shape = &gradient->shape;
    return shape->channel.extent * ceil_div(shape->batch.extent, SIDE) * ceil_div(shape->multiplier.extent, SIDE);
}

static int64_t strips_of(const FilterGradient *gradient, const WideWay *way) { return ceil_div(gradient->d.rows, way->rows); }

static int64_t runs_of(const FilterGradient *gradient, int64_t rows) { return rows * ceil_div(gradient->d.columns, EIGHT); }

/* Columns of a phase of x: of one in so many. */
static int64_t span_of(const FilterGradient *gradient)
{
    const WindowAxis *along = &gradient->along;
    int64_t begin = floor_div(-along->pad, along->stride) * along->stride;
    return gradient->d.columns + ((along->taps - 1) * along->dilation - along->pad - begin) / along->stride;
}

/* Of x, with those behind the last row that padded columns of d meet. */
static int64_t lines_x(const FilterGradient *gradient, const WideWay *way)
{
    return round_up(way->pixels_x + round_up(gradient->d.columns, EIGHT) - gradient->d.columns, EIGHT);
}

/* Padding behind sums of a tap, and of rows of them, leaves lanes in different banks. */
static int64_t sum_bytes(const FilterGradient *gradient)
{
    return SIDE * (round_up(gradient->down.taps * gradient->along.taps * (SIDE + 4), BANKS) + EIGHT) * 4;
}

static int64_t shared_bytes(const FilterGradient *gradient, const WideWay *way)
{
    int64_t stage = (lines_x(gradient, way) + way->runs * EIGHT) * MAP_LINE_BYTES;
    return larger(way->stages * stage, sum_bytes(gradient)) + 2 * way->stages * BARRIER_BYTES + ALIGNMENT;
}

static bool set_step(const FilterGradient *gradient, WideWay *way, int64_t images, int64_t rows, int64_t room)
{
    int64_t lines = window_reach(&gradient->down, rows);
    way->images = (int)images, way->rows = (int)rows;
    way->runs = images * runs_of(gradient, rows);
    way->pixels_x = images * lines * gradient->along.stride * span_of(gradient);
    return way->runs % 2 == 0 && images <= MOST_BOX && lines <= MOST_BOX && span_of(gradient) <= MOST_BOX &&
           gradient->along.stride <= MOST_BOX &&
           shared_bytes(gradient, way) <= room;
}

/* As many images as fit, of which there are whole steps; or else the highest strips. */
static bool find_step(const FilterGradient *gradient, WideWay *way, int64_t room)
{
    int64_t all = gradient->shape.summed.extent, rows = gradient->d.rows;
    for (int64_t steps = 1; steps <= all; steps++)
        if (all % steps == 0 && all / steps <= MOST_BOX && set_step(gradient, way, all / steps, rows, room))
            return true;
    for (int64_t strips = 2; strips <= rows; strips++)
        if (set_step(gradient, way, 1, ceil_div(rows, strips), room))
            return true;
    return false;
}

// ---- the schedule ----

/* One of the warps that multiply starts the copies. */
static Schedule *schedule_of(Arena *arena, const Fusion *fusion, const FilterGradient *gradient, const TileSpace *space,
                             const WideWay *way)
{
    Schedule schedule = {.computes = COMPUTES_OWN, .stages = way->stages};
    uint32_t inputs = 1u << X_TILE | 1u << D_TILE;
    int64_t zeros = way->stages * (lines_x(gradient, way) - way->pixels_x) * MAP_LINE_BYTES;
    if (zeros)
        schedule_store(&schedule, (Move){.to = PLACE_SHARED, .bytes = (int32_t)zeros});
    schedule_barrier(&schedule, SCOPE_BLOCK);
    schedule_role(&schedule, WARPS_COPY);
    schedule_loop(&schedule, (Loop){.axis = SUMMED});
    schedule_loop(&schedule, (Loop){.axis = DOWN_TAP});
    schedule_wait(&schedule, 0);
    schedule_load(&schedule, (Move){.tiles = inputs, .to = PLACE_SHARED, .async = true, .ahead = (uint8_t)(way->stages - 1)});
    schedule_end(&schedule);
    schedule_end(&schedule);
    schedule_role(&schedule, WARPS_COMPUTE);
    schedule_loop(&schedule, (Loop){.axis = SUMMED});
    schedule_loop(&schedule, (Loop){.axis = DOWN_TAP});
    schedule_wait(&schedule, 0);
    schedule_load(&schedule, (Move){.tiles = inputs, .from = PLACE_SHARED});
    schedule_reduce(&schedule, schedule_ops(fusion, true));
    schedule_end(&schedule);
    schedule_end(&schedule);
    schedule_barrier(&schedule, SCOPE_BLOCK);
    schedule_exchange(&schedule, (Exchange){.ops = schedule_ops(fusion, true),
                                            .scope = SCOPE_BLOCK,
                                            .combine = COMBINE_NOTHING,
                                            .value_bytes = 4});
    schedule_load(&schedule, (Move){.tiles = space_inputs(space) & ~inputs});
    schedule_map(&schedule, schedule_ops(fusion, false));
    schedule_store(&schedule, (Move){.tiles = space_outputs(space)});
    return schedule_copy(arena, &schedule);
}

/* Of d each warp group reads SIDE filters for each product, of x as many channels under each tap of a row; copies bring whole
   boxes. */
static int64_t shared_moved(const KernelKind *kind, int tile, bool written, const RTile *block, const RTile *inner,
                            const int64_t *first)
{
    const WideWay *way = kind->choice.value;
    const TileSpace *space = kind->space;
    (void)block, (void)inner, (void)first;
    int64_t steps = space->axes[SUMMED].extent / way->images * ceil_div(space->axes[DOWN_TAP].extent, way->rows);
    if (tile > D_TILE)
        return 0;
    if (written)
        return steps * (tile == X_TILE ? way->pixels_x : way->runs * EIGHT) * MAP_LINE_BYTES;
    int64_t lines = tile == X_TILE ? space->axes[ALONG].extent : way->products;   // for each pixel
    return steps * way->runs * EIGHT * MAP_LINE_BYTES * space->axes[DOWN].extent * lines;
}

static bool work_of(const void *view, const CountedItem *at, ItemWork *work)
{
    const FilterGradient *gradient = ((const DepthwiseView *)view)->grouped;
    const WideWay *way = at->kind->choice.value;
    int64_t sums = SIDE * SIDE * gradient->down.taps * gradient->along.taps;
    if (at->item->kind == ITEM_EXCHANGE && at->item->exchange.ops) {
        work->shared_written = sums * 4;
        work->shared_read = sums / SIDE * at->count[MULTIPLIER] * 4;
        return true;
    }
    if (at->item->kind != ITEM_REDUCE)
        return false;
    work->tensor_products = way->runs * EIGHT * sums * at->times;
    return true;
}

// ---- kinds ----

static KernelKind kind_of(Arena *arena, const FilterGradient *gradient, const Fusion *fusion, const DeviceSpec *device,
                          const WideWay *way)
{
    enum { OTHERS = 40 };   // registers
    const Depthwise *shape = &gradient->shape;
    KernelKind kind = {.name = filter_wide_family.variants[0],
                       .cost = &calibration.bulk,
                       .space = space_new(arena, fusion),
                       .threads.of_tile = GROUP_WARPS * device->warp_size * (int)gradient->down.taps,
                       .shared_moved = shared_moved,
                       .registers = {.input_buffers = 1,
                                     .most_inputs = 1,
                                     .others = OTHERS + (int)gradient->along.taps * SIDE / 2}};
    kind_choose(arena, &kind, way, sizeof *way);
    layout_add(&kind.shared, "EVERYTHING", shared_bytes(gradient, way));
    kind.space->unit = gradient->shared_atom->unit;
    int64_t steps = gradient->shape.summed.extent / way->images * strips_of(gradient, way);
    kind.space->flops = 2 * (double)(steps * way->runs * EIGHT) /
                        (double)(shape->summed.extent * gradient->d.rows * gradient->d.columns);
    const int64_t block[] = {
        [CHANNEL] = 1, [MULTIPLIER] = SIDE, [BATCH] = SIDE, [DOWN_TAP] = way->rows, [SUMMED] = way->images};
    filter_groups_set_space(kind.space, fusion, gradient, block);
    kind.schedule = schedule_of(arena, fusion, gradient, kind.space, way);
    return kind;
}

static int kinds(Arena *arena, const void *view, const Fusion *fusion, const DeviceSpec *device, KernelKind *variants)
{
    const FilterGradient *gradient = ((const DepthwiseView *)view)->grouped;
    int count = 0;
    if (!gradient || !takes(fusion, gradient, device))
        return 0;
    int64_t pixels = size_product(gradient->d.rows * gradient->d.columns, gradient->shape.summed.extent);
    const WindowAxis *along = &gradient->along;
    int64_t apart = along->dilation % along->stride == 0 ? 1 : along->stride;
    WideWay way = {.products = (int)smaller(apart, along->taps)};
    int64_t room = device->shared_per_sm - device->shared_reserved_per_block;
    for (way.stages = LEAST_STAGES; way.stages <= MOST_STAGES && pixels <= MAX_CHAIN; way.stages++)
        if (gradient->down.taps <= MOST_GROUPS && find_step(gradient, &way, room))
            variants[count++] = kind_of(arena, gradient, fusion, device, &way);
    return count;
}

/* A block for each SM: sums of some images, whose channels are made innermost. */
static Rewritten *parts_of_images(Arena *arena, const void *view, const Fusion *fusion, const Target *target)
{
    Rewritten *rewritten = turn_planes_of_groups.make(arena, view, fusion, target);
    if (rewritten)
        view = depthwise_view(arena, fusion = rewritten->main, target);
    else
        rewritten = NEW(arena, Rewritten);
    const FilterGradient *gradient = view ? ((const DepthwiseView *)view)->grouped : NULL;
    if (!gradient || !takes(fusion, gradient, target->device))
        return NULL;
    int64_t images = gradient->shape.summed.extent, parts = smaller(target->device->sm_count / blocks_of(gradient), images);
    while (parts > 1 && images % parts)
        parts--;
    FusionPair *pair = parts > 1 ? fusion_split(arena, fusion, parts) : NULL;
    if (!pair)
        return NULL;
    rewritten->main = pair->partial;
    rewritten->behind[rewritten->behind_count++] = pair->final;
    rewritten->definitions[rewritten->definition_count++] = pair->definition;
    return rewritten;
}

// ---- the kernel ----

/* From channels outwards to images; columns in so many phases. */
static TensorMap map_of(const KernelPlan *plan, const Pictures *pictures, int64_t phases, int64_t columns, int64_t rows,
                        int64_t images)
{
    int64_t element = pictures_bytes(pictures), pixel = pictures->column_stride, image = image_stride(pictures);
    return (TensorMap){
        .arg = input_position(plan->fusion, pictures->access->tensor),
        .rank = MAX_MAP_RANK,
        .element_bytes = (int)element,
        .sizes = {pixel, pictures->columns / phases, phases, pictures->rows, tensor_elements(pictures->access->tensor) / image},
        .strides = {phases * pixel * element, pixel * element, pictures->row_stride * element, image * element},
        .box = {SIDE, (int)columns, (int)phases, (int)rows, (int)images},
    };
}

static int maps(const KernelPlan *plan, TensorMap *maps)
{
    const FilterGradient *gradient = ((const DepthwiseView *)plan->view)->grouped;
    const WideWay *way = plan->kind->choice.value;
    maps[X_TILE] = map_of(plan, &gradient->x, gradient->along.stride, span_of(gradient),
                          window_reach(&gradient->down, way->rows), way->images);
    maps[D_TILE] = map_of(plan, &gradient->d, 1, round_up(gradient->d.columns, EIGHT), way->rows, way->images);
    return 2;
}

static void emit(StrBuf *out, const KernelPlan *plan)
{
    const FilterGradient *gradient = ((const DepthwiseView *)plan->view)->grouped;
    const WideWay *way = plan->kind->choice.value;
    strbuf_printf(out, "using Element = %s;   // of x and d\nusing Value = float;   // of products and sums\n",
                  gradient->shared_atom->element);
    filter_gradient_emit_sizes(out, gradient);
    filter_gradient_emit_steps(out, gradient);
    CONSTEXPR(out, "Index IMAGE_X, IMAGE_D", "elements from one image to the next", image_stride(&gradient->x),
              image_stride(&gradient->d));
    CONSTEXPR(out, "int CHANNELS, FILTERS", "of a group", gradient->shape.batch.extent, gradient->shape.multiplier.extent);
    CONSTEXPR(out, "bool TAPS_INSIDE", "results of all taps are adjacent",
              axis_group_innermost(&gradient->shape.batch) < gradient->along.tap);
    CONSTEXPR(out, "int BD, BATCH", "rTile, block: rows of d and images in a step", way->rows, way->images);
    CONSTEXPR(out, "int STAGES", "of the pipeline along the pixels", way->stages);
    filter_gradient_emit_functions(out, plan, gradient);
}

static const Rewrite in_parts = {.make = parts_of_images};

const Family filter_wide_family = {
    .name = "filter_wide",
    .template_path = "templates/filter_wide.cu",
    .variants = (const char *const[]){"taps", NULL},
    .view = depthwise_view,
    .rewrites = (const Rewrite *const[]){&turn_planes_of_groups, &in_parts, NULL},
    .kinds = kinds,
    .emit = emit,
    .maps = maps,
    .work = work_of,
};
