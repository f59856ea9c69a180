// Where threads meet: barriers of a block, shuffles and ballots of a warp.
namespace rollerc_interp {

void barrier(Place place)
{
    if (alive < thread_count)
        fail_at(place, "a barrier after some threads of the block have ended");
    if (at_barrier && (barrier_place.line != place.line || barrier_place.file != place.file))
        fail_at(place, "threads of one block wait at different barriers");
    barrier_place = place;
    if (++at_barrier < thread_count)
        return wait_at(place);
    at_barrier = 0;
    for (int w = 0; w < warp_count; w++)
        make_ready(w, warps[w].lanes);
    epoch++;
    unready(current->warp, current->lane);   // goes on at once
    preempt(place);
}

namespace {

// In place of a shuffle's source.
enum { BALLOT = -1, ORDER_MEMORY = -2 };

void deliver_ballot(int warp)
{
    Meeting &meeting = warps[warp].meeting;
    unsigned long long votes = 0;
    for (int lane = 0; lane < WARP; lane++)
        if (meeting.arrived >> lane & 1)
            votes |= meeting.bits[lane] << lane;
    for (int lane = 0; lane < WARP; lane++)
        threads[warp * WARP + lane].result = votes;
}

void deliver_shuffle(int warp)
{
    Meeting &meeting = warps[warp].meeting;
    for (int lane = 0; lane < WARP; lane++) {
        if (!(meeting.arrived >> lane & 1))
            continue;
        const int source = meeting.source[lane];
        if (!(meeting.arrived >> source & 1))
            fail_at(meeting.place, "a shuffle reads from a lane that does not exist");
        threads[warp * WARP + lane].result = meeting.bits[source];
    }
}

unsigned long long meet(unsigned long long bits, int source, Place place)
{
    Thread *self = current;
    Warp &warp = warps[self->warp];
    Meeting &meeting = warp.meeting;
    if (meeting.arrived && (meeting.place.line != place.line || meeting.place.file != place.file))
        fail_at(place, "lanes of one warp meet at different shuffles or ballots");
    meeting.place = place;
    meeting.arrived |= LaneMask(1) << self->lane;
    meeting.bits[self->lane] = bits;
    meeting.source[self->lane] = source;
    if (meeting.arrived != warp.lanes) {
        wait_at(place);
        return self->result;
    }
    source < 0 ? deliver_ballot(self->warp) : deliver_shuffle(self->warp);
    warp.epoch += source == ORDER_MEMORY;
    meeting.arrived = 0;
    const LaneMask others = warp.lanes & ~(LaneMask(1) << self->lane);
    if (others)
        make_ready(self->warp, others);
    preempt(place);
    return self->result;
}

}   // namespace

unsigned long long exchange(unsigned long long bits, int source, Place place)
{
    return meet(bits, source, place);
}
unsigned long long ballot(bool vote, Place place) { return meet(vote, BALLOT, place); }

// Shuffles and ballots do not order memory (CUDA programming guide, 10.22); this does.
void warp_barrier(Place place) { meet(0, ORDER_MEMORY, place); }

}   // namespace rollerc_interp
