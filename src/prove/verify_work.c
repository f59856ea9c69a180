// What a proof costs, in scalar operations, and what is then affordable.
#include <inttypes.h>
#include <string.h>

#include "prove/verify_parts.h"

enum {
    MIN_BLOCKS = 2,   // of a sampled launch: the first and the last
    FEW_BLOCKS = 4,   // … and two others, unless these make seconds
    MAX_BLOCKS = 16,
    JUDGING_WORK = 2,      // to compare one element
    COSTLY_WORK = 256,     // of an element that is made only where it is read
    COSTLY_ELEMENTS = 32,  // that a block reads at least, as a rule
    PAGE_ELEMENTS = 1024   // of a page that is made when one of them is read
};

static const double WHOLE_WORK = 3e7;    // about a second on the interpreter, and one for the reference
static const double LONG_WORK =
    3e7;   // of the fewest blocks: a third of a second in all passes, which -O2 may halve
static const double RUN_WORK = 7e9;      // of the fewest blocks of a launch that prove anything: 9 s a pass
static const double ACCESS_WORK = 100;   // of one in memory, which is made and checked; a product takes 1
static const double SMALL_WORK = 1e6;    // of a program that is run on every kind of inputs
static const double SAMPLE_WORK = 3e6;   // of one sampled launch,
static const double FEW_WORK = 1e9;      // … if it takes more for a few blocks
static const int64_t WHOLE_BYTES = 256 << 20;   // of all buffers
static const double EXPENSIVE_WORK = 3e7;            // of the reference for one element: a sum of everything
static const double MADE_WORK = 4e8;            // of what the fewest blocks read: some seconds
static const double JUDGE_WORK = 2e9;           // of the same, at most: about 20 seconds
static const double RIGHT_WORK =
    1e5;   // of an element that earlier launches made, or it is estimated: a millisecond
static const double PREPARED_WORK = 3e7;        // of a tensor that earlier launches made
static const double MAKING = 2;   // times the work of the kernel's own operations, which are simpler
static const double CHECKED = 10;               // times the work and memory if accesses are checked

int verify_position(Tensor *const *list, int count, const Tensor *tensor)
{
    for (int i = 0; i < count; i++)
        if (list[i] == tensor)
            return i;
    return -1;
}

double verify_read_work(const Proof *proof, const Tensor *tensor)
{
    const Told *told = &proof->told;
    return evaluator_work(told->estimated[tensor->id] ? told->guess : told->reference, tensor, false);
}

double verify_judge_work(const Proof *proof, const Tensor *tensor, bool whole)
{
    return evaluator_work(proof->told.reference, tensor, whole);
}

bool verify_is_too_costly(const Proof *proof, const Tensor *tensor)
{
    const Program *program = proof->program;
    bool of_user = tensor->id < program->tensor_count;   // else no definition of the user's reads it
    if (!of_user || verify_position(program->inputs, program->input_count, tensor) >= 0)
        return false;
    double work = evaluator_work(proof->told.reference, tensor, false);
    return work > RIGHT_WORK && work > 2 * evaluator_work(proof->told.guess, tensor, false);
}

bool verify_is_costly(const Proof *proof, const Tensor *tensor)
{
    return proof->launch && verify_read_work(proof, tensor) > COSTLY_WORK;
}

static int64_t blocks_of(const Launch *launch) { return launch->grid[0] * launch->grid[1] * launch->grid[2]; }

/* Of a persistent block of many tiles only the first and the last tile are run: its share is that much
   smaller. */
static double shares_of(const Launch *launch)
{
    double turns = launch->turns > 2 ? launch->turns / 2.0 : 1;
    return (double)blocks_of(launch) * turns;
}

/* Of each tensor that a block reads its share, or a page, is made for it. */
static double making_work(const Proof *proof)
{
    const Launch *launch = proof->launch;
    double work = 0;
    for (int i = 0; i < launch->arg_count; i++) {
        if (launch->args[i].written || proof->told.made[launch->args[i].tensor->id])
            continue;
        double element = verify_read_work(proof, launch->args[i].tensor);
        double share = (double)tensor_elements(launch->args[i].tensor) / shares_of(launch);
        double least = element > COSTLY_WORK ? COSTLY_ELEMENTS : PAGE_ELEMENTS;
        work += (share > least ? share : least) * element;
    }
    return work;
}

static double block_work(const Proof *proof)
{
    return proof->launch->work / shares_of(proof->launch) + 1 + MAKING * making_work(proof);
}

/* Blocks that wait for each other prove nothing unless all of them are run. */
static int64_t fewest_blocks(const Launch *launch)
{
    int64_t blocks = blocks_of(launch), fewest = MIN_BLOCKS * launch_cluster_blocks(launch);
    return launch->cooperative || blocks < fewest ? blocks : fewest;
}

