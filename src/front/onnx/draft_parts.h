// What a draft is made of: for those who write it, arrange it and print it.
#pragma once
#include "front/onnx/draft.h"

typedef enum DraftKind {
    STATEMENT_INPUT,
    STATEMENT_WEIGHT,
    STATEMENT_DEFINE,
    STATEMENT_VIEW,
    STATEMENT_OUTPUT
} DraftKind;

typedef struct Statement Statement;
struct Statement {
    DraftKind kind;
    const char *comment;   // the node; NULL: none
    const char *name;      // what it declares; of an output, what it names
    Dims shape;
    DType type;
    bool stated;               // the type is written
    const char *axes, *expr;   // of a definition
    const char *of;            // of a view
    bool slides;               // of a node that slides a window over its input
    bool is_border;            // only gives an output its name or type
    Statement **reads;         // what it reads
    int read_count;
    bool live;
    const GraphValue *weight;   // whose elements it declares
    StorageOrder order;         // of a weight: in which its dimensions lie

    // Of precision.c:
    bool lowers;   // it is f32 in the model
    bool fixed;    // an input or an output, or the same elements as one
    bool wanted;   // a product reads it, or what is moved of it
    bool fine;     // it is not rounded
    const struct Statement *reader;   // one that reads it
    bool shared;                      // there are others
    bool settled;  // made of weights alone: what is computed with it is no finer for that
};

/* A tensor of the program. Its shape comes first: extents.h asks the table for shapes. */
typedef struct DraftTensor {
    Dims shape;
    Statement *statement;
    const char *condition;   // of bools that are bytes: the tensor that holds them as conditions; else NULL
} DraftTensor;

typedef struct StatementList {
    Statement **items;
    int count, capacity;
} StatementList;

struct Draft {
    Arena *arena;
    NameTable *taken;    // names that are in use
    NameTable tensors;   // DraftTensor
    bool folding, slides;
    StatementList inputs, weights, body, outputs;
};

void statement_append(Arena *arena, StatementList *list, Statement *statement);
/* Its tensor is known from now on. */
void draft_declare(Draft *draft, Statement *statement);
/* The statement that declares a tensor. */
Statement *draft_statement(const Draft *draft, const char *name);
/* Looks up what the statement reads. */
void draft_set_reads(Draft *draft, Statement *statement);
/* `name[i, j, k]`, letters of dimensions that have no better ones. */
const char *plain_access(Arena *arena, const char *name, int rank);
extern const char plain_axes[];
