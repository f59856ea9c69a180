// What a block computes, in numbers: operations where the expressions say them, on numbers that are no indices.
#include "base/checked.h"
#include "kernel/schedule/count_parts.h"

// ---- how often ----

static bool has_op(uint64_t ops, int op) { return ops >> (op < 63 ? op : 63) & 1; }

/* What an op is made of, be it by way of others. */
typedef struct MadeOf {
    const uint64_t *of;   // of earlier ops
    uint64_t ops;
} MadeOf;

static void note_value(Expr *expr, void *context)
{
    MadeOf *made = context;
    if (expr->kind == EXPR_VALUE)
        made->ops |= made->of[expr->value] | UINT64_C(1) << (expr->value < 63 ? expr->value : 63);
}

/* Results that correct each other while they grow: the sum of exp(x - maximum), the squares around a mean. */
static bool is_online(const CountWalk *walk, uint64_t ops)
{
    const Fusion *fusion = walk->fusion;
    uint64_t *origins = NEW_ARRAY(walk->region.arena, uint64_t, fusion->op_count + 1);
    bool online = false;
    for (int i = 0; i < fusion->op_count; i++) {
        MadeOf made = {.of = origins};
        expr_visit(fusion->ops[i].body, note_value, &made);
        origins[i] = made.ops;
        online |= has_op(ops, i) && (made.ops & ops & schedule_ops(fusion, true));
    }
    return online;
}

/* Rounds of the loops along an axis around an item. */
typedef struct Rounds {
    int64_t all, innermost;
    bool counted;   // their number is that of the tiles' sizes
} Rounds;

static Rounds rounds_around(const CountWalk *walk, int item, int axis)
{
    const Schedule *schedule = walk->kind->schedule;
    Rounds rounds = {.all = 1, .innermost = 1, .counted = true};
    for (int i = item - 1; i >= 0; i--) {
        const Loop *loop = &schedule->items[i].loop;
        if (!schedule_is_around(schedule, i, item) || loop->axis != axis || loop->tiles)
            continue;
        int64_t here = count_rounds(walk, loop);
        rounds.innermost = rounds.all == 1 ? here : rounds.innermost;
        rounds.all = size_product(rounds.all, here);
        rounds.counted &= !loop->times;
    }
    return rounds;
}

/* Those that go through all of the block's positions: its tiles, and where no other thread takes part, its own parts of one. */
static int64_t rounds_needed(const CountWalk *walk, int axis)
{
    Loop tiles = {.axis = (int8_t)axis}, parts = {.axis = (int8_t)axis, .by_thread = true};
    bool alone = !axis_shared_by_threads(walk->kind->space, axis);
    return size_product(count_rounds(walk, &tiles), alone ? count_rounds(walk, &parts) : 1);
}

/* Of so many positions along an axis of a reduction, those that an item comes to: each once, if the loops go as often
   as that takes. */
static int64_t reached(const CountWalk *walk, int item, int axis, int64_t positions)
{
    Rounds rounds = rounds_around(walk, item, axis);
    int64_t needed = rounds.counted ? rounds_needed(walk, axis) : rounds.innermost;
    bool is_all = rounds.all == needed || needed == 0;   // a block of a cluster may have no step
    return is_all ? positions : size_product(positions, rounds.all) / needed;
}

static bool is_of_elements(const Fusion *fusion, const FusedOp *op)
{
    return (op->spatial | op->reduced) >> fusion->spatial_count;
}

/* Threads have parts of rows, and not all positions of other axes. */
static bool makes_rows(const CountWalk *walk)
{
    return walk->kind->schedule->computes == COMPUTES_VECTORS && walk->kind->schedule->run > 0;
}

/* Rows that the block makes: a group behind the last one makes that again, and nobody stores it. */
static int64_t rows_made(const CountWalk *walk)
{
    return round_up(walk->region.count[0], walk->block->shared->size[0]);
}

