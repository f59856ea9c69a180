// Talk to the user: errors that point at the text they are about, and the documented exit codes.
#pragma once
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/source.h"

/* Exit codes, as documented in the manual. */
enum {
    EXIT_DONE = 0,
    EXIT_INPUT = 1,       // the .te or device file is wrong
    EXIT_USAGE = 2,       // options, unknown -D name, unknown suffix
    EXIT_NO_PROGRAM = 3,  // the device can hold no program for this expression
    EXIT_MACHINE = 4,     // the machine lacks something: C++ compiler, space, rights, memory
    EXIT_WRONG = 5,       // every candidate failed, or the kernel is wrong
    EXIT_BUG = 70,        // a bug in rollerc
};

/* `file:line:col: error: message`, the line and a caret below it; then the program ends with `exit_code`. */
_Noreturn void diag_fatal(Loc loc, int exit_code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for an error that has no place in a file: `rollerc: error: message`. */
_Noreturn void fatal(int exit_code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* From now on what is wrong by fatal() with EXIT_INPUT or EXIT_USAGE is wrong at this place of an input,
   which said it in other words; a place without a source, or the end of an attempt, ends that. */
void diag_place(Loc place);

/* Runs attempt(context), for a part of the input that can be wrong by itself, like a statement. An error in
   it (diag_fatal with EXIT_INPUT) is printed and ends this attempt only: false. So one run finds the errors
   of many parts; the twentieth ends it. */
bool diag_attempt(void (*attempt)(void *context), void *context);
/* Ends an attempt in silence: the error was reported for another part. */
_Noreturn void diag_abandon(void);
/* Ends the program if an attempt has failed. */
void diag_finish(void);

void diag_warning(Loc loc, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* One plain line on stderr: `rollerc: message`; silent under -q. */
void talk(const char *format, ...) __attribute__((format(printf, 1, 2)));

typedef struct DiagOptions {
    bool quiet;     // warnings and talk() are dropped
    bool verbose;   // stages say what they did (stopwatch.h)
    bool colour;
    /* Tests and fuzzers: called instead of exit(); must not return (longjmp). The message, the first one
       where attempts have failed, is complete and plain. */
    void (*on_fatal)(int exit_code, const char *message, void *context);
    void *context;
} DiagOptions;

void diag_configure(DiagOptions options);
bool diag_is_verbose(void);
bool diag_is_quiet(void);
