// Expressions, one function for each rule of the grammar.
#include <ctype.h>
#include <math.h>

#include "front/parse_parts.h"

// ---- nodes ----

static AstExpr *new_expr(Parser *p, AstKind kind, Loc loc)
{
    if (++p->nodes > MAX_NODES)
        reject(loc, "a statement may hold at most %d operations and operands; split it", MAX_NODES);
    AstExpr *expr = NEW(p->arena, AstExpr);
    expr->kind = kind;
    expr->loc = loc;
    return expr;
}

static void adopt(AstExpr *parent, const AstExpr *child)
{
    if (parent->depth <= child->depth)
        parent->depth = child->depth + 1;
    if (parent->depth > MAX_TREE_DEPTH)
        reject(parent->loc, "an expression has at most %d operations within each other; split it",
               MAX_TREE_DEPTH);
}

static Op op_of(const char *spelling, int operands)
{
    for (int op = 0; op < OP_COUNT; op++)
        if (op_info[op].operands == operands && strcmp(op_info[op].spelling, spelling) == 0)
            return (Op)op;
    __builtin_unreachable();
}

static AstExpr *binary(Parser *p, AstExpr *left, AstExpr *(*operand)(Parser *p))
{
    Op op = op_of(p->token++->text, 2);
    AstExpr *right = operand(p);
    AstExpr *expr = new_expr(p, AST_APPLY, loc_between(left->loc, right->loc));
    expr->apply.op = op;
    expr->apply.operands[0] = left;
    expr->apply.operands[1] = right;
    adopt(expr, left);
    adopt(expr, right);
    return expr;
}

// ---- rules ----

/* index = NAME [ ":" const ] */
static AstIndex index_variable(Parser *p)
{
    const Token *variable = name(p, "an index variable");
    AstIndex index = {.name = variable->text, .loc = variable->loc};
    if (take(p, ":"))
        index.extent = parse_sum(p);
    return index;
}

/* index { "," index } "]" */
AstIndex *parse_indices(Parser *p, int limit, int *count)
{
    AstIndex *indices = NEW_ARRAY(p->arena, AstIndex, limit);
    *count = 0;
    do {
        if (*count == limit)
            reject(p->token->loc, "more than %d index variables", limit);
        indices[(*count)++] = index_variable(p);
    } while (take(p, ","));
    expect_bracket(p, "]", "after the index variables");
    return indices;
}

/* [ sum { "," sum } ] "]"     the dimensions of an input, or the affine indices of an access */
AstExpr **parse_list(Parser *p, const char *where, int *count)
{
    AstExpr **items = NEW_ARRAY(p->arena, AstExpr *, MAX_RANK);
    *count = 0;
    if (take(p, "]"))
        return items;
    do {
        if (*count == MAX_RANK)
            reject(p->token->loc, "a tensor has at most %d dimensions", MAX_RANK);
        if (at(p, ":"))
            reject(p->token->loc, "a dimension is run through by an index variable, as j in x[i, j]");
        items[(*count)++] = parse_sum(p);
    } while (take(p, ","));
    if (at(p, ":"))
        reject(p->token->loc,
               "there are no slices; j:4 on the left and x[j + 2] take the elements from 2 to 5");
    expect_bracket(p, "]", where);
    return items;
}

/* access = NAME "[" [ affine { "," affine } ] "]" */
static AstExpr *access_expr(Parser *p)
{
    const Token *tensor = name(p, "a tensor");
    expect(p, "[", "after the tensor's name");
    int count;
    AstExpr **indices = parse_list(p, "after the indices", &count);
    const char *foreign = at(p, "(") ? foreign_function(p->arena, tensor->text) : NULL;
    Op op;
    if (at(p, "(") && lex_function(tensor->text, &op))
        reject(tensor->loc, "'%s' is a function and no reduction; write %s(a), without [ ]", tensor->text,
               tensor->text);
    if (at(p, "("))
        reject(tensor->loc, "unknown reduction '%s'; %s", tensor->text,
               foreign ? foreign : "it is one of sum, max, min, prod");
    if (at(p, "["))
        reject(p->token->loc, "all indices stand in one pair of brackets, like %s[i, j]", tensor->text);
    AstExpr *access = new_expr(p, AST_ACCESS, loc_since(p, tensor->loc));
    access->access.name = tensor->text;
    access->access.indices = indices;
    access->access.count = count;
    for (int i = 0; i < count; i++)
        adopt(access, indices[i]);
    return access;
}

