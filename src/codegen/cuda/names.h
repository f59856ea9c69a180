// Names of the expression in emitted text. What writes CUDA numbers what it writes: `in0` is the first input,
// `v2` the value of the third definition. Here these become the user's own names, at the end, when all other
// words of the text are known: a name that is one of them, or of C++, gets a line below it.
//
//   const float v2 = reduce_row<Sum>(total2, 1);        const float s = reduce_row<Sum>(s_total, 1);
//   store(t.out0, i0, v1[e]);                           store(t.y, i0, e_[e]);
#pragma once
#include "base/arena.h"
#include "codegen/cuda/token.h"

typedef struct Names Names;

/* None is taken but the words of C++ and of the headers that compilers include. */
Names *names_new(Arena *arena);

/* What is taken there is taken here, too; no names were given. */
Names *names_within(const Names *outer);

/* All words of the text are taken. */
void names_avoid(Names *names, const char *text);

void names_avoid_word(Names *names, Slice word);

/* Whether it was seen. */
bool names_has(const Names *names, const char *word);

/* `numbered` will be what is `wanted`, or something like it. */
void names_give(Names *names, const char *numbered, const char *wanted);

/* What it will be. */
const char *names_find(const Names *names, const char *numbered);

/* The text with all that were given. */
const char *names_put(const Names *names, const char *text);
