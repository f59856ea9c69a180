#include "codegen/cuda/expr.h"

#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "ir/eval.h"
#include "ir/exact_type.h"
#include "ir/fuse_functions.h"

const char *value_type(DType type) { return dtype_info[dtype_info[type].compute].cuda; }

const char *memory_type(DType type) { return type == DTYPE_B1 ? "unsigned" : dtype_info[type].cuda; }

const char *combiner(Reduce reduce)
{
    static const char *const names[] = {NULL, "Sum", "Max", "Min", "Prod"};
    return names[reduce];
}

int input_position(const Fusion *fusion, const Tensor *tensor)
{
    for (int i = 0; i < fusion->input_count; i++)
        if (fusion->inputs[i] == tensor)
            return i;
    return -1;
}

int output_position(const Fusion *fusion, const Tensor *tensor)
{
    for (int i = 0; i < fusion->output_count; i++)
        if (fusion->outputs[i] == tensor)
            return i;
    return -1;
}

/* Flat positions, and addresses beside tensors, overshoot by less than this many. */
enum { OVERSHOOT = 1 << 24 };

bool is_past_32_bits(int64_t count) { return count > INT32_MAX - OVERSHOOT; }

typedef struct FarGuard {
    const Fusion *fusion;
    int64_t extents[MAX_AXES];
} FarGuard;

static bool leads_far(const FarGuard *far, const Affine *index)
{
    int64_t low, high;
    return !affine_range(index, far->extents, far->fusion->axis_count, &low, &high) ||
           is_past_32_bits(high) || is_past_32_bits(-low);
}

/* A guard's index is computed wherever it leads: 10^12 in pad(x[1000000 * i], 0), though x has no such
   element; so is the dividend of x[1000000 * i / 1000000]. */
static bool is_far(const Expr *expr, const void *far)
{
    for (int i = 0; expr->kind == EXPR_GUARD && i < expr->guard.count; i++)
        if (leads_far(far, &expr->guard.bounds[i].index))
            return true;
    return expr->kind == EXPR_INDEX && leads_far(far, &expr->index);
}

static bool has_far_guard(const Fusion *fusion)
{
    FarGuard far = {.fusion = fusion};
    for (int a = 0; a < fusion->axis_count; a++)
        far.extents[a] = fusion->axes[a].extent;
    for (int i = 0; i < fusion->op_count; i++)
        if (expr_find(fusion->ops[i].body, is_far, &far))
            return true;
    return false;
}

int64_t fusion_largest_tensor(const Fusion *fusion)
{
    int64_t largest = 0;
    for (int i = 0; i < fusion->input_count; i++)
        largest = larger(largest, tensor_elements(fusion->inputs[i]));
    for (int i = 0; i < fusion->output_count; i++)
        largest = larger(largest, tensor_elements(fusion->outputs[i]));
    return largest;
}

bool fusion_is_wide(const Fusion *fusion)
{
    if (is_past_32_bits(fusion_largest_tensor(fusion)))
        return true;
    double spatial = 1, reduced = 1;
    for (int a = 0; a < fusion->axis_count; a++)
        *(a < fusion->spatial_count ? &spatial : &reduced) *= (double)fusion->axes[a].extent;
    return spatial > INT32_MAX - OVERSHOOT || reduced > INT32_MAX - OVERSHOOT || has_far_guard(fusion);
}

void emit_affine(StrBuf *out, const Affine *form, const char *const *axis)
{
    bool first = true;
    for (int a = 0; a < MAX_AXES; a++) {
        int64_t coef = form->coef[a];
        if (!coef)
            continue;
        strbuf_puts(out, first ? (coef < 0 ? "-" : "") : coef < 0 ? " - " : " + ");
        strbuf_puts(out, axis[a]);
        if (coef != 1 && coef != -1)
            strbuf_printf(out, " * %" PRId64, coef < 0 ? -coef : coef);
        first = false;
    }
    if (first)
        strbuf_printf(out, "%" PRId64, form->constant);
    else if (form->constant)
        strbuf_printf(out, " %c %" PRId64, form->constant < 0 ? '-' : '+',
                      form->constant < 0 ? -form->constant : form->constant);
}

