// gemm: a sum of products of two elements of one type, computed by tensor cores.
#include <inttypes.h>

#include "base/checked.h"
#include "codegen/family/family.h"
#include "codegen/family/gemm/gemm.h"
#include "rprogram/cost/calibration.h"
#include "rtile/space.h"

enum {
    LOADED = 16,        // rows of a register tile
    MIN_K_PARTS = 2,    // instructions along k in a step
    MAX_K_PARTS = 8
};
enum { PIECE_BITS = 128, LINE_BITS = 1024 };
/* Threads end where 8 rows of each warp's tile, which go out through shared memory, fit in the stages' room. */
enum { MAX_WARP_TILE = 128, MAX_TILE = 256, MAX_THREADS = 256, MAX_VECTOR = 8 };
enum { SLAB_ROWS = 8, SLAB_PADDING = 8 };
enum { LARGE_TILE = 128, MAX_CLUSTER = 8, CLUSTER_VARIANT = 3 };

// ---- structure ----

/* An element as it lies in memory, or a zero in its place. */
static const Access *plain_access(const Expr *factor)
{
    if (factor->kind == EXPR_GUARD && is_zero(factor->guard.otherwise))
        factor = factor->guard.body;
    return factor->kind == EXPR_ACCESS ? &factor->access : NULL;
}

/* The factor's own; NULL: none. */
static const Guard *factor_guard(const Product *product, int factor)
{
    const Expr *expr = product->factor[factor];
    return expr->kind == EXPR_GUARD ? &expr->guard : NULL;
}

const Atom *find_atom(const Product *product, const DeviceSpec *device, AtomPlace place)
{
    const Access *a = plain_access(product->factor[0]), *b = plain_access(product->factor[1]);
    if (!a || !b || a->tensor->dtype != b->tensor->dtype)
        return NULL;
    return atom_for(device, dtype_info[a->tensor->dtype].name, place);
}

int64_t gemm_piece(const Product *product) { return PIECE_BITS / product_element_bits(product->factor[0]); }

static DType element_type(const Product *product) { return plain_access(product->factor[0])->tensor->dtype; }

/* Tensor cores cut off what they add of floats, as wide as those of C. */
static bool is_cut_off(const Product *product)
{
    return dtype_info[element_type(product)].compute == DTYPE_F32;
}

static bool matches(const Fusion *fusion, const DeviceSpec *device)
{
    Product product;
    return count_bit_outputs(fusion) == 0 && product_find(fusion, &product) &&
           find_atom(&product, device, IN_REGISTERS);
}

// ---- how the factors lie in memory ----

static const Group *fast_group(const Product *product, int factor, bool along_k)
{
    return &product->group[along_k ? GROUP_K : factor ? GROUP_N : GROUP_M];
}

/* Do flat positions along the group lie side by side? */
static bool lies_in_line(const Fusion *fusion, const Affine *offset, const Group *group)
{
    int64_t stride = 1;
    for (int i = group->count - 1; i >= 0; i--) {
        if (offset->coef[group->axes[i]] != stride)
            return false;
        stride *= fusion->axes[group->axes[i]].extent;
    }
    return true;
}

/* Are the neighbours of a piece along the axis all inside or all outside? As channels are beside a padded
   pixel. */
static bool guards_pieces(const Guard *guard, int axis, int64_t piece)
{
    for (int i = 0; guard && i < guard->count; i++) {
        const Dim *bound = &guard->bounds[i];
        if (!bound->index.coef[axis])
            continue;
        if (bound->index.coef[axis] != 1 || bound->index.constant % piece || bound->size % piece)
            return false;
        for (int a = 0; a < MAX_AXES; a++)
            if (a != axis && bound->index.coef[a] % piece)
                return false;
    }
    return true;
}

/* Behind the last elements of a row of M or N may be others as of a packed factor: pieces take them in
   vain. */
static bool ends_in_pieces(const Fusion *fusion, const Access *access, const Group *group, int64_t piece)
{
    int axis = innermost(group);
    const Dim *row = &access->dims[access->rank - 1];
    return fusion->axes[axis].extent % piece == 0 ||
           (group->count == 1 && axis < fusion->spatial_count && affine_single_axis(&row->index) == axis &&
            row->size >= round_up(fusion->axes[axis].extent, piece));
}

