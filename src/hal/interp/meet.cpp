// Synchronisation: barriers of a block, a cluster and a grid, shuffles and ballots of a warp.
namespace rollerc_interp {

namespace {

// One more thread has arrived; true: all have.
bool gather(Gathering *gathering, int expected, Place place, const char *what)
{
    const Place &first = gathering->place;
    if (gathering->arrived && (first.line != place.line || first.file != place.file))
        fail_at(place, what);
    gathering->place = place;
    if (++gathering->arrived < expected)
        return false;
    gathering->arrived = 0;
    return true;
}

void make_block_ready(Block *block)
{
    for (int w = 0; w < warp_count; w++)
        make_ready(block, w, block->warps[w].lanes);
}

// The whole block meets; `expected`: where, as the first of its threads said.
void meet_block(Gathering *gathering, Place expected, Place place)
{
    Block *block = current->block;
    count_barrier(&InterpCounts::block_barriers);
    if (block->alive < thread_count)
        fail_at(place, "a barrier after some threads of the block have ended");
    if (!gather(gathering, thread_count, expected, "threads of one block wait at different barriers"))
        return wait_at(place);
    make_block_ready(block);
    block->epoch = ++epoch;
    unready(current);   // goes on at once
    preempt(place);
}

}   // namespace

void barrier(Place place) { meet_block(&current->block->barrier, place, place); }

void roles_barrier(int expected, Place place)
{
    Gathering *roles = &current->block->roles;
    if (expected != thread_count)
        fail_at(place, "a barrier of all roles expects another number of threads than the block has");
    meet_block(roles, roles->arrived ? roles->place : place, place);
}

// ---- clusters ----

int cluster_rank() { return current->block->rank; }
int cluster_size() { return cluster_blocks; }

void *cluster_map(void *shared, int rank, Place place)
{
    const Block *block = current->block;
    const long offset = static_cast<unsigned char *>(shared) - block->shared;
    if (offset < 0 || offset > static_cast<long>(shared_bytes))
        fail_at(place, "cluster_map() of an address that is not in the block's shared memory");
    if (rank < 0 || rank >= cluster_blocks)
        fail_at(place, "cluster_map() to a block that the cluster does not have");
    return block->cluster->blocks[rank].shared + offset;
}

void cluster_arrive(Place place)
{
    Cluster &cluster = *current->block->cluster;
    const int expected = cluster_blocks * thread_count;
    if (cluster.alive < expected)
        fail_at(place, "a barrier of the cluster after some of its threads have ended");
    if (current->arrivals != current->waits)
        fail_at(place, "a thread arrives at the cluster's barrier twice without waiting there");
    current->arrivals++;
    current->place = place;
    if (gather(&cluster.barrier, expected, place, "threads of one cluster arrive at different barriers")) {
        cluster.barriers++;
        Thread *first = cluster.blocks[0].threads;
        for (Thread *thread = first; thread < first + expected; thread++)
            if (thread->waits_for_cluster) {
                thread->waits_for_cluster = false;
                make_ready(thread);
            }
    }
    preempt(place);
}

void cluster_wait(Place place)
{
    Thread *self = current;
    if (self->arrivals == self->waits)
        fail_at(place, "a thread waits at a barrier of the cluster where it has not arrived");
    if (self->block->cluster->barriers < self->arrivals) {
        self->waits_for_cluster = true;
        wait_at(place);
    }
    self->waits++;
    count_barrier(&InterpCounts::cluster_barriers);
    preempt(place);
}

// ---- the grid ----

// It orders all that a barrier of every cluster would order, and more.
void grid_barrier(Place place)
{
    const int expected = team_blocks * thread_count;
    if (!cooperative)
        fail_at(place, "grid_sync() in a launch that is not cooperative");
    if (alive < expected)
        fail_at(place, "a barrier of the grid after some of its threads have ended");
    if (current->arrivals != current->waits)
        fail_at(place, "grid_sync() between the two halves of a cluster's barrier");
    count_barrier(&InterpCounts::grid_barriers);
    if (!gather(&grid_gathering, expected, place, "threads of one grid wait at different barriers"))
        return wait_at(place);
    grid_epoch = ++epoch;
    for (int b = 0; b < team_blocks; b++) {
        blocks[b].epoch = epoch;
        make_block_ready(&blocks[b]);
    }
    unready(current);
    preempt(place);
}

// ---- warps ----

namespace {

// In place of a shuffle's source.
enum { BALLOT = -1, ORDER_MEMORY = -2, TOGETHER = -3 };

void deliver_ballot(Thread *lanes, const Meeting &meeting)
{
    unsigned long long votes = 0;
    for (int lane = 0; lane < warp_size; lane++)
        if (meeting.arrived >> lane & 1)
            votes |= meeting.bits[lane] << lane;
    for (int lane = 0; lane < warp_size; lane++)
        if (meeting.arrived >> lane & 1)
            lanes[lane].result = votes;
}

void deliver_shuffle(Thread *lanes, const Meeting &meeting)
{
    for (int lane = 0; lane < warp_size; lane++) {
        if (!(meeting.arrived >> lane & 1))
            continue;
        const int source = meeting.source[lane];
        if (!(meeting.arrived >> source & 1))
            fail_at(meeting.place, "a shuffle reads from a lane that does not exist");
        lanes[lane].result = meeting.bits[source];
    }
}

// The bits are pointers to what the lanes have brought.
void do_work(const Meeting &meeting, Work work)
{
    void *brought[MAX_LANES];
    if (meeting.arrived != 0xffffffffu)
        fail_at(meeting.place, "tensor cores are used by a warp that lacks lanes");
    for (int lane = 0; lane < warp_size; lane++)
        brought[lane] = reinterpret_cast<void *>(meeting.bits[lane]);
    work(brought);
}

unsigned long long meet(unsigned long long bits, int source, Place place, Work work = nullptr)
{
    Thread *self = current;
    Warp &warp = warp_of(self);
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
    if (source == TOGETHER) {
        do_work(meeting, work);
    } else {
        (source < 0 ? deliver_ballot : deliver_shuffle)(self - self->lane, meeting);
        if (source != ORDER_MEMORY)
            count_meeting();
    }
    warp.epoch += source == ORDER_MEMORY;
    meeting.arrived = 0;
    const LaneMask others = warp.lanes & ~(LaneMask(1) << self->lane);
    if (others)
        make_ready(self->block, self->warp, others);
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

void together(void *brought, Work work, Place place)
{
    meet(reinterpret_cast<unsigned long long>(brought), TOGETHER, place, work);
}

}   // namespace rollerc_interp
