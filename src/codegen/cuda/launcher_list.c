// Several launches are a list that goes into a stream or a graph: a function for each kernel, and one that calls
// these in order.
#include <inttypes.h>

#include "codegen/cuda/launcher_parts.h"
#include "hal/runtime.h"

LaunchRange launcher_calls(const Kernel *kernel)
{
    return (LaunchRange){"launches", kernel->prepare_count, kernel->launch_count};
}

LaunchRange launcher_preparations(const Kernel *kernel)
{
    return (LaunchRange){"preparations", 0, kernel->prepare_count};
}

bool launcher_is_list(const Kernel *kernel) { return kernel->launch_count != 1 || kernel->prepare_count; }

// ---- a kernel's function ----

/* `static void net_k2_launch(net_prelude::Launches &to, const int *after, bool early, const void *a0, …)` */
static void write_function(StrBuf *out, const Kernel *kernel, const Launch *launch)
{
    bool attributes = launcher_has_attributes(launch);
    strbuf_printf(out, "\nstatic void %s_launch(%s" PRELUDE_SUFFIX "::Launches &to, const int *after, bool early",
                  launch->entry, kernel->name);
    for (int i = 0; i < launch->arg_count; i++)
        strbuf_printf(out, ", %svoid *a%d", launch->args[i].written ? "" : "const ", i);
    strbuf_puts(out, ")\n{\n");
    launcher_using(out, kernel);
    launcher_write_arguments(out, NULL, launch);
    const char *steps = launcher_steps(out->arena, NULL, launch);
    strbuf_printf(out, "%s%s", *steps ? "    cudaError_t &status = to.status;\n" : "", steps);
    strbuf_printf(out, "    make_launch%s(to, after, early, %s_scope::%s, args, ", attributes ? "_with" : "",
                  launch->entry, launch->entry);
    launcher_write_shape(out, launch);
    strbuf_printf(out, ", %" PRId64 ", %s", launch->shared_bytes, launch->cooperative ? "true" : "false");
    if (attributes) {
        strbuf_puts(out, ", ");
        launcher_write_cluster(out, launch);
        strbuf_puts(out, launch->early ? ", true" : ", false");
    }
    strbuf_puts(out, ");\n}\n");
}

void launcher_functions(StrBuf *out, const Kernel *kernel)
{
    for (int k = 0; k < kernel->kernel_count && launcher_is_list(kernel); k++)
        write_function(out, kernel, &kernel->launches[kernel->leaders[k]]);
}

// ---- places in a graph ----

/* Those of a call, which what is prepared comes before. */
static const Launch *calls(const Kernel *kernel) { return kernel->launches + kernel->prepare_count; }
static int call_count(const Kernel *kernel) { return kernel->launch_count - kernel->prepare_count; }

/* How many come after it, as far as two. */
static int successor_count(const Kernel *kernel, int launch)
{
    int count = 0;
    for (int k = launch + 1; k < call_count(kernel) && count < 2; k++)
        for (int i = 0; i < calls(kernel)[k].after_count; i++)
            count += calls(kernel)[k].after[i] == launch;
    return count;
}

/* A launch that waits for one other waits for all that it needs: that one has waited for what is before it. Behind
   several launches, or beside others, it comes when they have ended. */
static bool begins_early(const Kernel *kernel, const Launch *launch)
{
    return launch->early && launch->after_count == 1 && !calls(kernel)[launch->after[0]].cooperative &&
           successor_count(kernel, launch->after[0]) == 1;
}

/* `after<0, 1>(), false`: what a call's launch comes after in a graph, and whether it begins early there. */
static const char *node_place(Arena *arena, const Kernel *kernel, int number)
{
    StrBuf out = strbuf_new(arena);
    const Launch *launch = &calls(kernel)[number];
    strbuf_puts(&out, "after<");
    for (int i = 0; i < launch->after_count; i++)
        strbuf_printf(&out, "%s%d", i ? ", " : "", launch->after[i]);
    strbuf_printf(&out, ">(), %s", begins_early(kernel, launch) ? "true" : "false");
    return out.text;
}

// ---- the list ----

