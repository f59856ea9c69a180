// What `-d rprogram` shows.
#include <inttypes.h>

#include "rprogram/rprogram.h"

static void print_perf(StrBuf *out, const PerfEstimate *perf)
{
    const char *bound = bound_name[perf->bound_by];
    strbuf_printf(out, "  predicted %.4g us, bound by %s", perf->time_us, bound);
    strbuf_printf(out, ": compute %.4g, special %.4g", perf->compute_us, perf->special_us);
    strbuf_printf(out, ", shared %.4g, l2 %.4g", perf->shared_us, perf->l2_us);
    strbuf_printf(out, ", dram %.4g, start %.4g", perf->dram_us, perf->start_us);
    strbuf_printf(out, ", latency %.4g", perf->latency_us);
    strbuf_printf(out, ", launch %.4g\n", perf->launch_us);
    strbuf_printf(out, "  %.4g waves of %d blocks an SM (limited by %s), tail %.3f, waste %.3f\n",
                  perf->waves, perf->blocks_per_sm, limiter_name[perf->limiter],
                  perf->tail_efficiency, perf->padding_waste);
}

void rprogram_print(StrBuf *out, const KernelKind *kind, const RProgram *program)
{
    strbuf_printf(out, "program %s: %" PRId64 " blocks of %d threads, ", kind->name,
                  program->grid, program->threads);
    if (program->cluster > 1)
        strbuf_printf(out, "in clusters of %d, ", program->cluster);
    strbuf_printf(out, "%" PRId64 " bytes shared, %d registers\n", program->shared_bytes, program->registers);
    rtile_print_axes(out, kind->space);
    for (int level = LEVEL_GLOBAL; level >= LEVEL_REGISTER; level--)
        rtile_print(out, kind->space, (Level)level, &program->tile[level]);
    print_perf(out, &program->perf);
}