/* What is made of a row's totals each of its threads makes. */
static int64_t row_values(const CountWalk *walk)
{
    int64_t together = at_least_1(walk->kind->schedule->rows);
    int64_t groups = walk->block->shared->size[0] / together;   // of threads
    return rows_made(walk) * (walk->block->threads / groups);
}

/* What is made of columns' totals is made several times. */
static bool is_whole(const CountWalk *walk, bool of_elements)
{
    const Schedule *schedule = walk->kind->schedule;
    RTile problem = rtile_problem(walk->kind->space);
    if (schedule->computes != COMPUTES_VECTORS)
        return true;
    bool fits = rtile_points(walk->kind->space, &problem, true) == (double)schedule->points;
    return of_elements && (fits || makes_rows(walk));
}

/* Elements of the block's rows. A row that begins and ends within vectors is made with what lies beside it in these. */
static int64_t row_elements(const CountWalk *walk)
{
    const Region *region = &walk->region;
    int64_t count = region->count[0], all = 0;
    for (int64_t i = 0; i < rows_made(walk); i++)
        all += region_vectors(region, region->first[0] + (i < count ? i : count - 1));
    return all;
}

/* Each of several windows goes through terms of its own. Where all are one axis of the space, it has 525
   positions for 5 x 5 and 3 x 7 taps. */
static int64_t own_terms(const Fusion *fusion, const FusedOp *op, int64_t positions)
{
    int64_t all = 1, own = 1;
    for (int a = fusion->spatial_count; a < fusion->axis_count; a++) {
        all = size_product(all, fusion->axes[a].extent);
        own = size_product(own, op->reduced >> a & 1 ? fusion->axes[a].extent : 1);
    }
    return op->reduced && positions == all ? own : positions;
}

/* Sums of these stay in 64 bits. */
static int64_t countable(int64_t times)
{
    const int64_t most = INT64_C(1) << 48;
    return times <= most ? times : COUNT_UNKNOWN;
}

/* Along a spatial axis: what is stored, or what is reduced, some of it for nobody. */
static int64_t made(const CountWalk *walk, int axis, bool reduces)
{
    bool whole = reduces && walk->kind->schedule->whole >> axis & 1;
    return whole ? round_up(walk->region.count[axis], walk->block->inner->size[axis]) : walk->region.count[axis];
}

/* Terms of an output in vectors that threads take side by side. What some lack they make of the last one. */
static int64_t terms_together(const CountWalk *walk, int axis, int64_t terms)
{
    int64_t threads = walk->block->shared->size[axis] / walk->block->inner->size[axis];
    return round_up(terms, threads * walk->kind->schedule->terms);
}

/* How often an op of MAP or REDUCE is evaluated. */
static int64_t evaluations(const CountWalk *walk, const FusedOp *op, int item)
{
    const TileSpace *space = walk->kind->space;
    bool of_elements = is_of_elements(walk->fusion, op), reduces = op->reduce != REDUCE_NONE;
    int64_t points = 1;
    if (!of_elements && !reduces && makes_rows(walk))
        return row_values(walk);
    if ((reduces && walk->kind->schedule->computes == COMPUTES_OWN) || !is_whole(walk, of_elements))
        return COUNT_UNKNOWN;
    if (!reduces && walk->shares)
        return walk->own;
    if (makes_rows(walk))
        return countable(reached(walk, item, space->axis_count - 1, row_elements(walk)));
    bool whole = walk->kind->schedule->computes == COMPUTES_VECTORS;   // threads beside the last channel make that again
    for (int a = 0; a < space->axis_count; a++)
        if (!space->axes[a].reduction)
            points = size_product(points, whole ? walk->block->shared->size[a] : made(walk, a, reduces));
        else if (of_elements) {
            int64_t positions = region_positions(&walk->region, a);
            if (walk->kind->schedule->terms)
                positions = terms_together(walk, a, positions);
            points = size_product(points, own_terms(walk->fusion, op, reached(walk, item, a, positions)));
        }
    return countable(points);
}