Reading find_reading(const Fusion *fusion, const Product *product, int factor)
{
    const Guard *own = factor_guard(product, factor);
    const Access *access = plain_access(product->factor[factor]);
    Affine offset = access_offset(access);
    int64_t piece = gemm_piece(product);
    for (int along_k = 1; along_k >= 0; along_k--) {
        const Group *group = fast_group(product, factor, along_k);
        int axis = innermost(group);
        if (offset_allows_vector(&offset, axis, piece) && ends_in_pieces(fusion, access, group, piece) &&
            guards_pieces(own, axis, piece) && guards_pieces(product->guard, axis, piece))
            return (Reading){along_k, BY_PIECES};
    }
    for (int along_k = 1; along_k >= 0 && !own && !product->guard; along_k--)
        if (lies_in_line(fusion, &offset, fast_group(product, factor, along_k)))
            return (Reading){along_k, FROM_ANYWHERE};
    return (Reading){product_along_k(fusion, product, factor), BY_ELEMENTS};
}

// ---- rules ----

static DataTile operand_tile(const Fusion *fusion, const Product *product, int factor)
{
    int rows = factor ? GROUP_N : GROUP_M;
    Reading reading = find_reading(fusion, product, factor);
    DataTile tile = {.rank = 3, .scatter = 1, .staged = true, .staged_inner = 2, .swizzled = true};
    tile.name = product_factor_name(product, factor);
    tile.scatter = reading.way == FROM_ANYWHERE ? 2 : 1;   // two pieces are read for one
    tile.element_bits = product_element_bits(product->factor[factor]);
    if (reading.way != BY_PIECES)
        tile.instructions = reading.way == FROM_ANYWHERE
                                ? calibration.gemm.shift_instructions
                                : product_search_instructions(fusion, product, factor);
    int row_dim = reading.along_k ? 1 : 2, k_dim = reading.along_k ? 2 : 1;
    tile.dims[0] = (Dim){affine_axis(GROUP_BATCH), product->group[GROUP_BATCH].extent};
    tile.dims[row_dim] = (Dim){affine_axis(rows), product->group[rows].extent};
    tile.dims[k_dim] = (Dim){affine_axis(GROUP_K), product->group[GROUP_K].extent};
    if (reading.way == BY_PIECES)
        tile.dims[2].size = round_up(tile.dims[2].size, gemm_piece(product));
    return tile;
}

TileSpace find_space(const Fusion *fusion, const DeviceSpec *device, const Product *product, const Atom *atom)
{
    TileSpace space = space_new(fusion, device);
    space.unit = atom->unit;
    for (int g = 0; g < GROUP_COUNT; g++)
        space_add_axis(&space, group_variable(g), product->group[g].extent, g == GROUP_K);
    for (int factor = 0; factor < 2; factor++)
        space.tiles[space.tile_count++] = operand_tile(fusion, product, factor);
    for (int i = 0; i < fusion->op_count && space.tile_count < MAX_DATA_TILES; i++)
        if (fusion->ops[i].stored)
            space.tiles[space.tile_count++] = product_output_tile(fusion, product, i);
    return space;
}

/* Factors that are read by a thread before it stores them in shared memory, one step ahead. */
static int held_factors(const Fusion *fusion, const Product *product)
{
    int held = 0;
    for (int factor = 0; factor < 2; factor++)
        held += find_reading(fusion, product, factor).way != BY_PIECES;
    return held;
}

/* Tiles of A and B, bit 0 and 1, that are read so. */
static uint32_t tiles_read(const Fusion *fusion, const Product *product, bool by_pieces)
{
    uint32_t tiles = 0;
    for (int factor = 0; factor < 2; factor++)
        if ((find_reading(fusion, product, factor).way == BY_PIECES) == by_pieces)
            tiles |= 1u << factor;
    return tiles;
}

static int value_bytes(const Product *product)
{
    return dtype_info[dtype_info[element_type(product)].compute].bits / 8;
}

void schedule_finish(Schedule *schedule, const Fusion *fusion, const Product *product, const TileSpace *space,
                     ThreadScope scope)
{
    schedule_exchange(schedule, (Exchange){.ops = schedule_ops(fusion, true),
                                           .scope = scope,
                                           .combine = COMBINE_ROWS,
                                           .value_bytes = (uint8_t)value_bytes(product),
                                           .width = 2});
    schedule_map(schedule, schedule_ops(fusion, false));
    schedule_store(schedule,
                   (Move){.tiles = space_outputs(space), .from = PLACE_REGISTERS, .to = PLACE_MEMORY});
}

