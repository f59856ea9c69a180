// What the parts of the proof share: one run of a kernel, what it reads, and how it is judged.
#pragma once
#include "hal/runtime.h"
#include "ir/eval.h"
#include "prove/verify.h"

enum {
    VERIFY_BATCH = 1024,   // elements that are evaluated at a time
    INPUT_VALUES = 1 << 12
};

/* One way to run a kernel. */
typedef struct Pass {
    const char *name;
    uint8_t poison;               // what lies where nothing was written
    RuntimeSchedule schedule;
    bool checked;                 // accesses are judged, not values; of runs on some blocks both always are
    bool graph;                   // the launches of NAME_graph, in another order than the stream's
} Pass;

/* An input's elements are drawn from a few random ones by a hash of their position: gigabytes are filled in
   seconds. */
typedef struct InputTable {
    int64_t bytes;   // of an element in memory; 0: b1
    double values[INPUT_VALUES];
    _Alignas(8) unsigned char stored[INPUT_VALUES * 8];   // the same as they lie in memory
} InputTable;

/* What a launch that is run alone finds in memory. Any values would do for the results of earlier launches,
   since the launch is judged on the same values: stand-ins, or estimates of long reductions. */
typedef struct Told {
    Arena *arena;               // as long as this launch is proven
    bool *given;                // by tensor id: stand-ins are in its place
    Evaluator *reference;
    Evaluator *guess;           // the same, estimated
    bool *estimated;            // by tensor id
    void **made;   // by tensor id: what it holds, if it was worked out once for all passes; else NULL
} Told;

/* Elements that stand for those of a tensor that a launch made and the program goes on from
   (verify_stand_ins.c). All by tensor id. */
typedef struct StandIns {
    int *writer;                // the launch that writes it; -1: none
    bool *allowed;
    InputTable **tables;        // NULL: not drawn yet
} StandIns;

/* One run: a part of the kernel on one kind of inputs. */
typedef struct Proof {
    Arena *arena;
    const Program *program;
    const Kernel *kernel;
    const RuntimeModule *module;
    const VerifyOptions *options;
    InputKind kind;             // of inputs
    const Pass *pass;
    InputTable *inputs;         // one for each; NULL: what they hold depends on the place, and is worked out
    InputSource source;         // the same for evaluators
    Evaluator *truth, *plan;    // of `program`; of the kernel's, with the temporaries of the plan
    Evaluator *guess;           // the same, estimated
    StandIns stand_ins;
    const Launch *launch;       // NULL: all of them
    bool repeats;               // an earlier launch is of the same kernel, on tensors of the same shapes
    Told told;                  // of it
    RuntimeTensor *tensors;
    const Tensor **sources;     // one for each of `tensors`
    const Tensor *
        *under;   // likewise: what lies there before, where the launch makes a sum in place; else NULL
    int tensor_count;
    int64_t *buffer_bytes;
    VerifyReport *report;
} Proof;

// ---- what a run reads (verify_inputs.c) ----

/* Finds the place of each tensor of the run. */
void verify_place(Proof *proof);
InputTable *verify_inputs(const Proof *proof);
/* The elements of one table or of several in a row. */
InputSource verify_table_source(InputTable *tables);
void verify_table_set(InputTable *table, DType type, int64_t position, double value);
InputSource verify_source(const Proof *proof);
/* What earlier launches made for it: once for all passes, and not in the process of each. */
void verify_prepare(Proof *proof);
void verify_fill(void *proof, int tensor, int64_t offset, int64_t bytes, void *memory);      // a RuntimeFill
/* The same of inputs, for a call before the one that is judged: other values. */
void verify_fill_before(void *proof, int tensor, int64_t offset, int64_t bytes, void *memory);
void verify_reference(const Proof *proof, const Tensor *tensor, const int64_t *elements, int64_t count,
                      Value *values);
int64_t verify_elements_in(const Tensor *tensor, int64_t bytes);

// ---- what stands for what launches made (verify_stand_ins.c) ----

StandIns verify_stand_ins(const Proof *proof);
/* Of each tensor, by its id: whether `proof->launch` is proven on its stand-ins. */
bool *verify_given(const Proof *proof, Arena *arena);
/* The stand-ins of what `proof->launch` wrote, for those behind it. */
void verify_draw(Proof *proof);

// ---- what a launch is judged by (verify_tell.c) ----

Evaluator *verify_evaluator(const Proof *proof, Arena *arena, const Program *program);
/* Settles what `proof->launch` is judged by, until verify_forget(). */
void verify_tell(Proof *proof);
void verify_forget(Proof *proof);

// ---- what things cost (verify_work.c) ----

int verify_position(Tensor *const *list, int count, const Tensor *tensor);   // -1: it is not there

/* To be run whole; `whole_work` 0: the default. */
bool verify_is_too_large(const Kernel *kernel, double whole_work, bool checked);
/* To be run on the special kinds of inputs as well. */
bool verify_is_small(const Kernel *kernel);

/* Whether its kernels, of which some blocks are run, have more to do there than to compile them. */
bool verify_runs_long(const Kernel *kernel);
/* Work of the reference for an element that the launch reads; for one that it writes, or for all of
   them. */
double verify_read_work(const Proof *proof, const Tensor *tensor);
double verify_judge_work(const Proof *proof, const Tensor *tensor, bool whole);
/* An element that the launch reads is made only where it is read. */
bool verify_is_costly(const Proof *proof, const Tensor *tensor);
/* The tensor is too expensive to be right, and an estimate is not. */
bool verify_is_too_costly(const Proof *proof, const Tensor *tensor);
/* All of it is worth making before the launch is run. */
bool verify_is_prepared(const Proof *proof, const Tensor *tensor);
/* The reference of a single element takes a second, or what is read some: then only whole numbers are tried,
   which show all but the last bits. */
bool verify_is_expensive(const Proof *proof);
/* Why no part of the launch can be run and judged in a reasonable time; NULL: it can. */
const char *verify_too_long(const Proof *proof);
int64_t verify_sample_blocks(const Proof *proof);
/* An earlier launch is of the same kernel, on tensors of the same shapes: where it is right, this one is, but
   for which tensors it takes. */
bool verify_repeats(const Kernel *kernel, const Launch *launch);

// ---- what a run wrote (verify_compare.c) ----

void verify_compare_whole(Proof *proof, const RuntimeResult *result);
void verify_compare_pages(Proof *proof, const RuntimeResult *result);
/* The verdict, with the conditions of the run. */
void verify_wrong(Proof *proof, const char *text);