const char *affine_text(Arena *arena, const Affine *form, const char *const *axis)
{
    StrBuf text = strbuf_new(arena);
    emit_affine(&text, form, axis);
    return text.text;
}

const char *offset_text(Arena *arena, const Access *access, const char *const *axis)
{
    Affine offset = access_offset(access);
    return affine_text(arena, &offset, axis);
}

const char *expr_text(Arena *arena, const Scope *scope, const Expr *expr)
{
    StrBuf text = strbuf_new(arena);
    emit_expr(&text, scope, expr);
    return text.text;
}

void emit_real(StrBuf *out, DType type, double value)
{
    const char *name = value_type(type);
    if (isnan(value))
        strbuf_printf(out, "nan_value<%s>()", name);
    else if (isinf(value))
        strbuf_printf(out, "%sinfinity<%s>()", value < 0 ? "-" : "", name);
    else {
        StrBuf number = strbuf_new(out->arena);
        if (type == DTYPE_F32)
            strbuf_float(&number, (float)value);
        else
            strbuf_double(&number, value);
        bool is_integer_text = !strpbrk(number.text, ".e");
        strbuf_printf(out, signbit(value) ? "(%s%s%s)" : "%s%s%s", number.text, is_integer_text ? ".0" : "",
                      type == DTYPE_F32 ? "f" : "");
    }
}

static void emit_constant(StrBuf *out, const Expr *expr)
{
    int64_t integer = expr->constant.integer;
    switch (expr->type) {
    case DTYPE_B1: strbuf_puts(out, integer ? "true" : "false"); break;
    case DTYPE_I32:
        strbuf_printf(out,
                      integer == INT32_MIN ? "(-2147483647 - 1)"
                      : integer < 0        ? "(%d)"
                                           : "%d",
                      (int)integer);
        break;
    case DTYPE_I64:
        strbuf_printf(out, integer == INT64_MIN ? "(-9223372036854775807ll - 1)" : "(%" PRId64 "ll)",
                      integer);
        break;
    default: emit_real(out, expr->type, expr->constant.real);
    }
}

const char *load_text(Arena *arena, DType type, int position, const char *offset)
{
    if (type == dtype_info[type].compute && type != DTYPE_B1)
        return arena_printf(arena, "t.in%d[%s]", position, offset);
    return arena_printf(arena, "%s(t.in%d, %s)", type == DTYPE_B1 ? "load_bit" : "load", position, offset);
}

const char *element_text(Arena *arena, const Scope *scope, const Fetch *fetch, const Affine *offset)
{
    StrBuf out = strbuf_new(arena);
    bool is_zero = affine_is_constant(offset) && offset->constant == 0;
    for (int i = 0; fetch && i < fetch->count; i++) {
        strbuf_printf(&out, "(Index)(%s)", expr_text(arena, scope, fetch->places[i].value));
        if (fetch->places[i].stride != 1)
            strbuf_printf(&out, " * %" PRId64, fetch->places[i].stride);
        strbuf_puts(&out, i + 1 < fetch->count || !is_zero ? " + " : "");
    }
    if (!fetch || !is_zero)
        emit_affine(&out, offset, scope->axis);
    return out.text;
}

// ---- how closely text binds ----

/* As C has it; what is looser than it has to be is written in ( ). */
typedef enum Binding { ANY, CHOICE, OR, AND, EQUAL, LESS, SUM, PRODUCT, UNARY, PRIMARY } Binding;

