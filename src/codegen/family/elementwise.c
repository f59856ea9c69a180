// elementwise: every output point depends on one point of each input it reads. 16-byte accesses where memory
// allows.
#include <assert.h>
#include <inttypes.h>

#include "base/checked.h"
#include "codegen/cuda/pieces.h"
#include "codegen/cuda/reads.h"
#include "codegen/family/family.h"
#include "rtile/space.h"

enum {
    MAX_VECTORS = 4,   // of a thread, whose loads are in flight at once
    MAX_WARPS = 16,
    MOVE_WARPS = 8,   // of a block whose threads move one element each, of a whole access
    OTHER_REGISTERS = 6   // addresses and counters, counted in what ptxas takes (tuning-log 133)
};

/* The family's view: what vectors of points read, as wide as they get, of a half and of a quarter. */
enum { WIDTHS = 3 };
typedef struct Points {
    int widest;
    const Reads *reads[WIDTHS];
} Points;

static const Reads *reads_of(const Points *points, int vector)
{
    int half = 0;
    while (points->widest >> half != vector)
        half++;
    return points->reads[half];
}

/* A thread's vector follows the outputs. */
static Reads find_reads(const Fusion *fusion, int vector)
{
    return reads_find((Walk){
        .fusion = fusion,
        .ops = fusion->op_count,
        .axis = fusion->spatial_count - 1,
        .vector = vector,
        .flat = true,
        .lines = true,
        .padded = true,
        .once = true,
    });
}

/* Elements that fill a 16-byte access of the narrowest tensor walked in the points' order. */
static int widest_vector(const Fusion *fusion)
{
    int narrowest = VECTOR_BYTES * 8;
    Reads reads = find_reads(fusion, 1);
    for (int i = 0; i < reads.count; i++) {
        int bits = dtype_info[reads.reads[i].access->tensor->dtype].bits;
        if (reads.reads[i].pattern == PATTERN_FLAT && bits > 1 && bits < narrowest)
            narrowest = bits;
    }
    for (int i = 0; i < fusion->output_count; i++) {
        int bits = dtype_info[fusion->outputs[i]->dtype].bits;
        if (bits > 1 && bits < narrowest)
            narrowest = bits;
    }
    int vector = VECTOR_BYTES * 8 / narrowest;
    return vector < MAX_VECTOR ? vector : MAX_VECTOR;
}

static const void *view_of(Arena *arena, const Fusion *fusion, const Target *target)
{
    (void)target;
    if (fusion_reduces(fusion) || !fusion_is_uniform(fusion) || !bits_are_flat(fusion))
        return NULL;
    Points points = {.widest = widest_vector(fusion)};
    for (int half = 0; half < WIDTHS && points.widest >> half; half++) {
        Reads reads = find_reads(fusion, points.widest >> half);
        points.reads[half] = arena_copy(arena, &reads, sizeof reads);
    }
    return arena_copy(arena, &points, sizeof points);
}

// ---- kinds ----

/* L1 lines that a warp touches for each line's worth of what is read one by one, or every second, and of rows
   along the points that others read again: all of it comes through L1. Where a vector is several accesses, as
   eight f32 are two of 16 bytes, each touches the lines of all. Returns the tiles that are read again. */
static uint32_t set_lines(TileSpace *space, const Fusion *fusion, const Reads *reads, const DeviceSpec *device)
{
    FusedAccess found[MAX_DATA_TILES];
    int count = fusion_accesses(fusion, found, MAX_DATA_TILES - fusion->output_count), vector = reads->walk.vector;
    uint32_t tiles = 0;
    for (int i = 0; i < count; i++) {
        Affine offset = fused_offset(fusion, &found[i]);
        DataTile *tile = space_flat_tile(space, fusion, found[i].access->tensor, &offset);
        int index = reads_index(reads, found[i].access);
        Pattern pattern = index < 0 ? PATTERN_GATHER : reads->reads[index].pattern;
        bool reused = index >= 0 && reads->reads[index].reused, row = reused && pattern == PATTERN_ROW;
        if (!tile)
            continue;
        tiles |= (uint32_t)reused << (tile - space->tiles);
        bool along = reused && pattern == PATTERN_LINE && offset.coef[reads->walk.axis],
             one = (pattern == PATTERN_GATHER || pattern == PATTERN_SECOND) && !found[i].fetch;
        int apart = pattern == PATTERN_SECOND ? 1 : vector,
            together = row ? (int)smaller(vector, 8 * VECTOR_BYTES / tile->element_bits) : 1;
        if (row || (along && tile->element_bits >= WORD_BITS) || (one && tile->element_bits >= 8))
            tile->lines = access_lines(found[i].access, fusion, 0, fusion->spatial_count, apart, together, device);
    }
    return tiles;
}

