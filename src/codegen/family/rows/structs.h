// The structs of a parameter block, one a pass, that build on each other: what resident and channelwise
// kernels have in common. A thread reduces to one value, or to a vector of them where it owns neighbouring
// rows.
#pragma once
#include "codegen/cuda/rows.h"
#include "codegen/family/rows/passes.h"

enum { MAX_INVARIANTS = 16 };   // held in registers; more are read where they are used

/* Reads that stay the same while a thread goes through its elements: they are made once. */
typedef struct Invariants {
    const Access *access[MAX_INVARIANTS];
    Affine offset[MAX_INVARIANTS];
    int count;
} Invariants;

/* All axes along which they do move. */
uint32_t invariants_axes(const Invariants *invariants);

/* What a pass may do, in the order in which its struct says so. */
typedef enum PassFunction {
    PASS_START,   // totals, before the first step
    PASS_BEGIN,   // of each step
    PASS_LOAD,
    PASS_MAKE,
    PASS_ADD,
    PASS_STORE_ELEMENTS,
    PASS_PACK_ELEMENTS,   // of one bit, by whole warps
    PASS_REDUCE,
    PASS_FINISH,
    PASS_CONCLUDE,
    PASS_STORE_ROW,
    PASS_FUNCTIONS
} PassFunction;

/* A struct under construction. */
typedef struct PassText {
    StrBuf members;
    Step function[PASS_FUNCTIONS];
    uint64_t made;   // ops whose elements PASS_MAKE makes
} PassText;

typedef struct PassEmitter PassEmitter;

/* How a template wants them. */
typedef struct PassStructs {
    const char *whose, *start;   // "A row"; what the first struct builds on
    const char *invariant[2];    // before and after the number of a read that is the same all along
    bool neighbours;             // a thread owns a vector of rows
    bool says_what;              // STORES
    const char *signature[PASS_FUNCTIONS];
    /* Declares the positions of spatial axes, in a function of a struct. */
    void (*positions)(StrBuf *out, const PassEmitter *emitter, uint32_t used);
    void (*load)(const PassEmitter *emitter, Step *step, uint32_t reads);   // NULL: it is done elsewhere
    /* The total of all threads, and the op's value: pass_add_value(). */
    void (*result)(PassEmitter *emitter, PassText *text, int op);
    /* "(unsigned char *)": the words that a row's bits are stored in; "": those of the tensor. */
    const char *(*bit_words)(const PassEmitter *emitter, int op);
} PassStructs;

struct PassEmitter {
    StrBuf *out;
    const KernelPlan *plan;
    const PassStructs *structs;
    const Fusion *fusion;
    const PassPlan *passes;
    Reads reads;
    Invariants invariants;
    int axis, vector;       // along which elements lie side by side; of one access
    Scope first, element;   // where a vector begins; element e of it
    uint64_t made;          // by any struct so far
    int count;              // of structs, but for the first one
    int places;             // in shared memory that reductions have taken
    char text[24];
};

/* The emitter is what its scopes refer to. */
void pass_begin(PassEmitter *emitter, StrBuf *out, const KernelPlan *plan, const PassStructs *structs,
                const PassPlan *passes, const Reads *reads, int axis);

/* The position of a reduction among all. */
int pass_reduction(const PassEmitter *emitter, int op);

PassText pass_text(const PassEmitter *emitter);

/* `total3`, which starts as the identity of its reduction. */
void pass_add_total(const PassEmitter *emitter, PassText *text, int op);
/* `term`, which needs what `expr` does, is added to `total` at every element. */
void pass_add_term(const PassEmitter *emitter, PassText *text, int op, const char *total, const char *term,
                   const Expr *expr);
/* Both of an op. */
void pass_add_reduction(const PassEmitter *emitter, PassText *text, int op);
/* `float name3` of the row, or of neighbouring ones. */
void pass_declare(const PassEmitter *emitter, PassText *text, DType type, const char *name, int op);
/* `v3`, made of `value` by a function; stored, if it is. */
void pass_add_value(const PassEmitter *emitter, PassText *text, PassFunction function, int op,
                    const char *value);
/* Values of the row that need no reduction more. */
void pass_add_values(const PassEmitter *emitter, PassText *text, PassFunction function, uint64_t ops);

/* `struct Pass3 : Pass<Pass2> { … }`: of a text; of all that a pass does. */
void pass_emit_struct(PassEmitter *emitter, PassText *text);
void pass_emit(PassEmitter *emitter, const RowPass *pass);

/* What all structs make of elements, then these, which `emit` writes behind the first one. */
void pass_emit_all(PassEmitter *emitter, PassText *start, void (*emit)(PassEmitter *emitter));
