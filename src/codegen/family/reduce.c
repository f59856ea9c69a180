// reduce: a reduction over all reduction axes, then pointwise work on the totals. Threads of a block share
// the terms.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "codegen/cuda/reads.h"
#include "codegen/family/family.h"
#include "ir/window.h"
#include "kernel/layout.h"
#include "model/calibration.h"
#include "rtile/space.h"

enum {
    MAX_DEPTH = 8,        // vectors of a thread whose loads are in flight at once
    MAX_THREADS = 1024,   // of a block, on every device so far
    ELEMENTS = 16,        // of a thread that are in flight at once; twice as many of vectors
    MANY_ROWS = 4096,
    ROW_GROUPS = 32,     // rows of a block: larger blocks wait longer for their last warp,
    ROW_THREADS = 256,   // unless there would be fewer threads
};

// ---- layouts: how threads and vectors lie ----

typedef struct Layout {
    const char *name;
    bool
        row;   // neighbouring threads, and the elements of a vector, lie along the terms; else along the outputs
    int vector;
} Layout;

/* The family chooses one of them. */
static const Layout layouts[] = {
    {"row", true, 1},      {"row-x2", true, 2},  {"row-x4", true, 4},     {"row-x8", true, 8},
    {"row-x16", true, 16}, {"column", false, 1}, {"column-x2", false, 2}, {"column-x4", false, 4},
};
enum { LAYOUTS = sizeof layouts / sizeof *layouts };

/* The fusion's axis along which neighbours lie; -1: there is none. */
static int layout_axis(const Fusion *fusion, bool row)
{
    return row ? fusion->axis_count - 1 : fusion->spatial_count - 1;
}

static Reads terms_read(const Fusion *fusion, Layout layout)
{
    return reads_find((Walk){
        .fusion = fusion,
        .ops = 1,
        .axis = layout_axis(fusion, layout.row),
        .vector = layout.vector,
        .padded = true,
    });
}

/* Distinct elements that an access touches. */
static double touched(const Fusion *fusion, const Affine *offset)
{
    double elements = 1;
    for (int a = 0; a < fusion->axis_count; a++)
        if (offset->coef[a])
            elements *= (double)fusion->axes[a].extent;
    return elements;
}

/* What the accesses that touch most elements look like. */
typedef struct Dominant {
    double elements;
    int bits;           // of an element
    bool row, column;   // contiguous along the terms, along the outputs
} Dominant;

static Dominant find_dominant(const Fusion *fusion)
{
    Dominant most = {0};
    FusedAccess found[4 * MAX_LOADED];
    int count = fusion_accesses(fusion, found, 4 * MAX_LOADED);
    int row = layout_axis(fusion, true), column = layout_axis(fusion, false);
    for (int i = 0; i < count; i++) {
        Affine offset = access_offset(found[i].access);
        double elements = touched(fusion, &offset);
        if (found[i].op != 0 || elements < most.elements)
            continue;
        if (elements > most.elements)
            most = (Dominant){.elements = elements, .bits = dtype_info[found[i].access->tensor->dtype].bits};
        most.row |= llabs(offset.coef[row]) == 1;
        most.column |= column >= 0 && llabs(offset.coef[column]) == 1;
    }
    return most;
}

/* Every output has elements of its own, but for those that its neighbours' windows share, as of a single filter. */
static bool has_own_elements(const Fusion *fusion)
{
    uint32_t outputs = (1u << fusion->spatial_count) - 1;
    FusedAccess found[MAX_ACCESSES];
    int count = fusion_accesses(fusion, found, MAX_ACCESSES);
    for (int i = 0; i < count; i++)
        if (found[i].op == 0 && (access_axes(found[i].access) & outputs) == outputs)
            return true;
    return false;
}

/* Windows that many filters read are left to products, and those of one channel to their own family: neighbouring
   outputs share what they read. */
static bool is_left_to_others(const Fusion *fusion)
{
    int taps = 0;
    for (int a = fusion->spatial_count; a < fusion->axis_count; a++)
        taps += window_has_tap(fusion, a);
    return taps && (taps == fusion->axis_count - fusion->spatial_count || !has_own_elements(fusion));
}