static const struct Infix {
    const char *sign;   // NULL: the operation is a function
    Binding binding;
    bool of_reals;      // of integers, which wrap, it is a function
} INFIX[OP_COUNT] = {
    [OP_NEG] = {"-", UNARY, true},     [OP_ADD] = {" + ", SUM, true},    [OP_SUB] = {" - ", SUM, true},
    [OP_MUL] = {" * ", PRODUCT, true}, [OP_LT] = {" < ", LESS, false},   [OP_LE] = {" <= ", LESS, false},
    [OP_GT] = {" > ", LESS, false},    [OP_GE] = {" >= ", LESS, false},  [OP_EQ] = {" == ", EQUAL, false},
    [OP_NE] = {" != ", EQUAL, false},  [OP_NOT] = {"!", UNARY, false},   [OP_AND] = {" && ", AND, false},
    [OP_OR] = {" || ", OR, false},     [OP_SELECT] = {"?", CHOICE, false},
};

static const struct Infix *infix_of(const Expr *expr)
{
    static const struct Infix none = {NULL, PRIMARY, false};
    const struct Infix *infix = &INFIX[expr->apply.op];
    return infix->sign && (!infix->of_reals || dtype_info[expr->type].is_real) ? infix : &none;
}

static Binding affine_binding(const Affine *form)
{
    int terms = form->constant != 0, factors = 0;
    bool negative = form->constant < 0;
    for (int a = 0; a < MAX_AXES; a++) {
        terms += form->coef[a] != 0;
        factors += form->coef[a] != 0 && form->coef[a] != 1;
        negative |= form->coef[a] < 0;
    }
    return terms > 1 ? SUM : factors ? PRODUCT : negative ? UNARY : PRIMARY;
}

/* Of positions in 32 bits, which are of the type of the expression already. */
static bool is_position(const Scope *scope, const Expr *expr) { return expr->type == DTYPE_I32 && !scope->wide; }

/* As it is already, in registers: nothing is converted. */
static bool changes_nothing(const Expr *expr)
{
    return expr->cast.to == dtype_info[expr->cast.to].compute && expr->cast.to == expr->cast.body->type;
}

static bool truncates(const Expr *expr)
{
    return dtype_info[expr->cast.body->type].is_real && !dtype_info[expr->cast.to].is_real;
}

/* Of what is not to be loaded on the spot; NULL: it is. */
static const char *loaded_text(const Scope *scope, const Expr *expr)
{
    bool selects = expr->kind == EXPR_APPLY && expr->apply.op == OP_SELECT;
    bool reads = expr_tensor(expr) || expr->kind == EXPR_GUARD || selects;
    return reads && scope->loaded ? scope->loaded(scope->context, expr) : NULL;
}

static bool is_exact(const Fusion *fusion, const Expr *expr, DType type);

static Binding binding_of(const Scope *scope, const Expr *expr)
{
    if (loaded_text(scope, expr))
        return PRIMARY;
    switch (expr->kind) {
    case EXPR_INDEX: return is_position(scope, expr) ? affine_binding(&expr->index) : UNARY;
    case EXPR_GUARD: return CHOICE;
    case EXPR_CAST:
        return changes_nothing(expr) ? binding_of(scope, expr->cast.body)
               : !truncates(expr) && expr->cast.to == dtype_info[expr->cast.to].compute ? UNARY
                                                                                         : PRIMARY;
    case EXPR_APPLY:
        if (expr->apply.op == OP_SELECT && expr->apply.operands[0] == scope->holds)
            return binding_of(scope, expr->apply.operands[1]);
        return infix_of(expr)->binding;
    default: return PRIMARY;
    }
}

static void emit_bound(StrBuf *out, const Scope *scope, const Expr *expr, Binding least);

/* t.in1[(Index)(op_min(…)) * 4096 + i1]; without a fetch at the offset alone. */
static void emit_load(StrBuf *out, const Scope *scope, const Access *access, const Fetch *fetch)
{
    int position = input_position(scope->fusion, access->tensor);
    assert(position >= 0);
    Affine offset = access_offset(access);
    strbuf_puts(out, load_text(out->arena, access->tensor->dtype, position, element_text(out->arena, scope, fetch, &offset)));
}

