// permute: pointwise, but one input is contiguous along another axis than the output. Both sides are moved in whole lines,
// through a tile in shared memory.
//
// The axes fall into three sides, each walked as one flat axis:
//   rows      the innermost of the input      outer     what is left
//   columns   the innermost of the output
#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "codegen/reads.h"
#include "codegen/space.h"

enum { OUTER, ROWS, COLUMNS, SIDE_COUNT };   // axes of the space, too
enum {
    LINE_BYTES = 128,      // a side that is shorter takes in the next axis
    SECTOR_BYTES = 32,     // tiles are whole sectors wide
    BANK_BYTES = 4,        // a piece fills them, where it can
    RUN_BYTES = 8,         // of writes that run from row to row: with 16 the padding leaves more bank conflicts
    BLOCK_THREADS = 256,
    MOST_ACCESSES = 32     // of a thread, on each side; its reads are all under way together
};

/* Kinds of tiles: bytes of the input along rows, of the output along columns, of an access. */
typedef struct Kind {
    const char *name;
    int row_bytes, column_bytes, access_bytes;
} Kind;

static const Kind kinds[] = {
    {"128x128", 128, 128, 16},
    {"256x128", 256, 128, 16},
    {"128x256", 128, 256, 16},
    {"256x256", 256, 256, 16},
    {"128x512", 128, 512, 16},
    {"128x128 by 8", 128, 128, 8},
};
enum { KIND_COUNT = sizeof kinds / sizeof *kinds };

/* Axes of a side, outermost first. */
typedef struct Side {
    int axes[MAX_AXES];
    int count;
    int64_t extent;
} Side;

typedef struct Permute {
    const Access *access;     // of the input that is permuted
    Affine source, target;    // offsets of a point in the input and in every output
    Side side[SIDE_COUNT];
    int element_bytes;        // of the input
    int widest_bytes;         // of the widest output element, or of the input's
    bool moves;               // nothing is computed: elements move as they are
} Permute;

// ---- structure ----

static Affine flat_position(const Fusion *fusion)
{
    Affine flat = {.constant = 0};
    int64_t stride = 1;
    for (int a = fusion->spatial_count - 1; a >= 0; a--) {
        flat.coef[a] = stride;
        stride *= fusion->axes[a].extent;
    }
    return flat;
}

static bool same_form(const Affine *left, const Affine *right) { return memcmp(left, right, sizeof *left) == 0; }

/* Pointwise, and every output dense in the order of the axes. */
static bool stores_in_order(const Fusion *fusion, const Affine *flat)
{
    for (int i = 0; i < fusion->op_count; i++) {
        const FusedOp *op = &fusion->ops[i];
        Affine offset = access_offset(&op->store);
        if (op->reduce != REDUCE_NONE || (op->stored && (op->out->dtype == DTYPE_B1 || !same_form(&offset, flat))))
            return false;
    }
    return true;
}

/* The axis along which the access is contiguous; -1: there is none. */
static int unit_axis(const Fusion *fusion, const Affine *offset)
{
    for (int a = 0; a < fusion->spatial_count; a++)
        if (offset->coef[a] == 1)
            return a;
    return -1;
}

/* Nothing is computed: elements move as they are. */
static bool is_pure_move(const Fusion *fusion, const Access *access)
{
    return fusion->op_count == 1 && fusion->ops[0].body->kind == EXPR_ACCESS &&
           fusion->ops[0].out->dtype == access->tensor->dtype;
}

/* The one input that is not read in the order of the output. */
static bool find_access(const Fusion *fusion, Permute *permute)
{
    FusedAccess found[MAX_LOADED];
    int count = fusion_accesses(fusion, found, MAX_LOADED), inner = fusion->spatial_count - 1;
    for (int i = 0; i < count; i++) {
        Affine offset = access_offset(found[i].access);
        if (offset.coef[inner] == 0 || offset.coef[inner] == 1)
            continue;
        bool another = permute->access && (permute->access->tensor != found[i].access->tensor ||
                                           !same_form(&permute->source, &offset));
        if (found[i].guarded || found[i].access->tensor->dtype == DTYPE_B1 || another ||
            unit_axis(fusion, &offset) < 0)
            return false;
        permute->access = found[i].access;
        permute->source = offset;
    }
    return permute->access && count < MAX_LOADED;
}

