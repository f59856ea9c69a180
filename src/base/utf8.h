// Text that may be shown: what of it is a whole character, and harmless.
#pragma once
#include <stddef.h>
#include <stdint.h>

/* Bytes of the character that `text` begins with and, if asked for, its number. 0: these are no UTF-8, or a
   character that moves a cursor or changes the direction of writing: what is shown would not be what is
   there. */
size_t utf8_shown(const char *text, size_t length, uint32_t *code);
