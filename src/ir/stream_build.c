// Makes one kernel of a streamed chain: see stream.h.
#include <string.h>

#include "ir/fuse_inline.h"
#include "ir/stream.h"

/* What an expression of the chain is in the kernel. */
typedef struct Known {
    const Expr *expr;
    int op;
} Known;

enum { MAX_KNOWN = MAX_ROW_SUMS + 5 };   // and s, t, m, e, y

typedef struct Builder {
    Chain *chain;
    Fusion *fusion;
    Known known[MAX_KNOWN];
    int known_count;
    bool *depends;   // by tensor id: on the first product
    bool *member;    // by tensor id: the kernel makes it
} Builder;

// ---- ops ----

static Expr *value_of(const Builder *builder, int op)
{
    return expr_value(builder->chain->arena, op, builder->fusion->ops[op].out);
}

static void know(Builder *builder, const Expr *expr, int op)
{
    builder->known[builder->known_count++] = (Known){expr, op};
}

static Expr *rewrite(const Builder *builder, const Expr *expr);

static Expr *rewritten(const Expr *expr, void *builder) { return rewrite(builder, expr); }

/* The expression with the kernel's values in the place of what they are. */
static Expr *rewrite(const Builder *builder, const Expr *expr)
{
    for (int i = 0; i < builder->known_count; i++)
        if (expr_equal(expr, builder->known[i].expr))
            return value_of(builder, builder->known[i].op);
    return expr_remake(builder->chain->arena, expr, rewritten, (Builder *)builder);
}

/* The store of a tensor whose dimensions are read so. */
static Access store_of(Arena *arena, Tensor *tensor, const Access *read)
{
    Affine forms[MAX_AXES];
    for (int d = 0; d < read->rank; d++)
        forms[d] = read->dims[d].index;
    return access_new(arena, tensor, forms);
}

/* A value of rows and columns that is never stored; it has no definition of its own, or is seen before it is
   rounded. */
static Tensor *value_tensor(const Builder *builder, const char *name)
{
    const Chain *chain = builder->chain;
    Tensor *tensor = NEW(chain->arena, Tensor);
    *tensor = (Tensor){.name = name, .id = -1, .dtype = DTYPE_F32, .role = ROLE_TEMPORARY};
    for (int d = 0; d < chain->weight_access->access.rank; d++)
        tensor->shape[tensor->rank++] = chain->weight->out->shape[d];
    tensor->loc = chain->weight->out->loc;
    return tensor;
}

static int add_op(Builder *builder, FusedOp op)
{
    builder->fusion->ops[builder->fusion->op_count] = op;
    return builder->fusion->op_count++;
}

static int add_value(Builder *builder, const char *name, Expr *body)
{
    const Chain *chain = builder->chain;
    Tensor *tensor = value_tensor(builder, name);
    return add_op(builder, (FusedOp){
                               .out = tensor,
                               .spatial = chain->rows | 1u << chain->column,
                               .body = body,
                               .store = store_of(chain->arena, tensor, &chain->weight_access->access),
                           });
}

static int add_reduction(Builder *builder, const TensorOp *op, const Access *read, Expr *body)
{
    const Chain *chain = builder->chain;
    return add_op(builder, (FusedOp){
                               .out = op->out,
                               .spatial = chain->rows,
                               .reduced = 1u << chain->column,
                               .reduce = op->reduce,
                               .body = body,
                               .store = store_of(chain->arena, op->out, read),
                           });
}

// ---- the chain ----

static Expr *product_of(const Chain *chain, const Expr *left, const Expr *right)
{
    return expr_apply(chain->arena, OP_MUL, DTYPE_F32, expr_copy(chain->arena, left),
                      expr_copy(chain->arena, right), NULL);
}

