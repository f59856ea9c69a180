#include "differential/generate_parts.h"

uint64_t generate_hash(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* Networks find most; the grammar finds what nobody writes yet. */
char *generate(Arena *arena, uint64_t seed, uint64_t number)
{
    uint64_t state = generate_hash(seed ^ generate_hash(number)), kind = generate_hash(state + 1) % 100;
    return kind < 5    ? generate_sum(arena, state)
           : kind < 13 ? generate_grammar(arena, state)
           : kind < 17 ? generate_filter_gradient(arena, state)
           : kind < 42 ? generate_known(arena, state)
           : kind < 50 ? generate_product(arena, state)
           : kind < 55 ? generate_skinny(arena, state)
           : kind < 60 ? generate_depthwise(arena, state)
                       : generate_network(arena, state);
}