/* While registers of one part of a step are multiplied those of the next part are loaded, behind the last
   step once more. */
static Schedule schedule_of(const Fusion *fusion, const Product *product, const TileSpace *space, int stages,
                            int cluster)
{
    Schedule schedule = {.pace = PACE_FREE, .order = ORDER_PANELS};
    uint32_t copied = tiles_read(fusion, product, true), held = tiles_read(fusion, product, false);
    uint8_t ahead = (uint8_t)(stages - 1);
    schedule_wait(&schedule, stages - 2);
    schedule_barrier(&schedule, SCOPE_BLOCK);
    schedule_loop(&schedule, (Loop){.axis = GROUP_K});
    schedule_load(&schedule,
                  (Move){.tiles = copied | held, .from = PLACE_SHARED, .to = PLACE_REGISTERS, .ahead = 1});
    schedule_load(&schedule, (Move){.tiles = copied,
                                    .from = PLACE_MEMORY,
                                    .to = PLACE_SHARED,
                                    .async = true,
                                    .ahead = ahead});
    schedule_load(&schedule,
                  (Move){.tiles = held, .from = PLACE_MEMORY, .to = PLACE_REGISTERS, .ahead = ahead});
    schedule_product(&schedule, schedule_ops(fusion, true));
    schedule_store(&schedule,
                   (Move){.tiles = held, .from = PLACE_REGISTERS, .to = PLACE_SHARED, .ahead = ahead});
    schedule_wait(&schedule, stages - 2);
    schedule_barrier(&schedule, SCOPE_BLOCK);
    schedule_end(&schedule);
    schedule_barrier(&schedule, SCOPE_BLOCK);
    schedule_finish(&schedule, fusion, product, space, cluster > 1 ? SCOPE_CLUSTER : SCOPE_WARP);
    return schedule;
}

/* Registers for each word of both factors' tiles, which are about as large: those of PieceAnywhere are nine
   for four. */
static double held_words(const Fusion *fusion, const Product *product)
{
    static const double words[] = {[BY_PIECES] = 0, [FROM_ANYWHERE] = 9.0 / 4, [BY_ELEMENTS] = 1};
    return (words[find_reading(fusion, product, 0).way] + words[find_reading(fusion, product, 1).way]) / 2;
}

int sum_bits(const Product *product)
{
    bool chains = is_cut_off(product) && product->group[GROUP_K].extent > MAX_CHAIN;
    return value_bytes(product) * (chains ? 16 : 8);
}

/* So many share the steps of a large tile at most that all of them find an SM at once, or nearly. */
static int largest_cluster(const DeviceSpec *device, const Product *product)
{
    int64_t tiles = fitting_mul(ceil_div(product->group[GROUP_M].extent, LARGE_TILE),
                                ceil_div(product->group[GROUP_N].extent, LARGE_TILE));
    tiles = fitting_mul(tiles, product->group[GROUP_BATCH].extent);
    int cluster = 1, most = device->has.clusters ? device->max_blocks_per_cluster : 1;
    while (2 * cluster <= MAX_CLUSTER && 2 * cluster <= most && cluster * tiles <= device->sm_count)
        cluster *= 2;
    return cluster;
}

/* Rows of all sums meet in the place of the stages, with padding; every block has a step. */
static TileRules in_cluster(const TileRules *alone, const Fusion *fusion, const Product *product, int cluster)
{
    TileRules rules = *alone;
    AxisRule *k = &rules.rule[LEVEL_SHARED][GROUP_K];
    rules.variant_name = gemm_family.variants[CLUSTER_VARIANT];
    rules.cluster_blocks = cluster;
    rules.sums_bytes = value_bytes(product) * 3 / 2;
    rules.schedule = schedule_of(fusion, product, &rules.space, rules.stages, cluster);
    while (k->limit > k->granule && k->limit > product->group[GROUP_K].extent / cluster)
        k->limit /= 2;
    return rules;
}

