// loopnest: the generic fallback. One thread makes one output point, reductions run as plain loops: every
// legal program.
#include <assert.h>
#include <inttypes.h>

#include "codegen/cuda/expr.h"
#include "codegen/family/family.h"
#include "rtile/space.h"

/* There is nothing to be found in it. */
static const void *view_of(Arena *arena, const Fusion *fusion, const Target *target)
{
    (void)arena, (void)target;
    return fusion_is_uniform(fusion) && bits_are_flat(fusion) ? fusion : NULL;
}

/* Outputs of one bit each are packed by the thread that makes the whole word. */
static int points_per_thread(const Fusion *fusion) { return count_bit_outputs(fusion) ? 32 : 1; }

/* Few steps go through the same lines, which L1 keeps from one to the next (tuning-log 95). */
static int64_t steps_together(const Fusion *fusion)
{
    enum { FEW = 8 };
    int64_t steps = reduction_points(fusion);
    return steps <= FEW ? steps : 1;
}

/* A guard may leave out a load. Where a loop is written out, guards are predicates and loads go on as far as registers last; of longer
   ones compilers write out eight rounds. A guarded element of fewer than 32 bits keeps its predicate until it is widened. What guards
   several loads is a branch: each round waits for the one before. Counted in SASS: f32 windows of 7 x 7 and 9 x 9 taps keep 20 loads
   under way, f16 ones 7, 11 x 11 the 11 of a row, a depthwise filter gradient over lines of 56 or 112 pixels 8 of each tensor, over
   parts of unequal size one. Rounds whose loads are under way together; 0: any number. */
static int64_t rounds_at_once(const Fusion *fusion)
{
    enum { WRITTEN_OUT = 100, ROUNDS = 8, PREDICATES = 7 };   // loads: 10 x 10 and 4 x 26 taps are, 11 x 11 are not
    FusedAccess found[MAX_ACCESSES];
    int count = steps_together(fusion) > 1 ? 0 : fusion_accesses(fusion, found, MAX_ACCESSES), guarded = 0;
    int64_t most = 0, rounds = 1, loads = 0;
    for (int i = 0; i < count; i++) {
        bool reduced = fusion->ops[found[i].op].reduce != REDUCE_NONE;
        loads += reduced;
        guarded += reduced && found[i].guarded;
        if (reduced && found[i].guarded && most != PREDICATES)
            most = dtype_info[found[i].access->tensor->dtype].bits < 32 ? PREDICATES : WRITTEN_OUT;
    }
    if (guarded > 1)
        return 1;
    for (int a = fusion->axis_count - 1; a >= fusion->spatial_count && loads * rounds * fusion->axes[a].extent <= WRITTEN_OUT; a--)
        rounds *= fusion->axes[a].extent;
    return smaller(rounds > 1 ? rounds : ROUNDS, most);
}

/* Of a thread, besides its terms' loads and arithmetic: its point's position along all axes, and each term's test of
   its bounds. */
static double instructions_beside(const Fusion *fusion)
{
    enum { POINT = 60, BOUND = 2 };   // counted in SASS
    int bounds = 0;
    for (int i = 0; i < fusion->op_count; i++)
        if (fusion->ops[i].reduce != REDUCE_NONE)
            bounds += expr_bounds(fusion->ops[i].body);
    return POINT + (double)BOUND * bounds * (double)reduction_points(fusion);
}

/* A thread makes its points one by one, so many. */
static void state(Schedule *schedule, const Fusion *fusion, const TileSpace *space, int step, int turns)
{
    uint32_t inputs = space_inputs(space), steps = space_along(space, step);
    if (turns > 1)
        schedule_loop(schedule, (Loop){.tiles = true, .times = turns});
    if (fusion_reduces(fusion)) {
        int64_t rounds = rounds_at_once(fusion);
        schedule_loop(schedule, (Loop){.axis = (int8_t)step, .waits = rounds == 1, .at_once = (int16_t)rounds});
        schedule_load(schedule, (Move){.tiles = inputs & steps});
        schedule_reduce(schedule, schedule_ops(fusion, true));
        schedule_takes(schedule, instructions_beside(fusion), 0);
        schedule_end(schedule);
    }
    schedule_load(schedule, (Move){.tiles = inputs & ~steps});
    schedule_map(schedule, schedule_ops(fusion, false));
    schedule_store(schedule, (Move){.tiles = space_outputs(space)});
    if (turns > 1)
        schedule_end(schedule);
}

enum { MOST_THREADS = 512 };   // of a block

/* A launch may have too few threads for all points: each then makes those of so many, one after the other.
   Counted with the largest block, of which the fewest are needed. */
static int turns_of(const DeviceSpec *device, int64_t threads)
{
    int64_t block = device->warp_size;
    while (2 * block <= MOST_THREADS && 2 * block <= device->max_threads_per_block)
        block *= 2;
    return (int)ceil_div(ceil_div(threads, block), device_most_blocks(device, block));
}

/* What registers do not hold lies in memory: the kernel is there on every device. */
static void let_spill(KernelKind *kind, const DeviceSpec *device, const RTile *tile)
{
    int64_t most = device->registers_per_thread;
    if (kind_footprint(kind, tile, NULL, device, LEVEL_REGISTER) <= 4 * most)
        return;
    kind->registers.accumulator_bits = 0;
    kind->registers.others = (int)most;
}

