// A network under construction: a few axes, the tensors made so far, and the statements that make them.
//
// A layer reads tensors over any of the axes and defines others. In what order a tensor's dimensions lie, what type it has
// and whether it is an output is decided here, by chance, for all layers alike.
#pragma once
#include "differential/generate_parts.h"

enum { NET_AXES = 12, NET_RANK = 8 };

typedef uint32_t Set;   // of axes

typedef enum NetType {
    NET_REAL,
    NET_WEIGHT,
    NET_BIT,
    NET_BYTE,
    NET_INDEX
} NetType;   // the last: b1; i8 or u8; i32

/* A tensor that may be read. */
typedef struct Packed {
    int number, rank, axes[NET_RANK];
    char letter;   // x: an input, t: a definition
    bool output;
} Held;

typedef struct Net {
    Arena *arena;
    Random random;
    StrBuf inputs, definitions, outputs;
    int axis_count, row;              // the long axis; -1: there is none
    bool plain;                       // no axes in another order; what is reduced over is the long one
    int64_t extent[NET_AXES], most;   // elements of a tensor
    int input_count, definition_count;
    const char *type, *weight_type;   // of most tensors; of most weights
    Held now;                         // what the next layer works on
} Net;

// ---- axes ----

/* The index variable of an axis. */
char net_axis(int axis);
Set net_set(const Held *held);
int64_t net_points(const Net *net, Set set);
/* Some axis of the set; -1: it is empty. */
int net_one(Net *net, Set set);
/* Some of the set, at least one and often the long axis alone; or perhaps none. */
Set net_some(Net *net, Set set);
Set net_any(Net *net, Set set);
/* Another axis; -1: there are too many. */
int net_new_axis(Net *net, int64_t extent);
/* `[a:3, c:5]`, as a reduction has it. */
const char *net_list(Net *net, Set set);

// ---- tensors, as text ----

const char *net_read(Net *net, const Held *held);
/* With another index along one of its axes. */
const char *net_read_at(Net *net, const Held *held, int axis, const char *index);
/* With other indices: one of an axis that is NULL stays. */
const char *net_read_with(Net *net, const Held *held, const char *const *indices);
/* The access of a new input over these axes. */
const char *net_input(Net *net, Set set, NetType type);
Held net_new_input(Net *net, Set set, NetType type);

/* What may become of a definition, beside a value that others read. */
enum {
    NET_EXACT = 0,
    NET_ROUNDED = 1,   // perhaps it has a type of fewer bits
    NET_OUTPUT = 2,    // it is an output for certain,
    NET_HIDDEN = 4     // or for certain none; else perhaps
};

/* `t7[a:3, c:5] = …`: its right side is made in the manner of printf. */
__attribute__((format(printf, 4, 5))) Held net_define(Net *net, Set set, unsigned how, const char *format,
                                                      ...);

/* A text of its own, in the same manner. */
__attribute__((format(printf, 2, 3))) const char *net_text(Net *net, const char *format, ...);

// ---- generate_layers.c ----

/* The first tensor of a network, and any layer behind it. */
void net_begin(Net *net);
void net_add_layer(Net *net);
