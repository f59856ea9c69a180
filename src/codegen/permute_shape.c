#include "base/checked.h"
#include "codegen/permute_parts.h"

enum {
    SECTOR_BYTES = 32,   // tiles are whole sectors wide
    WORD_BYTES = 4,      // what lines that begin anywhere are read and written by
    WASTE_PARTS = 16,    // of a side, of which one may be wasted by such vectors
    BANK_BYTES = 4,      // a piece fills them, where it can
    RUN_BYTES = 8,       // of writes that run from row to row: with 16 the padding leaves more bank conflicts
    SINGLE_BYTES = 8,    // of a read whose bytes are staged one by one: likewise
    MOST_ACCESSES = 32   // of a thread, on each side; its reads are all under way together
};

// ---- vectors and tiles ----

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

/* The extent in equal parts of about `wanted`, each of whole sectors. */
static int64_t part_of(int64_t extent, int64_t wanted, int64_t sector)
{
    return extent <= wanted ? extent : round_up(ceil_div(extent, ceil_div(extent, wanted)), sector);
}

/* Points along columns that a thread turns together: those of one write, but at least a bank's. Bytes are
   turned four by four, and no more of them: they would need too many registers. */
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

/* Points of one write of a tile that is one run in the output, of which the next tile's run is a continuation. They lie
   together in shared memory too: vector[ROWS] rows do. */
static int write_of(const Fusion *fusion, const Permute *permute, const Shape *shape)
{
    int64_t columns = permute->side[COLUMNS].extent, rows = permute->side[ROWS].extent;
    bool is_run = permute->moves && shape->tile[COLUMNS] == columns &&
                  side_follows(permute, ROWS, fusion, columns) &&
                  (shape->tile[OUTER] == 1 ||
                   (shape->tile[ROWS] == rows && side_follows(permute, OUTER, fusion, rows * columns)));
    int write = is_run ? RUN_BYTES / permute->element_bytes : 1;
    while (write > 1 && (shape->vector[ROWS] * columns % write || rows * columns % write))
        write /= 2;
    return write > shape->vector[COLUMNS] ? write : shape->vector[COLUMNS];
}

/* Accesses by words where lines of narrower elements begin anywhere: several of them if that wastes little of the side. */
static void use_words(Shape *shape, const Permute *permute, int side, int access_bytes)
{
    int64_t extent = permute->side[side].extent;
    if (shape->vector[side] * permute->element_bytes >= WORD_BYTES)
        return;
    int count = access_bytes / permute->element_bytes;
    while (count * permute->element_bytes > WORD_BYTES &&
           round_up(extent, count) > extent + extent / WASTE_PARTS)
        count /= 2;
    shape->words[side] = true;
    shape->vector[side] = count;
}

/* Where one side is short the other is longer instead, then more outer positions: a block has work for its
   threads. Output lines that start anywhere share sectors with another block's, so they are long. */
static Shape shape_of(const Fusion *fusion, const Permute *permute, const Kind *kind, bool words)
{
    const Side *side = permute->side;
    int bytes = permute->element_bytes;
    Shape shape = {.tile = {1, 1, 1}, .vector = {1, 1, 1}};
    int wide = kind->access_bytes;
    shape.vector[COLUMNS] = vector_of(&side[COLUMNS], &permute->target, wide, permute->widest_bytes);
    bool odd_columns = shape.vector[COLUMNS] == 1;
    if (words)
        use_words(&shape, permute, COLUMNS, kind->access_bytes);
    else if (odd_columns && bytes == 1 && wide > SINGLE_BYTES)
        wide = SINGLE_BYTES;
    shape.vector[ROWS] = vector_of(&side[ROWS], &permute->source, wide, bytes);
    use_words(&shape, permute, ROWS, kind->access_bytes);

    int64_t rows = (odd_columns ? least_of(kind->row_bytes, LINE_BYTES) : kind->row_bytes) / bytes;
    int64_t columns = kind->column_bytes / bytes;
    int64_t most = (int64_t)BLOCK_THREADS * MOST_ACCESSES;
    most *= least_of(shape.vector[ROWS], shape.vector[COLUMNS]);
    for (; rows * columns > most; *(rows >= columns ? &rows : &columns) /= 2) {
    }

    int64_t points = rows * columns, sector = SECTOR_BYTES / bytes;
    int64_t most_rows = (int64_t)BLOCK_THREADS * shape.vector[ROWS];   // a line is read at once, and written
    int64_t most_columns = (int64_t)BLOCK_THREADS * shape.vector[COLUMNS];
    if (side[ROWS].extent < rows)
        columns = least_of(points / side[ROWS].extent, most_columns);
    if (side[COLUMNS].extent < columns)
        rows = least_of(points / side[COLUMNS].extent, most_rows);
    for (int s = ROWS; s <= COLUMNS; s++) {
        int64_t wanted = s == ROWS ? least_of(rows, most_rows) : least_of(columns, most_columns);
        shape.tile[s] = round_up(part_of(side[s].extent, wanted, sector), shape.vector[s]);
    }
    int64_t outer = points / (shape.tile[ROWS] * shape.tile[COLUMNS]);
    shape.tile[OUTER] = outer < 1 ? 1 : least_of(outer, side[OUTER].extent);
    shape.piece = piece_of(&shape, bytes);
    shape.write = words ? shape.vector[COLUMNS] : write_of(fusion, permute, &shape);
    return shape;
}

Shape permute_shape(const Fusion *fusion, const Permute *permute, const Kind *kind)
{
    Shape shape = shape_of(fusion, permute, kind, false);
    bool is_run = shape.write > shape.vector[COLUMNS];
    bool narrow = shape.vector[COLUMNS] * permute->element_bytes < WORD_BYTES;
    return permute->moves && narrow && !is_run ? shape_of(fusion, permute, kind, true) : shape;
}

// ---- shared memory ----

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

/* Words of the fullest bank when one warp's first access is served, as many lanes at a time as fill all
   banks. */
static int bank_words(const Shape *shape, int element_bytes, const DeviceSpec *device, bool reads)
{
    enum { MOST_LANES = 64 };
    int bytes = (reads ? shape->write : shape->piece) * element_bytes, bank_bytes = device->shared_bank_bytes;
    int words_each = bytes > bank_bytes ? bytes / bank_bytes : 1;
    int together = device->shared_banks / words_each, most = 0;
    int word[MOST_LANES], bank[MOST_LANES];
    for (int first = 0; first < device->warp_size && first < MOST_LANES; first += together)
        for (int i = 0; i < together && i < MOST_LANES; i++) {
            word[i] = (int)(lane_place(shape, first + i, reads) * element_bytes / bank_bytes);
            bank[i] = word[i] % device->shared_banks;
            int same = 1;
            for (int j = 0; j < i; j++)
                same += bank[j] == bank[i] && word[j] != word[i];
            most = same > most ? same : most;
        }
    return most;
}

int64_t permute_padding(Shape shape, int element_bytes, const DeviceSpec *device)
{
    int64_t line = (int64_t)device->shared_banks * device->shared_bank_bytes / element_bytes, best = 0;
    int step = shape.write > shape.piece ? shape.write : shape.piece, least = 0;
    for (shape.padding = 0; shape.padding <= line && least != 2; shape.padding += step) {
        int words = bank_words(&shape, element_bytes, device, false) +
                    bank_words(&shape, element_bytes, device, true);
        if (!least || words < least) {
            least = words;
            best = shape.padding;
        }
    }
    return best;
}