/* A fusion whose outputs are parts of a sum, the outermost axis, of which the last one has fewer terms: all terms are under a guard
   whose other value is the identity (fusion_split). */
typedef struct Ended {
    const Fusion *open;   // without the guard; NULL: there is none
    int64_t size, inner;  // positions of the outermost reduced axis in all parts, and terms of each
} Ended;

typedef struct ReduceView {
    Dominant most;
    Ended ended;
} ReduceView;

static Ended find_end(Arena *arena, const Fusion *fusion)
{
    const Expr *body = fusion->ops[0].body;
    int outermost = fusion->spatial_count;
    if (body->kind != EXPR_GUARD || body->guard.count != 1 || outermost == 0 ||
        !expr_equal(body->guard.otherwise, reduce_identity(arena, fusion->ops[0].reduce, body->type)))
        return (Ended){0};
    int64_t chunk = fusion->axes[outermost].extent, size = body->guard.bounds[0].size;
    Affine position = affine_axis(outermost);
    position.coef[0] = chunk;
    bool parts = memcmp(&position, &body->guard.bounds[0].index, sizeof position) == 0;
    if (!parts || size <= (fusion->axes[0].extent - 1) * chunk)
        return (Ended){0};
    Fusion *open = arena_copy(arena, fusion, sizeof *fusion);
    open->ops = arena_copy(arena, fusion->ops, sizeof *fusion->ops * (size_t)fusion->op_count);
    open->ops[0].body = body->guard.body;
    return (Ended){open, size, reduction_points(fusion) / chunk};
}

/* Parts begin with whole vectors of terms, and vectors of outputs are of one part. */
static bool ends_vectors(const Ended *ended, Layout layout)
{
    const Fusion *open = ended->open;
    if (!open || !layout.row)
        return open && (layout.vector == 1 || layout_axis(open, false) > 0);
    return reduction_points(open) % layout.vector == 0 && (ended->inner == 1 || ended->inner % layout.vector == 0);
}

/* What a thread computes of each term that exists. */
static const Fusion *terms_of(const ReduceView *view, const Fusion *fusion, Layout layout)
{
    return ends_vectors(&view->ended, layout) ? view->ended.open : fusion;
}

static const void *view_of(Arena *arena, const Fusion *fusion, const Target *target)
{
    (void)target;
    if (!fusion_is_reduction(fusion) || count_bit_outputs(fusion) || is_left_to_others(fusion))
        return NULL;
    ReduceView view = {find_dominant(fusion), find_end(arena, fusion)};
    return arena_copy(arena, &view, sizeof view);
}

/* The side along which memory is contiguous; both if neither is. */
static bool offers(const Dominant *most, const Fusion *fusion, bool row)
{
    if (fusion->spatial_count == 0)
        return row;
    return row ? most->row || !most->column : most->column || !most->row;
}

/* Vectors end where the innermost axis does; one of the largest reads is then a single access of at most 16
   bytes, and so are the totals. */
static bool vector_fits(const Dominant *most, const Fusion *fusion, Layout layout)
{
    if (layout.vector == 1)
        return true;
    int total_bits = dtype_info[fusion->ops[0].body->type].bits;
    bool aligned = fusion->axes[layout_axis(fusion, layout.row)].extent % layout.vector == 0;
    if (!aligned || (!layout.row && layout.vector * total_bits > 8 * VECTOR_BYTES))
        return false;
    Reads reads = terms_read(fusion, layout);
    for (int i = 0; i < reads.count; i++) {
        const Read *read = &reads.reads[i];
        int bits = dtype_info[read->access->tensor->dtype].bits;
        bool whole = read->pattern == PATTERN_ROW || read->pattern == PATTERN_PADDED;
        if (whole && bits > 1 && layout.vector * bits <= 8 * VECTOR_BYTES &&
            touched(fusion, &read->offset) == most->elements)
            return true;
    }
    return false;
}

// ---- kinds ----

