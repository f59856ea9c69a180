#include "codegen/cuda/fold.h"

#include <ctype.h>
#include <string.h>

#include "base/strbuf.h"
#include "codegen/cuda/fold_parts.h"

enum { INDENT = 4 };

// ---- statements ----

static Slice peek(const Slice *rest)
{
    Slice copy = *rest, token;
    token_read(&copy, &token);
    return token;
}

static bool is_loop(Slice token)
{
    return slice_equals(token, "for") || slice_equals(token, "while") || slice_equals(token, "switch");
}

/* The rest of a #pragma, which belongs to the loop behind it. */
static void skip_line(Slice *rest)
{
    while (rest->start < rest->end && *rest->start != '\n')
        rest->start++;
}

/* `(…)` of an if or a loop. */
static Slice read_brackets(Slice *rest)
{
    Slice token;
    while (token_read(rest, &token) && *token.start != '(')
        ;   // `constexpr`
    return token_read_group(rest, '(');
}

/* Where the statement ends that begins at `rest`. */
static void skip_statement(Slice *rest)
{
    Slice token;
    if (!token_read(rest, &token))
        return;
    if (*token.start == '{') {
        token_read_group(rest, '{');
    } else if (*token.start == '#') {
        skip_line(rest);
        skip_statement(rest);
    } else if (slice_starts(token, "UNROLL")) {
        skip_statement(rest);
    } else if (slice_equals(token, "if")) {
        read_brackets(rest);
        skip_statement(rest);
        if (slice_equals(peek(rest), "else")) {
            token_read(rest, &token);
            skip_statement(rest);
        }
    } else if (is_loop(token)) {
        read_brackets(rest);
        skip_statement(rest);
    } else {
        token_read_to_semicolon(rest, token);
    }
}

/* The lines that begin within it move to the left. */
static void outdent(ConditionFold *fold, const char *start, const char *end)
{
    for (const char *at = start; at < end; at++)
        for (int i = 1; *at == '\n' && i <= INDENT && at[i] == ' '; i++)
            fold->removed[at + i - fold->text] = true;
}

/* `float x = 1;` `const T y;` `SHARED(…)`: its name is known up to the end of the block. */
static bool is_declaration(Slice rest)
{
    Slice token;
    token_read(&rest, &token);
    if (slice_equals(token, "SHARED"))
        return true;
    Slice next = peek(&rest);
    return is_name(token) && !slice_equals(token, "return") && !slice_starts(token, "UNROLL") &&
           is_name(next);
}

/* Whether the block declares a name that the function has elsewhere. */
static bool hides_names(const ConditionFold *fold, Slice block)
{
    bool hides = false;
    const Slice whole = block;
    while (!hides && peek(&block).start < block.end && *peek(&block).start != '}') {
        Slice statement = {block.start, NULL}, token;
        bool declares = is_declaration(block);
        skip_statement(&block);
        statement.end = block.start;
        for (Slice last = {"", ""}; declares && !hides && token_read(&statement, &token); last = token)
            hides = is_name(token) && (is_name(last) || strchr(",*&", *last.start)) && strchr("=;[{(,", *peek(&statement).start) &&
                    fold_count_word(fold, fold->function, token) > fold_count_word(fold, whole, token);
    }
    return hides;
}

/* The { } around the statement, where nothing needs them. */
static void unwrap(ConditionFold *fold, Slice statement)
{
    Slice inside = {statement.start + 1, statement.end - 1};
    if (*statement.start != '{' || hides_names(fold, inside)) {
        if (*statement.start != '{')
            outdent(fold, statement.start, statement.end);
        return;
    }
    const char *first = peek(&inside).start;
    const char *comment = inside.start + strspn(inside.start, " ");
    if (*comment == '/')   // on the line of the brace
        comment += strcspn(comment, "\n");
    comment += strspn(comment, " \n");
    fold_remove(fold, statement.start, comment < first ? comment : first);
    outdent(fold, first, statement.end);
    fold_remove(fold, inside.end, statement.end);
}

static bool fold_statement(ConditionFold *fold, Slice *rest, bool in_block);

/* Gives whether what follows can never run. */
static bool take_branch(ConditionFold *fold, const char *start, Slice taken, const char *end, bool in_block)
{
    fold_remove(fold, start, taken.start);
    fold_remove(fold, taken.end, end);
    if (in_block)
        unwrap(fold, taken);
    return fold_statement(fold, &taken, false);
}

static void take_none(ConditionFold *fold, const char *start, const char *end, bool in_block)
{
    if (in_block) {
        fold_remove(fold, fold_comment_above(fold, start), end);
        return;
    }
    fold_remove(fold, start, end - 1);
    fold->text[end - 1 - fold->text] = ';';
}

static Slice read_statement(Slice *rest)
{
    Slice statement = {peek(rest).start, NULL};
    skip_statement(rest);
    statement.end = rest->start;
    return statement;
}