static void side_add(Side *side, const Fusion *fusion, int axis)
{
    memmove(side->axes + 1, side->axes, sizeof(int) * (size_t)side->count);
    side->axes[0] = axis;
    side->count++;
    side->extent *= fusion->axes[axis].extent;
}

static bool side_has(const Side *side, int axis)
{
    for (int i = 0; i < side->count; i++)
        if (side->axes[i] == axis)
            return true;
    return false;
}

/* The side with the next axis of its tensor, if that is free and the side stays contiguous. */
static bool side_extend(Side *side, const Side *other, const Fusion *fusion, const Affine *offset)
{
    for (int a = 0; a < fusion->spatial_count; a++)
        if (offset->coef[a] == side->extent && !side_has(side, a)) {
            if (!side_has(other, a))
                side_add(side, fusion, a);
            return !side_has(other, a);
        }
    return false;
}

static void find_sides(const Fusion *fusion, Permute *permute)
{
    Side *rows = &permute->side[ROWS], *columns = &permute->side[COLUMNS];
    for (int s = 0; s < SIDE_COUNT; s++)
        permute->side[s] = (Side){.extent = 1};
    side_add(rows, fusion, unit_axis(fusion, &permute->source));
    side_add(columns, fusion, fusion->spatial_count - 1);
    for (bool grown = true; grown;) {   // an axis that both could take goes to the shorter one
        bool short_rows = rows->extent * permute->element_bytes < LINE_BYTES;
        bool short_columns = columns->extent * permute->widest_bytes < LINE_BYTES;
        bool rows_first = rows->extent <= columns->extent;
        grown = false;
        if (short_rows && (rows_first || !short_columns))
            grown = side_extend(rows, columns, fusion, &permute->source);
        if (short_columns && !grown)
            grown = side_extend(columns, rows, fusion, &permute->target);
        if (short_rows && !grown)
            grown = side_extend(rows, columns, fusion, &permute->source);
    }
    for (int a = fusion->spatial_count - 1; a >= 0; a--)
        if (!side_has(rows, a) && !side_has(columns, a))
            side_add(&permute->side[OUTER], fusion, a);
}

static bool find_permute(const Fusion *fusion, Permute *permute)
{
    *permute = (Permute){.target = flat_position(fusion)};
    if (fusion->spatial_count < 2 || fusion->spatial_count != fusion->axis_count ||
        !stores_in_order(fusion, &permute->target) || !find_access(fusion, permute))
        return false;
    permute->element_bytes = permute->widest_bytes = dtype_info[permute->access->tensor->dtype].bits / 8;
    for (int i = 0; i < fusion->output_count; i++)
        if (dtype_info[fusion->outputs[i]->dtype].bits / 8 > permute->widest_bytes)
            permute->widest_bytes = dtype_info[fusion->outputs[i]->dtype].bits / 8;
    permute->moves = is_pure_move(fusion, permute->access);
    find_sides(fusion, permute);
    return true;
}

static bool matches(const Fusion *fusion, const DeviceSpec *device)
{
    (void)device;
    Permute permute;
    return find_permute(fusion, &permute);
}

// ---- vectors and padding ----

/* Neighbours along a side that are one aligned access of at most `bytes`. */
static int vector_of(const Side *side, const Affine *offset, int bytes, int element_bytes)
{
    int vector = bytes > element_bytes ? bytes / element_bytes : 1;
    for (int a = 0; a < MAX_AXES; a++)
        while (!side_has(side, a) && offset->coef[a] % vector)
            vector /= 2;
    while (side->extent % vector || offset->constant % vector)
        vector /= 2;
    return vector;
}

