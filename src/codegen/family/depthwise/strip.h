// Depthwise convolutions with small filters, whose threads slide down strips of an image: what kinds and
// emitter share.
#pragma once
#include "codegen/family/depthwise/direct.h"

/* The family's choice. */
typedef struct StripWay {
    bool channels_last;   // neighbouring threads have neighbouring channels; else columns
    int piece;            // elements of x that lie side by side there and are one aligned access, at most
    int stored;           // of all outputs
} StripWay;

/* Columns of x that are one aligned access of a thread with so many outputs side by side, at most. */
int64_t strip_piece(const StripWay *way, int64_t width, int64_t step);

/* Words of a row of the input, as a thread with so many channels and outputs side by side has them from
   memory. */
int64_t strip_row_words(const Depthwise *shape, int64_t lanes, int64_t width);

/* Rows that are on their way while the thread multiplies another one: more of them where few sums under way
   leave registers for it (tuning-log 71). */
int strip_ahead(const Depthwise *shape, int64_t lanes, int64_t width);

enum { STRIP_MANY_TAPS = 25 };   // with which ends of strips have code of their own

/* Family.work */
StatedWork strip_work;
