#include "base/progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/diag.h"

enum { COLUMNS = 79 };   // a longer line would wrap, and could not be redrawn

static const char erase_line[] = "\r\033[K";

void progress(const char *format, ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (!isatty(STDERR_FILENO)) {
        talk("%s", line);
        return;
    }
    if (!diag_is_quiet())
        fprintf(stderr, "%s%.*s", erase_line, COLUMNS, line);
}

void progress_end(void)
{
    if (isatty(STDERR_FILENO) && !diag_is_quiet())
        fputs(erase_line, stderr);
}
