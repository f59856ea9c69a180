// What an expression does with what it reads: which decides where values may be rounded.
#pragma once
#include "front/onnx/access.h"

typedef enum FormulaKind {
    FORMULA_MOVE,   // elements as they are, chosen: accesses, `pad`, `select` between such, the largest of such
    FORMULA_PRODUCT,   // a sum of products of different elements
    FORMULA_FINE,      // another reduction or a function: sums, statistics, exponentials, powers
    FORMULA_POINT,     // point by point
} FormulaKind;

/* `largest`: of the type to which the result may be rounded; a constant beyond it makes the expression a fine
   one. */
FormulaKind formula_kind(const char *expr, double largest);

/* Nothing but one access, or one in `pad`: its type is that of what it reads. */
bool formula_is_access(const char *expr);
