#include "base/stopwatch.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/diag.h"

void stopwatch_lap(Stopwatch *watch, const char *stage, const char *format, ...)
{
    if (!diag_is_verbose())
        return;
    double now = seconds_now();
    char made[100];
    va_list args;
    va_start(args, format);
    vsnprintf(made, sizeof made, format, args);
    va_end(args);
    talk("%-7s %-48s %8.2f ms", stage, made, (now - watch->lap) * 1e3);
    watch->lap = now;
}
