// What the parts of the proof share: one run of a kernel, what it reads, and how it is judged.
#pragma once
#include "hal/runtime.h"
#include "ir/eval.h"
#include "measure.h"

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
} Pass;

/* An input's elements are drawn from a few random ones by a hash of their position: gigabytes are filled in seconds. */
typedef struct InputTable {
    int64_t bytes;   // of an element in memory; 0: b1
    double values[INPUT_VALUES];
    _Alignas(8) unsigned char stored[INPUT_VALUES * 8];   // the same as they lie in memory
} InputTable;

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
    Evaluator *truth, *plan;    // of `program`; of the kernel's, with the temporaries of the plan
    void **made;                // what each tensor holds, if it was worked out once for all passes; else NULL
    const Launch *launch;       // NULL: all of them
    RuntimeTensor *tensors;
    const Tensor **sources;     // one for each of `tensors`
    int tensor_count;
    int64_t *buffer_bytes;
    VerifyReport *report;
} Proof;

// ---- what a run reads (verify_inputs.c) ----

/* Finds the place of each tensor of the run. */
void verify_place(Proof *proof);
InputTable *verify_inputs(const Proof *proof);
InputSource verify_source(const Proof *proof);
/* What earlier launches made for one that runs whole: here, once for all passes, and not in the process of each. */
void verify_prepare(Proof *proof);
void verify_fill(void *proof, int tensor, int64_t offset, int64_t bytes, void *memory);      // a RuntimeFill
void verify_reference(const Proof *proof, const Tensor *tensor, const int64_t *elements, int64_t count,
                      Value *values);
int verify_position(Tensor *const *list, int count, const Tensor *tensor);   // -1: it is not there
int64_t verify_elements_in(const Tensor *tensor, int64_t bytes);

// ---- what things cost (verify_work.c) ----

/* To be run whole; `whole_work` 0: the default. */
bool verify_is_too_large(const Kernel *kernel, double whole_work, bool checked);
/* To be run on the special kinds of inputs as well. */
bool verify_is_small(const Kernel *kernel);
enum { COSTLY_WORK = 256 };   // an element that took more is made only where it is read
double verify_element_work(const Kernel *kernel, const Tensor *tensor);
double verify_reference_work(const Kernel *kernel, const Tensor *tensor);
/* The reference of a single element takes a second: whole numbers alone, which show all but the last bits, must do. */
bool verify_is_dear(const Kernel *kernel, const Launch *launch);
/* Its blocks wait for each other, so some of them prove nothing, and all of them take too long. */
bool verify_is_indivisible(const Launch *launch);
bool verify_runs_whole(const Kernel *kernel, const Launch *launch);
int64_t verify_sample_blocks(const Kernel *kernel, const Launch *launch);

// ---- what a run wrote (verify_compare.c) ----

void verify_compare_whole(Proof *proof, const RuntimeResult *result);
void verify_compare_pages(Proof *proof, const RuntimeResult *result);
/* The verdict, with the conditions of the run. */
void verify_wrong(Proof *proof, const char *text);
