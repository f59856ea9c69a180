#include "codegen/cuda/fold.h"

#include <ctype.h>
#include <string.h>

#include "base/strbuf.h"

enum { INDENT = 4 };

typedef struct ConditionFold {
    const Constants *constants;
    const Slice *idle;
    char *text;   // a copy
    size_t length;
    bool *removed;   // of each character
    bool any, keeps_lines;
} ConditionFold;

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

static void skip_to_semicolon(Slice *rest, Slice token)
{
    while (*token.start != ';') {
        if (strchr("({[", *token.start))
            token_read_group(rest, *token.start);
        if (!token_read(rest, &token))
            return;
    }
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
        skip_to_semicolon(rest, token);
    }
}

static void remove_text(ConditionFold *fold, const char *start, const char *end)
{
    for (const char *at = start; at < end; at++)
        fold->removed[at - fold->text] = true;
    fold->any = true;
}

/* The lines that begin within it move to the left. */
static void outdent(ConditionFold *fold, const char *start, const char *end)
{
    for (const char *at = start; at < end; at++)
        for (int i = 1; *at == '\n' && i <= INDENT && at[i] == ' '; i++)
            fold->removed[at + i - fold->text] = true;
}

/* Comments on the lines above a statement that goes are about it. */
static const char *comment_above(const ConditionFold *fold, const char *statement)
{
    const char *line = statement;
    while (line > fold->text && line[-1] != '\n')
        line--;
    if (line + strspn(line, " ") != statement)
        return statement;
    while (line > fold->text) {
        const char *above = line - 1;
        while (above > fold->text && above[-1] != '\n')
            above--;
        if (strncmp(above + strspn(above, " "), "//", 2) != 0)
            return line + strspn(line, " ");
        line = above;
    }
    return statement;
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

static bool has_declarations(Slice block)
{
    bool found = false;
    while (!found && peek(&block).start < block.end && *peek(&block).start != '}') {
        found = is_declaration(block);
        skip_statement(&block);
    }
    return found;
}

/* The { } around the statement, where nothing needs them. */
static void unwrap(ConditionFold *fold, Slice statement)
{
    Slice inside = {statement.start + 1, statement.end - 1};
    if (*statement.start != '{' || has_declarations(inside)) {
        if (*statement.start != '{')
            outdent(fold, statement.start, statement.end);
        return;
    }
    const char *first = peek(&inside).start;
    const char *comment = inside.start + strspn(inside.start, " \n");
    remove_text(fold, statement.start, comment < first ? comment : first);
    outdent(fold, first, statement.end);
    remove_text(fold, inside.end, statement.end);
}

static bool fold_statement(ConditionFold *fold, Slice *rest, bool in_block);

/* Gives whether what follows can never run. */
static bool take_branch(ConditionFold *fold, const char *start, Slice taken, const char *end, bool in_block)
{
    remove_text(fold, start, taken.start);
    remove_text(fold, taken.end, end);
    if (in_block)
        unwrap(fold, taken);
    return fold_statement(fold, &taken, false);
}

static void take_none(ConditionFold *fold, const char *start, const char *end, bool in_block)
{
    if (in_block) {
        remove_text(fold, comment_above(fold, start), end);
        return;
    }
    remove_text(fold, start, end - 1);
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

static bool has_any(Slice text, const Slice *names)
{
    Slice token;
    while (names->start && token_read(&text, &token))
        if (is_name(token) && is_among(names, token))
            return true;
    return false;
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

/* Asks, and changes nothing: no call, no assignment. */
static bool only_asks(Slice condition)
{
    Slice token, last = {0};
    while (token_read(&condition, &token)) {
        bool calls = *token.start == '(' && is_name(last);
        bool assigns = *token.start == '=' && (!last.start || !strchr("=!<>", *last.start)) &&
                       !slice_starts(condition, "=");
        bool steps = last.start && strchr("+-", *token.start) && *last.start == *token.start;
        if (calls || assigns || steps)
            return false;
        last = token;
    }
    return true;
}

/* `if (…) name(arguments);` */
static bool is_idle_if(const ConditionFold *fold, Slice condition, Slice statement)
{
    Slice name;
    return token_read(&statement, &name) && is_idle_call(fold, name, statement) && only_asks(condition);
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
    if (!constants_evaluate(fold->constants, condition, &value)) {
        bool ends = fold_statement(fold, &one, false);
        ends &= other.start && fold_statement(fold, &other, false);
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
            remove_text(fold, comment_above(fold, statement.start), statement.end);
        } else {
            ended = fold_statement(fold, rest, true);
        }
    }
    return ended;
}

static int count_word(const ConditionFold *fold, Slice word)
{
    Slice rest = {strchr(fold->text, '{'), fold->text + fold->length}, token;
    int count = 0;
    while (token_read(&rest, &token))
        count += !fold->removed[token.start - fold->text] && slice_same(token, word);
    return count;
}

/* `(void)t, (void)row;`: stays of what is mentioned nowhere else. */
static bool fold_mentions(ConditionFold *fold, Slice *rest, const char *start)
{
    StrBuf left = strbuf_new(fold->constants->table.arena);
    Slice whole = {start, NULL}, token;
    while (token_read(rest, &token) && *token.start != ';')
        if (is_name(token) && !slice_equals(token, "void") && count_word(fold, token) == 1)
            strbuf_printf(&left, "%s(void)%.*s", left.length ? ", " : "", (int)slice_length(token),
                          token.start);
    whole.end = rest->start;
    if (!left.length) {
        remove_text(fold, whole.start, whole.end);
        return false;
    }
    char *at = fold->text + (whole.start - fold->text);
    memcpy(at, left.text, left.length);   // it is no longer than it was
    at[left.length] = ';';
    remove_text(fold, whole.start + left.length + 1, whole.end);
    return false;
}

static bool fold_statement(ConditionFold *fold, Slice *rest, bool in_block)
{
    Slice token;
    if (!token_read(rest, &token))
        return false;
    if (*token.start == '{')
        return fold_block(fold, rest);
    if (*token.start == '#')
        skip_line(rest);
    if (*token.start == '#' || slice_starts(token, "UNROLL"))
        return fold_statement(fold, rest, false);
    if (slice_equals(token, "if"))
        return fold_if(fold, rest, token.start, in_block);
    if (is_loop(token)) {
        read_brackets(rest);
        fold_statement(fold, rest, false);
        return false;
    }
    if (in_block && is_idle_call(fold, token, *rest)) {
        skip_to_semicolon(rest, token);
        remove_text(fold, comment_above(fold, token.start), rest->start);
        return false;
    }
    if (in_block && !fold->keeps_lines && *token.start == '(' && slice_equals(peek(rest), "void"))
        return fold_mentions(fold, rest, token.start);
    skip_to_semicolon(rest, token);
    return slice_equals(token, "return");
}

// ---- functions ----

/* Behind the { of a function's body; empty where the text defines none. */
static Slice body_of(const char *text)
{
    Slice rest = slice_of(text), token;
    bool has_arguments = false;
    while (token_read(&rest, &token)) {
        if (*token.start == '<' || *token.start == '(') {
            token_read_group(&rest, *token.start);
            has_arguments |= *token.start == '(';
        } else if (*token.start == '{' && has_arguments) {
            return rest;
        } else if (strchr("{=;#", *token.start) || slice_equals(token, "struct") ||
                   slice_equals(token, "union")) {
            break;
        }
    }
    return (Slice){text, text};
}

/* What is left of the lines; those that nothing, or only a comment on what was there, is left of go as
   well, unless lines are counted. */
static const char *remaining_text(Arena *arena, const ConditionFold *fold)
{
    StrBuf out = strbuf_new(arena), line = strbuf_new(arena);
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
    return out.text;
}

/* Constants whose names mean something else in the text: `Index STEP` declares another one. */
static const Slice *hidden_names(Arena *arena, const Constants *constants, const char *text)
{
    enum { MAX_HIDDEN = 32 };
    Slice *hidden = NEW_ARRAY(arena, Slice, MAX_HIDDEN + 1);
    int count = 0;
    Slice rest = slice_of(text), token, before = {0};
    while (token_read(&rest, &token) && count < MAX_HIDDEN) {
        bool declares = is_name(before) && is_name(token) && !slice_equals(before, "return") &&
                        !slice_equals(before, "else");
        if (declares && constants_have(constants, token))
            hidden[count++] = token;
        before = token;
    }
    return hidden;
}

bool fold_is_idle(const char *text)
{
    Slice body = body_of(text), token;
    bool idle = body.start < body.end && strstr(text, "void ") && strstr(text, "void ") < body.start;
    while (idle && token_read(&body, &token) && *token.start != '}') {
        idle = *token.start == '(' && slice_equals(peek(&body), "void");
        while (idle && *token.start != ';' && token_read(&body, &token))
            ;
    }
    return idle;
}

const char *fold_branches(Arena *arena, const Constants *constants, const Slice *idle, const char *text, bool keeps_lines)
{
    Slice body = body_of(text);
    if (strstr(body.start, "\n#if") ||
        !(idle->start ? has_any(body, idle) : strstr(body.start, "if ") || strstr(body.start, "(void)")))
        return text;
    Constants visible = {
        .table = {.arena = arena}, .outer = constants, .hidden = hidden_names(arena, constants, text)};
    size_t length = strlen(text);
    ConditionFold fold = {.constants = &visible,
                          .idle = idle,
                          .text = arena_strdup(arena, text),
                          .length = length,
                          .removed = NEW_ARRAY(arena, bool, length + 1),
                          .keeps_lines = keeps_lines};
    Slice rest = {fold.text + (body.start - text), fold.text + length};
    if (body.start < body.end)
        fold_block(&fold, &rest);
    return fold.any ? remaining_text(arena, &fold) : text;
}
