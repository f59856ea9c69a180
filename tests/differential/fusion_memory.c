#include <string.h>

#include "differential/fusion_eval.h"

static Storage storage_new(Arena *arena, const Tensor *tensor)
{
    int64_t count = tensor_elements(tensor);
    return (Storage){tensor, count, NEW_ARRAY(arena, Scalar, count), NEW_ARRAY(arena, bool, count), NULL};
}

Memory *memory_new(Arena *arena, const Program *program)
{
    Memory *memory = NEW(arena, Memory);
    *memory = (Memory){
        .arena = arena, .program = program, .tensors = NEW_ARRAY(arena, Storage, program->tensor_count)};
    for (int i = 0; i < program->tensor_count; i++)
        memory->tensors[i].tensor = program->tensors[i];
    return memory;
}

static Storage *other_storage(Memory *memory, const Tensor *tensor)
{
    Storage *storage = memory->others;
    while (storage && storage->tensor != tensor)
        storage = storage->next;
    if (!storage) {
        storage = NEW(memory->arena, Storage);
        *storage = storage_new(memory->arena, tensor);
        storage->next = memory->others;
        memory->others = storage;
    }
    return storage;
}

Storage *memory_of(Memory *memory, const Tensor *tensor)
{
    if (tensor->id < 0)
        return other_storage(memory, tensor);
    Storage *storage = &memory->tensors[tensor->id];
    if (!storage->elements)
        *storage = storage_new(memory->arena, storage->tensor);
    return storage;
}

static void storage_forget(Storage *storage)
{
    if (storage->written)
        memset(storage->written, false, sizeof(bool) * (size_t)storage->count);
}

void memory_forget(Memory *memory)
{
    for (int i = 0; i < memory->program->tensor_count; i++)
        if (memory->tensors[i].tensor->role != ROLE_INPUT)
            storage_forget(&memory->tensors[i]);
    for (Storage *other = memory->others; other; other = other->next)
        storage_forget(other);
}
