// attention_bulk: a softmax between two products on tensor cores that read shared memory. One thread copies boxes of q, k
// and v there (TMA) while warp groups multiply.

#include <string.h>

#include "codegen/family/attention/attention.h"
#include "codegen/family/attention/families.h"
#include "model/calibration.h"
#include "rtile/space.h"

enum {
    GROUP_WARPS = 4,
    GROUP_ROWS = 64,
    LINE = 64,
    BARRIER_BYTES = 8,
    ALIGNMENT = 1024,
    PIECE_BYTES = 16,   // that strides are multiples of
    SLAB_OTHERS = 8 + 3,   // floats of a row in a slab beside its sums: padding, and its values
    BESIDE = 3,   // behind q, k and v: what is read for each score
    OTHER_REGISTERS = 32,
    BESIDE_REGISTERS = 16,
    MOST_LINES = 1 << 30,  // positions of boxes are numbers of 32 bits
    MOST_WAYS = 12         // limit of the search: more gained at most 1 % (tuning-log 271)
};

/* Registers of a consumer thread, by the number of consumer groups beside the producer's. */
static const int group_registers[] = {0, 0, 240, 160, 112};

static const struct {
    int16_t groups, columns, splits;
} tiles[] = {{2, 64, 1},  {2, 128, 1}, {2, 192, 1}, {3, 64, 1},
             {3, 128, 1}, {2, 64, 2},  {3, 64, 3},  {4, 64, 4}};

// ---- how a factor lies in memory ----

/* Along depth or width, so many elements apart; what the batch adds to where a line begins, and to which plane
   of lines it is, of planes that lie `plane` elements apart. */
typedef struct BoxLines {
    int64_t line, plane;
    int64_t elements, planes;
    Affine begin, which;
} BoxLines;

/* The driver takes strides below 2^40 bytes, whole pieces of 16. */
static bool is_legal(int64_t stride, int bytes)
{
    return stride > 0 && stride < ((int64_t)1 << 40) / bytes && stride * bytes % PIECE_BYTES == 0;
}

static const AxisGroup *line_group(const Attention *attention, int factor)
{
    return &attention->group[factor == 0 || factor == BESIDE ? ATTENTION_ROW : ATTENTION_COLUMN];
}

static const AxisGroup *element_group(const Attention *attention, int factor)
{
    return &attention->group[factor == BESIDE ? ATTENTION_COLUMN : factor == 2 ? ATTENTION_WIDTH : ATTENTION_DEPTH];
}

static const Access *access_of(const Attention *attention, int factor)
{
    return factor == 0 ? attention->q : factor == 1 ? attention->k : factor == 2 ? attention->v : attention->beside;
}

static int element_bytes(const Attention *attention, int factor)
{
    return dtype_info[access_of(attention, factor)->tensor->dtype].bits / 8;
}

/* Heads side by side in a line, [b, i, h, d], are whole lines of 128 bytes each: else a box would end in the
   next head. A factor may begin inside its lines, as k does where one product has made q, k and v. */
static bool find_lines(const Fusion *fusion, const Attention *attention, int factor, BoxLines *lines)
{
    const AxisGroup *batch = &attention->group[ATTENTION_BATCH], *group = line_group(attention, factor);
    Affine offset = access_offset(access_of(attention, factor));
    int64_t elements = element_group(attention, factor)->extent;
    *lines = (BoxLines){.elements = elements, .planes = 1};
    int bytes = element_bytes(attention, factor);
    lines->line = group->count ? offset.coef[axis_group_innermost(group)] : elements;
    if (factor == BESIDE && lines->line == 0)   // of one row
        lines->line = round_up(elements * bytes, PIECE_BYTES) / bytes;
    for (int i = 0; i < batch->count; i++) {
        int64_t stride = offset.coef[batch->axes[i]];
        if (stride < 0)
            return false;
        if (stride >= lines->line && (!lines->plane || stride < lines->plane))
            lines->plane = stride;
    }
    for (int i = 0; i < batch->count; i++) {
        int axis = batch->axes[i];
        int64_t stride = offset.coef[axis], last = fusion->axes[axis].extent - 1;
        if (stride >= lines->line) {
            lines->which.coef[axis] = stride / lines->plane;
            lines->planes += last * lines->which.coef[axis];
        } else {
            lines->begin.coef[axis] = stride;
            lines->elements += last * stride;
        }
        if (stride >= lines->line ? stride % lines->plane != 0 : stride > 0 && elements % LINE != 0)
            return false;
    }
    if (!lines->plane)
        lines->plane = lines->line * group->extent;
    lines->begin.constant = offset.constant;
    lines->elements += offset.constant;
    bool begins = offset.constant == 0 || (offset.constant > 0 && lines->elements <= lines->line);
    return begins && is_legal(lines->line, bytes) && is_legal(lines->plane, bytes) && group->extent < MOST_LINES &&
           lines->planes < MOST_LINES && lines->elements < MOST_LINES;
}

