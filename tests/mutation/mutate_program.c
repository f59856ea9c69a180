#include <string.h>

#include "mutation/mutate.h"
#include "mutation/words.h"

typedef struct Mutator {
    Arena *arena;
    Chance chance;
    Words words, other;
} Mutator;

static const char *const types[] = {"f64", "f32", "f16", "bf16", "i32", "i8", "u8", "b1"};
static const char *const functions[] = {"exp", "log", "sqrt", "rsqrt", "tanh", "erf", "sigmoid",
                                        "sin", "cos", "abs",  "floor", "ceil", "sq",  "relu",
                                        "round", "atan", "asin", "acos"};
static const char *const reductions[] = {"sum", "max", "min", "prod"};
static const char *const pairs[] = {"max", "min", "pow"};
static const char *const arithmetic[] = {"+", "-", "*", "/"};
static const char *const comparisons[] = {"<", "<=", ">", ">=", "==", "!="};
static const char *const logic[] = {"&&", "||"};

/* Around warps, vectors, tiles and blocks. */
static const char *const sizes[] = {"1",    "2",    "3",    "4",    "5",    "7",    "8",    "12",   "16",
                                    "17",   "31",   "32",   "33",   "48",   "63",   "64",   "65",   "96",
                                    "100",  "127",  "128",  "129",  "200",  "256",  "257",  "333",  "512",
                                    "1000", "1023", "1024", "1025", "2048", "3072", "4096", "8192", "16384"};
static const char *const edges[] = {"0",
                                    "1",
                                    "2",
                                    "7",
                                    "31",
                                    "33",
                                    "64",
                                    "65535",
                                    "65536",
                                    "1048576",
                                    "2147483647",
                                    "2147483648",
                                    "4294967296",
                                    "1099511627776",
                                    "4611686018427387904",
                                    "9223372036854775807",
                                    "1e308",
                                    "-1",
                                    "0.5",
                                    "inf"};

#define IS_ONE_OF(text, list) is_one_of((text), (list), sizeof(list) / sizeof *(list))

static bool is_one_of(const char *text, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(text, list[i]) == 0)
            return true;
    return false;
}

// ---- where: each tells whether the word there is one ----

static bool is_any(const Words *words, int at) { return at < words->count; }

/* A tensor that is read, declared or defined: `x[`. */
static bool is_access(const Words *words, int at)
{
    return word_is(words, at + 1, "[") && word_is_name(words, at) && !IS_ONE_OF(word(words, at), reductions);
}

static bool begins_statement(const Words *words, int at)
{
    if (word_is(words, at, "param") || word_is(words, at, "input") || word_is(words, at, "output"))
        return true;
    if (!is_access(words, at))
        return false;
    const char *before = word(words, at - 1);
    bool after_operand =
        !*before || strchr(")]", *before) || word_is_number(words, at - 1) || word_is_name(words, at - 1);
    return after_operand && strcmp(before, "input") != 0;
}

static bool is_definition(const Words *words, int at)
{
    return is_access(words, at) && begins_statement(words, at);
}

static bool is_unpublished(const Words *words, int at)
{
    if (!is_definition(words, at))
        return false;
    for (int i = 1; i < words->count; i++)
        if (word_is(words, i - 1, "output") && word_is(words, i, word(words, at)))
            return false;
    return true;
}

static bool is_input(const Words *words, int at)
{
    return is_access(words, at) && word_is(words, at - 1, "input");
}

/* Where any expression may stand: not in pad(…). */
static bool is_reading(const Words *words, int at)
{
    return is_access(words, at) && !begins_statement(words, at) && !is_input(words, at) &&
           !word_is(words, at - 2, "pad");
}

static bool is_type(const Words *words, int at) { return IS_ONE_OF(word(words, at), types); }
static bool is_function(const Words *words, int at) { return IS_ONE_OF(word(words, at), functions); }
static bool is_pair(const Words *words, int at)
{
    return IS_ONE_OF(word(words, at), pairs) && word_is(words, at + 1, "(");
}
static bool is_reduction(const Words *words, int at)
{
    return IS_ONE_OF(word(words, at), reductions) && word_is(words, at + 1, "[");
}
static bool is_arithmetic(const Words *words, int at) { return IS_ONE_OF(word(words, at), arithmetic); }
static bool is_comparison(const Words *words, int at) { return IS_ONE_OF(word(words, at), comparisons); }
static bool is_logic(const Words *words, int at) { return IS_ONE_OF(word(words, at), logic); }

