// Where the elements of each tensor come from; what eval.c arranges and eval_read.c follows.
#pragma once
#include "ir/eval_parts.h"

enum { WINDOW = 64 };   // adjacent points that an estimate takes at a time

/* Where the elements of one tensor come from. */
typedef struct Origin {
    const Tensor *tensor;
    InputSource source;     // of an input, or of what is as good as one:
    int input;              // … its position there, or -1
    const TensorOp *op;     // else
    bool read;              // by an op: its elements are kept,
    int inlined_size;       // … unless they are computed whenever they are read: nodes of that; else 0
    int inner_axis;         // of op: the last with more than one point, or -1; all after it stay 0
    int64_t points;         // of op's reduction, for one element
    bool estimated;         // from some of them:
    int64_t skip[MAX_AXES]; // … that many are passed over after each, of the inner axis after each WINDOW
    Evaluator *other;       // gives the elements instead
    bool loose;             // its elements may be rounded at another scale, or not at all (stream.h)
    bool whole;             // op holds what is inlined in it
    SumForms forms;         // of op, then
    Expr *difference;       // x - m, if op is sum[r](sq(x[r] - m)), which may be made of chunks; else NULL
    Memo memo;
    // Made at the first use, in the arena:
    Tape *tape;
    Batch *batch;
    int64_t *wanted;        // scratch: offsets that the memo lacks
    Cell *fresh;            // … and their values
} Origin;

struct Evaluator {
    Arena *arena;
    const Program *program;
    int tensor_count;
    Origin *origins;        // by tensor id
    int depth;
    EvalMath math;
    const Ranges *ranges;
    const bool *shares;            // streams_find_shares()
    Reach *reaches;                // scratch of evaluator_work()
    int64_t (*boxes)[MAX_AXES];
};

/* Arranges what the first element asks for. */
void origin_prepare(Evaluator *evaluator, Origin *origin);

/* Its elements are looked up, once they are known. */
bool origin_is_kept(const Origin *origin);
