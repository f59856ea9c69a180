#include "codegen/cuda/constant.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct Evaluation {
    const Constants *constants;
    Slice rest;
    bool known;
} Evaluation;

static const Constant *find(const Constants *constants, Slice name)
{
    for (const Constants *table = constants; table; table = table->outer) {
        for (const Slice *hidden = table->hidden; hidden && hidden->start; hidden++)
            if (slice_same(*hidden, name))
                return NULL;
        const Constant *constant = word_find(&table->table, name);
        if (constant)
            return constant;
    }
    return NULL;
}

bool constants_have(const Constants *constants, Slice name) { return find(constants, name) != NULL; }

static void skip_space(Evaluation *evaluation)
{
    while (evaluation->rest.start < evaluation->rest.end && isspace((unsigned char)*evaluation->rest.start))
        evaluation->rest.start++;
}

static bool read_operator(Evaluation *evaluation, const char *word)
{
    skip_space(evaluation);
    bool found = slice_starts(evaluation->rest, word);
    evaluation->rest.start += found ? strlen(word) : 0;
    return found;
}

static int64_t give_up(Evaluation *evaluation)
{
    evaluation->known = false;
    evaluation->rest.start = evaluation->rest.end;
    return 0;
}

/* A real, or one with a suffix, is none of ours. */
static int64_t read_number(Evaluation *evaluation)
{
    char *end;
    int64_t value = strtoll(evaluation->rest.start, &end, 0);
    evaluation->rest.start = end;
    if (end < evaluation->rest.end && (isalnum((unsigned char)*end) || *end == '.'))
        return give_up(evaluation);
    return value;
}

static int64_t read_choice(Evaluation *evaluation);

static int64_t read_name(Evaluation *evaluation)
{
    Slice name;
    if (!token_read(&evaluation->rest, &name) || !is_name(name))
        return give_up(evaluation);
    if (slice_equals(name, "true") || slice_equals(name, "false"))
        return slice_equals(name, "true");
    const Constant *constant = find(evaluation->constants, name);
    return constant && constant->known ? constant->value : give_up(evaluation);
}

static int64_t read_operand(Evaluation *evaluation)
{
    if (read_operator(evaluation, "!"))
        return !read_operand(evaluation);
    if (read_operator(evaluation, "-"))
        return -read_operand(evaluation);
    skip_space(evaluation);
    if (evaluation->rest.start < evaluation->rest.end && isdigit((unsigned char)*evaluation->rest.start))
        return read_number(evaluation);
    if (!read_operator(evaluation, "("))
        return read_name(evaluation);
    int64_t value = read_choice(evaluation);
    if (!read_operator(evaluation, ")"))
        return give_up(evaluation);
    return value;
}

/* Longer operators stand before those that they begin with. */
static const struct Operator {
    const char *word;
    int level;   // what binds closer has a higher one
} OPERATORS[] = {{"||", 1}, {"&&", 2}, {"==", 3}, {"!=", 3}, {"<=", 4}, {">=", 4},
                 {"<<", 0}, {">>", 0}, {"<", 4},  {">", 4},  {"+", 5},  {"-", 5},
                 {"*", 6},  {"/", 6},  {"%", 6},  {"&", 0},  {"|", 0},  {NULL, 0}};

static int64_t apply(Evaluation *evaluation, const char *word, int64_t a, int64_t b)
{
    int64_t result = 0;
    bool fails = false;
    switch (word[0]) {
    case '|': return a || b;
    case '=': return a == b;
    case '!': return a != b;
    case '<': return word[1] ? a <= b : a < b;
    case '>': return word[1] ? a >= b : a > b;
    case '+': fails = __builtin_add_overflow(a, b, &result); break;
    case '-': fails = __builtin_sub_overflow(a, b, &result); break;
    case '*': fails = __builtin_mul_overflow(a, b, &result); break;
    case '/': fails = b <= 0; break;
    case '%': fails = b <= 0; break;
    default: return a && b;
    }
    if (fails)
        return give_up(evaluation);
    return word[0] == '/' ? a / b : word[0] == '%' ? a % b : result;
}

/* What no longer matters behind `0 &&` or `1 ||`, as C has it: up to what binds less. */
static void skip_settled(Evaluation *evaluation, bool is_and)
{
    Slice *rest = &evaluation->rest, token;
    while (token_read(rest, &token)) {
        bool is_scope = *token.start == ':' && slice_starts(*rest, ":");
        bool is_or = *token.start == '|' && slice_starts(*rest, "|");
        if ((is_and && is_or) || strchr(")]},?", *token.start) || (*token.start == ':' && !is_scope)) {
            rest->start = token.start;
            return;
        }
        if (strchr("({[", *token.start))
            token_read_group(rest, *token.start);
        rest->start += is_scope;
    }
}

static int64_t read_binary(Evaluation *evaluation, int level)
{
    int64_t value = read_operand(evaluation);
    while (evaluation->known) {
        skip_space(evaluation);
        const struct Operator *operator= OPERATORS;
        while (operator->word && !slice_starts(evaluation->rest, operator->word))
            operator++;
        if (!operator->word || operator->level<level)
            return value;
        evaluation->rest.start += strlen(operator->word);
        bool is_or = operator->level == 1, is_and = operator->level == 2;
        if (evaluation->known && ((is_or && value) || (is_and && !value))) {
            skip_settled(evaluation, is_and);
            value = is_or;
            continue;
        }
        int64_t right = read_binary(evaluation, operator->level + 1);
        value = apply(evaluation, operator->word, value, right);
    }
    return 0;
}

static int64_t read_choice(Evaluation *evaluation)
{
    int64_t condition = read_binary(evaluation, 1);
    if (!read_operator(evaluation, "?"))
        return condition;
    int64_t one = read_choice(evaluation);
    if (!read_operator(evaluation, ":"))
        return give_up(evaluation);
    int64_t other = read_choice(evaluation);
    return condition ? one : other;
}

bool constants_evaluate(const Constants *constants, Slice expression, int64_t *value)
{
    Evaluation evaluation = {.constants = constants, .rest = expression, .known = true};
    *value = read_choice(&evaluation);
    skip_space(&evaluation);
    bool fits = *value >= INT32_MIN &&
                *value <= INT32_MAX;   // where 32 bits would wrap, it is the compiler's business
    return evaluation.known && fits && evaluation.rest.start == evaluation.rest.end;
}

static Slice read_initializer(Slice *rest)
{
    Slice value = *rest, token;
    while (token_read(rest, &token) && *token.start != ',' && *token.start != ';')
        if (strchr("({[", *token.start))
            token_read_group(rest, *token.start);
    value.end = token.start;
    return value;
}

static void define(Constants *constants, Slice name, Slice initializer)
{
    Constant *known = word_find(&constants->table, name);
    if (known) {
        known->known = false;
        return;
    }
    Constant *constant = NEW(constants->table.arena, Constant);
    constant->known = constants_evaluate(constants, initializer, &constant->value);
    *word_place(&constants->table, name) = constant;
}

void constants_read(Constants *constants, const char *definition)
{
    Slice rest = slice_of(definition), token, name = {0};
    if (!token_read(&rest, &token) || !slice_equals(token, "constexpr"))
        return;
    while (token_read(&rest, &token)) {
        if (*token.start == '=')
            define(constants, name, read_initializer(&rest));
        name = token;
    }
}
