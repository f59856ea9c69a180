#include "codegen/cuda/lines.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

TextTarget target_of(const DeviceSpec *device, bool fast_math)
{
    bool hip = device->dialect == DIALECT_HIP;
    return (TextTarget){
        .hip = hip, .arch = hip ? 0 : 10 * atoi(device->arch + strlen("sm_")), .fast_math = fast_math};
}

// ---- what is known of a condition ----

typedef struct Truth {
    bool known;
    long value;
    int arch;   // that a comparison which holds has asked for
} Truth;

static const Truth UNKNOWN = {false, 0, 0};
static Truth known(long value) { return (Truth){true, value, 0}; }

static bool read_word(Slice *rest, const char *word)
{
    while (rest->start < rest->end && isspace((unsigned char)*rest->start))
        rest->start++;
    bool found = slice_starts(*rest, word);
    rest->start += found ? strlen(word) : 0;
    return found;
}

/* The stand-in's names are asked for before any others, so that these are those of the device's compiler. */
static Truth macro_truth(const TextTarget *target, Slice name, bool asks_value)
{
    if (slice_equals(name, "__CUDA_ARCH__"))
        return known(target->hip ? 0 : asks_value ? target->arch : 1);
    if (slice_equals(name, "__HIP__"))
        return known(target->hip);
    if (slice_equals(name, "ROLLERC_FAST_MATH"))
        return known(target->fast_math);
    bool is_of_hip = slice_starts(name, "__HIP") || slice_starts(name, "__AMD");
    return is_of_hip && !target->hip ? known(0) : UNKNOWN;
}

static Truth read_either(const TextTarget *target, Slice *rest);

static Truth read_operand(const TextTarget *target, Slice *rest)
{
    if (read_word(rest, "!")) {
        Truth truth = read_operand(target, rest);
        return truth.known ? known(!truth.value) : truth;
    }
    if (read_word(rest, "(")) {
        Truth truth = read_either(target, rest);
        read_word(rest, ")");
        return truth;
    }
    bool asks_value = !read_word(rest, "defined"), in_brackets = !asks_value && read_word(rest, "(");
    while (rest->start < rest->end && isspace((unsigned char)*rest->start))
        rest->start++;
    if (isdigit((unsigned char)*rest->start)) {
        char *end;
        long value = strtol(rest->start, &end, 0);
        rest->start = end;
        return known(value);
    }
    Slice name;
    token_read(rest, &name);
    Truth truth = macro_truth(target, name, asks_value);
    if (in_brackets)
        read_word(rest, ")");
    return truth;
}

static Truth read_comparison(const TextTarget *target, Slice *rest)
{
    Truth left = read_operand(target, rest);
    bool at_least = read_word(rest, ">="), below = !at_least && read_word(rest, "<");
    if (!at_least && !below)
        return left;
    Truth right = read_operand(target, rest);
    if (!left.known || !right.known)
        return UNKNOWN;
    bool holds = at_least ? left.value >= right.value : left.value < right.value;
    return (Truth){true, holds, at_least && holds ? (int)right.value : 0};
}

static Truth read_both(const TextTarget *target, Slice *rest)
{
    Truth all = read_comparison(target, rest);
    while (read_word(rest, "&&")) {
        Truth next = read_comparison(target, rest);
        int arch = next.arch > all.arch ? next.arch : all.arch;
        bool fails = (all.known && !all.value) || (next.known && !next.value);
        all = fails ? known(0) : all.known && next.known ? (Truth){true, 1, arch} : UNKNOWN;
    }
    return all;
}

static Truth read_either(const TextTarget *target, Slice *rest)
{
    Truth any = read_both(target, rest);
    while (read_word(rest, "||")) {
        Truth next = read_both(target, rest);
        bool holds = (any.known && any.value) || (next.known && next.value);
        any = holds ? known(1) : any.known && next.known ? known(0) : UNKNOWN;
    }
    return any;
}

// ---- branches ----

LineReader lines_of(Arena *arena, const TextTarget *target, Slice text)
{
    return (LineReader){.arena = arena, .target = target, .rest = text, .live = true};
}

static const char *both(Arena *arena, const char *one, const char *other)
{
    return !one ? other : !other ? one : arena_printf(arena, "%s && %s", one, other);
}

static const char *negated(Arena *arena, const char *text)
{
    if (text[0] == '!' && !strpbrk(text, "&|"))
        return text + 1;
    return arena_printf(arena, strpbrk(text, "&|") ? "!(%s)" : "!%s", text);
}

/* Of `a && b && c` what is not known; of the others what they asked for. */
static const char *unsettled(const LineReader *reader, const char *text, int *arch)
{
    const char *left = NULL;
    for (const char *part = text, *end; part && !strchr(text, '|');
         part = end ? end + strlen(" && ") : NULL) {
        end = strstr(part, " && ");
        Slice rest = {part, end ? end : part + strlen(part)};
        const char *copy = arena_strndup(reader->arena, part, slice_length(rest));
        Truth truth = read_either(reader->target, &rest);
        *arch = truth.arch > *arch ? truth.arch : *arch;
        left = truth.known ? left : both(reader->arena, left, copy);
    }
    return left ? left : text;
}

