// What one block of a resident kernel does: it copies its share of the row, then iterates over it once a pass.
#include "base/checked.h"
#include "codegen/family/rows/resident_parts.h"

enum { ROW, COLUMN };   // space axes
enum { SLOT_BYTES = 8 };   // of a result in shared memory

typedef struct ResidentStatement {
    Schedule *schedule;
    const ResidentKernel *resident;
    uint32_t seen;   // tiles that hit a cache from now on
} ResidentStatement;

static uint32_t bit_tiles(const Reads *reads)
{
    uint32_t tiles = 0;
    for (int i = 0; i < reads->count; i++)
        tiles |= (uint32_t)(reads->reads[i].access->tensor->dtype == DTYPE_B1) << i;
    return tiles;
}

static void load(ResidentStatement *s, uint32_t tiles)
{
    schedule_load(s->schedule, (Move){
                                   .tiles = tiles & s->resident->view->kept,
                                   .from = PLACE_SHARED,
                               });
    tiles &= ~s->resident->view->kept;
    for (int again = 0; again < 2; again++)
        schedule_load(s->schedule, (Move){
                                       .tiles = again ? tiles & s->seen : tiles & ~s->seen,
                                       .again = again,
                                   });
    s->seen |= tiles;
}

/* Each reduction is combined across the warps of a block; those of a pass together across the cluster. */
static void exchange(ResidentStatement *s, uint64_t ops)
{
    const ResidentKernel *resident = s->resident;
    bool wide = false;
    FOR_BITS (i, ops)
        wide |= dtype_info[resident->fusion->ops[i].body->type].bits > 32;
    schedule_exchange(s->schedule, (Exchange){
                                       .ops = ops,
                                       .scope = resident->cluster > 1 ? SCOPE_CLUSTER : SCOPE_BLOCK,
                                       .combine = COMBINE_SLOTS,
                                       .bytes = SLOT_BYTES,
                                       .value_bytes = wide ? SLOT_BYTES : SLOT_BYTES / 2,
                                       .parts = (int16_t)(resident->threads / resident->warp),
                                       .width = (int16_t)resident->warp,
                                   });
}

/* Rows may share a word of bits with others; then they are packed in parts of a word. */
static void pack_bits(ResidentStatement *s)
{
    const Fusion *fusion = s->resident->fusion;
    int vector = s->resident->view->reads.walk.vector;
    FOR_BITS (i, schedule_bit_ops(fusion))
        schedule_pack(s->schedule, OP_BIT(i), vector, resident_bit_run(fusion, vector, &fusion->ops[i]));
}

static void walk(ResidentStatement *s, const RowPass *pass)
{
    const ResidentKernel *resident = s->resident;
    const Fusion *fusion = resident->fusion;
    int64_t step = (int64_t)resident->threads * resident->view->reads.walk.vector;
    int64_t rounds = ceil_div(resident_share(fusion, resident->cluster), step);
    schedule_loop(s->schedule, (Loop){.axis = COLUMN, .times = (int32_t)rounds});
    load(s, pass->reads);
    schedule_map(s->schedule, pass->made);
    schedule_reduce(s->schedule, pass->reduced);
    if (pass->stored)
        pack_bits(s);
    passes_store(s->schedule, fusion, resident->space, pass->stored);
    schedule_end(s->schedule);
    if (pass->reduced)
        exchange(s, pass->reduced);
    schedule_map(s->schedule, pass->values);
}

/* Elements that a thread loads before it stores the first, of what is too narrow to be copied asynchronously; 0: there is none. */
static int passing_elements(const ResidentKernel *resident)
{
    int vector = resident->view->reads.walk.vector;
    bool passes = false;
    FOR_BITS (i, resident->view->kept)
        passes |= vector * dtype_info[resident->view->reads.reads[i].access->tensor->dtype].bits % (8 * VECTOR_BYTES) != 0;
    return passes ? KEPT_AT_ONCE * vector : 0;
}

void resident_state(Schedule *schedule, const ResidentKernel *resident)
{
    const PassPlan *passes = resident->view->passes;
    ResidentStatement s = {.schedule = schedule, .resident = resident};
    uint32_t rest =
        space_inputs(resident->space) & ~resident->view->kept & ~bit_tiles(&resident->view->reads);
    schedule->computes = COMPUTES_VECTORS;
    schedule->cluster = resident->cluster;
    schedule->cluster_axis = COLUMN;
    schedule->stages = 1;
    schedule->points = reduction_points(resident->fusion);
    schedule->run = resident_share(resident->fusion, resident->cluster);
    schedule->kept = resident_share(resident->fusion, resident->cluster);
    schedule_load(schedule, (Move){
                                .tiles = resident->view->kept,
                                .to = PLACE_SHARED,
                                .async = true,
                                .each = (uint8_t)passing_elements(resident),
                            });
    schedule_load(schedule, (Move){.tiles = rest, .to = PLACE_L2});
    schedule_wait(schedule, 0);
    schedule_map(schedule, passes->before.values);
    for (int pass = 0; pass < passes->count; pass++) {
        if (pass + 1 == passes->count)
            passes_store(schedule, resident->fusion, resident->space, ~passes_last(passes)->stored);
        walk(&s, &passes->pass[pass]);
    }
    if (resident->cluster > 1)
        schedule_barrier(schedule, SCOPE_CLUSTER);   // others may still read this block's results
}