/* A tile as its block moves it. */
typedef struct Shape {
    int64_t tile[SIDE_COUNT];
    int vector[SIDE_COUNT];   // points of one access; 1 for OUTER
    int piece;                // vectors along rows that a thread turns together
    int write;                // points of one write: vector[COLUMNS], or more that run from row to row
    int64_t padding;          // of every vector[ROWS] rows in shared memory, elements
} Shape;

/* Where a point lies in shared memory: the template's place(). */
static int64_t place(const Shape *shape, int64_t outer, int64_t r, int64_t c)
{
    int64_t rows = shape->vector[ROWS], group = rows * shape->tile[COLUMNS] + shape->padding;
    return (outer * (shape->tile[ROWS] / rows) + r / rows) * group + r % rows * shape->tile[COLUMNS] + c;
}

/* Place of the point that a lane accesses first: it writes along rows, and reads along columns. */
static int64_t lane_place(const Shape *shape, int64_t lane, bool reads)
{
    if (reads && shape->write != shape->vector[COLUMNS]) {
        int64_t point = lane * shape->write, rows = shape->tile[ROWS], columns = shape->tile[COLUMNS];
        return place(shape, point / (rows * columns), point / columns % rows, point % columns);
    }
    int64_t along = reads ? COLUMNS : ROWS, across = reads ? ROWS : COLUMNS;
    int64_t at[SIDE_COUNT], step[SIDE_COUNT] = {1, 1, shape->vector[COLUMNS]};
    if (!reads) {
        step[ROWS] = shape->vector[ROWS];
        step[COLUMNS] = shape->piece;
    }
    int64_t many = shape->tile[along] / step[along], lines = shape->tile[across] / step[across];
    at[along] = lane % many * step[along];
    at[across] = lane / many % lines * step[across];
    at[OUTER] = lane / (many * lines) % shape->tile[OUTER];
    return place(shape, at[OUTER], at[ROWS], at[COLUMNS]);
}

/* Words of the fullest bank when one warp's first access is served, as many lanes at a time as fill all banks. */
static int bank_words(const Shape *shape, int element_bytes, const DeviceSpec *device, bool reads)
{
    enum { MOST_LANES = 64 };
    int bytes = (reads ? shape->write : shape->piece) * element_bytes, bank_bytes = device->shared_bank_bytes;
    int words_each = bytes > bank_bytes ? bytes / bank_bytes : 1;
    int together = device->shared_banks / words_each, most = 0;
    int64_t word[MOST_LANES];
    for (int first = 0; first < device->warp_size && first < MOST_LANES; first += together)
        for (int i = 0; i < together && i < MOST_LANES; i++) {
            word[i] = lane_place(shape, first + i, reads) * element_bytes / bank_bytes;
            int same = 1;
            for (int j = 0; j < i; j++)
                same += word[j] != word[i] && word[j] % device->shared_banks == word[i] % device->shared_banks;
            most = same > most ? same : most;
        }
    return most;
}

/* The least padding with which a warp meets the banks most evenly, on both of its ways through the tile. */
static int64_t best_padding(Shape shape, int element_bytes, const DeviceSpec *device)
{
    int64_t line = (int64_t)device->shared_banks * device->shared_bank_bytes / element_bytes, best = 0;
    int step = shape.write > shape.piece ? shape.write : shape.piece, least = 0;
    for (shape.padding = 0; shape.padding <= line && least != 2; shape.padding += step) {
        int words =
            bank_words(&shape, element_bytes, device, false) + bank_words(&shape, element_bytes, device, true);
        if (!least || words < least) {
            least = words;
            best = shape.padding;
        }
    }
    return best;
}

// ---- rules ----

/* The extent in equal parts of about `wanted`, each of whole sectors. */
static int64_t part_of(int64_t extent, int64_t wanted, int64_t sector)
{
    return extent <= wanted ? extent : round_up(ceil_div(extent, ceil_div(extent, wanted)), sector);
}

