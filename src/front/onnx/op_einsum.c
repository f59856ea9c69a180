// Sums of products that an equation names: `ij,jk->ik`.
#include <ctype.h>
#include <string.h>

#include "front/onnx/map.h"
#include "front/onnx/operators.h"

enum { MOST_FACTORS = 16 };

static const char usable[] = "ijklmnopqrstuvcdfh";   // no tensor is called so

/* Letters of the program for labels of the equation, and for the dimensions of an ellipsis. */
typedef struct Labels {
    char letter[128];          // by label; 0: it has none yet
    int count[128];            // how often a label stands in a factor
    char ellipsis[MAX_RANK];   // from the last dimension on
    int ellipsis_rank;
    bool used[128];   // letters
} Labels;

static char free_letter(const Map *m, Labels *labels)
{
    for (const char *c = usable; *c; c++)
        if (!labels->used[(int)*c]) {
            labels->used[(int)*c] = true;
            return *c;
        }
    refuse(m, "more than %zu different indices", strlen(usable));
}

/* The label's own letter, where that is one and nothing else has it. */
static char letter_of(const Map *m, Labels *labels, char label)
{
    char *letter = &labels->letter[(int)label];
    if (!*letter && strchr(usable, label) && !labels->used[(int)label])
        labels->used[(int)(*letter = label)] = true;
    if (!*letter)
        *letter = free_letter(m, labels);
    return *letter;
}

/* Without blanks. */
static char *equation_of(const Map *m)
{
    const char *given = attribute_text(m, "equation", "");
    char *text = arena_strdup(m->arena, given), *end = text;
    for (; *given; given++)
        if (!isspace((unsigned char)*given))
            *end++ = *given;
    *end = '\0';
    return text;
}

/* `bij` or `...ij` of a tensor of `rank` dimensions, -1: of the result; as letters. */
static const char *letters_of_term(const Map *m, Labels *labels, const char *term, size_t length, int rank)
{
    char letters[64] = {0};
    int count = 0, named = 0, stretched = -1;
    for (size_t i = 0; i < length; i++)
        named += isalpha((unsigned char)term[i]) != 0;
    for (size_t i = 0; i < length && count < 32; i++)
        if (isalpha((unsigned char)term[i])) {
            letters[count++] = letter_of(m, labels, term[i]);
        } else if (strncmp(term + i, "...", 3) == 0 && stretched < 0 && i + 3 <= length) {
            stretched = rank < 0 ? labels->ellipsis_rank : rank - named;
            for (int d = stretched; d-- > 0 && count < 32;) {
                char *letter = &labels->ellipsis[d];
                *letter = *letter ? *letter : free_letter(m, labels);
                letters[count++] = *letter;
            }
            labels->ellipsis_rank = stretched > labels->ellipsis_rank ? stretched : labels->ellipsis_rank;
            i += 2;
        } else {
            refuse(m, "'%.*s' in its equation", (int)length, term);
        }
    if (count > MAX_RANK || (rank >= 0 && count != rank))
        refuse(m, "'%.*s' for a tensor of %d dimensions", (int)length, term, rank < 0 ? count : rank);
    return fmt(m, "%s", letters);
}

/* Without an arrow: the ellipsis, then labels that stand once, in their order. */
static const char *implied_result(const Map *m, const Labels *labels)
{
    StrBuf result = strbuf_new(m->arena);
    strbuf_puts(&result, labels->ellipsis_rank ? "..." : "");
    for (int label = 'A'; label <= 'z'; label++)
        if (isalpha(label) && labels->count[label] == 1)
            strbuf_putc(&result, (char)label);
    return result.text;
}

static int read_factors(const Map *m, Labels *labels, const char *equation, const char *end,
                        Factor terms[MOST_FACTORS])
{
    int count = 0;
    for (const char *term = equation;; term++) {
        const char *comma = memchr(term, ',', (size_t)(end - term)), *stop = comma ? comma : end;
        if (count == MOST_FACTORS || (count + 1 == m->node->input_count) == (comma != NULL))
            refuse(m, "an equation that has not %d factors, or more than %d", m->node->input_count,
                   MOST_FACTORS);
        for (const char *c = term; c < stop; c++)
            labels->count[*c & 127]++;
        const GraphValue *value = need(m, count);
        terms[count++] =
            (Factor){value, letters_of_term(m, labels, term, (size_t)(stop - term), value->shape.rank)};
        if (!comma)
            return count;
        term = comma;
    }
}

static void check_result(const Map *m, const char *letters, const int64_t extents[26])
{
    for (const char *c = letters; *c; c++)
        if (!extents[*c - 'a'] || strchr(c + 1, *c))
            refuse(m, "its result has an index that no factor has, or one twice");
}

void map_einsum(Map *m)
{
    const char *equation = equation_of(m), *arrow = strstr(equation, "->");
    Labels labels = {0};
    Factor terms[MOST_FACTORS];
    int count = read_factors(m, &labels, equation, arrow ? arrow : equation + strlen(equation), terms);
    const char *result = arrow ? arrow + 2 : implied_result(m, &labels);
    const char *letters = letters_of_term(m, &labels, result, strlen(result), -1);
    int64_t extents[26];
    letter_extents(m, terms, count, extents);
    check_result(m, letters, extents);
    comment(m, "%s", equation);
    Dims shape = shape_of_letters(letters, extents);
    if (need(m, 0)->type == DTYPE_B1)
        refuse(m, "a sum of bools");
    define(m, out(m, 0), need(m, 0)->type, &shape, letters, contraction(m, letters, terms, count));
}