static bool is_among(const Slice *names, Slice name)
{
    while (names->start && !slice_same(*names, name))
        names++;
    return names->start != NULL;
}

/* `name(arguments);` that changes nothing, neither there nor by its arguments. */
static bool is_idle_call(const ConditionFold *fold, Slice name, Slice rest)
{
    Slice token, last = {0};
    if (!is_among(fold->idle, name) || !token_read(&rest, &token) || *token.start != '(')
        return false;
    Slice arguments = token_read_group(&rest, '(');
    while (token_read(&arguments, &token)) {
        if (*token.start == '=' || (last.start && strchr("+-", *token.start) && *last.start == *token.start))
            return false;
        last = token;
    }
    return *peek(&rest).start == ';';
}

/* `if (…) name(arguments);` */
static bool is_idle_if(const ConditionFold *fold, Slice condition, Slice statement)
{
    Slice name;
    return token_read(&statement, &name) && is_idle_call(fold, name, statement) && fold_only_asks(condition);
}

/* `if (false) …;` without an else. */
static bool never_runs(const ConditionFold *fold, Slice statement)
{
    Slice token;
    if (!token_read(&statement, &token) || !slice_equals(token, "if"))
        return false;
    Slice condition = read_brackets(&statement);
    int64_t value;
    skip_statement(&statement);
    return fold_evaluate(fold->constants, condition, &value) && !value && !slice_equals(peek(&statement), "else");
}

/* `if` has been read. */
static bool fold_if(ConditionFold *fold, Slice *rest, const char *start, bool in_block)
{
    Slice token, condition = read_brackets(rest), after = *rest;
    Slice one = read_statement(&after), other = {0};
    if (slice_equals(peek(&after), "else")) {
        token_read(&after, &token);
        other = read_statement(&after);
    }
    int64_t value;
    if (in_block && !other.start && is_idle_if(fold, condition, one)) {
        *rest = after;
        take_none(fold, start, after.start, in_block);
        return false;
    }
    if (!fold_evaluate(fold->constants, condition, &value)) {
        bool ends = fold_statement(fold, &one, false), idle = other.start && never_runs(fold, other);
        if (idle)
            fold_remove(fold, one.start, other.end);
        ends &= other.start && !idle && fold_statement(fold, &other, false);
        *rest = after;
        return ends;
    }
    *rest = after;
    if (value || other.start)
        return take_branch(fold, start, value ? one : other, after.start, in_block);
    take_none(fold, start, after.start, in_block);
    return false;
}

/* `{` has been read. */
static bool fold_block(ConditionFold *fold, Slice *rest)
{
    bool ended = false;
    while (rest->start < rest->end) {
        Slice next = peek(rest);
        if (next.start == rest->end || *next.start == '}') {
            token_read(rest, &next);
            break;
        }
        if (ended) {
            Slice statement = read_statement(rest);
            fold_remove(fold, fold_comment_above(fold, statement.start), statement.end);
        } else {
            ended = fold_statement(fold, rest, true);
        }
    }
    return ended;
}

/* The bodies of `[&](…) {…}` in an expression. */
static void fold_lambdas(ConditionFold *fold, Slice statement)
{
    Slice token, last = {"", ""};
    for (; token_read(&statement, &token); last = token) {
        if (*token.start != '[' || !strchr("=(,", *last.start))
            continue;
        token_read_group(&statement, '[');
        read_brackets(&statement);
        while (token_read(&statement, &token) && *token.start != '{')
            ;   // `-> float &`
        fold_block(fold, &statement);
    }
}

static bool fold_statement(ConditionFold *fold, Slice *rest, bool in_block)
{
    Slice token;
    if (!token_read(rest, &token))
        return false;
    if (*token.start == '{')
        return fold_block(fold, rest);
    while (*token.start == '#' || slice_starts(token, "UNROLL")) {
        if (*token.start == '#')
            skip_line(rest);
        if (!is_loop(peek(rest)) && *peek(rest).start != '#')
            return fold_statement(fold, rest, false);
        token_read(rest, &token);
    }
    if (slice_equals(token, "if"))
        return fold_if(fold, rest, token.start, in_block);
    if (is_loop(token)) {
        read_brackets(rest);
        fold_statement(fold, rest, false);
        return false;
    }
    if (in_block && is_idle_call(fold, token, *rest)) {
        token_read_to_semicolon(rest, token);
        fold_remove(fold, fold_comment_above(fold, token.start), rest->start);
        return false;
    }
    token_read_to_semicolon(rest, token);
    const Slice statement = {token.start, rest->start};
    if (in_block && !fold->keeps_lines && fold_constant(fold, statement))
        return false;
    fold_lambdas(fold, statement);
    return slice_equals(token, "return");
}

// ---- functions ----