bool emit_load_or(StrBuf *out, const Scope *scope, const Guard *guard, const char *condition)
{
    static const char LOAD[] = "load(";
    const Tensor *tensor = expr_tensor(guard->body);
    bool narrow = tensor && dtype_info[tensor->dtype].is_real && dtype_info[tensor->dtype].bits == 16;
    const char *loaded = narrow ? expr_text(out->arena, scope, guard->body) : "";
    if (strncmp(loaded, LOAD, strlen(LOAD)) != 0 || guard->otherwise->kind != EXPR_CONST ||
        !is_exact(scope->fusion, guard->otherwise, tensor->dtype))
        return false;
    uint16_t bits;
    dtype_store(tensor->dtype, &bits, 0, guard->otherwise->constant.real);
    strbuf_printf(out, "load_or(%s, 0x%x, %s", condition, bits, loaded + strlen(LOAD));
    return true;
}

static void emit_guard(StrBuf *out, const Scope *scope, const Guard *guard)
{
    for (int i = 0; i < guard->count; i++) {
        strbuf_puts(out, i ? " && inside(" : "inside(");
        emit_affine(out, &guard->bounds[i].index, scope->axis);
        strbuf_printf(out, ", %" PRId64 ")", guard->bounds[i].size);
    }
    strbuf_puts(out, " ? ");
    emit_bound(out, scope, guard->body, OR);   // guards may be nested deeply: no copies of their texts
    strbuf_puts(out, " : ");
    emit_bound(out, scope, guard->otherwise, CHOICE);
}

static void emit_operand(StrBuf *out, const Scope *scope, const Expr *expr, int i, Binding least)
{
    const Expr *operand = expr->apply.operands[i];
    const Expr *tanh_of = expr->apply.op == OP_MUL ? fused_tanh(scope->fusion, operand) : NULL;
    if (!tanh_of) {
        emit_bound(out, scope, operand, least);
        return;
    }
    strbuf_puts(out, "one_plus_tanh(");
    emit_expr(out, scope, tanh_of);
    strbuf_puts(out, ")");
}

/* `a + b`, `-a`, `a ? b : c`. Of sums and products the order is the expression's; compilers warn of `a && b || c`. */
static void emit_infix(StrBuf *out, const Scope *scope, const Expr *expr, const struct Infix *infix)
{
    Binding own = infix->binding, least = own == OR ? EQUAL : own == LESS || own == EQUAL ? SUM : own;
    if (own == UNARY) {
        strbuf_puts(out, infix->sign);
        emit_operand(out, scope, expr, 0, PRIMARY);
    } else if (own == CHOICE) {
        emit_operand(out, scope, expr, 0, OR);
        strbuf_puts(out, " ? ");
        emit_operand(out, scope, expr, 1, OR);
        strbuf_puts(out, " : ");
        emit_operand(out, scope, expr, 2, CHOICE);
    } else {
        emit_operand(out, scope, expr, 0, least);
        strbuf_puts(out, infix->sign);
        emit_operand(out, scope, expr, 1, least + (own == SUM || own == PRODUCT));
    }
}

/* Expands %0 %1 %2 of the op's device code. */
static void emit_apply(StrBuf *out, const Scope *scope, const Expr *expr)
{
    int corrections = expr_corrections(expr);
    if (corrections) {
        strbuf_puts(out, corrections == 1 ? "divide_by(" : "divide_by_any(");
        emit_expr(out, scope, expr->apply.operands[0]);
        strbuf_puts(out, ", ");
        emit_constant(out, expr->apply.operands[1]);
        strbuf_puts(out, ")");
        return;
    }
    if (expr->apply.op == OP_SELECT && expr->apply.operands[0] == scope->holds) {
        emit_expr(out, scope, expr->apply.operands[1]);
        return;
    }
    const struct Infix *infix = infix_of(expr);
    if (infix->sign) {
        emit_infix(out, scope, expr, infix);
        return;
    }
    const char *text = op_info[expr->apply.op].cuda;
    if (expr->apply.op == OP_EXP && scope->exponential)
        text = arena_printf(out->arena, "%s(%%0)", scope->exponential);
    for (const char *c = text; *c; c++)
        if (*c == '%' && c[1] >= '0' && c[1] <= '2')
            emit_operand(out, scope, expr, *++c - '0', ANY);
        else
            strbuf_putc(out, *c);
}

