// permute: pointwise, but one input is contiguous along another axis than the output. Both sides are moved in
// whole lines, through a tile in shared memory.
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "codegen/cuda/reads.h"
#include "codegen/family/permute/permute_parts.h"
#include "model/calibration.h"
#include "rtile/space.h"

static const Kind forms[] = {
    {"128x128", 128, 128, 16, false}, {"256x128", 256, 128, 16, false},     {"128x256", 128, 256, 16, false},
    {"256x256", 256, 256, 16, false}, {"128x512", 128, 512, 16, false},     {"512x128", 512, 128, 16, true},
    {"256x512", 256, 512, 16, true},  {"128x128 by 8", 128, 128, 8, false},
};
enum { KIND_COUNT = sizeof forms / sizeof *forms };

/* The distance in memory of the side's closest neighbours; 0: all its points share an element. */
static int64_t side_stride(const AxisGroup *side, const Affine *offset)
{
    int64_t least = 0;
    for (int i = 0; i < side->count; i++) {
        int64_t stride =
            offset->coef[side->axes[i]] < 0 ? -offset->coef[side->axes[i]] : offset->coef[side->axes[i]];
        if (stride && (!least || stride < least))
            least = stride;
    }
    return least;
}

/* A tensor that is read again and again along a side is broadcast, not permuted: its elements belong in
   registers. */
static const void *view_of(Arena *arena, const Fusion *fusion, const Target *target)
{
    Permute permute;
    (void)target;
    if (!fusion_is_uniform(fusion) || !permute_find(fusion, &permute))
        return NULL;
    Affine offset = access_offset(permute.access);
    for (int s = 0; s < SIDE_COUNT; s++)
        if (permute.side[s].extent > 1 && !side_stride(&permute.side[s], &offset))
            return NULL;
    return arena_copy(arena, &permute, sizeof permute);
}

// ---- kinds ----

/* The sides as dimensions, the farthest apart in memory first. */
static DataTile side_tile(const Permute *permute, const Access *access)
{
    DataTile tile = data_tile_of(access->tensor);
    Affine offset = access_offset(access);
    int64_t strides[SIDE_COUNT];
    for (int s = 0; s < SIDE_COUNT; s++) {
        int64_t stride = side_stride(&permute->side[s], &offset);
        if (!stride)
            continue;
        int at = tile.rank++;
        for (; at > 0 && strides[at - 1] < stride; at--) {
            strides[at] = strides[at - 1];
            tile.dims[at] = tile.dims[at - 1];
        }
        strides[at] = stride;
        tile.dims[at] = (Dim){affine_axis(s), permute->side[s].extent};
    }
    return tile;
}

/* Instructions of each access beside itself: where it begins, and whether it is inside. */
enum { PLACE_INSTRUCTIONS = 8 };

static void add_tiles(TileSpace *space, const Fusion *fusion, const Permute *permute, const Shape *shape)
{
    DataTile moved = side_tile(permute, permute->access);
    moved.staged = true;
    moved.staged_inner = moved.rank - 1;
    moved.apart = shape->ragged;   // shares begin where rows do
    moved.elements = permute->bound.size ? tensor_elements(permute->access->tensor) : 0;
    moved.instructions =
        (PLACE_INSTRUCTIONS + 2) * (1.0 / shape->vector[ROWS] + 1.0 / shape->vector[COLUMNS]);
    space->tiles[space->tile_count++] = moved;
    FusedAccess found[MAX_DATA_TILES];
    int count = fusion_accesses(fusion, found, MAX_DATA_TILES - fusion->output_count - 1);
    for (int i = 0; i < count; i++) {
        Affine offset = access_offset(found[i].access);
        if (found[i].access->tensor != permute->access->tensor || !affine_equal(&offset, &permute->source))
            space->tiles[space->tile_count++] = side_tile(permute, found[i].access);
    }
    for (int i = 0; i < fusion->op_count && space->tile_count < MAX_DATA_TILES; i++)
        if (fusion->ops[i].stored) {
            DataTile tile = side_tile(permute, &fusion->ops[i].store);
            tile.output = true;
            tile.apart = shape->ragged;
            space->tiles[space->tile_count++] = tile;
        }
}