/* Of a tile whose rows lie side by side in memory: whole lines are read, where there are many. */
static int64_t least_rows(const Fusion *fusion, const Product *product, int group)
{
    bool in_lines = !find_reading(fusion, product, group == GROUP_N).along_k;
    return in_lines && product->group[group].extent >= 2 * MAX_TILE
             ? LINE_BITS / product_element_bits(product->factor[group == GROUP_N])
             : LOADED;
}

static int rules(const Fusion *fusion, const DeviceSpec *device, TileRules *variants)
{
    Product product;
    product_find(fusion, &product);
    const Atom *atom = find_atom(&product, device, IN_REGISTERS);
    TileRules rules = {.space = find_space(fusion, device, &product, atom)};
    rules.rule[LEVEL_REGISTER][GROUP_BATCH] = rules.rule[LEVEL_SHARED][GROUP_BATCH] = (AxisRule){1, 1};
    rules.rule[LEVEL_REGISTER][GROUP_K] = (AxisRule){atom->k, atom->k};
    rules.rule[LEVEL_SHARED][GROUP_K] = (AxisRule){MIN_K_PARTS * atom->k, MAX_K_PARTS * atom->k};
    for (int g = GROUP_M; g <= GROUP_N; g++) {
        rules.rule[LEVEL_REGISTER][g] = (AxisRule){LOADED, MAX_WARP_TILE};
        rules.rule[LEVEL_SHARED][g] = (AxisRule){least_rows(fusion, &product, g), MAX_TILE};
    }
    rules.tile_threads = device->warp_size;
    rules.peak_share = calibration.gemm.peak_share;
    rules.most_threads = MAX_THREADS;
    rules.accumulator_bits = sum_bits(&product);
    rules.input_buffers = 2;
    int held = held_factors(fusion, &product), count = 0;
    bool copied = device->has.async_copy && held < 2;   // several steps ahead
    rules.copies_through_registers = held > 0;
    rules.held_words = held_words(fusion, &product);
    rules.register_overhead = 48 + 16 * held;   // where a factor ends, and how its pieces are shifted
    for (int stages = copied ? 3 : 2; stages <= (copied ? 4 : 2); stages++) {
        rules.variant_name = gemm_family.variants[stages - 2];
        rules.stages = stages;
        rules.schedule = schedule_of(fusion, &product, &rules.space, stages, 1);
        variants[count++] = rules;
    }
    for (int cluster = 2; cluster <= largest_cluster(device, &product); cluster *= 2)
        if (product.group[GROUP_K].extent > cluster * MIN_K_PARTS * atom->k)
            variants[count++] = in_cluster(&variants[copied], fusion, &product, cluster);
    return count;
}

// ---- the parameter block ----

/* A function of the operand at (batch, row, k), up to the positions of its axes. */
static void emit_opening(StrBuf *out, const Scope *scope, const Product *product, int factor,
                         const char *returns, const char *more)
{
    int rows = factor ? GROUP_N : GROUP_M;
    uint32_t used = product_factor_axes(product, factor);
    strbuf_printf(
        out,
        "    static __device__ __forceinline__ %s(const Tensors &t, Index batch, Index %s, Index k%s)\n"
        "    {\n        (void)batch;\n",
        returns, group_variable(rows), more);
    emit_group_positions(out, scope, product, GROUP_BATCH, "batch", used);
    emit_group_positions(out, scope, product, rows, group_variable(rows), used);
    emit_group_positions(out, scope, product, GROUP_K, "k", used);
}

/* `inside(i1 - 1, 56) && …`, behind so many bounds that were written before; their number. */
static int emit_bounds(StrBuf *out, const Scope *scope, const Guard *guard, int before)
{
    for (int i = 0; guard && i < guard->count; i++) {
        strbuf_puts(out, before++ ? " && inside(" : "inside(");
        emit_affine(out, &guard->bounds[i].index, scope->axis);
        strbuf_printf(out, ", %" PRId64 ")", guard->bounds[i].size);
    }
    return before;
}

