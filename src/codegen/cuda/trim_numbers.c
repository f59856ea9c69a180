#include <string.h>

#include "codegen/cuda/trim_parts.h"

/* Behind the last , of `<f16, BN>`. */
static Slice last_argument(Slice arguments)
{
    Slice last = arguments, token;
    while (token_read(&arguments, &token)) {
        if (strchr("({[<", *token.start))
            token_read_group(&arguments, *token.start);
        else if (*token.start == ',')
            last.start = token.end;
    }
    return last;
}

void trim_use_number(Trim *trim, const TrimScope *scope, Slice name, Slice rest)
{
    Slice token;
    bool is_declared = units_find(&trim->prelude.units, name) || (scope && units_find(&scope->units, name));
    if (!is_declared || !token_read(&rest, &token) || *token.start != '<')
        return;
    Slice number = last_argument(token_read_group(&rest, '<'));
    NumberUse *use = NEW(trim->arena, NumberUse);
    *use = (NumberUse){.name = name, .next = trim->numbers};
    use->known = constants_evaluate(scope ? &scope->constants : &trim->prelude.constants, number, &use->value);
    trim->numbers = use;
}

bool trim_number_occurs(const Trim *trim, Slice name, Slice rest)
{
    Slice token;
    if (!token_read(&rest, &token) || *token.start != '<')
        return true;
    Slice number = last_argument(token_read_group(&rest, '<'));
    int64_t value;
    const Constants none = {.table = {.arena = trim->arena}};
    if (!constants_evaluate(&none, number, &value))
        return true;
    const NumberUse *use = trim->numbers;
    while (use && !(slice_same(use->name, name) && (!use->known || use->value == value)))
        use = use->next;
    return use != NULL;
}
