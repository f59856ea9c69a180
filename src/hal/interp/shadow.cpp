// What is known of each 4 bytes of shared memory and of the tensors that a program writes: who wrote them last, who
// read them since, and which of them hold anything.
//
// The compiler announces every access of the kernel (-fsanitize=thread; these are its call-outs, there is no libtsan).
// Two accesses to the same bytes, one of them a write, are a race unless they are the same thread's or ordered:
//
//   by the end of a launch             epochs below launch_epoch
//   by block_sync(), within a block    another epoch, not below block_epoch
//   by warp_sync(), within a warp      another epoch of the warp
//
// This holds whatever the order in which threads happened to run. Bytes of a cell that differ in their last writer are
// not all remembered: a race may be missed there, never invented.
struct InterpCell {
    unsigned write_epoch, read_epoch;
    unsigned write_warp_epoch, read_warp_epoch;
    unsigned write_pc, read_pc;           // relative to host->code
    unsigned short writer, reader;
    unsigned char written, read;          // bit i: byte i, by that access
    unsigned char known;                  // bit i: byte i holds something
    bool in_flight : 1;                   // the target of an asynchronous copy
    bool many_lanes : 1, many_warps : 1;  // read by several in that epoch
    bool other_blocks : 1;                // read by another block of this launch before
};

static_assert(sizeof(InterpCell) == INTERP_CELL_BYTES, "the host maps so much");

