#include <string.h>

#include "base/diag.h"
#include "base/nearest.h"
#include "front/foreign.h"
#include "front/lower_parts.h"

// ---- the table ----

static uint32_t hash(const char *name)   // FNV-1a
{
    uint32_t h = 2166136261u;
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 16777619u;
    return h;
}

/* At least twice as many as there are names, and a power of two. */
static uint32_t bucket_count(const Lower *lower)
{
    uint32_t count = 16;
    while (count < 2 * (uint32_t)lower->ast->statement_count)
        count *= 2;
    return count;
}

static bool bucket_holds(const Lower *lower, int position, const char *name)
{
    return strcmp(lower->symbols[position - 1].statement->name, name) == 0;
}

/* Where the name is, or where it would go. */
static int *bucket_of(const Lower *lower, const char *name)
{
    uint32_t mask = bucket_count(lower) - 1;
    uint32_t i = hash(name) & mask;
    while (lower->buckets[i] && !bucket_holds(lower, lower->buckets[i], name))
        i = (i + 1) & mask;
    return &lower->buckets[i];
}

Symbol *symbol_find(const Lower *lower, const char *name)
{
    int position = *bucket_of(lower, name);
    return position ? &lower->symbols[position - 1] : NULL;
}

static void declare(Lower *lower, const AstStatement *statement)
{
    int *bucket = bucket_of(lower, statement->name);
    if (*bucket) {
        lower->symbols[*bucket - 1].failed = true;   // who reads it may mean either
        LineColumn first = source_line_column(lower->symbols[*bucket - 1].statement->name_loc);
        reject(statement->name_loc, "'%s' is already defined in line %d", statement->name,
               first.line);
    }
    lower->symbols[lower->symbol_count].statement = statement;
    *bucket = ++lower->symbol_count;
}

/* An `output` may stand before or after the definition it names. */
static void bind_output(Lower *lower, const AstStatement *output)
{
    Symbol *symbol = symbol_find(lower, output->name);
    if (!symbol)
        name_unknown(lower, "tensor", output->name, output->name_loc);
    if (symbol->statement->kind == STATEMENT_PARAM)
        reject(output->name_loc, "'%s' is a param; only a defined tensor can be an output",
               output->name);
    if (symbol->statement->kind == STATEMENT_INPUT || symbol->statement->kind == STATEMENT_WEIGHT)
        reject(output->name_loc, "'%s' is %s and cannot be an output too; define a copy of it", output->name,
               symbol->statement->kind == STATEMENT_INPUT ? "an input" : "a weight");
    if (symbol->output)
        reject(output->name_loc, "'%s' is already an output", output->name);
    symbol->output = output;
}

typedef struct Naming {
    Lower *lower;
    const AstStatement *statement;
} Naming;

static void attempt_name(void *context)
{
    const Naming *naming = context;
    if (naming->statement->kind == STATEMENT_OUTPUT)
        bind_output(naming->lower, naming->statement);
    else
        declare(naming->lower, naming->statement);
}

void symbols_declare(Lower *lower)
{
    const Ast *ast = lower->ast;
    lower->symbols = NEW_ARRAY(lower->arena, Symbol, ast->statement_count);
    lower->buckets = NEW_ARRAY(lower->arena, int, bucket_count(lower));
    for (int outputs = 0; outputs < 2; outputs++)
        for (int i = 0; i < ast->statement_count; i++)
            if ((ast->statements[i].kind == STATEMENT_OUTPUT) == (outputs == 1))
                diag_attempt(attempt_name, &(Naming){lower, &ast->statements[i]});
}

// ---- suggestions ----

const char *name_suggestion(const Lower *lower, const char *name, bool only_params)
{
    Nearest nearest = nearest_to(name);
    for (int i = 0; i < lower->symbol_count; i++)
        if (!only_params || lower->symbols[i].statement->kind == STATEMENT_PARAM)
            nearest_try(&nearest, lower->symbols[i].statement->name);
    return nearest_suggestion(lower->arena, &nearest);
}

/* Where nothing is spelled alike: what such a name is made by. */
static const char *mend_of_unknown(const Lower *lower, const char *what, const char *name)
{
    const char *value = foreign_value(lower->arena, name), *near = name_suggestion(lower, name, false);
    Op op;
    if (value)
        return arena_printf(lower->arena, "; %s", value);
    if (*near)
        return near;
    if (lex_function(name, &op))   // a contextual one
        return arena_printf(lower->arena, "; the operand of a function stands in parentheses: %s(a)", name);
    if (strcmp(what, "tensor") == 0)
        return arena_printf(lower->arena, "; it needs a definition, %s[...] = ..., or an input statement",
                            name);
    if (strcmp(what, "index") == 0)
        return arena_printf(
            lower->arena, "; an index variable stands on the left side, or in a reduction like sum[%s](...)",
            name);
    return arena_printf(lower->arena, "; a number with a name is a param: write param %s = 64 above", name);
}

void name_unknown(const Lower *lower, const char *what, const char *name, Loc loc)
{
    for (const AstGap *gap = lower->ast->gaps; gap; gap = gap->next)
        for (const Token *token = gap->first; token < gap->end; token++)
            if (token->kind == TOKEN_NAME && strcmp(token->text, name) == 0)
                diag_abandon();
    reject(loc, "unknown %s '%s'%s", what, name, mend_of_unknown(lower, what, name));
}

// ---- looking up ----

int scope_find(const IndexScope *scope, const char *name)
{
    for (int a = scope->count - 1; a >= 0; a--)
        if (strcmp(scope->names[a], name) == 0)
            return a;
    return -1;
}

static void check_ready(const Symbol *symbol, Loc loc)
{
    if (symbol->failed)
        diag_abandon();
    if (!symbol->ready)
        reject(loc, "'%s' is not defined yet: a statement reads only what stands above it",
               symbol->statement->name);
}

const Symbol *tensor_symbol(const Lower *lower, const char *name, Loc loc)
{
    const Symbol *symbol = symbol_find(lower, name);
    if (!symbol && scope_find(&lower->scope, name) >= 0)
        reject(loc, "'%s' is an index variable, not a tensor", name);
    if (!symbol)
        name_unknown(lower, "tensor", name, loc);
    if (symbol->statement->kind == STATEMENT_PARAM)
        reject(loc, "'%s' is a param, not a tensor", name);
    check_ready(symbol, loc);
    return symbol;
}

Number param_find(const Lower *lower, const char *name, Loc loc)
{
    const Symbol *symbol = symbol_find(lower, name);
    if (!symbol)
        name_unknown(lower, "name", name, loc);
    if (symbol->statement->kind != STATEMENT_PARAM)
        reject(loc, "'%s' is a tensor; an element of it is written %s[...]", name, name);
    check_ready(symbol, loc);
    return symbol->value;
}
