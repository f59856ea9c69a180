// Programs of the grammar at large: random expressions over random accesses, of all types and ranks.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "differential/generate_parts.h"

enum {
    RANK = 8,
    SCOPE = 12,                // index variables in scope at once
    TENSORS = 48,
    PARAMS = 4,
    TENSOR_ELEMENTS = 12000,
    DEFINITION_POINTS = 9000,  // of all axes in scope together
    INPUTS = 10,
    VIEWS = 25,                // of a hundred definitions a view stands before
    COMPUTED_PLACES = 8,       // of a hundred indices
    NODES = 24                 // of one definition: then only leaves follow
};

/* Real, integer or one-bit: what a value may become silently. */
typedef enum Class { REAL, INTEGER, BIT } Class;

static const char *const types[3][4] = {{"f32", "f16", "bf16", "f64"}, {"i32", "i8", "u8", "i64"}, {"b1", "b1", "b1", "b1"}};

typedef struct Known {   // a tensor that may be read
    char name[8];
    Class class;
    int rank;
    int64_t shape[RANK];
} Known;

typedef struct Variable {
    char name[8];
    int64_t extent;
    bool alone;      // it stands alone in some dimension
    bool disagrees;  // in one of another size: its extent must be stated
} Variable;

typedef struct Generator {
    Arena *arena;
    Random random;
    StrBuf inputs;           // statements; they stand before all definitions
    Known tensors[TENSORS];
    int tensor_count, input_count;
    Variable scope[SCOPE];
    int scope_count, variables;
    int64_t params[PARAMS];  // P0, P1, …: small integers
    int nodes;               // of the current definition
    int nesting;             // of reductions
} Generator;

// ---- choices ----

static int64_t below(Generator *g, int64_t count) { return random_below(&g->random, count); }

static bool chance(Generator *g, int percent) { return random_chance(&g->random, percent); }

static int64_t extent_up_to(Generator *g, int64_t most)
{
    static const int64_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 11, 13, 16, 17, 23, 31, 32, 33, 37, 40};
    int64_t size = PICK(&g->random, sizes);
    return size <= most ? size : 1 + below(g, most);
}

// ---- index variables ----

static int64_t points_in_scope(const Generator *g)
{
    int64_t points = 1;
    for (int a = 0; a < g->scope_count; a++)
        points *= g->scope[a].extent;
    return points;
}

static int open_variables(Generator *g, int count, int64_t points)
{
    int first = g->scope_count;
    for (int i = 0; i < count && g->scope_count < SCOPE; i++) {
        int64_t most = points / points_in_scope(g);
        most = count - i > 4 ? (most < 3 ? most : 3) : most < 40 ? most : 40;
        Variable *v = &g->scope[g->scope_count];
        *v = (Variable){.extent = extent_up_to(g, most < 1 ? 1 : most)};
        snprintf(v->name, sizeof v->name, "k%d", g->variables++);
        g->scope_count++;
    }
    return g->scope_count - first;
}

static void write_size(Generator *g, StrBuf *out, int64_t size)
{
    int p = (int)below(g, PARAMS);
    if (chance(g, 80))
        strbuf_printf(out, "%" PRId64, size);
    else if (size % g->params[p] == 0)
        strbuf_printf(out, "%" PRId64 " * P%d", size / g->params[p], p);
    else
        strbuf_printf(out, "floor(%" PRId64 " / P%d) + %" PRId64, size, p, size - size / g->params[p]);
}

/* `k0, k1:7`, after the body that reads them is known; closes their scope. */
static void write_variables(Generator *g, StrBuf *out, int count)
{
    int first = g->scope_count - count;
    for (int i = first; i < g->scope_count; i++) {
        const Variable *v = &g->scope[i];
        strbuf_printf(out, "%s%s", i > first ? ", " : "", v->name);
        if (v->alone && !v->disagrees && chance(g, 60))
            continue;
        strbuf_puts(out, ":");
        write_size(g, out, v->extent);
    }
    g->scope_count = first;
}

// ---- affine indices ----

typedef struct Index {   // a * variable + b * other + constant, in [low, high]
    int variable, other;   // -1: none
    int64_t a, b, constant;
    int64_t low, high;
} Index;

