// What trim.c finds and trim_text.c writes.
#pragma once
#include "codegen/cuda/constant.h"
#include "codegen/cuda/trim.h"
#include "hal/runtime.h"

#define PRELUDE "templates/prelude/"
#define INTRINSICS PRELUDE "intrinsics/"
#define BEGIN_MAIN "namespace plain {\n"
#define END_MAIN "}   // namespace plain\n"

typedef struct FileName {
    const char *path;
    struct FileName *next;
} FileName;

/* Types of the language that overloads are for; `int` is everywhere. */
enum { TYPE_FLOAT, TYPE_DOUBLE, TYPE_LONG, TYPE_SHORT, TYPE_CHAR, TYPE_COUNT };

/* Units with names of their own: two launches may call different things the same. */
typedef struct TrimScope {
    UnitList units;
    Constants constants;
    const KernelText *text;   // NULL: the prelude
} TrimScope;

struct Trim {
    Arena *arena;
    const TemplateStore *store;
    TextTarget target;
    const char *name;   // its prelude is NAME_prelude
    FileName *files, **last_file;
    TrimScope prelude, *kernels;
    int kernel_count;
    bool occurs[TYPE_COUNT];
};
