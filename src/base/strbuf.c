#include "base/strbuf.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

StrBuf strbuf_new(Arena *arena)
{
    enum { FIRST = 256 };
    StrBuf out = {.arena = arena, .text = arena_room(arena, FIRST), .capacity = FIRST};
    out.text[0] = '\0';
    return out;
}

static void make_room(StrBuf *out, size_t length)
{
    if (out->length + length + 1 <= out->capacity)
        return;
    size_t capacity = 2 * (out->length + length + 1);
    if (!arena_grow(out->arena, out->text, out->capacity, capacity))
        out->text = memcpy(arena_room(out->arena, capacity), out->text, out->length);
    out->capacity = capacity;
}

void strbuf_write(StrBuf *out, const char *text, size_t length)
{
    make_room(out, length);
    memcpy(out->text + out->length, text, length);
    out->length += length;
    out->text[out->length] = '\0';
}

void strbuf_putc(StrBuf *out, char c)
{
    make_room(out, 1);
    out->text[out->length++] = c;
    out->text[out->length] = '\0';
}

void strbuf_puts(StrBuf *out, const char *text)
{
    strbuf_write(out, text, strlen(text));
}

void strbuf_printf(StrBuf *out, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    char small[256];
    int length = vsnprintf(small, sizeof small, format, args);
    if ((size_t)length < sizeof small) {
        strbuf_write(out, small, (size_t)length);
    } else {
        make_room(out, (size_t)length);
        vsnprintf(out->text + out->length, (size_t)length + 1, format, again);
        out->length += (size_t)length;
    }
    va_end(again);
    va_end(args);
}

static bool reads_back(const char *text, double value, bool is_float)
{
    return is_float ? strtof(text, NULL) == (float)value : strtod(text, NULL) == value;
}

enum { MOST_DIGITS = 17 };   // that a double needs

/* With how few digits it is worth trying: a decimal of FLT_DIG or DBL_DIG digits survives the type, so where
   that many do not read back no fewer do. */
static int fewest_digits(double value, bool is_float)
{
    char text[40];
    int certain = is_float ? FLT_DIG : DBL_DIG;
    snprintf(text, sizeof text, "%.*g", certain, value);
    return reads_back(text, value, is_float) ? 1 : certain + 1;
}

static void put_shortest(StrBuf *out, double value, bool is_float)
{
    if (value > -1e15 && value < 1e15 &&
        value == (double)(int64_t)value) {   // whole numbers as such: 80, not 8e+01
        strbuf_printf(out, "%s%" PRId64, value == 0 && signbit(value) ? "-" : "", (int64_t)value);
        return;
    }
    char text[40];
    for (int digits = fewest_digits(value, is_float);; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (digits == MOST_DIGITS || reads_back(text, value, is_float))
            break;
    }
    for (char *c = text; *c; c++)
        if (*c == ',')
            *c = '.';
    strbuf_puts(out, text);
}

void strbuf_double(StrBuf *out, double value)
{
    put_shortest(out, value, false);
}

void strbuf_float(StrBuf *out, float value)
{
    put_shortest(out, (double)value, true);
}
