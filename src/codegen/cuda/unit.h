// A unit is one definition at the outermost level of CUDA text, with the comment above it: what is emitted or
// left out as a whole. Units between two blank lines are a paragraph; the comment above its first one is the
// paragraph's.
#pragma once
#include "base/strbuf.h"
#include "codegen/cuda/lines.h"
#include "codegen/cuda/words.h"

typedef struct Declaration {
    Slice name;
    Slice arguments;   // the ( ) or < > behind the name
    struct Declaration
        *first;    // of that name; the others are overloads and specialisations, or say it again
    bool alone;    // of the first one: there are no others
    bool used;     // of the first one: the name occurs in what is taken,
    bool called;   // and without < > behind it, as functions that are no templates are called
    struct TextUnit *unit;
    struct Declaration *next;   // of its unit
} Declaration;

typedef enum UnitKind {
    UNIT_DEFINITION,
    UNIT_CHECK,     // a static_assert: it needs what it names, and nothing needs it
    UNIT_COMMENT,   // of no definition
    UNIT_ROOT       // a kernel: it is why all others are there; and headers of the system
} UnitKind;

/* Of namespace NAME_prelude, for the prelude; for a kernel, of its template's block. */
typedef enum UnitPlace { PLACE_BEFORE, PLACE_WITHIN, PLACE_BEHIND } UnitPlace;

typedef struct Paragraph {
    const char *comment;   // "" if it has none
} Paragraph;

typedef struct TextUnit {
    UnitKind kind;
    UnitPlace place;
    const char *file;   // templates/…, for who looks for it; NULL: rollerc made it
    int line;
    int arch;                // of __CUDA_ARCH__, that its text needs; 0: any
    const char *condition;   // under which the device's compiler sees it; NULL: always
    Paragraph *paragraph;
    const char *comment;   // its own; "" if it has none
    const char *text;      // whole lines
    Declaration *declarations;
    bool taken;
    bool leads;   // stands before the prelude
    struct TextUnit *next;
} TextUnit;

typedef struct UnitSource {
    const char *file;
    int before;   // lines of the file before the text
    UnitPlace place;
    const char *text;
} UnitSource;

typedef struct UnitList {
    TextUnit *first, **last;
    int declaration_count;
    WordTable names;   // the first Declaration of each; after units_name()
} UnitList;

void units_init(Arena *arena, UnitList *units);

void units_read(Arena *arena, UnitList *units, const TextTarget *target, UnitSource source);

/* Finds which declarations are of one name. */
void units_name(UnitList *units);

/* NULL if there is none. */
Declaration *units_find(const UnitList *units, Slice name);
