#include "codegen/family/family.h"

#include <assert.h>
#include <string.h>

#include "base/checked.h"

static bool has_variant(const Family *family, const char *name)
{
    const char *const *variant = family->variants;
    while (*variant && strcmp(*variant, name) != 0)
        variant++;
    return *variant;
}

const void *family_view(const Family *family, Viewed *viewed)
{
    int at = 0;
    if ((!family->fetches && fusion_fetches(viewed->fusion)) || (viewed->fusion->streams && !family->streams) ||
        (viewed->fusion->joined && !family->joins))
        return NULL;
    while (at < viewed->count && viewed->view[at] != family->view)
        at++;
    if (at == viewed->count) {
        assert(at < MAX_VIEWS);
        viewed->view[viewed->count++] = family->view;
        viewed->found[at] = family->view(viewed->arena, viewed->fusion, viewed->target);
    }
    return viewed->found[at];
}

/* No fusion has one, but what chains of reductions walk: it would stand in none of the groups of axes that
   emitters name. */
static bool has_unit_axis(const Fusion *fusion)
{
    for (int a = 0; a < (fusion->streams ? fusion->spatial_count : fusion->axis_count); a++)
        if (fusion->axes[a].extent == 1)
            return true;
    return false;
}

int family_kinds(Arena *arena, const Family *family, Viewed *viewed, KernelKind *variants)
{
    const Fusion *fusion = viewed->fusion;
    const void *view = family_view(family, viewed);
    assert(!has_unit_axis(fusion));
    int count = view ? family->kinds(arena, view, fusion, viewed->target->device, variants) : 0, kept = 0;
    assert(count <= MAX_VARIANTS);
    for (int v = 0; v < count; v++) {
        assert(has_variant(family, variants[v].name));
        if (variants[v].schedule->overflows)
            continue;
        if (kept < v)
            variants[kept] = variants[v];
        kept++;
    }
    return kept;
}

int launch_threads(const Family *family, const RProgram *program, const DeviceSpec *device)
{
    int threads = family->whole_warps ? (int)round_up(program->threads, device->warp_size) : program->threads;
    return threads + family->copying_warps * device->warp_size;
}

int64_t launch_blocks(const Family *family, const KernelPlan *plan)
{
    return family->blocks ? family->blocks(plan) : plan->program->grid;
}

// clang-format off
const Family *const families[] = {
    &elementwise_family,
    &permute_family,
    &matmul_family,
    &gemm_family,
    &bulk_family,
    &skinny_family,
    &toeplitz_family,
    &pairs_family,
    &narrow_family,
    &window_family,
    &strip_family,
    &depthwise_family,
    &filter_direct_family,
    &filter_strip_family,
    &filter_gemm_family,
    &filter_groups_family,
    &filter_wide_family,
    &reduce_family,
    &rowwise_family,
    &channelwise_family,
    &attention_family,
    &attention_bulk_family,
    &loopnest_family,
    NULL,
};
// clang-format on

const Family *const *families_of(const DeviceSpec *device)
{
    static const Family *const by_supersteps[] = {&supersteps_family, NULL};
    return device_is_bulk_synchronous(device) ? by_supersteps : families;
}