/* Goes into the branch of `condition`; gives the directive to write, NULL if there is none. */
static const char *enter_branch(LineReader *reader, Condition *condition, const char *text)
{
    Slice rest = slice_of(text);
    Truth truth = condition->was_live && !condition->settled ? read_either(reader->target, &rest) : known(0);
    reader->live = !truth.known || truth.value;
    if (!reader->live)
        return NULL;
    condition->arch = truth.arch;
    if (!truth.known)
        text = unsettled(reader, text, &condition->arch);
    condition->settled = truth.known;
    bool goes_on = condition->open;
    condition->open |= !truth.known;
    condition->text = truth.known ? condition->otherwise : both(reader->arena, condition->otherwise, text);
    if (!truth.known)
        condition->otherwise = both(reader->arena, condition->otherwise, negated(reader->arena, text));
    if (truth.known)
        return goes_on ? "#else\n" : NULL;
    return goes_on ? arena_printf(reader->arena, "#elif %s\n", text)
                   : arena_printf(reader->arena, "%s\n", condition_opening(reader->arena, text));
}

static const char *condition_of(LineReader *reader, Slice line, const char *word)
{
    const char *start = line.start + strlen(word);
    size_t length = strcspn(start, "\n");
    const char *comment = strstr(arena_strndup(reader->arena, start, length), "//");
    char *text = arena_strndup(reader->arena, start, length - (comment ? strlen(comment) : 0));
    while (*text == ' ')
        text++;
    for (size_t end = strlen(text); end > 0 && text[end - 1] == ' '; end--)
        text[end - 1] = '\0';
    return text;
}

static const char *open_condition(LineReader *reader, Slice line)
{
    assert(reader->depth < MAX_CONDITIONS);
    Condition *condition = &reader->conditions[reader->depth++];
    *condition = (Condition){.was_live = reader->live};
    bool is_not = slice_starts(line, "#ifndef");
    if (!is_not && !slice_starts(line, "#ifdef"))
        return enter_branch(reader, condition, condition_of(reader, line, "#if"));
    const char *name = condition_of(reader, line, is_not ? "#ifndef" : "#ifdef");
    return enter_branch(reader, condition,
                        arena_printf(reader->arena, "%sdefined(%s)", is_not ? "!" : "", name));
}

/* Whether the line is one of #if, #else and #endif; `text` is then what to write, NULL for nothing. */
static bool read_condition(LineReader *reader, Slice line, const char **text)
{
    Condition *condition = reader->depth > 0 ? &reader->conditions[reader->depth - 1] : NULL;
    if (slice_starts(line, "#if")) {
        *text = open_condition(reader, line);
    } else if (slice_starts(line, "#elif")) {
        *text = enter_branch(reader, condition, condition_of(reader, line, "#elif"));
    } else if (slice_starts(line, "#else")) {
        *text = enter_branch(reader, condition, "1");
    } else if (slice_starts(line, "#endif")) {
        *text = condition->open ? "#endif\n" : NULL;
        reader->live = condition->was_live;
        reader->depth--;
    } else {
        return false;
    }
    return true;
}

static int asked_arch(const LineReader *reader)
{
    int arch = 0;
    for (int i = 0; i < reader->depth; i++)
        arch = reader->conditions[i].arch > arch ? reader->conditions[i].arch : arch;
    return arch;
}

bool line_next(LineReader *reader, Line *line)
{
    while (reader->rest.start < reader->rest.end) {
        *line = (Line){.text = line_read(&reader->rest), .number = ++reader->number};
        const char *directive = NULL;
        line->is_directive = *line->text.start == '#' && read_condition(reader, line->text, &directive);
        if (line->is_directive ? !directive : !reader->live)
            continue;
        if (directive)
            line->text = slice_of(directive);
        line->arch = asked_arch(reader);
        return true;
    }
    return false;
}

const char *line_condition(const LineReader *reader)
{
    const char *text = NULL;
    for (int i = 0; i < reader->depth; i++)
        text = both(reader->arena, text, reader->conditions[i].text);
    return text;
}

const char *condition_opening(Arena *arena, const char *condition)
{
    bool is_not = condition[0] == '!';
    const char *rest = condition + is_not;
    size_t length = strlen(rest);
    if (strncmp(rest, "defined(", 8) == 0 && strcspn(rest, ")") == length - 1)
        return arena_printf(arena, "%s %.*s", is_not ? "#ifndef" : "#ifdef", (int)length - 9, rest + 8);
    return arena_printf(arena, "#if %s", condition);
}
