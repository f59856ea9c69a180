#include "front/lower.h"

#include <inttypes.h>

#include "base/checked.h"
#include "base/diag.h"
#include "front/lower_parts.h"
#include "ir/exact_type.h"

// ---- statements ----

static void lower_param(Lower *lower, Symbol *symbol)
{
    if (!symbol->overridden)
        symbol->value = lower_const(lower, symbol->statement->value);
}

/* ("input" | "weight") NAME "[" [ const { "," const } ] "]" ":" DTYPE */
static void lower_input(Lower *lower, Symbol *symbol)
{
    const AstStatement *statement = symbol->statement;
    Tensor *tensor = tensor_new(lower, statement->name, statement->type, statement->name_loc);
    tensor->role = ROLE_INPUT;
    tensor->is_weight = statement->kind == STATEMENT_WEIGHT;
    for (int d = 0; d < statement->count; d++) {
        const AstExpr *size = statement->shape[d];
        tensor_add_dimension(tensor, lower_extent(lower, size), size->loc);
    }
    symbol->tensor = tensor;
    lower->program->inputs[lower->program->input_count++] = tensor;
}

/* "view" NAME "[" [ const { "," const } ] "]" "=" NAME     a view of a view is one of the tensor */
static void lower_view(Lower *lower, Symbol *symbol)
{
    const AstStatement *statement = symbol->statement;
    const Symbol *of = tensor_symbol(lower, statement->viewed, statement->viewed_loc);
    Tensor *seen = NEW(lower->arena, Tensor);
    *seen = (Tensor){.name = statement->name, .dtype = of->tensor->dtype, .is_weight = of->tensor->is_weight,
                      .loc = statement->name_loc};
    for (int d = 0; d < statement->count; d++)
        tensor_add_dimension(seen, lower_extent(lower, statement->shape[d]), statement->shape[d]->loc);
    if (tensor_elements(seen) != tensor_elements(of->tensor))
        reject(statement->name_loc,
               "'%s' has %" PRId64 " elements and '%s' has %" PRId64 ": a view has as many", statement->name,
               tensor_elements(seen), statement->viewed, tensor_elements(of->tensor));
    symbol->tensor = seen;
    symbol->viewed = of->viewed ? of->viewed : of->tensor;
    tensor_add_view(lower->arena, symbol->viewed, seen);
}

typedef struct Attempt {
    Lower *lower;
    Symbol *symbol;
} Attempt;

static void attempt_symbol(void *context)
{
    Lower *lower = ((Attempt *)context)->lower;
    Symbol *symbol = ((Attempt *)context)->symbol;
    switch (symbol->statement->kind) {
    case STATEMENT_PARAM: lower_param(lower, symbol); break;
    case STATEMENT_INPUT: case STATEMENT_WEIGHT: lower_input(lower, symbol); break;
    case STATEMENT_VIEW: lower_view(lower, symbol); break;
    case STATEMENT_DEFINITION: lower_definition(lower, symbol); break;
    case STATEMENT_OUTPUT: break;   // bound to its definition before
    }
    symbol->ready = true;
}

static void lower_statement(Lower *lower, Symbol *symbol)
{
    symbol->failed |=
        !diag_attempt(attempt_symbol, &(Attempt){lower, symbol});   // or there are two of its name
    lower->scope.count = lower->index_depth = 0;                                  // of one that failed
}

/* The inputs in the order of their statements, then the weights in the order of theirs. */
static void order_inputs(Lower *lower)
{
    Program *program = lower->program;
    Tensor **ordered = NEW_ARRAY(lower->arena, Tensor *, program->input_count);
    int count = 0;
    for (int weights = 0; weights < 2; weights++)
        for (int i = 0; i < program->input_count; i++)
            if (program->inputs[i]->is_weight == (weights == 1))
                ordered[count++] = program->inputs[i];
    program->inputs = ordered;
}

static void check_output_type(const Symbol *view)
{
    const AstStatement *output = view->output;
    if (output->has_type && output->type != view->tensor->dtype)
        reject(output->type_loc, "'%s' is a view of %s elements; its output says %s", output->name,
               dtype_info[view->tensor->dtype].name, dtype_info[output->type].name);
}

/* A view of a definition that is no other output is that definition, stored; of anything else it is a
   copy. */
static Tensor *output_tensor(Lower *lower, const Symbol *symbol)
{
    Tensor *tensor = symbol->viewed ? symbol->viewed : symbol->tensor;
    if (symbol->viewed) {
        check_output_type(symbol);
        if (tensor->role != ROLE_TEMPORARY || symbol_find(lower, tensor->name)->output)
            return lower_view_copy(lower, symbol);
        tensor->shown = symbol->tensor;
    }
    tensor->role = ROLE_OUTPUT;
    return tensor;
}

