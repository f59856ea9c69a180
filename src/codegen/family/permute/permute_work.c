// What a block moves where rows of the output begin anywhere, in numbers: its share of each row begins at an
// aligned point.
#include "base/checked.h"
#include "codegen/family/permute/permute_parts.h"

typedef struct Ragged {
    const CountedItem *at;
    const Permute *permute;
    const Shape *shape;
    int64_t source[SIDE_COUNT],
        target[SIDE_COUNT];   // elements of memory from a point to the next along a side
    int64_t rows, columns;    // in shared memory, that exist
} Ragged;

/* False: some side is not one step after the other. */
static bool find_strides(Ragged *ragged)
{
    const Permute *permute = ragged->permute;
    for (int s = 0; s < SIDE_COUNT; s++) {
        const AxisGroup *side = &permute->side[s];
        ragged->source[s] = axis_group_stride(side, &permute->source);
        ragged->target[s] = axis_group_stride(side, &permute->target);
        if (!axis_group_has_stride(side, ragged->at->fusion, &permute->source, ragged->source[s]) ||
            !axis_group_has_stride(side, ragged->at->fusion, &permute->target, ragged->target[s]))
            return false;
    }
    return true;
}

static int64_t place_of(const int64_t strides[SIDE_COUNT], int64_t outer, int64_t row, int64_t column)
{
    return outer * strides[OUTER] + row * strides[ROWS] + column * strides[COLUMNS];
}

static int64_t elements_of(const Permute *permute)
{
    return permute->side[OUTER].extent * permute->side[ROWS].extent * permute->side[COLUMNS].extent;
}

// ---- sectors ----

/* Of a tensor, each once. */
typedef struct Sectors {
    unsigned char *seen;
    int bytes;   // of an element
    int64_t count;
} Sectors;

static Sectors sectors_new(const Ragged *ragged)
{
    int64_t bytes = elements_of(ragged->permute) * ragged->permute->element_bytes;
    return (Sectors){
        .seen = NEW_ARRAY(ragged->at->arena, unsigned char, bytes / SECTOR_BYTES + 2),
        .bytes = ragged->permute->element_bytes,
    };
}

static void add_run(Sectors *sectors, int64_t first, int64_t count)
{
    int64_t end = ((first + count) * sectors->bytes - 1) / SECTOR_BYTES;
    for (int64_t s = first * sectors->bytes / SECTOR_BYTES; count > 0 && s <= end; s++) {
        sectors->count += !sectors->seen[s];
        sectors->seen[s] = 1;
    }
}

// ---- what is read, and lies in shared memory ----

/* Bytes of the aligned vectors that hold the run; those at the end of the tensor have no more than there is. */
static int64_t vectors_bytes(const Ragged *ragged, int64_t first, int64_t count)
{
    int64_t vector = ragged->shape->vector[ROWS], from = first - first % vector,
            end = smaller(round_up(first + count, vector), elements_of(ragged->permute));
    return (end - from) * ragged->permute->element_bytes;
}

static int64_t read_lines(const Ragged *ragged, Sectors *sectors)
{
    const CountedItem *at = ragged->at;
    int64_t bytes = 0;
    for (int64_t outer = at->first[OUTER]; outer < at->first[OUTER] + at->count[OUTER]; outer++) {
        bool joined = ragged->shape->copied && ragged->shape->padding == 0;
        int64_t run = joined ? ragged->columns * ragged->rows : ragged->rows;
        for (int64_t c = 0; c < (joined ? 1 : ragged->columns); c++) {
            int64_t first = place_of(ragged->source, outer, at->first[ROWS], at->first[COLUMNS] + c);
            add_run(sectors, first, run);
            bytes += vectors_bytes(ragged, first, run);
        }
    }
    return bytes;
}

// ---- what is stored ----

/* The part of a row that the block stores: to_share() of the template. The first block has what comes before
   its share. */
static int64_t store_rows(const Ragged *ragged, Sectors *sectors)
{
    const CountedItem *at = ragged->at;
    int64_t c0 = at->first[COLUMNS], share = ragged->shape->share, stored = 0;
    for (int64_t outer = at->first[OUTER]; outer < at->first[OUTER] + at->count[OUTER]; outer++)
        for (int64_t row = at->first[ROWS]; row < at->first[ROWS] + at->count[ROWS]; row++) {
            int64_t place = place_of(ragged->target, outer, row, c0), begin = (share - place % share) % share;
            int64_t end = smaller(begin + ragged->shape->tile[COLUMNS], ragged->columns),
                    first = c0 ? begin : 0;
            add_run(sectors, place + first, end - first);
            stored += larger(end - first, 0);
        }
    return stored;
}

// ---- items ----

static void state_sectors(const Move *move, const Sectors *sectors, ItemWork *work)
{
    work->tiles = move->tiles;
    for (int i = 0; i < MAX_DATA_TILES; i++)
        work->sectors[i] = move->tiles >> i & 1 ? sectors->count : 0;
}

bool permute_ragged_work(const Permute *permute, const Shape *shape, const CountedItem *at, ItemWork *work)
{
    Ragged ragged = {.at = at, .permute = permute, .shape = shape, .rows = at->count[ROWS]};
    const Move *move = &at->item->move;
    bool moves = at->item->kind == ITEM_LOAD || at->item->kind == ITEM_STORE;
    if (!moves || !find_strides(&ragged))
        return false;
    ragged.columns = smaller(permute->side[COLUMNS].extent - at->first[COLUMNS], shape->width);
    Sectors sectors = sectors_new(&ragged);
    if (move->from == PLACE_SHARED) {
        work->shared_read = store_rows(&ragged, &sectors) * permute->element_bytes;
    } else if (move->from == PLACE_MEMORY) {
        int64_t bytes = read_lines(&ragged, &sectors);
        work->shared_written = move->to == PLACE_SHARED ? bytes : 0;
        state_sectors(move, &sectors, work);
    } else if (move->to == PLACE_SHARED) {
        work->shared_written = at->shared->size[OUTER] * ragged.rows * shape->width * permute->element_bytes;
    } else {
        store_rows(&ragged, &sectors);
        state_sectors(move, &sectors, work);
    }
    return true;
}