/* Outputs of a block along the columns come in multiples of a line of memory, unless there are fewer side by side. */
static int64_t outputs_of_run(const Dominant *most, const Fusion *fusion, const DeviceSpec *device)
{
    if (!most->column)
        return 1;
    int64_t outputs = 8 * device->shared.transaction_bytes / most->bits;
    return fusion->axes[layout_axis(fusion, false)].extent >= outputs ? outputs : 1;
}

/* Threads of a row read a sector side by side. */
static int least_reducers(int bits, Layout layout, const DeviceSpec *device)
{
    return bits < 8 ? 1 : 8 * device->dram.transaction_bytes / (layout.vector * bits);
}

/* Counted in SASS: a division and a remainder; a position that is tested against an end, and the zero in an element's place.
   An address of what several axes move takes one for each of them, and one at its end. */
enum { DIVISION_INSTRUCTIONS = 4, BOUND_INSTRUCTIONS = 3 };

/* Of a thread for each vector of terms: positions along all axes but the outermost one, which costs nothing, and ends.
   They are found once for all of these tiles. */
static double finding_instructions(const Fusion *fusion, uint32_t tiles)
{
    uint32_t terms = expr_axes(fusion->ops[0].body) >> fusion->spatial_count;
    int positions = __builtin_popcount(terms) - 1, loads = __builtin_popcount(tiles);
    double all = BOUND_INSTRUCTIONS * expr_bounds(fusion->ops[0].body);
    if (positions > 0)
        all += DIVISION_INSTRUCTIONS * positions + (positions + 2) * loads;
    return loads ? all / loads : 0;
}

/* Elements that a thread's access brings: of a vector that is read as a whole all of them. */
static int elements_together(const Reads *reads, const Access *access, Layout layout)
{
    int index = reads_index(reads, access);
    Pattern pattern = index < 0 ? PATTERN_GATHER : reads->reads[index].pattern;
    return pattern == PATTERN_ROW || pattern == PATTERN_PADDED ? layout.vector : 1;
}

/* Neighbouring threads may read from many lines, or less than one. */
static void set_lines(TileSpace *space, const Fusion *fusion, Layout layout, const DeviceSpec *device)
{
    FusedAccess found[MAX_DATA_TILES];
    int count = fusion_accesses(fusion, found, MAX_DATA_TILES - fusion->output_count);
    int first = layout.row ? fusion->spatial_count : 0;
    int end = layout.row ? fusion->axis_count : fusion->spatial_count;
    Reads reads = terms_read(fusion, layout);
    for (int i = 0; i < count; i++) {
        const Access *access = found[i].access;
        Affine offset = fused_offset(fusion, &found[i]);
        DataTile *tile = space_flat_tile(space, fusion, access->tensor, &offset);
        if (!tile || found[i].op != 0 || found[i].fetch || tile->element_bits < 8)
            continue;
        tile->vector = elements_together(&reads, access, layout);
        tile->lines = access_lines(access, fusion, first, end, layout.vector, tile->vector, device);
    }
}

/* Threads take vectors along the terms side by side. Those that lack one of the last load it again: a branch
   that loads and unpacks 16 bits waits (tuning-log 223). So do single elements of short parts that end
   anywhere: their loops have four loads in flight (tuning-log 286). Loops of long parts have sixteen (SASS),
   and registers of positions leave room for fewer threads: 1.2 of the time. Columns are faster with branches. */
static bool shares_vectors(Layout layout, const Ended *ended, const Fusion *part, const DeviceSpec *device)
{
    int64_t most = 4 * ELEMENTS * device->max_threads_per_block;   // four rounds of each thread
    return layout.row && (layout.vector > 1 || (ended && reduction_points(part) < most));
}

/* Of a thread, as the CUDA text has it. */
static int elements_in_flight(Layout layout) { return layout.vector > 1 ? 2 * ELEMENTS : ELEMENTS; }

