// What the windows of neighbouring outputs share: terms in which a tap and an output's position only stand as
// one sum.
//
// In `pad(x[n, 2*h + r - 1, v + s - 1], 0)` the outputs h and h + 1 meet in the row 2*h + 2: it is read once
// for both.
#pragma once
#include "codegen/cuda/expr.h"
#include "ir/window.h"

/* Directions in which a thread's windows slide: along the innermost spatial axis, and down the one before
   it. */
typedef enum Direction { DIRECTION_DOWN, DIRECTION_ALONG, DIRECTIONS } Direction;

/* The largest part of a term that stencil: an access, or a guard with all that stands below it. */
typedef struct WindowOperand {
    const Expr *expr;
    /* In elements of what the thread keeps: stride or dilation is 1. Output -1: the direction does not move
       it. */
    WindowAxis reach[DIRECTIONS];
} WindowOperand;

/* What no output's position in the directions moves, but their taps do: w[c, r, s] beside x[n, c, h + r, v +
   s]. */
typedef struct Filter {
    const Expr *expr;   // an access
    int64_t taps[DIRECTIONS];   // its extents: of u[c, s] 1 and S
} Filter;

enum { MAX_WINDOW_OPERANDS = 8 };   // that are kept; others are read where they are used

typedef struct Stencil {
    const Fusion *fusion;
    int axis[DIRECTIONS];     // of the fusion; -1: none
    int tap[DIRECTIONS];      // of all operands; -1: none
    uint32_t unpaired_taps;   // bit a: axis a is a tap that some operand has beside no output's position
    WindowOperand operands[MAX_WINDOW_OPERANDS];
    int count;
    Filter filters[MAX_WINDOW_OPERANDS];
    int filter_count;
    char text[128];   // "in.x7[a * STEP + r * TAP_STEP][r * …]" with numbers of 19 digits has 108 characters
} Stencil;

/* The operands of the fusion's first definition. */
Stencil stencil_find(const Fusion *fusion);

/* Outputs along the direction, taps along it; 1 if there are none. */
int64_t stencil_extent(const Stencil *stencil, Direction direction);
int64_t stencil_taps(const Stencil *stencil, Direction direction);

/* Elements that `outputs` neighbours down a column need of the operand, along one direction. */
int64_t operand_extent(const WindowOperand *operand, Direction direction, int64_t outputs);

/* Whether its elements are counted from the output's position by axis of the output, not of the tap: `h + r`, not `2*h + r`. */
bool operand_counts_outputs(const WindowAxis *reach);

/* Elements of all filters. */
int64_t stencil_filter_elements(const Stencil *stencil);

/* For Scope.loaded with the Stencil as its context: `in.x0[a * 2 + r][s]`, `in.w0[r][s]`. */
const char *stencil_loaded(void *context, const Expr *expr);

/* The operand's element `p` down and `q` along from the thread's first output, of `height`. The scope's axes
   become those of the element. Outputs past the end read nothing outside of tensors. */
void operand_emit(StrBuf *out, const Stencil *stencil, const WindowOperand *operand, int64_t height,
                  Scope *scope);

/* How all operands reach down their tap; NULL if they differ, or have none. */
const WindowAxis *stencil_rows(const Stencil *stencil);

/* Where they do: are terms of one row the same for all outputs that meet it? */
bool stencil_same_terms(const Stencil *stencil);

/* Do only operands, which guard themselves, depend on the position down? */
bool stencil_is_safe(const Stencil *stencil);
