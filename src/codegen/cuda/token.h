// CUDA text as rollerc reads it: names, and single characters that are none. White space, comments, strings
// and numbers lie between them. Enough to find declarations and what they use; what it means is the
// compiler's business.
#pragma once
#include "base/slice.h"

Slice slice_of(const char *text);
bool slice_starts(Slice slice, const char *word);
bool slice_equals(Slice slice, const char *word);

bool is_name(Slice token);

/* The next token; false at the end. */
bool token_read(Slice *rest, Slice *token);

/* Behind what is no token: white space, a comment, a string or a number; `at` where there is none of them. */
const char *token_skip(const char *at, const char *end);

/* Adds the braces of the text to the depth; `last` becomes its last character of code. False: a string does not end. */
bool token_count_braces(Slice text, int *depth, char *last);

/* Inside of ( ), { }, [ ] or < >, whose first character has been read; the last one is read, too. */
Slice token_read_group(Slice *rest, char open);

/* Behind the semicolon of a statement whose first token has been read. */
void token_read_to_semicolon(Slice *rest, Slice token);

/* Up to the next '\n', with it. */
Slice line_read(Slice *rest);
bool line_is_blank(Slice line);