/* `param N = 64`, `x[128, 3]`, `h:112` */
static bool is_extent(const Words *words, int at)
{
    const char *before = word(words, at - 1);
    return word_is_number(words, at) && (strchr("[,:", *before) || word_is(words, at - 3, "param"));
}

/* `i` in `[i, j + 1]`: an index variable that stands alone. */
static bool is_lone_index(const Words *words, int at)
{
    const char *before = word(words, at - 1), *after = word(words, at + 1);
    return word_is_name(words, at) && *before && strchr("[,", *before) && *after && strchr("],", *after);
}

static bool is_bracket(const Words *words, int at)
{
    return word_is(words, at, "[") && operand_count(words, at) > 1;
}

static bool is_untyped_definition(const Words *words, int at)
{
    return is_definition(words, at) && word_is(words, words_behind(words, at + 1), "=");
}

/* Any word of which `fits` says so; -1: there is none. */
static int find(Mutator *m, const Words *words, bool (*fits)(const Words *, int))
{
    int found = -1, seen = 0;
    for (int at = 0; at < words->count; at++)
        if (fits(words, at) && below(&m->chance, ++seen) == 0)
            found = at;
    return found;
}

static int statement_end(const Words *words, int first)
{
    int at = first + 1;
    while (at < words->count && !begins_statement(words, at))
        at++;
    return at;
}

// ---- what: false if the program has no place for it ----

static bool replace_word(Mutator *m, int at, const char *text)
{
    if (at >= 0)
        words_replace(&m->words, at, 1, text);
    return at >= 0;
}

static bool swap_operands(Mutator *m)
{
    int open = find(m, &m->words, is_bracket), first[2], end[2];
    if (open < 0)
        return false;
    int left = below(&m->chance, operand_count(&m->words, open) - 1);
    for (int k = 0; k < 2; k++)
        operand_find(&m->words, open, left + k, &first[k], &end[k]);
    const char *swapped = arena_printf(m->arena, "%s, %s", words_text(&m->words, first[1], end[1]),
                                       words_text(&m->words, first[0], end[0]));
    words_replace(&m->words, first[0], end[1] - first[0], swapped);
    return true;
}

/* `y[a, b, c] =` to `y[c, a, b] =`: an output in another order. */
static bool permute_definition(Mutator *m)
{
    int at = find(m, &m->words, is_definition);
    int count = at < 0 ? 0 : operand_count(&m->words, at + 1), first, end;
    if (count < 2)
        return false;
    operand_find(&m->words, at + 1, count - 1, &first, &end);
    const char *last = words_text(&m->words, first, end);
    words_replace(&m->words, first - 1, end - first + 1, "");
    words_replace(&m->words, at + 1, 1, arena_printf(m->arena, "[%s, ", last));
    return true;
}

static void drop_operand(Mutator *m, int open, int k)
{
    int count = operand_count(&m->words, open), first, end;
    if (k >= count)
        return;
    operand_find(&m->words, open, k, &first, &end);
    if (count > 1 && k > 0)
        first--;
    else if (count > 1)
        end++;
    words_replace(&m->words, first, end - first, "");
}

/* An input that is broadcast along one of its dimensions more. */
static bool drop_dimension(Mutator *m)
{
    int input = find(m, &m->words, is_input);
    int rank = input < 0 ? 0 : operand_count(&m->words, input + 1);
    if (!rank)
        return false;
    int k = below(&m->chance, rank);
    const char *name = word(&m->words, input);
    for (int at = 0; at < m->words.count; at++)
        if (word_is(&m->words, at, name) && is_access(&m->words, at))
            drop_operand(m, at + 1, k);
    return true;
}

/* A statistic becomes an output. */
static bool publish(Mutator *m)
{
    int at = find(m, &m->words, is_unpublished);
    if (at < 0)
        return false;
    const char *line = arena_printf(m->arena, "\noutput %s\n", word(&m->words, at));
    words_replace(&m->words, m->words.count, 0, line);
    m->words.items[m->words.count - 2].begins_line = true;
    return true;
}

static bool round_definition(Mutator *m)
{
    int at = find(m, &m->words, is_untyped_definition);
    if (at < 0)
        return false;
    words_replace(&m->words, words_behind(&m->words, at + 1), 0,
                  arena_printf(m->arena, ":%s", PICK(&m->chance, types)));
    return true;
}