/* reduction = ("sum" | "max" | "min" | "prod") "[" index { "," index } "]" "(" expr ")" */
static AstExpr *reduction(Parser *p, Reduce reduce)
{
    Loc start = p->token++->loc;
    expect(p, "[", "and the index variables of the reduction");
    int count;
    AstIndex *axes = parse_indices(p, MAX_AXES, &count);
    expect(p, "(", "before what is reduced");
    AstExpr *body = parse_expr(p);
    expect_bracket(p, ")", "after what is reduced");
    AstExpr *result = new_expr(p, AST_REDUCTION, loc_since(p, start));
    result->reduction.reduce = reduce;
    result->reduction.axes = axes;
    result->reduction.count = count;
    result->reduction.body = body;
    adopt(result, body);
    p->reductions++;
    return result;
}

/* "pad" "(" access "," const ")" */
static AstExpr *pad(Parser *p)
{
    Loc start = p->token++->loc;
    expect(p, "(", "after 'pad'");
    AstExpr *access = access_expr(p);
    expect(p, ",", "and the padding constant after the padded element");
    AstExpr *otherwise = parse_sum(p);
    expect_bracket(p, ")", "after the padding constant");
    AstExpr *result = new_expr(p, AST_PAD, loc_since(p, start));
    result->pad.access = access;
    result->pad.otherwise = otherwise;
    adopt(result, access);
    adopt(result, otherwise);
    return result;
}

/* "cast" "(" expr "," DTYPE ")" */
static AstExpr *cast(Parser *p)
{
    Loc start = p->token++->loc;
    expect(p, "(", "after 'cast'");
    AstExpr *body = parse_expr(p);
    expect(p, ",", "and an element type after the value");
    DType to = dtype(p);
    expect_bracket(p, ")", "after the element type");
    AstExpr *result = new_expr(p, AST_CAST, loc_since(p, start));
    result->cast.body = body;
    result->cast.to = to;
    adopt(result, body);
    return result;
}

/* FUNCTION "(" expr { "," expr } ")" */
static AstExpr *function(Parser *p, Op op)
{
    const Token *word = p->token++;
    AstExpr *operands[MAX_OPERANDS] = {0};
    int count = 0;
    expect(p, "(", arena_printf(p->arena, "after '%s'", word->text));
    do {
        AstExpr *operand = parse_expr(p);
        if (count < MAX_OPERANDS)
            operands[count] = operand;
        count++;
    } while (take(p, ","));
    expect_bracket(p, ")", "after the operands");
    AstExpr *result = new_expr(p, AST_APPLY, loc_since(p, word->loc));
    if (count != op_info[op].operands)
        reject(result->loc, "'%s' takes %d operand%s, saw %d", word->text, op_info[op].operands,
               op_info[op].operands == 1 ? "" : "s", count);
    result->apply.op = op;
    for (int i = 0; i < count; i++)
        adopt(result, result->apply.operands[i] = operands[i]);
    return result;
}

static AstExpr *number(Parser *p, Number value)
{
    AstExpr *result = new_expr(p, AST_NUMBER, p->token->loc);
    result->number = value;
    p->token++;
    return result;
}

/* "(" expr ")" */
static AstExpr *parentheses(Parser *p)
{
    Loc start = p->token++->loc;
    AstExpr *inner = parse_expr(p);
    expect_bracket(p, ")", "after the expression");
    inner->loc = loc_since(p, start);
    return inner;
}

static void refuse_conversion(const Parser *p)
{
    DType type;
    const char *word = p->token->text;
    if (token_is_dtype(p->token, &type))
        reject(p->token->loc, "'%s' is an element type; a conversion is cast(a, %s)", word, word);
}

static _Noreturn void unknown_function(const Parser *p)
{
    refuse_conversion(p);
    const Token *function = p->token;
    const char *foreign = foreign_function(p->arena, function->text);
    if (foreign)
        reject(function->loc, "unknown function '%s'; %s", function->text, foreign);
    reject(function->loc, "unknown function '%s'%s", function->text,
           lex_suggestion(p->arena, function->text, false));
}

/* NAME | access | FUNCTION "(" …, a contextual one */
static AstExpr *name_or_access(Parser *p)
{
    const Token *next = p->token + 1;
    bool symbol = next->kind == TOKEN_SYMBOL;
    if (symbol && strcmp(next->text, "[") == 0)
        return access_expr(p);
    bool call = symbol && strcmp(next->text, "(") == 0;
    Op op;
    if (call && lex_function(p->token->text, &op))
        return function(p, op);
    if (call)
        unknown_function(p);
    if (next->kind == TOKEN_WRONG && next->loc.source->text[next->loc.offset] == '.')
        diag_abandon();   // torch.exp(x[i]): that was said of the point
    AstExpr *result = new_expr(p, AST_NAME, p->token->loc);
    result->name = p->token++->text;
    return result;
}