/* Where an element lies, if it exists. */
static void emit_source(StrBuf *out, const Scope *scope, const Product *product, int factor)
{
    const Access *access = plain_access(product->factor[factor]);
    Affine offset = access_offset(access);
    emit_opening(out, scope, product, factor, "CopySource<Element> at", "");
    strbuf_printf(out, "        return {t.in%d + (", input_position(scope->fusion, access->tensor));
    emit_affine(out, &offset, scope->axis);
    strbuf_puts(out, "), ");
    int bounds = emit_bounds(out, scope, product->guard, 0);
    bounds = emit_bounds(out, scope, factor_guard(product, factor), bounds);
    strbuf_puts(out, bounds ? "};\n    }\n" : "true};\n    }\n");
}

static void emit_from_anywhere(StrBuf *out, const Scope *scope, const Product *product, int factor)
{
    const Access *access = plain_access(product->factor[factor]);
    Affine offset = access_offset(access);
    strbuf_printf(out,
                  "    using Held = PieceAnywhere<Element>;\n"
                  "    static __device__ __forceinline__ Held::Last last(const Tensors &t)\n"
                  "    {\n        Held::Last piece;\n        piece.load<Index>(t.in%d, %" PRId64 ");\n"
                  "        return piece;\n    }\n",
                  input_position(scope->fusion, access->tensor), tensor_elements(access->tensor));
    emit_opening(out, scope, product, factor, "void read", ", bool exists, const Held::Last &last, Held &held");
    strbuf_printf(out, "        held.load<Index>(t.in%d, ",
                  input_position(scope->fusion, access->tensor));
    emit_affine(out, &offset, scope->axis);
    strbuf_printf(out, ", %" PRId64 ", exists, last);\n    }\n", tensor_elements(access->tensor));
}

static void emit_elements(StrBuf *out, const Scope *scope, const Product *product, int factor, bool along_k)
{
    const char *rows = group_variable(factor ? GROUP_N : GROUP_M), *fast = along_k ? "k" : rows;
    emit_source(out, scope, product, factor);
    strbuf_puts(out, "    using Held = PieceOfElements<Element>;\n"
                     "    static __device__ __forceinline__ Held::Last last(const Tensors &) { return {}; }\n");
    strbuf_printf(
        out,
        "    static __device__ __forceinline__ void read(const Tensors &t, Index batch, Index %s, Index k, "
        "bool exists, const Held::Last &, Held &held)\n    {\n        UNROLL for (int e = 0; e < %d; ++e)\n"
        "            held.load(e, at(t, batch, %s%s, k%s), exists && %s + e < %s);\n    }\n",
        rows, (int)gemm_piece(product), rows, along_k ? "" : " + e", along_k ? " + e" : "", fast,
        along_k  ? "K"
        : factor ? "N"
                 : "M");
}

static void emit_operand(StrBuf *out, const Scope *scope, const Product *product, int factor)
{
    Reading reading = find_reading(scope->fusion, product, factor);
    strbuf_printf(out,
                  "\nstruct Operand%c {\n"
                  "    static constexpr bool ALONG_K = %s;   // neighbours along k are neighbours in memory\n"
                  "    static constexpr bool PIECES = %s;    // those in 16 bytes are one aligned access\n",
                  "AB"[factor], reading.along_k ? "true" : "false",
                  reading.way == BY_PIECES ? "true" : "false");
    switch (reading.way) {
    case BY_PIECES: emit_source(out, scope, product, factor); break;
    case FROM_ANYWHERE: emit_from_anywhere(out, scope, product, factor); break;
    case BY_ELEMENTS: emit_elements(out, scope, product, factor, reading.along_k); break;
    }
    strbuf_puts(out, "};\n");
}

/* Columns of C that are one aligned access, at most 8. */
static int columns_of(const Fusion *fusion, const Product *product)
{
    int columns = MAX_VECTOR;
    while (columns > 1 && !product_stores_vectors(fusion, product, columns))
        columns /= 2;
    return columns;
}