bool launcher_uses(const Kernel *kernel, LaunchRange range, int buffer)
{
    for (int k = range.first; k < range.last; k++)
        for (int i = 0; i < kernel->launches[k].arg_count; i++)
            if (kernel->launches[k].args[i].buffer == buffer)
                return true;
    return false;
}

/* Of the buffers beside the arguments. */
static const char *beside_name(BufferBeside which)
{
    static const char *const names[] = {
        [BUFFER_WORKSPACE] = "workspace", [BUFFER_PREPARED] = "prepared", [BUFFER_WEIGHTS] = "weights"};
    return names[which];
}

static const char *beside_type(LaunchRange range, BufferBeside which)
{
    bool written = which == BUFFER_WORKSPACE || (which == BUFFER_PREPARED && range.first == 0);
    return written ? "char *" : "const char *";
}

/* What the list's function is given, as it declares it or as it is called. */
static void write_given(StrBuf *out, const Kernel *kernel, LaunchRange range, bool declared)
{
    const Program *program = kernel->program;
    for (int i = 0; i < argument_count(program); i++)
        if (launcher_uses(kernel, range, i))
            strbuf_printf(out, ", %s%s", !declared ? "" : i < program->input_count ? "const void *" : "void *",
                          launcher_argument(out->arena, program, i));
    for (BufferBeside b = 0; b < BUFFERS_BESIDE; b++)
        if (launcher_uses(kernel, range, buffer_beside(program, b)))
            strbuf_printf(out, ", %s%s%s%s", declared ? "" : "(", beside_type(range, b), declared ? "" : ")",
                          beside_name(b));
}

/* `y`, or `(char *)y + 128`. */
static void write_argument(StrBuf *out, const Program *program, const LaunchArg *arg)
{
    const char *name = launcher_argument(out->arena, program, arg->buffer);
    if (arg->first)
        strbuf_printf(out, ", (%schar *)%s + %" PRId64, arg->written ? "" : "const ", name, arg->first);
    else
        strbuf_printf(out, ", %s", name);
}

/* `    net_k2_launch(to, after<0>(), true, x, workspace + 4096);   // h`, in the user's words. */
static void write_call(StrBuf *out, const Kernel *kernel, LaunchRange range, int k)
{
    const Program *program = kernel->program;
    const Launch *launch = &kernel->launches[k];
    bool is_node = kernel->has_graph && range.first == kernel->prepare_count;
    strbuf_printf(out, "    %s_launch(to, ", launch->entry);
    strbuf_puts(out, is_node ? node_place(out->arena, kernel, k - range.first) : "nullptr, false");
    for (int i = 0; i < launch->arg_count; i++) {
        int beside = launch->args[i].buffer - argument_count(program);
        if (beside >= 0)
            strbuf_printf(out, ", %s + %" PRId64, beside_name((BufferBeside)beside), launch_arg_start(&launch->args[i]));
        else
            write_argument(out, program, &launch->args[i]);
    }
    strbuf_puts(out, ");   //");
    for (int i = 0; i < launch->arg_count; i++)
        if (launch->args[i].written && launch->args[i].tensor)
            strbuf_printf(out, " %s", tensor_shown(launch->args[i].tensor)->name);
    strbuf_puts(out, "\n");
}

void launcher_list(StrBuf *out, const Kernel *kernel, LaunchRange range)
{
    if (range.first == range.last)
        return;
    strbuf_printf(out, "\nstatic void %s_%s(%s" PRELUDE_SUFFIX "::Launches &to", kernel->name, range.name,
                  kernel->name);
    write_given(out, kernel, range, true);
    strbuf_puts(out, ")\n{\n");
    launcher_using(out, kernel);
    for (int k = range.first; k < range.last; k++)
        write_call(out, kernel, range, k);
    strbuf_puts(out, "}\n");
}

void launcher_make_list(StrBuf *out, const Kernel *kernel, LaunchRange range)
{
    if (range.first == range.last)
        return;
    strbuf_printf(out, "    %s_%s(to", kernel->name, range.name);
    write_given(out, kernel, range, false);
    strbuf_puts(out, ");\n");
}

void launcher_begin_list(StrBuf *out, const Kernel *kernel, const char *stream)
{
    launcher_using(out, kernel);
    strbuf_printf(out, "    Launches to = {%s, cudaSuccess};\n", stream);
}
