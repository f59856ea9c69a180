#include "codegen/provenance.h"

#include <inttypes.h>
#include <string.h>

static void write_level(StrBuf *out, const TileSpace *space, const char *level, const RTile *tile,
                        const char *count)
{
    strbuf_printf(out, "//   %-10s", level);
    for (int a = 0; a < space->axis_count; a++)
        strbuf_printf(out, "%12" PRId64, tile->size[a]);
    strbuf_printf(out, "   %s\n", count);
}

/* What a launch makes, in the user's words. */
static const char *made_by(const Launch *launch)
{
    int i = 0;
    while (!launch->args[i].written)
        i++;
    return tensor_shown(launch->args[i].tensor)->name;
}

/* Equal launches have the names of the first one. */
static void write_others(StrBuf *out, const Kernel *kernel, int first)
{
    enum { COLUMNS = 100 };
    size_t line = out->length;
    bool others = false;
    for (int i = first + 1; i < kernel->launch_count; i++) {
        if (kernel->launches[i].kernel != kernel->launches[first].kernel)
            continue;
        const char *name = made_by(&kernel->launches[i]);
        if (!others)
            strbuf_printf(out, "//   made for %s; equal are", made_by(&kernel->launches[first]));
        if (out->length - line + strlen(name) > COLUMNS) {
            line = out->length + strlen(others ? ",\n" : "\n");
            strbuf_puts(out, others ? ",\n//    " : "\n//    ");
        } else {
            strbuf_puts(out, others ? "," : "");
        }
        strbuf_printf(out, " %s", name);
        others = true;
    }
    strbuf_puts(out, others ? "\n" : "");
}

const char *provenance(Arena *arena, const CodegenRequest *request, const Kernel *kernel, int index)
{
    const PlannedLaunch *planned = &request->plan->launches[index];
    StrBuf text = strbuf_new(arena), *out = &text;
    const RProgram *program = planned->program;
    const TileSpace *space = planned->kind->space;
    const PerfEstimate *perf = &program->perf;
    const char *which = request->rank >= 0 ? arena_printf(arena, "candidate %d of %d", request->rank + 1, request->kept)
                                           : "made of the fastest kernels";
    strbuf_printf(out, "// <rollerc: parameters>   %s (%s) for %s on %s, %s\n//   level     ",
                  planned->family->template_path, planned->kind->name, request->name, request->device->name, which);
    for (int a = 0; a < space->axis_count; a++)
        strbuf_printf(out, "%12s", space->axes[a].name);
    strbuf_puts(out, "\n");
    write_level(out, space, "global", &program->tile[LEVEL_GLOBAL], "the problem");
    write_level(out, space, "shared", &program->tile[LEVEL_SHARED],
                arena_printf(arena, "%" PRId64 " blocks, %.2f waves, %" PRId64 " bytes", kernel->launches[index].grid[0],
                             perf->waves, program->shared_bytes));
    write_level(out, space, "register", &program->tile[LEVEL_REGISTER],
                arena_printf(arena, "%d threads, about %d registers", program->threads, program->registers));
    strbuf_printf(
        out, "//   predicted %.2f us, bound by %s (compute %.2f, shared %.2f, L2 %.2f, DRAM %.2f)\n",
        perf->time_us, bound_name[perf->bound_by], perf->compute_us, perf->shared_us, perf->l2_us,
        perf->dram_us);
    write_others(out, kernel, index);
    return text.text;
}
