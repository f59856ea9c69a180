#include "ir/fuse_tensors.h"

#include <string.h>

#include "base/diag.h"

typedef struct Touch {
    const KernelTensors *tensors;
    bool *touched;
    int count;
} Touch;

static void touch(Touch *touch, int id)
{
    touch->count += !touch->touched[id];
    touch->touched[id] = true;
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

/* What the kernel touches with the definition. */
static Touch touch_with(Arena *arena, const KernelTensors *tensors, int kernel, const TensorOp *op)
{
    Touch search = {.tensors = tensors, .touched = NEW_ARRAY(arena, bool, tensors->tensor_count)};
    const bool *before = tensors->touched[kernel];
    for (int id = 0; before && id < tensors->tensor_count; id++)
        if (before[id])
            touch(&search, id);
    touch(&search, op->out->id);
    expr_visit(op->body, touch_visit, &search);
    return search;
}

KernelTensors tensors_new(Arena *arena, const Program *program, const TensorOp *const *definition,
                          const bool *inlined)
{
    return (KernelTensors){
        .definition = definition,
        .inlined = inlined,
        .tensor_count = program->tensor_count,
        .touched = NEW_ARRAY(arena, bool *, program->op_count),
    };
}

bool tensors_fit(Arena *arena, const KernelTensors *tensors, int kernel, const TensorOp *op)
{
    return touch_with(arena, tensors, kernel, op).count <= MAX_KERNEL_TENSORS;
}

void tensors_add(Arena *arena, KernelTensors *tensors, int kernel, const TensorOp *op)
{
    Touch search = touch_with(arena, tensors, kernel, op);
    if (search.count > MAX_KERNEL_TENSORS)
        diag_fatal(op->loc, EXIT_INPUT,
                   "a definition reads at most %d tensors, saw %d; make a part of it an output, which is "
                   "read from memory",
                   MAX_KERNEL_TENSORS - 1, search.count - 1);
    tensors->touched[kernel] = search.touched;
}
