// Construction instead of search (Roller, OSDI'22, 3.2, figures 8 and 9):
//
//     for tolerance 0, 0.2, … 1
//         scale up at the register level                    -> register tiles
//             for each, scale up at the shared level        -> block tiles, ever longer steps
//                 complete (scale-out: one block per tile)  -> an rProgram with its estimate
//                     shrink while SMs idle                 -> more rPrograms
//     sort by estimated time, keep the best that differ
//
// The paper follows one path, the axis with the best reuse score; here BEAM paths grow at once.
// Without any reuse all scores are equal: the register tile is then a vector of the last axis, and
// the block tile a number of threads.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "rprogram/rprogram.h"

enum {
    BEAM = 3,                 // limit of the search: tiles that grow side by side, a square one and its neighbours
    MAX_GENERATIONS = 24,     // doublings to the largest tile: 2^24 points are beyond any level
    BEYOND_SATURATION = 3,    // limit of the search: generations kept once compute limits, as occupancy may still gain
    MAX_REGISTER_TILES = 48,
    MAX_PROGRAMS = 768,       // the best are of the first: large register tiles are tried before small ones
    TOLERANCE_STEPS = 5,      // limit of the search: 0.2 each
    ENOUGH = 4                // limit of the search: times `keep` programs end the raising of the tolerance
};

typedef struct Construction {
    const KernelKind *kind;
    const Target *target;
    const DeviceSpec *device;   // the target's
    PerfProblem problem;
    Tolerance *tolerance;
    TileMemo *traffic;          // of block tiles
    TileMemo *pairs;            // of these with the register tiles inside: each a Pair
    Arena *arena;
    RProgram **programs;      // MAX_PROGRAMS places
    int count;                // of them, those that are taken
    RProgram *spare;          // room for the next one; NULL: the last took it
    double known_us;          // time of the best program of other kinds; 0: there are none
    double least_us;          // of those here if blocks filled all SMs
    int axes,
        steps;   // spatial axes, and those of the reduction: a score is asked for where there are several
    ConstructStats *stats;
} Construction;

/* A tile on its way up. */
typedef struct Growth {
    RTile tile;
    TileCost cost;
    double score;     // reuse score of the step that led here
    int beyond;       // generations since the level was saturated
    struct Pair *pair;   // of a block tile with the register tile inside
} Growth;

// ---- one program ----

typedef struct Pair {
    int64_t footprint;   // of the block tile
    RProgram *program;   // NULL: none yet
} Pair;

static Pair *pair_of(const Construction *c, const RTile *inner, const RTile *shared)
{
    bool is_new;
    Pair *pair = tile_memo_find(c->pairs, shared, inner, &is_new);
    if (is_new)
        *pair = (Pair){kind_footprint(c->kind, shared, inner, c->device, LEVEL_SHARED), NULL};
    return pair;
}

/* Why no program came of two tiles; PRUNE_COUNT: one did. */
static PruneReason record(Construction *c, const Growth *inner, const Growth *shared,
                          const RProgram **recorded)
{
    Pair *pair = shared->pair;
    *recorded = pair->program;
    if (pair->program || c->count == MAX_PROGRAMS)
        return PRUNE_DUPLICATE;
    RProgram *program = c->spare ? c->spare : NEW(c->arena, RProgram);
    program->tolerance = c->tolerance->allowed;
    program->tile[LEVEL_REGISTER] = inner->tile;
    program->tile[LEVEL_SHARED] = shared->tile;
    int64_t footprint[] = {
        [LEVEL_REGISTER] = inner->cost.footprint, [LEVEL_SHARED] = shared->cost.footprint};
    PruneReason reason;
    c->spare = program;
    if (!rprogram_complete(c->kind, &c->problem, c->device, footprint, program, &reason))
        return reason;
    c->spare = NULL;
    c->programs[c->count++] = program;
    c->least_us = fmin(c->least_us, rprogram_spread_us(program, c->device));
    *recorded = pair->program = program;
    return PRUNE_COUNT;
}

/* Tries the program of the two tiles and counts the outcome. True if it is new and legal;
   `recorded` is set if it is legal, now or in an earlier round. */