/* s without the numbers in its terms, which come behind it. */
static void add_scores(Builder *builder)
{
    Chain *chain = builder->chain;
    const TensorOp *op = chain->product;
    Tensor *tensor = chain->scale_count
                         ? value_tensor(builder, arena_printf(chain->arena, "%s.sum", op->out->name))
                         : op->out;
    int product = add_op(builder, (FusedOp){
                                      .out = tensor,
                                      .spatial = chain->rows | 1u << chain->column,
                                      .reduced = 1u << chain->depth,
                                      .reduce = REDUCE_SUM,
                                      .body = product_of(chain, chain->sides[0], chain->sides[1]),
                                      .store = store_of(chain->arena, tensor,
                                                        chain->scale_count ? &chain->weight_access->access
                                                                           : &chain->product_access->access),
                                  });
    Expr *scaled = value_of(builder, product);
    for (int i = 0; i < chain->scale_count; i++)
        scaled = expr_apply(chain->arena, chain->scales[i].op, DTYPE_F32, scaled, chain->scales[i].by, NULL);
    if (chain->scale_count)
        product = add_value(builder, op->out->name, expr_cast(chain->arena, op->out->dtype, scaled));
    know(builder, chain->product_access, product);
}

/* t, if it is more than s. */
static void add_score(Builder *builder)
{
    Chain *chain = builder->chain;
    const Expr *body = chain->maximum->body;
    const char *name = body->kind == EXPR_ACCESS ? body->access.tensor->name : "score";
    if (!expr_equal(chain->score, chain->product_access))
        know(builder, chain->score, add_value(builder, name, rewrite(builder, chain->score)));
}

/* Of results there is no op for what is only an exponential: p is rounded to v's type, and e is not. */
static void add_shares(Builder *builder)
{
    Chain *chain = builder->chain;
    Arena *arena = chain->arena;
    know(builder, chain->maximum_access,
         add_reduction(builder, chain->maximum, &chain->maximum_access->access,
                       value_of(builder, builder->fusion->op_count - 1)));
    const char *name = chain->exponential_name ? chain->exponential_name
                                               : arena_printf(arena, "%s.exp", chain->weight->out->name);
    int exponential = add_value(builder, name, rewrite(builder, chain->exponential));
    know(builder, chain->exponential, exponential);
    for (int i = 0; i < chain->sum_count; i++)
        know(builder, chain->sums_access[i],
             add_reduction(builder, chain->sums[i], &chain->sums_access[i]->access,
                           value_of(builder, exponential)));
    add_op(builder, (FusedOp){
                        .out = chain->weight->out,
                        .spatial = chain->rows | 1u << chain->column,
                        .body = rewrite(builder, chain->share),
                        .store = store_of(arena, chain->weight->out, &chain->weight_access->access),
                    });
}

static void add_sum(Builder *builder)
{
    const Chain *chain = builder->chain;
    const TensorOp *op = chain->sum;
    Affine forms[MAX_AXES];
    for (int a = 0; a < op->spatial_count; a++)
        forms[a] = affine_axis(a);
    add_op(builder,
           (FusedOp){
               .out = op->out,
               .spatial = (1u << op->spatial_count) - 1,
               .reduced = 1u << chain->column,
               .reduce = REDUCE_SUM,
               .body = product_of(chain, value_of(builder, builder->fusion->op_count - 1), chain->value),
               .store = access_new(chain->arena, op->out, forms),
           });
}

// ---- what else reads it ----

typedef struct MemberSearch {
    const Builder *builder;
    const bool *tensors;   // by id
    const Expr *found;
} MemberSearch;

static void read_visit(Expr *expr, void *context)
{
    MemberSearch *search = context;
    const Tensor *tensor = expr_tensor(expr);
    if (tensor && tensor->id >= 0 && search->tensors[tensor->id] && !search->found)
        search->found = expr;
}

static const Expr *reads_any(const Builder *builder, Expr *expr, const bool *tensors)
{
    MemberSearch search = {builder, tensors, NULL};
    expr_visit(expr, read_visit, &search);
    return search.found;
}

