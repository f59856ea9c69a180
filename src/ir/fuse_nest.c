#include "ir/fuse_nest.h"

bool fusion_nest(Rewritten *outer, const Rewritten *inner)
{
    Rewritten both = *outer;
    if (outer->before_count + inner->before_count > MAX_BEFORE || outer->behind_count + inner->behind_count > MAX_BEHIND)
        return false;
    both.main = inner->main;
    both.behind_count = 0;
    for (int i = 0; i < inner->before_count; i++)
        both.before[both.before_count++] = inner->before[i];
    for (int i = 0; i < inner->behind_count; i++)
        both.behind[both.behind_count++] = inner->behind[i];
    for (int i = 0; i < outer->behind_count; i++)
        both.behind[both.behind_count++] = outer->behind[i];
    for (int i = 0; i < inner->definition_count; i++)
        both.definitions[both.definition_count++] = inner->definitions[i];
    *outer = both;
    return true;
}