static bool has_lines(const Fusion *fusion, const Attention *attention)
{
    BoxLines lines;
    if (attention->bound || attention->piece < ATTENTION_PIECE)   // boxes would cross the end of the tensor
        return false;
    for (int factor = 0; factor < 3; factor++)
        if (!find_lines(fusion, attention, factor, &lines))
            return false;
    return true;
}

// ---- kinds ----

static int64_t in_lines(int64_t elements) { return ceil_div(elements, LINE); }

static int64_t block_rows(const AttentionTile *tile)
{
    return (int64_t)tile->groups / tile->splits * GROUP_ROWS;
}

/* As Shared of the template: groups that split the columns leave their sums in place of tiles. What is read for each score lies
   behind. */
static int64_t tile_bytes(const AttentionTile *tile)
{
    int64_t q = block_rows(tile) * in_lines(tile->depth),
            step = tile->splits * tile->columns * (in_lines(tile->depth) + in_lines(tile->width)),
            barriers = 3 * 2 * tile->stages * tile->splits + tile->groups;
    int64_t bytes = (tile->q_stages * q + tile->stages * step) * MAP_LINE_BYTES + barriers * BARRIER_BYTES,
            piece = larger(tile->staged_rows * MAP_LINE_BYTES, ALIGNMENT),
            beside = tile->stages * tile->splits * tile->columns * tile->staged / MAP_LINE_BYTES * piece;
    return (beside ? round_up(bytes, ALIGNMENT) + beside : bytes) + ALIGNMENT;
}

/* One thread copies boxes as far ahead as there are stages. Groups and blocks that split the columns compute one tile of y. */
static Schedule *schedule_of(Arena *arena, const Fusion *fusion, const Attention *attention,
                             const TileSpace *space, const AttentionTile *tile)
{
    bool is_split = tile->splits > 1, turns = tile->splits * tile->cluster == 1;
    int steps = is_split ? (int)ceil_div(attention->group[ATTENTION_COLUMN].extent, tile->columns) : 0;
    const Loop copied = {.axis = ATTENTION_COLUMN, .times = steps, .dealt = (int8_t)tile->splits},
               made = {.axis = ATTENTION_COLUMN, .times = steps / tile->splits, .dealt = 1};   // last group
    Schedule schedule = {.computes = COMPUTES_OWN, .stages = tile->stages, .cluster = tile->cluster};
    schedule.cluster_axis = ATTENTION_COLUMN;
    if (attention_is_longest_last(attention))
        schedule.order = ORDER_BACKWARDS;
    schedule_barrier(&schedule, SCOPE_BLOCK);
    schedule_role(&schedule, WARPS_COPY);
    if (turns)
        schedule_loop(&schedule, (Loop){.tiles = true});
    schedule_wait(&schedule, 0);
    schedule_load(&schedule, (Move){.tiles = ATTENTION_Q, .to = PLACE_SHARED, .async = true});
    schedule_loop(&schedule, copied);
    schedule_wait(&schedule, 0);   // until the stages of k and of v are free
    schedule_wait(&schedule, 0);
    schedule_load(&schedule, (Move){.tiles = space_staged(space) & ~(uint32_t)ATTENTION_Q, .to = PLACE_SHARED,
                                    .async = true, .ahead = (uint8_t)(tile->stages - 1)});
    schedule_end(&schedule);
    if (turns)
        schedule_end(&schedule);
    schedule_role(&schedule, WARPS_COMPUTE);
    if (turns)
        schedule_loop(&schedule, (Loop){.tiles = true});
    schedule_wait(&schedule, 0);
    schedule_loop(&schedule, made);
    schedule_wait(&schedule, 0);   // for k, for v, for the other groups
    schedule_wait(&schedule, 0);
    if (!is_split)
        schedule_wait(&schedule, 0);
    attention_schedule_step(&schedule, fusion, attention, space, GROUP_ROWS / GROUP_WARPS, false);
    schedule_end(&schedule);
    for (int i = tile->cluster > 1; i < 2 && !turns; i++)   // slabs replace tiles; a block alone reads them
        schedule_barrier(&schedule, SCOPE_BLOCK);
    attention_schedule_store(&schedule, fusion, attention, space, GROUP_ROWS / GROUP_WARPS,
                             tile->cluster > 1 ? SCOPE_CLUSTER : is_split ? SCOPE_BLOCK : SCOPE_WARP, !turns);
    if (turns)
        schedule_end(&schedule);
    return schedule_copy(arena, &schedule);
}

