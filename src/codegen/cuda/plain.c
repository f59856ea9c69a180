#include "codegen/cuda/plain.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "codegen/cuda/expr.h"
#include "ir/prepared.h"

/* Numbers for names: tensor 3 of the program is `tensor3`, where it lies `memory3`; the second index name is
   `index1`. */
typedef struct Plain {
    StrBuf *out;
    const Program *program;
    const TensorOp *op;
    const char *indices[MAX_AXES];   // of the definition
    const char **index_names;        // all that there are
    int index_count;
    double *tolerance;               // of each tensor's values, with what they are made of; 0: they are exact
} Plain;

static void write_expr(Plain *plain, const Expr *expr);

// ---- spelling ----

/* %0 %1 %2 are the operands. */
static const char *spelling(Op op, bool real)
{
    switch (op) {
    case OP_NEG: return "(-%0)";
    case OP_ADD: return "(%0 + %1)";
    case OP_SUB: return "(%0 - %1)";
    case OP_MUL: return "(%0 * %1)";
    case OP_DIV: return real ? "(%0 / %1)" : "quotient(%0, %1)";
    case OP_MOD: return "remainder(%0, %1)";
    case OP_MAX: return "larger(%0, %1)";
    case OP_MIN: return "smaller(%0, %1)";
    case OP_ABS: return real ? "std::fabs(%0)" : "std::llabs(%0)";
    case OP_SQ: return "square(%0)";
    case OP_RELU: return real ? "larger(%0, 0.0)" : "larger(%0, 0ll)";
    case OP_FLOOR: return real ? "std::floor(%0)" : "%0";
    case OP_CEIL: return real ? "std::ceil(%0)" : "%0";
    case OP_ROUND: return real ? "std::rint(%0)" : "%0";
    case OP_EXP: return "std::exp(%0)";
    case OP_LOG: return "std::log(%0)";
    case OP_SQRT: return "std::sqrt(%0)";
    case OP_RSQRT: return "(1 / std::sqrt(%0))";
    case OP_TANH: return "std::tanh(%0)";
    case OP_ERF: return "std::erf(%0)";
    case OP_SIGMOID: return "(1 / (1 + std::exp(-%0)))";
    case OP_SIN: return "std::sin(%0)";
    case OP_COS: return "std::cos(%0)";
    case OP_ATAN: return "std::atan(%0)";
    case OP_ASIN: return "std::asin(%0)";
    case OP_ACOS: return "std::acos(%0)";
    case OP_POW: return "std::pow(%0, %1)";
    default: return op_info[op].cuda;   // comparisons, conditions and choices
    }
}

/* A real's rounding to what is stored, or a whole number's range. */
static const char *conversion(DType to)
{
    switch (to) {
    case DTYPE_F32: return "(float)";
    case DTYPE_F16: return "rounded<f16>";
    case DTYPE_BF16: return "rounded<bf16>";
    case DTYPE_I32: return "(int)";
    case DTYPE_I8: return "(signed char)";
    case DTYPE_U8: return "(unsigned char)";
    case DTYPE_B1: return "(bool)";
    default: return "";
    }
}

static const char *type_of(DType type) { return dtype_info[type].is_real ? "double" : "long long"; }

static void write_constant(StrBuf *out, const Expr *expr)
{
    double real = expr->constant.real;
    if (!dtype_info[expr->type].is_real)
        strbuf_printf(out, "%" PRId64 "ll", expr->constant.integer);
    else if (isnan(real))
        strbuf_puts(out, "(double)NAN");
    else if (isinf(real))
        strbuf_puts(out, real < 0 ? "(double)-INFINITY" : "(double)INFINITY");
    else
        strbuf_printf(out, "(double)%.17g", real);
}

// ---- expressions ----

/* `element / 12, element % 12`: the indices of a flat position. */
static void write_indices_of(StrBuf *out, const Tensor *tensor)
{
    int64_t below = tensor_elements(tensor);
    for (int d = 0; d < tensor->rank; d++) {
        below /= tensor->shape[d];
        strbuf_puts(out, d ? ", element" : "element");
        if (below > 1)
            strbuf_printf(out, " / %" PRId64, below);
        if (d > 0)
            strbuf_printf(out, " %% %" PRId64, tensor->shape[d]);
    }
}

