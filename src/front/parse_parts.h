// What the parts of the parser share: where it is among the tokens, and what it takes from them.
#pragma once
#include <string.h>

#include "front/foreign.h"
#include "front/parse.h"

typedef struct Parser {
    Arena *arena;
    const Token *token;   // the next one
    int nesting;          // brackets around it
    int nodes;            // of this statement so far
    int reductions;       // of the program so far
    AstStatement *statement;   // that is being parsed
    const char *taken[16];     // reserved words that the program gave a meaning of its own, which was refused
    int taken_count;
} Parser;

static inline bool at(const Parser *p, const char *text)
{
    bool is_text = p->token->kind == TOKEN_WORD || p->token->kind == TOKEN_SYMBOL;
    return is_text && strcmp(p->token->text, text) == 0;
}

static inline bool take(Parser *p, const char *text)
{
    bool taken = at(p, text);
    p->token += taken;
    return taken;
}

/* What is wrong with a reserved word that the program took as a name was said where it did. */
static inline void abandon_taken(const Parser *p)
{
    for (int i = 0; i < p->taken_count && p->token->kind == TOKEN_WORD; i++)
        if (strcmp(p->token->text, p->taken[i]) == 0)
            diag_abandon();
}

static inline void take_word(Parser *p)
{
    if (p->taken_count < (int)(sizeof p->taken / sizeof *p->taken))
        p->taken[p->taken_count++] = p->token->text;
}

static inline _Noreturn void expected(const Parser *p, const char *what)
{
    const Token *saw = p->token;
    if (saw->kind == TOKEN_WRONG)
        diag_abandon();
    if (saw->kind == TOKEN_END)
        reject(saw->loc, "expected %s, saw the end of the file", what);
    if (saw->kind == TOKEN_NUMBER)
        reject(saw->loc, "expected %s, saw a number", what);
    reject(saw->loc, "expected %s, saw '%s'", what, saw->text);
}

static inline void expect(Parser *p, const char *symbol, const char *where)
{
    if (!take(p, symbol))
        expected(p, arena_printf(p->arena, "'%s' %s", symbol, where));
}

/* Just behind the token before the next one. */
static inline Loc loc_behind(const Parser *p)
{
    Loc loc = p->token[-1].loc;
    return (Loc){loc.source, loc.offset + loc.length, 1};
}

/* A missing bracket is reported where the line ends, not at the statement below it. */
static inline void expect_bracket(Parser *p, const char *bracket, const char *where)
{
    if (!at(p, bracket) && p->token->kind != TOKEN_END && token_begins_line(p->token))
        reject(loc_behind(p), "expected '%s' %s, saw the end of the line", bracket, where);
    expect(p, bracket, where);
}

static inline const Token *name(Parser *p, const char *what)
{
    if (p->token->kind == TOKEN_WORD) {
        abandon_taken(p);
        take_word(p);
        reject(p->token->loc, "'%s' is %s and cannot be %s; %s_ would do", p->token->text,
               lex_meaning(p->token), what, p->token->text);
    }
    if (p->token->kind != TOKEN_NAME)
        expected(p, what);
    return p->token++;
}

static inline DType dtype(Parser *p)
{
    DType type;
    if (!token_is_dtype(p->token, &type))
        expected(p, "an element type (f64 f32 f16 bf16 i64 i32 i8 u8 b1)");
    p->token++;
    return type;
}

static inline Loc loc_between(Loc first, Loc last)
{
    first.length = last.offset + last.length - first.offset;
    return first;
}

/* From `first` to the token before the next one. */
static inline Loc loc_since(const Parser *p, Loc first)
{
    return loc_between(first, p->token[-1].loc);
}

/* Rules that statements are made of (parse_expr.c): expr, sum, which constants have the form of, and what
   stands in brackets. */
AstExpr *parse_expr(Parser *p);
AstExpr *parse_sum(Parser *p);
AstIndex *parse_indices(Parser *p, int limit, int *count);
AstExpr **parse_list(Parser *p, const char *where, int *count);
