// A kernel family: one way of computing, recognised by the structure of a fused expression.
//
// Only its record: the families themselves are in codegen/family, families.c holds the only list of them. A
// family's view says what a fusion is to it, once; all else that it does with the fusion starts from there. Every
// family that has one offers candidates, and the model ranks them all.
#pragma once
#include "base/strbuf.h"
#include "ir/fuse.h"
#include "kernel/work.h"
#include "kernel/target.h"
#include "kernel/kind.h"

struct RProgram;    // model/perf.h
struct TensorMap;   // codegen/cuda/kernel.h

enum { MAX_VARIANTS = 20 };   // kinds of kernels one family offers for one expression

/* What the fusion is to some families, by the structure of its expression and never by a name; NULL: nothing. */
typedef const void *View(Arena *arena, const Fusion *fusion, const Target *target);

enum { MAX_VIEWS = 16 };   // that there are

/* A fusion for a target, and what views have found in it: families with one view share it. */
typedef struct Viewed {
    Arena *arena;   // of what they find
    const Fusion *fusion;
    const Target *target;
    View *view[MAX_VIEWS];
    const void *found[MAX_VIEWS];
    int count;
} Viewed;

/* What the generator hands to a family that writes its parameter block. */
typedef struct KernelPlan {
    const Fusion *fusion;
    const void *view;         // the family's
    const KernelKind *kind;   // the variant the program was made from
    const struct RProgram *program;
    const DeviceSpec *device;
    SharedLayout shared;      // of a block
    int threads;   // of a block; see Family.whole_warps
    bool wide;     // positions need 64 bits
    const bool *early;   // by input: no launch of the program writes it (LaunchArg.early)
    bool finds_room;     // Launch.finds_room
} KernelPlan;

/* What some families want their fusions to be, where they are not: elements in another order, say. */
typedef struct Rewrite {
    /* From what the fusion is to those families. NULL: there is nothing to gain. */
    Rewritten *(*make)(Arena *arena, const void *view, const Fusion *fusion, const Target *target);
    double most_share;   // of the best single kernel's time: those beside the main one take no more; 0: they may
    bool splits;         // the main one's reduction may be split over blocks, too
} Rewrite;

typedef struct Family {
    const char *name;            // also tests/golden/kernel/<name>/
    const char *template_path;   // "templates/matmul.cu"; NULL: it is ranked and never written, and has neither emit nor maps
    /* Every KernelKind.name there is, ended by NULL: random programs must reach them all. */
    const char *const *variants;
    bool shares_body;    // kernels of the same body have it once: it compiles as a template's members, too
    bool whole_warps;    // blocks smaller than a warp are launched with a whole one
    int copying_warps;   // beside those that compute
    bool fetches;        // reads elements at computed places
    bool streams;        // takes kernels whose ops are made at points of their own: its view says which
    bool joins;          // takes sums of products that share a factor, too: fuse_join.h
    /* Who stores an element has read what its ops, behind sums, read at its place, and nobody else reads that. */
    bool adds_in_place;
    bool tiles_both;     // factors of products: fewer, larger tiles and parts of the sums may take less
    View *view;
    const Rewrite *const *rewrites;   // ended by NULL: what they make only those take that have them; NULL: none
    /* Fills at most MAX_VARIANTS kinds of kernels; returns their number. 0: of the fusions that
       have its view it takes others. Spaces and schedules lie in the arena. */
    int (*kinds)(Arena *arena, const void *view, const Fusion *fusion, const DeviceSpec *device,
                 KernelKind *variants);
    /* Writes the constants, types and device functions of the parameter block (tensors are there already). */
    void (*emit)(StrBuf *out, const KernelPlan *plan);
    /* Fills in how bulk copies see what it reads; their number. NULL: it makes none. */
    int (*maps)(const KernelPlan *plan, struct TensorMap *maps);
    /* What its blocks do for some items of their schedules. NULL: it follows from the items. */
    StatedWork *work;
} Family;