static bool construct_program(Construction *c, const Growth *inner, const Growth *shared,
                              const RProgram **recorded)
{
    PruneReason reason = record(c, inner, shared, recorded);
    c->stats->generated++;
    c->stats->feasible += reason == PRUNE_COUNT;
    if (reason != PRUNE_COUNT)
        c->stats->pruned[reason]++;
    return reason == PRUNE_COUNT;
}

// ---- scale-up ----

/* What the tile holds, if it fits the level; if not, no larger one will. */
static bool fits_level(const Construction *c, Level level, const RTile *inner, Growth *grown)
{
    const RTile *tile = &grown->tile;
    int64_t room = level == LEVEL_REGISTER ? 4 * (int64_t)c->device->registers_per_thread
                                           : c->device->shared_per_block_optin;
    if (level == LEVEL_SHARED &&
        rprogram_threads(c->kind, c->device, tile, inner) > c->device->max_threads_per_block)
        return false;
    grown->pair = level == LEVEL_SHARED ? pair_of(c, inner, tile) : NULL;
    grown->cost.footprint =
        grown->pair ? grown->pair->footprint : kind_footprint(c->kind, tile, inner, c->device, level);
    return grown->cost.footprint <= room;
}

/* rtile_traffic(), which does not depend on the tile inside. */
static double traffic_of(const Construction *c, Level level, const RTile *tile)
{
    double own, *known = &own;
    bool is_new = true;
    if (level == LEVEL_SHARED)
        known = tile_memo_find(c->traffic, tile, NULL, &is_new);
    if (is_new)
        *known = rtile_traffic(c->kind->space, tile, c->device, level);
    return *known;
}

/* What the grown tile moves and holds, if it fits the level. */
static bool weigh(const Construction *c, Level level, const RTile *inner, Growth *grown)
{
    if (!fits_level(c, level, inner, grown))
        return false;
    grown->cost.traffic = traffic_of(c, level, &grown->tile);
    return true;
}

/* MemPerf > MaxComputePerf: the tile's data arrives faster than it is computed on. */
static bool saturated(const Construction *c, Level level, const TileCost *cost)
{
    const MemoryLevel *memory = level == LEVEL_REGISTER ? &c->device->shared : &c->device->dram;
    double load_ns = cost->traffic / memory->bandwidth_gb_s;
    double compute_ns = point_flops(c->kind->space) / perf_unit_peak(c->device, c->kind->space->unit);
    return load_ns < compute_ns;
}

/* A block tile of fewer threads than the kind asks for makes no program. */
static bool has_threads(const Construction *c, Level level, const RTile *inner, const RTile *tile)
{
    int least = c->kind->threads.least;
    return level == LEVEL_REGISTER || least <= 1 || rprogram_threads(c->kind, c->device, tile, inner) >= least;
}

/* Block tiles grow along spatial axes here, and along the reduction in grow_steps. */
static bool grows(const Construction *c, Level level, int axis)
{
    return level == LEVEL_REGISTER || !c->kind->space->axes[axis].reduction;
}

static bool lacks(const Construction *c, ConstructPart part) { return c->target->without & part; }

/* S_i; where nobody asks for it all axes are alike. */
static double reuse_score(const Construction *c, const TileCost *tile, const TileCost *grown)
{
    return lacks(c, PART_SCORE) ? 0 : rtile_reuse_score(tile, grown);
}

static bool is_among(const Growth *list, int count, const RTile *tile)
{
    int i = 0;
    while (i < count && memcmp(&list[i].tile, tile, sizeof *tile) != 0)
        i++;
    return i < count;
}

/* Inserts by falling score; of equal scores the first stays. */
static void insert_growth(Growth *list, int *count, const Growth *growth, int beam)
{
    int at = *count;
    while (at > 0 && list[at - 1].score < growth->score)
        at--;
    if (at == beam)
        return;
    int moved = *count < beam ? *count - at : beam - 1 - at;
    memmove(&list[at + 1], &list[at], (size_t)moved * sizeof *list);
    list[at] = *growth;
    *count += *count < beam;
}