/* Points along columns that a thread turns together: those of one write, but at least a bank's. Bytes are turned four by
   four, and no more of them: they would need too many registers. */
static int piece_of(const Shape *shape, int element_bytes)
{
    int bank = BANK_BYTES > element_bytes ? BANK_BYTES / element_bytes : 1;
    int piece = shape->vector[COLUMNS] < bank || element_bytes == 1 ? bank : shape->vector[COLUMNS];
    while (shape->tile[COLUMNS] % piece)
        piece /= 2;
    return piece;
}

static int64_t least_of(int64_t a, int64_t b) { return a < b ? a : b; }

/* Is the side contiguous in the output, each point `stride` from its neighbour? */
static bool side_follows(const Permute *permute, int which, const Fusion *fusion, int64_t stride)
{
    const Side *side = &permute->side[which];
    for (int i = side->count - 1; i >= 0; i--) {
        if (permute->target.coef[side->axes[i]] != stride)
            return false;
        stride *= fusion->axes[side->axes[i]].extent;
    }
    return true;
}

/* Points of one write of a tile that is one run in the output. They lie together in shared memory too: vector[ROWS] rows do. */
static int write_of(const Fusion *fusion, const Permute *permute, const Shape *shape)
{
    int64_t columns = permute->side[COLUMNS].extent, rows = permute->side[ROWS].extent;
    bool is_run = permute->moves && shape->tile[COLUMNS] == columns && side_follows(permute, ROWS, fusion, columns) &&
                  (shape->tile[OUTER] == 1 ||
                   (shape->tile[ROWS] == rows && side_follows(permute, OUTER, fusion, rows * columns)));
    int write = is_run ? RUN_BYTES / permute->element_bytes : 1;
    while (write > 1 && shape->vector[ROWS] * columns % write)
        write /= 2;
    return write > shape->vector[COLUMNS] ? write : shape->vector[COLUMNS];
}

/* Where one side is short the other is longer instead, then more outer positions: a block has work for its threads. */
static Shape shape_of(const Fusion *fusion, const Permute *permute, const Kind *kind)
{
    const Side *side = permute->side;
    int bytes = permute->element_bytes;
    Shape shape = {.tile = {1, 1, 1}, .vector = {1, 1, 1}};
    shape.vector[ROWS] = vector_of(&side[ROWS], &permute->source, kind->access_bytes, bytes);
    shape.vector[COLUMNS] = vector_of(&side[COLUMNS], &permute->target, kind->access_bytes, permute->widest_bytes);
    bool odd_columns = shape.vector[COLUMNS] == 1;   // lines share sectors with another block's: let them be long
    int row_bytes = odd_columns && kind->row_bytes > LINE_BYTES ? LINE_BYTES : kind->row_bytes;
    int64_t rows = row_bytes / bytes, columns = kind->column_bytes / bytes;
    int64_t most = (int64_t)BLOCK_THREADS * MOST_ACCESSES * least_of(shape.vector[ROWS], shape.vector[COLUMNS]);
    for (; rows * columns > most; *(rows >= columns ? &rows : &columns) /= 2) {}

    int64_t points = rows * columns, sector = SECTOR_BYTES / bytes;
    int64_t most_rows = (int64_t)BLOCK_THREADS * shape.vector[ROWS];   // a line is read at once, and written
    int64_t most_columns = (int64_t)BLOCK_THREADS * shape.vector[COLUMNS];
    if (side[ROWS].extent < rows)
        columns = least_of(points / side[ROWS].extent, most_columns);
    if (side[COLUMNS].extent < columns)
        rows = least_of(points / side[COLUMNS].extent, most_rows);
    shape.tile[ROWS] = part_of(side[ROWS].extent, least_of(rows, most_rows), sector);
    shape.tile[COLUMNS] = part_of(side[COLUMNS].extent, least_of(columns, most_columns), sector);
    int64_t outer = points / (shape.tile[ROWS] * shape.tile[COLUMNS]);
    shape.tile[OUTER] = outer < 1 ? 1 : least_of(outer, side[OUTER].extent);
    shape.piece = piece_of(&shape, bytes);
    shape.write = write_of(fusion, permute, &shape);
    return shape;
}