static void emit_cast(StrBuf *out, const Scope *scope, const Expr *expr)
{
    DType to = expr->cast.to;
    const char *name = dtype_info[to].cuda;
    if (changes_nothing(expr)) {
        emit_bound(out, scope, expr->cast.body, ANY);
    } else if (!truncates(expr) && to == dtype_info[to].compute) {
        strbuf_printf(out, "(%s)", name);
        emit_bound(out, scope, expr->cast.body, PRIMARY);
    } else {
        strbuf_printf(out, truncates(expr) ? "cast_int<%s>(" : "round_to<%s>(", name);   // truncates and saturates
        emit_bound(out, scope, expr->cast.body, ANY);
        strbuf_puts(out, ")");
    }
}

static void emit_value(StrBuf *out, const Scope *scope, int op)
{
    bool of_points = scope->fusion->ops[op].spatial & scope->suffix_axes;
    const char *suffix = of_points ? scope->suffix : scope->other_suffix;
    strbuf_printf(out, "%sv%d%s", of_points && scope->prefix ? scope->prefix : "", op, suffix ? suffix : "");
}

void emit_expr(StrBuf *out, const Scope *scope, const Expr *expr)
{
    const char *loaded = loaded_text(scope, expr);
    if (loaded) {
        strbuf_puts(out, loaded);
        return;
    }
    switch (expr->kind) {
    case EXPR_CONST: emit_constant(out, expr); break;
    case EXPR_INDEX:
        if (is_position(scope, expr))
            emit_affine(out, &expr->index, scope->axis);
        else
            strbuf_printf(out, "(%s)(%s)", value_type(expr->type), affine_text(out->arena, &expr->index, scope->axis));
        break;
    case EXPR_ACCESS: emit_load(out, scope, &expr->access, NULL); break;
    case EXPR_FETCH: emit_load(out, scope, &expr->fetch.access, &expr->fetch); break;
    case EXPR_GUARD: emit_guard(out, scope, &expr->guard); break;
    case EXPR_APPLY: emit_apply(out, scope, expr); break;
    case EXPR_CAST: emit_cast(out, scope, expr); break;
    case EXPR_VALUE: emit_value(out, scope, expr->value); break;
    }
}

static void emit_bound(StrBuf *out, const Scope *scope, const Expr *expr, Binding least)
{
    bool opens = binding_of(scope, expr) < least;
    strbuf_puts(out, opens ? "(" : "");
    emit_expr(out, scope, expr);
    strbuf_puts(out, opens ? ")" : "");
}

void emit_operand_of(StrBuf *out, const Scope *scope, const Expr *expr) { emit_bound(out, scope, expr, PRIMARY); }

/* Of the type as it is: an element of such a tensor, or one of several that are. */
static bool is_exact(const Fusion *fusion, const Expr *expr, DType type)
{
    switch (expr->kind) {
    case EXPR_ACCESS:
    case EXPR_FETCH: return expr_tensor(expr)->dtype == type;
    case EXPR_VALUE: return fusion->ops[expr->value].out->dtype == type;
    case EXPR_CAST: return expr->cast.to == type;
    case EXPR_GUARD:
        return is_exact(fusion, expr->guard.body, type) && is_exact(fusion, expr->guard.otherwise, type);
    case EXPR_CONST: {
        double value = expr->constant.real;
        return dtype_info[type].is_real && (value != value || dtype_round(type, value) == value);
    }
    case EXPR_APPLY: break;
    case EXPR_INDEX: return false;
    }
    Expr *const *operands = expr->apply.operands;
    switch (expr->apply.op) {
    case OP_SELECT: return is_exact(fusion, operands[1], type) && is_exact(fusion, operands[2], type);
    case OP_MAX:
    case OP_MIN: return is_exact(fusion, operands[0], type) && is_exact(fusion, operands[1], type);
    case OP_NEG:
    case OP_ABS: return dtype_info[type].is_real && is_exact(fusion, operands[0], type);
    case OP_RELU: return is_exact(fusion, operands[0], type);
    default: return false;
    }
}