/* T'_i: the tile grown along one axis to its next aligned size, if it is none of the others. */
static bool grow(const Construction *c, Level level, const RTile *inner, const Growth *from,
                 int axis, const Growth *others, int count, Growth *grown)
{
    *grown = *from;
    int64_t size = from->tile.size[axis];
    int64_t next = rtile_next_size(c->kind->space, level, inner, axis, size, c->tolerance);
    if (!next)
        return false;
    grown->tile.size[axis] = next;
    if (is_among(others, count, &grown->tile) || !weigh(c, level, inner, grown))
        return false;
    bool enough = saturated(c, level, &grown->cost) && has_threads(c, level, inner, &grown->tile);
    grown->beyond = enough ? from->beyond + 1 : 0;
    grown->score = reuse_score(c, &from->cost, &grown->cost);
    return grown->beyond <= BEYOND_SATURATION;
}

/* All tiles one step above the frontier, the best BEAM of them. Axes are tried from the last:
   without any reuse all scores are equal, and the last axis is the contiguous one. */
static int next_generation(const Construction *c, Level level, const RTile *inner,
                           const Growth *frontier, int count, Growth *next)
{
    int next_count = 0;
    for (int i = 0; i < count; i++)
        for (int a = c->kind->space->axis_count - 1; a >= 0; a--) {
            Growth grown;
            if (grows(c, level, a) && grow(c, level, inner, &frontier[i], a, next, next_count, &grown))
                insert_growth(next, &next_count, &grown, lacks(c, PART_BEAM) ? 1 : BEAM);
        }
    return next_count;
}

/* Visits tiles of the level from the smallest upwards; writes at most `room` of them. */
static int scale_up(const Construction *c, Level level, const RTile *inner, Growth *visited, int room)
{
    Growth frontier[BEAM] = {0}, next[BEAM];
    if (!rtile_smallest(c->kind->space, level, inner, c->tolerance, &frontier[0].tile) ||
        !weigh(c, level, inner, &frontier[0]))
        return 0;
    int count = 1, visited_count = 0;
    for (int generation = 0; count > 0 && generation < MAX_GENERATIONS; generation++) {
        for (int i = 0; i < count && visited_count < room; i++)
            visited[visited_count++] = frontier[i];
        count = next_generation(c, level, inner, frontier, count, next);
        memcpy(frontier, next, (size_t)count * sizeof *next);
    }
    return visited_count;
}

// ---- small operators ----

/* What a block's tile moves and holds. Along a single axis there is nothing to compare what it moves with. */
static void weigh_shared(const Construction *c, const RTile *inner, Growth *shared)
{
    shared->pair = pair_of(c, inner, &shared->tile);
    shared->cost = (TileCost){c->axes > 1 ? traffic_of(c, LEVEL_SHARED, &shared->tile) : 0,
                              shared->pair->footprint};
}

/* The tile without its last growth step along the spatial axis where that saved least traffic per byte. False
   if none can shrink. */
static bool shrink_tile(const Construction *c, const RTile *inner, Growth *shared)
{
    bool found = false;
    Growth least = *shared;
    for (int a = 0; a < c->kind->space->axis_count; a++) {
        Growth smaller = *shared;
        int64_t *size = &smaller.tile.size[a];
        if (c->kind->space->axes[a].reduction)
            continue;
        *size = rtile_previous_size(c->kind->space, inner, a, *size, c->tolerance);
        if (!*size)
            continue;
        weigh_shared(c, inner, &smaller);
        smaller.score = reuse_score(c, &smaller.cost, &shared->cost);
        if (!found || smaller.score < least.score) {
            found = true;
            least = smaller;
        }
    }
    *shared = least;
    return found;
}

/* While SMs would idle: fewer points a block along the axis with the least reuse. When
   that leaves less than a warp, the smaller register tiles, which grow their own block tiles, take
   over. */
static void shrink(Construction *c, const Growth *inner, Growth shared, int64_t grid)
{
    if (lacks(c, PART_SHRINK))
        return;
    if (grid < c->device->sm_count)   // grow_steps may have left its traffic as it was
        weigh_shared(c, &inner->tile, &shared);
    while (grid < c->device->sm_count) {
        const RProgram *shrunk;
        if (!shrink_tile(c, &inner->tile, &shared) || !construct_program(c, inner, &shared, &shrunk))
            return;
        grid = shrunk->grid;
    }
}

// ---- the whole construction ----

