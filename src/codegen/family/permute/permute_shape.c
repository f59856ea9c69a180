#include "base/checked.h"
#include "codegen/family/permute/permute_parts.h"
#include "model/calibration.h"

enum {
    WORD_BYTES = 4,      // of vectors, at least: other lines are copied, other rows are ragged
    GATHER_BYTES = 16,   // of a write whose points are gathered from copied lines
    RAGGED_BYTES = 8,    // of a ragged row's writes from a turned tile: wider ones meet the same banks
    MOST_TURN = 4,       // rows that adjacent threads gather
    ROW_BYTES = 256,     // of a ragged row in a tile, at least: a sector more of it is read
    BANK_BYTES = 4,      // a piece fills them, where it can
    RUN_BYTES = 8,       // of writes that run from row to row: with 16 the padding leaves more bank conflicts
    SINGLE_BYTES = 8,    // of a read whose bytes are staged one by one: likewise
    MOST_ACCESSES = 32   // of a thread, on each side; its reads are all under way together
};

// ---- vectors and tiles ----

/* Neighbours along a side that are one aligned access of at most `bytes`. */
static int vector_of(const AxisGroup *side, const Affine *offset, int bytes, int element_bytes)
{
    int vector = bytes > element_bytes ? bytes / element_bytes : 1;
    uint32_t mine = axis_group_mask(side);
    for (int a = 0; a < MAX_AXES; a++)
        while (!(mine >> a & 1) && offset->coef[a] % vector)
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

/* Points of one write of a tile that is one run in the output, of which the next tile's run is a
   continuation. They lie together in shared memory too: vector[ROWS] rows do. */
static int write_of(const Fusion *fusion, const Permute *permute, const Shape *shape)
{
    int64_t columns = permute->side[COLUMNS].extent, rows = permute->side[ROWS].extent;
    bool is_run = permute->moves && shape->tile[COLUMNS] == columns &&
                  axis_group_has_stride(&permute->side[ROWS], fusion, &permute->target, columns) &&
                  (shape->tile[OUTER] == 1 ||
                   (shape->tile[ROWS] == rows &&
                    axis_group_has_stride(&permute->side[OUTER], fusion, &permute->target, rows * columns)));
    int write = is_run ? RUN_BYTES / permute->element_bytes : 1;
    while (write > 1 && (shape->vector[ROWS] * columns % write || rows * columns % write))
        write /= 2;
    return write > shape->vector[COLUMNS] ? write : shape->vector[COLUMNS];
}

/* Bytes of the tile's sides before anything else is known. Rows of the output that begin anywhere share
   sectors with another block's, so they are long. */
static void wanted_points(const Shape *shape, const Kind *kind, int bytes, int64_t *rows, int64_t *columns)
{
    int access = shape->vector[COLUMNS];
    *rows = kind->row_bytes / bytes;
    *columns = kind->column_bytes / bytes;
    if (shape->copied && shape->ragged && *columns < ROW_BYTES / bytes)
        *columns = ROW_BYTES / bytes;
    if (!shape->copied) {
        access = (int)smaller(access, shape->vector[ROWS]);
        if (shape->ragged || shape->vector[COLUMNS] == 1)
            *rows = smaller(kind->row_bytes, LINE_BYTES) / bytes;
    }
    int64_t most = (int64_t)BLOCK_THREADS * MOST_ACCESSES * access;
    for (; *rows * *columns > most; *(*rows >= *columns ? rows : columns) /= 2) {
    }
}

/* Where one side is short the other is longer instead, then more outer positions: a block has work for its
   threads. With more than a gather a thread of lines that follow each other is slower (tuning-log
   13). */
static void size_tile(Shape *shape, const Permute *permute, const Kind *kind)
{
    const AxisGroup *side = permute->side;
    int bytes = permute->element_bytes;
    int64_t rows, columns;
    wanted_points(shape, kind, bytes, &rows, &columns);

    int64_t points = rows * columns, sector = SECTOR_BYTES / bytes;
    int64_t most_rows = (int64_t)BLOCK_THREADS * shape->vector[ROWS];   // a line is read at once, and written
    int64_t most_columns = (int64_t)BLOCK_THREADS * shape->vector[COLUMNS];
    if (side[ROWS].extent < rows)
        columns = smaller(points / side[ROWS].extent, most_columns);
    if (shape->copied && shape->follow && side[ROWS].extent < rows) {
        int64_t enough = most_columns / round_up(side[ROWS].extent, MOST_TURN);
        if (side[COLUMNS].extent <= 2 * enough)   // whole rows share nothing
            enough = side[COLUMNS].extent;
        columns = smaller(columns, enough * bytes > ROW_BYTES ? enough : ROW_BYTES / bytes);
    }
    if (side[COLUMNS].extent < columns)
        rows = smaller(points / side[COLUMNS].extent, most_rows);
    shape->tile[ROWS] = part_of(side[ROWS].extent, smaller(rows, most_rows), sector);
    shape->tile[COLUMNS] = part_of(side[COLUMNS].extent, smaller(columns, most_columns), sector);
    if (!shape->copied)
        shape->tile[ROWS] = round_up(shape->tile[ROWS], shape->vector[ROWS]);
    shape->tile[COLUMNS] = round_up(shape->tile[COLUMNS], shape->vector[COLUMNS]);
    if (shape->copied)   // several outer positions cost divisions
        points = smaller(points, most_columns);
    int64_t outer = points / (shape->tile[ROWS] * shape->tile[COLUMNS]);
    shape->tile[OUTER] = outer < 1 ? 1 : smaller(outer, side[OUTER].extent);
}

/* Lines that begin anywhere; where they are words, only those that are found without divisions. */
static bool is_copied(const Permute *permute, int vector)
{
    int bytes = vector * permute->element_bytes;
    return bytes < WORD_BYTES || (bytes == WORD_BYTES && vector == 1 && permute->side[COLUMNS].count == 1);
}

/* Points of copied lines are gathered: a write may hold any number of them, and begin anywhere where nothing
   is computed. */
static void use_copies(Shape *shape, const Permute *permute)
{
    int bytes = permute->element_bytes;
    shape->copied = true;
    shape->vector[ROWS] = VECTOR_BYTES / bytes;
    if (permute->moves && shape->vector[COLUMNS] < GATHER_BYTES / bytes) {
        shape->ragged = true;
        shape->vector[COLUMNS] = GATHER_BYTES / bytes;
    }
}

/* Where lines and rows lie, in memory and beside each other. */
static void find_lines(Shape *shape, const Permute *permute)
{
    const AxisGroup *rows = &permute->side[ROWS], *columns = &permute->side[COLUMNS];
    bool whole = shape->tile[COLUMNS] >= columns->extent;
    if (shape->ragged)
        shape->share = whole ? shape->write : SECTOR_BYTES / permute->element_bytes;
    shape->width = shape->tile[COLUMNS] + (shape->ragged && !whole ? shape->share : 0);
    shape->line_stride = axis_group_stride(columns, &permute->source);
    shape->row_stride = axis_group_stride(rows, &permute->target);
    shape->follow = shape->follow && shape->tile[ROWS] == rows->extent;
}

static Shape shape_of(const Fusion *fusion, const Permute *permute, const Kind *kind, bool ragged)
{
    const AxisGroup *side = permute->side;
    int bytes = permute->element_bytes, wide = kind->access_bytes;
    Shape shape = {.tile = {1, 1, 1}, .vector = {1, 1, 1}, .ragged = ragged, .turn = 1, .share = 1};
    shape.vector[COLUMNS] = ragged ? RAGGED_BYTES / bytes
                                   : vector_of(&side[COLUMNS], &permute->target, wide, permute->widest_bytes);
    if (shape.vector[COLUMNS] == 1 && bytes == 1 && wide > SINGLE_BYTES)
        wide = SINGLE_BYTES;
    shape.vector[ROWS] = vector_of(&side[ROWS], &permute->source, wide, bytes);
    shape.follow = !permute->bound.size && axis_group_has_stride(&side[COLUMNS], fusion, &permute->source, side[ROWS].extent);
    if (is_copied(permute, shape.vector[ROWS]))
        use_copies(&shape, permute);
    size_tile(&shape, permute, kind);
    shape.piece = piece_of(&shape, bytes);
    shape.write = shape.copied || ragged ? shape.vector[COLUMNS] : write_of(fusion, permute, &shape);
    find_lines(&shape, permute);
    return shape;
}

/* Rows of the output are cut into tiles, and begin anywhere in a sector: two tiles would store parts of one. */
static bool shares_sectors(const Permute *permute, const Shape *shape)
{
    const AxisGroup *columns = &permute->side[COLUMNS];
    int bytes = permute->element_bytes;
    return shape->tile[COLUMNS] < columns->extent &&
           vector_of(columns, &permute->target, SECTOR_BYTES, bytes) * bytes < SECTOR_BYTES;
}

Shape permute_shape(const Fusion *fusion, const Permute *permute, const Kind *kind)
{
    Shape shape = shape_of(fusion, permute, kind, false);
    int bytes = shape.vector[COLUMNS] * permute->element_bytes;
    bool is_run = shape.write > shape.vector[COLUMNS];
    bool narrow = bytes < WORD_BYTES || ((shape.copied || bytes == WORD_BYTES) && shares_sectors(permute, &shape));
    return permute->moves && narrow && !is_run ? shape_of(fusion, permute, kind, true) : shape;
}

// ---- shared memory ----

int64_t permute_tile_elements(const Shape *shape)
{
    int64_t rows = shape->tile[ROWS], vector = shape->vector[ROWS];
    if (!shape->copied)
        return shape->tile[OUTER] * (rows / vector) * (vector * shape->width + shape->padding);
    int64_t lines = shape->width * (rows + shape->padding);
    return shape->tile[OUTER] * ((lines + 2 * vector - 2) / vector * vector);
}

int64_t permute_copied_vectors(const Shape *shape)
{
    int64_t vector = shape->vector[ROWS], length = shape->tile[ROWS] * (shape->follow ? shape->width : 1);
    return shape->copied ? (length + 2 * vector - 2) / vector : 0;
}

/* A copied line at once, or in equal parts where it has more vectors than there are threads. */
int64_t permute_along_rows(const Shape *shape, int threads)
{
    if (!shape->copied)
        return shape->tile[ROWS] / shape->vector[ROWS];
    int64_t vectors = permute_copied_vectors(shape);
    return ceil_div(vectors, ceil_div(vectors, threads));
}

int64_t permute_along_columns(const Shape *shape, int threads)
{
    return smaller(shape->tile[COLUMNS] / shape->vector[COLUMNS], threads / shape->turn);
}

/* Where a point lies in shared memory: the template's place(). */
static int64_t place(const Shape *shape, int64_t outer, int64_t r, int64_t c)
{
    int64_t rows = shape->vector[ROWS], group = rows * shape->width + shape->padding;
    int64_t first = outer * (permute_tile_elements(shape) / shape->tile[OUTER]);
    if (shape->copied)
        return first + c * (shape->tile[ROWS] + shape->padding) + r;
    return first + r / rows * group + r % rows * shape->width + c;
}

/* Place of the point that a lane accesses first: it writes along rows, and reads along columns. */
static int64_t lane_place(const Shape *shape, int64_t lane, bool reads)
{
    if (reads && shape->write != shape->vector[COLUMNS]) {
        int64_t point = lane * shape->write, rows = shape->tile[ROWS], columns = shape->tile[COLUMNS];
        return place(shape, point / (rows * columns), point / columns % rows, point % columns);
    }
    int64_t turn = reads ? shape->turn : 1, turned = lane % turn;
    lane /= turn;
    int64_t along = reads ? COLUMNS : ROWS, across = reads ? ROWS : COLUMNS;
    int64_t at[SIDE_COUNT], step[SIDE_COUNT] = {1, 1, shape->vector[COLUMNS]};
    if (!reads) {
        step[ROWS] = shape->vector[ROWS];
        step[COLUMNS] = shape->piece;
    }
    int64_t many = shape->tile[along] / step[along], lines = shape->tile[across] / step[across];
    at[along] = lane % many * step[along];
    at[across] = (lane / many * turn + turned) % lines * step[across];
    at[OUTER] = lane / (many * lines) % shape->tile[OUTER];
    if (reads && shape->ragged)
        at[COLUMNS] += shape->write - 1 - at[ROWS] * shape->row_stride % shape->write;
    return place(shape, at[OUTER], at[ROWS], at[COLUMNS]);
}

/* Words of the fullest bank when one warp's first access is served, as many lanes at a time as fill all
   banks. */
static int bank_words(const Shape *shape, int element_bytes, const DeviceSpec *device, bool reads)
{
    enum { MOST_LANES = 64 };
    int points = !reads ? shape->piece : shape->copied || shape->ragged ? 1 : shape->write;
    int bytes = points * element_bytes, bank_bytes = device->shared_bank_bytes;
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

/* The least padding, and what may be added to it: vectors stay aligned. Neighbouring copied lines are as far
   apart as in memory, but for whole vectors: then all of them begin equally far behind one. */
static int64_t padding_least(const Shape *shape, int64_t *step)
{
    *step = shape->write > shape->piece ? shape->write : shape->piece;
    if (!shape->copied || shape->follow)
        return 0;
    *step = shape->vector[ROWS];
    int64_t least = 2 * *step - 2, more = (shape->line_stride - shape->tile[ROWS] - least) % *step;
    return least + (more < 0 ? more + *step : more);
}

void permute_avoid_conflicts(Shape *shape, int element_bytes, const DeviceSpec *device)
{
    Shape now = *shape;
    int64_t step, most = (int64_t)device->shared_banks * device->shared_bank_bytes / element_bytes;
    int64_t first = padding_least(shape, &step), last = first + (shape->copied && shape->follow ? 0 : most);
    int least = 0, even = shape->copied ? 1 : 2;   // words, where the banks are met evenly
    for (now.turn = 1; now.turn <= (shape->copied ? MOST_TURN : 1); now.turn *= 2)
        for (now.padding = first; now.padding <= last && least != even; now.padding += step) {
            int words = bank_words(&now, element_bytes, device, true) +
                        (shape->copied ? 0 : bank_words(&now, element_bytes, device, false));
            if (!least || words < least) {
                least = words;
                *shape = now;
            }
        }
}
