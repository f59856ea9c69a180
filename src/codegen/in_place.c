#include "codegen/in_place.h"

typedef struct ReadSearch {
    int tensor;            // its id: views have it, too
    const Affine *place;   // of the element that is stored
    bool summed;           // what is looked at is reduced
    bool elsewhere;        // found: it is read at another place, or for a sum
} ReadSearch;

static void visit(Expr *expr, void *context)
{
    ReadSearch *search = context;
    const Tensor *tensor = expr_tensor(expr);
    if (!tensor || tensor->id != search->tensor)
        return;
    bool plain = expr->kind == EXPR_ACCESS && !search->summed;
    Affine offset = plain ? access_offset(&expr->access) : (Affine){0};
    search->elsewhere |= !plain || !affine_equal(&offset, search->place);
}

static bool is_read_at(const Fusion *fusion, int tensor, const Affine *place)
{
    ReadSearch search = {.tensor = tensor, .place = place};
    for (int i = 0; i < fusion->op_count; i++) {
        search.summed = fusion->ops[i].reduce != REDUCE_NONE;
        expr_visit(fusion->ops[i].body, visit, &search);
    }
    return !search.elsewhere;
}

/* A kernel may see several views of a tensor, each with a name of its own. */
static bool is_seen_once(const Fusion *fusion, const Tensor *tensor)
{
    int seen = 0;
    for (int i = 0; i < fusion->input_count; i++)
        seen += fusion->inputs[i]->id == tensor->id;
    return seen == 1;
}

static const FusedOp *stored_op(const Fusion *fusion)
{
    const FusedOp *stored = NULL;
    for (int i = 0; i < fusion->op_count; i++)
        stored = fusion->ops[i].stored ? &fusion->ops[i] : stored;
    return stored;
}

static bool is_whole_temporary(const Program *program, const Tensor *seen)
{
    const Tensor *tensor = program->tensors[seen->id];
    return tensor->role == ROLE_TEMPORARY && !tensor->part_stride && !seen->part_stride;
}

bool in_place_may(const Program *program, const PlannedLaunch *launch, int i)
{
    const Fusion *fusion = launch->fusion;
    const Tensor *read = fusion->inputs[i], *made = fusion->outputs[0];
    if (!launch->family->adds_in_place || fusion->output_count != 1 || fusion->streams ||
        made->dtype == DTYPE_B1 || dtype_info[read->dtype].bits != dtype_info[made->dtype].bits ||
        tensor_bytes(read) != tensor_bytes(made) || !is_whole_temporary(program, read) ||
        !is_whole_temporary(program, made) || !is_seen_once(fusion, read))
        return false;
    const FusedOp *stored = stored_op(fusion);
    Affine place = access_offset(&stored->store);
    return stored->reduce == REDUCE_NONE && is_read_at(fusion, read->id, &place);
}
