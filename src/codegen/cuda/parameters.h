// Lines of a parameter block: constants, each with its name, its value and why it is there; and what functions begin with.
#pragma once
#include <stdint.h>

#include "base/strbuf.h"

/* CONSTEXPR(out, "int BM, BN", "rTile", 128, 64) writes `constexpr int BM = 128, BN = 64;   // rTile`; of a bool any
   value but 0 is true. `why` NULL: there is no comment. */
#define CONSTEXPR(out, names, why, ...) EMIT_CONSTANTS(out, "constexpr ", names, why, __VA_ARGS__)

/* The same of a struct's members. */
#define STATIC_CONSTEXPR(out, names, why, ...) EMIT_CONSTANTS(out, "    static constexpr ", names, why, __VA_ARGS__)

#define EMIT_CONSTANTS(out, lead, names, why, ...)                                                                     \
    parameters_emit(out, lead, names, why, (const int64_t[]){__VA_ARGS__},                                             \
                    sizeof(int64_t[]){__VA_ARGS__} / sizeof(int64_t))

/* Behind `lead`; as many values as names. */
void parameters_emit(StrBuf *out, const char *lead, const char *names, const char *why, const int64_t *values,
                     size_t count);

/* A blank line, `// why` (NULL: no comment) and `__device__ __forceinline__ declaration {`. */
void begin_function(StrBuf *out, const char *why, const char *declaration);