static int kinds(Arena *arena, const void *view, const Fusion *fusion, const DeviceSpec *device,
                 KernelKind *variants)
{
    (void)view;
    KernelKind *kind = &variants[0];
    kind_begin(arena, kind, fusion);
    kind->name = "generic";
    int point = space_add_axis(kind->space, "point", spatial_points(fusion), false);
    int step = space_add_axis(kind->space, "step", reduction_points(fusion), true);
    space_add_flat_tiles(kind->space, fusion, fusion->spatial_count - 1, device);
    space_set_lines(kind->space, fusion, device);
    int each = points_per_thread(fusion), turns = turns_of(device, ceil_div(spatial_points(fusion), each));
    if (each == 1 && fusion_reduces(fusion))
        space_set_loops(kind->space, fusion, device);
    state(kind->schedule, fusion, kind->space, step, turns);
    kind->space->rule[LEVEL_REGISTER][point] = axis_fixed(each);
    kind->space->rule[LEVEL_SHARED][point] = (AxisRule){each * device->warp_size, (int64_t)each * MOST_THREADS};
    int64_t together = steps_together(fusion);
    space_fix_axis(kind->space, step, together, together);
    kind->registers.accumulator_bits = 32;
    kind->registers.others = 32;
    RTile tile = {{0}};
    tile.size[point] = each, tile.size[step] = together;
    let_spill(kind, device, &tile);
    return 1;
}

/* Nested loops over the reduction axes around `v<op> = combine(v<op>, body)`. */
static void emit_reduction(StrBuf *out, const Scope *scope, int index)
{
    const Fusion *fusion = scope->fusion;
    const FusedOp *op = &fusion->ops[index];
    const char *type = value_type(op->body->type);
    strbuf_printf(out, "    %s sum%d = %s::identity<%s>();\n", type, index, combiner(op->reduce), type);
    for (int a = 0; a < fusion->axis_count; a++)
        if (op->reduced >> a & 1)
            strbuf_printf(out, "    for (Index %s = 0; %s < %" PRId64 "; ++%s)\n", scope->axis[a],
                          scope->axis[a], fusion->axes[a].extent, scope->axis[a]);
    strbuf_printf(out, "        sum%d = %s::combine(sum%d, %s);\n", index, combiner(op->reduce), index,
                  expr_text(out->arena, scope, op->body));
    emit_reduced_op(out, "    ", scope, index, arena_printf(out->arena, "sum%d", index));
}

static void emit(StrBuf *out, const KernelPlan *plan)
{
    const Fusion *fusion = plan->fusion;
    assert(bits_are_flat(fusion));   // a thread's word is that of its points
    Scope scope = scope_of(plan);
    int bits = count_bit_outputs(fusion);
    CONSTEXPR(out, "Index POINTS", "outputs", spatial_points(fusion));
    CONSTEXPR(out, "int THREADS", NULL, plan->threads);
    CONSTEXPR(out, "int POINTS_PER_THREAD", "32: a thread packs whole words of one-bit outputs",
              points_per_thread(fusion));
    CONSTEXPR(out, "int BIT_OUTPUTS", NULL, bits);
    CONSTEXPR(out, "int TURNS", "iterations of a thread, where the grid has too few threads for all outputs", plan->program->turns);
    CONSTEXPR(out, "long long STRIDE", "threads of the grid", plan->program->grid * plan->threads);

    strbuf_puts(out, "\n// Computes one output point; one-bit results go to `bits`.\n");
    strbuf_printf(out, "__device__ __forceinline__ void compute(const Tensors &t, Index point%s)\n{\n",
                  bits ? ", bool *bits" : ", bool *");
    emit_positions(out, "point", &scope, 0, fusion->spatial_count);
    for (int i = 0; i < fusion->op_count; i++)
        if (fusion->ops[i].reduce != REDUCE_NONE)
            emit_reduction(out, &scope, i);
        else
            emit_pointwise_op(out, "    ", &scope, i);
    emit_stores(out, "    ", &scope);
    for (int i = 0, bit = 0; i < fusion->op_count; i++)
        if (fusion->ops[i].stored && fusion->ops[i].out->dtype == DTYPE_B1)
            strbuf_printf(out, "    bits[%d] = v%d;\n", bit++, i);
    strbuf_puts(out, "}\n");

    begin_function(out, NULL, "void store_words(const Tensors &t, Index word, const unsigned *words)");
    int bit = 0;
    for (int i = 0; i < fusion->op_count; i++)
        if (fusion->ops[i].stored && fusion->ops[i].out->dtype == DTYPE_B1)
            strbuf_printf(out, "    t.out%d[word] = words[%d];\n",
                          output_position(fusion, fusion->ops[i].out), bit++);
    strbuf_puts(out, "}\n");
}

const Family loopnest_family = {
    .name = "loopnest",
    .template_path = "templates/loopnest.cu",
    .variants = (const char *const[]){"generic", NULL},
    .fetches = true,
    .view = view_of,
    .kinds = kinds,
    .emit = emit,
};
