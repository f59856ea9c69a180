// Depthwise convolutions with small filters, whose threads slide down strips of an image: what rules and
// emitter share.
#pragma once
#include "codegen/family/depthwise/direct.h"

enum { STRIP_AHEAD = 3 };   // rows of the input that are on their way while a thread multiplies another one

/* The family's choice. */
typedef struct StripWay {
    bool channels_last;   // neighbouring threads have neighbouring channels; else columns
    int piece;            // elements of x that lie side by side there and are one aligned access, at most
    int stored;           // of all outputs
} StripWay;

/* Columns of x that are one aligned access of a thread with so many outputs side by side, at most. */
int64_t strip_piece(const StripWay *way, int64_t width, int64_t step);

/* Family.emit */
void strip_emit(StrBuf *out, const KernelPlan *plan);
