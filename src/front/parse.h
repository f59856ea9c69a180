// Tokens to syntax: one function for each rule of the grammar.
#pragma once
#include "front/ast.h"

enum {
    MAX_STATEMENTS = 16384,   // a network written out has hundreds to thousands: no stage is quadratic
    MAX_NODES = 4096,         // of one statement: one kernel's body; nvcc gets slow far below
    MAX_NESTING = 64,         // brackets within brackets: the parser's own recursion
    MAX_TREE_DEPTH = 1000,    // a + b + c + … is a deep tree; later stages walk it recursively
};

/* What is wrong is an attempt that failed: diag_finish() ends with it. */
Ast *parse(Arena *arena, const Token *tokens);