// ---- items ----

void count_work(Counts *counts, const ItemWork *work)
{
    count_add(&counts->additions, work->additions);
    count_add(&counts->multiplications, work->multiplications);
    count_add(&counts->comparisons, work->comparisons);
    count_add(&counts->functions, work->functions);
    count_add(&counts->tensor_products, work->tensor_products);
    if (work->multiplying_warps)
        counts->multiplying_warps = work->multiplying_warps;
    count_add(&counts->shared_read, work->shared_read);
    count_add(&counts->shared_written, work->shared_written);
}

static void count_unstated(Counts *counts)
{
    counts->additions = counts->multiplications = counts->comparisons = counts->functions = COUNT_UNKNOWN;
}

/* The operation that combines values. */
static int64_t *combining(Counts *counts, Reduce reduce)
{
    switch (reduce) {
    case REDUCE_SUM: return &counts->additions;
    case REDUCE_PROD: return &counts->multiplications;
    default: return &counts->comparisons;
    }
}

/* The first term of a window begins its result. */
static void count_combining(CountWalk *walk, const FusedOp *op, int64_t terms)
{
    int64_t results = 1;
    for (int a = 0; a < walk->kind->space->axis_count; a++)
        if (!walk->kind->space->axes[a].reduction)
            results *= made(walk, a, true);
    bool begins = walk->kind->schedule->computes == COMPUTES_WINDOWS && terms != COUNT_UNKNOWN;
    count_add(combining(walk->counts, op->reduce), begins ? terms - results : terms);
}

static bool by_tensor_cores(const KernelKind *kind) { return kind->space->unit >= UNIT_TENSOR_F16; }

/* How the template makes sums of its own kind, nobody states. */
static void count_own_sums(CountWalk *walk)
{
    Counts *counts = walk->counts;
    counts->additions = counts->multiplications = COUNT_UNKNOWN;
    if (by_tensor_cores(walk->kind))
        counts->tensor_products = counts->multiplying_warps = COUNT_UNKNOWN;
}

/* Of an output that lacks terms, what its threads make less than those of others: in vectors they make as many steps as are in
   flight at once, and then what belongs to no vector. */
static int64_t lacked_in_vectors(const CountWalk *walk)
{
    const Schedule *schedule = walk->kind->schedule;
    const CountedBlock *block = walk->block;
    int axis = walk->kind->space->axis_count - 1;
    int64_t all = walk->kind->space->axes[axis].extent, own = all - schedule->lacked, beside = own % schedule->terms,
            rounds = loop_rounds_together(schedule_open_loop(schedule), block->inner->size[axis]);
    return terms_together(walk, axis, all) - round_up(own - beside, rounds * block->shared->size[axis]) - beside;
}

/* Terms that outputs of the last block lack. */
static int64_t terms_lacked(const CountWalk *walk)
{
    const Schedule *schedule = walk->kind->schedule;
    if (!walk->block->last || !schedule->lacking)
        return 0;
    return smaller(walk->region.count[0], schedule->lacking) * (schedule->terms ? lacked_in_vectors(walk) : schedule->lacked);
}

void count_ops(CountWalk *walk, int index)
{
    const Fusion *fusion = walk->fusion;
    uint64_t ops = walk->kind->schedule->items[index].arithmetic.ops;
    bool reduces = walk->kind->schedule->items[index].kind == ITEM_REDUCE;
    if (reduces && walk->kind->schedule->computes == COMPUTES_OWN)
        count_own_sums(walk);
    if (is_online(walk, ops)) {
        count_unstated(walk->counts);
        return;
    }
    for (int i = 0; i < fusion->op_count; i++) {
        const FusedOp *op = &fusion->ops[i];
        if (!has_op(ops, i))
            continue;
        ExprWork of = expr_work(op->body);
        ItemWork work = {0};
        int64_t times = evaluations(walk, op, index) - (reduces ? terms_lacked(walk) : 0);
        work_add_values(&work, &of, times);
        bool vectors = walk->kind->schedule->computes == COMPUTES_VECTORS;
        if (of.divides && vectors &&
            is_of_elements(fusion, op))   // all of a row by one reciprocal, if it can
            work.additions = work.multiplications = COUNT_UNKNOWN;
        count_work(walk->counts, &work);
        if (op->reduce != REDUCE_NONE)
            count_combining(walk, op, times);
    }
}

