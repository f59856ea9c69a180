// What a launch that is proven alone is judged by: the reference, on what it finds in memory.
#include "prove/verify_parts.h"

Evaluator *verify_evaluator(const Proof *proof, Arena *arena, const Program *program)
{
    Evaluator *evaluator = evaluator_new(arena, program, proof->source);
    evaluator_allow(evaluator, proof->options->math);
    return evaluator;
}

/* An evaluator of the plan that takes stand-ins for what is given. */
static Evaluator *evaluator_of_launch(const Proof *proof)
{
    const Program *program = proof->kernel->program;
    Evaluator *evaluator = verify_evaluator(proof, proof->told.arena, program);
    for (int i = 0; i < program->tensor_count; i++)
        if (proof->told.given[i])
            evaluator_replace(evaluator, program->tensors[i], verify_table_source(proof->stand_ins.tables[i]),
                              0);
    return evaluator;
}

static bool any(const bool *list, int count)
{
    for (int i = 0; i < count; i++)
        if (list[i])
            return true;
    return false;
}

static void find_estimated(Proof *proof)
{
    for (int i = 0; i < proof->launch->arg_count; i++) {
        const LaunchArg *arg = &proof->launch->args[i];
        if (!arg->written)
            proof->told.estimated[arg->tensor->id] = verify_is_too_costly(proof, arg->tensor);
    }
}

/* The plan's evaluators, or others of the launch's own, where it does not go on from right values. */
void verify_tell(Proof *proof)
{
    const Program *program = proof->kernel->program;
    int count = program->tensor_count;
    Told *told = &proof->told;
    *told = (Told){.arena = arena_new(), .reference = proof->plan, .guess = proof->guess};
    told->given = verify_given(proof, told->arena);
    told->made = NEW_ARRAY(told->arena, void *, count);
    told->estimated = NEW_ARRAY(told->arena, bool, count);
    if (any(told->given, count)) {
        told->reference = evaluator_of_launch(proof);
        told->guess = evaluator_of_launch(proof);
        evaluator_estimate(told->guess);
    }
    find_estimated(proof);
    if (!any(told->estimated, count))
        return;
    if (told->reference == proof->plan)
        told->reference = evaluator_of_launch(proof);
    for (int i = 0; i < count; i++)
        if (told->estimated[i])
            evaluator_give(told->reference, program->tensors[i], told->guess);
    proof->report->estimated = true;
}

void verify_forget(Proof *proof)
{
    Told *told = &proof->told;
    if (told->reference != proof->plan)
        evaluator_free(told->reference);
    if (told->guess != proof->guess)
        evaluator_free(told->guess);
    arena_free(told->arena);
    proof->launch = NULL;
}