static int64_t tile_points(const Shape *shape)
{
    return shape->tile[OUTER] * shape->tile[ROWS] * shape->tile[COLUMNS];
}

static int tile_threads(const Shape *shape, int warp)
{
    int64_t pieces = tile_points(shape) / shape->vector[ROWS] / (shape->copied ? 1 : shape->piece);
    int64_t line = shape->tile[COLUMNS] / shape->vector[COLUMNS];
    int64_t warps = ceil_div(pieces > line ? pieces : line, warp), most = BLOCK_THREADS / warp;
    return (int)(warps < most ? warps : most) * warp;
}

/* Through a tile in shared memory, which is read in the other direction. What else is read comes when that is
   turned. */
static Schedule *schedule_of(Arena *arena, const Fusion *fusion, const TileSpace *space, const Shape *shape)
{
    Schedule schedule = {0};
    uint32_t moved = space_staged(space), others = space_inputs(space) & ~moved;
    Move copy = {.tiles = moved, .to = PLACE_SHARED, .async = true};
    if (shape->copied) {
        schedule_load(&schedule, copy);
        schedule_wait(&schedule, 0);
    } else {
        schedule_load(&schedule, (Move){.tiles = moved});
        schedule_store(&schedule, (Move){.tiles = moved, .to = PLACE_SHARED});
    }
    schedule_barrier(&schedule, SCOPE_BLOCK);
    schedule_load(&schedule, (Move){.tiles = moved, .from = PLACE_SHARED});
    schedule_load(&schedule, (Move){.tiles = others});
    schedule_map(&schedule, schedule_ops(fusion, false));
    schedule_store(&schedule, (Move){.tiles = space_outputs(space)});
    return schedule_copy(arena, &schedule);
}

/* The family's choice: a row of kinds[]; bytes of the tile beyond its points. */
typedef struct PermuteChoice {
    int form;
    int64_t padding_bytes;
} PermuteChoice;

static void lay_out(SharedLayout *layout, const KernelKind *kind, const RTile *block, const RTile *inner,
                    const DeviceSpec *device)
{
    const PermuteChoice *choice = kind->choice.value;
    layout_add(layout, "TILE", choice->padding_bytes + kind_staged_bytes(kind, block, inner, device));
}

static void form_kind(Arena *arena, const Fusion *fusion, const DeviceSpec *device, const Permute *permute,
                       int form, const Shape *shape, KernelKind *kind)
{
    static const char *const names[] = {"outer", "rows", "columns"};
    *kind = (KernelKind){.space = space_new(arena, fusion)};
    PermuteChoice choice = {
        form, (permute_tile_elements(shape) - tile_points(shape)) * permute->element_bytes};
    kind_choose(arena, kind, &choice, sizeof choice);
    kind->lay_out = lay_out;
    kind->name = forms[form].name;
    for (int s = 0; s < SIDE_COUNT; s++) {
        AxisRule fixed = {shape->tile[s], shape->tile[s]};
        space_add_axis(kind->space, names[s], permute->side[s].extent, false);
        kind->space->rule[LEVEL_REGISTER][s] = kind->space->rule[LEVEL_SHARED][s] = fixed;
    }
    add_tiles(kind->space, fusion, permute, shape);
    kind->schedule = schedule_of(arena, fusion, kind->space, shape);
    kind->threads.of_tile = tile_threads(shape, device->warp_size);
    kind->registers.held_words = !shape->copied;
    kind->registers.most_inputs = shape->copied ? shape->write : 0;
    kind->registers.input_buffers = 1;
    kind->registers.others = 20;   // tuning-log 133
    kind->cost = &calibration.permute;
}

/* The rest follows from these. */
static bool same_shape(const Shape *left, const Shape *right)
{
    return memcmp(left->tile, right->tile, sizeof left->tile) == 0 &&
           memcmp(left->vector, right->vector, sizeof left->vector) == 0;
}

