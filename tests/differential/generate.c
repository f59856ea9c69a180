#include <string.h>

#include "differential/generate_parts.h"

enum { PLACES = 12, JOINED = 4 };   // of a hundred programs are made of moves, and of concatenations; the others keep their shares

uint64_t generate_hash(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* The pattern with the texts for $1, $2, … */
static char *fill(Arena *arena, const char *pattern, const char *const *texts)
{
    StrBuf out = strbuf_new(arena);
    for (const char *c = pattern; *c; c++)
        if (*c == '$')
            strbuf_puts(&out, texts[*++c - '1']);
        else
            strbuf_putc(&out, *c);
    return out.text;
}

char *generate_term(Arena *arena, uint64_t state, const char *a, const char *b, const char *other)
{
    static const char *const shared[] = {
        "$1 * $2 * 0.125",  "-($1 * $2) / 3",          "$1 * ($2 * $3)",     "0.5 * ($3 * $1) * $2 / 8",
        "2 * ($1 * -$2)",   "$1 * $2 / (1.5 + abs($3))", "$1 / 7 * ($3 * $2) * $3"};
    Random random = {generate_hash(state + 3)};
    return fill(arena, random_chance(&random, 16) ? PICK(&random, shared) : "$1 * $2",
                (const char *const[]){a, b, other});
}

char *generate_whole_term(Arena *arena, uint64_t state, const char *a, const char *b)
{
    static const char *const shared[] = {"-($1 * $2)", "3 * $1 * $2", "-$1 * (5 * $2)"};
    Random random = {generate_hash(state + 3)};
    return fill(arena, random_chance(&random, 16) ? PICK(&random, shared) : "$1 * $2",
                (const char *const[]){a, b});
}

const char *generate_functions(Arena *arena, uint64_t state, const char *a, const char *b)
{
    static const char *const functions[] = {"relu($1) * $2", "select($1 > 1, $1, -1) * max($2, 0)",
                                            "$1 * $2 * abs($1)"};
    Random random = {generate_hash(state + 4)};
    if (!random_chance(&random, 8))
        return NULL;
    return fill(arena, PICK(&random, functions), (const char *const[]){a, b});
}

/* In one program of four some inputs are weights, which are arguments behind the others. */
static char *with_weights(Arena *arena, uint64_t state, char *program)
{
    const char *word = "input ";
    Random random = {generate_hash(state + 5)};
    if (!random_chance(&random, 25))
        return program;
    StrBuf out = strbuf_new(arena);
    for (const char *at = program; *at; at++) {
        bool begins = strncmp(at, word, strlen(word)) == 0 && (at == program || at[-1] == ' ' || at[-1] == '\n');
        if (begins && random_chance(&random, 40)) {
            strbuf_puts(&out, "weight ");
            at += strlen(word) - 1;
        } else {
            strbuf_putc(&out, *at);
        }
    }
    return out.text;
}

/* Networks find most; the grammar finds what nobody writes yet. */
static char *generate_any(Arena *arena, uint64_t state)
{
    uint64_t kind = generate_hash(state + 1) % 100;
    if (generate_hash(state + 7) % 100 < PLACES)
        return generate_places(arena, state);
    if (generate_hash(state + 8) % 100 < JOINED)
        return generate_joined(arena, state);
    return kind < 5    ? generate_sum(arena, state)
           : kind < 13 ? generate_grammar(arena, state)
           : kind < 17 ? generate_filter_gradient(arena, state)
           : kind < 42 ? generate_known(arena, state)
           : kind < 50 ? generate_product(arena, state)
           : kind < 55 ? generate_skinny(arena, state)
           : kind < 60 ? generate_depthwise(arena, state)
           : kind < 65 ? generate_depthwise_last(arena, state)
           : kind < 90 ? generate_network(arena, state)
           : kind < 92 ? generate_product_rows(arena, state)
           : kind < 95 ? generate_attention(arena, state)
           : kind < 98 ? generate_convolution(arena, state)
                       : generate_padded(arena, state);
}

char *generate(Arena *arena, uint64_t seed, uint64_t number)
{
    uint64_t state = generate_hash(seed ^ generate_hash(number));
    return with_weights(arena, state, generate_any(arena, state));
}

char *generate_moves(Arena *arena, uint64_t seed, uint64_t number)
{
    uint64_t state = generate_hash(seed ^ generate_hash(number));
    return with_weights(arena, state, generate_places(arena, state));
}

char *generate_chains(Arena *arena, uint64_t seed, uint64_t number)
{
    uint64_t state = generate_hash(seed ^ generate_hash(number));
    return with_weights(arena, state, generate_attention(arena, state));
}

char *generate_joined_alone(Arena *arena, uint64_t seed, uint64_t number)
{
    uint64_t state = generate_hash(seed ^ generate_hash(number));
    return with_weights(arena, state, generate_joined(arena, state));
}