/* What guards keep is read by the two pieces that hold a vector, unless it is one of them. Is there any? */
static bool find_padded(TileSpace *space, const Fusion *fusion, const Reads *reads)
{
    for (int i = 0; i < reads->count; i++) {
        DataTile *tile = space_flat_tile(space, fusion, reads->reads[i].access->tensor, &reads->reads[i].seen);
        if (tile && reads->reads[i].pattern == PATTERN_PADDED)
            tile->lines = read_is_whole(&reads->reads[i], &reads->walk) ? 1 : 2;
    }
    return reads_have(reads, PATTERN_PADDED);
}

/* Of each row of a concatenation a piece is a part. */
static void find_pieces(TileSpace *space, const Fusion *fusion, const Reads *reads)
{
    for (int i = 0; i < reads->count; i++) {
        Pieces pieces;
        if (!reads->reads[i].pieces ||
            !pieces_find(fusion, reads->walk.axis, reads->walk.vector, reads->reads[i].pieces, &pieces))
            continue;
        int64_t row = fusion->axes[pieces.axis].extent, begin = 0;
        for (int a = pieces.axis + 1; a < fusion->spatial_count; a++)
            row *= fusion->axes[a].extent;
        for (int p = 0; p < pieces.count; begin = pieces.piece[p++].end) {
            DataTile *tile =
                space_flat_tile(space, fusion, pieces.piece[p].access->tensor, &pieces.piece[p].offset);
            if (tile)
                tile->taps = (TapTile){.step = row,
                                       .channels = row / fusion->axes[pieces.axis].extent *
                                                   (pieces.piece[p].end - begin)};
        }
    }
}

/* Of a thread for a point whose elements are read one by one, each position found once. Vectors that may cross the end
   of a row are read so, too, since one of a warp does. */
static double single_instructions(const Reads *reads)
{
    uint32_t single = 1u << PATTERN_GATHER | 1u << PATTERN_LINE;
    int positions = __builtin_popcount(reads_axes_of(reads, single)), elements = 0;
    for (int i = 0; i < reads->count; i++)
        elements += (single >> reads->reads[i].pattern & 1) != 0;
    return ELEMENT_INSTRUCTIONS * elements + (positions > 1 ? POSITION_INSTRUCTIONS * (positions - 1) : 0);
}

/* All of a thread's vectors are loaded before the first is needed, but what many points read. */
static void state(Schedule *schedule, const Fusion *fusion, const TileSpace *space, const Reads *reads,
                  uint32_t reused)
{
    int vector = reads->walk.vector;
    uint32_t inputs = space_inputs(space), streamed = inputs & ~reused;
    double each = single_instructions(reads) / (streamed ? __builtin_popcount(streamed) : 1);
    schedule_load(schedule, (Move){.tiles = streamed, .instructions = each});
    schedule_load(schedule, (Move){.tiles = inputs & reused, .from = PLACE_L2});
    schedule_map(schedule, schedule_ops(fusion, false));
    schedule_pack(schedule, schedule_bit_ops(fusion), vector, WORD_BITS);
    schedule_store(schedule, (Move){.tiles = space_outputs(space)});
}

/* The family's choice. */
typedef struct PointChoice {
    int vector;        // points of one access
    uint32_t reused;   // tiles that are read when they are needed
} PointChoice;

static PointChoice chosen(const KernelKind *kind) { return *(const PointChoice *)kind->choice.value; }