/* Of a block that has at most a warp for each scheduler, that warp waits alone: such tiles are left out where a larger one has more. */
static int kinds(Arena *arena, const void *view, const Fusion *fusion, const DeviceSpec *device,
                 KernelKind *variants)
{
    const Permute *permute = view;
    Shape shapes[KIND_COUNT];
    int form_of[KIND_COUNT], shape_count = 0, most = 0, count = 0, few = device->schedulers_per_sm * device->warp_size;
    for (int form = 0; form < KIND_COUNT; form++) {
        Shape *shape = &shapes[shape_count];
        *shape = permute_shape(fusion, permute, &forms[form]);
        if (forms[form].copies && !shape->copied)
            continue;
        permute_avoid_conflicts(shape, permute->element_bytes, device);
        bool seen = false;
        for (int i = 0; i < shape_count; i++)
            seen |= same_shape(&shapes[i], shape);
        if (seen)
            continue;
        int threads = tile_threads(shape, device->warp_size);
        most = threads > most ? threads : most;
        form_of[shape_count++] = form;
    }
    for (int i = 0; i < shape_count; i++)
        if (most <= few || tile_threads(&shapes[i], device->warp_size) > few) {
            form_kind(arena, fusion, device, permute, form_of[i], &shapes[i], &variants[count]);
            count++;
        }
    return count;
}

// ---- the parameter block ----

static void emit_constants(StrBuf *out, const KernelPlan *plan, const Permute *permute, const Shape *shape)
{
    const AxisGroup *side = permute->side;
    strbuf_printf(out, "using Element = %s;   // of the permuted input\n",
                  memory_type(permute->access->tensor->dtype));
    CONSTEXPR(out, "Index OUTER, R, C", "problem", side[OUTER].extent, side[ROWS].extent, side[COLUMNS].extent);
    CONSTEXPR(out, "int TO, TR, TC", "rTile, shared memory", shape->tile[OUTER], shape->tile[ROWS],
              shape->tile[COLUMNS]);
    CONSTEXPR(out, "int VR, VC", "points of an access along r, along c", shape->vector[ROWS], shape->vector[COLUMNS]);
    CONSTEXPR(out, "int PC", "reads of a piece", shape->piece);
    CONSTEXPR(out, "int VW", "points of a write; more than VC: across rows", shape->write);
    CONSTEXPR(out, "bool COPIED, RAGGED", "lines of the input, rows of the output are unaligned", shape->copied,
              shape->ragged);
    CONSTEXPR(out, "bool PADDED", "the input has less columns", permute->bound.size > 0);
    CONSTEXPR(out, "int TURN", "rows that adjacent threads gather", shape->turn);
    CONSTEXPR(out, "int SHARE", "alignment of the blocks' parts of a row, in points", shape->share);
    CONSTEXPR(out, "int PAD", "bank padding of every VR rows; of every copied line, in points", shape->padding);
    CONSTEXPR(out, "int WIDTH", "columns in shared memory: more than TC where parts begin later", shape->width);
    CONSTEXPR(out, "int OUTER_PITCH", "elements of shared memory for an outer position",
              permute_tile_elements(shape) / shape->tile[OUTER]);
    CONSTEXPR(out, "int ALONG_R, ALONG_C", "adjacent threads along r, along c",
              permute_along_rows(shape, plan->threads), permute_along_columns(shape, plan->threads));
    CONSTEXPR(out, "int VECTORS_R", "vectors that hold an unaligned copied line", permute_copied_vectors(shape));
    CONSTEXPR(out, "int THREADS", NULL, plan->threads);
}

/* A function that gives the offset of a point. One side is contiguous: its position is its share. */
static void emit_offset(StrBuf *out, const Scope *scope, const Permute *permute, const char *function,
                        const Affine *offset, int contiguous)
{
    static const char *const flat[] = {"outer", "r", "c"};
    Affine rest = *offset;
    assert(axis_group_has_stride(&permute->side[contiguous], scope->fusion, offset, 1));
    for (int i = 0; i < permute->side[contiguous].count; i++)
        rest.coef[permute->side[contiguous].axes[i]] = 0;
    uint32_t used = affine_axes(&rest);
    Scope named = *scope;
    strbuf_printf(out, "__device__ __forceinline__ Index %s(Index outer, Index r, Index c)\n{\n", function);
    for (int s = 0; s < SIDE_COUNT; s++) {
        const AxisGroup *side = &permute->side[s];
        if (side->count == 1)
            named.axis[side->axes[0]] = flat[s];
        else if (s != contiguous && axis_group_mask(side) & used)
            emit_group_positions(out, "    ", flat[s], scope, side, used);
    }
    strbuf_puts(out, "    return ");
    if (!affine_is_constant(&rest) || rest.constant) {
        emit_affine(out, &rest, named.axis);
        strbuf_puts(out, " + ");
    }
    strbuf_printf(out, "%s;\n}\n", flat[contiguous]);
}

