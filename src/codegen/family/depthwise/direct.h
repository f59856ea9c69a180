// What the two halves of the direct kernels share: which program is constructed, and how it lies in shared
// memory.
#pragma once
#include "codegen/family/depthwise/shape.h"
#include "codegen/family/family.h"

enum { CHUNK = 4 };   // inputs that a thread looks at together

/* Space axes. */
enum { CHANNEL, MULTIPLIER, BATCH, DOWN, ALONG, DOWN_TAP, ALONG_TAP };

/* The family's choice. */
typedef struct DirectWay {
    bool channels_last;   // lanes lie along channels, as images do in memory; else along their lines
    int piece;            // elements that are copied together; 1: one by one
    bool padded;          // some window reaches outside of the image
    int64_t room;         // bytes of shared memory that a block may take
} DirectWay;
DirectWay direct_way(const TileRules *rules);

/* One of the two directions in which windows slide. */
typedef struct Slide {
    int64_t outputs, taps, inputs, step, dilation, offset;
    int64_t stride;   // in memory, of x
} Slide;

/* Along the innermost axis of the image, and down the other one; of a line there is one output down. */
Slide slide_along(const Depthwise *shape);
Slide slide_down(const Depthwise *shape);

/* The tile's dimension that the axis moves; one of its size where there is none. */
Dim direct_dim(const DataTile *tile, int axis);

/* Shared memory of a block: images, one place after the other the sums, then the filters, then a word of each
   warp: whether one of them holds what is no finite number. */
typedef struct DirectLayout {
    int64_t rows, columns;                          // of an image, at most
    int64_t column_pitch, row_pitch, image_pitch;   // elements
    int64_t tap_pitch;                              // of a filter's row
    int64_t sum_row_pitch, sum_image_pitch;
    int64_t filters_at, spoilt_at, bytes;
} DirectLayout;
DirectLayout direct_layout(const TileRules *rules, const RTile *block);

/* Family.emit */
void direct_emit(StrBuf *out, const KernelPlan *plan);