/* Threads that share an output combine what they have: first those of a warp, along the terms. */
static void state(Schedule *schedule, const Fusion *fusion, const TileSpace *space, Layout layout,
                  int reduced, const Ended *ended, const DeviceSpec *device)
{
    uint32_t inputs = space_inputs(space), terms = space_along(space, reduced);
    uint64_t total = schedule_ops(fusion, true);
    double each = finding_instructions(fusion, inputs & terms) / layout.vector;
    schedule->terms = shares_vectors(layout, ended, fusion, device) ? layout.vector : 0;
    if (ended) {
        schedule->lacking = spatial_points(fusion) / fusion->axes[0].extent;
        schedule->lacked = fusion->axes[0].extent * reduction_points(fusion) - ended->size * ended->inner;
    }
    schedule_load(schedule, (Move){.tiles = inputs & ~terms});
    schedule_loop(schedule, (Loop){.axis = (int8_t)reduced, .together = (int16_t)elements_in_flight(layout)});
    schedule_load(schedule, (Move){.tiles = inputs & terms, .instructions = each});
    schedule_reduce(schedule, total);
    schedule_end(schedule);
    schedule_exchange(schedule, (Exchange){
                                    .ops = total,
                                    .scope = SCOPE_BLOCK,
                                    .combine = COMBINE_TREE,
                                    .along = layout.row,
                                    .bytes = (uint8_t)(dtype_info[fusion->ops[0].body->type].bits / 8),
                                    .value_bytes = (uint8_t)(dtype_info[fusion->ops[0].body->type].bits / 8),
                                    .values = (uint8_t)(layout.row ? layout.vector : 1),
                                    .width = (int16_t)(layout.row ? 1 : layout.vector),
                                });
    schedule_map(schedule, schedule_ops(fusion, false));
    schedule_store(schedule, (Move){.tiles = space_outputs(space)});
}

static Layout chosen_layout(const KernelKind *kind) { return *(const Layout *)kind->choice.value; }

/* What rounds in flight load, sums, others, and positions of what may come again (tuning-log 277 and 286). */
static int64_t registers_taken_by_terms(const KernelKind *kind, const RTile *block, const RTile *inner,
                                        RegisterBudget budget)
{
    (void)budget;
    const TileSpace *space = kind->space;
    Layout layout = chosen_layout(kind);
    int64_t sums = layout.row && layout.vector == 1 ? 0 : inner->size[0] * inner->size[1] / (layout.row ? layout.vector : 1),
            registers = !layout.row ? 12 : layout.vector > 1 ? 20 : 14 + ELEMENTS * kind->schedule->terms;
    registers += sums * ceil_div(kind->registers.accumulator_bits, WORD_BITS);
    for (int i = 0; i < space->tile_count; i++) {
        if (!((space_inputs(space) & space_along(space, 1)) >> i & 1))
            continue;
        int64_t elements = data_tile_distinct(&space->tiles[i], inner, space->axis_count),
                rounds = larger(1, smaller(elements_in_flight(layout) / elements, space->axes[1].extent / block->size[1]));
        registers += vector_registers(elements * rounds, layout.vector, space->tiles[i].element_bits);
    }
    return registers;
}

/* Of a product's factors each lacks an axis of the outputs: each thread reads both by itself. */
static bool has_factors(const Fusion *fusion)
{
    FusedAccess found[MAX_DATA_TILES];
    int count = fusion_accesses(fusion, found, MAX_DATA_TILES), factors = 0;
    for (int i = 0; i < count; i++) {
        Affine offset = fused_offset(fusion, &found[i]);
        bool lacks = false;
        for (int a = 0; a < fusion->spatial_count; a++)
            lacks |= !offset.coef[a] && fusion->axes[a].extent > 1;
        factors += lacks && found[i].op == 0;
    }
    return factors > 1;
}

