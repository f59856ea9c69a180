// What `ptxas -v` says of each kernel:
//
//   ptxas info    : Compiling entry function 'matmul_k0' for 'sm_90a'
//   ptxas info    : Function properties for matmul_k0
//   ptxas         .     8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads
//   ptxas info    : Used 255 registers, used 1 barriers, 37888 bytes smem
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hal/jit.h"

static const char compiling[] = "Compiling entry function '";

/* The number before `what`: 37888 of "…, 37888 bytes smem"; 0 if it is not there. */
static int64_t number_before(const char *line, const char *what)
{
    const char *at = strstr(line, what);
    while (at && at > line && at[-1] == ' ')
        at--;
    while (at && at > line && at[-1] >= '0' && at[-1] <= '9')
        at--;
    return at ? strtoll(at, NULL, 10) : 0;
}

/* Functions that are not inlined have properties of their own: they count for the kernel that calls them. */
static void read_line(JitKernel *kernel, const char *line)
{
    kernel->stack_bytes += number_before(line, "bytes stack frame");
    kernel->spill_store_bytes += number_before(line, "bytes spill stores");
    kernel->spill_load_bytes += number_before(line, "bytes spill loads");
    if (!strstr(line, "Used "))
        return;
    kernel->registers = (int)number_before(line, "registers");
    kernel->static_shared_bytes = number_before(line, "bytes smem");
}

int jit_read_log(Arena *arena, const char *log, JitKernel **kernels)
{
    int most = 0, count = 0;
    for (const char *at = log; (at = strstr(at, compiling)); at++)
        most++;
    *kernels = NEW_ARRAY(arena, JitKernel, most);
    char *lines = arena_strdup(arena, log), *rest = lines;
    for (char *line; (line = strsep(&rest, "\n"));) {
        char *name = strstr(line, compiling);
        if (name) {
            name += sizeof compiling - 1;
            (*kernels)[count++].name = arena_strndup(arena, name, strcspn(name, "'"));
        } else if (count > 0) {
            read_line(&(*kernels)[count - 1], line);
        }
    }
    return count;
}

const JitKernel *jit_find_kernel(const JitResult *result, const char *name)
{
    for (int i = 0; i < result->kernel_count; i++)
        if (strcmp(result->kernels[i].name, name) == 0)
            return &result->kernels[i];
    return NULL;
}

bool jit_spills(const JitResult *result)
{
    for (int i = 0; i < result->kernel_count; i++)
        if (result->kernels[i].spill_store_bytes + result->kernels[i].spill_load_bytes > 0)
            return true;
    return false;
}
