// Text that grows: every printer and the code generator write into one of these.
#pragma once
#include <stddef.h>

#include "base/arena.h"

typedef struct StrBuf {
    Arena *arena;
    char *text;   // always ends in '\0'
    size_t length, capacity;
} StrBuf;

StrBuf strbuf_new(Arena *arena);
void strbuf_putc(StrBuf *out, char c);
void strbuf_puts(StrBuf *out, const char *text);
void strbuf_write(StrBuf *out, const char *text, size_t length);
void strbuf_printf(StrBuf *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Shortest decimal that reads back as the same double, with a '.', in any locale: 0.1, 1e-05, 3. */
void strbuf_double(StrBuf *out, double value);

/* The same for a float: 0.1, not 0.10000000149011612. */
void strbuf_float(StrBuf *out, float value);