static bool is_already_rounded(const Fusion *fusion, const FusedOp *op)
{
    DType type = op->out->dtype;
    return type == dtype_info[type].compute || op->out->exact ||
           (op->reduce == REDUCE_NONE && is_exact(fusion, op->body, type));
}

bool is_rounded_by_storing(const Fusion *fusion, int op)
{
    for (int i = op + 1; i < fusion->op_count; i++)
        if (expr_reads_value(fusion->ops[i].body, op))
            return false;
    return fusion->ops[op].body->type == dtype_info[fusion->ops[op].out->dtype].compute;
}

/* What a definition's body becomes when it is stored: its type's compute type, rounded. */
const char *rounded_text(Arena *arena, const Fusion *fusion, int index, const char *text)
{
    const FusedOp *op = &fusion->ops[index];
    DType to = op->out->dtype, from = op->body->type;
    if (!is_already_rounded(fusion, op) && !is_rounded_by_storing(fusion, index))
        return arena_printf(arena, "round_to<%s>(%s)", dtype_info[to].cuda, text);   // once: a double not by way of float
    return from == dtype_info[to].compute ? text : arena_printf(arena, "convert<%s>(%s)", value_type(to), text);
}

void emit_pointwise_op(StrBuf *out, const char *indent, const Scope *scope, int index)
{
    emit_reduced_op(out, indent, scope, index, expr_text(out->arena, scope, scope->fusion->ops[index].body));
}

void emit_pointwise_ops(StrBuf *out, const char *indent, const Scope *scope, int first)
{
    for (int i = first; i < scope->fusion->op_count; i++)
        emit_pointwise_op(out, indent, scope, i);
}

void emit_reduced_op(StrBuf *out, const char *indent, const Scope *scope, int index, const char *total)
{
    const FusedOp *op = &scope->fusion->ops[index];
    strbuf_printf(out, "%sconst %s v%d = %s;\n", indent, value_type(op->out->dtype), index,
                  rounded_text(out->arena, scope->fusion, index, total));
}

void emit_epilogue(StrBuf *out, const char *indent, const Scope *scope, const char *total)
{
    emit_reduced_op(out, indent, scope, 0, total);
    emit_pointwise_ops(out, indent, scope, 1);
}

void emit_stores(StrBuf *out, const char *indent, const Scope *scope)
{
    for (int i = 0; i < scope->fusion->op_count; i++) {
        const FusedOp *op = &scope->fusion->ops[i];
        if (!op->stored || op->out->dtype == DTYPE_B1)
            continue;
        bool narrows = op->out->dtype != dtype_info[op->out->dtype].compute;
        strbuf_printf(out, narrows ? "%sstore(t.out%d, %s, v%d);\n" : "%st.out%d[%s] = v%d;\n", indent,
                      output_position(scope->fusion, op->out), offset_text(out->arena, &op->store, scope->axis), i);
    }
}

void emit_output_vectors(StrBuf *out, const Fusion *fusion, const char *size)
{
    for (int i = 0; i < fusion->output_count; i++)
        strbuf_printf(out, "    %s y%d[%s];\n", value_type(fusion->outputs[i]->dtype), i, size);
}

void emit_vector_elements(StrBuf *out, const Fusion *fusion)
{
    for (int i = 0; i < fusion->op_count; i++)
        if (fusion->ops[i].stored)
            strbuf_printf(out, "        y%d[e] = v%d;\n", output_position(fusion, fusion->ops[i].out), i);
}

