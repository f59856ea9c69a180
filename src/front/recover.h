// Error recovery: where the statement behind a wrong one begins, so that one run finds the mistakes of many
// statements.
#pragma once
#include "front/lex.h"

/* `first`: of the statement; `at`: what it was found to be wrong at. */
const Token *recover(const Token *first, const Token *at);
