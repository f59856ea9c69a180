// A softmax between two products, as a kernel sees it: ir/stream.h says what it computes.
//
// The axes of the fused expression fall into five groups, each walked as one flat axis:
//   batch   in q and in k or v; or in q alone, but none of row's                  row     of q and of the result
//   column  of k, v and the scores                depth   of q and k              width   of v and the result
#pragma once
#include "base/checked.h"
#include "codegen/cuda/expr.h"
#include "hal/atoms.h"
#include "ir/axis_group.h"
#include "kernel/family.h"
#include "rprogram/rprogram.h"

enum { ATTENTION_BATCH, ATTENTION_ROW, ATTENTION_COLUMN, ATTENTION_DEPTH, ATTENTION_WIDTH, ATTENTION_GROUPS };

enum { MAX_LIMITS = 4, ATTENTION_PIECE = 8 };   // of columns, on either side; elements in 16 bytes

typedef struct Attention {
    AxisGroup group[ATTENTION_GROUPS];
    const Access *q, *k, *v;
    /* What is read for each score, contiguous along the columns: real elements, or bits in whole words; NULL: nothing is. */
    const Access *beside;
    int score, maximum, exponential, share, sum;   // ops: t, m, e, p, y
    uint32_t rows, scores, results;                // axes of m, t, y
    const Expr *bound;   // the guard of `score`, -inf where a part of the columns has no more; NULL: all are there
    const Expr *shown;   // what `score` is inside of it without a number that it is multiplied by,
    double scale;        // … which is this
    /* Columns that are left out by where they are: those before any of `first` or from any of `end` on. */
    const Expr *condition;   // that says so; NULL: none does, or it says more
    bool masks;              // any are
    Affine first[MAX_LIMITS], end[MAX_LIMITS];
    int first_count, end_count;
    int piece;                                     // elements of a row of a factor, copied at once
    int parts;                                     // elements of q's type whose sum a share is: 1, of f32 2 of f16 or 3 of bf16
    const Atom *registers, *shared;                // what multiplies factors from there; NULL: nothing does
} Attention;

/* Its parts, an Attention; NULL: it is none that kernels of this room make. Packed: rows may lie along
   several axes. */
View attention_view, attention_packed_view;

/* The score's expression inside of its bound. */
const Expr *attention_score(const Fusion *fusion, const Attention *attention);

/* Something is read for each score, a bias or a mask of rows and columns, besides that access; NULL: at all. */
bool attention_reads_beside(const Fusion *fusion, const Attention *attention, const Access *besides);

/* e / z, where p is that, or 0 for some rows. It is rounded to 16 bits, and z is at least about 1 where it is a number at all: one
   reciprocal serves a row. NULL: p is something else. */
const Expr *attention_quotient(const Fusion *fusion, const Attention *attention);

/* What makes p of values of a row, but for that quotient; NULL: nothing. */
Expr *attention_share_beside(const Fusion *fusion, const Attention *attention);

/* More rows have more columns, and none leaves out the first ones. */
bool attention_is_longest_last(const Attention *attention);

/* What a family has chosen for a kind of kernel. */
typedef struct AttentionTile {
    int16_t rows, columns;   // in a step, of a warp or of a group of four
    int16_t depth, width;
    int16_t stages, q_stages;   // tiles of k and v in shared memory; of q, where blocks make several tiles
    int16_t groups;             // of warps; 0: each for itself
    int16_t parts;            // of a share
    int16_t splits;           // warps or groups of a block that split the columns; 1: none do
    int16_t cluster;          // blocks that do
    int16_t kept_rows;        // of a tile that exist
    int16_t beside;           // something is read for each score, where it is used
    int16_t staged;           // bytes of an element that is read for each score and copied to shared memory; 0: nothing is
    int16_t staged_rows;      // of its tile; 1: all rows have the same
    int16_t bits;             // a bit is read for each score, words of them together
} AttentionTile;

// ---- what both families say of their kernels (attention_rules.c) ----

enum { ATTENTION_Q = 1, ATTENTION_K = 2, ATTENTION_V = 4, ATTENTION_FACTORS = 7 };   // tiles of the space, as bits

/* Axes are the groups. */
TileSpace *attention_space(Arena *arena, const Fusion *fusion, const Attention *attention, const Atom *atom);

/* Whole tiles of the tile's sizes, but for a block's rows. */
void attention_set_axes(KernelKind *kind, const AttentionTile *tile, int64_t block_rows);

/* Of a step along the columns, whose tiles are there. A warp has so many rows, and those of q stay in registers if it keeps
   them. */
void attention_schedule_step(Schedule *schedule, const Fusion *fusion, const Attention *attention,
                             const TileSpace *space, int warp_rows, bool keeps_q);

/* Rows of results on their way to memory: two lanes exchange columns, or what all of that scope have is `staged` in shared
   memory. */
void attention_schedule_store(Schedule *schedule, const Fusion *fusion, const Attention *attention,
                              const TileSpace *space, int warp_rows, ThreadScope scope, bool staged);

/* Elements of whole tiles that tensor cores multiply. */
static inline int64_t attention_wide(int64_t elements) { return round_up(elements, 16); }

/* Rows of a warp or group that it makes: of tiles of 16 whose last eight do not exist the first eight. */
int attention_made_rows(const AttentionTile *tile);

/* Family.work */
StatedWork attention_work;

// ---- text (attention_emit.c) ----

/* `DEVICE int f(int x) { return x; }`, or more lines. */
void attention_emit_function(StrBuf *out, const char *declaration, const StrBuf *body);

/* The flat position along a group. */
extern const char *const attention_flat[ATTENTION_GROUPS];

/* Columns of the result that a lane stores of a row: two lanes exchange what they have. */
enum { ATTENTION_VECTOR = 4 };

/* The op is one of those with these axes that come behind the scores, or one of their values. */
bool attention_needs(const Fusion *fusion, const Attention *attention, int op, uint32_t axes);

/* The maximum or the sums of a row are seen, not only their quotients. */
bool attention_shows_sums(const Fusion *fusion, const Attention *attention);

Scope attention_scope(const KernelPlan *plan);
void attention_emit_positions(StrBuf *out, const char *indent, const Scope *scope, const Attention *attention,
                              uint32_t groups, uint32_t used);
void attention_emit_sizes(StrBuf *out, const KernelPlan *plan, const Scope *scope);

/* The columns that any row of a tile needs, and that all need: `0, COLUMNS, 0, COLUMNS`. First writes the
   positions along `axes` and those that these limits depend on. */
const char *attention_emit_columns(StrBuf *out, const Scope *scope, const Attention *attention, uint32_t axes);

void attention_emit_functions(StrBuf *out, const Scope *scope, const Attention *attention);