static void layout_kind(Arena *arena, KernelKind *kind, const Dominant *most_read, const Fusion *fusion,
                         const DeviceSpec *device, Layout layout, const Ended *ended)
{
    int outs = layout.row ? 1 : layout.vector, terms = layout.row ? layout.vector : 1;
    kind_begin(arena, kind, fusion);
    kind->name = layout.name;
    kind_choose(arena, kind, &layout, sizeof layout);
    int output = space_add_axis(kind->space, "output", spatial_points(fusion), false);
    int reduced = space_add_axis(kind->space, "reduced", reduction_points(fusion), true);
    space_add_flat_tiles(kind->space, fusion, layout_axis(fusion, layout.row), device);
    set_lines(kind->space, fusion, layout, device);
    state(kind->schedule, fusion, kind->space, layout, reduced, ended, device);

    int64_t short_row = ceil_div(reduction_points(fusion), terms);   // threads that have work in it
    int64_t row_groups = short_row < ROW_THREADS / ROW_GROUPS ? ROW_THREADS / short_row : ROW_GROUPS;
    int64_t groups = layout.row ? row_groups : MAX_THREADS,
            reducers = layout.row ? MAX_THREADS : 32;   // limits
    int64_t run = layout.row ? 1 : outputs_of_run(most_read, fusion, device);
    kind->space->rule[LEVEL_REGISTER][output] = (AxisRule){outs, outs};
    kind->space->rule[LEVEL_SHARED][output] = (AxisRule){run, outs * groups};
    int64_t most = smaller(terms * MAX_DEPTH, calibration.thread_elements), row_bits = 8 * (int64_t)device->dram.transaction_bytes;
    int bits = most_read->bits;
    if (layout.row && spatial_points(fusion) >= MANY_ROWS && bits * most > row_bits)
        most = row_bits / bits > terms ? row_bits / bits : terms;
    kind->space->rule[LEVEL_REGISTER][reduced] = (AxisRule){terms, most};
    kind->space->rule[LEVEL_SHARED][reduced] = (AxisRule){terms, most * reducers};
    kind->space->least_reducers = layout.row ? least_reducers(bits, layout, device) : 1;
    kind->registers.accumulator_bits = dtype_info[fusion->ops[0].body->type].bits;
    kind->registers.others = 32;
    kind->registers.taken = registers_taken_by_terms;
    kind->registers.input_buffers = 1;
    if (layout.row || has_factors(fusion))
        kind->cost = &calibration.by_steps;
    kind->lay_out = lay_out_sums;
}

/* Of each side that makes sense the widest vectors, and none. */
static int kinds(Arena *arena, const void *view, const Fusion *fusion, const DeviceSpec *device,
                 KernelKind *variants)
{
    const ReduceView *of = view;
    int count = 0;
    for (int v = LAYOUTS - 1, wide = 0; v >= 0; v--) {
        bool single = layouts[v].vector == 1;
        const Fusion *terms = terms_of(of, fusion, layouts[v]);
        if (offers(&of->most, fusion, layouts[v].row) && (single || !wide) && vector_fits(&of->most, terms, layouts[v])) {
            layout_kind(arena, &variants[count++], &of->most, terms, device, layouts[v],
                        terms != fusion ? &of->ended : NULL);
            wide = !single;   // the next side starts anew behind its single one
        }
    }
    return count;
}

// ---- the parameter block ----

/* Terms have an element that no vector holds, as under a guard: they load it where they use it. */
static bool loads_late(const Fusion *fusion, const Reads *reads)
{
    FusedAccess found[MAX_ACCESSES];
    int count = fusion_accesses(fusion, found, MAX_ACCESSES);
    for (int i = 0; i < count; i++)
        if (found[i].op == 0 && reads_index(reads, found[i].access) < 0)
            return true;
    return false;
}