/* What is read for each score comes in boxes, or as words of bits, which do not count. */
static void read_beside(TileSpace *space, const Attention *attention, const AttentionTile *tile)
{
    for (int i = BESIDE; i < space->tile_count; i++) {   // behind the tiles of q, k and v
        DataTile *data = &space->tiles[i];
        if (data->output || strcmp(data->name, attention->beside->tensor->name) != 0)
            continue;
        data->staged = tile->staged;
        data->staged_inner = data->rank - 1;
        data->lines = 0;
    }
}

/* Registers for scores, for p of the step before, and for a prefetched bias, with which 64 x 1024 x 64 took 134 us with
   three groups and 110 with two. */
static int step_registers(const AttentionTile *tile)
{
    return tile->columns / 2 + tile->parts * tile->columns / 4 + OTHER_REGISTERS +
           (tile->beside ? BESIDE_REGISTERS : 0);
}

/* The whole budget of a warp group: an SM has one block. */
static int64_t taken_registers(const KernelKind *kind, const RTile *block, const RTile *inner,
                               RegisterBudget budget)
{
    (void)block, (void)inner, (void)budget;
    const AttentionTile *tile = kind->choice.value;
    return group_registers[tile->groups];
}

static KernelKind tile_kind(Arena *arena, const TileSpace *space, const Fusion *fusion, const DeviceSpec *device,
                            const Attention *attention, const AttentionTile *tile)
{
    KernelKind kind = {
        .space = space_copy(arena, space),
        .threads.of_tile = GROUP_WARPS * device->warp_size,
        .threads.most = tile->groups * GROUP_WARPS * device->warp_size,
        .threads.least = tile->groups * GROUP_WARPS * device->warp_size,
        .registers.accumulator_bits = 32,
        .registers.input_buffers = 1,
        .registers.most_inputs = 1,
        .registers.others = step_registers(tile),
        .registers.taken = taken_registers,
        .cost = &calibration.attention_bulk,
        .shared.unstated = true,
    };
    layout_add(&kind.shared, "EVERYTHING", tile_bytes(tile));
    kind_choose(arena, &kind, tile, sizeof *tile);
    if (tile->staged || tile->bits)
        read_beside(kind.space, attention, tile);
    attention_set_axes(&kind, tile, block_rows(tile));
    kind.space->least_reducers = tile->splits > 1;
    kind.schedule = schedule_of(arena, fusion, attention, kind.space, tile);
    return kind;
}

/* Do its accumulators and p fit in registers, and its tiles in shared memory? Blocks and groups that split the columns have
   a step each, and slabs where tiles lay. A second wave overlaps with nothing: half as many blocks find an SM each. */
static bool fits(const Attention *attention, const AttentionTile *tile, const DeviceSpec *device)
{
    int64_t width = in_lines(tile->width) * LINE, ways = (int64_t)tile->splits * tile->cluster;
    int64_t tiles_of_rows = ceil_div(attention->group[ATTENTION_ROW].extent, block_rows(tile)),
            blocks = larger(tile->cluster / 2, 1) * tiles_of_rows * attention->group[ATTENTION_BATCH].extent;
    AttentionTile alone = *tile;
    alone.staged = 0;   // slabs do not reach what lies behind the tiles
    int64_t slabs = tile->splits * block_rows(tile) * (width + SLAB_OTHERS) * (int64_t)sizeof(float);
    return width / 2 + step_registers(tile) <= group_registers[tile->groups] &&
           tile_bytes(tile) <= device->shared_per_block_optin &&
           (ways == 1 || (ways <= MOST_WAYS && (ways - 1) * tile->columns < attention->group[ATTENTION_COLUMN].extent &&
                          blocks <= device->sm_count && slabs + ALIGNMENT <= tile_bytes(&alone)));
}

