// Counts of what blocks of both families do for each item: an online softmax, which rescales its sums.
//
// Four lanes share a row, each with two of every eight columns: BM rows are 4 BM parts of rows.
#include "codegen/family/attention/attention.h"

enum { LANES_OF_A_ROW = 4, ATOM = 16, LINE = 64, ELEMENT = 2, SUM = 4 };

typedef struct AttentionStep {
    const Attention *attention;
    const CountedItem *at;
    AttentionTile tile;
    int64_t rows, columns;   // of a block, in a step; of a warp, if warps split the columns
    int64_t depth, width;    // padded to what an instruction multiplies
    int64_t stored;          // columns in whole vectors
    int64_t splits;          // warps (groups) of a block that split the columns
    int64_t cluster, rank;   // blocks that do; this one's rank
    int64_t made;            // rows that each of them computes
    int64_t row_parts;       // of all lanes, of rows
    int64_t steps, own;      // of the rows; of this block
} AttentionStep;

/* Steps are dealt round-robin, first to the warps of a cluster's first block. */
static int64_t own_steps(const AttentionStep *step)
{
    int64_t round = step->splits * step->cluster, left = step->steps % round - step->rank * step->splits;
    return step->steps / round * step->splits + (left < 0 ? 0 : smaller(left, step->splits));
}

static AttentionStep step_of(const Attention *attention, const CountedItem *at)
{
    AttentionStep step = {.attention = attention, .at = at};
    step.tile = *(const AttentionTile *)at->kind->choice.value;
    step.rows = at->shared->size[ATTENTION_ROW];
    step.columns = step.tile.columns;
    step.depth = round_up(step.tile.depth, ATOM);
    step.width = round_up(step.tile.width, step.tile.groups ? LINE : ATOM);
    step.stored = round_up(step.tile.width, ATTENTION_VECTOR);
    step.made = step.rows / step.tile.rows * attention_made_rows(&step.tile);
    step.row_parts = step.made * LANES_OF_A_ROW;
    step.splits = step.tile.splits;
    step.cluster = step.tile.cluster;
    step.rank = at->last ? step.cluster - 1 : 0;
    step.steps = ceil_div(attention->group[ATTENTION_COLUMN].extent, step.columns);
    step.own = own_steps(&step);
    return step;
}

/* Steps of the block, or of all warps that split its columns. */
static int64_t steps_made(const AttentionStep *step)
{
    return step->splits > 1 ? step->own : step->at->times;
}

/* Splits that have a step. */
static int64_t busy_splits(const AttentionStep *step) { return smaller(step->splits, step->own); }

/* Of the first product: a warp that splits the columns begins a step ahead, and repeats its last one beside that step's softmax. */
static int64_t scores_made(const AttentionStep *step)
{
    return steps_made(step) + (step->splits > 1 && !step->tile.groups ? busy_splits(step) : 0);
}

/* Columns of these steps that exist: the last one of all may be short. */
static int64_t columns_made(const AttentionStep *step)
{
    int64_t extent = step->attention->group[ATTENTION_COLUMN].extent;
    bool has_last = (step->steps - 1) / step->splits % step->cluster == step->rank;
    if (step->splits * step->cluster == 1)
        return extent * steps_made(step) / step->steps;
    return step->own * step->columns - (has_last ? step->steps * step->columns - extent : 0);
}

// ---- tiles in shared memory ----

/* What is read for each score, of so many rows: written there, or read. */
static int64_t beside_bytes(const AttentionStep *step, uint32_t tiles, int64_t rows)
{
    return tiles & ~(uint32_t)ATTENTION_FACTORS ? steps_made(step) * rows * step->columns * step->tile.staged : 0;
}

/* Whole lines, with zeros where there is nothing. */
static void copy(const AttentionStep *step, uint32_t tiles, ItemWork *work)
{
    int64_t depth = step->tile.groups ? round_up(step->tile.depth, LINE) : step->depth;
    int64_t elements = 0;
    elements += tiles & ATTENTION_K ? step->columns * depth : 0;
    elements += tiles & ATTENTION_V ? step->columns * step->width : 0;
    elements *= steps_made(step);
    elements += tiles & ATTENTION_Q ? step->at->times * step->rows * depth : 0;
    work->shared_written = elements * ELEMENT + beside_bytes(step, tiles, step->tile.staged_rows);
}

