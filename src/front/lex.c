#include "front/lex.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/nearest.h"
#include "base/utf8.h"
#include "front/foreign.h"

static const char *const symbols[] = {
    "||", "&&", "<=", ">=", "==", "!=", "<", ">", "=", "!",
    "+", "-", "*", "/", "%", "(", ")", "[", "]", ",", ":",
};

/* Reserved, beside the functions and the element types, which have their own tables. */
static const char *const words[] = {
    "param", "input", "output", "sum", "prod", "max", "min", "inf", "pi", "pad", "cast", "select",
};

/* Words only where they begin a statement. */
static const char *const statement_words[] = {"view", "weight"};

enum { SYMBOL_COUNT = sizeof symbols / sizeof *symbols, WORD_COUNT = sizeof words / sizeof *words,
       STATEMENT_WORD_COUNT = sizeof statement_words / sizeof *statement_words };

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f';
}

/* All of them, counted from 0; NULL behind the last. Operators are no words. */
static const char *reserved_word(int i)
{
    if (i < WORD_COUNT)
        return words[i];
    i -= WORD_COUNT;
    if (i < OP_COUNT)
        return op_info[i].spelling;
    i -= OP_COUNT;
    return i < DTYPE_COUNT && dtype_info[i].in_language ? dtype_info[i].name : NULL;   // those come first
}

/* A type's only where a type stands, a function's only before "(": elsewhere they are the user's. */
static const char *const contextual[] = {"i64", "round", "atan", "asin", "acos"};

static bool is_contextual(const char *name)
{
    for (size_t i = 0; i < sizeof contextual / sizeof *contextual; i++)
        if (strcmp(name, contextual[i]) == 0)
            return true;
    return false;
}

static bool is_reserved(const char *name)
{
    const char *word;
    for (int i = 0; (word = reserved_word(i)); i++)
        if (*name == *word && strcmp(name, word) == 0)
            return !is_contextual(name);
    return false;
}

const char *lex_suggestion(Arena *arena, const char *name, bool of_statement)
{
    Nearest nearest = nearest_to(name);
    const char *word;
    for (int i = 0; (word = reserved_word(i)); i++)
        nearest_try(&nearest, word);
    for (int i = 0; i < STATEMENT_WORD_COUNT && of_statement; i++)
        nearest_try(&nearest, statement_words[i]);
    return nearest_suggestion(arena, &nearest);
}

static const char *skip_digits(const char *at)
{
    while (is_digit(*at))
        at++;
    return at;
}

/* The end of `[ "." digits ] [ ("e" | "E") [ "+" | "-" ] digits ]`, which may be empty. */
static const char *skip_fraction(const char *at, const char **problem)
{
    if (*at == '.') {
        if (!is_digit(at[1]))
            *problem = "expected digits after the '.'";
        at = skip_digits(at + 1);
    }
    if (*at == 'e' || *at == 'E') {
        at += at[1] == '+' || at[1] == '-' ? 2 : 1;
        if (!is_digit(*at))
            *problem = "expected digits in the exponent";
        at = skip_digits(at);
    }
    return at;
}

static int64_t read_integer(const char *text, const char *end, const char **problem)
{
    int64_t value = 0;
    for (; text < end; text++)
        if (!checked_mul(value, 10, &value) || !checked_add(value, *text - '0', &value)) {
            *problem = "integer past 2^63 - 1; write a real number, like 1e19";
            return 0;
        }
    return value;
}

/* strtod follows the C locale here: no part of rollerc calls setlocale. */
static double read_real(const char *text, const char **problem)
{
    double value = strtod(text, NULL);
    if (isinf(value))
        *problem = "number too large; the largest is about 1.8e308, then comes inf";
    return value;
}

/* NUMBER = digits [ "." digits ] [ ("e" | "E") [ "+" | "-" ] digits ] | "." digits … */
const char *lex_number(const char *text, Number *number, const char **problem)
{
    *problem = NULL;
    const char *digits_end = skip_digits(text);
    const char *end = skip_fraction(digits_end, problem);
    if (!*problem && (is_name_start(*end) || *end == '.'))
        *problem = "malformed number";
    if (!*problem && end == text)
        *problem = "expected a number";
    if (*problem)
        return end;
    number->is_real = end > digits_end;
    if (number->is_real)
        number->real = read_real(text, problem);
    else
        number->integer = read_integer(text, end, problem);
    return end;
}

