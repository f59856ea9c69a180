#include "front/recover.h"

#include <string.h>

static bool is(const Token *token, TokenKind kind, const char *text)
{
    return token->kind == kind && strcmp(token->text, text) == 0;
}

static bool begins_with_a_word(const Token *token)
{
    return is(token, TOKEN_WORD, "param") || is(token, TOKEN_WORD, "input") ||
           is(token, TOKEN_WORD, "output") ||
           (lex_begins_statement(token->text) && token_begins(token, token->text));
}

/* NAME "[" … "]" and then "=" or ":" DTYPE: no expression holds that. No index of a definition has a "[", so
   that each token is passed once, whatever opens there: a megabyte of `y[`. */
static bool begins_a_definition(const Token *token)
{
    DType type;
    if (token->kind != TOKEN_NAME || !is(token + 1, TOKEN_SYMBOL, "["))
        return false;
    token += 2;
    while (token->kind != TOKEN_END && !is(token, TOKEN_SYMBOL, "]") && !is(token, TOKEN_SYMBOL, "["))
        token++;
    if (!is(token, TOKEN_SYMBOL, "]"))
        return false;
    return is(token + 1, TOKEN_SYMBOL, "=") ||
           (is(token + 1, TOKEN_SYMBOL, ":") && token_is_dtype(token + 2, &type));
}

/* Two names at the beginning of a line: `inptu x`. */
static bool begins_with_a_misspelt_word(const Token *token)
{
    return token->kind == TOKEN_NAME && token[1].kind == TOKEN_NAME && token_begins_line(token) &&
           !token_begins_line(token + 1);
}

const Token *recover(const Token *first, const Token *at)
{
    if (at == first)
        at++;
    while (at->kind != TOKEN_END && !begins_with_a_word(at) && !begins_a_definition(at) &&
           !begins_with_a_misspelt_word(at))
        at++;
    return at;
}
