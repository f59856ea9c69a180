#include "front/onnx/fold.h"

#include "base/diag.h"
#include "front/lower.h"
#include "front/parse.h"
#include "ir/eval.h"

static double element(void *context, int input, int64_t index)
{
    const DraftText *text = context;
    const GraphValue *value = text->weights[input].value;
    return value->type == DTYPE_I64 ? (double)constant_int(value, index) : constant_real(value, index);
}

/* The elements, a bool a byte. */
static const void *store(Arena *arena, DType type, const Value *values, int64_t count)
{
    char *data = arena_alloc(arena, (size_t)(count * constant_bytes(type)));
    for (int64_t i = 0; i < count; i++)
        if (type == DTYPE_B1)
            data[i] = values[i].real != 0;
        else
            value_store(type, data, i, values[i]);
    return data;
}

static void settle(Arena *arena, GraphValue *value, const Value *values, int64_t count)
{
    bool uniform = value->uniform;
    const void *data = store(arena, value->type, values, count);
    if (!uniform)
        constant_set(value, value->type, value->shape, data);
    value->data = data;
    value->tensor = NULL;
}

static Program *lowered(Arena *scratch, const DraftText *text, const char *label)
{
    const Source *source = source_from_text(scratch, label, text->text, text->length);
    return lower(scratch, parse(scratch, lex(scratch, source)), NULL, 0);
}

static int add_outputs(Draft *draft, GraphValue *const *outputs, int count)
{
    int wanted = 0;
    for (int i = 0; i < count; i++)
        if (outputs[i] && !outputs[i]->data) {
            draft_output(draft, outputs[i]);
            wanted++;
        }
    return wanted;
}

static bool spend(Evaluator *evaluator, const Program *program, double *left)
{
    double work = 0;
    for (int i = 0; i < program->output_count; i++)
        work += evaluator_work(evaluator, program->outputs[i], true);
    if (work > *left)
        return false;
    *left -= work;
    return true;
}

bool fold(Arena *arena, Draft *draft, GraphValue *const *outputs, int count, const char *label, double *left)
{
    if (!add_outputs(draft, outputs, count))
        return true;
    DraftText text = draft_finish(draft);
    Arena *scratch = arena_new();
    Program *program = lowered(scratch, &text, label);
    Evaluator *evaluator = evaluator_new(scratch, program, (InputSource){element, &text});
    bool spent = spend(evaluator, program, left);
    for (int i = 0, next = 0; i < count && spent; i++)
        if (outputs[i] && !outputs[i]->data) {
            int64_t elements = outputs[i]->uniform ? 1 : shape_count(&outputs[i]->shape);
            Value *values = NEW_ARRAY(scratch, Value, elements);
            evaluate_range(evaluator, program->outputs[next++], 0, elements, values);
            settle(arena, outputs[i], values, elements);
        }
    evaluator_free(evaluator);
    arena_free(scratch);
    return spent;
}