/* All that is loaded before the first vector is needed, and what one of them makes. */
static int64_t registers_taken_by_points(const KernelKind *kind, const RTile *block, const RTile *inner,
                                         RegisterBudget budget)
{
    (void)block, (void)budget;
    const TileSpace *space = kind->space;
    PointChoice choice = chosen(kind);
    int64_t vectors = ceil_div(inner->size[0], choice.vector), registers = OTHER_REGISTERS;
    for (int i = 0; i < space->tile_count; i++) {
        const DataTile *data = &space->tiles[i];
        int64_t elements = data_tile_distinct(data, inner, space->axis_count);
        if (data->output)
            registers += ceil_div(elements, vectors) * ceil_div(data->element_bits, WORD_BITS);
        else if (!(choice.reused >> i & 1))
            registers += vector_registers(elements, choice.vector, data->element_bits);
    }
    return registers;
}

/* Elements of a whole access are moved one a thread, which is faster than with four (tuning-log 12). So are
   vectors that may hang over the ends of a tensor: a branch stands before each load. */
static int kinds(Arena *arena, const void *view, const Fusion *fusion, const DeviceSpec *device,
                 KernelKind *variants)
{
    static const char *const names[] = {"scalar", "x2", "", "x4", "", "", "", "x8",
                                        "",       "",   "", "",   "", "", "", "x16"};
    int count = 0, widest = ((const Points *)view)->widest;
    int vectors = widest > 1 ? MAX_VECTORS : 1, warps = widest > 1 ? MAX_WARPS * MAX_VECTORS : MOVE_WARPS;
    int fewest = device->schedulers_per_sm < warps ? device->schedulers_per_sm : warps;   // one for each
    for (int vector = widest; vector >= 1 && count < 3; vector /= 2) {
        KernelKind *kind = &variants[count++];
        const Reads *reads = reads_of(view, vector);
        kind_begin(arena, kind, fusion);
        kind->name = names[vector - 1];
        int point = space_add_axis(kind->space, "point", spatial_points(fusion), false);
        space_add_flat_tiles(kind->space, fusion, fusion->spatial_count - 1, device);
        uint32_t reused = set_lines(kind->space, fusion, reads, device);
        kind_choose(arena, kind, &(PointChoice){vector, reused}, sizeof(PointChoice));
        state(kind->schedule, fusion, kind->space, reads, reused);
        bool padded = find_padded(kind->space, fusion, reads);
        find_pieces(kind->space, fusion, reads);
        int most = padded ? vector : vector * vectors;
        int64_t warp = (int64_t)vector * device->warp_size;
        kind->space->rule[LEVEL_REGISTER][point] = (AxisRule){vector, most};
        kind->space->rule[LEVEL_SHARED][point] = (AxisRule){warp * fewest, warp * warps};
        kind->registers.accumulator_bits = 32;
        kind->registers.others = 24;
        kind->registers.taken = registers_taken_by_points;
        kind->registers.input_buffers = 1;
        /* Narrower ones would read elements one by one, but may keep more SMs busy. */
        if (padded && spatial_points(fusion) >= warp * fewest * device->sm_count)
            break;
    }
    return count;
}

// ---- the parameter block ----

static int64_t vectors_of(const KernelPlan *plan)
{
    return ceil_div(plan->program->tile[LEVEL_REGISTER].size[0], chosen(plan->kind).vector);
}

/* Whole ones, and those of the points beyond, whose threads have a vector each. */
static int64_t blocks(const KernelPlan *plan)
{
    int64_t points = spatial_points(plan->fusion), step = (int64_t)plan->threads * chosen(plan->kind).vector,
            block = step * vectors_of(plan);
    return points / block + ceil_div(points % block, step);
}

static void emit_constants(StrBuf *out, const KernelPlan *plan)
{
    CONSTEXPR(out, "Index POINTS", NULL, spatial_points(plan->fusion));
    CONSTEXPR(out, "int THREADS", NULL, plan->threads);
    CONSTEXPR(out, "int VECTOR", "contiguous points of an access", chosen(plan->kind).vector);
    CONSTEXPR(out, "int VECTORS", "vectors of a thread, one block apart", vectors_of(plan));
}

