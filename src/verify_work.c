// What a proof costs, in scalar operations, and what is then affordable.
#include "verify_parts.h"

enum {
    MIN_BLOCKS = 2,   // of a sampled launch: the first and the last
    MAX_BLOCKS = 16,
    JUDGING_WORK = 2,      // to compare one element
    COSTLY_ELEMENTS = 32,  // that a block reads, as a rule
    PAGE_ELEMENTS = 1024   // of a page that is made when one of them is read
};

static const double WHOLE_WORK = 3e7;    // about a second on the interpreter, and one for the reference
static const double COOPERATIVE_WORK = 5e8;   // of a launch that can only be run whole: about 20 seconds
static const double SMALL_WORK = 1e6;    // of a program that is run on every kind of inputs
static const double SAMPLE_WORK = 3e6;   // of one sampled launch
static const int64_t WHOLE_BYTES = 256 << 20;   // of all buffers
static const double DEAR_WORK = 3e7;            // of the reference for one element: a sum of everything
static const double CHECKED = 10;               // times the work and memory if accesses are checked

/* What one element of a tensor costs to the launch that makes it; nothing if it is an input. */
double verify_element_work(const Kernel *kernel, const Tensor *tensor)
{
    for (int k = 0; k < kernel->launch_count; k++)
        for (int i = 0; i < kernel->launches[k].arg_count; i++)
            if (kernel->launches[k].args[i].tensor == tensor && kernel->launches[k].args[i].written)
                return kernel->launches[k].work / (double)tensor_elements(tensor);
    return 0;
}

/* What one element of a tensor costs the reference: it may have to go back to the inputs. */
double verify_reference_work(const Kernel *kernel, const Tensor *tensor)
{
    double work = 0;
    for (int k = 0; k < kernel->launch_count; k++)
        work += kernel->launches[k].work;
    return verify_position(kernel->program->outputs, kernel->program->output_count, tensor) < 0
               ? verify_element_work(kernel, tensor)
               : work / (double)tensor_elements(tensor);
}

static int64_t blocks_of(const Launch *launch) { return launch->grid[0] * launch->grid[1] * launch->grid[2]; }

/* A block computes its share; and a page of each tensor that it reads has to be made for it. */
static double block_work(const Kernel *kernel, const Launch *launch)
{
    double work = launch->work / (double)blocks_of(launch) + 1;
    for (int i = 0; i < launch->arg_count; i++) {
        if (launch->args[i].written)
            continue;
        double element = verify_element_work(kernel, launch->args[i].tensor);
        work += element > COSTLY_WORK ? COSTLY_ELEMENTS * element : PAGE_ELEMENTS * element;
    }
    return work;
}

bool verify_is_dear(const Kernel *kernel, const Launch *launch)
{
    for (int i = 0; i < launch->arg_count; i++)
        if (launch->args[i].written && launch->args[i].tensor &&
            verify_reference_work(kernel, launch->args[i].tensor) > DEAR_WORK)
            return true;
    return false;
}

bool verify_is_indivisible(const Launch *launch) { return launch->cooperative && launch->work > COOPERATIVE_WORK; }

/* As many blocks as the budget allows. */
int64_t verify_sample_blocks(const Kernel *kernel, const Launch *launch)
{
    double affordable = SAMPLE_WORK / block_work(kernel, launch);
    return affordable < MIN_BLOCKS ? MIN_BLOCKS : affordable > MAX_BLOCKS ? MAX_BLOCKS : (int64_t)affordable;
}

bool verify_runs_whole(const Kernel *kernel, const Launch *launch)
{
    return launch->cooperative || blocks_of(launch) <= verify_sample_blocks(kernel, launch);
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
