// Depthwise convolutions on tensor cores where channels lie side by side: the choice of templates/pairs.cu.
#pragma once
#include "codegen/family/depthwise/direct.h"

/* The family's choice. */
typedef struct PairsWay {
    int pairs;         // of channels, of a warp
    int images;        // of a block,
    int columns;       // and of each so many outputs side by side: 64 in all
    int height;        // rows of outputs
    int reach;         // columns of a row of one image in the ring
    int staged_bits;   // of a sum on its way through shared memory
    int stored;        // channels of all outputs that are one aligned access, at most
} PairsWay;

enum {
    PAIRS_GROUP = 4,    // columns of outputs that an instruction makes
    PAIRS_PIXELS = 64,  // columns of outputs of a warp's tile, of all images
    PAIRS_RING = 8      // rows of the input that have room
};