static void emit_registers(StrBuf *out, const Fusion *fusion, const Reads *reads)
{
    strbuf_puts(out, "\n// What one vector of points loads, and what it computes.\n");
    reads_emit_inputs(out, reads);
    strbuf_puts(out, "struct Outputs {\n");
    for (int i = 0; i < fusion->output_count; i++)
        strbuf_printf(out, "    %s y%d[VECTOR];\n", value_type(fusion->outputs[i]->dtype), i);
    strbuf_puts(out, "};\n");
}

/* A function that reads what a vector needs whose points are all inside. */
static void emit_load_vector(StrBuf *out, const Scope *scope, const Reads *reads, const char *function)
{
    int axes = scope->fusion->spatial_count;
    strbuf_printf(out,
                  "__device__ __forceinline__ void %s(const Tensors &t, Index point, Inputs &in)\n{\n",
                  function);
    emit_used_positions(out, "    ", "point", scope, 0, axes, reads_axes_of(reads, VECTOR_PATTERNS));
    reads_emit_vectors(out, "    ", scope, reads, "point");
    reads_emit_lines(out, scope, reads);
    if (reads_have(reads, PATTERN_GATHER)) {
        strbuf_puts(out,
                    "    UNROLL for (int e = 0; e < VECTOR; ++e) {\n        const Index each = point + e;\n");
        emit_used_positions(out, "        ", "each", scope, 0, axes,
                            reads_axes_of(reads, 1u << PATTERN_GATHER));
        reads_emit_gathers(out, "        ", scope, reads);
        strbuf_puts(out, "    }\n");
    }
    strbuf_puts(out, "}\n");
}

static void emit_loads(StrBuf *out, const Scope *scope, Reads reads)
{
    strbuf_puts(out, "\n");
    reads.part = READS_STREAMED;
    emit_load_vector(out, scope, &reads, "load_points");
    strbuf_puts(out, "\n// Inputs that many points read hit a cache: they are loaded when they are used, which saves registers.\n");
    reads.part = READS_REUSED;
    emit_load_vector(out, scope, &reads, "load_reused");
}

/* Reads of one point, for the last vector. */
static void emit_load_point(StrBuf *out, const Scope *scope, const Reads *reads)
{
    begin_function(out, NULL, "void load_point(const Tensors &t, Index point, int e, Inputs &in)");
    emit_used_positions(out, "    ", "point", scope, 0, scope->fusion->spatial_count,
                        reads_axes_of(reads, ~(1u << PATTERN_PADDED)));
    for (int i = 0; i < reads->count; i++)
        if (reads->reads[i].pattern != PATTERN_PADDED)   // of these all vectors are whole
            reads_emit_one(out, "    ", scope, reads, i, "e");
    strbuf_puts(out, "}\n");
}

/* Positions of a point. Vectors that stay in their rows have the same but for the last axis. */
static void emit_point_positions(StrBuf *out, const Scope *scope, const Reads *reads, uint32_t used)
{
    int axes = scope->fusion->spatial_count, last = axes - 1;
    if (!reads_have(reads, PATTERN_PADDED)) {
        emit_used_positions(out, "    ", "point", scope, 0, axes, used);
        return;
    }
    int64_t row = scope->fusion->axes[last].extent;
    strbuf_puts(out, "    const Index first = point - e;   // of the vector, which lies in one row\n");
    emit_used_positions(out, "    ", "first", scope, 0, last + 1, used & ~(1u << last));
    if (used >> last & 1)
        strbuf_printf(out, "    const Index %s = first %% %" PRId64 " + e;\n", scope->axis[last], row);
}

static void emit_compute(StrBuf *out, const Scope *scope, const Reads *reads)
{
    const Fusion *fusion = scope->fusion;
    uint32_t used = 0;
    for (int i = 0; i < fusion->op_count; i++)
        used |= reads_axes_left(reads, fusion->ops[i].body);
    begin_function(out, NULL, "void compute(const Tensors &t, Index point, int e, const Inputs &in, Outputs &out)");
    emit_point_positions(out, scope, reads, used);
    emit_pointwise_ops(out, "    ", scope, 0);
    for (int i = 0; i < fusion->op_count; i++)
        if (fusion->ops[i].stored)
            strbuf_printf(out, "    out.y%d[e] = v%d;\n", output_position(fusion, fusion->ops[i].out), i);
    strbuf_puts(out, "}\n");
}

