// A kernel family: one way of computing, recognised by the structure of a fused expression.
//
// This is only its record: the families are in codegen/family, and families.c holds the only list of them. A
// family's view of a fusion is made once; everything else that it does with the fusion starts from there. Every
// family with a view offers candidates, and the model ranks all of them.
#pragma once
#include "base/strbuf.h"
#include "ir/fuse.h"
#include "kernel/work.h"
#include "kernel/target.h"
#include "kernel/kind.h"

struct RProgram;    // model/perf.h
struct TensorMap;   // codegen/cuda/kernel.h

enum { MAX_VARIANTS = 32 };   // kinds of kernels that a family offers for an expression

/* What the fusion is to some families, by the structure of its expression and never by a name; NULL: they do not
   serve it. */
typedef const void *View(Arena *arena, const Fusion *fusion, const Target *target);

enum { MAX_VIEWS = 16 };   // that there are

/* A fusion for a target, and its views: families with one view share it. */
typedef struct Viewed {
    Arena *arena;   // of the views
    const Fusion *fusion;
    const Target *target;
    View *view[MAX_VIEWS];
    const void *found[MAX_VIEWS];
    int count;
} Viewed;

/* What the generator passes to a family that writes its parameter block. */
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

/* The form in which some families want their fusions, such as elements in another order. */
typedef struct Rewrite {
    /* From the families' view of the fusion. NULL: there is nothing to gain. */
    Rewritten *(*make)(Arena *arena, const void *view, const Fusion *fusion, const Target *target);
    bool splits;         // the main launch's reduction may be split across blocks, too
} Rewrite;

typedef struct Family {
    const char *name;            // also tests/golden/kernel/<name>/
    const char *template_path;   // "templates/matmul.cu"; NULL: ranked and never written, has neither emit nor maps
    /* Every KernelKind.name there is, ended by NULL: random programs must reach them all. */
    const char *const *variants;
    bool shares_body;    // kernels with the same body share it: it also compiles as members of a struct
    bool whole_warps;    // blocks smaller than a warp are launched with a whole one
    int copying_warps;   // besides those that compute
    bool fetches;        // reads elements at computed places
    bool streams;        // takes kernels whose ops have their own points: its view says which
    bool joins;          // takes sums of products that share a factor, too: fuse_join.h
    /* The thread that stores an element is the only reader of the operands at that position, and has read them
       before. */
    bool adds_in_place;
    bool tiles_both;     // factors of products: fewer, larger tiles and parts of the sums may take less
    View *view;
    const Rewrite *const *rewrites;   // ended by NULL: what they make only those take that have them; NULL: none
    /* Fills at most MAX_VARIANTS kinds of kernels; returns their number. 0: it does not take this fusion, though
       it has the view. Spaces and schedules are in the arena. */
    int (*kinds)(Arena *arena, const void *view, const Fusion *fusion, const DeviceSpec *device,
                 KernelKind *variants);
    /* Writes the constants, types and device functions of the parameter block (tensors are there already). */
    void (*emit)(StrBuf *out, const KernelPlan *plan);
    /* Blocks of the launch, of the plan's fusion, kind, program and threads. NULL: the program's. */
    int64_t (*blocks)(const KernelPlan *plan);
    /* Fills the tensor maps of its bulk copies; returns their number. NULL: it has none. */
    int (*maps)(const KernelPlan *plan, struct TensorMap *maps);
    /* What its blocks do for some items of their schedules. NULL: it follows from the items. */
    StatedWork *work;
} Family;
