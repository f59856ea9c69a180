#include "rprogram/registers.h"

#include <math.h>

/* Where the number of threads is no multiple of a line's vectors nor the reverse, or lines begin at windows, each vector has
   an address; otherwise the vectors of a thread have a constant stride (tuning-log 127). A copy out of windows tests its
   bounds, so a vector has a position along two axes, too: three registers (tuning-log 160 and 187). */
static int64_t address_registers(const KernelKind *kind, const RProgram *program, bool direct)
{
    int64_t registers = 0;
    for (int i = 0; i < kind->space->tile_count; i++) {
        const DataTile *data = &kind->space->tiles[i];
        if (!data->staged || data->output || !data->vector)
            continue;
        const RTile *shared = &program->tile[LEVEL_SHARED];
        int axis_count = kind->space->axis_count;
        bool even = direct || data_tile_lines_even(data, shared, axis_count, program->threads);
        int each = direct ? 4 : data->line_places ? 3 : 2;
        if (data->line_places || !even)
            registers += each * ceil_div(data_tile_elements(data, shared, axis_count), (int64_t)program->threads * data->vector);
    }
    return registers;
}

/* Unless they are copied directly, the next tiles pass through registers on their way into the other
   buffer. */
static int64_t passing_words(const KernelKind *kind, const DeviceSpec *device, const RProgram *program)
{
    if (schedule_buffers(kind->schedule) < 2 || !kind_passes_registers(kind, device))
        return 0;
    int64_t buffer_bytes = (program->shared_bytes - kind->shared.beside) / schedule_buffers(kind->schedule);
    double words = (double)ceil_div(buffer_bytes, 4 * (int64_t)program->threads);
    double held = kind->registers.held_words > 0 ? kind->registers.held_words : 1;
    return (int64_t)ceil(words * held);
}

RegisterBudget register_budget(const KernelKind *kind, const DeviceSpec *device, const RProgram *program,
                               int64_t footprint)
{
    int64_t words = passing_words(kind, device, program), addresses = address_registers(kind, program, !words);
    return (RegisterBudget){.enough = footprint / 4 + words + addresses,
                            .passing = words ? words + addresses : 0,
                            .words = words,
                            .places = words ? 0 : addresses};
}

/* Where no block would fit on an SM with what the family expects, compilers take as many as one block has. */
int64_t registers_taken(const KernelKind *kind, const DeviceSpec *device, const RProgram *program,
                        RegisterBudget budget)
{
    if (!kind->registers.taken)
        return budget.enough;
    Limiter limiter;
    int64_t taken =
        kind->registers.taken(kind, &program->tile[LEVEL_SHARED], &program->tile[LEVEL_REGISTER], budget);
    while (taken > budget.enough &&
           (taken > device->registers_per_thread ||
            !perf_blocks_per_sm(device, program->threads, (int)taken, program->shared_bytes, &limiter)))
        taken--;
    return taken;
}
