// How a kernel reads a product's factors: in which vectors, in which order along k, and the text of it.
#include <inttypes.h>
#include <stdlib.h>

#include "codegen/family/gemm/skips.h"

// ---- vectors ----

/* So many neighbours along the axis are all there, or none of them: a bound does not depend on it, or is one of whole vectors. */
static bool guard_holds_along(const Guard *guard, int axis, int64_t vector)
{
    bool holds = true;
    for (int i = 0; guard && i < guard->count; i++) {
        const Dim *bound = &guard->bounds[i];
        holds &= bound->index.coef[axis] == 0 || (bound->size % vector == 0 && affine_allows_vector(&bound->index, axis, vector));
    }
    return holds;
}

/* The elements that the factor is, or has zeros in place of; NULL: it is made of them. */
static const Access *vector_access(const Product *product, const Expr *factor)
{
    bool guarded = factor->kind == EXPR_GUARD && expr_is_zero(factor->guard.otherwise) && !product->skinny;
    const Expr *expr = guarded ? factor->guard.body : factor;
    bool alone = product->skinny && product->guard;
    return !alone && expr->kind == EXPR_ACCESS && expr->access.tensor->dtype != DTYPE_B1 ? &expr->access
                                                                                         : NULL;
}

static const Guard *own_guard(const Expr *factor) { return factor->kind == EXPR_GUARD ? &factor->guard : NULL; }

int product_vector(const Fusion *fusion, const Product *product, int factor, int64_t tile)
{
    const Access *access = vector_access(product, product->factor[factor]);
    if (!access)
        return 1;
    const AxisGroup *fast = &product->group[product_along_k(fusion, product, factor) ? GROUP_K
                                            : factor                                 ? GROUP_N
                                                                                     : GROUP_M];
    if (!fast->count)
        return 1;
    Affine offset = access_offset(access);
    int vector = VECTOR_BYTES * 8 / dtype_info[access->tensor->dtype].bits;
    int axis = axis_group_innermost(fast);
    bool taps = product->group[GROUP_K].count > 1;   // else elements are copied ahead, which is faster
    while (vector > 1 && (tile % vector || !affine_allows_vector(&offset, axis, vector) ||
                          !guard_holds_along(own_guard(product->factor[factor]), axis, taps ? vector : INT64_MAX) ||
                          !guard_holds_along(product->guard, axis, taps ? vector : INT64_MAX) ||
                          !(product->skinny ? fusion->axes[axis].extent % vector == 0
                                            : product_ends_in_vectors(fusion, access, fast, vector))))
        vector /= 2;
    return vector;
}

// ---- steps ----

/* Of a factor that is read along k, neighbours under one channel after the other lie within a line. */
static bool goes_by_channels(const Fusion *fusion, const Product *product, int factor, int channel)
{
    const Access *access = vector_access(product, product->factor[factor]);
    int innermost = axis_group_innermost(&product->group[GROUP_K]);
    if (!product_along_k(fusion, product, factor) || channel == innermost)
        return true;
    if (!access || product_vector(fusion, product, factor, VECTOR_BYTES) > 1)
        return false;
    return llabs(access_offset(access).coef[channel]) * dtype_info[access->tensor->dtype].bits <=
           8 * LINE_BYTES;
}

ProductSteps product_steps(const Fusion *fusion, const Product *product, int64_t terms)
{
    const AxisGroup *k = &product->group[GROUP_K];
    ProductSteps steps = {.terms = terms, .channel = -1};
    if (product->skips && !product->atom && k->count > 1) {
        steps.channel = product->skips->channel;
        return steps;
    }
    for (int i = 0; k->count > 1 && i < k->count; i++) {
        int64_t extent = fusion->axes[k->axes[i]].extent;
        bool longer = steps.channel < 0 || extent > fusion->axes[steps.channel].extent;
        if (extent % terms == 0 && longer && goes_by_channels(fusion, product, 0, k->axes[i]) &&
            goes_by_channels(fusion, product, 1, k->axes[i]))
            steps.channel = k->axes[i];
    }
    return steps;
}

// ---- text ----

/* The factor's element, zero where the guard above the product says that there is none. */
static void emit_factor(StrBuf *out, const Scope *scope, const Product *product, int factor)
{
    Expr guarded = {.kind = EXPR_GUARD, .type = product->factor[factor]->type};
    if (product->guard) {
        guarded.guard = *product->guard;
        guarded.guard.body = (Expr *)product->factor[factor];
        emit_expr(out, scope, &guarded);
    } else {
        emit_expr(out, scope, product->factor[factor]);
    }
}