/* The distance in memory of the side's closest neighbours; 0: all its points share an element. */
static int64_t side_stride(const Side *side, const Affine *offset)
{
    int64_t least = 0;
    for (int i = 0; i < side->count; i++) {
        int64_t stride = offset->coef[side->axes[i]] < 0 ? -offset->coef[side->axes[i]] : offset->coef[side->axes[i]];
        if (stride && (!least || stride < least))
            least = stride;
    }
    return least;
}

/* The sides as dimensions, the farthest apart in memory first. */
static DataTile side_tile(const Permute *permute, const Access *access)
{
    DataTile tile = {.element_bits = dtype_info[access->tensor->dtype].bits, .scatter = 1};
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
    moved.instructions =
        (PLACE_INSTRUCTIONS + 2) * (1.0 / shape->vector[ROWS] + 1.0 / shape->vector[COLUMNS]);
    space->tiles[space->tile_count++] = moved;
    FusedAccess found[MAX_DATA_TILES];
    int count = fusion_accesses(fusion, found, MAX_DATA_TILES - fusion->output_count - 1);
    for (int i = 0; i < count; i++) {
        Affine offset = access_offset(found[i].access);
        if (found[i].access->tensor != permute->access->tensor || !same_form(&offset, &permute->source))
            space->tiles[space->tile_count++] = side_tile(permute, found[i].access);
    }
    for (int i = 0; i < fusion->op_count && space->tile_count < MAX_DATA_TILES; i++)
        if (fusion->ops[i].stored) {
            DataTile tile = side_tile(permute, &fusion->ops[i].store);
            tile.output = true;
            space->tiles[space->tile_count++] = tile;
        }
}

static void kind_rules(const Fusion *fusion, const DeviceSpec *device, const Permute *permute, int kind,
                       const Shape *shape, TileRules *rules)
{
    static const char *const names[] = {"outer", "rows", "columns"};
    *rules = (TileRules){.space = space_new(fusion, device), .variant = kind, .stages = 1};
    rules->variant_name = kinds[kind].name;
    int64_t pieces = 1;
    for (int s = 0; s < SIDE_COUNT; s++) {
        AxisRule fixed = {shape->tile[s], shape->tile[s]};
        space_add_axis(&rules->space, names[s], permute->side[s].extent, false);
        rules->rule[LEVEL_REGISTER][s] = rules->rule[LEVEL_SHARED][s] = fixed;
        pieces *= shape->tile[s] / (s == COLUMNS ? shape->piece : shape->vector[s]);
    }
    add_tiles(&rules->space, fusion, permute, shape);
    int64_t line = shape->tile[COLUMNS] / shape->vector[COLUMNS];
    int64_t warps = ceil_div(pieces > line ? pieces : line, device->warp_size);
    int64_t most = BLOCK_THREADS / device->warp_size;
    rules->tile_threads = (int)least_of(warps, most) * device->warp_size;
    rules->shared_overhead = shape->tile[OUTER] * (shape->tile[ROWS] / shape->vector[ROWS]) *
                             best_padding(*shape, permute->element_bytes, device) * permute->element_bytes;
    rules->copies_through_registers = true;
    rules->input_buffers = 1;
    rules->register_overhead = 32;
}

static int rules(const Fusion *fusion, const DeviceSpec *device, TileRules *variants)
{
    Permute permute;
    find_permute(fusion, &permute);
    Shape shapes[KIND_COUNT];
    int count = 0;
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        shapes[count] = shape_of(fusion, &permute, &kinds[kind]);
        bool seen = false;
        for (int i = 0; i < count; i++)
            seen |= memcmp(&shapes[i], &shapes[count], sizeof *shapes) == 0;
        if (!seen) {
            kind_rules(fusion, device, &permute, kind, &shapes[count], &variants[count]);
            count++;
        }
    }
    return count;
}