/* The block tile with one more step along the reduction axis that reuses most. False if the level
   is full. */
static bool grow_steps(const Construction *c, const RTile *inner, Growth *shared)
{
    double best_score = 0;
    int best_axis = -1;
    Growth best = *shared;
    for (int a = c->kind->space->axis_count - 1; a >= 0; a--) {
        Growth grown = *shared;
        if (!c->kind->space->axes[a].reduction)
            continue;
        int64_t size = shared->tile.size[a], *next = &grown.tile.size[a];
        *next = rtile_next_size(c->kind->space, LEVEL_SHARED, inner, a, size, c->tolerance);
        if (!*next || !fits_level(c, LEVEL_SHARED, inner, &grown))
            continue;
        if (c->steps > 1)
            grown.cost.traffic = traffic_of(c, LEVEL_SHARED, &grown.tile);
        double score = reuse_score(c, &shared->cost, &grown.cost);
        if (best_axis < 0 || score > best_score) {
            best_axis = a;
            best_score = score;
            best = grown;
        }
    }
    *shared = best;
    return best_axis >= 0;
}

/* All block tiles that share a spatial extent, from the shortest step along the reduction to the
   longest that fits. */
static void construct_block(Construction *c, const Growth *inner, Growth shared)
{
    bool alone = !c->kind->space->least_reducers;
    do {
        const RProgram *program;
        if (construct_program(c, inner, &shared, &program))
            shrink(c, inner, shared, program->grid);
        if (!program && alone)
            return;   // more steps change neither threads nor grid, and need more room
    } while (grow_steps(c, &inner->tile, &shared));
}

/* The others are not worth constructing: of 1,537 kinds of more than 40 programs 16 have one that takes less
   than half of what the first 32 take. */
static bool is_hopeless(const Construction *c)
{
    enum { FIRST = 32 };              // limit of the search
    static const double SLOWER = 2;   // limit of the search
    return c->count >= FIRST && c->known_us && c->least_us > SLOWER * c->known_us;
}

static void construct_round(Construction *c)
{
    Growth inner[MAX_REGISTER_TILES], shared[BEAM * MAX_GENERATIONS];
    int inner_count = scale_up(c, LEVEL_REGISTER, NULL, inner, MAX_REGISTER_TILES);
    for (int i = inner_count - 1; i >= 0 && !is_hopeless(c); i--) {   // the largest first: they reuse most
        int shared_count = scale_up(c, LEVEL_SHARED, &inner[i].tile, shared, BEAM * MAX_GENERATIONS);
        for (int j = 0; j < shared_count && !is_hopeless(c); j++)
            construct_block(c, &inner[i], shared[j]);
    }
}

/* Rounds of rising tolerance. One at which no more sizes are legal than at the last one would make the
   same programs. */
static void construct_rounds(Construction *c, int enough)
{
    static const double rounding = 1e-9;
    for (int step = 0; step <= TOLERANCE_STEPS; step++) {
        double allowed = step / (double)TOLERANCE_STEPS;
        if (step == 0 || c->tolerance->refused <= allowed + rounding) {
            *c->tolerance = (Tolerance){.allowed = allowed, .refused = INFINITY};
            construct_round(c);
        }
        if ((c->count >= enough && step > 0) || is_hopeless(c) || lacks(c, PART_TENSOR_PADDING))
            break;
    }
}

// ---- kinds that differ in extents alone ----

/* Its sizes are legal here, too; those of a block along the reduction are rounded up to legal ones. */
static bool becomes_legal(const Construction *c, Level level, const RTile *inner, RTile *tile)
{
    for (int a = 0; a < c->kind->space->axis_count; a++) {
        int64_t size = 0;
        while ((size = rtile_next_size(c->kind->space, level, inner, a, size, c->tolerance)) != 0 && size < tile->size[a])
            ;
        if (!size || (size != tile->size[a] && grows(c, level, a)))
            return false;
        tile->size[a] = size;
    }
    return true;
}

