// Choices that are the same for the same number on every machine.
#pragma once
#include <stdbool.h>
#include <stdint.h>

typedef struct Chance {
    uint64_t state;
} Chance;

/* splitmix64 (Steele, Lea, Flood 2014): well mixed bits of any number. */
static inline uint64_t chance_hash(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static inline int below(Chance *chance, int count)
{
    chance->state = chance_hash(chance->state);
    return (int)((chance->state >> 16) % (uint64_t)count);
}

static inline bool percent(Chance *chance, int odds) { return below(chance, 100) < odds; }

#define PICK(chance, list) ((list)[below((chance), (int)(sizeof(list) / sizeof *(list)))])
