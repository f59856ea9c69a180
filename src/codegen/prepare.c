#include "codegen/prepare.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/hash.h"

/* By tensor id: a launch of a call reads it, and it is the same in every call. */
static bool *find_kept(Arena *arena, const Plan *plan, const Program *program)
{
    bool *kept = NEW_ARRAY(arena, bool, program->tensor_count);
    for (int k = plan->prepare_count; k < plan->count; k++) {
        const Fusion *fusion = plan->launches[k].fusion;
        for (int i = 0; i < fusion->input_count; i++)
            kept[fusion->inputs[i]->id] = tensor_is_fixed(fusion->inputs[i]);
    }
    return kept;
}

static int64_t take_place(Kernel *kernel, const Tensor *tensor)
{
    int64_t place = kernel->prepared_bytes;
    kernel->prepared_bytes += round_up(tensor_bytes(tensor), WEIGHT_ALIGNMENT);
    return place;
}

/* Weights that follow each other in the file and in `prepared` are one copy. */
static void add_copy(Kernel *kernel, int64_t from, int64_t to, int64_t bytes)
{
    LaunchCopy *last = kernel->copies + kernel->copy_count - 1;
    int64_t distance = kernel->copy_count ? round_up(last->bytes, WEIGHT_ALIGNMENT) : -1;
    if (distance >= 0 && last->from + distance == from && last->to + distance == to)
        last->bytes = distance + bytes;
    else
        kernel->copies[kernel->copy_count++] = (LaunchCopy){from, to, bytes};
}

static void place_weights(Arena *arena, Kernel *kernel, const bool *kept, int64_t *places)
{
    const Program *program = kernel->program;
    kernel->copies = NEW_ARRAY(arena, LaunchCopy, program->input_count);
    for (int i = 0; i < program->input_count; i++) {
        const Tensor *weight = program->inputs[i];
        if (!weight->is_weight || !kept[weight->id])
            continue;
        places[weight->id] = take_place(kernel, weight);
        add_copy(kernel, weight_offset(program, i), places[weight->id], tensor_bytes(weight));
    }
}

static void place_made(Kernel *kernel, const Plan *plan, const bool *kept, int64_t *places)
{
    for (int k = 0; k < plan->prepare_count; k++)
        for (int i = 0; i < plan->launches[k].fusion->output_count; i++) {
            int id = plan->launches[k].fusion->outputs[i]->id;
            if (kept[id])
                places[id] = take_place(kernel, kernel->program->tensors[id]);
        }
}

/* Equal texts have equal memory: the weights as they lie in the file, all that is made of them, and the places. */
static const char *layout_id(Arena *arena, const Kernel *kernel, const int64_t *places)
{
    enum { DIGITS = 16 };
    const Program *program = kernel->program;
    StrBuf text = strbuf_new(arena);
    for (int i = 0; i < program->tensor_count; i++) {
        const Tensor *tensor = program->tensors[i];
        if (tensor_is_fixed(tensor))
            strbuf_printf(&text, "%s %s %" PRId64 " at %" PRId64 "\n", tensor->name, dtype_info[tensor->dtype].name,
                          tensor_bytes(tensor), places[i]);
    }
    for (int i = 0; i < program->input_count; i++)
        if (program->inputs[i]->is_weight)
            strbuf_printf(&text, "%s at %" PRId64 "\n", program->inputs[i]->name, weight_offset(program, i));
    for (int i = 0; i < program->op_count; i++)
        if (program->ops[i]->out->is_prepared)
            op_print(&text, program->ops[i]);
    return arena_printf(arena, "%.*s", DIGITS, hash_of(arena, text.text, text.length));
}

int64_t *prepare_place(Arena *arena, const Plan *plan, Kernel *kernel)
{
    const Program *program = kernel->program;
    int64_t *places = NEW_ARRAY(arena, int64_t, program->tensor_count);
    for (int i = 0; i < program->tensor_count; i++)
        places[i] = -1;
    if (!program_has_weights(program))
        return places;
    const bool *kept = find_kept(arena, plan, program);
    kernel->prepare_count = plan->prepare_count;
    kernel->weight_bytes = program_weight_bytes(program);
    place_weights(arena, kernel, kept, places);
    place_made(kernel, plan, kept, places);
    kernel->prepared_id = layout_id(arena, kernel, places);
    return places;
}

/* Position of the weight among the inputs. */
static int weight_position(const Program *program, const Tensor *weight)
{
    int i = 0;
    while (program->inputs[i] != weight)
        i++;
    return i;
}

bool prepare_find(const Kernel *kernel, const int64_t *places, const Tensor *tensor, bool in_call, LaunchArg *arg)
{
    const Program *program = kernel->program;
    bool from_file = tensor->is_weight && !in_call;
    if (!from_file && places[tensor->id] < 0)
        return false;
    arg->buffer = buffer_beside(program, from_file ? BUFFER_WEIGHTS : BUFFER_PREPARED);
    arg->offset = from_file ? weight_offset(program, weight_position(program, tensor)) : places[tensor->id];
    return true;
}