/* Operands: a warp loads fragments of all columns; a warp group reads them once for each element that represents p. */
static void read(const AttentionStep *step, uint32_t tiles, ItemWork *work)
{
    int64_t readers = step->rows / step->tile.rows, elements = 0;
    bool before = !(tiles & (ATTENTION_K | ATTENTION_V));   // q, which is held in registers
    elements += tiles & ATTENTION_Q ? step->rows * step->depth : 0;
    elements += tiles & ATTENTION_K ? readers * step->columns * step->depth : 0;
    elements += tiles & ATTENTION_V ? readers * step->columns * step->width * (step->tile.groups ? step->tile.parts : 1) : 0;
    int64_t made = tiles & ATTENTION_K ? scores_made(step) : steps_made(step);
    int64_t times = step->splits == 1 ? step->at->times : before ? busy_splits(step) : made;
    work->shared_read = times * elements * ELEMENT + beside_bytes(step, tiles, step->rows);
}

// ---- a step ----

static void multiply(const AttentionStep *step, bool scores, ItemWork *work)
{
    work->tensor_products = step->rows * step->columns * (scores ? scores_made(step) * step->depth
                                                                 : steps_made(step) * step->tile.parts * step->width);
}

/* p of f32 is scaled to the upper half of f16's range before it is split, and the sums are scaled back at the end. */
static int is_lifted(const AttentionStep *step) { return step->tile.parts == 2; }

/* Scores of columns that exist, and p = 2^(s * SCALE - M) of all columns, padding included. */
static void make_shares(const AttentionStep *step, ItemWork *work)
{
    const Attention *attention = step->attention;
    const FusedOp *ops = step->at->fusion->ops;
    int64_t inside = step->made * columns_made(step);
    int64_t all = steps_made(step) * step->made * step->columns;
    for (int i = 1; i <= attention->score; i++) {
        bool shown = i == attention->score && attention->shown;
        ExprWork of = expr_work(shown ? attention->shown : ops[i].body);
        work_add_values(work, &of, inside);
    }
    work_add_values(work, &(ExprWork){.additions = 1, .multiplications = 1, .functions = 1}, all);
    work_add_values(work, &(ExprWork){.additions = step->tile.parts - 1, .multiplications = is_lifted(step)}, all);
}

/* The maximum and the sum of p over the lane's columns; sums so far, and those of p * V, are rescaled. A warp group has no
   sums of p * V to rescale in its first step. */
static void correct(const AttentionStep *step, ItemWork *work)
{
    int64_t columns = step->columns / LANES_OF_A_ROW, times = steps_made(step), first = busy_splits(step);
    bool ahead = step->splits > 1 && !step->tile.groups;   // subtracts where M is taken from without asking
    const ExprWork of = {
        .comparisons = (int)columns,
        .additions = (int)columns * (1 + ahead) + 7,   // M, where it is taken from, now and before; how far it has grown, the sum
        .multiplications = 5,
        .functions = 1,
    };
    work_add_values(work, &of, times * step->row_parts);
    work->multiplications += (step->tile.groups ? times - first : times) * step->made * step->width;
}

// ---- after the last step ----

/* The maximum is used, and multiplied by a scale. */
static int scaled_maxima(const AttentionStep *step, uint32_t axes)
{
    const Attention *attention = step->attention;
    return attention->scale != 1 && attention_needs(step->at->fusion, attention, attention->maximum, axes);
}

/* Existing rows that the block finishes; in a cluster they are dealt to the blocks. */
static int64_t own_rows(const AttentionStep *step)
{
    return ceil_div(step->at->count[ATTENTION_ROW] - step->rank, step->cluster);
}

/* To add up so many slabs: of `lines` rows as many threads as the block has and rows have vectors, each of which finds the maximum
   and the weights for itself; then of each vector of existing rows. Threads of warp groups all take part, and keep the maxima. */
static void combine_slabs(const AttentionStep *step, int64_t slabs, int64_t lines, int64_t rows, ItemWork *work)
{
    enum { ROW_VALUES = 3, WARP = 32 };   // the last one pads a row
    int64_t of_line = smaller(step->splits * WARP / lines, step->stored / ATTENTION_VECTOR);
    int64_t threads = step->tile.groups ? step->tile.groups * 4 * WARP : of_line * rows;
    const ExprWork weights = {
        .comparisons = (int)(step->tile.groups ? slabs : slabs - 1),
        .additions = (int)(slabs * 2),
        .multiplications = (int)(slabs * 2),
        .functions = (int)slabs,
    };
    work_add_values(work, &weights, threads);
    work_add_values(work, &(ExprWork){.additions = 1, .multiplications = 1}, slabs * rows * step->stored);
    work->shared_read += slabs * (threads * ROW_VALUES + rows * step->stored) * SUM;
}

/* Warps that split the columns leave their sums in shared memory, with the row's values; others store what lanes exchange. A
   block of a cluster leaves its rows, and of those that it finishes reads what each block has left. */
