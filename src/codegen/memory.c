#include "codegen/memory.h"

#include <assert.h>

#include "base/checked.h"
#include "codegen/codegen.h"

static void check_place(const Kernel *kernel, const LaunchArg *arg)
{
    const int64_t sizes[BUFFERS_BESIDE] = {kernel->workspace_bytes, kernel->prepared_bytes, kernel->weight_bytes};
    int beside = arg->buffer - argument_count(kernel->program);
    if (beside >= 0) {
        assert(arg->offset % WORKSPACE_ALIGNMENT == 0);
        assert(arg->offset >= 0 && arg->offset + arg->bytes <= sizes[beside]);
    }
}

/* The file is NAME_prepare's, what it makes of it the calls' to read; workspaces are not passed on. */
static void check_side(const Kernel *kernel, int launch, const LaunchArg *arg)
{
    bool in_call = launch >= kernel->prepare_count;
    int beside = arg->buffer - argument_count(kernel->program);
    assert(!arg->written || beside != BUFFER_WEIGHTS);
    assert(in_call ? beside != BUFFER_WEIGHTS && !(arg->written && beside == BUFFER_PREPARED) : beside >= 0);
}

static bool is_copied(const Kernel *kernel, const LaunchArg *read)
{
    for (int i = 0; i < kernel->copy_count; i++) {
        const LaunchCopy *copy = &kernel->copies[i];
        if (copy->to <= read->offset && read->offset + read->bytes <= copy->to + copy->bytes)
            return true;
    }
    return false;
}

/* What a sum is made of in place lies where the sum does, element by element. */
static bool is_under(const LaunchArg *read, const LaunchArg *made)
{
    return !read->written && !read->row && !made->row && read->offset == made->offset &&
           read->bytes == made->bytes &&
           dtype_info[read->tensor->dtype].bits == dtype_info[made->tensor->dtype].bits;
}

/* The blocks of a launch run in any order: what it writes is nothing else that it reads or writes, but for one that is under it. */
static void check_apart(const Launch *launch, int written)
{
    int under = 0;
    for (int i = 0; i < launch->arg_count; i++) {
        if (i == written || !launch_args_overlap(&launch->args[i], &launch->args[written]))
            continue;
        assert(is_under(&launch->args[i], &launch->args[written]));
        under++;
    }
    assert(under <= 1);
}

/* Bytes of a row that are both's. */
static int64_t shared_part(const LaunchArg *a, const LaunchArg *b)
{
    return smaller(a->row_end, b->row_end) - larger(a->row_first, b->row_first);
}

/* What a launch reads of a row is said by its first and its last byte: parts in between that it does not read may be made later. */
static int64_t made_later(const Kernel *kernel, int launch, const LaunchArg *read)
{
    int64_t bytes = 0;
    for (int k = launch + 1; k < kernel->launch_count && read->row; k++)
        for (int i = 0; i < kernel->launches[k].arg_count; i++) {
            const LaunchArg *made = &kernel->launches[k].args[i];
            if (made->written && made->tensor == read->tensor && launch_args_overlap(made, read))
                bytes += shared_part(made, read);
        }
    return bytes;
}

/* Who wrote last there, before the launch that reads, wrote this tensor, or parts of it that together are what is read. Inputs
   nobody writes, nor the file of weights. */
static void check_made(const Kernel *kernel, int launch, const LaunchArg *read)
{
    int prepared = buffer_beside(kernel->program, BUFFER_PREPARED);
    int64_t missing = read->row_end - read->row_first;
    for (int k = launch - 1; k >= 0; k--)
        for (int i = 0; i < kernel->launches[k].arg_count; i++) {
            const LaunchArg *made = &kernel->launches[k].args[i];
            if (!made->written || !launch_args_overlap(made, read))
                continue;
            assert(made->tensor == read->tensor && made->offset == read->offset);
            assert((k < kernel->prepare_count) == (launch < kernel->prepare_count) || read->buffer == prepared);
            missing -= read->row ? shared_part(made, read) : missing;
            if (missing <= 0)
                return;
        }
    if (read->row && missing < read->row_end - read->row_first && missing <= made_later(kernel, launch, read))
        return;
    if (read->buffer == prepared)
        assert(is_copied(kernel, read));
    else
        assert(read->buffer < kernel->program->input_count ||
               read->buffer == buffer_beside(kernel->program, BUFFER_WEIGHTS));
}

void memory_check_launches(const Kernel *kernel)
{
    for (int k = 0; k < kernel->launch_count; k++)
        for (int i = 0; i < kernel->launches[k].arg_count; i++) {
            const LaunchArg *arg = &kernel->launches[k].args[i];
            check_place(kernel, arg);
            check_side(kernel, k, arg);
            if (arg->written)
                check_apart(&kernel->launches[k], i);
            else
                check_made(kernel, k, arg);
        }
}