/* Definitions that are made of the first product, and which of them the kernel makes. */
static void mark_members(Builder *builder)
{
    const Chain *chain = builder->chain;
    for (int i = 0; i < chain->program->op_count; i++) {
        const TensorOp *op = chain->program->ops[i];
        int id = op->out->id;
        builder->depends[id] = op == chain->product || reads_any(builder, op->body, builder->depends);
        builder->member[id] = builder->depends[id] && chain->used[id];
    }
}

/* The kernel's axis for each of the definition's, by what it reads of a row or a result. */
static bool map_axes(const Builder *builder, const TensorOp *op, const Expr *read, Affine *forms)
{
    const Chain *chain = builder->chain;
    const Access *own = read->access.tensor == chain->maximum->out ? &chain->maximum_access->access : NULL;
    for (int i = 0; i < chain->sum_count; i++)
        if (read->access.tensor == chain->sums[i]->out)
            own = &chain->sums_access[i]->access;
    uint32_t mapped = 0;
    for (int d = 0; own && d < read->access.rank; d++) {
        int axis = affine_single_axis(&read->access.dims[d].index);
        if (axis < 0 || axis >= op->spatial_count || mapped >> axis & 1 ||
            op->axes[axis].extent != read->access.dims[d].size)
            return false;
        mapped |= 1u << axis;
        forms[axis] = own->dims[d].index;
    }
    return own && mapped == (1u << op->spatial_count) - 1;
}

static bool is_before(const Program *program, const Tensor *tensor, const TensorOp *op)
{
    for (int i = 0; i < program->op_count && program->ops[i] != op; i++)
        if (program->ops[i]->out == tensor)
            return true;
    for (int i = 0; i < program->input_count; i++)
        if (program->inputs[i] == tensor)
            return true;
    return false;
}

static void late_visit(Expr *expr, void *context)
{
    MemberSearch *search = context;
    const Chain *chain = search->builder->chain;
    const Tensor *tensor = expr_tensor(expr);
    if (tensor && !is_before(chain->program, tensor, chain->sum))
        search->found = expr;
}

/* Its body over the kernel's axes, with the kernel's values in it; NULL: something stays open. */
static Expr *body_of(const Builder *builder, const TensorOp *op, const Affine *forms)
{
    const Chain *chain = builder->chain;
    Expr *body = rewrite(builder, expr_substitute(chain->arena, op->body, forms, op->axis_count));
    MemberSearch late = {.builder = builder};
    expr_visit(body, late_visit, &late);
    return late.found || reads_any(builder, body, builder->member) ? NULL : body;
}

/* A definition that reads rows' values as the kernel makes them: of rows, or of results at their own
   points. */
static bool add_reader(Builder *builder, const TensorOp *op)
{
    const Chain *chain = builder->chain;
    const TensorOp *sum = chain->sum;
    Affine forms[MAX_AXES] = {0};
    const Expr *read = reads_any(builder, op->body, builder->member);
    bool of_results = op->spatial_count == sum->spatial_count;
    for (int a = 0; of_results && a < op->spatial_count; a++) {
        of_results = op->axes[a].extent == sum->axes[a].extent;
        forms[a] = affine_axis(a);
    }
    if (!op_is_pointwise(op) || read->kind != EXPR_ACCESS)
        return false;
    uint32_t axes = (1u << sum->spatial_count) - 1;
    if (!of_results && !map_axes(builder, op, read, forms))
        return false;
    if (!of_results)
        axes = chain->rows;
    Expr *body = body_of(builder, op, forms);
    if (!body)
        return false;
    builder->member[op->out->id] = true;
    add_op(builder, (FusedOp){.out = op->out,
                              .spatial = axes,
                              .body = body,
                              .store = access_new(chain->arena, op->out, forms)});
    return true;
}

/* An output between the chain's ops, as a row's reciprocal, is made behind them, where none of them can read
   it. */
