#include "front/parse.h"

#include "front/parse_parts.h"
#include "front/recover.h"

static AstStatement named(StatementKind kind, const Token *token)
{
    return (AstStatement){.kind = kind, .name = token->text, .name_loc = token->loc};
}

/* ":" DTYPE     after the ":" */
static void type_of(Parser *p, AstStatement *statement)
{
    statement->has_type = true;
    statement->type_loc = p->token->loc;
    statement->type = dtype(p);
}

/* "param" NAME "=" const */
static AstStatement param_statement(Parser *p)
{
    AstStatement statement = named(STATEMENT_PARAM, name(p, "the name of a param"));
    expect(p, "=", "and a constant after the param's name");
    statement.value = parse_sum(p);
    return statement;
}

/* "[" [ const { "," const } ] "]" ":" DTYPE     behind the name of an input or a weight */
static void brought(Parser *p, AstStatement *statement, const char *what)
{
    expect(p, "[", arena_printf(p->arena, "and the dimensions after the %s's name", what));
    statement->shape = parse_list(p, "after the dimensions", &statement->count);
    expect(p, ":", arena_printf(p->arena, "and an element type after the %s's dimensions", what));
    type_of(p, statement);
}

/* "input" NAME "[" … */
static AstStatement input_statement(Parser *p)
{
    AstStatement statement = named(STATEMENT_INPUT, name(p, "the name of an input"));
    brought(p, &statement, "input");
    return statement;
}

/* "weight" NAME "[" … */
static AstStatement weight_statement(Parser *p)
{
    AstStatement statement = named(STATEMENT_WEIGHT, name(p, "the name of a weight"));
    brought(p, &statement, "weight");
    return statement;
}

/* "view" NAME "[" const { "," const } "]" "=" NAME */
static AstStatement view_statement(Parser *p)
{
    AstStatement statement = named(STATEMENT_VIEW, name(p, "the name of a view"));
    expect(p, "[", "and the dimensions after the view's name");
    statement.shape = parse_list(p, "after the dimensions", &statement.count);
    expect(p, "=", "and the viewed tensor after the dimensions");
    const Token *viewed = name(p, "the tensor that is viewed");
    statement.viewed = viewed->text;
    statement.viewed_loc = viewed->loc;
    if (at(p, "["))
        reject(p->token->loc, "a view is of a whole tensor: write its name alone, without indices");
    return statement;
}

/* "output" NAME [ ":" DTYPE ] */
static AstStatement output_statement(Parser *p)
{
    AstStatement statement = named(STATEMENT_OUTPUT, name(p, "the name of an output"));
    if (take(p, ":"))
        type_of(p, &statement);
    return statement;
}

/* `view v = x`, `weight w : f32`; but `inptu x[8] : f32` is no definition of x */
static _Noreturn void unknown_statement(Parser *p, const Token *word)
{
    const char *operator = foreign_operator(p->arena, word->text);
    if (operator)   // `x[i] > 0 and x[i] < 1`
        reject(word->loc, "unexpected '%s'; %s", word->text, operator);
    if (lex_begins_statement(word->text))
        expected(p, arena_printf(p->arena, "'[' and the dimensions after the %s's name", word->text));
    reject(word->loc, "unknown statement '%s'%s", word->text, lex_suggestion(p->arena, word->text, true));
}

/* NAME "[" [ index { "," index } ] "]" [ ":" DTYPE ] "=" expr */
static AstStatement definition(Parser *p)
{
    const Token *first = p->token++;
    AstStatement statement = named(STATEMENT_DEFINITION, first);
    if (p->token->kind == TOKEN_NAME) {
        p->token++;
        unknown_statement(p, first);
    }
    expect(p, "[", "and index variables after the name of what is defined");
    if (!take(p, "]"))
        statement.indices = parse_indices(p, MAX_RANK, &statement.count);
    if (take(p, ":"))
        type_of(p, &statement);
    if ((at(p, "+") || at(p, "-") || at(p, "*") || at(p, "/") || at(p, "%")) &&
        strcmp(p->token[1].text, "=") == 0)
        reject(loc_between(p->token->loc, p->token[1].loc),
               "a tensor is defined once, by '='; what adds up over an index is a sum[k](...)");
    expect(p, "=", "after the left side of the definition");
    statement.value = parse_expr(p);
    return statement;
}

/* `view` and `weight` are words only before a NAME that "[" follows: `view[i] = …` defines a tensor */
static bool take_contextual(Parser *p, const char *word)
{
    bool taken = token_begins(p->token, word);
    p->token += taken;
    return taken;
}

/* statement = param | input | weight | view | output | definition */
static AstStatement statement(Parser *p)
{
    p->nodes = 0;
    if (take(p, "param"))
        return param_statement(p);
    if (take(p, "input"))
        return input_statement(p);
    if (take(p, "output"))
        return output_statement(p);
    if (take_contextual(p, "weight"))
        return weight_statement(p);
    if (take_contextual(p, "view"))
        return view_statement(p);
    if (p->token->kind == TOKEN_WORD && strcmp(p->token[1].text, "[") == 0)
        name(p, "the name of a tensor");   // max[i] = …
    if (p->token->kind != TOKEN_NAME)
        expected(p, "a statement (param, input, weight, view, output or NAME[...] = ...)");
    return definition(p);
}

static void attempt_statement(void *parser)
{
    Parser *p = parser;
    Loc first = p->token->loc;
    *p->statement = statement(p);
    Loc last = p->token[-1].loc;
    p->statement->loc = (Loc){first.source, first.offset, last.offset + last.length - first.offset};
}

static const AstGap *gap_new(Arena *arena, const Token *first, const Token *end, const AstGap *next)
{
    AstGap *gap = NEW(arena, AstGap);
    *gap = (AstGap){first, end, next};
    return gap;
}

/* A statement begins at a token of its own. */
static int most_statements(const Token *tokens)
{
    int count = 0;
    while (count < MAX_STATEMENTS && tokens[count].kind != TOKEN_END)
        count++;
    return count;
}

/* program = { statement } */
Ast *parse(Arena *arena, const Token *tokens)
{
    Parser parser = {.arena = arena, .token = tokens};
    Ast *ast = NEW(arena, Ast);
    ast->statements = NEW_ARRAY(arena, AstStatement, most_statements(tokens));
    while (parser.token->kind != TOKEN_END) {
        const Token *first = parser.token;
        if (ast->statement_count == MAX_STATEMENTS)
            reject(first->loc, "a program has at most %d statements", MAX_STATEMENTS);
        parser.statement = &ast->statements[ast->statement_count];
        if (diag_attempt(attempt_statement, &parser)) {
            ast->statement_count++;
            continue;
        }
        parser.token = recover(first, parser.token);
        parser.nesting = 0;
        ast->gaps = gap_new(arena, first, parser.token, ast->gaps);
    }
    ast->reduction_count = parser.reductions;
    ast->end = parser.token->loc;
    return ast;
}
