// Makes shared objects of an emitted program, with the host's C++ compiler.
#pragma once
#include "hal/runtime.h"

typedef struct InterpObjects {
    const char *folder, *compiler;
    const char *plain;     // values
    const char *checked;   // the same, but it announces every access, and in which no index overflows; be it counted, too
    bool spares;           // passes of the compiler were left out
    bool has_lines;        // the checked one has line tables
} InterpObjects;

RuntimeStatus interp_compile(Arena *arena, const RuntimeSource *source, InterpObjects *objects,
                             const char **reason);

/* Makes them once more: a check that fails says what it is and where, and does not only end the program. */
bool interp_compile_speaking(Arena *arena, const RuntimeSource *source, InterpObjects *objects);

/* "matmul.cu:123", the source of the checked program's code at `pc`; NULL: not known. Compiles it with lines, if it has
   none. */
const char *interp_source_line(Arena *arena, const RuntimeSource *source, InterpObjects *objects, unsigned pc);
