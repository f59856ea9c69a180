// What the files of `lower` share: names, index variables in scope, typed expressions.
//
//   lower.c          statements in order; then only what an output needs is kept
//   lower_name.c     the names of params and tensors
//   lower_const.c    constants, folded exactly
//   lower_scope.c    index variables and their extents
//   lower_affine.c   indices: affine forms, quotients, remainders
//   lower_access.c   elements of tensors, and whether their indices stay inside
//   lower_expr.c     expressions and reductions
//   lower_type.c     element types
#pragma once
#include "front/ast.h"
#include "front/lower.h"
#include "ir/tensor_op.h"

#define MAX_ELEMENTS ((int64_t)1 << 40)   // of a tensor; the language promises that many
#define MAX_INDEX_DEPTH 4                 // table[a[b[c[d[i]]]]]: each waits for the one inside
#define MAX_POINTS ((int64_t)1 << 62)     // of an op's axes: later products stay in 64 bits

/* A param, input, view or definition. All are declared before any is lowered: early use is an error. */
typedef struct Symbol {
    const AstStatement *statement;
    const AstStatement *output;   // the `output` statement that names it, or NULL
    bool ready;                   // lowered: may be read
    bool failed;                  // an error was found in it
    bool overridden;              // a param set by -D
    Number value;                 // of a param
    Tensor *tensor;               // of an input, definition or view, as it is seen
    Tensor *viewed;               // of a view: the tensor whose elements they are
} Symbol;

/* The index variables in scope, outermost first; an Affine's coefficients count in this order. */
typedef struct IndexScope {
    int count;
    const char *names[MAX_AXES];
    int64_t extents[MAX_AXES];    // 0 until known
} IndexScope;

/* A lowered expression and what typing has to know of it. */
typedef struct AffineTerm {
    Expr *expr;
    bool is_number;     // folded: `number` is its exact value
    Number number;
    bool is_constant;   // made of numbers only: takes the type of the operand beside it
    bool is_long;       // of integers: an i64 is among them
    bool moves;         // an element of a tensor as it stands, of type `element`
    DType element;
} AffineTerm;

typedef struct Lower {
    Arena *arena;
    const Ast *ast;
    Symbol *symbols;      // as declared
    int symbol_count;
    int *buckets;         // hash table of positions in `symbols`, plus one; 0 is empty
    Program *program;
    IndexScope scope;
    const char *defining; // the definition being lowered
    int temporaries;      // made for it so far
    int index_depth;      // of elements that are indices of elements
} Lower;

// lower_name.c
void symbols_declare(Lower *lower);
Symbol *symbol_find(const Lower *lower, const char *name);
/* "; did you mean 'x'?" or "", from the program's params and, unless only those are wanted, its tensors. */
const char *name_suggestion(const Lower *lower, const char *name, bool only_params);
/* An error; but what a statement that is wrong may define ends the attempt in silence. `what`: "tensor" */
_Noreturn void name_unknown(const Lower *lower, const char *what, const char *name, Loc loc);
/* The tensor or view of that name, already defined; anything else is an error. */
const Symbol *tensor_symbol(const Lower *lower, const char *name, Loc loc);
Number param_find(const Lower *lower, const char *name, Loc loc);

// lower_const.c
bool number_folds(Op op);
Number number_apply(Op op, Number a, Number b, Loc loc);
bool number_is_integer(Number number, int64_t *value);
double number_real(Number number);
const char *number_text(Arena *arena, Number number);
/* A value of the type, or a real number that rounds to one: inf and 0.1 are of f16, 1e6 and 65520 are not. */
bool number_fits(Number number, DType type);
/* "-128 to 127" */
const char *values_text(Arena *arena, DType type);
Number lower_const(const Lower *lower, const AstExpr *expr);
/* The size of a dimension or the extent of an index variable, from 1 to MAX_ELEMENTS. */
int64_t lower_extent(const Lower *lower, const AstExpr *expr);
void override_params(Lower *lower, const ParamOverride *overrides, int count);

// lower_scope.c
int scope_find(const IndexScope *scope, const char *name);
/* Brings index variables into scope; their extents are the stated ones or follow from `body`. */
void scope_open(Lower *lower, const AstIndex *indices, int count, const AstExpr *body);
void scope_close(Lower *lower, int count);

// lower_affine.c
/* An index: an affine form, and what is computed beside it; its range is over the whole box. */
typedef struct IndexForm {
    Affine affine;
    Expr *computed;           // a quotient, a remainder, or what is made of such; NULL: nothing
    int64_t low, high;        // of it
    const AstExpr *element;   // an access that is added, alone but for a constant; NULL: none
} IndexForm;
IndexForm lower_index(const Lower *lower, const AstExpr *index);
/* Its smallest and its largest value; the type that holds both. */
DType index_span(const Lower *lower, const IndexForm *index, Loc loc, int64_t *low, int64_t *high);
/* All of it as a value of type i32 or i64. */
Expr *index_expr(const Lower *lower, const IndexForm *index, DType type);
/* The index if it is an affine form; false: it is not. Extents need not be known yet. */
bool index_is_affine(const Lower *lower, const AstExpr *index, Affine *form);

// lower_access.c
/* The tensor or view x of x[…], which has as many dimensions as there are indices. */
const Symbol *accessed(const Lower *lower, const AstExpr *access);
/* `b[i, 0]`, of b[i, j] and 1: how the only element of a dimension is read everywhere. */
const char *read_of_only(const Lower *lower, const AstExpr *access, int dimension);
/* The element x[…]; an index that leaves the tensor is an error. */
AffineTerm lower_access(Lower *lower, const AstExpr *access);
AffineTerm lower_pad(Lower *lower, const AstExpr *pad);

// lower_expr.c
void lower_definition(Lower *lower, Symbol *symbol);
/* An output that is a view of what is stored elsewhere: a definition of its elements. */
Tensor *lower_view_copy(Lower *lower, const Symbol *symbol);
Tensor *tensor_new(Lower *lower, const char *name, DType dtype, Loc loc);
void tensor_add_dimension(Tensor *tensor, int64_t size, Loc loc);

// lower_type.c
AffineTerm term_number(Lower *lower, Number number, Loc loc);
AffineTerm term_of(Expr *expr);
Expr *term_convert(Lower *lower, AffineTerm term, DType type);
AffineTerm term_apply(Lower *lower, Op op, const AffineTerm *operands, Loc loc);
AffineTerm term_cast(Lower *lower, AffineTerm term, DType to, Loc loc);
/* i32 for b1, else as it is: what arithmetic and reductions compute in. */
DType arithmetic_type(DType type);
/* The type of a definition that states none. */
DType definition_type(AffineTerm term, Reduce reduce);
/* The body as it is stored in a tensor of type `to`; a silent loss of meaning is an error. */
Expr *term_store(Lower *lower, AffineTerm term, Reduce reduce, DType to);