namespace rollerc_interp {

namespace {

enum { SECTOR = 32, CELL = 4 };

using Cell = InterpCell;

struct Access {
    unsigned char *at;
    int bytes;
    bool write;
    unsigned pc;
};

bool in_shared(const unsigned char *at) { return at >= shared_memory && at < shared_memory + shared_bytes; }

[[noreturn]] void fail_access(const Access &access, unsigned other_pc, const char *what)
{
    host->pc = access.pc;
    host->other_pc = other_pc;
    if (in_shared(access.at))
        host->fail("%s (byte %lld of the shared memory)", what,
                   static_cast<long long>(access.at - shared_memory));
    host->fail("%s", what);
    __builtin_unreachable();
}

// ---- order ----

bool same_warp(int thread) { return thread / WARP == current->warp; }

// Whether an earlier access of another thread or block was ordered before this one.
bool is_ordered(unsigned earlier_epoch, unsigned earlier_warp_epoch, int thread, bool alone)
{
    if (earlier_epoch < launch_epoch)
        return true;
    if (earlier_epoch < block_epoch)
        return false;   // another block
    if (earlier_epoch < epoch)
        return true;
    if (!same_warp(thread))
        return false;
    return (alone && thread == current->number) || earlier_warp_epoch < warps[current->warp].epoch;
}

void check_read(const Access &access, const Cell &cell, unsigned bytes)
{
    if (cell.in_flight)
        fail_access(access, cell.write_pc, "touches the target of an asynchronous copy that is under way");
    if (~cell.known & bytes)
        fail_access(access, 0, in_shared(access.at) ? "reads shared memory that nobody has written"
                                                    : "reads a tensor where nobody has written it");
    if (cell.written & bytes &&
        !is_ordered(cell.write_epoch, cell.write_warp_epoch, cell.writer, true))
        fail_access(access, cell.write_pc,
                    cell.write_epoch < block_epoch ? "reads what another block of this launch writes"
                                                   : "a race: reads what another thread writes");
}

void check_write(const Access &access, const Cell &cell, unsigned bytes)
{
    if (cell.in_flight)
        fail_access(access, cell.write_pc, "touches the target of an asynchronous copy that is under way");
    if (cell.written & bytes &&
        !is_ordered(cell.write_epoch, cell.write_warp_epoch, cell.writer, true))
        fail_access(access, cell.write_pc,
                    cell.write_epoch < block_epoch ? "writes what another block of this launch writes"
                                                   : "a race: writes what another thread writes");
    if (!(cell.read & bytes) || cell.read_epoch < launch_epoch)
        return;
    if (cell.other_blocks || cell.read_epoch < block_epoch)
        fail_access(access, cell.read_pc, "writes what another block of this launch reads");
    if (cell.many_warps ? cell.read_epoch == epoch
                        : !is_ordered(cell.read_epoch, cell.read_warp_epoch, cell.reader, !cell.many_lanes))
        fail_access(access, cell.read_pc, "a race: writes what another thread reads");
}

// ---- memory of accesses ----

void note_read(const Access &access, Cell *cell, unsigned bytes)
{
    const unsigned warp_epoch = warps[current->warp].epoch;
    const bool same_launch = cell->read && cell->read_epoch >= launch_epoch;
    const bool same_epoch = cell->read && cell->read_epoch == epoch;
    const bool same_turn = same_epoch && same_warp(cell->reader) && cell->read_warp_epoch == warp_epoch;
    cell->many_warps = same_epoch && (cell->many_warps || !same_warp(cell->reader));
    cell->many_lanes = same_turn && (cell->many_lanes || cell->reader != current->number);
    cell->other_blocks = same_launch && (cell->other_blocks || cell->read_epoch < block_epoch);
    cell->read = static_cast<unsigned char>(same_epoch || cell->other_blocks ? cell->read | bytes : bytes);
    cell->read_epoch = epoch;
    cell->read_warp_epoch = warp_epoch;
    cell->reader = static_cast<unsigned short>(current->number);
    cell->read_pc = access.pc;
}

void note_write(const Access &access, Cell *cell, unsigned bytes)
{
    const bool again = cell->write_epoch == epoch && cell->writer == current->number;
    cell->written = static_cast<unsigned char>(again ? cell->written | bytes : bytes);
    cell->known = static_cast<unsigned char>(cell->known | bytes);
    cell->write_epoch = epoch;
    cell->write_warp_epoch = warps[current->warp].epoch;
    cell->writer = static_cast<unsigned short>(current->number);
    cell->write_pc = access.pc;
}

// The cells of an access to memory that starts at `start`.
void visit(const Access &access, const unsigned char *start, Cell *cells)
{
    long long at = access.at - start;
    const long long end = at + access.bytes;
    while (at < end) {
        Cell *cell = &cells[at / CELL];
        const long long next = (at / CELL + 1) * CELL;
        const unsigned first = static_cast<unsigned>(at % CELL);
        const unsigned last = static_cast<unsigned>((end < next ? end : next) - at / CELL * CELL);
        const unsigned bytes = (1u << last) - (1u << first);
        if (access.write) {
            check_write(access, *cell, bytes);
            note_write(access, cell, bytes);
        } else {
            check_read(access, *cell, bytes);
            note_read(access, cell, bytes);
        }
        at = next;
    }
}

// ---- tensors ----

void count(const Access &access, InterpRegion *region)
{
    if (host->launch >= INTERP_MAX_LAUNCHES)
        return;
    InterpTraffic *traffic = &host->traffic[host->launch];
    (access.write ? traffic->written_bytes : traffic->read_bytes) += access.bytes;
    unsigned char *seen = access.write ? region->written_sectors : region->read_sectors;
    long long *sectors = access.write ? &traffic->written_sectors : &traffic->read_sectors;
    const long long at = access.at - region->start;
    for (long long s = at / SECTOR; s <= (at + access.bytes - 1) / SECTOR; s++) {
        *sectors += !(seen[s / 8] >> s % 8 & 1);
        seen[s / 8] = static_cast<unsigned char>(seen[s / 8] | 1 << s % 8);
    }
}

bool is_inside(const InterpRegion *region, const Access &access)
{
    return access.at >= region->start && access.at + access.bytes <= region->start + region->bytes;
}

InterpRegion *find_region(const Access &access)
{
    static InterpRegion *last;
    if (last && is_inside(last, access))
        return last;
    for (int i = 0; i < host->region_count; i++)
        if (is_inside(&host->regions[i], access))
            return last = &host->regions[i];
    return nullptr;
}

// The program's own memory; all else is wrong.
void check_elsewhere(const Access &access)
{
    for (int i = 0; i < host->own_count; i++)
        if (access.at >= host->own[i].start && access.at < host->own[i].end)
            return;
    host->pc = access.pc;
    host->outside(access.at, access.write);
}

bool is_on_stack(const unsigned char *at)
{
    const unsigned char *frame = static_cast<unsigned char *>(__builtin_frame_address(0));
    return at >= frame && at < frame + STACK_BYTES;
}

// Has the cells of an access filled that nothing was known of, two at a time: the largest element has 8 bytes.
void fill(const Access &access, const InterpRegion *region)
{
    enum { FILLED = 2 * CELL };
    const long long at = access.at - region->start, end = at + access.bytes;
    for (long long first = at / FILLED * FILLED; first < end; first += FILLED) {
        if (region->cells[first / CELL].known)
            continue;
        const long long left = region->bytes - first;
        region->cells[first / CELL].known = 15;
        host->fill(static_cast<int>(region - host->regions), first, left < FILLED ? static_cast<int>(left) : FILLED);
    }
}

void check_access(const Access &access)
{
    if (!current || is_on_stack(access.at))
        return;
    if (in_shared(access.at) && access.at + access.bytes <= shared_memory + shared_bytes)
        return visit(access, shared_memory, host->shared_cells);
    InterpRegion *region = find_region(access);
    if (!region)
        return check_elsewhere(access);
    count(access, region);
    if (region->written)
        visit(access, region->start, region->cells);
    else if (access.write)
        fail_access(access, 0, "writes to a tensor that it may only read");
    else if (region->costly)
        fill(access, region);
}

}   // namespace

bool is_known(const InterpRegion *region, long long byte)
{
    return region->cells[byte / CELL].known >> byte % CELL & 1;
}

void forget_shared()
{
    if (host->region_count)
        __builtin_memset(host->shared_cells, 0, (shared_bytes + CELL - 1) / CELL * sizeof(Cell));
}

// Sectors are counted anew in each launch.
void start_traffic()
{
    launch_epoch = ++epoch;
    for (int i = 0; i < host->region_count && host->launch > 0; i++) {
        const InterpRegion &region = host->regions[i];
        const size_t bytes = static_cast<size_t>(region.bytes / SECTOR / 8 + 1);
        if (host->only_launch >= 0)
            continue;   // there was no other
        __builtin_memset(region.read_sectors, 0, bytes);
        __builtin_memset(region.written_sectors, 0, bytes);
    }
}

void note_access(void *address, int bytes, bool write)
{
    if (host->region_count && bytes > 0)
        check_access({static_cast<unsigned char *>(address), bytes, write, 0});
}

void note_flight(void *shared, bool under_way)
{
    unsigned char *at = static_cast<unsigned char *>(shared);
    if (host->region_count && in_shared(at))
        for (int i = 0; i < 16 / CELL; i++)
            host->shared_cells[(at - shared_memory) / CELL + i].in_flight = under_way;
}

// By the launcher, between launches.
void note_clear(void *memory, size_t count)
{
    const Access access = {static_cast<unsigned char *>(memory), 1, true, 0};
    InterpRegion *region = host->region_count ? find_region(access) : nullptr;
    if (!region || !region->written)
        return;
    const size_t first = static_cast<size_t>(access.at - region->start) / CELL;
    for (size_t i = 0; i < (count + CELL - 1) / CELL; i++)
        region->cells[first + i].known = 15;
}

// ---- what the compiler calls ----

namespace {

inline __attribute__((always_inline)) void announce(void *address, long bytes, bool write, void *caller)
{
    if (host->region_count)
        check_access({static_cast<unsigned char *>(address), static_cast<int>(bytes), write,
                      static_cast<unsigned>(static_cast<unsigned char *>(caller) - host->code)});
}

}   // namespace

#define CALLER __builtin_return_address(0)
#define ANNOUNCED(bytes)                                                                              \
    ROLLERC_EXPORT void __tsan_read##bytes(void *p) { announce(p, bytes, false, CALLER); }            \
    ROLLERC_EXPORT void __tsan_write##bytes(void *p) { announce(p, bytes, true, CALLER); }            \
    ROLLERC_EXPORT void __tsan_unaligned_read##bytes(void *p) { announce(p, bytes, false, CALLER); }  \
    ROLLERC_EXPORT void __tsan_unaligned_write##bytes(void *p) { announce(p, bytes, true, CALLER); }

extern "C" {
ANNOUNCED(1)
ANNOUNCED(2)
ANNOUNCED(4)
ANNOUNCED(8)
ANNOUNCED(16)
ROLLERC_EXPORT void __tsan_read_range(void *p, unsigned long n) { announce(p, (long)n, false, CALLER); }
ROLLERC_EXPORT void __tsan_write_range(void *p, unsigned long n) { announce(p, (long)n, true, CALLER); }
ROLLERC_EXPORT void __tsan_func_entry(void *) {}
ROLLERC_EXPORT void __tsan_func_exit() {}
ROLLERC_EXPORT void __tsan_init() {}
ROLLERC_EXPORT void *__tsan_memset(void *p, int byte, size_t n)
{
    announce(p, (long)n, true, CALLER);
    return __builtin_memset(p, byte, n);
}
ROLLERC_EXPORT void *__tsan_memcpy(void *to, const void *from, size_t n)
{
    announce(const_cast<void *>(from), (long)n, false, CALLER);
    announce(to, (long)n, true, CALLER);
    return __builtin_memcpy(to, from, n);
}
ROLLERC_EXPORT void *__tsan_memmove(void *to, const void *from, size_t n)
{
    announce(const_cast<void *>(from), (long)n, false, CALLER);
    announce(to, (long)n, true, CALLER);
    return __builtin_memmove(to, from, n);
}
}

}   // namespace rollerc_interp

extern "C" ROLLERC_EXPORT int interp_known(const InterpRegion *region, long long byte)
{
    return rollerc_interp::is_known(region, byte);
}
