// The text of expressions, as the importer writes it: its brackets, and the places of its accesses.
#pragma once
#include "base/strbuf.h"
#include "front/onnx/graph.h"

/* A name with a bracket behind it: an access `x[i, 2*h + r]`, or a reduction `sum[k:64]`. */
typedef struct Bracket {
    const char *name;             // in the text
    size_t length;                // of the name
    const char *inside, *close;   // behind "[", and at "]"
} Bracket;

/* The next one from `*at` on, which then stands behind its "["; so those within it come, too. */
bool bracket_next(const char **at, const char *end, Bracket *found);
bool bracket_is_reduction(const Bracket *bracket);
/* At the `close` that belongs to what was opened before `inside`. */
const char *bracket_close(const char *inside, char open, char close);
/* Behind the place that begins at `at`: its comma, or the end of all. */
const char *place_end(const char *at, const char *end);

/* The place of dimension `d` of an access, without blanks around it. */
const char *access_place(Arena *arena, const Bracket *access, int d);

/* In which order a tensor's dimensions lie: in memory dimension p is dimension at[p] of the graph's. */
typedef struct StorageOrder {
    int rank;   // 0: as in the graph
    int at[MAX_RANK];
} StorageOrder;

/* The tensor that an access shall read, and the order of its dimensions; NULL: the access stays. */
typedef struct Home {
    const char *name;
    StorageOrder order;
} Home;
typedef const Home *FindHome(void *context, const char *name);

/* The expression on those homes. `letters`, if there are some, stand for those of `axes`, one for one. */
const char *access_rewrite(Arena *arena, const char *expr, FindHome *find, void *context, const char *axes,
                           const char *letters);