/* The tiles of the other kind's program: with steps as long as there, then with as many. */
static void construct_known(Construction *c, const RProgram *like)
{
    const RProgram *made;
    Growth inner = {.tile = like->tile[LEVEL_REGISTER]}, shared = {.tile = like->tile[LEVEL_SHARED]};
    if (!becomes_legal(c, LEVEL_REGISTER, NULL, &inner.tile) ||
        !fits_level(c, LEVEL_REGISTER, NULL, &inner))
        return;
    for (int as_many = 0; as_many <= 1; as_many++) {
        Growth legal = shared;
        if (becomes_legal(c, LEVEL_SHARED, &inner.tile, &legal.tile) &&
            fits_level(c, LEVEL_SHARED, &inner.tile, &legal))
            construct_program(c, &inner, &legal, &made);
        for (int a = 0; a < c->kind->space->axis_count; a++)
            if (c->kind->space->axes[a].reduction)
                shared.tile.size[a] = ceil_div(size_product(shared.tile.size[a], c->problem.whole.size[a]),
                                               like->tile[LEVEL_GLOBAL].size[a]);
    }
}

static int compare_tiles(const RTile *a, const RTile *b)
{
    for (int i = 0; i < MAX_AXES; i++)
        if (a->size[i] != b->size[i])
            return a->size[i] < b->size[i] ? -1 : 1;
    return 0;
}

static int compare_programs(const void *left, const void *right)
{
    const RProgram *a = *(RProgram *const *)left, *b = *(RProgram *const *)right;
    if (a->perf.time_us != b->perf.time_us)
        return a->perf.time_us < b->perf.time_us ? -1 : 1;
    if (a->grid != b->grid)
        return a->grid < b->grid ? -1 : 1;
    if (a->threads != b->threads)   // the more warps, the less all of them wait at once (tuning-log 58)
        return a->threads > b->threads ? -1 : 1;
    int order = compare_tiles(&a->tile[LEVEL_SHARED], &b->tile[LEVEL_SHARED]);
    return order ? order : compare_tiles(&a->tile[LEVEL_REGISTER], &b->tile[LEVEL_REGISTER]);
}

static Construction begin(Arena *arena, const KernelKind *kind, const Target *target, Tolerance *tolerance,
                          ConstructStats *stats)
{
    Construction c = {.kind = kind,
                      .target = target,
                      .device = target->device,
                      .tolerance = tolerance,
                      .least_us = INFINITY,
                      .arena = arena,
                      .stats = stats};
    c.problem = perf_problem(kind);
    c.problem.moves = perf_moves_new(arena, kind);
    c.traffic = tile_memo_new(arena, kind->space->axis_count, sizeof(double));
    c.pairs = tile_memo_new(arena, kind->space->axis_count, sizeof(Pair));
    c.programs = arena_room(arena, MAX_PROGRAMS * sizeof *c.programs);
    for (int a = 0; a < kind->space->axis_count; a++)
        (*(kind->space->axes[a].reduction ? &c.steps : &c.axes))++;
    return c;
}

static int keep_best(Construction *c, int keep, RProgram *kept)
{
    if (c->count == 0)
        return 0;
    if (!lacks(c, PART_MODEL))
        qsort(c->programs, (size_t)c->count, sizeof *c->programs, compare_programs);
    int count = rprogram_diverse(c->arena, c->kind, c->device, c->programs, c->count, keep, kept);
    for (int i = 0; i < count; i++)
        rprogram_pad(c->kind, c->device, &kept[i]);
    c->stats->pruned[PRUNE_SLOWER] += c->count - count;
    return count;
}

int rprogram_construct(Arena *arena, const KernelKind *kind, const Target *target, double known_us, int keep,
                       RProgram *kept, ConstructStats *stats)
{
    Tolerance tolerance = {0};
    Construction c = begin(arena, kind, target, &tolerance, stats);
    c.known_us = known_us;
    construct_rounds(&c, ENOUGH * keep);
    stats->stopped = is_hopeless(&c);
    return keep_best(&c, keep, kept);
}

int rprogram_construct_like(Arena *arena, const KernelKind *kind, const Target *target, const RProgram *like, int count,
                            RProgram *kept, ConstructStats *stats)
{
    Tolerance tolerance = {.allowed = 1};
    Construction c = begin(arena, kind, target, &tolerance, stats);
    for (int i = 0; i < count; i++)
        construct_known(&c, &like[i]);
    return keep_best(&c, count, kept);
}
