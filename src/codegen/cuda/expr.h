// Writing CUDA from expressions. What is written here fills the parameter block of a template: the tensors of
// a kernel, and small device functions that say what one point of its space computes.
#pragma once
#include "codegen/cuda/parameters.h"
#include "ir/axis_group.h"
#include "kernel/family.h"

/* How a kernel's expressions are spelled. Values of earlier ops are `v<op>`; tensors are `t.in<i>`,
   `t.out<i>`. */
typedef struct Scope {
    const Fusion *fusion;
    const char *axis[MAX_AXES];   // C expression of each axis' position; "" never: unit axes are gone
    bool wide;                    // positions and offsets are 64-bit
    const char *prefix;           // before the name of a value that is made at points of `suffix_axes`: "el."; NULL: nothing
    const char *suffix;           // after it: "[e]"
    uint32_t suffix_axes;         // bit a: axis a
    const char *other_suffix;     // after the name of any other value; NULL: nothing
    const Expr *holds;            // a condition that is known to hold; NULL: none
    const char *exponential;      // spelling of `exp`; NULL: the one of every op
    /* Spelling of an input access or a guard, if it is not to be loaded from memory on the spot; NULL: it
       is. */
    const char *(*loaded)(void *context, const Expr *expr);
    void *context;
} Scope;

/* With the axes' usual names. */
Scope scope_of(const KernelPlan *plan);

/* The C type of a value inside an expression: float, double, int, long long, bool. */
const char *value_type(DType compute_type);

/* The C type of a tensor's elements in memory; b1 lives in `unsigned` words. */
const char *memory_type(DType type);

/* "Sum", "Max", … : the combiner in the prelude. */
const char *combiner(Reduce reduce);

/* Whether so many elements need 64-bit positions. */
bool is_past_32_bits(int64_t count);

/* Elements of the largest tensor that it reads or writes. */
int64_t fusion_largest_tensor(const Fusion *fusion);

/* Whether a kernel over this fusion needs 64-bit positions: tensors or padded spaces past 2^31. */
bool fusion_is_wide(const Fusion *fusion);

/* `0.5f` of f32. */
void emit_real(StrBuf *out, DType type, double value);

void emit_affine(StrBuf *out, const Affine *form, const char *const *axis);
void emit_expr(StrBuf *out, const Scope *scope, const Expr *expr);
/* In ( ) where it is an operator's result. */
void emit_operand_of(StrBuf *out, const Scope *scope, const Expr *expr);
/* `load_or(p >= 3, 0xfc00, t.in0, i)`: an element of 16 bits, or a constant that they hold. False: it is no such guard. */
bool emit_load_or(StrBuf *out, const Scope *scope, const Guard *guard, const char *condition);

/* The same as text: an affine form, the offset of an access, an expression. */
const char *affine_text(Arena *arena, const Affine *form, const char *const *axis);
const char *offset_text(Arena *arena, const Access *access, const char *const *axis);
const char *expr_text(Arena *arena, const Scope *scope, const Expr *expr);
/* `t.in1[offset]`, or with a conversion `load(t.in1, offset)`. */
const char *load_text(Arena *arena, DType type, int position, const char *offset);
/* The offset of an element, with what the places of a fetch add; `fetch` NULL: nothing. */
const char *element_text(Arena *arena, const Scope *scope, const Fetch *fetch, const Affine *offset);

/* `const Index a = p / 12, b = p / 4 % 3, c = p % 4;` for the axes [first, end) with p their flat position,
   row-major. The names are those of scope->axis. */
void emit_positions(StrBuf *out, const char *flat, const Scope *scope, int first, int end);

/* The same, of those axes only whose bit is set in `used`. */
void emit_used_positions(StrBuf *out, const char *indent, const char *flat, const Scope *scope, int first,
                         int end, uint32_t used);

/* The same along a group, a statement each. */
void emit_group_positions(StrBuf *out, const char *indent, const char *flat, const Scope *scope,
                          const AxisGroup *group, uint32_t used);

/* Axes whose positions the ops that are no reductions read, and those that stores need. */
uint32_t epilogue_axes(const Fusion *fusion);
uint32_t store_axes(const Fusion *fusion);

/* The op's value, rounded as its tensor's readers see it: `round_to<f16>(…)`. Plain `text` where that would
   change nothing. */
const char *rounded_text(Arena *arena, const Fusion *fusion, int op, const char *text);

/* No later op reads the value, and storing it rounds it the same. */
bool is_rounded_by_storing(const Fusion *fusion, int op);

/* `const float v2 = …;` for one pointwise op; for every one from `first` on. */
void emit_pointwise_op(StrBuf *out, const char *indent, const Scope *scope, int index);
void emit_pointwise_ops(StrBuf *out, const char *indent, const Scope *scope, int first);

/* `v2` from the variable that holds the total of op 2, a reduction. */
void emit_reduced_op(StrBuf *out, const char *indent, const Scope *scope, int index, const char *total);

/* That of the first op, then the pointwise ops after it. */
void emit_epilogue(StrBuf *out, const char *indent, const Scope *scope, const char *total);

/* `store(t.out0, offset, v0);` for every stored op that is not b1. */
void emit_stores(StrBuf *out, const char *indent, const Scope *scope);

/* The same of neighbours, none of them b1: `float y0[QN];` for every output, `y0[e] = v3;` for every stored
   op, `store_vector<QN>(t.out0, offset, y0);`. */
void emit_output_vectors(StrBuf *out, const Fusion *fusion, const char *size);
void emit_vector_elements(StrBuf *out, const Fusion *fusion);
void emit_vector_stores(StrBuf *out, const char *indent, const Scope *scope);

int count_bit_outputs(const Fusion *fusion);

/* Index type and struct Tensors, which lacks those inputs. */
void emit_tensors(StrBuf *out, const Program *program, const Fusion *fusion, bool wide, uint64_t without);

/* What a template calls PARAMETERS and TENSORS: `const f16 *__restrict__ in0`, `{in0}`. Inputs come in this order; NULL: in their
   own. A sum that is made in place and what it is made of have no `__restrict__`. */
const char *emit_signature(Arena *arena, const Fusion *fusion, const Launch *launch, const int *order);
const char *emit_arguments(Arena *arena, const Fusion *fusion, uint64_t without);

/* Maps behind them in PARAMETERS: `, const __grid_constant__ TensorMap map_a`; MAP_LIST: `{&map_a, …}`. */
const char *emit_maps(Arena *arena, int count);
const char *emit_map_list(Arena *arena, int count);

/* Position of the tensor among the fusion's inputs or outputs; -1: it is not there. */
int input_position(const Fusion *fusion, const Tensor *tensor);
int output_position(const Fusion *fusion, const Tensor *tensor);

/* Names for axes that are free to use in generated code: i0, i1, … */
extern const char *const axis_names[MAX_AXES];
