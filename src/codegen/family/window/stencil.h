// What the windows of neighbouring outputs share: terms in which a tap and an output's position only stand as one sum.
//
// In `pad(x[n, 2*h + r - 1, v + s - 1], 0)` the outputs h and h + 1 meet in the row 2*h + 2: it is read once for both.
#pragma once
#include "codegen/cuda/expr.h"

/* Directions in which a thread's windows slide: along the innermost spatial axis, and down the one before it. */
typedef enum Side { SIDE_DOWN, SIDE_ALONG, SIDES } Side;

/* Output a and tap r meet element a * step + r * tap_step of what the thread keeps; one of the steps is 1. */
typedef struct Slide {
    bool moves;   // the leaf depends on the side
    int tap;      // the fusion's reduction axis; -1: none
    int64_t step, tap_step;
} Slide;

/* The largest part of a term that slides: an access, or a guard with all that stands below it. */
typedef struct Leaf {
    const Expr *expr;
    Slide slide[SIDES];
} Leaf;

enum { MAX_LEAVES = 8 };   // that are kept; others are read where they are used

typedef struct Slides {
    const Fusion *fusion;
    int axis[SIDES];   // of the fusion; -1: none
    int tap[SIDES];    // of all leaves; -1: none
    uint32_t loose;    // bit a: axis a is a tap that some leaf has beside no output's position
    Leaf leaves[MAX_LEAVES];
    int count;
    char text[128];   // "in.x7[a * STEP + r * TAP_STEP][r * …]" with numbers of 19 digits has 108 characters
} Slides;

/* The leaves of the fusion's first definition. */
Slides slides_find(const Fusion *fusion);

/* The same sides, but nothing is kept: every tap reads for itself. */
Slides slides_none(const Fusion *fusion);

/* Outputs along the side, taps along it; 1 if there are none. */
int64_t slides_extent(const Slides *slides, Side side);
int64_t slides_taps(const Slides *slides, Side side);

/* Elements that `outputs` neighbours down a column need of the leaf, along one side. */
int64_t leaf_extent(const Slides *slides, const Leaf *leaf, Side side, int64_t outputs);

/* For Scope.loaded with the Slides as its context: `in.x0[a * 2 + r][s]`. */
const char *slides_loaded(void *context, const Expr *expr);

/* The leaf's element `p` down and `q` along from the thread's first output, of `height`. The scope's axes become those of
   the element. Outputs past the end read nothing outside of tensors. */
void leaf_emit(StrBuf *out, const Slides *slides, const Leaf *leaf, int64_t height, Scope *scope);

/* How all leaves slide down their tap; NULL if they differ, or have none. */
const Slide *slides_rows(const Slides *slides);

/* Where they do: are terms of one row the same for all outputs that meet it? */
bool slides_same_terms(const Slides *slides);

/* Do only leaves, which guard themselves, depend on the position down? */
bool slides_are_safe(const Slides *slides);