typedef struct Lexer {
    Arena *arena;
    const Source *source;
    const char *at;
    int brackets;  // [ that are open: an index, or the variables of a definition or a reduction
    Token token;   // the last one
} Lexer;

static Loc loc_from(const Lexer *lexer, const char *start)
{
    uint32_t offset = (uint32_t)(start - lexer->source->text);
    return (Loc){lexer->source, offset, (uint32_t)(lexer->at - start)};
}

static void skip_blank(Lexer *lexer)
{
    const char *end = lexer->source->text + lexer->source->length;
    while (is_space(*lexer->at) || *lexer->at == '#') {
        if (*lexer->at++ != '#')
            continue;
        while (lexer->at < end && *lexer->at != '\n')
            lexer->at++;
    }
}

static Token lex_word(Lexer *lexer)
{
    const char *start = lexer->at;
    while (is_name_start(*lexer->at) || is_digit(*lexer->at))
        lexer->at++;
    size_t length = (size_t)(lexer->at - start);
    Loc loc = loc_from(lexer, start);
    if (length > MAX_NAME)
        reject(loc, "name of %zu characters; at most %d are allowed", length, MAX_NAME);
    const char *text = arena_strndup(lexer->arena, start, length);
    return (Token){is_reserved(text) ? TOKEN_WORD : TOKEN_NAME, .text = text, .loc = loc};
}

static Token lex_number_token(Lexer *lexer)
{
    Token token = {.kind = TOKEN_NUMBER, .text = "number"};
    const char *problem, *start = lexer->at;
    lexer->at = lex_number(start, &token.number, &problem);
    token.loc = loc_from(lexer, start);
    if (problem)
        reject(token.loc, "%s", problem);
    return token;
}

static _Noreturn void unexpected_character(Lexer *lexer)
{
    unsigned char c = (unsigned char)*lexer->at++;
    Loc loc = loc_from(lexer, lexer->at - 1);
    if (isprint(c))
        reject(loc, "unexpected character '%c'", c);
    size_t rest = lexer->source->length - loc.offset, bytes = utf8_shown(lexer->at - 1, rest, NULL);
    while ((unsigned char)*lexer->at > 0x7f)   // a letter of several bytes, or a word of them, is one mistake
        lexer->at++;
    if (bytes)
        reject(loc, "unexpected '%.*s': outside comments a program is plain ASCII", (int)bytes,
               lexer->source->text + loc.offset);
    reject(loc, "unexpected byte 0x%02x: outside comments a program is plain ASCII", c);
}

/* Of one character or two; NULL: none. */
static const char *symbol_of_length(Lexer *lexer, int length)
{
    for (int i = 0; i < SYMBOL_COUNT; i++) {
        const char *symbol = symbols[i];
        bool is_long = symbol[1] != '\0';
        if (is_long == (length == 2) && symbol[0] == lexer->at[0] &&
            (!is_long || symbol[1] == lexer->at[1])) {
            lexer->at += length;
            return symbol;
        }
    }
    return NULL;
}

static void refuse_foreign(Lexer *lexer, int length)
{
    const char *start = lexer->at, *symbol = foreign_symbol(lexer->arena, start, length);
    if (!symbol)
        return;
    lexer->at += length;
    Loc loc = loc_from(lexer, start);
    const char *in_brackets = lexer->brackets > 0 ? foreign_in_brackets(symbol) : NULL;
    reject(loc, "unexpected '%s'; %s", symbol,
           in_brackets ? in_brackets : foreign_operator(lexer->arena, symbol));
}

/* The longest first, whoever's it is: `<=` before `<<` before `<`. */
static Token lex_symbol(Lexer *lexer)
{
    const char *start = lexer->at;
    for (int length = 2; length > 0; length--) {
        const char *symbol = symbol_of_length(lexer, length);
        if (!symbol)
            refuse_foreign(lexer, length);
        if (!symbol)
            continue;
        lexer->brackets += (*symbol == '[') - (*symbol == ']');
        if (*symbol == '=')
            lexer->brackets = 0;   // a definition's, where one was left open
        return (Token){TOKEN_SYMBOL, .text = symbol, .loc = loc_from(lexer, start)};
    }
    unexpected_character(lexer);
}

