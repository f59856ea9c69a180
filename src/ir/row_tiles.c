// Joins a product's kernel with that of its rows' reductions: see row_tiles.h.
#include "ir/row_tiles.h"

#include <string.h>

#include "ir/exact_type.h"
#include "ir/fuse_inline.h"

typedef struct KernelReaders {
    const Fusion *one;   // the kernel that reads a tensor; NULL: none
    bool several;
} KernelReaders;

typedef struct Joiner {
    Arena *arena;
    Fusion **kernels;
    int count, product, rows;   // of the kernels: those two
    KernelReaders *readers;     // by tensor id
    int tensor_count;
} Joiner;

static int op_of(const Fusion *fusion, const Tensor *tensor)
{
    for (int i = 0; i < fusion->op_count; i++)
        if (tensor && fusion->ops[i].out == tensor)
            return i;
    return -1;
}

// ---- which kernels ----

static bool is_element(const Expr *expr)
{
    return expr->kind == EXPR_ACCESS &&
           (expr->access.tensor->dtype == DTYPE_F16 || expr->access.tensor->dtype == DTYPE_BF16);
}

/* What tensor cores multiply, and what is made of each sum. */
static bool is_product(const Fusion *fusion)
{
    const FusedOp *first = &fusion->ops[0];
    const Expr *body = first->body;
    if (fusion->streams || first->reduce != REDUCE_SUM || body->kind != EXPR_APPLY ||
        body->apply.op != OP_MUL || !is_element(body->apply.operands[0]) ||
        !is_element(body->apply.operands[1]))
        return false;
    for (int i = 0; i < fusion->op_count; i++)
        if (fusion->ops[i].out->role == ROLE_OUTPUT || (i && fusion->ops[i].reduce != REDUCE_NONE))
            return false;
    return fusion_is_uniform(fusion);
}

/* Reductions along one axis, and what is made of their results. */
static bool is_of_rows(const Fusion *fusion)
{
    uint32_t rows = (1u << fusion->spatial_count) - 1;
    bool reduces = false;
    if (fusion->streams || fusion->axis_count != fusion->spatial_count + 1 || !fusion->spatial_count)
        return false;
    for (int i = 0; i < fusion->op_count; i++) {
        reduces |= fusion->ops[i].reduce != REDUCE_NONE;
        if (fusion->ops[i].spatial != rows && fusion->ops[i].out->role == ROLE_OUTPUT)
            return false;
    }
    return reduces;
}

typedef struct ReadVisit {
    Joiner *joiner;
    const Fusion *by;
} ReadVisit;

static void read_visit(Expr *expr, void *context)
{
    const ReadVisit *visit = context;
    const Tensor *tensor = expr_tensor(expr);
    if (!tensor || tensor->id < 0 || tensor->id >= visit->joiner->tensor_count)
        return;
    KernelReaders *readers = &visit->joiner->readers[tensor->id];
    readers->several |= readers->one && readers->one != visit->by;
    readers->one = visit->by;
}

/* Once for all kernels: looking for the readers of each would take the square of their number. */
static void find_readers(Joiner *joiner)
{
    for (int k = 0; k < joiner->count; k++)
        for (int i = 0; i < joiner->kernels[k]->op_count; i++)
            if (joiner->kernels[k]->ops[i].out->id >= joiner->tensor_count)
                joiner->tensor_count = joiner->kernels[k]->ops[i].out->id + 1;
    joiner->readers = NEW_ARRAY(joiner->arena, KernelReaders, joiner->tensor_count);
    for (int k = 0; k < joiner->count; k++) {
        ReadVisit visit = {joiner, joiner->kernels[k]};
        for (int i = 0; i < joiner->kernels[k]->op_count; i++)
            expr_visit(joiner->kernels[k]->ops[i].body, read_visit, &visit);
    }
}