static void emit_places(StrBuf *out, const Scope *scope, const Permute *permute, const Shape *shape)
{
    const Tensor *tensor = permute->access->tensor;
    strbuf_printf(out,
                  "\n__device__ __forceinline__ const Element *input(const Tensors &t) { return t.in%d; }\n",
                  input_position(scope->fusion, tensor));
    CONSTEXPR(out, "Index ELEMENTS", "of the input", tensor_elements(tensor));
    bool is_bytes = permute->element_bytes == 1 && shape->piece == 4 && shape->vector[ROWS] % 4 == 0;
    strbuf_printf(out, "\nusing Held = %s<Element, PC, VR>;   // a piece in registers\n",
                  is_bytes ? "PieceOfBytes" : "Piece");
    strbuf_puts(out, "\n// The position of a point in the input.\n");
    emit_offset(out, scope, permute, "source", &permute->source, ROWS);
    strbuf_puts(out, "\n// Its position in the output.\n");
    emit_offset(out, scope, permute, "target", &permute->target, COLUMNS);
}

/* A function that says which columns the input has. */
static void emit_bound(StrBuf *out, const Scope *scope, const Permute *permute)
{
    const Dim *bound = &permute->bound;
    strbuf_puts(out, "\n__device__ __forceinline__ bool exists(Index c)");
    if (!bound->size) {
        strbuf_puts(out, " { return c < C; }   // in the input\n");
        return;
    }
    strbuf_puts(out, "   // in the input\n{\n");
    emit_group_positions(out, "    ", "c", scope, &permute->side[COLUMNS], affine_axes(&bound->index));
    strbuf_puts(out, "    return c < C && inside(");
    emit_affine(out, &bound->index, scope->axis);
    strbuf_printf(out, ", %" PRId64 ");\n}\n", bound->size);
}

static bool is_permuted(const Permute *permute, const Read *read)
{
    return read->access->tensor == permute->access->tensor && affine_equal(&read->offset, &permute->source);
}

/* Axes whose positions the points of a vector need one by one. */
static uint32_t axes_of_points(const Fusion *fusion, const Permute *permute, const Reads *reads)
{
    uint32_t axes = 0;
    for (int i = 0; i < fusion->op_count; i++)
        axes |= reads_axes_left(reads, fusion->ops[i].body);
    for (int i = 0; i < reads->count; i++)
        if (reads->reads[i].pattern == PATTERN_GATHER && !is_permuted(permute, &reads->reads[i]))
            axes |= access_axes(reads->reads[i].access);
    return axes;
}

/* Reads of the other inputs in vectors, the rest point by point. */
static void emit_points(StrBuf *out, Scope *scope, const Permute *permute, Reads *reads)
{
    const Fusion *fusion = scope->fusion;
    uint32_t each = axes_of_points(fusion, permute, reads), vectors = reads_axes_of(reads, VECTOR_PATTERNS);
    emit_group_positions(out, "    ", "outer", scope, &permute->side[OUTER], each | vectors);
    emit_group_positions(out, "    ", "r", scope, &permute->side[ROWS], each | vectors);
    strbuf_puts(out, "    const Index point = target(outer, r, c);\n    Inputs in;\n    {\n");
    emit_group_positions(out, "        ", "c", scope, &permute->side[COLUMNS], vectors);
    reads_emit_vectors(out, "        ", scope, reads, "point");
    strbuf_puts(out, "    }\n");
    emit_output_vectors(out, fusion, "VC");
    strbuf_puts(out, "    UNROLL for (int e = 0; e < VC; ++e) {\n");
    StrBuf body = strbuf_new(out->arena);
    emit_group_positions(&body, "        ", "each", scope, &permute->side[COLUMNS], each);
    strbuf_printf(out, "%s%s", body.length ? "        const Index each = c + e;\n" : "", body.text);
    for (int i = 0; i < reads->count; i++)
        if (is_permuted(permute, &reads->reads[i]))
            strbuf_printf(out, "        in.x%d[e] = widen(x[e]);\n", i);
        else if (reads->reads[i].pattern == PATTERN_GATHER)
            reads_emit_one(out, "        ", scope, reads, i, "e");
    Scope loaded = *scope;
    loaded.loaded = reads_loaded;
    loaded.context = reads;
    emit_pointwise_ops(out, "        ", &loaded, 0);
    emit_vector_elements(out, fusion);
    strbuf_puts(out, "    }\n");
    for (int i = 0; i < fusion->output_count; i++)
        strbuf_printf(out, "    store_vector<VC>(t.out%d, point, y%d);\n", i, i);
}

