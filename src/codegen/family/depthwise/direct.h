// What the halves of the direct kernels share: which program is constructed, what it reads, and how it lies
// in shared memory; and what kernels that slide down an image share with them.
#pragma once
#include "codegen/cuda/expr.h"
#include "codegen/family/depthwise/families.h"
#include "codegen/family/depthwise/view.h"
#include "rprogram/rprogram.h"

enum { CHUNK = 4 };   // inputs that a thread looks at together

/* Space axes. */
enum { CHANNEL, MULTIPLIER, BATCH, DOWN, ALONG, DOWN_TAP, ALONG_TAP, SUMMED };   // SUMMED: channels of a group, where there are any

/* The family's choice. */
typedef struct DirectWay {
    bool channels_last;   // lanes lie along channels, as images do in memory; else along their lines
    bool padded;          // some window reaches outside of the image
    int piece;            // elements that are copied together; 1: one by one
    int windows;          // whose sums are apart
    int64_t filter;       // elements of a channel's filters in shared memory
    int64_t room;         // bytes of it that a block may take
} DirectWay;
DirectWay direct_way(const KernelKind *kind);

/* Along the innermost axis of the image, and down the other one; of a line there is one output down. */
const WindowAxis *slide_along(const Depthwise *shape);
const WindowAxis *slide_down(const Depthwise *shape);

/* Which positions of the image an access knows. */
typedef enum Positions { OF_INPUTS, OF_TAPS, OF_OUTPUTS } Positions;

/* The space's axes; what the access moves; what the epilogue reads and all outputs. */
void direct_add_axes(TileSpace *space, const Depthwise *shape);
DataTile direct_tile(const Fusion *fusion, const Depthwise *shape, const Access *access, Positions of);
void direct_add_factor_tiles(TileSpace *space, const Fusion *fusion, const Depthwise *shape);   // of x, then of w
void direct_add_outer_tiles(TileSpace *space, const Fusion *fusion, const Depthwise *shape);

/* Every input is under some window. */
bool direct_reads_all(const Depthwise *shape);

/* Do all places from which pieces are read lie at multiples of `piece`, with their neighbours along `inner`
   behind them? */
bool direct_reads_pieces(const Fusion *fusion, const Depthwise *shape, int inner, int64_t piece);

/* Shared memory of a block: images, in whose place the last window's sums come; the filters; the sums of the
   windows before the last; a word of each warp: whether a filter holds what is no finite number. */
typedef struct DirectLayout {
    int64_t rows, columns;                          // of an image, at most
    int64_t column_pitch, row_pitch, image_pitch;   // elements
    int64_t sum_row_pitch, sum_image_pitch;
    int64_t filters_at, sums_at, sum_bytes, spoilt_at, bytes;
} DirectLayout;
DirectLayout direct_layout(const KernelKind *kind, const RTile *block);

/* Elements from one row of a filter to the next in shared memory; of the whole filter of a channel. */
int64_t direct_tap_pitch(const Depthwise *shape);
int64_t direct_filter(const Depthwise *shape);

/* Begins a parameter block with types and sizes of images; gives the names of the axes. */
Scope direct_emit_problem(StrBuf *out, const KernelPlan *plan, const Depthwise *shape);

/* Parts of it: a filter's taps and how its window slides; where an image lies, a tap, and where that lies; positions of those axes
   of images and filters that are `used`. */
void direct_emit_window(StrBuf *out, const char *lead, const Depthwise *shape);
void direct_emit_image(StrBuf *out, const Scope *scope, const Depthwise *shape);
void direct_emit_tap(StrBuf *out, const char *lead, const Scope *scope, const Depthwise *shape);
void direct_emit_tap_at(StrBuf *out, const char *lead, const Scope *scope, const Depthwise *shape);
void direct_emit_groups(StrBuf *out, const Scope *scope, const Depthwise *shape, uint32_t used);

/* `void finish(…, const A (&totals)[QN]) {` of those sums at a position of the output. */
void direct_emit_finish_opening(StrBuf *out, const char *why, const char *sums);

/* The epilogue of QN outputs side by side along an axis of the fusion. `guarded`: QN; some may not exist, and have the position of
   another one. 0: all exist. */
void direct_emit_finish(StrBuf *out, Scope *scope, const Depthwise *shape, int inner, int guarded);

/* Family.work */
StatedWork direct_work;

/* Family.emit */
void direct_emit(StrBuf *out, const KernelPlan *plan);