static void index_range(const Generator *g, Index *index)
{
    int64_t terms[2] = {index->variable < 0 ? 0 : index->a * (g->scope[index->variable].extent - 1),
                        index->other < 0 ? 0 : index->b * (g->scope[index->other].extent - 1)};
    index->low = index->high = index->constant;
    for (int i = 0; i < 2; i++) {
        index->low += terms[i] < 0 ? terms[i] : 0;
        index->high += terms[i] > 0 ? terms[i] : 0;
    }
}

static void write_term(Generator *g, StrBuf *out, int64_t coefficient, int variable)
{
    const char *name = g->scope[variable].name;
    for (int p = 0; p < PARAMS; p++)
        if (g->params[p] == coefficient && chance(g, 30)) {
            if (chance(g, 50))
                strbuf_printf(out, "P%d*%s", p, name);
            else
                strbuf_printf(out, "%s*P%d", name, p);
            return;
        }
    if (coefficient == 1)
        strbuf_puts(out, name);
    else if (coefficient == -1)
        strbuf_printf(out, "-%s", name);
    else
        strbuf_printf(out, "%" PRId64 "*%s", coefficient, name);
}

static void write_index(Generator *g, StrBuf *out, const Index *index, int64_t size)
{
    Variable *v = index->variable < 0 ? NULL : &g->scope[index->variable];
    if (v && index->other < 0 && index->a == 1 && index->constant == 0) {
        v->alone = true;
        v->disagrees |= v->extent != size;
    }
    if (v)
        write_term(g, out, index->a, index->variable);
    if (index->other >= 0) {
        strbuf_puts(out, " + ");
        write_term(g, out, index->b, index->other);
    }
    if (!v)
        strbuf_printf(out, "%" PRId64, index->constant);
    else if (index->constant)
        strbuf_printf(out, " %c %" PRId64, index->constant < 0 ? '-' : '+', index->constant < 0 ? -index->constant : index->constant);
}

/* For a dimension that is still to be made: `variable` decides, the rest is chosen. It starts at 0. */
static Index free_index(Generator *g, int variable)
{
    static const int64_t strides[] = {1, 1, 2, 3, -1, -2};
    Index index = {.variable = variable, .other = -1, .a = 1};
    if (variable >= 0 && chance(g, 25))
        index.a = PICK(&g->random, strides);
    if (variable >= 0 && g->scope_count > 1 && chance(g, 20)) {
        index.other = (int)below(g, g->scope_count);
        index.b = index.other == variable ? 0 : PICK(&g->random, strides);
        if (index.other == variable)
            index.other = -1;
    }
    index_range(g, &index);
    index.constant = -index.low;
    index_range(g, &index);
    return index;
}

/* For a dimension of a known size; a constant if no variable fits. */
static Index fitting_index(Generator *g, int64_t size, bool padded)
{
    Index index = {.variable = -1, .other = -1, .a = 1, .constant = below(g, size)};
    int start = g->scope_count ? (int)below(g, g->scope_count) : 0;
    for (int exact = 1; exact >= 0 && index.variable < 0; exact--)
        for (int i = 0; i < g->scope_count && index.variable < 0; i++) {
            int a = (start + i) % g->scope_count;
            int64_t extent = g->scope[a].extent;
            if (exact ? extent == size : padded || extent <= size)
                index.variable = a;
        }
    if (index.variable >= 0) {
        int64_t slack = size - g->scope[index.variable].extent;
        index.constant = slack > 0 && chance(g, 50) ? below(g, slack + 1) : 0;
        if (chance(g, 15)) {
            index.a = -1;
            index.constant = size - 1 - index.constant;
        }
        if (padded && chance(g, 60))
            index.constant += below(g, 5) - 2;
    }
    index_range(g, &index);
    return index;
}

// ---- computed places ----