/* Up to the positions of its axes. */
static void emit_opening(StrBuf *out, int factor, bool placed, const char *k)
{
    strbuf_printf(out,
                  "    static __device__ __forceinline__ %s(const Tensors &t, Index batch, Index %s, %s, %s)\n    {\n",
                  placed ? "const Value *at" : "void read", group_variable(factor ? GROUP_N : GROUP_M), k,
                  placed ? "bool &exists" : "Value (&v)[VECTOR]");
}

bool product_guard_ends_k(const Product *product)
{
    const AxisGroup *k = &product->group[GROUP_K];
    if (k->count != 1 || !product->guard || product->guard->count != 1)
        return false;
    const Affine *index = &product->guard->bounds[0].index;
    bool ends = index->coef[k->axes[0]] == 1 && index->constant >= 0;
    for (int a = 0; a < MAX_AXES; a++)
        ends &= a == k->axes[0] || index->coef[a] == 0 ||
                (index->coef[a] > 0 && axis_group_mask(&product->group[GROUP_BATCH]) >> a & 1);
    return ends;
}

int product_emit_bounds(StrBuf *out, const Scope *scope, const Guard *guard, int before)
{
    for (int i = 0; guard && i < guard->count; i++) {
        strbuf_puts(out, before++ ? " && inside(" : "inside(");
        emit_affine(out, &guard->bounds[i].index, scope->axis);
        strbuf_printf(out, ", %" PRId64 ")", guard->bounds[i].size);
    }
    return before;
}

static bool emit_exists(StrBuf *out, const Scope *scope, const Product *product, const Expr *factor,
                        const char *opening)
{
    const Guard *own = own_guard(factor);
    if (!own && !product->guard)
        return false;
    strbuf_puts(out, opening);
    product_emit_bounds(out, scope, own, product_emit_bounds(out, scope, product->guard, 0));
    return true;
}

/* Whether terms of a step lie evenly apart, and exist or not together. */
static bool is_even(const Product *product, int factor, const ProductSteps *steps)
{
    const AxisGroup *k = &product->group[GROUP_K];
    int along = steps->channel >= 0 ? steps->channel : k->count == 1 ? k->axes[0] : -1;
    return along >= 0 && guard_holds_along(product->guard, along, INT64_MAX) &&
           guard_holds_along(own_guard(product->factor[factor]), along, INT64_MAX);
}

int64_t product_even_terms(const Fusion *fusion, const Product *product, int factor)
{
    for (int64_t terms = 16; terms > 1; terms /= 2) {   // steps have 8 or 16
        ProductSteps steps = product_steps(fusion, product, terms);
        if (is_even(product, factor, &steps))
            return product->group[GROUP_K].count > 1 ? terms : 0;
    }
    return 1;
}

/* Where elements lie, and whether they exist, is affine in rows and terms: those strides. Or of terms of a step alone. */
static void emit_strides(StrBuf *out, const Scope *scope, const Product *product, int factor, const ProductSteps *steps)
{
    const AxisGroup *rows = &product->group[factor ? GROUP_N : GROUP_M], *k = &product->group[GROUP_K];
    Affine offset = access_offset(vector_access(product, product->factor[factor]));
    int64_t row = axis_group_stride(rows, &offset), term = axis_group_stride(k, &offset);
    bool guarded = product->guard || own_guard(product->factor[factor]);
    bool affine = steps->channel < 0 && !product->skips && (!guarded || (rows->count <= 1 && k->count <= 1)) &&
                  axis_group_has_stride(rows, scope->fusion, &offset, row) &&
                  axis_group_has_stride(k, scope->fusion, &offset, term);
    STATIC_CONSTEXPR(out, "bool AFFINE", NULL, affine);
    STATIC_CONSTEXPR(out, "bool PLACED, EVEN", NULL, true, is_even(product, factor, steps));
    STATIC_CONSTEXPR(out, "Index ROW, TERM", "strides of an affine one, of a step's terms", row,
                     steps->channel >= 0 ? offset.coef[steps->channel] : term);
}

/* Without branches, so that elements of one row test what they have in common once: steps of skipped taps have few terms. */
static void emit_bounds_apart(StrBuf *out, const Scope *scope, const Guard *guard)
{
    for (int i = 0; guard && i < guard->count; i++) {
        strbuf_puts(out, "        exists &= inside(");
        emit_affine(out, &guard->bounds[i].index, scope->axis);
        strbuf_printf(out, ", %" PRId64 ");\n", guard->bounds[i].size);
    }
}

