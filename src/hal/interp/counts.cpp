// What the first and the last block of a launch do: memory that they touch, synchronisation, waits. What a schedule
// states of a block is compared with it.
namespace rollerc_interp {

namespace {

const Block *receiver;

// The counts of the block that the current thread belongs to, or that receives what it reads; null: it is none of those
// counted.
InterpCounts *counts_of_block()
{
    const Block *block = receiver ? receiver : current ? current->block : nullptr;
    return block ? block->counts : nullptr;
}

bool is_first_thread() { return current->number == 0; }

// Sectors of [at, at + bytes) that were not seen before.
long long new_sectors(unsigned char *seen, long long at, int bytes)
{
    enum { SECTOR = 32 };
    long long count = 0;
    for (long long s = at / SECTOR; s <= (at + bytes - 1) / SECTOR; s++) {
        count += !(seen[s / 8] >> s % 8 & 1);
        seen[s / 8] = static_cast<unsigned char>(seen[s / 8] | 1 << s % 8);
    }
    return count;
}

}   // namespace

void start_counts(Block *block)
{
    const uint3 last = {grid_size.x - 1, grid_size.y - 1, grid_size.z - 1}, at = block->index;
    block->counts = nullptr;
    if (!host->counts)
        return;
    if (at.x == last.x && at.y == last.y && at.z == last.z)
        block->counts = &host->counts[1];
    if (at.x == 0 && at.y == 0 && at.z == 0)   // of a single block it is the first that counts
        block->counts = &host->counts[0];
}

void count_shared(int bytes, bool write)
{
    if (InterpCounts *counts = counts_of_block())
        (write ? counts->shared_written : counts->shared_read) += bytes;
}

void count_sectors(const InterpRegion *region, long long at, int bytes, bool write)
{
    InterpCounts *counts = counts_of_block();
    if (!counts)
        return;
    unsigned char *const *seen = write ? region->written_by : region->read_by;
    long long *sectors = write ? counts->written_sectors : counts->read_sectors;
    sectors[region - host->regions] += new_sectors(seen[counts - host->counts], at, bytes);
}

void count_meeting()
{
    InterpCounts *counts = counts_of_block();
    if (counts && current->warp == 0)
        counts->warp_meetings++;
}

void count_barrier(long long InterpCounts::*scope)
{
    InterpCounts *counts = counts_of_block();
    if (counts && is_first_thread())
        counts->*scope += 1;
}

namespace {

// What the current thread's block has done; of others nobody looks at it.
long long uncounted[INTERP_ARITHMETIC], *arithmetic = uncounted;

}   // namespace

void count_arithmetic(Arithmetic kind) { arithmetic[kind]++; }

void count_arithmetic_of(const Block *block) { arithmetic = block->counts ? block->counts->arithmetic : uncounted; }

void count_tensor_products(int multiply_adds)
{
    if (InterpCounts *counts = counts_of_block()) {
        counts->tensor_products += multiply_adds;
        counts->multiplying_warps |= 1u << current->warp;
    }
}

void count_copying_warp()
{
    if (InterpCounts *counts = counts_of_block())
        counts->copying_warps |= 1u << current->warp;
}

void count_received(const Block *block) { receiver = block; }

// Of the first thread, which copies, and the last, which multiplies.
void count_turn()
{
    InterpCounts *counts = counts_of_block();
    if (counts && (is_first_thread() || current->number == thread_count - 1))
        counts->waits++;
}

void count_wait(unsigned pending)
{
    InterpCounts *counts = counts_of_block();
    if (!counts || !is_first_thread())
        return;
    counts->waits++;
    counts->pending += pending;
}

}   // namespace rollerc_interp
