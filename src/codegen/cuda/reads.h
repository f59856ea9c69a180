// Reads of kernels whose threads take vectors of neighbouring points: which of them are one wide load.
//
// The distinct unguarded reads of a point live in a generated `struct Inputs`, an array over the vector each;
// expressions then say `in.x0[e]`. Guarded reads happen where they are used, unless whole pieces hold their
// elements.
#pragma once
#include "codegen/cuda/expr.h"

enum {
    MAX_VECTOR = 16,             // points; i8 fills 16 bytes with them
    ELEMENT_INSTRUCTIONS = 6,    // to read an element alone: an address, a test and a load
    POSITION_INSTRUCTIONS = 8,   // to find a position along an axis, by a division and a remainder
    MAX_LOADED = 32              // distinct reads that are held in registers; more are read on the spot
};

/* How the elements for a vector of points lie in memory. */
typedef enum Pattern {
    PATTERN_FLAT,        // in the order of the flat spatial position
    PATTERN_ROW,         // contiguous along the vector's axis, vectors aligned
    PATTERN_SECOND,      // every second element along the vector's axis, of aligned vectors twice as long
    PATTERN_BROADCAST,   // the same element for a whole vector
    PATTERN_LINE,        // contiguous along the vector's axis from anywhere, or the same element; the vector may go on in
                         // the next row
    PATTERN_PADDED,      // contiguous along the vector's axis from anywhere, under a guard: some elements may lie outside of
                         // the tensor
    PATTERN_PADDED_BROADCAST,   // the same element for a whole vector, under a guard; not of flat walks, whose last vector is
                         // read point by point
    PATTERN_GATHER
} Pattern;

/* Reads of a whole vector for which its first point's position is needed. */
enum {
    VECTOR_PATTERNS = 1 << PATTERN_ROW | 1 << PATTERN_SECOND | 1 << PATTERN_BROADCAST | 1 << PATTERN_PADDED |
                      1 << PATTERN_PADDED_BROADCAST
};

/* The vector of points that a thread takes at once. */
typedef struct Walk {
    const Fusion *fusion;
    int ops;      // the first so many of the fusion's ops are computed point by point
    int axis;     // along which the points of a vector lie
    int vector;   // points
    uint32_t along;   // only reads that move along one of these axes; 0: all
    bool flat;    // vectors follow the flat spatial position, from row to row
    bool lines;   // PATTERN_LINE is told from PATTERN_GATHER
    bool padded;  // PATTERN_PADDED is told from what guards keep for the place of use, and concatenations are one read
    bool held;    // vectors of narrow elements are kept as they lie in memory: Packed and PackedBits
    bool once;    // the kernel writes about as much as it reads: by read_global, which tells L2
    bool ends_later; // what a vector that hangs over the end of its tensor has inside is loaded behind all other loads
    bool unaligned;  // vectors are aligned in tensors of all the fusion's axes, and hang over the ends of the rows; lines are
                  // read by the pieces that hold them
} Walk;

typedef struct Read {
    const Access *access;
    const Fetch *fetch;   // whose places move it as well; NULL: none do
    Affine offset;
    Affine seen;          // fused_offset(): the same but for what places add
    Pattern pattern;
    bool reused;   // by many points: it comes from a cache
    const Expr *pieces;   // a concatenation (pieces.h), of which `access` is the first piece; NULL: that alone
} Read;

/* Which of the reads a function below is about. */
typedef enum ReadsPart { READS_ALL, READS_STREAMED, READS_REUSED } ReadsPart;

typedef struct Reads {
    Walk walk;
    ReadsPart part;
    Read reads[MAX_LOADED];
    int count;
    char text[24];
} Reads;

Reads reads_find(Walk walk);

/* The member of a struct that holds a read's elements, or the vector as it lies in memory. */
void reads_emit_member(StrBuf *out, const Reads *reads, int index);

bool reads_have(const Reads *reads, Pattern pattern);

/* Position of the access among them; -1: it is not there. */
int reads_index(const Reads *reads, const Access *access);

/* Of PATTERN_PADDED: a vector lies inside the tensor, or outside, as both are whole vectors. */
bool read_is_whole(const Read *read, const Walk *walk);

/* For Scope.loaded, with the Reads as its context. */
const char *reads_loaded(void *context, const Expr *expr);

/* Axes whose positions the loads need, all of them or those of some patterns (bit p: pattern p); those that
   an expression still needs once its reads are loaded. */
uint32_t reads_axes(const Reads *reads);
uint32_t reads_axes_of(const Reads *reads, uint32_t patterns);
uint32_t reads_axes_left(const Reads *reads, const Expr *expr);

/* `struct Inputs`. */
void reads_emit_inputs(StrBuf *out, const Reads *reads);

/* `in.x0[e] = load(t.in0, offset);` */
void reads_emit_one(StrBuf *out, const char *indent, const Scope *scope, const Reads *reads, int index,
                    const char *element);

/* Reads of a whole vector that need no loop over its points: neither lines nor gathers. The scope's axes are
   those of the first point; `flat` is the flat spatial position. */
void reads_emit_vectors(StrBuf *out, const char *indent, const Scope *scope, const Reads *reads,
                        const char *flat);

/* The same of one read. */
void reads_emit_vector(StrBuf *out, const char *indent, const Scope *scope, const Reads *reads, int index,
                       const char *flat);

/* What it has inside of a tensor whose end the vector hangs over (Walk.ends_later). */
void reads_emit_end(StrBuf *out, const Scope *scope, const Reads *reads, int index);

/* Reads along lines, if there are any: at once where the vector stays in its row, else point by point. */
void reads_emit_lines(StrBuf *out, const Scope *scope, const Reads *reads);

/* The gathers of point e. */
void reads_emit_gathers(StrBuf *out, const char *indent, const Scope *scope, const Reads *reads);

/* Instructions that compute an element of an output from the sum that the fusion begins with. */
double epilogue_instructions(const Fusion *fusion);