static bool reads_ahead(const Builder *builder)
{
    const Fusion *fusion = builder->fusion;
    for (int i = 0; i < fusion->op_count; i++)
        if (reads_any(builder, fusion->ops[i].body, builder->depends))
            return true;
    return false;
}

/* Those that read no more than the result may join the kernel later, or be another one. */
static bool add_readers(Builder *builder)
{
    const Chain *chain = builder->chain;
    const Program *program = chain->program;
    int sum = builder->fusion->op_count - 1;
    Expr *result = expr_access(chain->arena, dtype_info[chain->sum->out->dtype].compute, builder->fusion->ops[sum].store);
    know(builder, result, sum);
    for (int i = 0; i < program->op_count; i++) {
        const TensorOp *op = program->ops[i];
        if (builder->member[op->out->id])
            continue;
        builder->member[chain->sum->out->id] = false;
        bool inner = reads_any(builder, op->body, builder->member);
        builder->member[chain->sum->out->id] = true;
        if (inner && !add_reader(builder, op))
            return false;
    }
    return true;
}

/* Nothing of rows and columns is an output. */
static bool keeps_inside(const Builder *builder)
{
    const Fusion *fusion = builder->fusion;
    for (int i = 0; i < fusion->op_count; i++)
        if (fusion->ops[i].spatial >> builder->chain->column & 1 && fusion->ops[i].out->role == ROLE_OUTPUT)
            return false;
    const Program *program = builder->chain->program;
    for (int i = 0; i < program->op_count; i++) {
        const Tensor *tensor = program->ops[i]->out;
        bool made = false;
        for (int k = 0; k < fusion->op_count; k++)
            made |= fusion->ops[k].out == tensor;
        if (builder->member[tensor->id] && !made && tensor->role == ROLE_OUTPUT)
            return false;
    }
    return true;
}

// ---- the whole ----

static Fusion *fusion_new(const Chain *chain)
{
    Fusion *fusion = NEW(chain->arena, Fusion);
    const TensorOp *sum = chain->sum;
    fusion->streams = true;
    fusion->spatial_count = sum->spatial_count;
    fusion->axis_count = chain->depth + 1;
    memcpy(fusion->axes, sum->axes, sizeof sum->axes);
    fusion->axes[chain->depth] = chain->product->axes[chain->product->spatial_count];
    for (int a = 0; a < fusion->axis_count; a++)
        fusion->axes[a].reduction = a >= fusion->spatial_count;
    fusion->ops = NEW_ARRAY(chain->arena, FusedOp, 2 * chain->program->op_count + MAX_KNOWN);
    return fusion;
}

static void list_members(const Builder *builder, Stream *stream)
{
    const Program *program = builder->chain->program;
    stream->members = NEW_ARRAY(builder->chain->arena, const TensorOp *, program->op_count);
    for (int i = 0; i < program->op_count; i++)
        if (builder->member[program->ops[i]->out->id])
            stream->members[stream->member_count++] = program->ops[i];
}

bool chain_build(Chain *chain, Stream *stream)
{
    Builder builder = {.chain = chain, .fusion = fusion_new(chain)};
    builder.depends = NEW_ARRAY(chain->arena, bool, chain->program->tensor_count);
    builder.member = NEW_ARRAY(chain->arena, bool, chain->program->tensor_count);
    mark_members(&builder);
    add_scores(&builder);
    add_score(&builder);
    add_shares(&builder);
    add_sum(&builder);
    if (reads_ahead(&builder) || !add_readers(&builder) || !keeps_inside(&builder))
        return false;
    *stream = (Stream){.fusion = builder.fusion, .sum = chain->sum, .share = chain->weight->out};
    list_members(&builder, stream);
    stream->factors = NEW_ARRAY(chain->arena, Tensor *, 3);
    stream->factors[stream->factor_count++] = chain->sides[0]->access.tensor;
    stream->factors[stream->factor_count++] = chain->sides[1]->access.tensor;
    stream->factors[stream->factor_count++] = chain->value->access.tensor;
    return true;
}
