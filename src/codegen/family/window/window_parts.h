// What the two halves of the window family share: which program it constructs, and how it is written.
#pragma once
#include "codegen/family/window/families.h"
#include "codegen/family/window/stencil.h"
#include "rprogram/rprogram.h"

/* Space axes. */
enum { OUTER, DOWN, ALONG, OTHER, DOWN_TAP, ALONG_TAP };

enum {
    MAX_WINDOW_HEIGHT = 24,   // outputs of a thread, at most
    MAX_KEPT_TAPS = 81,       // that a thread keeps in registers: 9 x 9
    PAIR = 2                  // adjacent outputs of a thread
};

/* What is kept of the input. */
typedef enum WindowKeeps {
    KEEPS_NOTHING,
    KEEPS_WINDOWS,
    KEEPS_WINDOWS_OF_STAGED,   // as one piece
    KEEPS_WINDOWS_OF_PAIRS     // line by line with zeros around the image, of adjacent outputs
} WindowKeeps;

/* The part of one tensor that a block reads, as one piece of memory. */
typedef struct StagedInput {
    const Access *access;   // NULL: there is none
    int64_t plane;          // elements of one outer position
    int64_t down_step;      // elements from one output's windows to those of the one below
    int64_t low, high;      // first and last element under a line's windows, seen from the line's start
} StagedInput;

/* Of the operands' tensors the largest that can be staged. */
StagedInput window_stage(const Stencil *stencil);

/* The family's view. */
typedef struct WindowView {
    Stencil stencil;
    StagedInput stage;
} WindowView;
Stencil window_stencil(const WindowView *view, WindowKeeps keeps);

/* Does a thread ask for the taps of all filters, which it keeps in registers, before the block copies what it
   stages? They come meanwhile; asked for behind the copies they take their turn (tuning-log 102). */
bool window_reads_filters_first(const Stencil *stencil, const StagedInput *stage);

/* How its lines or columns meet the outputs: output i and what its thread keeps as element p meet the input
   i * step + p * unit + first. */
typedef struct LineAxis {
    int32_t inputs, outputs, step, unit, first;   // of the image, …
    int32_t reach;   // from the first tap's input to the last one's, both counted
} LineAxis;

typedef struct WindowLines {
    LineAxis axis[DIRECTIONS];
    int32_t element_bytes;
} WindowLines;

/* Do all its lines begin where a piece of 16 bytes does? */
bool window_has_whole_pieces(const Access *access);

/* Can the staged tensor be copied line by line? It consists of planes of an image each, whose elements one
   instruction copies; windows touch, and what they read beside the image is zero. */
bool window_lines_find(const Stencil *stencil, const StagedInput *stage, WindowLines *lines);

/* What windows cover of the image. */
typedef struct Covered {
    int64_t first, count;
} Covered;
Covered window_covered(const LineAxis *axis);

/* Shared memory of a block. */
typedef struct LineLayout {
    bool whole;              // a thread makes whole columns: no line outside of the image is staged
    int64_t top, left;       // of the image, where what the topmost block stages begins
    int64_t rows, columns;   // of a plane that are staged
    int64_t phases, phase;   // columns that lie side by side: every so-many-th; elements of one
    int64_t line_pitch, plane_pitch, bytes;
    int64_t lanes, together;   // threads that copy a line; planes that are copied at the same time
} LineLayout;
LineLayout window_line_layout(const WindowLines *lines, const RTile *block, const RTile *inner);

/* The family's choice, which goes with its kind. */
typedef struct WindowChoice {
    WindowKeeps keeps;
    WindowLines lines;
} WindowChoice;
WindowChoice window_choice(const KernelKind *kind);

/* What the operand reads, if it is one access of whole elements; else NULL. */
const Access *operand_access(const Expr *expr);

/* The only output, if its elements lie as the outputs' positions follow each other: then a block may collect
   its outputs in shared memory and write them as one piece. NULL: not so. */
const FusedOp *window_collected(const Fusion *fusion);

/* Family.emit */
void window_emit(StrBuf *out, const KernelPlan *plan);