static void collect_outputs(Lower *lower)
{
    Program *program = lower->program;
    for (int i = 0; i < lower->ast->statement_count; i++) {
        const AstStatement *statement = &lower->ast->statements[i];
        if (statement->kind != STATEMENT_OUTPUT)
            continue;
        program->outputs[program->output_count++] = output_tensor(lower, symbol_find(lower, statement->name));
    }
    if (program->output_count == 0)
        reject(lower->ast->end, "the program has no output; add `output NAME`");
}

// ---- what no output needs goes ----

static void number_tensors(Program *program)
{
    for (int i = 0; i < program->tensor_count; i++)
        program->tensors[i]->id = i;
}

static void mark_read(Expr *expr, void *context)
{
    bool *needed = context;
    if (expr_tensor(expr))
        needed[expr_tensor(expr)->id] = true;
}

/* Backwards from the outputs: what a needed op reads is needed. */
static bool *find_needed(Lower *lower)
{
    Program *program = lower->program;
    bool *needed = NEW_ARRAY(lower->arena, bool, program->tensor_count);
    for (int i = 0; i < program->output_count; i++)
        needed[program->outputs[i]->id] = true;
    for (int i = program->op_count - 1; i >= 0; i--)
        if (needed[program->ops[i]->out->id])
            expr_visit(program->ops[i]->body, mark_read, needed);
    return needed;
}

static void warn_unneeded(const Lower *lower, const bool *needed)
{
    for (int i = 0; i < lower->symbol_count; i++) {
        const Tensor *tensor = lower->symbols[i].tensor;
        if (!tensor || lower->symbols[i].viewed || needed[tensor->id])
            continue;
        if (tensor->role == ROLE_INPUT)
            diag_warning(tensor->loc, "no output needs '%s'; it stays an argument", tensor->name);
        else
            diag_warning(tensor->loc, "no output needs '%s'; it is left out", tensor->name);
    }
}

/* What an index is made of is drawn like one: j[t] = idx[t] + 1, then x[j[t]]. */
static void indexes_visit(Expr *expr, void *context)
{
    const int64_t size = *(const int64_t *)context;
    Tensor *tensor = expr_tensor(expr);
    if (tensor && !dtype_info[tensor->dtype].is_real && tensor->dtype != DTYPE_B1)
        tensor->indexes = larger(tensor->indexes, size);
}

static void spread_indexes(Program *program)
{
    for (int i = program->op_count - 1; i >= 0; i--)
        if (program->ops[i]->out->indexes)
            expr_visit(program->ops[i]->body, indexes_visit, &program->ops[i]->out->indexes);
}

static void keep_needed(Lower *lower)
{
    Program *program = lower->program;
    number_tensors(program);
    bool *needed = find_needed(lower);
    warn_unneeded(lower, needed);
    int ops = 0, tensors = 0;
    for (int i = 0; i < program->op_count; i++)
        if (needed[program->ops[i]->out->id])
            program->ops[ops++] = program->ops[i];
    for (int i = 0; i < program->tensor_count; i++)
        if (needed[i] || program->tensors[i]->role == ROLE_INPUT)
            program->tensors[tensors++] = program->tensors[i];
    program->op_count = ops;
    program->tensor_count = tensors;
    number_tensors(program);
}

/* A tensor and an op for each statement and each reduction are enough. */
static Program *program_new(Arena *arena, const Ast *ast)
{
    int most = ast->statement_count + ast->reduction_count;
    Program *program = NEW(arena, Program);
    program->tensors = NEW_ARRAY(arena, Tensor *, most);
    program->ops = NEW_ARRAY(arena, TensorOp *, most);
    program->inputs = NEW_ARRAY(arena, Tensor *, ast->statement_count);
    program->outputs = NEW_ARRAY(arena, Tensor *, ast->statement_count);
    return program;
}

Program *lower(Arena *arena, const Ast *ast, const ParamOverride *overrides, int override_count)
{
    Lower lower = {.arena = arena, .ast = ast, .program = program_new(arena, ast)};
    symbols_declare(&lower);
    override_params(&lower, overrides, override_count);
    for (int i = 0; i < lower.symbol_count; i++)
        lower_statement(&lower, &lower.symbols[i]);
    diag_finish();
    order_inputs(&lower);
    collect_outputs(&lower);
    keep_needed(&lower);
    spread_indexes(lower.program);
    keep_exact_types(lower.program);
    return lower.program;
}
