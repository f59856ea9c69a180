#include "base/diag.h"

#include <assert.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"

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

/* Control characters and bytes beyond ASCII would reach the terminal: show them as '?'. */
static void add_escaped(Message *message, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        add_char(message, c == '\n' ? '\n' : c == '\t' ? ' ' : c < 0x20 || c > 0x7e ? '?' : (char)c);
    }
}

static void add_text(Message *message, const char *text)
{
    while (*text)
        add_char(message, *text++);
}

static void add_format(Message *message, const char *format, va_list args)
{
    char text[1024];
    vsnprintf(text, sizeof text, format, args);
    add_escaped(message, text, strlen(text));
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
    add_escaped(message, loc.source->name, strlen(loc.source->name));
    add_text(message, place);
}

/* The line the error is on, and a caret with tildes under the words it is about. */
static void add_excerpt(Message *message, Loc loc)
{
    if (!loc.source)
        return;
    LineColumn at = source_line_column(loc);
    int first = at.column > SHOWN_COLUMNS - 40 ? at.column - (SHOWN_COLUMNS - 40) : 1;
    int shown = at.length - (first - 1);
    if (shown > SHOWN_COLUMNS)
        shown = SHOWN_COLUMNS;
    add_text(message, "\n    ");
    if (shown > 0)
        add_escaped(message, at.start + first - 1, (size_t)shown);
    add_text(message, "\n    ");
    for (int i = first; i < at.column; i++)
        add_char(message, ' ');
    add_char(message, '^');
    for (int i = 1;
         i < (int)loc.length && at.column + i <= at.length && i < SHOWN_COLUMNS - at.column + first; i++)
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