/* Products of tensor cores are the interpreter's own. */
bool verify_runs_long(const Kernel *kernel)
{
    double work = 0;
    for (int i = 0; i < kernel->launch_count; i++) {
        const Launch *launch = &kernel->launches[i];
        if (!launch->by_tensor_cores && !verify_repeats(kernel, launch))
            work += launch->work / shares_of(launch) * (double)fewest_blocks(launch);
    }
    return work > LONG_WORK;
}

bool verify_is_expensive(const Proof *proof)
{
    const Launch *launch = proof->launch;
    for (int i = 0; i < launch->arg_count; i++)
        if (launch->args[i].written &&
            verify_judge_work(proof, launch->args[i].tensor, false) > EXPENSIVE_WORK)
            return true;
    return (double)fewest_blocks(launch) * making_work(proof) > MADE_WORK;
}

/* Elements that are read or written, of a part of a tensor at most one an operation. */
static double accesses(const Launch *launch)
{
    double count = 0;
    for (int i = 0; i < launch->arg_count; i++) {
        double elements = (double)tensor_elements(launch->args[i].tensor);
        count += elements < launch->work ? elements : launch->work;
    }
    return count;
}

const char *verify_too_long(const Proof *proof)
{
    const Launch *launch = proof->launch;
    int64_t blocks = fewest_blocks(launch);
    double work = (launch->work + ACCESS_WORK * accesses(launch)) / shares_of(launch) * (double)blocks;
    if (work > RUN_WORK)
        return arena_printf(proof->arena,
                            "%" PRId64 " blocks of %s, the fewest that prove anything, make %.1e operations",
                            blocks, launch->entry, work);
    for (int i = 0; i < launch->arg_count; i++) {
        const Tensor *tensor = launch->args[i].tensor;
        if (launch->args[i].written && tensor && verify_judge_work(proof, tensor, false) > JUDGE_WORK)
            return arena_printf(proof->arena, "an element of %s, which %s writes, is made of %.1e operations",
                                tensor_shown(tensor)->name, launch->entry,
                                verify_judge_work(proof, tensor, false));
    }
    return NULL;
}

static bool same_shapes(const Launch *a, const Launch *b)
{
    bool same = a->arg_count == b->arg_count;
    for (int i = 0; i < a->arg_count && same; i++) {
        const Tensor *left = a->args[i].tensor, *right = b->args[i].tensor;
        same = !left == !right &&
               (!left || (left->rank == right->rank &&
                          memcmp(left->shape, right->shape, sizeof *left->shape * (size_t)left->rank) == 0));
    }
    return same;
}

bool verify_repeats(const Kernel *kernel, const Launch *launch)
{
    const Launch *earlier = kernel->launches;
    while (earlier < launch && !(earlier->kernel == launch->kernel && same_shapes(earlier, launch)))
        earlier++;
    return earlier < launch;
}

/* As many blocks as the budget allows; of heavy ones a few more. The first and the last show which tensors a
   launch takes. */
int64_t verify_sample_blocks(const Proof *proof)
{
    if (proof->repeats)
        return MIN_BLOCKS;
    double work = block_work(proof);
    double affordable = SAMPLE_WORK / work, few = FEW_WORK / work;
    double blocks = affordable > FEW_BLOCKS ? affordable : few < FEW_BLOCKS ? few : FEW_BLOCKS;
    return blocks < MIN_BLOCKS ? MIN_BLOCKS : blocks > MAX_BLOCKS ? MAX_BLOCKS : (int64_t)blocks;
}

bool verify_is_prepared(const Proof *proof, const Tensor *tensor)
{
    bool whole = proof->launch->cooperative || blocks_of(proof->launch) <= verify_sample_blocks(proof);
    double work = verify_read_work(proof, tensor);
    return work > COSTLY_WORK && (whole || work * (double)tensor_elements(tensor) < PREPARED_WORK);
}

bool verify_is_too_large(const Kernel *kernel, double whole_work, bool checked)
{
    double work = 0, bytes = (double)kernel->workspace_bytes;
    for (int i = 0; i < kernel->launch_count; i++)
        work += kernel->launches[i].work;
    for (int i = 0; i < kernel->program->input_count; i++)
        bytes += (double)tensor_bytes(kernel->program->inputs[i]);
    for (int i = 0; i < kernel->program->output_count; i++) {
        bytes += (double)tensor_bytes(kernel->program->outputs[i]);
        work += JUDGING_WORK * (double)tensor_elements(kernel->program->outputs[i]);
    }
    double times = checked ? CHECKED : 1;
    return work * times > (whole_work ? whole_work : WHOLE_WORK) || bytes * times > (double)WHOLE_BYTES;
}

bool verify_is_small(const Kernel *kernel)
{
    return !verify_is_too_large(kernel, SMALL_WORK, false);
}
