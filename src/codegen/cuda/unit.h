// A unit is one definition at the outermost level of CUDA text, with the comment above it, which is emitted or left
// out as a whole. Units between two blank lines are a paragraph; a comment above its first one belongs to the
// paragraph.
#pragma once
#include "base/strbuf.h"
#include "base/words.h"
#include "codegen/cuda/lines.h"
#include "codegen/cuda/token.h"

typedef struct Declaration {
    Slice name;
    Slice arguments;   // the ( ) or < > after the name
    struct Declaration
        *first;    // of that name; the others are overloads, specialisations or redeclarations
    bool alone;    // of the first one: there are no others
    bool used;     // of the first one: the name occurs in the text that is kept,
    bool called;   // and without < > after it, as calls of functions that are not templates
    struct TextUnit *unit;
    struct Declaration *next;   // of its unit
} Declaration;

typedef enum UnitKind {
    UNIT_DEFINITION,
    UNIT_CHECK,     // a static_assert: kept if all that it names is, unless it is known to hold
    UNIT_COMMENT,   // of no definition
    UNIT_ROOT       // a kernel, from which the search starts; and system headers
} UnitKind;

/* Of namespace NAME_prelude, for the prelude; for a kernel, of its template's block. */
typedef enum UnitPlace { PLACE_BEFORE, PLACE_WITHIN, PLACE_BEHIND } UnitPlace;

typedef struct Paragraph {
    const char *comment;   // "" if it has none
} Paragraph;

typedef struct TextUnit {
    UnitKind kind;
    UnitPlace place;
    const char *file;   // templates/…; NULL: made by rollerc
    int line;
    int arch;                // of __CUDA_ARCH__, that its text needs; 0: any
    const char *condition;   // under which the device's compiler sees it; NULL: always
    Paragraph *paragraph;
    const char *comment;   // its own; "" if it has none
    const char *text;      // whole lines
    Declaration *declarations;
    bool folded;   // its text is no longer that of the template
    bool taken;
    bool leads;   // precedes the prelude
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

/* Links the declarations of each name. */
void units_name(UnitList *units);

/* NULL if there is none. */
Declaration *units_find(const UnitList *units, Slice name);