static bool state_extent(Mutator *m)
{
    int at = find(m, &m->words, is_lone_index);
    if (at >= 0)
        words_replace(&m->words, at + 1, 0, arena_printf(m->arena, ":%s", PICK(&m->chance, sizes)));
    return at >= 0;
}

static bool shift_index(Mutator *m)
{
    static const char *const forms[] = {"%s + 1", "%s - 1", "2*%s", "%s + 3",
                                        "%s/2",   "7 - %s", "0*%s", "%s*65536"};
    int at = find(m, &m->words, is_lone_index);
    if (at < 0)
        return false;
    const char *form = PICK(&m->chance, forms), *place = strstr(form, "%s");
    return replace_word(
        m, at, arena_printf(m->arena, "%.*s%s%s", (int)(place - form), form, word(&m->words, at), place + 2));
}

/* The reading at a random place, within `before` and `after`. */
static bool wrap_reading(Mutator *m, const char *before, const char *after)
{
    int at = find(m, &m->words, is_reading);
    if (at < 0)
        return false;
    int end = words_behind(&m->words, at + 1);
    const char *reading = words_text(&m->words, at, end);
    words_replace(&m->words, at, end - at, arena_printf(m->arena, "%s%s%s", before, reading, after));
    return true;
}

static bool pad_reading(Mutator *m)
{
    static const char *const constants[] = {", 0)", ", -inf)", ", 1)", ", inf)", ", 1e-3)", ", 2147483648)"};
    return wrap_reading(m, "pad(", PICK(&m->chance, constants));
}

static bool apply(Mutator *m)
{
    return wrap_reading(m, arena_printf(m->arena, "%s(", PICK(&m->chance, functions)), ")");
}

static bool cast(Mutator *m)
{
    return wrap_reading(m, "cast(", arena_printf(m->arena, ", %s)", PICK(&m->chance, types)));
}

/* What is read, once more with something else that is read in the program. */
static bool combine(Mutator *m)
{
    int at = find(m, &m->words, is_reading);
    if (at < 0)
        return false;
    const char *reading = words_text(&m->words, at, words_behind(&m->words, at + 1));
    return wrap_reading(m, "(", arena_printf(m->arena, " %s %s)", PICK(&m->chance, arithmetic), reading));
}

static bool rename_word(Mutator *m)
{
    return replace_word(m, find(m, &m->words, word_is_name),
                        word(&m->words, find(m, &m->words, word_is_name)));
}

static bool rename_index(Mutator *m)
{
    return replace_word(m, find(m, &m->words, is_lone_index),
                        word(&m->words, find(m, &m->words, is_lone_index)));
}

/* Both programs in one: the other's names get an underscore. */
static bool append_program(Mutator *m)
{
    StrBuf out = strbuf_new(m->arena);
    words_print(&out, &m->words);
    Words other = {.arena = m->arena};
    words_replace(&other, 0, 0, words_text(&m->other, 0, m->other.count));
    for (int at = 0; at < other.count; at++)
        if (is_access(&other, at) || word_is(&other, at - 1, "param") || word_is(&other, at - 1, "output")) {
            const char *name = word(&other, at), *renamed = arena_printf(m->arena, "%s_", name);
            for (int i = 0; i < other.count; i++)
                if (word_is(&other, i, name))
                    other.items[i].text = renamed;
        }
    words_print(&out, &other);
    m->words = words_of(m->arena, out.text);
    return true;
}

/* A statement of either program, at a place where a statement begins. */
static bool insert_statement(Mutator *m)
{
    const Words *from = percent(&m->chance, 50) ? &m->words : &m->other;
    int first = find(m, from, begins_statement), at = find(m, &m->words, begins_statement);
    if (first < 0 || at < 0)
        return false;
    words_replace(&m->words, at, 0, words_text(from, first, statement_end(from, first)));
    return true;
}

static bool drop_statement(Mutator *m)
{
    int first = find(m, &m->words, begins_statement);
    if (first >= 0)
        words_replace(&m->words, first, statement_end(&m->words, first) - first, "");
    return first >= 0;
}

static bool drop_word(Mutator *m) { return replace_word(m, find(m, &m->words, is_any), ""); }