static void stage(const AttentionStep *step, int64_t lines, ItemWork *work)
{
    enum { ROW_VALUES = 3 };   // the maximum, the sum and its inverse
    int64_t rows = step->at->count[ATTENTION_ROW];
    work->shared_written = lines * (step->width + ROW_VALUES) * SUM;
    if (step->tile.groups) {   // whose blocks read each other's slabs, also where no row is
        combine_slabs(step, step->splits * step->cluster, step->rows, step->rows / step->cluster, work);
        return;
    }
    combine_slabs(step, step->splits, step->tile.kept_rows, rows, work);
    if (step->cluster == 1)
        return;
    work->shared_written += rows * (step->stored + ROW_VALUES) * SUM;
    combine_slabs(step, step->cluster, ceil_div(step->tile.kept_rows, step->cluster), own_rows(step), work);
}

/* The epilogue. M was rounded, which a factor of the row's sums corrects where they are seen; sums of p * V are divided. */
static void turn(const AttentionStep *step, ItemWork *work)
{
    const Attention *attention = step->attention;
    int64_t times = step->at->times, rows = times * own_rows(step);
    int64_t lines = times * step->splits * step->made;   // that warps write
    const Expr *beside = attention_share_beside(step->at->fusion, attention);
    ExprWork share = beside ? expr_work(beside) : (ExprWork){0};
    share.multiplications += attention_quotient(step->at->fusion, attention) != NULL;
    bool corrected = attention_shows_sums(step->at->fusion, attention);
    bool scales = corrected || is_lifted(step);
    int fused = corrected ? 3 : 0;   // for M twice and its error
    work_add_values(work, &(ExprWork){.additions = fused,
                                      .multiplications = fused + scales + is_lifted(step),
                                      .functions = corrected},
                    lines * LANES_OF_A_ROW);
    work_add_values(work, &(ExprWork){.multiplications = scales}, lines * step->width);
    work_add_values(work, &(ExprWork){.multiplications = scaled_maxima(step, attention->results)}, rows * step->stored / ATTENTION_VECTOR);
    work_add_values(work, &share, rows * step->tile.width);
    work_add_values(work, &(ExprWork){.multiplications = scaled_maxima(step, attention->rows)}, rows);
    if (step->splits * step->cluster > 1)
        stage(step, lines, work);
}

/* What the lanes of a row exchange, so that all have the same. */
static void combine(const AttentionStep *step, uint64_t ops, ItemWork *work)
{
    if (ops == UINT64_C(1) << step->attention->maximum) {
        work->comparisons = steps_made(step) * step->row_parts * 2;
        return;
    }
    if (ops == UINT64_C(1) << step->attention->sum)
        turn(step, work);
    else
        work->additions = step->at->times * step->splits * step->row_parts * 2;
}

static void finish_values(const AttentionStep *step, uint32_t axes, int64_t values, ItemWork *work)
{
    const Fusion *fusion = step->at->fusion;
    for (int i = step->attention->sum + 1; i < fusion->op_count; i++) {
        ExprWork of = expr_work(fusion->ops[i].body);
        if (fusion->ops[i].spatial == axes)
            work_add_values(work, &of, values);
    }
}

/* The operations of the expression on them. */
static void finish(const AttentionStep *step, ItemWork *work)
{
    int64_t rows = step->at->times * own_rows(step);
    finish_values(step, step->attention->results, rows * step->tile.width, work);
    finish_values(step, step->attention->rows, rows, work);
}

static bool exchange(const AttentionStep *step, const Exchange *exchange, ItemWork *work)
{
    if (exchange->combine == COMBINE_ROWS)
        turn(step, work);
    else if (exchange->combine == COMBINE_LANES)
        combine(step, exchange->ops, work);
    return exchange->combine != COMBINE_NOTHING;
}

static bool move(const AttentionStep *step, const Move *move, ItemWork *work)
{
    bool to_shared = move->to == PLACE_SHARED, from_shared = move->from == PLACE_SHARED;
    if (to_shared)
        copy(step, move->tiles, work);
    else if (from_shared)
        read(step, move->tiles, work);
    return to_shared || from_shared;
}

bool attention_work(const void *view, const CountedItem *at, ItemWork *work)
{
    const Attention *attention = view;
    const Item *item = at->item;
    AttentionStep step = step_of(attention, at);
    switch ((ItemKind)item->kind) {
    case ITEM_LOAD: return move(&step, &item->move, work);
    case ITEM_PRODUCT: multiply(&step, item->arithmetic.ops == 1, work); return true;
    case ITEM_MAP:
        (item->arithmetic.ops >> attention->exponential & 1 ? make_shares : finish)(&step, work);
        return true;
    case ITEM_REDUCE: correct(&step, work); return true;
    case ITEM_EXCHANGE: return exchange(&step, &item->exchange, work);
    default: return false;
    }
}