/* A reserved word that starts a primary: a reduction, "inf", "pi", "pad", "cast" or a FUNCTION. */
static AstExpr *word_primary(Parser *p)
{
    const char *word = p->token->text;
    const Token *next = p->token + 1;
    bool call = next->kind == TOKEN_SYMBOL && strcmp(next->text, "(") == 0;
    Op op;
    bool is_function = lex_function(p->token->text, &op);
    if (call && is_function)   // max and min are functions and reductions
        return function(p, op);
    for (int reduce = REDUCE_SUM; reduce <= REDUCE_PROD; reduce++)
        if (strcmp(word, reduce_name[reduce]) == 0)
            return reduction(p, (Reduce)reduce);
    if (is_function)
        return function(p, op);
    if (at(p, "inf"))
        return number(p, (Number){.is_real = true, .real = INFINITY});
    if (at(p, "pi"))
        return number(p, (Number){.is_real = true, .real = M_PI});
    if (at(p, "pad"))
        return pad(p);
    if (at(p, "cast"))
        return cast(p);
    if (call)
        refuse_conversion(p);
    expected(p, "an expression");
}

/* primary = NUMBER | "inf" | "pi" | NAME | access | reduction | "(" expr ")"
           | "pad" "(" … | "cast" "(" … | FUNCTION "(" … */
static AstExpr *primary(Parser *p)
{
    if (p->nesting > MAX_NESTING)
        reject(p->token->loc, "brackets may be nested at most %d deep; split the expression",
               MAX_NESTING);
    abandon_taken(p);
    p->nesting++;
    AstExpr *result = NULL;
    if (p->token->kind == TOKEN_NUMBER)
        result = number(p, p->token->number);
    else if (p->token->kind == TOKEN_NAME)
        result = name_or_access(p);
    else if (p->token->kind == TOKEN_WORD)
        result = word_primary(p);
    else if (at(p, "("))
        result = parentheses(p);
    else
        expected(p, "an expression");
    p->nesting--;
    return result;
}

/* unary = { "-" | "!" } primary     a loop, so that a thousand signs are no recursion */
static AstExpr *unary(Parser *p)
{
    const Token *first = p->token;
    while (at(p, "-") || at(p, "!"))
        p->token++;
    const Token *sign = p->token;
    AstExpr *result = primary(p);
    while (sign-- > first) {
        AstExpr *operand = result;
        result = new_expr(p, AST_APPLY, loc_between(sign->loc, operand->loc));
        result->apply.op = op_of(sign->text, 1);
        result->apply.operands[0] = operand;
        adopt(result, operand);
    }
    return result;
}

/* product = unary { ("*" | "/" | "%") unary } */
static AstExpr *product(Parser *p)
{
    AstExpr *left = unary(p);
    while (at(p, "*") || at(p, "/") || at(p, "%"))
        left = binary(p, left, unary);
    return left;
}

/* sum = product { ("+" | "-") product }     also `const` and `affine`, which `lower` folds */
AstExpr *parse_sum(Parser *p)
{
    AstExpr *left = product(p);
    while (at(p, "+") || at(p, "-"))
        left = binary(p, left, product);
    return left;
}

static bool at_comparison(const Parser *p)
{
    return at(p, "<") || at(p, "<=") || at(p, ">") || at(p, ">=") || at(p, "==") || at(p, "!=");
}

/* compare = sum [ ("<" | "<=" | ">" | ">=" | "==" | "!=") sum ] */
static AstExpr *compare(Parser *p)
{
    AstExpr *left = parse_sum(p);
    if (!at_comparison(p))
        return left;
    left = binary(p, left, parse_sum);
    if (at_comparison(p))
        reject(p->token->loc, "comparisons do not chain; write a %s b && b %s c",
               op_info[left->apply.op].spelling, p->token->text);
    return left;
}

/* and = compare { "&&" compare } */
static AstExpr *and_expr(Parser *p)
{
    AstExpr *left = compare(p);
    while (at(p, "&&"))
        left = binary(p, left, compare);
    return left;
}

/* expr = and { "||" and } */
AstExpr *parse_expr(Parser *p)
{
    AstExpr *left = and_expr(p);
    while (at(p, "||"))
        left = binary(p, left, and_expr);
    return left;
}
