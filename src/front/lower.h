// Syntax to tensor IR: names resolved, constants folded, extents found, types decided.
//
// A reduction that is not the whole right side of its definition becomes an op of its own:
//   mean[c] = sum[n](x[n, c]) / N     ->     mean.1[c] = sum[n] x[n, c]
//                                            mean[c]   = div(mean.1[c], N)
#pragma once
#include "front/ast.h"
#include "ir/tensor_op.h"

/* Errors of the program end with EXIT_INPUT, an unknown or malformed override with EXIT_USAGE. */
Program *lower(Arena *arena, const Ast *ast, const ParamOverride *overrides, int override_count);
