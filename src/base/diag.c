#include "base/diag.h"

#include <assert.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/utf8.h"

static DiagOptions options;

void diag_configure(DiagOptions chosen)
{
    options = chosen;
}

bool diag_is_verbose(void)
{
    return options.verbose;
}

bool diag_is_quiet(void)
{
    return options.quiet;
}

enum { MESSAGE_BYTES = 4096, SHOWN_COLUMNS = 160 };   // a hostile file may be one line of a megabyte

typedef struct Message {
    char text[MESSAGE_BYTES];
    size_t length;
} Message;

static void add_char(Message *message, char c)
{
    if (message->length + 1 < sizeof message->text)
        message->text[message->length++] = c;
    message->text[message->length] = '\0';
}

static void add_text(Message *message, const char *text)
{
    while (*text)
        add_char(message, *text++);
}

/* Characters are shown as they are; control characters, which would reach the terminal, and bytes that are no
   UTF-8 as `escape` says. */
static void add_shown(Message *message, const char *text, size_t length, const char *escape)
{
    for (size_t i = 0, bytes; i < length; i += bytes ? bytes : 1) {
        char shown[8];
        bytes = utf8_shown(text + i, length - i, NULL);
        if (bytes)
            snprintf(shown, sizeof shown, "%.*s", (int)bytes, text + i);
        else if (text[i] == '\t')
            snprintf(shown, sizeof shown, " ");
        else
            snprintf(shown, sizeof shown, escape, (unsigned char)text[i]);
        add_text(message, shown);
    }
}

static const char CODE[] = "\\x%02x";

static void add_format(Message *message, const char *format, va_list args)
{
    char text[1024];
    vsnprintf(text, sizeof text, format, args);
    for (const char *line = text; *line;) {
        size_t length = strcspn(line, "\n");
        add_shown(message, line, length, CODE);
        line += length;
        if (*line == '\n')
            add_char(message, *line++);
    }
}

static void add_place(Message *message, Loc loc)
{
    if (!loc.source) {
        add_text(message, "rollerc: ");
        return;
    }
    LineColumn at = source_line_column(loc);
    char place[48];
    snprintf(place, sizeof place, ":%d:%d: ", at.line, at.column);
    add_shown(message, loc.source->name, strlen(loc.source->name), CODE);
    add_text(message, place);
}

/* Columns that so many bytes take: a character takes one, and so does the '?' of a byte that is none. */
static int columns_of(const char *text, int length)
{
    int columns = 0;
    for (int i = 0; i < length; columns++) {
        size_t bytes = utf8_shown(text + i, (size_t)(length - i), NULL);
        i += bytes ? (int)bytes : 1;
    }
    return columns;
}

static int least(int a, int b) { return a < b ? a : b; }

/* The line the error is on, and a caret with tildes under the words it is about. */
static void add_excerpt(Message *message, Loc loc)
{
    if (!loc.source)
        return;
    LineColumn at = source_line_column(loc);
    int first = at.column > SHOWN_COLUMNS - 40 ? at.column - (SHOWN_COLUMNS - 40) : 1,
        before = at.column - first;
    int shown = least(at.length - (first - 1), SHOWN_COLUMNS);
    int marked = least(least((int)loc.length, at.length - at.column + 1), SHOWN_COLUMNS - before);
    const char *line = at.start + first - 1;
    add_text(message, "\n    ");
    if (shown > 0)
        add_shown(message, line, (size_t)shown, "?");
    add_text(message, "\n    ");
    for (int i = columns_of(line, before); i > 0; i--)
        add_char(message, ' ');
    add_char(message, '^');
    for (int i = marked > 1 ? columns_of(line + before, marked) : 1; i > 1; i--)
        add_char(message, '~');
}

static void print(const Message *message, const char *word, const char *colour)
{
    const char *mark = options.colour ? strstr(message->text, word) : NULL;
    if (!mark) {
        fprintf(stderr, "%s\n", message->text);
        return;
    }
    fprintf(stderr, "%.*s%s%s\033[0m%s\n", (int)(mark - message->text), message->text, colour, word,
            mark + strlen(word));
}

// ---- errors ----

enum { MOST_ERRORS = 20 };   // of one run: what comes after them often comes of them

static Loc place;           // of what has none of its own
static jmp_buf *recovery;   // where an attempt ends; NULL: none is being made
static int errors;          // of the attempts so far
static Message first_error;

static void print_error(const Message *message)
{
    if (!options.on_fatal)
        print(message, "error:", "\033[1;31m");
}

static _Noreturn void leave(const Message *message, int exit_code)
{
    recovery = NULL;
    errors = 0;
    if (options.on_fatal)
        options.on_fatal(exit_code, message->text, options.context);
    exit(exit_code);
}

static _Noreturn void end(const Message *message, int exit_code)
{
    print_error(message);
    if (errors == 0)
        first_error = *message;
    if (!recovery || exit_code != EXIT_INPUT)
        leave(message, exit_code);
    if (++errors == MOST_ERRORS)
        diag_finish();
    longjmp(*recovery, 1);
}

bool diag_attempt(void (*attempt)(void *), void *context)
{
    jmp_buf here;
    assert(!recovery);   // attempts are not nested
    bool failed = setjmp(here) != 0;
    if (!failed) {
        recovery = &here;
        attempt(context);
    }
    recovery = NULL;
    place = (Loc){0};
    return !failed;
}

void diag_place(Loc chosen)
{
    place = chosen;
}

void diag_abandon(void)
{
    assert(recovery && errors > 0);
    longjmp(*recovery, 1);
}

void diag_finish(void)
{
    if (errors > 0)
        leave(&first_error, EXIT_INPUT);
}

void diag_fatal(Loc loc, int exit_code, const char *format, ...)
{
    Message message = {.length = 0};
    add_place(&message, loc);
    add_text(&message, "error: ");
    va_list args;
    va_start(args, format);
    add_format(&message, format, args);
    va_end(args);
    add_excerpt(&message, loc);
    end(&message, exit_code);
}

void fatal(int exit_code, const char *format, ...)
{
    bool placed = place.source && (exit_code == EXIT_INPUT || exit_code == EXIT_USAGE);
    Loc loc = placed ? place : (Loc){0};
    Message message = {.length = 0};
    add_place(&message, loc);
    add_text(&message, "error: ");
    va_list args;
    va_start(args, format);
    add_format(&message, format, args);
    va_end(args);
    add_excerpt(&message, loc);
    end(&message, placed ? EXIT_INPUT : exit_code);
}

void diag_warning(Loc loc, const char *format, ...)
{
    if (options.quiet)
        return;
    Message message = {.length = 0};
    add_place(&message, loc);
    add_text(&message, "warning: ");
    va_list args;
    va_start(args, format);
    add_format(&message, format, args);
    va_end(args);
    add_excerpt(&message, loc);
    print(&message, "warning:", "\033[1;35m");
}

void talk(const char *format, ...)
{
    if (options.quiet)
        return;
    Message message = {.length = 0};
    add_text(&message, "rollerc: ");
    va_list args;
    va_start(args, format);
    add_format(&message, format, args);
    va_end(args);
    fprintf(stderr, "%s\n", message.text);
}
