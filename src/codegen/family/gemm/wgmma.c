// wgmma: a sum of products of two elements of one type, computed by tensor cores that read shared memory,
// where the factors are no boxes of tensors (bulk.c), as pixels under the taps of a convolution.
#include "codegen/family/gemm/convolution_turn.h"
#include "codegen/family/gemm/families.h"
#include "codegen/family/gemm/mma.h"
#include "codegen/family/gemm/pack.h"
#include "model/calibration.h"

enum { LINE_BYTES = 128, LEAST_STAGES = 3, MOST_STAGES = 4 };

/* Each factor lies as the instruction reads it. */
static bool lies_in_pieces(const Product *product)
{
    bool fits = true;
    for (int factor = 0; factor < 2; factor++) {
        Reading reading = product->reading[factor];
        fits &= reading.way == BY_PIECES && (product->shared_atom->place == IN_SHARED || reading.along_k);
    }
    return fits;
}

/* The products of a step begin when its tiles are there, and go on while a later step's are asked for. */
static Schedule *schedule_of(Arena *arena, const Fusion *fusion, const Product *product,
                             const TileSpace *space, int stages)
{
    Schedule schedule = {.order = ORDER_PANELS, .stages = stages};
    uint32_t operands = FACTOR_TILES;
    schedule_loop(&schedule, (Loop){.axis = GROUP_K});
    schedule_wait(&schedule, stages - 3);
    schedule_barrier(&schedule, SCOPE_BLOCK);
    schedule_load(&schedule, (Move){.tiles = operands, .from = PLACE_SHARED});
    schedule_product(&schedule, schedule_ops(fusion, true));
    schedule_load(
        &schedule,
        (Move){.tiles = operands, .to = PLACE_SHARED, .async = true, .ahead = (uint8_t)(stages - 2)});
    schedule_end(&schedule);
    schedule_barrier(&schedule, SCOPE_BLOCK);
    mma_schedule_end(&schedule, fusion, product, space, SCOPE_WARP, mma_sum_type(product));
    return schedule_copy(arena, &schedule);
}

/* The stages of both operands, wherever their lines begin; in the same place a slab of each warp's tile. */
static void lay_out(SharedLayout *layout, const KernelKind *kind, const RTile *block, const RTile *inner,
                    const DeviceSpec *device)
{
    layout_add(layout, "OPERANDS", kind_staged_bytes(kind, block, inner, device) + SHARED_ALIGNMENT);
    layout_put(layout, "SLABS", 0, layout->bytes);
}

static int kinds(Arena *arena, const void *view, const Fusion *fusion, const DeviceSpec *device,
                 KernelKind *variants)
{
    const Product *product = ((const Products *)view)->tiled;
    bool boxed = ((const Products *)view)->boxed;
    if (!product || !product->shared_atom || boxed || !lies_in_pieces(product))
        return 0;
    KernelKind kind;
    mma_group_kind(arena, &kind, fusion, device, product, product->shared_atom);
    mma_count_copies(kind.space, fusion, product, false);
    kind.cost = &calibration.wgmma;
    kind.lay_out = lay_out;
    kind.shared.beside = SHARED_ALIGNMENT;
    int count = 0;
    for (int stages = LEAST_STAGES; stages <= MOST_STAGES; stages++) {
        kind.name = wgmma_family.variants[stages - LEAST_STAGES];
        kind.schedule = schedule_of(arena, fusion, product, kind.space, stages);
        variants[count++] = kind;
    }
    return count;
}

static void emit(StrBuf *out, const KernelPlan *plan)
{
    mma_emit(out, plan, ((const Products *)plan->view)->tiled,
             &(MmaBlock){.atom_shared = true, .holders = "a warp group"});
}

const Family wgmma_family = {
    .name = "wgmma",
    .template_path = "templates/wgmma.cu",
    .variants = (const char *const[]){"three stages", "four stages", NULL},
    .adds_in_place = true,
    .tiles_both = true,
    .view = product_view,
    .rewrites = (const Rewrite *const[]){&pack_for_tensor_cores, &lengthen_channels,
                                         &lengthen_channels_of_rows, NULL},
    .kinds = kinds,
    .emit = emit,
};
