#include "codegen/memory.h"

#include <assert.h>

#include "codegen/codegen.h"

static void check_place(const Kernel *kernel, const LaunchArg *arg)
{
    if (arg->buffer == argument_count(kernel->program)) {
        assert(arg->offset % WORKSPACE_ALIGNMENT == 0);
        assert(arg->offset >= 0 && arg->offset + arg->bytes <= kernel->workspace_bytes);
    }
}

/* The blocks of a launch run in any order: what it writes is nothing else that it reads or writes. */
static void check_apart(const Launch *launch, int written)
{
    for (int i = 0; i < launch->arg_count; i++)
        assert(i == written || !launch_args_overlap(&launch->args[i], &launch->args[written]));
}

/* Who wrote last there, before the launch that reads, wrote this tensor. Inputs nobody writes. */
static void check_made(const Kernel *kernel, int launch, const LaunchArg *read)
{
    for (int k = launch - 1; k >= 0; k--)
        for (int i = 0; i < kernel->launches[k].arg_count; i++) {
            const LaunchArg *made = &kernel->launches[k].args[i];
            if (!made->written || !launch_args_overlap(made, read))
                continue;
            assert(made->tensor == read->tensor && made->offset == read->offset);
            return;
        }
    assert(read->buffer < kernel->program->input_count);
}

void memory_check_launches(const Kernel *kernel)
{
    for (int k = 0; k < kernel->launch_count; k++)
        for (int i = 0; i < kernel->launches[k].arg_count; i++) {
            const LaunchArg *arg = &kernel->launches[k].args[i];
            check_place(kernel, arg);
            if (arg->written)
                check_apart(&kernel->launches[k], i);
            else
                check_made(kernel, k, arg);
        }
}
