// Between fold.c, which removes statements, fold_unused.c (constants that nothing reads) and fold_choice.c
// (parts of expressions).
#pragma once
#include "codegen/cuda/constant.h"

typedef struct ConditionFold {
    const Constants *constants;
    const Slice *idle;
    char *text;   // a copy
    size_t length;
    Slice function;   // the body that is folded
    bool *removed;    // of each character
    bool any, keeps_lines;
} ConditionFold;

void fold_remove(ConditionFold *fold, const char *start, const char *end);

/* Comments on the lines above a statement that goes are about it: where they begin, or the statement. */
const char *fold_comment_above(const ConditionFold *fold, const char *statement);

/* How often the word stands there; members of that name are others. */
int fold_count_word(const ConditionFold *fold, Slice text, Slice word);

/* `[[maybe_unused]] const int x = y + 1;` of an x that nothing reads goes, if nothing happens there; otherwise it is not unused.
   Gives whether it goes. */
bool fold_constant(ConditionFold *fold, Slice statement);

/* Asks, and changes nothing: no call, no assignment. */
bool fold_only_asks(Slice condition);

/* Whether a condition is known: also `x > 1 && false`, where nothing else happens. */
bool fold_evaluate(const Constants *constants, Slice condition, int64_t *value);

/* Of all expressions of the text. */
void fold_choices(ConditionFold *fold, Slice text);