// ---- the parameter block ----

static void emit_constants(StrBuf *out, const KernelPlan *plan, const Permute *permute, const Shape *shape)
{
    const Side *side = permute->side;
    strbuf_printf(out, "using Element = %s;   // of the input that is permuted\n",
                  memory_type(permute->access->tensor->dtype));
    strbuf_printf(out, "constexpr Index OUTER = %" PRId64 ", R = %" PRId64 ", C = %" PRId64 ";   // problem\n",
                  side[OUTER].extent, side[ROWS].extent, side[COLUMNS].extent);
    strbuf_printf(out,
                  "constexpr int TO = %" PRId64 ", TR = %" PRId64 ", TC = %" PRId64 ";   // rTile, shared memory\n",
                  shape->tile[OUTER], shape->tile[ROWS], shape->tile[COLUMNS]);
    strbuf_printf(out,
                  "constexpr int VR = %d, VC = %d, PC = %d;   // points of one access along r, along c; reads of a piece\n",
                  shape->vector[ROWS], shape->vector[COLUMNS], shape->piece);
    strbuf_printf(out, "constexpr int VW = %d;   // points of one write; not VC: it runs from row to row\n",
                  shape->write);
    strbuf_printf(out, "constexpr int PAD = %" PRId64 ";   // bank padding of every VR rows, elements\n",
                  shape->padding);
    strbuf_printf(out, "constexpr int THREADS = %d;\n", plan->threads);
}

/* Positions of the side's axes from its flat one. */
static void emit_side(StrBuf *out, const char *indent, const Scope *scope, const Side *side, const char *flat)
{
    int64_t below = side->extent;
    for (int i = 0; i < side->count; i++) {
        int64_t extent = scope->fusion->axes[side->axes[i]].extent;
        below /= extent;
        strbuf_printf(out, "%s[[maybe_unused]] const Index %s = %s", indent, scope->axis[side->axes[i]], flat);
        if (below > 1)
            strbuf_printf(out, " / %" PRId64, below);
        if (i > 0)
            strbuf_printf(out, " %% %" PRId64, extent);
        strbuf_puts(out, ";\n");
    }
}

/* An offset in which one side is contiguous: that side's position is its share. */
static void emit_offset(StrBuf *out, const Scope *scope, const Affine *offset, const Side *side, const char *flat)
{
    Affine rest = *offset;
    for (int i = 0; i < side->count; i++)
        rest.coef[side->axes[i]] = 0;
    if (affine_is_constant(&rest) && !rest.constant) {
        strbuf_puts(out, flat);
        return;
    }
    emit_affine(out, &rest, scope->axis);
    strbuf_printf(out, " + %s", flat);
}

static void emit_source(StrBuf *out, const Scope *scope, const Permute *permute)
{
    strbuf_puts(out, "\n// The input's element of a point.\n"
                     "__device__ __forceinline__ const Element *source(const Tensors &t, Index outer, Index r, "
                     "Index c)\n{\n    (void)outer;\n");
    emit_side(out, "    ", scope, &permute->side[OUTER], "outer");
    emit_side(out, "    ", scope, &permute->side[COLUMNS], "c");
    strbuf_printf(out, "    return t.in%d + (", input_position(scope->fusion, permute->access->tensor));
    emit_offset(out, scope, &permute->source, &permute->side[ROWS], "r");
    strbuf_puts(out, ");\n}\n");
}

