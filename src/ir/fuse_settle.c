// A kernel's inputs and outputs, and the axes of its points.
#include "ir/fuse_settle.h"

#include <stdlib.h>
#include <string.h>

#include "ir/fuse_axes.h"
#include "ir/fuse_order.h"

/* Which fusion read a tensor last, and the tensors that the current one reads. */
typedef struct Readers {
    int *last;          // by tensor id: its number, from 1; 0: none reads it
    int current;
    Tensor **tensors;   // room for all
    int count;
} Readers;

static void read_visit(Expr *expr, void *context)
{
    Readers *readers = context;
    Tensor *tensor = expr_tensor(expr);
    if (!tensor || readers->last[tensor->id] == readers->current)
        return;
    readers->last[tensor->id] = readers->current;
    readers->tensors[readers->count++] = tensor;
}

static int by_id(const void *left, const void *right)
{
    return (*(Tensor *const *)left)->id - (*(Tensor *const *)right)->id;
}

static void list_inputs(Arena *arena, Fusion *fusion, Readers *readers)
{
    readers->current++;
    readers->count = 0;
    for (int i = 0; i < fusion->op_count; i++)
        expr_visit(fusion->ops[i].body, read_visit, readers);
    qsort(readers->tensors, (size_t)readers->count, sizeof *readers->tensors, by_id);
    fusion->input_count = readers->count;
    fusion->inputs = NEW_ARRAY(arena, Tensor *, readers->count);
    if (readers->count)
        memcpy(fusion->inputs, readers->tensors, sizeof *fusion->inputs * (size_t)readers->count);
}

/* Elements of rows that no reduction has joined are points like any others, and a row's own values are made
   at each of them. False: a row's value is stored, or no order of the points serves all outputs. */
static bool settle_points(Arena *arena, Fusion *fusion)
{
    for (int a = fusion->spatial_count; a < fusion->axis_count; a++)
        fusion->axes[a].reduction = false;
    fusion->spatial_count = fusion->axis_count;
    for (int i = 0; i < fusion->op_count; i++) {
        FusedOp *op = &fusion->ops[i];
        uint32_t all = (1u << fusion->axis_count) - 1;
        if (op->stored && op->spatial != all)
            return false;
        op->spatial = all;
    }
    return fuse_in_memory_order(arena, fusion);
}

bool fusion_settle_axes(Arena *arena, Fusion *fusion)
{
    bool reduces = fusion_reduces(fusion);
    if (!reduces && !settle_points(arena, fusion))
        return false;
    fuse_axes(arena, fusion);
    return !reduces || fusion_reduces(fusion) || settle_points(arena, fusion);
}

static void list_outputs(Arena *arena, Fusion *fusion, const Readers *readers)
{
    fusion->outputs = NEW_ARRAY(arena, Tensor *, fusion->op_count);
    fusion->output_count = 0;
    for (int i = 0; i < fusion->op_count; i++) {
        FusedOp *op = &fusion->ops[i];
        op->stored = op->out->role == ROLE_OUTPUT || (op->out->id >= 0 && readers->last[op->out->id]);
        if (op->stored)
            fusion->outputs[fusion->output_count++] = op->out;
    }
}

void fusions_list_tensors(Arena *arena, FusionPlan *plan, int tensor_count)
{
    Readers readers = {.last = NEW_ARRAY(arena, int, tensor_count),
                       .tensors = NEW_ARRAY(arena, Tensor *, tensor_count)};
    int first = plan->count;
    for (int f = plan->count - 1; f >= 0; f--) {   // readers stand behind what they read
        list_outputs(arena, plan->fusions[f], &readers);
        if (plan->fusions[f]->output_count == 0)
            continue;
        list_inputs(arena, plan->fusions[f], &readers);
        plan->fusions[--first] = plan->fusions[f];
    }
    plan->count -= first;
    memmove(plan->fusions, plan->fusions + first, sizeof *plan->fusions * (size_t)plan->count);
}