static int kinds(Arena *arena, const void *view, const Fusion *fusion, const DeviceSpec *device,
                 KernelKind *variants)
{
    const Attention *attention = view;
    if (!device->has.bulk_tensor_copy || !attention->shared || !has_lines(fusion, attention))
        return 0;
    TileSpace *space = attention_space(arena, fusion, attention, attention->shared);
    BoxLines lines;
    bool bits = attention->beside && attention->beside->tensor->dtype == DTYPE_B1,
         stages = attention->beside && !bits && find_lines(fusion, attention, BESIDE, &lines),
         by_rows = attention->beside && access_axes(attention->beside) & axis_group_mask(line_group(attention, 0));
    int count = 0;
    for (int variant = 0; attention_bulk_family.variants[variant]; variant++) {
        AttentionTile tile = {
            .rows = GROUP_ROWS,
            .columns = tiles[variant].columns,
            .depth = (int16_t)attention->group[ATTENTION_DEPTH].extent,
            .width = (int16_t)attention->group[ATTENTION_WIDTH].extent,
            .stages = 2,
            .q_stages = tiles[variant].splits == 1 ? 2 : 1,
            .groups = tiles[variant].groups,
            .splits = tiles[variant].splits,
            .cluster = 1,
            .kept_rows = GROUP_ROWS,
            .parts = (int16_t)attention->parts,
            .beside = bits || attention_reads_beside(fusion, attention, stages ? attention->beside : NULL),
            .bits = bits,
            .staged = (int16_t)(stages ? element_bytes(attention, BESIDE) : 0),
        };
        tile.staged_rows = (int16_t)(by_rows ? block_rows(&tile) : 1);
        bool borders = attention->masks || attention->group[ATTENTION_COLUMN].extent % tile.columns != 0;
        tile.beside |= tile.staged && borders;
        if (!fits(attention, &tile, device))
            tile.q_stages = 1;
        if (!fits(attention, &tile, device) && stages)
            tile.staged = 0, tile.beside = true;
        if (!fits(attention, &tile, device) && tile.splits > 1)
            tile.stages = 1;
        int64_t most = device_portable_cluster_blocks(device);
        for (; tile.cluster <= most && fits(attention, &tile, device); tile.cluster *= 2) {
            variants[count] = tile_kind(arena, space, fusion, device, attention, &tile);
            variants[count++].name = attention_bulk_family.variants[variant];
            tile.q_stages = 1;   // of clusters, which make one tile
        }
    }
    return count;
}

// ---- the kernel ----

static int maps(const KernelPlan *plan, TensorMap *maps)
{
    const Attention *attention = plan->view;
    const AttentionTile *tile = plan->kind->choice.value;
    int count = tile->staged ? BESIDE + 1 : BESIDE;
    for (int factor = 0; factor < count; factor++) {
        BoxLines lines;
        int bytes = element_bytes(attention, factor);
        find_lines(plan->fusion, attention, factor, &lines);
        maps[factor] = (TensorMap){
            .arg = input_position(plan->fusion, access_of(attention, factor)->tensor),
            .rank = 3,
            .element_bytes = bytes,
            .sizes = {lines.elements, factor == BESIDE && tile->staged_rows == 1 ? 1 : line_group(attention, factor)->extent, lines.planes},
            .strides = {lines.line * bytes, lines.plane * bytes},
            .box = {MAP_LINE_BYTES / bytes, factor == 0 ? (int)block_rows(tile) : factor == BESIDE ? tile->staged_rows : tile->columns, 1},
        };
    }
    return count;
}

/* `{0, batch}`: where a batch begins. */
static const char *corner_of(Arena *arena, const Scope *scope, const BoxLines *lines)
{
    const char *form = scope->wide ? "{(int)(%s), (int)(%s)}" : "{%s, %s}";
    return arena_printf(arena, form, affine_text(arena, &lines->begin, scope->axis),
                        affine_text(arena, &lines->which, scope->axis));
}