/* Behind the { of the next function's body, which may be a member; false: there is none. */
static bool find_body(Slice *rest)
{
    Slice token;
    bool has_arguments = false, is_type = false;
    while (token_read(rest, &token)) {
        if (*token.start == '<' || *token.start == '(') {
            token_read_group(rest, *token.start);
            has_arguments |= *token.start == '(';
        } else if (*token.start == '{' && has_arguments && !is_type) {
            return true;
        } else if (*token.start == '{' && !is_type) {
            token_read_group(rest, '{');
        } else if (*token.start == '=') {
            token_read_to_semicolon(rest, token);
        } else if (*token.start == '#') {
            return false;
        }
        is_type |= slice_equals(token, "struct") || slice_equals(token, "union");
        if (strchr("{;", *token.start))
            has_arguments = is_type = false;
    }
    return false;
}

/* What is left of the lines; those that nothing, or only a comment on what was there, is left of go as
   well, unless lines are counted. */
static const char *remaining_text(Arena *arena, Arena *scratch, const ConditionFold *fold)
{
    StrBuf out = strbuf_new(scratch), line = strbuf_new(scratch);
    bool cut = false, was_code = false;
    for (size_t i = 0; i < fold->length; i++) {
        bool removed = fold->removed[i] && !(fold->keeps_lines && fold->text[i] == '\n');
        cut |= removed;
        was_code |= removed && !isspace((unsigned char)fold->text[i]);
        if (!removed)
            strbuf_putc(&line, fold->text[i]);
        if (removed || fold->text[i] != '\n')
            continue;
        Slice left = slice_of(line.text);
        const char *first = left.start + strspn(left.start, " \n");
        bool is_comment = was_code && first[0] == '/' && first[1] == '/';
        if (fold->keeps_lines || !(cut && (*first == '\0' || is_comment)))
            strbuf_write(&out, line.text, line.length);
        line.length = 0;
        line.text[0] = '\0';
        cut = was_code = false;
    }
    strbuf_puts(&out, line.text);
    return arena_strndup(arena, out.text, out.length);
}

/* Constants whose names mean something else in the text: `Index STEP` declares another one. */
static const Slice *hidden_names(Arena *arena, const Constants *constants, const char *text)
{
    enum { MAX_HIDDEN = 32 };
    Slice hidden[MAX_HIDDEN + 1];
    int count = 0;
    Slice rest = slice_of(text), token, before = {0};
    while (token_read(&rest, &token) && count < MAX_HIDDEN) {
        bool declares = is_name(before) && is_name(token) && !slice_equals(before, "return") &&
                        !slice_equals(before, "else");
        if (declares && constants_have(constants, token))
            hidden[count++] = token;
        before = token;
    }
    hidden[count++] = (Slice){0};
    return arena_copy(arena, hidden, (size_t)count * sizeof *hidden);
}

bool fold_is_idle(const char *text)
{
    Slice body = slice_of(text), token;
    bool idle = find_body(&body) && strstr(text, "void ") && strstr(text, "void ") < body.start;
    return idle && token_read(&body, &token) && *token.start == '}';
}

/* The text as it was, while nothing is removed of it. */
static ConditionFold fold_of(Constants *visible, const char *text, bool keeps_lines)
{
    Arena *arena = visible->table.arena;
    size_t length = strlen(text);
    visible->hidden = hidden_names(arena, visible->outer, text);
    return (ConditionFold){.constants = visible,
                           .text = arena_strdup(arena, text),
                           .length = length,
                           .removed = NEW_ARRAY(arena, bool, length + 1),
                           .keeps_lines = keeps_lines};
}

const char *fold_branches(Arena *arena, Arena *scratch, const Constants *constants, const Slice *idle,
                          const char *text, bool keeps_lines)
{
    if (strstr(text, "\n#if") || *text == '#' || !strchr(text, '{'))
        return text;
    arena_reset(scratch);
    Constants visible = {.table = {.arena = scratch}, .outer = constants};
    ConditionFold fold = fold_of(&visible, text, keeps_lines);
    fold.idle = idle;
    for (Slice rest = {fold.text, fold.text + fold.length}; find_body(&rest);) {
        fold.function = rest;
        token_read_group(&fold.function, '{');
        fold.function = (Slice){rest.start, fold.function.start};
        fold_block(&fold, &rest);
    }
    return fold.any ? remaining_text(arena, scratch, &fold) : text;
}

const char *fold_expressions(Arena *arena, Arena *scratch, const Constants *constants, const char *text,
                             bool keeps_lines)
{
    if (strstr(text, "\n#if") || *text == '#' || !(strchr(text, '?') || strstr(text, "&&") || strstr(text, "||")))
        return text;
    arena_reset(scratch);
    Constants visible = {.table = {.arena = scratch}, .outer = constants};
    ConditionFold fold = fold_of(&visible, text, keeps_lines);
    fold_choices(&fold, (Slice){fold.text, fold.text + fold.length});
    return fold.any ? remaining_text(arena, scratch, &fold) : text;
}