static void write_flat_offset(Plain *plain, const Access *access, const Fetch *fetch)
{
    Affine offset = access_offset(access);
    emit_affine(plain->out, &offset, plain->indices);
    for (int i = 0; fetch && i < fetch->count; i++) {
        strbuf_printf(plain->out, " + %" PRId64 " * ", fetch->places[i].stride);
        write_expr(plain, fetch->places[i].value);
    }
}

/* An input is a tensor in memory; all others are functions of their indices. */
static void write_access(Plain *plain, const Access *access, const Fetch *fetch)
{
    StrBuf *out = plain->out;
    bool whole = !dtype_info[access->tensor->dtype].is_real;
    bool is_input = access->tensor->role == ROLE_INPUT, is_flat = fetch || !access_is_own(access);
    strbuf_printf(out, is_flat && !is_input ? "%s[&](long long element) { return tensor%d(" : "%stensor%d(",
                  whole ? "(long long)" : "", access->tensor->id);
    if (is_flat && !is_input) {
        write_indices_of(out, access->tensor);
        strbuf_puts(out, "); }(");
    }
    if (is_flat || is_input)
        write_flat_offset(plain, access, fetch);
    for (int d = 0; !is_flat && !is_input && d < access->rank; d++) {
        strbuf_puts(out, d ? ", " : "");
        emit_affine(out, &access->dims[d].index, plain->indices);
    }
    strbuf_puts(out, ")");
}

static void write_guard(Plain *plain, const Guard *guard)
{
    for (int i = 0; i < guard->count; i++) {
        strbuf_puts(plain->out, i ? " && inside(" : "(inside(");
        emit_affine(plain->out, &guard->bounds[i].index, plain->indices);
        strbuf_printf(plain->out, ", %" PRId64 ")", guard->bounds[i].size);
    }
    strbuf_puts(plain->out, " ? ");
    write_expr(plain, guard->body);
    strbuf_puts(plain->out, " : ");
    write_expr(plain, guard->otherwise);
    strbuf_puts(plain->out, ")");
}

static void write_apply(Plain *plain, const Expr *expr)
{
    bool real = dtype_info[expr->type].is_real, wraps = expr->type == DTYPE_I32;
    strbuf_puts(plain->out, wraps ? "(long long)(int)(" : "");
    for (const char *c = spelling(expr->apply.op, real); *c; c++)
        if (*c == '%')
            write_expr(plain, expr->apply.operands[*++c - '0']);
        else
            strbuf_putc(plain->out, *c);
    strbuf_puts(plain->out, wraps ? ")" : "");
}

static void write_cast(Plain *plain, const Expr *expr)
{
    static const char *const ranges[DTYPE_COUNT] = {[DTYPE_I32] = "-2147483648.0, 2147483647.0",
                                                    [DTYPE_I8] = "-128.0, 127.0",
                                                    [DTYPE_U8] = "0.0, 255.0",
                                                    [DTYPE_I64] =
                                                        "-9223372036854775808.0, 9223372036854775807.0"};
    DType to = expr->cast.to, from = expr->cast.body->type;
    bool cuts = dtype_info[from].is_real && ranges[to];
    strbuf_printf(plain->out, "(%s)%s(", type_of(to), cuts ? "whole" : conversion(to));
    write_expr(plain, expr->cast.body);
    strbuf_printf(plain->out, cuts ? ", %s)" : ")", ranges[to]);
}

static void write_expr(Plain *plain, const Expr *expr)
{
    switch (expr->kind) {
    case EXPR_CONST: write_constant(plain->out, expr); break;
    case EXPR_INDEX:
        strbuf_printf(plain->out, "(%s)(%s)", type_of(expr->type),
                      affine_text(plain->out->arena, &expr->index, plain->indices));
        break;
    case EXPR_ACCESS: write_access(plain, &expr->access, NULL); break;
    case EXPR_FETCH: write_access(plain, &expr->fetch.access, &expr->fetch); break;
    case EXPR_GUARD: write_guard(plain, &expr->guard); break;
    case EXPR_APPLY: write_apply(plain, expr); break;
    case EXPR_CAST: write_cast(plain, expr); break;
    case EXPR_VALUE: assert(!"only fusions have values");
    }
}

// ---- definitions ----

static const char *index_number(Plain *plain, const char *name)
{
    int i = 0;
    while (i < plain->index_count && strcmp(plain->index_names[i], name) != 0)
        i++;
    if (i == plain->index_count)
        plain->index_names[plain->index_count++] = name;
    return arena_printf(plain->out->arena, "index%d", i);
}

