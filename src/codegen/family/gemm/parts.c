#include "codegen/family/gemm/parts.h"

#include "base/checked.h"
#include "codegen/family/gemm/im2col.h"
#include "ir/fuse_nest.h"
#include "ir/fuse_split.h"

enum { TILE_ROWS = 128, MOST_PARTS = 256 };

/* Utilisation of the SMs by so many tiles, with the tail of the last wave. */
static double filled(int64_t tiles, int64_t sms) { return (double)tiles / (double)round_up(tiles, sms); }

/* Steps of a split of K: the fewest waves that the splits of all tiles fill better than whole sums do; 0: no split. 72 tiles on 132
   SMs split in three are two waves of 108. `idle`: only where half of the SMs have no tile. */
static int64_t steps_of_part(const Product *product, const Target *target, int64_t columns, bool idle)
{
    int64_t line = LINE_PIECES * mma_piece(product), steps = ceil_div(product->pixels->outputs.extent, line);
    int64_t tiles = ceil_div(product->group[GROUP_M].extent, TILE_ROWS) *
                    ceil_div(product->group[GROUP_N].extent, columns);
    int64_t sms = target->device->sm_count, fewest = ceil_div(2 * tiles, sms);   // of two parts or more
    for (int64_t waves = fewest; steps > 1 && waves <= (idle ? 1 : 2 * fewest); waves++) {
        int64_t parts = waves * sms / tiles;
        if (filled(parts * tiles, sms) > filled(tiles, sms))
            return ceil_div(steps, parts < MOST_PARTS ? parts : MOST_PARTS);
    }
    return 0;
}

/* What tiles of `other` columns (0: none) have, too, is made once. */
static Rewritten *in_parts(Arena *arena, const void *view, const Fusion *fusion, const Target *target,
                           int64_t columns, int64_t other, bool idle)
{
    const Product *product = ((const Products *)view)->boxed;
    if (!product || product->share.chunk || !product->pixels || product->pixels->groups > 1 || im2col_has_rows(product->pixels))
        return NULL;
    int64_t steps = steps_of_part(product, target, columns, idle);
    if (!steps || (other && steps == steps_of_part(product, target, other, idle)))
        return NULL;
    FusionPair *pair = fusion_split_points(arena, fusion, &product->pixels->outputs,
                                           steps * LINE_PIECES * mma_piece(product));
    if (!pair)
        return NULL;
    Rewritten *parts = NEW(arena, Rewritten);
    parts->main = pair->partial;
    parts->behind[parts->behind_count++] = pair->final;
    parts->definitions[parts->definition_count++] = pair->definition;
    return parts;
}

static Rewritten *of_wide(Arena *arena, const void *view, const Fusion *fusion, const Target *target)
{
    return in_parts(arena, view, fusion, target, 256, 0, false);
}

static Rewritten *of_medium(Arena *arena, const void *view, const Fusion *fusion, const Target *target)
{
    return in_parts(arena, view, fusion, target, 192, 256, false);
}

static Rewritten *of_square(Arena *arena, const void *view, const Fusion *fusion, const Target *target)
{
    return in_parts(arena, view, fusion, target, 128, 192, false);
}

bool parts_within(Arena *arena, Rewritten *rewritten, const Target *target, int64_t columns, int64_t other)
{
    const void *view = product_view(arena, rewritten->main, target);
    Rewritten *parts = view ? in_parts(arena, view, rewritten->main, target, columns, other, true) : NULL;
    return parts && fusion_nest(rewritten, parts);
}

const Rewrite parts_of_wide_tiles = {.make = of_wide};
const Rewrite parts_of_medium_tiles = {.make = of_medium};
const Rewrite parts_of_square_tiles = {.make = of_square};
