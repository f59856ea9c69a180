// The weights of a model as a part of a program, by the assembler.
#pragma once
#include "base/strbuf.h"

/* A source for the assembler of ELF targets: NAME_weights_data at a multiple of 256, NAME_weights_size bytes
   of the file. */
void embed_write(StrBuf *out, const char *name, const char *file);