/* Where a vector or an element lies, and whether it exists. */
static void emit_place(StrBuf *out, const Scope *scope, const Product *product, int factor, OperandWay way)
{
    const Access *access = vector_access(product, product->factor[factor]);
    if (product->skips || way == OPERAND_HELD) {
        emit_bounds_apart(out, scope, product->guard);
        emit_bounds_apart(out, scope, own_guard(product->factor[factor]));
    } else if (emit_exists(out, scope, product, product->factor[factor], "        exists = exists && ")) {
        strbuf_puts(out, ";\n");
    }
    strbuf_printf(out, "        return t.in%d + (%s);\n", input_position(scope->fusion, access->tensor),
                  offset_text(out->arena, access, scope->axis));
}

/* A vector of elements of an access, on its way into registers. */
static void emit_vector(StrBuf *out, const Scope *scope, const Product *product, const Expr *factor,
                        OperandWay way)
{
    const Access *access = vector_access(product, factor);
    bool guarded = emit_exists(out, scope, product, factor, "        if (");
    strbuf_puts(out, guarded ? ")\n            " : "        ");
    strbuf_printf(out, "%s_vector<VECTOR>(t.in%d, %s, v);\n", way == OPERAND_STREAMED ? "stream" : "load",
                  input_position(scope->fusion, access->tensor), offset_text(out->arena, access, scope->axis));
    if (guarded)
        strbuf_puts(out, "        else\n            UNROLL for (int e = 0; e < VECTOR; ++e)\n                v[e] = 0;\n");
}

/* Of the step's terms `inner` is one: so many channels under one tap, then under the next one. */
static void emit_step_positions(StrBuf *out, const Scope *scope, const Product *product,
                                const ProductSteps *steps, uint32_t used)
{
    AxisGroup taps = {.extent = 1};
    for (int i = 0; steps->channel >= 0 && i < product->group[GROUP_K].count; i++)
        if (product->group[GROUP_K].axes[i] != steps->channel)
            axis_group_add(&taps, scope->fusion, product->group[GROUP_K].axes[i]);
    if (steps->channel < 0) {
        strbuf_printf(out, "        const Index k = step * %" PRId64 " + inner;\n", steps->terms);
        product_emit_terms(out, scope, &product->group[GROUP_K], "k", used);
        return;
    }
    bool walks = product->skips && !product->atom;   // then compilers do not see that no step is negative
    if (used >> steps->channel & 1)
        strbuf_printf(out, walks ? "        const Index %s = quotient_by<%" PRId64 ">(step) * %" PRId64 " + inner;\n"
                                 : "        const Index %s = step / %" PRId64 " * %" PRId64 " + inner;\n",
                      scope->axis[steps->channel], taps.extent, steps->terms);
    if (used & axis_group_mask(&taps))
        strbuf_printf(out, walks ? "        const Index tap = remainder_by<%" PRId64 ">(step);\n"
                                 : "        const Index tap = step %% %" PRId64 ";\n",
                      taps.extent);
    product_emit_terms(out, scope, &taps, "tap", used);
}

void product_emit_operand(StrBuf *out, const Scope *scope, const Product *product, int factor, int vector,
                          OperandWay way, const ProductSteps *steps)
{
    int rows = factor ? GROUP_N : GROUP_M;
    bool along_k = product_along_k(scope->fusion, product, factor);
    strbuf_printf(out, "\nstruct Operand%c {\n", "AB"[factor]);
    STATIC_CONSTEXPR(out, "bool ALONG_K", NULL, along_k);
    STATIC_CONSTEXPR(out, "int VECTOR", NULL, vector);
    bool placed = way >= OPERAND_HELD;
    if (placed)
        emit_strides(out, scope, product, factor, steps);
    else if (steps)
        STATIC_CONSTEXPR(out, "bool PLACED, EVEN", NULL, false, false);
    emit_opening(out, factor, placed, steps ? "Index step, int inner" : "Index k");
    uint32_t used = product_factor_axes(product, factor);
    product_emit_positions(out, scope, product, GROUP_BATCH, "batch", used);
    product_emit_positions(out, scope, product, rows, group_variable(rows), used);
    if (steps)
        emit_step_positions(out, scope, product, steps, used);
    else
        product_emit_terms(out, scope, &product->group[GROUP_K], "k", used);
    if (placed) {
        emit_place(out, scope, product, factor, way);
    } else if (vector > 1 || (way == OPERAND_STREAMED && !product->guard)) {
        emit_vector(out, scope, product, product->factor[factor], way);
    } else {
        strbuf_puts(out, "        v[0] = ");
        emit_factor(out, scope, product, factor);
        strbuf_puts(out, ";\n");
    }
    strbuf_puts(out, "    }\n};\n");
}