/* Warps of the block, but for those that copy while others compute. */
static int64_t computing_warps(const CountWalk *walk)
{
    int64_t threads = count_tiles(walk, false) * kind_tile_threads(walk->kind);
    threads *= walk->kind->space->least_reducers ? count_tiles(walk, true) : 1;
    threads *= smaller(schedule_makers(walk->kind->schedule), walk->tiles);
    return ceil_div(walk->roles ? threads : walk->block->threads, walk->device->warp_size);
}

RTile count_wide_tile(const CountWalk *walk, const RTile *tile, bool copied)
{
    RTile wide = *tile;
    const TapPhases *phases = walk->kind->space->phases;
    if (phases && phases->box)
        wide.size[phases->columns_axis] =
            round_up(wide.size[phases->columns_axis], copied ? phases->box : phases->atom);
    return wide;
}

/* Whole tiles are multiplied. */
void count_product(CountWalk *walk, int64_t times, const ItemWork *own)
{
    const TileSpace *space = walk->kind->space;
    RTile tile = count_wide_tile(walk, walk->block->shared, false);
    int64_t products = times;
    for (int a = 0; a < space->axis_count; a++)
        products = size_product(products, tile.size[a]);
    products = countable(products);
    if (by_tensor_cores(walk->kind) && walk->roles == 0)
        walk->counts->multiplying_warps =
            own && own->multiplying_warps ? own->multiplying_warps : computing_warps(walk);
    if (own)
        return;
    if (walk->kind->schedule->computes == COMPUTES_OWN) {
        count_own_sums(walk);
        return;
    }
    if (by_tensor_cores(walk->kind)) {
        count_add(&walk->counts->tensor_products, products);
        return;
    }
    count_add(&walk->counts->multiplications, products);
    count_add(&walk->counts->additions, products);
}

/* Of the warps that copy one thread issues the copies for all others. */
void count_role(CountWalk *walk, WarpRole role)
{
    walk->roles++;
    if (role == WARPS_COPY)
        walk->counts->copying_warps++;
    else
        walk->counts->multiplying_warps += computing_warps(walk);
}

/* The results of one op that the exchange combines. COUNT_UNKNOWN: in ways that are not stated. */
static int64_t combinations(CountWalk *walk, const Exchange *exchange)
{
    switch ((Combine)exchange->combine) {
    case COMBINE_NOTHING:
    case COMBINE_ROWS:   // counted there
    case COMBINE_BITS: return 0;
    case COMBINE_LANES:
    case COMBINE_ALL: return count_all_combinations(walk, exchange);
    case COMBINE_TREE: return count_tree_combinations(walk, exchange);
    case COMBINE_HALVES: return count_halves_combinations(walk, exchange);
    case COMBINE_TURNS: return count_turns_combinations(walk, exchange);
    default: return COUNT_UNKNOWN;
    }
}

void count_combined(CountWalk *walk, const Exchange *exchange, int64_t times)
{
    int64_t combined = combinations(walk, exchange);
    if (combined != COUNT_UNKNOWN)
        combined = size_product(combined, times * at_least_1(exchange->times));
    for (int i = 0; i < walk->fusion->op_count && combined; i++)
        if (has_op(exchange->ops, i) && walk->fusion->ops[i].reduce != REDUCE_NONE)
            count_add(combining(walk->counts, walk->fusion->ops[i].reduce), combined);
}
