// wgmma: a sum of products of two elements of one type, computed by tensor cores that read shared memory: of
// bytes and of floats cut off to tf32, and of 16-bit elements that are no boxes of tensors (bulk.c), as pixels
// under the taps of a convolution.
#include <inttypes.h>

#include "codegen/family/family.h"
#include "codegen/family/gemm/gemm.h"
#include "rtile/space.h"

/* A step of k is a line of 128 bytes in shared memory; the tiles begin at a multiple of ALIGNMENT bytes. */
enum { LINE_BYTES = 128, LINE_PIECES = 8, ALIGNMENT = 1024, GROUP_WARPS = 4, MAX_GROUPS = 2, MAX_TILE = 256 };
enum { LEAST_STAGES = 3, MOST_STAGES = 4, SLAB_ROWS = 8 };

/* Elements of 16 bits may lie along k or along their rows. NULL: there is none for factors that lie so. */
static const Atom *find_shared_atom(const Fusion *fusion, const Product *product, const DeviceSpec *device)
{
    const Atom *atom = find_atom(product, device, IN_SHARED);
    if (!atom)
        atom = find_atom(product, device, IN_SHARED_ALONG_K);
    for (int factor = 0; atom && factor < 2; factor++) {
        Reading reading = find_reading(fusion, product, factor);
        if (reading.way != BY_PIECES || (atom->place == IN_SHARED_ALONG_K && !reading.along_k))
            return NULL;
    }
    return atom;
}

static bool matches(const Fusion *fusion, const DeviceSpec *device)
{
    Product product;
    return count_bit_outputs(fusion) == 0 && product_find(fusion, &product) &&
           find_shared_atom(fusion, &product, device) && !bulk_family.matches(fusion, device);
}

/* The products of a step begin when its tiles are there, and go on while a later step's are asked for. */
static Schedule schedule_of(const Fusion *fusion, const Product *product, const TileSpace *space, int stages)
{
    Schedule schedule = {.pace = PACE_FREE, .order = ORDER_PANELS};
    uint32_t operands = space_inputs(space);
    schedule_loop(&schedule, (Loop){.axis = GROUP_K});
    schedule_wait(&schedule, stages - 3);
    schedule_barrier(&schedule, SCOPE_BLOCK);
    schedule_load(&schedule, (Move){.tiles = operands, .from = PLACE_SHARED, .to = PLACE_REGISTERS});
    schedule_product(&schedule, schedule_ops(fusion, true));
    schedule_load(&schedule, (Move){.tiles = operands,
                                    .from = PLACE_MEMORY,
                                    .to = PLACE_SHARED,
                                    .async = true,
                                    .ahead = (uint8_t)(stages - 2)});
    schedule_end(&schedule);
    schedule_barrier(&schedule, SCOPE_BLOCK);
    schedule_finish(&schedule, fusion, product, space, SCOPE_WARP);
    return schedule;
}

static int rules(const Fusion *fusion, const DeviceSpec *device, TileRules *variants)
{
    Product product;
    product_find(fusion, &product);
    const Atom *atom = find_shared_atom(fusion, &product, device);
    int64_t k_step = LINE_PIECES * gemm_piece(&product);
    TileRules rules = {.space = find_space(fusion, device, &product, atom)};
    rules.rule[LEVEL_REGISTER][GROUP_BATCH] = rules.rule[LEVEL_SHARED][GROUP_BATCH] = (AxisRule){1, 1};
    rules.rule[LEVEL_REGISTER][GROUP_K] = rules.rule[LEVEL_SHARED][GROUP_K] = (AxisRule){k_step, k_step};
    rules.rule[LEVEL_REGISTER][GROUP_M] = (AxisRule){atom->m, atom->m};   // more would read b more often
    rules.rule[LEVEL_REGISTER][GROUP_N] = (AxisRule){atom->n / 4, atom->n};
    rules.rule[LEVEL_SHARED][GROUP_M] = rules.rule[LEVEL_SHARED][GROUP_N] = (AxisRule){1, MAX_TILE};
    rules.tile_threads = GROUP_WARPS * device->warp_size;
    rules.most_threads = MAX_GROUPS * rules.tile_threads;
    rules.accumulator_bits = sum_bits(&product);
    rules.register_overhead = 72;
    rules.input_buffers = rules.input_registers = 1;   // read by tiles, and never held
    rules.shared_overhead = ALIGNMENT;
    int count = 0;
    for (rules.stages = LEAST_STAGES; rules.stages <= MOST_STAGES; rules.stages++) {
        rules.variant_name = wgmma_family.variants[rules.stages - LEAST_STAGES];
        rules.schedule = schedule_of(fusion, &product, &rules.space, rules.stages);
        variants[count++] = rules;
    }
    return count;
}

static void emit(StrBuf *out, const KernelPlan *plan)
{
    gemm_emit(out, plan, &(TensorTile){
                             .atom_shared = true,
                             .holders = "a group of four warps",
                         });
}

/* The stages of both operands, then in the same place a slab of each warp's tile. */
static KernelMemory memory(const KernelPlan *plan)
{
    const int64_t *block = plan->program->tile[LEVEL_SHARED].size,
                  *group = plan->program->tile[LEVEL_REGISTER].size;
    int64_t warps = plan->program->threads / plan->device->warp_size;
    int64_t stages = plan->rules->stages * (block[GROUP_M] + block[GROUP_N]) * LINE_BYTES + ALIGNMENT;
    int64_t slabs = warps * SLAB_ROWS * (group[GROUP_N] + 8) * 4;
    return (KernelMemory){.shared_bytes = stages > slabs ? stages : slabs};
}

const Family wgmma_family = {
    .name = "wgmma",
    .template_path = "templates/wgmma.cu",
    .variants = (const char *const[]){"three stages", "four stages", NULL},
    .matches = matches,
    .rules = rules,
    .emit = emit,
    .memory = memory,
};