/* A call of templates/main.cuh for each index that is reduced over: `sum_of<double>(768, [&](long long k) { return …; })`. */
static void write_reduction(Plain *plain)
{
    static const char *const reductions[] = {[REDUCE_SUM] = "sum_of",
                                             [REDUCE_PROD] = "product_of",
                                             [REDUCE_MAX] = "largest_of",
                                             [REDUCE_MIN] = "smallest_of"};
    const TensorOp *op = plain->op;
    StrBuf *out = plain->out;
    for (int a = op->spatial_count; a < op->axis_count; a++)
        strbuf_printf(out, "%s<%s>(%" PRId64 ", [&](long long %s) { return ", reductions[op->reduce],
                      type_of(op->body->type), op->axes[a].extent, plain->indices[a]);
    write_expr(plain, op->body);
    for (int a = op->spatial_count; a < op->axis_count; a++)
        strbuf_puts(out, "; })");
}

/* Of a real's share of the largest value: half a dozen of its type's last places; for f32 what sums lose,
   too. */
static double tolerance(DType type)
{
    switch (type) {
    case DTYPE_F64: return 1e-9;
    case DTYPE_F32: return 1e-4;
    case DTYPE_F16: return 3e-3;
    case DTYPE_BF16: return 2e-2;
    default: return 0;
    }
}

static void see_tolerance(Expr *expr, void *context)
{
    const Plain *plain = context;
    const Access *access = expr->kind == EXPR_ACCESS ? &expr->access : expr->kind == EXPR_FETCH ? &expr->fetch.access : NULL;
    double *own = &plain->tolerance[plain->op->out->id];
    if (access && plain->tolerance[access->tensor->id] > *own)
        *own = plain->tolerance[access->tensor->id];
}

/* A kernel may round what it reads on the way at another scale, or not at all. */
static void find_tolerance(Plain *plain)
{
    const Tensor *out = plain->op->out;
    plain->tolerance[out->id] = out->exact ? 0 : tolerance(out->dtype);
    if (tolerance(out->dtype) > 0)
        expr_visit(plain->op->body, see_tolerance, plain);
}

static void write_definition(Plain *plain, const TensorOp *op)
{
    StrBuf *out = plain->out;
    plain->op = op;
    find_tolerance(plain);
    for (int a = 0; a < op->axis_count; a++)
        plain->indices[a] = index_number(plain, op->axes[a].name);
    strbuf_printf(out, "    auto tensor%d = keep([&](", op->out->id);
    for (int a = 0; a < op->spatial_count; a++)
        strbuf_printf(out, "%slong long %s", a ? ", " : "", plain->indices[a]);
    strbuf_printf(out, ") { return %s(", conversion(op->out->dtype));
    if (op->reduce != REDUCE_NONE)
        write_reduction(plain);
    else
        write_expr(plain, op->body);
    strbuf_puts(out, "); });\n");
}

// ---- the program ----

/* `Tensor<f16> x(50331648, 50331648, true);`; of a weight, where it lies in place of `true`. */
static void write_memory(StrBuf *out, const Tensor *tensor, const char *name, const char *from)
{
    static const char *const types[DTYPE_COUNT] = {
        [DTYPE_F64] = "double",       [DTYPE_F32] = "float", [DTYPE_F16] = "f16",
        [DTYPE_BF16] = "bf16",        [DTYPE_I32] = "int",   [DTYPE_I8] = "signed char",
        [DTYPE_U8] = "unsigned char", [DTYPE_B1] = "b1",     [DTYPE_I64] = "long long"};
    int64_t count = tensor_elements(tensor);
    int64_t words = tensor->dtype == DTYPE_B1 ? tensor_bytes(tensor) / 4 : count;
    strbuf_printf(out, "    %s<%s> %s%d(%" PRId64 ", %" PRId64 ", %s);\n", tensor->is_weight ? "Weight" : "Tensor",
                  types[tensor->dtype], name, tensor->id, count, words, from);
}

static void write_check(StrBuf *out, const Plain *plain, const Tensor *tensor)
{
    double own = tolerance(tensor->dtype), found = plain->tolerance[tensor->id];
    strbuf_printf(out,
                  "    right &= check(\"%s\", memory%d, %" PRId64 ", %g, [&](long long%s) { return tensor%d(",
                  tensor_shown(tensor)->name, tensor->id, tensor_elements(tensor), own > found ? own : found,
                  tensor->rank ? " element" : "", tensor->id);
    write_indices_of(out, tensor);
    strbuf_puts(out, "); });\n");
}