/* The kernel that is made of `from` reads what that one did. */
static void move_readers(Joiner *joiner, const Fusion *from, const Fusion *to)
{
    for (int id = 0; id < joiner->tensor_count; id++)
        if (joiner->readers[id].one == from)
            joiner->readers[id].one = to;
}

static KernelReaders readers_of(const Joiner *joiner, const FusedOp *op)
{
    return op->out->id < 0 ? (KernelReaders){0} : joiner->readers[op->out->id];
}

/* The only other kernel that reads what this one makes; NULL: there is none, or there are several. */
static const Fusion *only_reader(const Joiner *joiner, const Fusion *made)
{
    const Fusion *only = NULL;
    for (int i = 0; i < made->op_count; i++) {
        KernelReaders readers = readers_of(joiner, &made->ops[i]);
        if (readers.several || (only && readers.one && readers.one != only))
            return NULL;
        if (readers.one && readers.one != made)
            only = readers.one;
    }
    return only;
}

/* Another kernel reads what this one makes at more axes than its rows'. */
static bool is_read_beside(const Joiner *joiner, const Fusion *made, uint32_t rows)
{
    bool found = false;
    for (int i = 0; i < made->op_count; i++) {
        KernelReaders readers = readers_of(joiner, &made->ops[i]);
        found |= (made->ops[i].spatial & ~rows) && (readers.several || (readers.one && readers.one != made));
    }
    return found;
}

// ---- where an element of the product stands in the rows ----

typedef struct RowPlacing {
    const Fusion *product, *rows;
    Affine forms[MAX_AXES];   // the product's axes by those of the rows
    bool known, fits;
} RowPlacing;

/* Dimension by dimension both are one axis each: those are the same. */
static bool place_axes(const RowPlacing *placing, const Access *stored, const Access *read, Affine *forms)
{
    uint32_t used = 0;
    for (int d = 0; d < read->rank; d++) {
        int from = affine_single_axis(&stored->dims[d].index), to = affine_single_axis(&read->dims[d].index);
        if (from < 0 || to < 0 || used >> to & 1 ||
            placing->product->axes[from].extent != placing->rows->axes[to].extent)
            return false;
        used |= 1u << to;
        forms[from] = affine_axis(to);
    }
    return used == (1u << placing->rows->axis_count) - 1;
}

static void place_visit(Expr *expr, void *context)
{
    RowPlacing *placing = context;
    int op = op_of(placing->product, expr_tensor(expr));
    Affine forms[MAX_AXES] = {0};
    if (op < 0)
        return;
    const Access *stored = &placing->product->ops[op].store;
    placing->fits &= expr->kind == EXPR_ACCESS && expr->access.rank == stored->rank &&
                     place_axes(placing, stored, &expr->access, forms);
    if (placing->known)
        placing->fits &= !memcmp(forms, placing->forms, sizeof forms);
    memcpy(placing->forms, forms, sizeof forms);
    placing->known = true;
}

static bool place_product(const Joiner *joiner, RowPlacing *placing)
{
    *placing = (RowPlacing){
        .product = joiner->kernels[joiner->product], .rows = joiner->kernels[joiner->rows], .fits = true};
    for (int i = 0; i < placing->rows->op_count; i++)
        expr_visit(placing->rows->ops[i].body, place_visit, placing);
    for (int a = placing->product->spatial_count; a < placing->product->axis_count; a++)
        placing->forms[a] = affine_axis(placing->rows->axis_count + a - placing->product->spatial_count);
    return placing->known && placing->fits;
}

// ---- the kernel of both ----

static uint32_t place_mask(const RowPlacing *placing, uint32_t mask)
{
    uint32_t placed = 0;
    for (int a = 0; a < placing->product->axis_count; a++)
        if (mask >> a & 1)
            placed |= 1u << affine_single_axis(&placing->forms[a]);
    return placed;
}