static void lex_token(void *context)
{
    Lexer *lexer = context;
    char c = *lexer->at;
    if (is_name_start(c))
        lexer->token = lex_word(lexer);
    else if (is_digit(c) || (c == '.' && is_digit(lexer->at[1])))
        lexer->token = lex_number_token(lexer);
    else
        lexer->token = lex_symbol(lexer);
}

Token *lex(Arena *arena, const Source *source)
{
    enum { FIRST = 256 };
    Lexer lexer = {arena, source, .at = source->text};
    Token *tokens = NEW_ARRAY(arena, Token, FIRST);
    for (size_t count = 0, capacity = FIRST;; count++) {
        if (count == capacity) {
            capacity *= 2;
            tokens = memcpy(NEW_ARRAY(arena, Token, capacity), tokens, count * sizeof *tokens);
        }
        Loc behind = loc_from(&lexer, lexer.at);   // errors at the end point behind the last token
        skip_blank(&lexer);
        if (lexer.at == source->text + source->length) {
            tokens[count] = (Token){TOKEN_END, .text = "the end of the file", .loc = behind};
            return tokens;
        }
        const char *start = lexer.at;
        bool right = diag_attempt(lex_token, &lexer);
        tokens[count] =
            right ? lexer.token : (Token){TOKEN_WRONG, .text = "", .loc = loc_from(&lexer, start)};
    }
}

bool token_begins_line(const Token *token)
{
    Loc before = token[-1].loc;
    uint32_t end = before.offset + before.length;
    return memchr(before.source->text + end, '\n', token->loc.offset - end) != NULL;
}

bool lex_begins_statement(const char *word)
{
    for (int i = 0; i < STATEMENT_WORD_COUNT; i++)
        if (strcmp(word, statement_words[i]) == 0)
            return true;
    return false;
}

bool token_begins(const Token *token, const char *word)
{
    return token->kind == TOKEN_NAME && strcmp(token->text, word) == 0 &&
           (token[1].kind == TOKEN_NAME ||
            token[1].kind == TOKEN_WORD) &&   // a reserved word is refused as a name
           token[2].kind == TOKEN_SYMBOL &&
           strcmp(token[2].text, "[") == 0;
}

bool token_is_dtype(const Token *token, DType *type)
{
    bool is_word = token->kind == TOKEN_WORD || (token->kind == TOKEN_NAME && is_contextual(token->text));
    for (int i = 0; i < DTYPE_COUNT && is_word; i++)
        if (dtype_info[i].in_language && strcmp(token->text, dtype_info[i].name) == 0) {
            *type = (DType)i;
            return true;
        }
    return false;
}

bool lex_function(const char *word, Op *op)
{
    for (int i = 0; i < OP_COUNT; i++)
        if (strcmp(word, op_info[i].spelling) == 0) {
            *op = (Op)i;
            return true;
        }
    return false;
}

const char *lex_meaning(const Token *token)
{
    DType type;
    if (token_is_dtype(token, &type))
        return "an element type";
    Op op;
    return lex_function(token->text, &op) ? "a function" : "a reserved word";
}

static void real_print(StrBuf *out, double value)
{
    size_t start = out->length;
    strbuf_double(out, value);
    if (isfinite(value) && !strpbrk(out->text + start, ".e"))
        strbuf_puts(out, ".0");
}

void number_print(StrBuf *out, Number number)
{
    if (number.is_real)
        real_print(out, number.real);
    else
        strbuf_printf(out, "%" PRId64, number.integer);
}

/* Tokens come in order, so the line is counted on from the token before: one pass over the text. */
void tokens_print(StrBuf *out, const Token *tokens)
{
    static const char *const kind_name[] = {"end", "name", "word", "number", "symbol", "wrong"};
    int line = 1, column = 1;
    uint32_t offset = 0;
    for (const Token *token = tokens;; token++) {
        for (; offset < token->loc.offset; offset++) {
            column++;
            if (token->loc.source->text[offset] == '\n') {
                line++;
                column = 1;
            }
        }
        strbuf_printf(out, "%d:%d %s", line, column, kind_name[token->kind]);
        if (token->kind == TOKEN_END)
            break;
        strbuf_putc(out, ' ');
        if (token->kind == TOKEN_NUMBER)
            number_print(out, token->number);
        else
            strbuf_puts(out, token->text);
        strbuf_putc(out, '\n');
    }
    strbuf_putc(out, '\n');
}