/* v/3, (2*v + 1)/4, v%5, (v/2)%3: inside the dimension, or anywhere if the access is padded. */
static bool write_division(Generator *g, StrBuf *out, int64_t size, bool padded)
{
    if (!g->scope_count)
        return false;
    const Variable *v = &g->scope[below(g, g->scope_count)];
    int64_t by = 2 + below(g, 6), times = 1 + below(g, 2), add = below(g, 3), most = times * (v->extent - 1) + add;
    bool remainder = chance(g, 40);
    if (!padded && (remainder ? by : most / by + 1) > size)
        return false;
    int64_t shift = padded ? below(g, 5) - 2 : 0;
    StrBuf dividend = strbuf_new(g->arena);
    if (times == 1 && !add)
        strbuf_puts(&dividend, v->name);
    else
        strbuf_printf(&dividend, "(%" PRId64 "*%s + %" PRId64 ")", times, v->name, add);
    if (remainder && chance(g, 30))
        strbuf_printf(out, "%s/%" PRId64 "%%%" PRId64, dividend.text, 1 + below(g, 3), by);
    else
        strbuf_printf(out, "%s%s%" PRId64, dividend.text, remainder ? "%" : "/", by);
    if (shift)
        strbuf_printf(out, " %c %" PRId64, shift < 0 ? '-' : '+', shift < 0 ? -shift : shift);
    return true;
}

/* k[v], k[v, w] - 1: an element of an integer tensor, whatever it holds. */
static bool write_element_index(Generator *g, StrBuf *out)
{
    int start = g->tensor_count ? (int)below(g, g->tensor_count) : 0;
    for (int i = 0; i < g->tensor_count; i++) {
        const Known *tensor = &g->tensors[(start + i) % g->tensor_count];
        if (tensor->class != INTEGER || (tensor->rank && !tensor->shape[tensor->rank - 1]))   // it is being made
            continue;
        strbuf_printf(out, "%s[", tensor->name);
        for (int d = 0; d < tensor->rank; d++) {
            Index index = fitting_index(g, tensor->shape[d], false);
            strbuf_puts(out, d ? ", " : "");
            write_index(g, out, &index, tensor->shape[d]);
        }
        strbuf_puts(out, "]");
        if (chance(g, 30))
            strbuf_printf(out, " %c %" PRId64, chance(g, 50) ? '+' : '-', 1 + below(g, 3));
        return true;
    }
    return false;
}

static bool write_place(Generator *g, StrBuf *out, int64_t size, bool padded)
{
    if (!chance(g, COMPUTED_PLACES))
        return false;
    return chance(g, 50) ? write_division(g, out, size, padded) : write_element_index(g, out);
}

// ---- accesses ----

/* The constant of `pad`, if the access is one: every type of the class has it. */
static void end_access(Generator *g, StrBuf *out, Class class, bool padded)
{
    static const char *const constants[3][5] = {
        {"0", "-inf", "1.5", "inf", "-1"}, {"0", "1", "3", "7", "P0"}, {"0", "1", "0", "1", "0"}};
    strbuf_puts(out, "]");
    if (padded)
        strbuf_printf(out, ", %s)", PICK(&g->random, constants[class]));
}

static void write_known_access(Generator *g, StrBuf *out, const Known *tensor)
{
    bool padded = tensor->rank > 0 && chance(g, 25);
    strbuf_printf(out, "%s%s[", padded ? "pad(" : "", tensor->name);
    for (int d = 0; d < tensor->rank; d++) {
        strbuf_puts(out, d ? ", " : "");
        if (write_place(g, out, tensor->shape[d], padded))
            continue;
        Index index = fitting_index(g, tensor->shape[d], padded);
        write_index(g, out, &index, tensor->shape[d]);
    }
    end_access(g, out, tensor->class, padded);
}

/* Most variables get a dimension of their own, in any order; some dimensions hold a constant. */
static int choose_dimensions(Generator *g, bool all, int *variables)
{
    int rank = 0;
    for (int a = 0; a < g->scope_count && rank < RANK; a++)
        if (all || chance(g, 65))
            variables[rank++] = a;
    if (rank < RANK && chance(g, 8))
        variables[rank++] = -1;
    for (int i = rank - 1; i > 0 && chance(g, 40); i--) {
        int j = (int)below(g, i + 1), kept = variables[i];
        variables[i] = variables[j];
        variables[j] = kept;
    }
    return rank;
}

