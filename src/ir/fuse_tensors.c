#include "ir/fuse_tensors.h"

#include <string.h>

#include "base/diag.h"

/* Ids of tensors, each once. */
typedef struct TensorList {
    int *ids;
    int count;
} TensorList;

typedef struct Touch {
    KernelTensors *tensors;
    TensorList found;   // room for all
} Touch;

static void touch(Touch *touch, int id)
{
    if (touch->tensors->marks[id] == touch->tensors->counts)
        return;
    touch->tensors->marks[id] = touch->tensors->counts;
    touch->found.ids[touch->found.count++] = id;
}

static void touch_visit(Expr *expr, void *context)
{
    Touch *search = context;
    if (!expr_tensor(expr))
        return;
    int id = expr_tensor(expr)->id;
    if (search->tensors->inlined[id])
        expr_visit(search->tensors->definition[id]->body, touch_visit, context);
    else
        touch(search, id);
}

/* What the kernel touches with the definition: until the next call. */
static TensorList touch_with(KernelTensors *tensors, int kernel, const TensorOp *op)
{
    Touch search = {tensors, {tensors->room, 0}};
    const TensorList *before = &tensors->touched[kernel];
    tensors->counts++;
    for (int i = 0; i < before->count; i++)
        touch(&search, before->ids[i]);
    touch(&search, op->out->id);
    expr_visit(op->body, touch_visit, &search);
    return search.found;
}

KernelTensors tensors_new(Arena *arena, const Program *program, const TensorOp *const *definition,
                          const bool *inlined)
{
    return (KernelTensors){
        .definition = definition,
        .inlined = inlined,
        .touched = NEW_ARRAY(arena, TensorList, program->op_count),
        .marks = NEW_ARRAY(arena, int, program->tensor_count),
        .room = NEW_ARRAY(arena, int, program->tensor_count),
    };
}

bool tensors_fit(KernelTensors *tensors, int kernel, const TensorOp *op)
{
    return touch_with(tensors, kernel, op).count <= MAX_KERNEL_TENSORS;
}

void tensors_add(Arena *arena, KernelTensors *tensors, int kernel, const TensorOp *op)
{
    TensorList found = touch_with(tensors, kernel, op);
    if (found.count > MAX_KERNEL_TENSORS)
        diag_fatal(op->loc, EXIT_INPUT,
                   "a definition reads at most %d tensors, saw %d; make a part of it an output, which is "
                   "read from memory",
                   MAX_KERNEL_TENSORS - 1, found.count - 1);
    size_t bytes = sizeof *found.ids * (size_t)found.count;
    found.ids = memcpy(arena_room(arena, bytes), found.ids,
                       bytes);   // seldom taken in: most kernels have a few definitions
    tensors->touched[kernel] = found;
}
