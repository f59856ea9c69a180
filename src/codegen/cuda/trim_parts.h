// What trim.c finds, by numbers of templates in trim_numbers.c, and trim_text.c writes.
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

/* `Product<f16, BN>` of what is taken: the number that it ends with. */
typedef struct NumberUse {
    Slice name;
    bool known;   // else it is any
    int64_t value;
    struct NumberUse *next;
} NumberUse;

struct Trim {
    Arena *arena;
    const TemplateStore *store;
    TextTarget target;
    const char *name;   // its prelude is NAME_prelude
    FileName *files, **last_file;
    TrimScope prelude, *kernels;
    int kernel_count;
    bool occurs[TYPE_COUNT];
    NumberUse *numbers;
};

/* `name<f16, BN>` is taken, whose < comes next: with which number. */
void trim_use_number(Trim *trim, const TrimScope *scope, Slice name, Slice rest);

/* Of `name<f16, 128>` of an overload's arguments: whether what is taken has one of 128, or one that is not known. */
bool trim_number_occurs(const Trim *trim, Slice name, Slice rest);