static void write_new_access(Generator *g, StrBuf *out, Class class, bool all)
{
    int variables[RANK], rank = choose_dimensions(g, all, variables);
    bool padded = rank > 0 && chance(g, 25);
    Known *tensor = &g->tensors[g->tensor_count++];
    *tensor = (Known){.class = class, .rank = rank};
    snprintf(tensor->name, sizeof tensor->name, "x%d", g->input_count++);
    strbuf_printf(&g->inputs, "input %s[", tensor->name);
    strbuf_printf(out, "%s%s[", padded ? "pad(" : "", tensor->name);
    int64_t elements = 1;
    for (int d = 0; d < rank; d++) {
        Index index = free_index(g, variables[d]);
        if (elements * (index.high + 1) > TENSOR_ELEMENTS) {
            index = (Index){.variable = -1, .other = -1};
        }
        int64_t size = index.high + 1 + (chance(g, 10) ? below(g, 3) : 0);
        if (padded && chance(g, 60)) {
            index.constant += below(g, 5) - 2;
            size = size > 2 && chance(g, 30) ? size - below(g, 2) : size;
        }
        elements *= size;
        tensor->shape[d] = size;
        strbuf_puts(&g->inputs, d ? ", " : "");
        write_size(g, &g->inputs, size);
        strbuf_puts(out, d ? ", " : "");
        if (!write_place(g, out, size, padded))
            write_index(g, out, &index, size);
    }
    strbuf_printf(&g->inputs, "] : %s\n", PICK(&g->random, types[class]));
    end_access(g, out, class, padded);
}

/* `all`: over every variable in scope, if it is a new input. */
static void write_access(Generator *g, StrBuf *out, Class class, bool all)
{
    if (g->tensor_count < TENSORS && g->input_count < INPUTS && chance(g, all ? 80 : 45)) {
        write_new_access(g, out, class, all);
        return;
    }
    int start = g->tensor_count ? (int)below(g, g->tensor_count) : 0;
    for (int i = 0; i < g->tensor_count; i++) {
        const Known *tensor = &g->tensors[(start + i) % g->tensor_count];
        if (tensor->class == class) {
            write_known_access(g, out, tensor);
            return;
        }
    }
    if (g->tensor_count < TENSORS)
        write_new_access(g, out, class, all);
    else
        strbuf_puts(out, class == REAL ? "0.75" : class == INTEGER ? "cast(2.5, i32)" : "(1 < 2)");
}

// ---- expressions: each puts itself in brackets where it needs them ----

static void write_value(Generator *g, StrBuf *out, Class class, int depth);

static void write_pair(Generator *g, StrBuf *out, Class class, int depth, const char *operation)
{
    strbuf_puts(out, "(");
    write_value(g, out, class, depth - 1);
    strbuf_printf(out, " %s ", operation);
    write_value(g, out, class, depth - 1);
    strbuf_puts(out, ")");
}

static void write_call(Generator *g, StrBuf *out, Class class, int depth, const char *opening, const char *closing)
{
    strbuf_puts(out, opening);
    write_value(g, out, class, depth - 1);
    strbuf_puts(out, closing);
}

static void write_select(Generator *g, StrBuf *out, Class class, int depth)
{
    write_call(g, out, BIT, depth, "select(", ", ");
    write_value(g, out, class, depth - 1);
    strbuf_puts(out, ", ");
    write_value(g, out, class, depth - 1);
    strbuf_puts(out, ")");
}

/* Of two tensors that are read along some of the spatial variables and all of the reduced ones: a matrix multiplication, if
   there are enough of the former. */