static void emit_finish(StrBuf *out, Scope *scope, const Permute *permute, Reads *reads)
{
    if (!permute->moves && !permute->bound.size) {
        strbuf_puts(out, "\nconstexpr int VECTOR = VC;\n\n// What one vector of points loads.\n");
        reads_emit_inputs(out, reads);
    }
    strbuf_puts(out,
                "\n__device__ __forceinline__ void *output(const Tensors &t) { return t.out0; }\n"
                "\n// Computes and stores VW points.\n"
                "__device__ __forceinline__ void finish(const Tensors &t, Index outer, Index r, Index c, "
                "const Element (&x)[VW])\n{\n");
    if (permute->moves)
        strbuf_puts(out, "    move_vector<VW>(t.out0 + target(outer, r, c), x);\n");
    else if (permute->bound.size)
        strbuf_puts(out, "    Element y[VW];\n    UNROLL for (int e = 0; e < VW; ++e)\n"
                         "        y[e] = exists(c + e) ? x[e] : Element();\n"
                         "    move_vector<VW>(t.out0 + target(outer, r, c), y);\n");
    else
        emit_points(out, scope, permute, reads);
    strbuf_puts(out, "}\n");
}

/* The family's choice is a position in `kinds`. */
static Shape planned_shape(const KernelPlan *plan)
{
    const Permute *permute = plan->view;
    const PermuteChoice *choice = plan->kind->choice.value;
    Shape shape = permute_shape(plan->fusion, permute, &forms[choice->form]);
    permute_avoid_conflicts(&shape, permute->element_bytes, plan->device);
    return shape;
}

static void emit(StrBuf *out, const KernelPlan *plan)
{
    const Permute *permute = plan->view;
    Shape shape = planned_shape(plan);
    Reads reads = reads_find((Walk){
        .fusion = plan->fusion,
        .ops = plan->fusion->op_count,
        .axis = plan->fusion->spatial_count - 1,
        .vector = shape.vector[COLUMNS],
        .flat = true,
    });
    Scope scope = scope_of(plan);
    for (int i = 0; i < plan->fusion->op_count; i++)   // as the view has found them
        assert(!plan->fusion->ops[i].stored || access_is_flat(&plan->fusion->ops[i].store, plan->fusion));
    emit_constants(out, plan, permute, &shape);
    emit_places(out, &scope, permute, &shape);
    emit_bound(out, &scope, permute);
    emit_finish(out, &scope, permute, &reads);
}

static bool work_of(const void *view, const CountedItem *at, ItemWork *work)
{
    const Permute *permute = view;
    const PermuteChoice *choice = at->kind->choice.value;
    Shape shape = permute_shape(at->fusion, permute, &forms[choice->form]);
    permute_avoid_conflicts(&shape, permute->element_bytes, at->device);
    return shape.ragged && permute_ragged_work(permute, &shape, at, work);
}

const Family permute_family = {
    .name = "permute",
    .template_path = "templates/permute.cu",
    .variants = (const char *const[]){"128x128", "256x128", "128x256", "256x256", "128x512", "512x128",
                                      "256x512", "128x128 by 8", NULL},
    .whole_warps = true,
    .view = view_of,
    .kinds = kinds,
    .emit = emit,
    .work = work_of,
};
