#include "base/utf8.h"

#include <stdbool.h>

/* 0x20 to 0x7e stand for themselves; 0x7f to 0x9f are control characters; U+061C, U+200E, U+202A to U+202E
   and U+2066 to U+2069 change the direction of writing; U+2028 and U+2029 end a line. */
static bool is_harmless(uint32_t code)
{
    bool control = code < 0x20 || (code >= 0x7f && code < 0xa0);
    bool turns = code == 0x61c || code == 0x200e || code == 0x200f || (code >= 0x2066 && code <= 0x2069);
    return !control && !turns && !(code >= 0x2028 && code <= 0x202e);
}

/* The Unicode Standard, table 3-7: no longer than needed, no surrogates, none past U+10FFFF. */
static bool is_legal(uint32_t code, int bytes)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    return code >= least[bytes] && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff);
}

size_t utf8_shown(const char *text, size_t length, uint32_t *code)
{
    unsigned char first = length ? (unsigned char)*text : 0;
    int bytes = first < 0x80 ? 1 : first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : first >> 3 == 30 ? 4 : 0;
    if (bytes == 0 || (size_t)bytes > length)
        return 0;
    uint32_t value = bytes == 1 ? first : first & (0x7fu >> bytes);
    for (int i = 1; i < bytes; i++) {
        if (((unsigned char)text[i] & 0xc0) != 0x80)
            return 0;
        value = value << 6 | ((unsigned char)text[i] & 0x3f);
    }
    if (code)
        *code = value;
    return is_legal(value, bytes) && is_harmless(value) ? (size_t)bytes : 0;
}