static void write_product(Generator *g, StrBuf *out)
{
    int order[SCOPE], reduced = g->scope_count - 1, count = g->scope_count;
    for (int side = 0; side < 2; side++) {
        int rank = 0;
        for (int a = 0; a < count && rank < RANK; a++)
            if (a == reduced || a % 2 == side || (count > 3 && a == 0))
                order[rank++] = a;
        if (rank > 1 && chance(g, 40)) {
            int last = order[rank - 1];
            order[rank - 1] = order[rank - 2];
            order[rank - 2] = last;
        }
        Known *tensor = &g->tensors[g->tensor_count++];
        *tensor = (Known){.class = REAL, .rank = rank};
        snprintf(tensor->name, sizeof tensor->name, "x%d", g->input_count++);
        strbuf_printf(out, "%s%s[", side ? " * " : "", tensor->name);
        strbuf_printf(&g->inputs, "input %s[", tensor->name);
        for (int d = 0; d < rank; d++) {
            Index index = {.variable = order[d], .other = -1, .a = 1};
            tensor->shape[d] = g->scope[order[d]].extent;
            strbuf_puts(out, d ? ", " : "");
            write_index(g, out, &index, tensor->shape[d]);
            strbuf_printf(&g->inputs, "%s%" PRId64, d ? ", " : "", tensor->shape[d]);
        }
        strbuf_puts(out, "]");
        strbuf_printf(&g->inputs, "] : %s\n", PICK(&g->random, types[REAL]));
    }
}

/* `sum[k3:4, k4](…)`; one of bits counts them. */
static void write_reduction(Generator *g, StrBuf *out, Class class, int depth)
{
    static const char *const combiners[] = {"sum", "sum", "max", "min", "prod"};
    int count = open_variables(g, 1 + chance(g, 25) + chance(g, 8), DEFINITION_POINTS);
    if (!count) {
        write_access(g, out, class, false);
        return;
    }
    StrBuf body = strbuf_new(g->arena);
    bool plain = count == 1 && g->nesting == 0 && g->tensor_count < TENSORS - 2;
    if (class == REAL && plain && g->scope_count >= 3 && g->scope_count <= 5 && chance(g, 60)) {
        write_product(g, &body);
        strbuf_puts(out, "sum[");
        write_variables(g, out, count);
        strbuf_printf(out, "](%s)", body.text);
        return;
    }
    g->nesting++;
    if (class == REAL && chance(g, 40)) {   // a convolution, a dot product
        write_access(g, &body, REAL, false);
        strbuf_puts(&body, " * ");
        write_access(g, &body, REAL, false);
    } else if (chance(g, 40)) {
        write_access(g, &body, class == INTEGER && chance(g, 30) ? BIT : class, true);
    } else {
        write_value(g, &body, class, depth - 1);
    }
    g->nesting--;
    strbuf_printf(out, "%s[", PICK(&g->random, combiners));
    write_variables(g, out, count);
    strbuf_printf(out, "](%s)", body.text);
}

static void write_index_value(Generator *g, StrBuf *out, const char *otherwise)
{
    strbuf_puts(out, g->scope_count ? g->scope[below(g, g->scope_count)].name : otherwise);
}

/* A constant never stands alone: what is made of whole ones only would be an integer. */
static void write_real_leaf(Generator *g, StrBuf *out)
{
    static const char *const constants[] = {" * 0.5)", " + -2)", " * 3)", " + eps)", " - (pi / 4))", " * 1e-3)", " / P1)", " - 1.0)"};
    bool constant = chance(g, 12);
    if (!constant && chance(g, 6)) {
        write_index_value(g, out, "0.25");
        strbuf_puts(out, " * 0.125");
        return;
    }
    strbuf_puts(out, constant ? "(" : "");
    write_access(g, out, REAL, chance(g, 60));
    strbuf_puts(out, constant ? PICK(&g->random, constants) : "");
}