/* Reads of the other inputs in vectors, the rest point by point. */
static void emit_points(StrBuf *out, Scope *scope, const Permute *permute, Reads *reads)
{
    const Fusion *fusion = scope->fusion;
    strbuf_puts(out, "    Inputs in;\n    {\n");
    emit_side(out, "        ", scope, &permute->side[COLUMNS], "c");
    reads_emit_vectors(out, "        ", scope, reads, "point");
    strbuf_puts(out, "    }\n");
    for (int i = 0; i < fusion->output_count; i++)
        strbuf_printf(out, "    %s y%d[VC];\n", value_type(fusion->outputs[i]->dtype), i);
    strbuf_puts(out, "    UNROLL for (int e = 0; e < VC; ++e) {\n        const Index each = c + e;\n");
    emit_side(out, "        ", scope, &permute->side[COLUMNS], "each");
    for (int i = 0; i < reads->count; i++) {
        const Read *read = &reads->reads[i];
        if (read->access->tensor == permute->access->tensor && same_form(&read->offset, &permute->source))
            strbuf_printf(out, "        in.x%d[e] = widen(x[e]);\n", i);
        else if (read->pattern == PATTERN_GATHER)
            reads_emit_one(out, "        ", scope, reads, i, "e");
    }
    Scope loaded = *scope;
    loaded.loaded = reads_loaded;
    loaded.context = reads;
    emit_pointwise_ops(out, "        ", &loaded, 0);
    for (int i = 0; i < fusion->op_count; i++)
        if (fusion->ops[i].stored)
            strbuf_printf(out, "        y%d[e] = v%d;\n", output_position(fusion, fusion->ops[i].out), i);
    strbuf_puts(out, "    }\n");
    for (int i = 0; i < fusion->output_count; i++)
        strbuf_printf(out, "    store_vector<VC>(t.out%d, point, y%d);\n", i, i);
}

static void emit_finish(StrBuf *out, Scope *scope, const Permute *permute, Reads *reads)
{
    if (!permute->moves) {
        strbuf_puts(out, "constexpr int VECTOR = VC;\n\n// What one vector of points reads.\n");
        reads_emit_inputs(out, reads);
    }
    strbuf_puts(out, "\n// Makes and stores VW points.\n"
                     "__device__ __forceinline__ void finish(const Tensors &t, Index outer, Index r, Index c, "
                     "const Element (&x)[VW])\n{\n    (void)outer;\n");
    emit_side(out, "    ", scope, &permute->side[OUTER], "outer");
    emit_side(out, "    ", scope, &permute->side[ROWS], "r");
    strbuf_puts(out, "    const Index point = ");
    emit_offset(out, scope, &permute->target, &permute->side[COLUMNS], "c");
    strbuf_puts(out, ";\n");
    if (permute->moves)
        strbuf_puts(out, "    move_vector<VW>(t.out0 + point, x);\n");
    else
        emit_points(out, scope, permute, reads);
    strbuf_puts(out, "}\n");
}

static void emit(StrBuf *out, const KernelPlan *plan)
{
    Permute permute;
    find_permute(plan->fusion, &permute);
    Shape shape = shape_of(plan->fusion, &permute, &kinds[plan->program->variant]);
    shape.padding = plan->rules->shared_overhead / permute.element_bytes /
                    (shape.tile[OUTER] * (shape.tile[ROWS] / shape.vector[ROWS]));
    Reads reads = reads_find((Walk){
        .fusion = plan->fusion,
        .ops = plan->fusion->op_count,
        .axis = plan->fusion->spatial_count - 1,
        .vector = shape.vector[COLUMNS],
        .flat = true,
    });
    Scope scope = {.fusion = plan->fusion, .wide = plan->wide};
    for (int a = 0; a < plan->fusion->axis_count; a++)
        scope.axis[a] = axis_names[a];
    emit_constants(out, plan, &permute, &shape);
    emit_source(out, &scope, &permute);
    emit_finish(out, &scope, &permute, &reads);
}

const Family permute_family = {
    .name = "permute",
    .template_path = "templates/permute.cu",
    .whole_warps = true,
    .matches = matches,
    .rules = rules,
    .emit = emit,
};
