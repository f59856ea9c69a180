// Which sums of a kernel of rows may be made of chunks, and where the rows are cut.
#pragma once
#include "ir/fuse.h"

/* A reduction that may be made of chunks. */
typedef struct ChunkSum {
    const Tensor *tensor;   // the chunks' results; NULL: there is none
    int centre;             // -1: a plain reduction; else the op that holds m
    int total;              // of a centred one: the sum that gives the chunk its own centre
    const Expr *element;    // x[r, c], over the whole kernel's axes
    int in_partial;         // position in the first kernel
} ChunkSum;

typedef struct Cutter {
    Arena *arena;
    const Fusion *whole;
    int cut;         // this axis is cut; reduction axes before it count parts, those behind lie in chunks
    int64_t chunk;   // points of it in one
    double points;   // of a chunk
    Affine forms[MAX_AXES];   // the whole kernel's axes by those of the kernel that is being built
    ChunkSum *sums;           // by op
    int *position;    // by op: where it stands in the kernel that is being built; -1: nowhere yet
    Fusion *fusion;   // that kernel
    FusionPhases *phases;
} Cutter;

uint32_t sums_spatial_mask(const Fusion *fusion);
uint32_t sums_all_mask(const Fusion *fusion);

/* Fills `sums`. False: a reduction depends on others in a way that chunks cannot reproduce. */
bool sums_find(Cutter *cutter);

/* The cut that gives chunks of at most `most` points, all of the same size. False: one would hold the whole
   row. */
bool sums_find_cut(Cutter *cutter, int64_t most);