static void write_real(Generator *g, StrBuf *out, int depth)
{
    static const char *const functions[] = {"exp(-abs(", "tanh((", "erf((", "sigmoid((", "sin((", "cos((", "abs((", "floor((",
                                            "ceil((", "sq((", "relu((", "sqrt(abs(", "-((", "--((",
                                            "round((", "atan((", "asin(sin(", "acos(sin("};
    static const char *const positive[] = {"log(0.5 + abs(", "rsqrt(0.5 + abs(", "1 / (0.25 + sq("};
    static const char *const casts[] = {", f16)", ", bf16)", ", f32)", ", f64)"};
    switch (below(g, 13)) {
    case 0: case 1: write_pair(g, out, REAL, depth, "+"); break;
    case 2: write_pair(g, out, REAL, depth, "-"); break;
    case 3: case 4: write_pair(g, out, REAL, depth, "*"); break;
    case 5: write_call(g, out, REAL, depth, chance(g, 50) ? "max(" : "min(", ", "), write_real_leaf(g, out), strbuf_puts(out, ")"); break;
    case 6: case 7: write_call(g, out, REAL, depth, PICK(&g->random, functions), "))"); break;
    case 8: write_call(g, out, REAL, depth, PICK(&g->random, positive), "))"); break;
    case 9: write_select(g, out, REAL, depth); break;
    case 10: write_call(g, out, chance(g, 60) ? REAL : INTEGER, depth, "cast(", PICK(&g->random, casts)); break;
    case 11: write_call(g, out, REAL, depth, "pow(0.5 + abs(", "), 1.5)"); break;
    default:
        if (g->nesting < 2)
            write_reduction(g, out, REAL, depth);
        else
            write_real_leaf(g, out);
    }
}

/* Never a constant alone: a quotient of constants is real. */
static void write_integer(Generator *g, StrBuf *out, int depth)
{
    static const char *const functions[] = {"abs(", "sq(", "relu(", "-(", "floor(", "round("};
    static const char *const casts[] = {", i32)", ", i8)", ", u8)", ", i64)"};
    static const char *const constants[] = {" + 3)", " * -5)", " - P2)", " / 3)", " / -2)", " % 3)", " % -4)"};
    switch (below(g, 10)) {
    case 0: write_pair(g, out, INTEGER, depth, "+"); break;
    case 1: write_pair(g, out, INTEGER, depth, "-"); break;
    case 2: write_pair(g, out, INTEGER, depth, "*"); break;
    case 3: write_call(g, out, INTEGER, depth, "(", PICK(&g->random, constants)); break;
    case 4: write_call(g, out, INTEGER, depth, PICK(&g->random, functions), ")"); break;
    case 5: write_select(g, out, INTEGER, depth); break;
    case 6: write_call(g, out, REAL, depth, "cast(3 * (", ")"), strbuf_puts(out, PICK(&g->random, casts)); break;
    case 7: write_call(g, out, INTEGER, depth, chance(g, 50) ? "max(" : "min(", ", 4)"); break;
    case 8: write_index_value(g, out, "cast(0.5, i32)"); break;
    default:
        if (g->nesting < 2)
            write_reduction(g, out, INTEGER, depth);
        else
            write_access(g, out, INTEGER, true);
    }
}

static void write_bit(Generator *g, StrBuf *out, int depth)
{
    static const char *const comparisons[] = {"<", "<=", ">", ">=", "==", "!="};
    switch (below(g, 7)) {
    case 0: case 1: write_pair(g, out, REAL, depth, comparisons[below(g, 4)]); break;
    case 2: write_pair(g, out, INTEGER, depth, PICK(&g->random, comparisons)); break;
    case 3: write_pair(g, out, BIT, depth, chance(g, 50) ? "&&" : "||"); break;
    case 4: write_call(g, out, BIT, depth, "!(", ")"); break;
    case 5: write_call(g, out, chance(g, 50) ? INTEGER : REAL, depth, "cast(", ", b1)"); break;
    default: write_select(g, out, BIT, depth);
    }
}

static void write_value(Generator *g, StrBuf *out, Class class, int depth)
{
    bool leaf = depth <= 0 || ++g->nodes > NODES || chance(g, 15);
    if (leaf && class == REAL)
        write_real_leaf(g, out);
    else if (leaf && class == INTEGER && chance(g, 15) && g->scope_count)
        write_index_value(g, out, "");
    else if (leaf)
        write_access(g, out, class, chance(g, 60));
    else if (class == REAL)
        write_real(g, out, depth);
    else if (class == INTEGER)
        write_integer(g, out, depth);
    else
        write_bit(g, out, depth);
}

// ---- statements ----

