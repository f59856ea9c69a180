#include "ir/prepared.h"

#include "base/checked.h"

// ---- which tensors ----

typedef struct FixedReads {
    bool fixed;    // so far: all that is read is
    bool any;
} FixedReads;

static void read_visit(Expr *expr, void *context)
{
    FixedReads *reads = context;
    const Tensor *tensor = expr_tensor(expr);
    if (!tensor)
        return;
    reads->any = true;
    reads->fixed &= tensor_is_fixed(tensor);
}

void prepared_mark(const Program *program)
{
    bool weights = program_has_weights(program);
    for (int i = 0; i < program->op_count && weights; i++) {
        const TensorOp *op = program->ops[i];
        FixedReads reads = {.fixed = true};
        expr_visit(op->body, read_visit, &reads);
        op->out->is_prepared = reads.fixed && op->out->role == ROLE_TEMPORARY;
    }
}

bool fusion_is_prepared(const Fusion *fusion)
{
    bool prepared = fusion->output_count > 0;
    for (int i = 0; i < fusion->output_count; i++)
        prepared &= fusion->outputs[i]->is_prepared;
    return prepared;
}

static bool reads_fixed(const Fusion *fusion)
{
    bool fixed = fusion->input_count > 0;
    for (int i = 0; i < fusion->input_count; i++)
        fixed &= tensor_is_fixed(fusion->inputs[i]);
    return fixed;
}

void prepared_mark_parts(const Fusion *whole, Fusion *const *parts, int count)
{
    bool all = fusion_is_prepared(whole);
    for (int p = 0; p < count; p++)
        for (int i = 0; i < parts[p]->output_count; i++)
            if (parts[p]->outputs[i]->id < 0 && (all || reads_fixed(parts[p])))
                parts[p]->outputs[i]->is_prepared = true;
}

/* Folded into a reader it costs nothing there: it is an element of a tensor, of the same type, or made of
   none. */
static bool is_move(const TensorOp *op)
{
    FixedReads reads = {0};
    expr_visit(op->body, read_visit, &reads);
    bool moves = op->body->kind == EXPR_ACCESS && op->body->access.tensor->dtype == op->out->dtype;
    return op->reduce == REDUCE_NONE && (moves || !reads.any);
}

static void want_visit(Expr *expr, void *context)
{
    const Tensor *tensor = expr_tensor(expr);
    if (tensor && tensor->is_prepared)
        ((bool *)context)[tensor->id] = true;
}

bool *prepared_for_calls(Arena *arena, const Program *program)
{
    bool *wanted = NEW_ARRAY(arena, bool, program->tensor_count);
    for (int i = program->op_count - 1; i >= 0; i--) {
        const TensorOp *op = program->ops[i];
        bool move = is_move(op);
        if (!op->out->is_prepared || (wanted[op->out->id] && move))
            expr_visit(op->body, want_visit, wanted);
        wanted[op->out->id] &= !move;
    }
    return wanted;
}

// ---- the file of weights ----

bool program_has_weights(const Program *program)
{
    return program->input_count > 0 && program->inputs[program->input_count - 1]->is_weight;
}

int64_t weight_offset(const Program *program, int input)
{
    int64_t offset = 0;
    for (int i = 0; i < input; i++)
        if (program->inputs[i]->is_weight)
            offset = round_up(offset + tensor_bytes(program->inputs[i]), WEIGHT_ALIGNMENT);
    return offset;
}

int64_t program_weight_bytes(const Program *program)
{
    int last = program->input_count - 1;
    return program_has_weights(program) ? weight_offset(program, last) + tensor_bytes(program->inputs[last])
                                        : 0;
}
