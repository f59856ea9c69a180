// Between fold.c, which removes statements, and fold_choice.c, which removes parts of expressions.
#pragma once
#include "codegen/cuda/constant.h"

typedef struct ConditionFold {
    const Constants *constants;
    const Slice *idle;
    char *text;   // a copy
    size_t length;
    Slice function, arguments;   // whose body is folded
    bool *removed;    // of each character
    bool any, keeps_lines;
} ConditionFold;

void fold_remove(ConditionFold *fold, const char *start, const char *end);

/* Asks, and changes nothing: no call, no assignment. */
bool fold_only_asks(Slice condition);

/* Whether a condition is known: also `x > 1 && false`, where nothing else happens. */
bool fold_evaluate(const Constants *constants, Slice condition, int64_t *value);

/* Of all expressions of the text. */
void fold_choices(ConditionFold *fold, Slice text);
