#include "codegen/memory.h"

#include <assert.h>

#include "codegen/codegen.h"

static int64_t bytes_of(const LaunchArg *arg)
{
    return arg->tensor ? tensor_bytes(arg->tensor) : arg->scratch_bytes;
}

/* Of the launch itself. */
static int64_t scratch_bytes(const Launch *launch)
{
    int64_t bytes = 0;
    for (int i = 0; i < launch->arg_count; i++)
        bytes += launch->args[i].scratch_bytes;
    return bytes;
}

void memory_check_launch(const Launch *launch, KernelMemory used)
{
    assert(used.shared_bytes <= launch->shared_bytes);
    assert(used.scratch_bytes <= scratch_bytes(launch));
}

static void check_place(const Kernel *kernel, const LaunchArg *arg)
{
    assert(arg->workspace_offset % WORKSPACE_ALIGNMENT == 0);
    assert(arg->workspace_offset + bytes_of(arg) <= kernel->workspace_bytes);
}

/* What the launches up to this one have written lies elsewhere, or is the same tensor. */
static void check_apart(const Kernel *kernel, int end, const LaunchArg *arg)
{
    for (int k = 0; k <= end; k++)
        for (int i = 0; i < kernel->launches[k].arg_count; i++) {
            const LaunchArg *other = &kernel->launches[k].args[i];
            bool same = other == arg || (arg->tensor && other->tensor == arg->tensor);
            if (other->written && other->workspace_offset >= 0 && !same)
                assert(other->workspace_offset + bytes_of(other) <= arg->workspace_offset ||
                       arg->workspace_offset + bytes_of(arg) <= other->workspace_offset);
        }
}

void memory_check_workspace(const Kernel *kernel)
{
    for (int k = 0; k < kernel->launch_count; k++)
        for (int i = 0; i < kernel->launches[k].arg_count; i++) {
            const LaunchArg *arg = &kernel->launches[k].args[i];
            if (arg->workspace_offset < 0)
                continue;
            check_place(kernel, arg);
            if (arg->written)
                check_apart(kernel, k, arg);
        }
}