void emit_vector_stores(StrBuf *out, const char *indent, const Scope *scope)
{
    for (int i = 0; i < scope->fusion->op_count; i++) {
        const FusedOp *op = &scope->fusion->ops[i];
        if (!op->stored)
            continue;
        int position = output_position(scope->fusion, op->out);
        strbuf_printf(out, "%sstore_vector<QN>(t.out%d, %s, y%d);\n", indent, position,
                      offset_text(out->arena, &op->store, scope->axis), position);
    }
}

int count_bit_outputs(const Fusion *fusion)
{
    int count = 0;
    for (int i = 0; i < fusion->output_count; i++)
        count += fusion->outputs[i]->dtype == DTYPE_B1;
    return count;
}

static void emit_pointer(StrBuf *out, const Tensor *tensor, bool input, int position, const char *qualifier)
{
    strbuf_printf(out, "%s%s *%s%s%d", input ? "const " : "", memory_type(tensor->dtype), qualifier,
                  input ? "in" : "out", position);
}

/* The shape is the user's; what the kernel sees may be a view of it. */
static void emit_member(StrBuf *out, const Program *program, const Tensor *seen, bool input, int position)
{
    const Tensor *tensor = program->tensors[seen->id];
    strbuf_puts(out, "    ");
    emit_pointer(out, seen, input, position, "");
    strbuf_puts(out, ";   // [");
    for (int d = 0; d < tensor->rank; d++)
        strbuf_printf(out, "%s%" PRId64, d ? ", " : "", tensor->shape[d]);
    strbuf_printf(out, "]%s\n", tensor->dtype == DTYPE_B1 ? ", one bit an element" : "");
}

void emit_tensors(StrBuf *out, const Program *program, const Fusion *fusion, bool wide, uint64_t without)
{
    strbuf_printf(out, "using Index = %s;\n", wide ? "long long" : "int");
    strbuf_puts(out, "struct Tensors {\n");
    for (int i = 0; i < fusion->input_count; i++)
        if (i >= 64 || !(without >> i & 1))
            emit_member(out, program, fusion->inputs[i], true, i);
    for (int i = 0; i < fusion->output_count; i++)
        emit_member(out, program, fusion->outputs[i], false, i);
    strbuf_puts(out, "};\n");
}

const char *emit_maps(Arena *arena, int count)
{
    StrBuf out = strbuf_new(arena);
    for (int i = 0; i < count; i++)
        strbuf_printf(&out, ", const __grid_constant__ TensorMap map_%c", 'a' + i);
    return out.text;
}

const char *emit_map_list(Arena *arena, int count)
{
    StrBuf out = strbuf_new(arena);
    for (int i = 0; i < count; i++)
        strbuf_printf(&out, "%s&map_%c", i ? ", " : "{", 'a' + i);
    strbuf_puts(&out, "}");
    return out.text;
}

const char *emit_signature(Arena *arena, const Fusion *fusion, const Launch *launch, const int *order)
{
    StrBuf out = strbuf_new(arena);
    for (int i = 0; i < fusion->input_count + fusion->output_count; i++) {
        bool input = i < fusion->input_count;
        int position = input ? i : i - fusion->input_count, arg = input && order ? order[i] : i;
        strbuf_puts(&out, i ? ", " : "");
        emit_pointer(&out, input ? fusion->inputs[arg] : fusion->outputs[position], input, position,
                     launch_in_place(launch, arg) < 0 ? "__restrict__ " : "");
    }
    return out.text;
}

const char *emit_arguments(Arena *arena, const Fusion *fusion, uint64_t without)
{
    StrBuf out = strbuf_new(arena);
    for (int i = 0; i < fusion->input_count; i++)
        if (i >= 64 || !(without >> i & 1))
            strbuf_printf(&out, "in%d, ", i);
    for (int i = 0; i < fusion->output_count; i++)
        strbuf_printf(&out, "%sout%d", i ? ", " : "", i);
    return arena_printf(arena, "{%s}", out.text);
}