static FusedOp placed_op(const Joiner *joiner, const RowPlacing *placing, int op)
{
    FusedOp placed = placing->product->ops[op];
    Expr *store = NEW(joiner->arena, Expr);
    *store = (Expr){.kind = EXPR_ACCESS, .access = placed.store};
    int count = placing->product->axis_count;
    placed.body = expr_substitute(joiner->arena, placed.body, placing->forms, count);
    placed.store = expr_substitute(joiner->arena, store, placing->forms, count)->access;
    placed.spatial = place_mask(placing, placed.spatial);
    placed.reduced = place_mask(placing, placed.reduced);
    return placed;
}

static void value_visit(Expr *expr, void *context)
{
    const Fusion *product = context;
    int op = op_of(product, expr_tensor(expr));
    if (expr->kind == EXPR_VALUE)
        expr->value += product->op_count;
    else if (op >= 0)
        *expr = (Expr){.kind = EXPR_VALUE, .type = expr->type, .loc = expr->loc, .value = op};
}

static Fusion *join(const Joiner *joiner, const RowPlacing *placing)
{
    const Fusion *product = placing->product, *rows = placing->rows;
    Fusion *both = NEW(joiner->arena, Fusion);
    *both = *rows;
    both->streams = true;
    for (int a = product->spatial_count; a < product->axis_count; a++)
        both->axes[both->axis_count++] = product->axes[a];
    both->ops = NEW_ARRAY(joiner->arena, FusedOp, product->op_count + rows->op_count);
    both->op_count = 0;
    for (int i = 0; i < product->op_count; i++)
        both->ops[both->op_count++] = placed_op(joiner, placing, i);
    for (int i = 0; i < rows->op_count; i++) {
        FusedOp op = rows->ops[i];
        op.body = expr_copy(joiner->arena, op.body);
        expr_visit(op.body, value_visit, (void *)product);
        both->ops[both->op_count++] = op;
    }
    return both;
}

static bool same_time(const Fusion *product, const Fusion *rows)
{
    return product->ops[0].out->is_prepared == rows->ops[rows->op_count - 1].out->is_prepared;
}

/* The kernel of the product's rows, if there is one that leaves nothing of it; else NULL. */
static Fusion *joined(const Joiner *joiner)
{
    const Fusion *product = joiner->kernels[joiner->product], *rows = joiner->kernels[joiner->rows];
    RowPlacing placing;
    if (!is_of_rows(rows) || rows->axis_count + product->axis_count - product->spatial_count >= MAX_AXES ||
        is_read_beside(joiner, rows, (1u << rows->spatial_count) - 1) || !same_time(product, rows) ||
        !place_product(joiner, &placing))
        return NULL;
    Fusion *both = join(joiner, &placing);
    return row_sums_find(joiner->arena, both, row_tiles_product_ops(both)) ? both : NULL;
}

/* Behind the product; 0: it is read by none, by several, or before. */
static int rows_behind(const Joiner *joiner)
{
    const Fusion *only = only_reader(joiner, joiner->kernels[joiner->product]);
    for (int k = joiner->product + 1; only && k < joiner->count; k++)
        if (joiner->kernels[k] == only)
            return k;
    return 0;
}

int row_tiles_join(Arena *arena, Fusion **kernels, int count)
{
    Joiner joiner = {.arena = arena, .kernels = kernels, .count = count};
    find_readers(&joiner);
    for (joiner.product = 0; joiner.product < joiner.count; joiner.product++) {
        joiner.rows = is_product(kernels[joiner.product]) ? rows_behind(&joiner) : 0;
        Fusion *both = joiner.rows ? joined(&joiner) : NULL;
        if (!both)
            continue;
        move_readers(&joiner, kernels[joiner.product], both);
        move_readers(&joiner, kernels[joiner.rows], both);
        kernels[joiner.rows] = both;
        joiner.count--;
        memmove(kernels + joiner.product, kernels + joiner.product + 1,
                sizeof *kernels * (size_t)(joiner.count - joiner.product));
        joiner.product--;
    }
    return joiner.count;
}