static void emit_constants(StrBuf *out, const KernelPlan *plan, const Reads *reads)
{
    const Fusion *of_terms = reads->walk.fusion;
    const FusedOp *op = &of_terms->ops[0];
    Layout layout = chosen_layout(plan->kind);
    const RTile *block = &plan->program->tile[LEVEL_SHARED], *each = &plan->program->tile[LEVEL_REGISTER];
    int terms = layout.row ? layout.vector : 1;
    strbuf_printf(out, "using Reduction = %s;\n", combiner(op->reduce));
    strbuf_printf(out, "using A = %s;   // the type of accumulators\n", value_type(op->body->type));
    CONSTEXPR(out, "Index OUTPUTS, REDUCED", NULL, spatial_points(plan->fusion), reduction_points(plan->fusion));
    CONSTEXPR(out, "bool ROW", "adjacent threads along the terms", layout.row);
    CONSTEXPR(out, "int THREADS", NULL, plan->threads);
    CONSTEXPR(out, "int TS, TR", "groups of outputs, threads of a group", block->size[0] / each->size[0],
              block->size[1] / each->size[1]);
    CONSTEXPR(out, "int OUTS, TERMS", "of a thread at once", layout.vector / terms, terms);
    CONSTEXPR(out, "int VECTOR", "OUTS * TERMS", layout.vector);
    CONSTEXPR(out, "int DEPTH", "vectors of a step", each->size[1] / terms);
    CONSTEXPR(out, "bool AGAIN", "threads that lack a vector load the last one again",
              plan->kind->schedule->terms > 0);
    CONSTEXPR(out, "bool LATE", "terms load elements where they use them", loads_late(of_terms, reads));
    CONSTEXPR(out, "int ROUNDS", "steps in flight; 1: as many as compilers choose",
              loop_rounds_together(schedule_open_loop(plan->kind->schedule), each->size[0] * each->size[1]));
}

/* Where the terms of an output end: of the last vector some may exist. */
static void emit_end(StrBuf *out, const Scope *scope, const Ended *ended, Layout layout)
{
    bool early = scope->fusion == ended->open;
    int64_t points = ended->size * ended->inner;
    CONSTEXPR(out, "bool EARLY, CUT", "the last part has fewer terms, and a part of a vector", early,
              early && layout.row && points % layout.vector != 0);
    begin_function(out, NULL, "Index end_of(Index output)");
    if (early)
        strbuf_printf(out, "    return op_min<Index>(REDUCED, %" PRId64 " - output / %" PRId64 " * REDUCED);\n}\n", points,
                      spatial_points(scope->fusion) / scope->fusion->axes[0].extent);
    else
        strbuf_puts(out, "    return REDUCED;\n}\n");
}

static void emit_all_positions(StrBuf *out, const Scope *scope)
{
    emit_positions(out, "output", scope, 0, scope->fusion->spatial_count);
    emit_positions(out, "reduced", scope, scope->fusion->spatial_count, scope->fusion->axis_count);
}

/* The scope of the vector's element e. */
static Scope element_scope(Arena *arena, const Scope *first, Layout layout)
{
    Scope scope = *first;
    int axis = layout_axis(first->fusion, layout.row);
    if (layout.vector > 1)
        scope.axis[axis] = arena_printf(arena, "(%s + e)", first->axis[axis]);
    return scope;
}

static void emit_load_terms(StrBuf *out, const Scope *first, const Scope *element, const Reads *reads)
{
    strbuf_puts(out, "\n// What one vector of terms loads.\n");
    reads_emit_inputs(out, reads);
    begin_function(out, NULL, "void load_terms(const Tensors &t, Index output, Index reduced, Inputs &in)");
    if (reads->count)
        emit_all_positions(out, first);
    reads_emit_vectors(out, "    ", first, reads, "output");
    if (reads_have(reads, PATTERN_GATHER)) {
        strbuf_puts(out, "    UNROLL for (int e = 0; e < VECTOR; ++e) {\n");
        reads_emit_gathers(out, "        ", element, reads);
        strbuf_puts(out, "    }\n");
    }
    strbuf_puts(out, "}\n");
}

static void emit_term(StrBuf *out, const Scope *element, const Scope *first)
{
    begin_function(out, "Element e of the vector of terms that starts at (output, reduced).",
                   "A term(const Tensors &t, Index output, Index reduced, int e, const Inputs &in)");
    emit_all_positions(out, first);
    strbuf_printf(out, "    return %s;\n}\n", expr_text(out->arena, element, element->fusion->ops[0].body));
}

static void emit_single(StrBuf *out, const Scope *first)
{
    begin_function(out, "A term that belongs to no whole vector.", "A single(const Tensors &t, Index output, Index reduced)");
    emit_all_positions(out, first);
    strbuf_printf(out, "    return %s;\n}\n", expr_text(out->arena, first, first->fusion->ops[0].body));
}