/* What is stored in the order of the points, one line for each. */
static void emit_flat_stores(StrBuf *out, const Fusion *fusion, const char *format)
{
    for (int i = 0; i < fusion->op_count; i++) {
        const FusedOp *op = &fusion->ops[i];
        int output = output_position(fusion, op->out);
        if (op->stored && op->out->dtype != DTYPE_B1 && access_is_flat(&op->store, fusion))
            strbuf_printf(out, format, output, output);
    }
}

/* What is stored in another order: element e, which is the point `flat`. */
static void emit_other_stores(StrBuf *out, const char *indent, const Scope *scope, const char *flat)
{
    const Fusion *fusion = scope->fusion;
    StrBuf stores = strbuf_new(out->arena);
    uint32_t used = 0;
    for (int i = 0; i < fusion->op_count; i++) {
        const FusedOp *op = &fusion->ops[i];
        int output = output_position(fusion, op->out);
        if (!op->stored || access_is_flat(&op->store, fusion))
            continue;
        Affine offset = access_offset(&op->store);
        used |= affine_axes(&offset);
        strbuf_printf(&stores, "%sstore(t.out%d, %s, out.y%d[e]);\n", indent, output,
                      affine_text(stores.arena, &offset, scope->axis), output);
    }
    emit_used_positions(out, indent, flat, scope, 0, fusion->spatial_count, used);
    strbuf_puts(out, stores.text);
}

static bool all_are_flat(const Fusion *fusion)
{
    for (int i = 0; i < fusion->op_count; i++)
        if (fusion->ops[i].stored && !access_is_flat(&fusion->ops[i].store, fusion))
            return false;
    return true;
}

/* Real outputs as vectors or one by one; one-bit outputs by all lanes of the warp together. */
static void emit_output_stores(StrBuf *out, const Scope *scope)
{
    const Fusion *fusion = scope->fusion;
    assert(bits_are_flat(fusion));   // store_bits takes the point for the position
    begin_function(out, NULL, "void store_points(const Tensors &t, Index point, const Outputs &out)");
    emit_flat_stores(out, fusion, "    store_vector<VECTOR>(t.out%d, point, out.y%d);\n");
    if (!all_are_flat(fusion)) {
        strbuf_puts(out, "    UNROLL for (int e = 0; e < VECTOR; ++e) {\n");
        emit_other_stores(out, "        ", scope, "(point + e)");
        strbuf_puts(out, "    }\n");
    }
    strbuf_puts(out, "}\n\n__device__ __forceinline__ void store_point(const Tensors &t, Index point, int e, "
                     "const Outputs &out)\n{\n");
    emit_flat_stores(out, fusion, "    store(t.out%d, point, out.y%d[e]);\n");
    emit_other_stores(out, "    ", scope, "point");
    strbuf_puts(
        out,
        "}\n\n// All lanes of a warp call it: together they pack words of one-bit outputs.\n"
        "__device__ __forceinline__ void store_words(const Tensors &t, Index point, const Outputs &out)\n{\n");
    for (int i = 0; i < fusion->output_count; i++)
        if (fusion->outputs[i]->dtype == DTYPE_B1)
            strbuf_printf(out, "    store_bits<VECTOR>(t.out%d, point, out.y%d, point < POINTS);\n", i, i);
    strbuf_puts(out, "}\n");
}

static void emit(StrBuf *out, const KernelPlan *plan)
{
    Reads reads = *reads_of(plan->view, chosen(plan->kind).vector);
    Scope scope = scope_of(plan);
    emit_constants(out, plan);
    emit_registers(out, plan->fusion, &reads);
    emit_loads(out, &scope, reads);
    emit_load_point(out, &scope, &reads);
    scope.loaded = reads_loaded;
    scope.context = &reads;
    emit_compute(out, &scope, &reads);
    emit_output_stores(out, &scope);
}

const Family elementwise_family = {
    .name = "elementwise",
    .template_path = "templates/elementwise.cu",
    .variants = (const char *const[]){"scalar", "x2", "x4", "x8", "x16", NULL},
    .whole_warps = true,
    .fetches = true,
    .view = view_of,
    .kinds = kinds,
    .emit = emit,
    .blocks = blocks,
};