/* With numbers; a weight's lie in the file, too. */
static const char *filled_from(Arena *arena, const Program *program, int input)
{
    bool is_weight = program->inputs[input]->is_weight;
    return is_weight ? arena_printf(arena, "weights + %" PRId64, weight_offset(program, input)) : "true";
}

/* Memory of all weights as they lie in a file. */
static void write_weights(StrBuf *out, const Kernel *kernel)
{
    strbuf_printf(out, "    char *weights = nullptr;\n    cudaMalloc(&weights, %s_weights());\n", kernel->name);
}

/* What is made of them. */
static void write_prepare(StrBuf *out, const Kernel *kernel)
{
    strbuf_printf(out,
                  "    void *prepared = nullptr;\n    cudaMalloc(&prepared, %s_prepared() + 1);\n"
                  "    if (!ran(%s_prepare(weights, prepared, workspace, nullptr)))\n        return 1;\n",
                  kernel->name, kernel->name);
}

static void write_run(StrBuf *out, const Program *program, const Kernel *kernel)
{
    strbuf_printf(out,
                  "    void *workspace = nullptr;\n    cudaMalloc(&workspace, %s_workspace() + 1);\n", kernel->name);
    if (kernel->prepared_id)
        write_prepare(out, kernel);
    strbuf_printf(out, "    const auto run = [&] { return %s_launch(", kernel->name);
    for (int i = 0; i < program->input_count; i++)
        if (!program->inputs[i]->is_weight)
            strbuf_printf(out, "tensor%d.there, ", program->inputs[i]->id);
    if (kernel->prepared_id)
        strbuf_puts(out, "prepared, ");
    for (int i = 0; i < program->output_count; i++)
        strbuf_printf(out, "memory%d.there, ", program->outputs[i]->id);
    strbuf_puts(out, "workspace, nullptr); };\n"
                     "    if (!ran(run()))\n        return 1;\n    bool right = true;\n");
}

static void write_report(StrBuf *out, const Program *program, const Kernel *kernel)
{
    double bytes = 0, work = 0;
    for (int i = 0; i < program->input_count; i++)
        bytes += (double)tensor_bytes(program->inputs[i]);
    for (int i = 0; i < program->output_count; i++)
        bytes += (double)tensor_bytes(program->outputs[i]);
    for (int k = kernel->prepare_count; k < kernel->launch_count; k++)
        work += kernel->launches[k].work;
    strbuf_printf(out, "    time_it(\"%s\", run, %.0f, %.0f);\n    return right ? 0 : 1;\n}\n", kernel->name,
                  bytes, work);
}

static void give_names(Names *names, const Plain *plain, const Program *program)
{
    Arena *arena = plain->out->arena;
    for (int i = 0; i < program->tensor_count; i++)
        names_give(names, arena_printf(arena, "tensor%d", program->tensors[i]->id),
                   program->tensors[i]->name);
    for (int i = 0; i < program->output_count; i++)
        names_give(names, arena_printf(arena, "memory%d", program->outputs[i]->id),
                   arena_printf(arena, "%s_found", tensor_shown(program->outputs[i])->name));
    for (int i = 0; i < plain->index_count; i++)
        names_give(names, arena_printf(arena, "index%d", i), plain->index_names[i]);
}

const char *plain_main(Arena *arena, const Program *program, const Kernel *kernel, Names *names)
{
    StrBuf out = strbuf_new(arena);
    Plain plain = {.out = &out, .program = program};
    plain.index_names = NEW_ARRAY(arena, const char *, program->op_count *MAX_AXES + 1);
    plain.tolerance = NEW_ARRAY(arena, double, program->tensor_count + 1);
    strbuf_puts(&out, "int main()\n{\n    using namespace plain;\n");
    if (kernel->prepared_id)
        write_weights(&out, kernel);
    for (int i = 0; i < program->input_count; i++)
        write_memory(&out, program->inputs[i], "tensor", filled_from(arena, program, i));
    for (int i = 0; i < program->output_count; i++)
        write_memory(&out, program->outputs[i], "memory", "false");
    for (int i = 0; i < program->op_count; i++)
        write_definition(&plain, program->ops[i]);
    write_run(&out, program, kernel);
    for (int i = 0; i < program->output_count; i++)
        write_check(&out, &plain, program->outputs[i]);
    write_report(&out, program, kernel);
    names_avoid(names, out.text);
    give_names(names, &plain, program);
    return names_put(names, out.text);
}