/* What is read by others or is an output may have a type of its own. */
static void write_definition(Generator *g, StrBuf *out, StrBuf *outputs, int number, bool last)
{
    static const int ranks[] = {0, 1, 1, 2, 2, 2, 3, 3, 4, 5, 8};
    static const Class classes[] = {REAL, REAL, REAL, REAL, REAL, INTEGER, BIT};
    Class class = PICK(&g->random, classes);
    StrBuf body = strbuf_new(g->arena), head = strbuf_new(g->arena);
    g->nodes = g->variables = 0;
    int rank = open_variables(g, PICK(&g->random, ranks), chance(g, 20) ? DEFINITION_POINTS : DEFINITION_POINTS / 16);
    Known made = {.class = class, .rank = rank};
    for (int d = 0; d < rank; d++)
        made.shape[d] = g->scope[d].extent;
    if (class != BIT && chance(g, 55))
        write_reduction(g, &body, class, 3);
    else if (chance(g, 10))
        write_access(g, &body, class, true);
    else
        write_value(g, &body, class, 4);
    snprintf(made.name, sizeof made.name, "y%d", number);
    write_variables(g, &head, rank);

    bool output = last || chance(g, 35), typed = chance(g, 50), as_output = output && chance(g, 50);
    if (class == INTEGER && chance(g, 12))
        made.class = REAL, typed = true;   // integers become real silently
    const char *type = PICK(&g->random, types[made.class]);
    strbuf_printf(out, "%s[%s]", made.name, head.text);
    if (typed && !as_output)
        strbuf_printf(out, " : %s", type);
    strbuf_printf(out, " = %s\n", body.text);
    if (output)
        strbuf_printf(outputs, "output %s", made.name);
    if (output && typed && as_output)
        strbuf_printf(outputs, " : %s", type);
    strbuf_puts(outputs, output ? "\n" : "");
    g->tensors[g->tensor_count++] = made;
}

/* The same elements in another shape: factors of their number, or all in one dimension. */
static void write_view(Generator *g, StrBuf *out, StrBuf *outputs, int number)
{
    const Known *tensor = &g->tensors[below(g, g->tensor_count)];
    Known view = {.class = tensor->class};
    int64_t left = 1;
    for (int d = 0; d < tensor->rank; d++)
        left *= tensor->shape[d];
    snprintf(view.name, sizeof view.name, "w%d", number);
    strbuf_printf(out, "view %s[", view.name);
    while (view.rank < RANK - 1 && left > 1 && chance(g, 70)) {
        int64_t size = 1 + below(g, left < 40 ? left : 40);
        while (left % size)
            size--;
        view.shape[view.rank++] = size;
        left /= size;
    }
    view.shape[view.rank++] = left;
    for (int d = 0; d < view.rank; d++) {
        strbuf_puts(out, d ? ", " : "");
        write_size(g, out, view.shape[d]);
    }
    strbuf_printf(out, "] = %s\n", tensor->name);
    if (chance(g, 20))
        strbuf_printf(outputs, "output %s\n", view.name);
    g->tensors[g->tensor_count++] = view;
}

char *generate_grammar(Arena *arena, uint64_t state)
{
    Generator *g = NEW(arena, Generator);
    g->arena = arena;
    g->random.state = state;
    g->inputs = strbuf_new(arena);
    StrBuf text = strbuf_new(arena), definitions = strbuf_new(arena), outputs = strbuf_new(arena);
    for (int p = 0; p < PARAMS; p++) {
        g->params[p] = 1 + below(g, 4);
        strbuf_printf(&text, "param P%d = ", p);
        if (p && chance(g, 30))
            strbuf_printf(&text, "%" PRId64 " * P0 - %" PRId64 "\n", g->params[p], g->params[p] * (g->params[0] - 1));
        else
            strbuf_printf(&text, "%" PRId64 "\n", g->params[p]);
    }
    strbuf_puts(&text, "param eps = 1e-5\n");
    int count = 1 + (int)below(g, 4);
    for (int i = 0; i < count && g->tensor_count < TENSORS - 8; i++) {
        if (g->tensor_count && chance(g, VIEWS))
            write_view(g, &definitions, &outputs, i);
        write_definition(g, &definitions, &outputs, i, i == count - 1);
    }
    strbuf_printf(&text, "%s%s%s", g->inputs.text, definitions.text, outputs.text);
    return text.text;
}
