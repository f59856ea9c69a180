// What trim.c finds, by numbers of templates in trim_numbers.c, trim_body.c makes one of, and trim_text.c writes.
// In trim_member.c definitions become members.
#pragma once
#include "codegen/cuda/constant.h"
#include "codegen/cuda/trim.h"
#include "hal/runtime.h"

#define PRELUDE "templates/prelude/"
#define INTRINSICS PRELUDE "intrinsics/"
#define BEGIN_MAIN "namespace plain {\n"
#define END_MAIN "}   // namespace plain\n"
#define FUNCTIONS_END "// ---- the template ----\n"

typedef struct FileName {
    const char *path;
    struct FileName *next;
} FileName;

/* Types of the language that overloads are for; `int` is everywhere. */
enum { TYPE_FLOAT, TYPE_DOUBLE, TYPE_LONG, TYPE_SHORT, TYPE_CHAR, TYPE_SIGNED, TYPE_COUNT };

/* Units with names of their own: two launches may call different things the same. */
typedef struct TrimScope {
    UnitList units;
    Constants constants;
    const KernelText *text;   // NULL: the prelude
    const char *body;           // what its kernel does, as a struct over its parameters; NULL: it can be none
    const char *entry;          // the kernel that calls it
    struct TrimScope *leader;   // of those that have the same body the first one; NULL: no other one has it
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

/* Which of a list are written, and whether in a struct. */
typedef struct UnitChoice {
    UnitPlace place;
    bool leading, members;
} UnitChoice;

/* False: there are none. */
bool trim_write_units(StrBuf *out, const Trim *trim, const UnitList *units, UnitChoice choice);

/* Specialisations, macros and what the compiler decides are no members. */
bool trim_can_be_member(const TextUnit *unit);

/* The definition as it stands in a struct. */
void trim_write_member(StrBuf *out, const char *text);

/* The token behind `template <…>`, the first one of most definitions; whether it begins a type's. */
Slice trim_leading_token(const char *text, bool *is_template);
bool trim_is_type(Slice token);

/* Lines of a struct. */
void trim_indent(StrBuf *out, const char *text);

/* Finds which kernels have a body in common. After all is taken. */
void trim_share_bodies(Trim *trim);