/* What the epilogue reads besides the total, but for what a guard may keep it from. */
typedef struct ReduceBeside {
    const Access *access[MAX_LOADED];
    int count;
    char text[32];
} ReduceBeside;

static ReduceBeside beside_of(const Fusion *fusion)
{
    ReduceBeside beside = {0};
    FusedAccess found[MAX_ACCESSES];
    int count = fusion_accesses(fusion, found, MAX_ACCESSES);
    for (int i = 0; i < count && beside.count < MAX_LOADED; i++) {
        const Access *access = found[i].access;
        bool element = !found[i].guarded && !found[i].fetch && !found[i].in_place && access->tensor->dtype != DTYPE_B1;
        if (found[i].op > 0 && element && input_position(fusion, access->tensor) >= 0)
            beside.access[beside.count++] = access;
    }
    return beside;
}

static const char *beside_loaded(void *context, const Expr *expr)
{
    ReduceBeside *beside = context;
    for (int i = 0; i < beside->count && expr->kind == EXPR_ACCESS; i++)
        if (beside->access[i] == &expr->access) {
            snprintf(beside->text, sizeof beside->text, "widen(beside.x%d)", i);
            return beside->text;
        }
    return NULL;
}

static void emit_finish(StrBuf *out, const Scope *scope)
{
    const Fusion *fusion = scope->fusion;
    ReduceBeside beside = beside_of(fusion);
    strbuf_puts(out, "\n// What the epilogue loads besides the total.\n");
    CONSTEXPR(out, "bool BESIDE", "anything", beside.count > 0);
    strbuf_puts(out, "struct Beside {");
    for (int i = 0; i < beside.count; i++)
        strbuf_printf(out, "\n    %s x%d;", memory_type(beside.access[i]->tensor->dtype), i);
    strbuf_puts(out, beside.count ? "\n};\n" : "};\n");
    begin_function(out, NULL, "Beside read_beside(const Tensors &t, Index output)");
    strbuf_puts(out, "    Beside beside = {};\n");
    if (beside.count)
        emit_positions(out, "output", scope, 0, fusion->spatial_count);
    for (int i = 0; i < beside.count; i++)
        strbuf_printf(out, "    beside.x%d = t.in%d[%s];\n", i, input_position(fusion, beside.access[i]->tensor),
                      offset_text(out->arena, beside.access[i], scope->axis));
    strbuf_puts(out, "    return beside;\n}\n");
    begin_function(out, NULL, "void finish(const Tensors &t, Index output, A total, const Beside &beside)");
    Scope own = *scope;
    own.loaded = beside_loaded;
    own.context = &beside;
    emit_positions(out, "output", scope, 0, fusion->spatial_count);
    emit_epilogue(out, "    ", &own, "total");
    emit_stores(out, "    ", &own);
    strbuf_puts(out, "}\n");
}

static void emit(StrBuf *out, const KernelPlan *plan)
{
    Layout layout = chosen_layout(plan->kind);
    const ReduceView *view = plan->view;
    Scope first = scope_of(plan);
    first.fusion = terms_of(view, plan->fusion, layout);
    Reads reads = terms_read(first.fusion, layout);
    Scope element = element_scope(out->arena, &first, layout);

    emit_constants(out, plan, &reads);
    emit_end(out, &first, &view->ended, layout);
    emit_load_terms(out, &first, &element, &reads);
    element.loaded = reads_loaded;
    element.context = &reads;
    emit_term(out, &element, &first);
    emit_single(out, &first);
    emit_finish(out, &first);
}

const Family reduce_family = {
    .name = "reduce",
    .template_path = "templates/reduce.cu",
    .shares_body = true,
    .variants = (const char *const[]){"row", "row-x2", "row-x4", "row-x8", "row-x16", "column",
                                      "column-x2", "column-x4", NULL},
    .whole_warps = true,
    .view = view_of,
    .kinds = kinds,
    .emit = emit,
};
