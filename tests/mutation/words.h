// A program as the list of its words, to be changed and written again. Nothing is known of its meaning: what comes in and
// goes out may be any text.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"

typedef struct Word {
    const char *text;   // a name, a number or a symbol
    bool begins_line;
} Word;

typedef struct Words {
    Arena *arena;
    Word *items;
    int count, room;
} Words;

Words words_of(Arena *arena, const char *text);
void words_print(StrBuf *out, const Words *words);

/* `count` words from `at` on give way to those of `text`. */
void words_replace(Words *words, int at, int count, const char *text);

/* The words [first, end) as text. */
const char *words_text(const Words *words, int first, int end);

/* Beyond the end: "". */
const char *word(const Words *words, int at);
bool word_is(const Words *words, int at, const char *text);
bool word_is_name(const Words *words, int at);   // reserved words are names, too
bool word_is_number(const Words *words, int at);

/* Behind the partner of the bracket at `open`; without one, the end. */
int words_behind(const Words *words, int open);

/* The operands between brackets, `[i, 2*j]`: how many, and the words [*first, *end) of the k-th. */
int operand_count(const Words *words, int open);
void operand_find(const Words *words, int open, int k, int *first, int *end);
