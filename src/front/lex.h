// Text to tokens: the words, numbers and symbols of the language, and the places they came from.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "ir/tensor_op.h"

enum { MAX_NAME = 63 };   // as many characters of an identifier as C promises to compare

/* Every error of this floor is one of the user's text. */
#define reject(loc, ...) diag_fatal(loc, EXIT_INPUT, __VA_ARGS__)

/* A number as written or folded: exact 64-bit integer, or a double. */
typedef struct Number {
    bool is_real;
    union { int64_t integer; double real; };
} Number;

typedef enum TokenKind {
    TOKEN_END,
    TOKEN_NAME,     // chosen by the user
    TOKEN_WORD,     // reserved: statements, reductions, functions, element types
    TOKEN_NUMBER,
    TOKEN_SYMBOL,   // + - * / < <= … ( ) [ ] , : =
    TOKEN_WRONG     // no token: that was said
} TokenKind;

typedef struct Token {
    TokenKind kind;
    const char *text;   // of a name, word or symbol
    Number number;
    Loc loc;
} Token;

/* All tokens of a source; the last one is TOKEN_END. What is wrong is an attempt that failed: diag_finish()
   ends with it. */
Token *lex(Arena *arena, const Source *source);

/* A line ends between the token before it and this one, which is not the first. */
bool token_begins_line(const Token *token);
/* `view`, `weight`: contextual words, which begin a statement before a NAME that "[" follows. */
bool lex_begins_statement(const char *word);
/* This one does so here. */
bool token_begins(const Token *token, const char *word);
bool token_is_dtype(const Token *token, DType *type);
/* The function of that name; a contextual one is a function only before "(". */
bool lex_function(const char *word, Op *op);

/* `an element type`, `a function`, `a reserved word`: what a TOKEN_WORD is. */
const char *lex_meaning(const Token *token);

/* Reads the NUMBER that `text` starts with, returns its end; `problem`: NULL, or what is wrong. */
const char *lex_number(const char *text, Number *number, const char **problem);

/* `; did you mean 'input'?` if a reserved word is near, or, of a statement, a contextual one; else "". */
const char *lex_suggestion(Arena *arena, const char *name, bool of_statement);

/* 4096, 1e-05, 2.0, inf: reads back as the same number of the same kind. */
void number_print(StrBuf *out, Number number);

/* One token a line: `3:7 name x`. */
void tokens_print(StrBuf *out, const Token *tokens);