static void emit_constants(StrBuf *out, const KernelPlan *plan, const Product *product, int columns,
                           const TensorTile *how)
{
    const int64_t *block = plan->program->tile[LEVEL_SHARED].size,
                  *own = plan->program->tile[LEVEL_REGISTER].size;
    strbuf_printf(
        out, "using Element = %s;   // of A and B\nusing Value = %s;   // of the products and their sum\n",
        dtype_info[element_type(product)].name, value_type(element_type(product)));
    strbuf_printf(out, "constexpr Index M = %" PRId64 ", N = %" PRId64 ", K = %" PRId64 ";\n",
                  product->group[GROUP_M].extent, product->group[GROUP_N].extent,
                  product->group[GROUP_K].extent);
    strbuf_printf(out,
                  "constexpr int BM = %" PRId64 ", BN = %" PRId64 ", BK = %" PRId64
                  ";   // rTile, shared memory\n",
                  block[GROUP_M], block[GROUP_N], block[GROUP_K]);
    strbuf_printf(out, "constexpr int WM = %" PRId64 ", WN = %" PRId64 ";   // rTile, registers of %s\n",
                  own[GROUP_M], own[GROUP_N], how->holders);
    const Atom *atom = find_atom(product, plan->device, IN_REGISTERS);
    if (!how->atom_shared)
        strbuf_printf(out, "constexpr int AM = %d, AN = %d, AK = %d;   // what one instruction multiplies\n",
                      atom->m, atom->n, atom->k);
    strbuf_printf(out, "constexpr int STAGES = %d;   // steps of tiles in shared memory\n",
                  plan->rules->stages);
    if (!how->atom_shared)
        strbuf_printf(out, "constexpr int CLUSTER = %d;   // blocks that share the steps along k\n",
                      plan->program->cluster);
    strbuf_printf(out, "constexpr Index CHAIN = %" PRId64 ";   // steps whose products are added up in one go\n",
                  is_cut_off(product) ? MAX_CHAIN / block[GROUP_K] : product->group[GROUP_K].extent);
    strbuf_printf(out, "constexpr int QN = %d;   // columns of C that are one aligned access\n", columns);
    strbuf_printf(out, "constexpr Index PANEL = %" PRId64 ";   // rows of blocks that run together\n",
                  plan->program->panel);
}

void gemm_emit(StrBuf *out, const KernelPlan *plan, const TensorTile *how)
{
    Product product;
    product_find(plan->fusion, &product);
    Scope scope = {.fusion = plan->fusion, .wide = plan->wide};
    for (int a = 0; a < plan->fusion->axis_count; a++)
        scope.axis[a] = axis_names[a];
    int columns = columns_of(plan->fusion, &product);
    emit_constants(out, plan, &product, columns, how);
    for (int factor = 0; factor < 2; factor++)
        (how->emit_operand ? how->emit_operand : emit_operand)(out, &scope, &product, factor);
    if (columns == 1)
        emit_finish(out, &scope, &product);
    emit_finish_vector(out, &scope, &product, columns > 1);
}

static void emit(StrBuf *out, const KernelPlan *plan)
{
    gemm_emit(out, plan, &(TensorTile){.holders = "a warp"});
}

/* Pieces in a line of a tile: 2, 4 or a multiple of 8 have their places. */
static int64_t pitch_of(int64_t pieces)
{
    return pieces > 4 ? round_up(pieces, 8) : pieces > 2 ? 4 : 2;
}

/* The stages of both operands, then in the same place a slab of each warp's tile. */
static KernelMemory memory(const KernelPlan *plan)
{
    Product product;
    product_find(plan->fusion, &product);
    const int64_t *block = plan->program->tile[LEVEL_SHARED].size,
                  *warp = plan->program->tile[LEVEL_REGISTER].size;
    int64_t bytes = 0, warps = plan->program->threads / plan->device->warp_size;
    for (int factor = 0; factor < 2; factor++) {
        int64_t rows = block[factor ? GROUP_N : GROUP_M], k = block[GROUP_K];
        bool along_k = find_reading(plan->fusion, &product, factor).along_k;
        int64_t pieces = (along_k ? k : rows) / gemm_piece(&product);
        bytes += (along_k ? rows : k) * pitch_of(pieces) * PIECE_BITS / 8;
    }
    int64_t rows = plan->program->cluster > 1 ? warp[GROUP_M] : SLAB_ROWS;
    int64_t stages = plan->rules->stages * bytes;
    int64_t slabs = warps * rows * (warp[GROUP_N] + SLAB_PADDING) * value_bytes(&product);
    return (KernelMemory){.shared_bytes = stages > slabs ? stages : slabs};
}

const Family gemm_family = {
    .name = "gemm",
    .template_path = "templates/gemm.cu",
    .variants = (const char *const[]){"two stages", "three stages", "four stages", "cluster", NULL},
    .matches = matches,
    .rules = rules,
    .emit = emit,
    .memory = memory,
};