static void emit_work(StrBuf *out, const Scope *scope, const Attention *attention, bool stages)
{
    BoxLines lines[BESIDE + 1];
    uint32_t axes = 0;
    int count = stages ? BESIDE + 1 : BESIDE;
    for (int factor = 0; factor < count; factor++) {
        find_lines(scope->fusion, attention, factor, &lines[factor]);
        axes |= affine_axes(&lines[factor].begin) | affine_axes(&lines[factor].which);
    }
    strbuf_puts(out, "// A tile of Y, where its batch begins in Q, K and V, and the columns that any of its rows needs and that all need.\n"
                     "struct Corner { int x, z; };   // an element of a line, and a plane\n");
    strbuf_printf(out, "struct Work { Index batch, row0; Corner q, k, v%s; Index begin, end, clear_begin, clear_end; };\n"
                       "DEVICE Work work_of(Index batch, Index row0)\n{\n", stages ? ", beside" : "");
    const char *columns = attention_emit_columns(out, scope, attention, axes);
    strbuf_puts(out, "    return {batch, row0");
    for (int factor = 0; factor < count; factor++)
        strbuf_printf(out, ", %s", corner_of(out->arena, scope, &lines[factor]));
    strbuf_printf(out, ",\n            %s};\n}\n", columns);
}

/* Scope.loaded: `widen(beside)` */
static const char *beside_text(void *context, const Expr *expr)
{
    const Access *beside = ((const Attention *)context)->beside;
    if (expr->kind != EXPR_ACCESS || expr->access.tensor != beside->tensor || expr->access.dims != beside->dims)
        return NULL;
    return beside->tensor->dtype == DTYPE_B1 ? "bit" : beside->tensor->dtype == DTYPE_F32 ? "beside" : "widen(beside)";
}

/* The word of a row that begins with a column. */
static void emit_word(StrBuf *out, const Scope *scope, const Attention *attention)
{
    const Access *beside = attention->beside;
    uint32_t groups = 1u << ATTENTION_BATCH | 1u << ATTENTION_ROW | 1u << ATTENTION_COLUMN;
    StrBuf body = strbuf_new(out->arena);
    attention_emit_positions(&body, "    ", scope, attention, groups, access_axes(beside));
    strbuf_printf(&body, "    return t.in%d[(%s) / 32];\n", input_position(scope->fusion, beside->tensor),
                  offset_text(out->arena, beside, scope->axis));
    attention_emit_function(out, "DEVICE unsigned word_beside(const Tensors &t, Index batch, Index row, Index column)", &body);
}

static void emit(StrBuf *out, const KernelPlan *plan)
{
    const Attention *attention = plan->view;
    const AttentionTile *tile = plan->kind->choice.value;
    Scope scope = attention_scope(plan);
    if (tile->staged || tile->bits)
        scope.loaded = beside_text, scope.context = (void *)attention;
    strbuf_printf(out, "using Beside = %s;   // of what is read for each score\n",
                  dtype_info[(tile->staged ? attention->beside : attention->q)->tensor->dtype].cuda);
    CONSTEXPR(out, "bool STAGED, BITS", "that is copied to shared memory, too; is a mask of bits", tile->staged, tile->bits);
    CONSTEXPR(out, "int BESIDE_ROWS", "of a tile of that; 1: all rows have the same", tile->staged_rows);
    attention_emit_sizes(out, plan, &scope);
    CONSTEXPR(out, "bool HEADS_IN_TURN", "several waves: the longest rows of all come first",
              tile->cluster > 1 && attention_is_longest_last(attention) &&
                  plan->program->grid > device_sms_of_clusters(plan->device, tile->cluster));
    CONSTEXPR(out, "Index BLOCKS, TURNS", "persistent blocks or clusters; tiles of Y of each",
              plan->program->grid / tile->cluster, plan->program->turns);
    emit_work(out, &scope, attention, tile->staged);
    if (tile->bits)
        emit_word(out, &scope, attention);
    attention_emit_functions(out, &scope, attention);
}

const Family attention_bulk_family = {
    .name = "attention_bulk",
    .template_path = "templates/attention_bulk.cu",
    .variants =
        (const char *const[]){"2 groups, 64 columns", "2 groups, 128 columns", "2 groups, 192 columns",
                              "3 groups, 64 columns", "3 groups, 128 columns", "2 splits, 64 columns",
                              "3 splits, 64 columns", "4 splits, 64 columns", NULL},
    .streams = true,
    .fetches = true,
    .copying_warps = GROUP_WARPS,
    .view = attention_view,
    .kinds = kinds,
    .emit = emit,
    .maps = maps,
    .work = attention_work,
};