static bool repeat_word(Mutator *m)
{
    int at = find(m, &m->words, is_any);
    if (at >= 0)
        words_replace(&m->words, at, 0, word(&m->words, at));
    return at >= 0;
}

static bool swap_words(Mutator *m)
{
    int a = find(m, &m->words, is_any), b = find(m, &m->words, is_any);
    if (a < 0)
        return false;
    Word *items = m->words.items, first = items[a];
    items[a] = items[b];
    items[b] = first;
    return true;
}

static bool foreign_word(Mutator *m)
{
    return replace_word(m, find(m, &m->words, is_any), word(&m->other, find(m, &m->other, is_any)));
}

/* Either `apply`, or: a word that `fits` gives way to one of a list. */
typedef struct Mutation {
    const char *name;
    int weight;
    bool (*apply)(Mutator *m);
    bool (*fits)(const Words *words, int at);
    const char *const *list;
    int length;
} Mutation;

#define TO_ONE_OF(list) (list), (int)(sizeof(list) / sizeof *(list))

static const Mutation mutations[] = {
    {"extent", 16, NULL, is_extent, TO_ONE_OF(sizes)},
    {"edge extent", 7, NULL, is_extent, TO_ONE_OF(edges)},
    {"number", 2, NULL, word_is_number, TO_ONE_OF(edges)},
    {"type", 10, NULL, is_type, TO_ONE_OF(types)},
    {"function", 4, NULL, is_function, TO_ONE_OF(functions)},
    {"max-min-pow", 2, NULL, is_pair, TO_ONE_OF(pairs)},
    {"reduction", 4, NULL, is_reduction, TO_ONE_OF(reductions)},
    {"arithmetic", 4, NULL, is_arithmetic, TO_ONE_OF(arithmetic)},
    {"comparison", 1, NULL, is_comparison, TO_ONE_OF(comparisons)},
    {"logic", 1, NULL, is_logic, TO_ONE_OF(logic)},
    {.name = "round", .weight = 4, .apply = round_definition},
    {.name = "swap operands", .weight = 3, .apply = swap_operands},
    {.name = "permute", .weight = 8, .apply = permute_definition},
    {.name = "drop dimension", .weight = 8, .apply = drop_dimension},
    {.name = "publish", .weight = 10, .apply = publish},
    {.name = "state extent", .weight = 2, .apply = state_extent},
    {.name = "shift index", .weight = 4, .apply = shift_index},
    {.name = "pad", .weight = 4, .apply = pad_reading},
    {.name = "apply", .weight = 5, .apply = apply},
    {.name = "cast", .weight = 3, .apply = cast},
    {.name = "combine", .weight = 5, .apply = combine},
    {.name = "rename", .weight = 1, .apply = rename_word},
    {.name = "rename index", .weight = 3, .apply = rename_index},
    {.name = "append program", .weight = 3, .apply = append_program},
    {.name = "insert statement", .weight = 1, .apply = insert_statement},
    {.name = "drop statement", .weight = 1, .apply = drop_statement},
    {.name = "drop word", .weight = 1, .apply = drop_word},
    {.name = "repeat word", .weight = 1, .apply = repeat_word},
    {.name = "swap words", .weight = 1, .apply = swap_words},
    {.name = "foreign word", .weight = 1, .apply = foreign_word},
};

enum { MUTATIONS = sizeof mutations / sizeof *mutations };

static const Mutation *choose_mutation(Chance *chance)
{
    int all = 0, i = 0;
    for (int k = 0; k < MUTATIONS; k++)
        all += mutations[k].weight;
    for (int left = below(chance, all); left >= mutations[i].weight; i++)
        left -= mutations[i].weight;
    return &mutations[i];
}

char *mutate_program(Arena *arena, Chance chance, const char *text, const char *other, StrBuf *done)
{
    Mutator m = {
        .arena = arena, .chance = chance, .words = words_of(arena, text), .other = words_of(arena, other)};
    do {
        const Mutation *mutation = choose_mutation(&m.chance);
        if (mutation->apply ? mutation->apply(&m)
                            : replace_word(&m, find(&m, &m.words, mutation->fits),
                                           mutation->list[below(&m.chance, mutation->length)]))
            strbuf_printf(done, "%s%s", done->length ? ", " : "", mutation->name);
    } while (percent(&m.chance, 60));
    StrBuf out = strbuf_new(arena);
    words_print(&out, &m.words);
    return out.text;
}
