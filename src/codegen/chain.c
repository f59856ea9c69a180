#include "codegen/chain.h"

#include "base/checked.h"
#include "base/strbuf.h"

/* All blocks of a cooperative launch are resident before any goes on: they have nothing to gain from coming
   one by one, and the programming guide says nothing of the two together. */
static bool may_follow_early(const Launch *before, const Launch *launch)
{
    return !launch->cooperative && (!before || !before->cooperative);
}

static int64_t blocks_of(const Launch *launch) { return launch->grid[0] * launch->grid[1] * launch->grid[2]; }

static int threads_of(const Launch *launch) { return launch->block[0] * launch->block[1] * launch->block[2]; }

/* Blocks of a launch that an SM holds beside so many of another one, as far as shared memory and threads go. */
static int64_t blocks_beside(const Launch *launch, const Launch *other, int64_t others,
                             const DeviceSpec *device)
{
    int64_t reserved = device->shared_reserved_per_block, bytes = launch->shared_bytes + reserved;
    int64_t shared = device->shared_per_sm - others * (other->shared_bytes + reserved);
    int64_t room = (device->max_threads_per_sm - others * threads_of(other)) / threads_of(launch);
    room = bytes ? smaller(room, shared / bytes) : room;
    return room < 0 ? 0 : smaller(room, device->max_blocks_per_sm - others);
}

/* Whether an SM holds one block at a time. */
static bool fills_sms(const Launch *launch, const DeviceSpec *device)
{
    return 2 * (launch->shared_bytes + device->shared_reserved_per_block) > device->shared_per_sm;
}

/* What comes behind a program, the next call's first launch as far as is known, may begin before the last one ends. Its blocks
   take the room that is left: where SMs have places for several, some are given more than others (512 cubed of f32 12.5 us,
   then 16.1; tuning-log 111). Not where an SM has one place, or one beside each block, or as many as if nothing were there
   (tuning-log 158). Where the only launch is brief, that costs less than beginning early saves (tuning-log 197). */
static bool leaves_places(const Launch *first, const Launch *last, const DeviceSpec *device)
{
    bool brief = first == last && first->brief;
    int64_t each = ceil_div(blocks_of(last), device->sm_count);
    int64_t left = blocks_beside(first, last, each, device);
    return brief || fills_sms(last, device) || (each == 1 && left == 1) || left == blocks_beside(first, last, 0, device);
}

/* Who waits at its end must have nothing to do with any launch before it in the program: the next one may begin
   before that. It may with an earlier call, whose memory may be the same: the first launch has waited for that. */
static bool touches_earlier(const Launch *launches, int index)
{
    for (int k = 0; k < index; k++)
        if (launches_meet(&launches[k], &launches[index]))
            return true;
    return false;
}

static int buffer_count(const Launch *launches, int count)
{
    int last = 0;
    for (int k = 0; k < count; k++)
        for (int i = 0; i < launches[k].arg_count; i++)
            last = launches[k].args[i].buffer > last ? launches[k].args[i].buffer : last;
    return last + 1;
}

/* Most of a launch's blocks find room beside the last ones of the launch before it. */
static bool finds_room(const Launch *launch, const Launch *before, const DeviceSpec *device)
{
    int64_t sms = device->sm_count, places = sms * blocks_beside(before, before, 0, device);
    int64_t last = places ? (blocks_of(before) - 1) % places + 1 : 0, each = last / sms, more = last % sms;
    int64_t room = more * blocks_beside(launch, before, each + 1, device) +
                   (sms - more) * blocks_beside(launch, before, each, device);
    return 2 * room >= blocks_of(launch);
}

/* What no launch of the program writes is as the stream left it, for which the first launch has waited: all others begin
   behind that. Whole buffers, as places of the workspace are used again. */
static void mark_early_args(Arena *arena, Launch *launches, int count)
{
    bool *is_written = NEW_ARRAY(arena, bool, buffer_count(launches, count));
    for (int k = 0; k < count; k++)
        for (int i = 0; i < launches[k].arg_count; i++)
            is_written[launches[k].args[i].buffer] |= launches[k].args[i].written;
    for (int k = 1; k < count; k++)
        for (int i = 0; i < launches[k].arg_count; i++)
            launches[k].args[i].early = launches[k].early && !is_written[launches[k].args[i].buffer];
}

void chain_launches(Arena *arena, Launch *launches, int count, const DeviceSpec *device)
{
    for (int k = 0; k < count; k++) {
        Launch *launch = &launches[k];
        launch->early = may_follow_early(k ? launch - 1 : NULL, launch);
        launch->lets_begin = k + 1 < count ? may_follow_early(launch, launch + 1)
                                           : !launch->cooperative && leaves_places(launches, launch, device);
        launch->finds_room = k && finds_room(launch, launch - 1, device);
        launch->waits_last = k && launch->early && !touches_earlier(launches, k);
    }
    mark_early_args(arena, launches, count);
}

/* Lines that are cited keep their numbers. */
static void write_line(StrBuf *out, bool joined, const char *code, const char *why)
{
    if (joined)
        strbuf_printf(out, " %s", code);
    else
        strbuf_printf(out, "\n    %s   // %s", code, why);
}

const char *chain_opening(Arena *arena, const Launch *launch, bool joined)
{
    StrBuf out = strbuf_new(arena);
    if (launch->waits_last)
        write_line(&out, joined, "const WaitsAtItsEnd waits_at_its_end;", "depends on no earlier launch");
    else if (launch->early)
        write_line(&out, joined, "wait_for_earlier();", "programmatic dependent launch: earlier launches have completed");
    if (launch->lets_begin)
        write_line(&out, joined, "let_next_begin();", "the next launch may begin");
    return out.text;
}
