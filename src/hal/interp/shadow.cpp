// What is known of shared memory and of the tensors that a program writes: who wrote each byte last, who read it since,
// and whether it holds anything.
//
// The compiler announces every access of the kernel (-fsanitize=thread; these are its call-outs, there is no libtsan).
// Two accesses to the same byte, one of them a write, are a race unless they are the same thread's or ordered:
//
//   by the end of a launch                   epochs below launch_epoch
//   by grid_sync()                           epochs below grid_epoch
//   by a barrier of the cluster, within it   arrived there before the other had waited there
//   by block_sync(), within a block          epochs below the block's
//   by warp_sync(), within a warp            another epoch of the warp
//
// This holds whatever the order in which threads happened to run. One cell stands for 4 bytes as long as every
// access takes all of them. Then there is one for each half, or each byte, until one access writes all 4 again.
struct InterpAccess {                     // the last one of a kind
    unsigned epoch;                       // of its block; 0: there was none
    unsigned warp_epoch;
    unsigned arrivals;                    // of its thread at the cluster's barriers
    unsigned pc;                          // relative to host->code
    unsigned thread : 18;                 // of the team
    unsigned shown : 14;                  // how often that had called show_operands(), in its last bits
};

struct InterpCell {
    InterpAccess write, read;
    unsigned char readers;                // a Scope: where there were others that read, not ordered with the last
    bool known : 1;                       // holds something
    bool in_flight : 1;                   // the target of an asynchronous copy
    bool other_teams : 1;                 // read by another team of this launch, too
    bool is_split : 1;                    // see the cells of its halves, which are those of their first bytes
    unsigned split_halves : 2;            // bit i: of half i, see the cells of both bytes
    bool boxed : 1;                       // brought by a bulk copy: what waits for it is no thread's access
};

static_assert(sizeof(InterpCell) == INTERP_CELL_BYTES, "the host maps so much");

namespace rollerc_interp {

namespace {

enum { SECTOR = 32, WORD = 4, HALF = 2, SHOWN_MASK = (1 << 14) - 1 };
enum Scope { THREAD_SCOPE, WARP_SCOPE, BLOCK_SCOPE, CLUSTER_SCOPE, GRID_SCOPE };   // each holds those before it

using Cell = InterpCell;

struct Access {
    unsigned char *at;
    int bytes;
    bool write;
    unsigned pc;
};

// The block of the team in whose shared memory all of the access lies; null: there is none.
Block *shared_owner(const Access &access)
{
    const long long at = access.at - host->shared;
    const long long last = static_cast<long long>(shared_bytes) - access.bytes;
    if (at >= 0 && at <= last)
        return &blocks[0];
    const long long b = at / host->shared_stride;
    return at >= 0 && b < team_blocks && at % host->shared_stride <= last ? &blocks[b] : nullptr;
}

[[noreturn]] void fail_access(const Access &access, unsigned other_pc, const char *what)
{
    host->pc = access.pc;
    host->other_pc = other_pc;
    if (const Block *owner = shared_owner(access))
        host->fail("%s (byte %lld of the shared memory)", what, static_cast<long long>(access.at - owner->shared));
    host->fail("%s", what);
    __builtin_unreachable();
}

// ---- order ----

// The smallest scope that holds the current thread and that one, which is of the same team.
Scope scope_with(unsigned number)
{
    const Thread &other = threads[number], &self = *current;
    if (&other == &self)
        return THREAD_SCOPE;
    if (other.block == self.block)
        return other.warp == self.warp ? WARP_SCOPE : BLOCK_SCOPE;
    return other.block->cluster == self.block->cluster ? CLUSTER_SCOPE : GRID_SCOPE;
}

Scope wider(Scope a, Scope b) { return a > b ? a : b; }

// Whether an earlier access was ordered before this one, and all those within `others` of it that were not ordered
// with it. They lie between the same two barriers of that scope, so the last one speaks for all.
bool is_ordered(const InterpAccess &earlier, Scope others)
{
    if (earlier.epoch < launch_epoch)
        return true;
    if (earlier.epoch < team_epoch)
        return false;
    const Thread &self = *current;
    if (team_blocks == 1 && earlier.epoch < self.block->epoch)
        return true;   // the most frequent case
    const Scope scope = wider(others, scope_with(earlier.thread));
    if (scope == THREAD_SCOPE)
        return true;
    if (scope == WARP_SCOPE && earlier.warp_epoch < warp_of(&self).epoch)
        return true;
    if (scope <= BLOCK_SCOPE && earlier.epoch < self.block->epoch)
        return true;
    if (scope <= CLUSTER_SCOPE && earlier.arrivals < self.waits)
        return true;
    return earlier.epoch < grid_epoch;
}

bool is_of_another_block(const InterpAccess &earlier, Scope others)
{
    return earlier.epoch < team_epoch || wider(others, scope_with(earlier.thread)) > BLOCK_SCOPE;
}

void check_any(const Access &access, const Cell &cell)
{
    if (cell.in_flight)
        fail_access(access, cell.write.pc, "touches the target of an asynchronous copy that is under way");
    if (is_ordered(cell.write, THREAD_SCOPE))
        return;
    const bool far = is_of_another_block(cell.write, THREAD_SCOPE);
    fail_access(access, cell.write.pc,
                access.write ? far ? "writes what another block of this launch writes"
                                   : "a race: writes what another thread writes"
                : far        ? "reads what another block of this launch writes"
                             : "a race: reads what another thread writes");
}

void check_read(const Access &access, const Cell &cell)
{
    check_any(access, cell);
    if (!cell.known)
        fail_access(access, 0, shared_owner(access) ? "reads shared memory that nobody has written"
                                                    : "reads a tensor where nobody has written it");
}

void check_write(const Access &access, const Cell &cell)
{
    const Scope readers = static_cast<Scope>(cell.readers);
    check_any(access, cell);
    if (cell.read.epoch < launch_epoch)
        return;
    if (cell.other_teams || !is_ordered(cell.read, readers))
        fail_access(access, cell.read.pc,
                    cell.other_teams || is_of_another_block(cell.read, readers)
                        ? "writes what another block of this launch reads"
                        : "a race: writes what another thread reads");
}

// ---- memory of accesses ----

InterpAccess access_now(const Access &access)
{
    return {current->block->epoch, warp_of(current).epoch, current->arrivals, access.pc,
            static_cast<unsigned>(current - threads) & (MAX_TEAM_THREADS - 1), current->shown & SHOWN_MASK};
}

void note_read(const Access &access, Cell *cell)
{
    const InterpAccess &last = cell->read;
    const bool same_launch = last.epoch >= launch_epoch, same_team = last.epoch >= team_epoch;
    const Scope readers = static_cast<Scope>(cell->readers);
    cell->other_teams = same_launch && (cell->other_teams || !same_team);
    cell->readers =
        !same_team || is_ordered(last, readers) ? THREAD_SCOPE : wider(readers, scope_with(last.thread));
    cell->read = access_now(access);
}

// Reads before it are ordered before it, and so before whatever is ordered after it: they may be forgotten.
void note_write(const Access &access, Cell *cell)
{
    cell->write = access_now(access);
    cell->read.epoch = 0;
    cell->readers = THREAD_SCOPE;
    cell->other_teams = false;
    cell->known = true;
}

// The interpreter runs one launch behind the other. What an early one finds here of those before it, a thread may read
// or write only once it has waited for them. (Whoever read it before found it written: one question serves both.)
void check_early(const Access &access, const Cell &cell)
{
    if (has_waited() || shared_owner(access))
        return;
    if (cell.write.epoch > settled_epoch && cell.write.epoch < launch_epoch)
        fail_access(access, cell.write.pc, "touches what an earlier launch writes, without waiting for it");
}

void visit_cell(const Access &access, Cell *cell)
{
    check_early(access, *cell);
    if (access.write) {
        check_write(access, *cell);
        note_write(access, cell);
    } else {
        check_read(access, *cell);
        note_read(access, cell);
    }
}

// Bytes [first, last) of a word whose halves were accessed separately.
void visit_parts(const Access &access, Cell *word, Cell *bytes, int first, int last)
{
    if (!word->is_split)
        bytes[0] = bytes[HALF] = *word;
    word->is_split = true;
    for (int at = first; at < last;) {
        const unsigned half = 1u << at / HALF;
        const bool whole = at % HALF == 0 && last - at >= HALF && !(word->split_halves & half);
        if (!whole && !(word->split_halves & half))
            bytes[at / HALF * HALF + 1] = bytes[at / HALF * HALF];
        if (!whole)
            word->split_halves = (word->split_halves | half) & 3;
        visit_cell(access, &bytes[at]);
        at += whole ? HALF : 1;
    }
    if (access.write && last - first == WORD)
        *word = bytes[0];
}

// The cells of an access to memory that starts at `start`.
void visit(const Access &access, const unsigned char *start, InterpShadow shadow)
{
    const long long first = access.at - start, end = first + access.bytes;
    for (long long at = first; at < end; at = (at / WORD + 1) * WORD) {
        Cell *word = &shadow.words[at / WORD];
        const int from = static_cast<int>(at % WORD);
        const int to = static_cast<int>(end - at < WORD - from ? from + end - at : +WORD);
        if (to - from == WORD && !word->is_split)
            visit_cell(access, word);
        else
            visit_parts(access, word, &shadow.bytes[at / WORD * WORD], from, to);
    }
}

// ---- shared memory ----

InterpShadow shadow_of(const Block &block)
{
    const long long first = host->shared_shadow_stride * (&block - blocks);
    return {host->shared_shadow.words + first, host->shared_shadow.bytes + first * WORD};
}

// A block reaches the shared memory of the others of its cluster between two barriers: they have started, they have
// not ended.
void check_other_block(const Access &access, Block *owner)
{
    if (owner->cluster != current->block->cluster)
        fail_access(access, 0, "touches the shared memory of a block outside of its cluster");
    if (current->waits == 0)
        fail_access(access, 0, "touches the shared memory of another block before the first barrier of the cluster");
    if (owner->alive == 0)
        fail_access(access, 0, "touches the shared memory of a block that has ended");
    if (owner->touched > current->arrivals)
        return;
    owner->touched = current->arrivals + 1;
    owner->touched_pc = access.pc;
}

void visit_shared(const Access &access, Block *owner)
{
    if (owner != current->block)
        check_other_block(access, owner);
    count_shared(access.bytes, access.write);
    visit(access, owner->shared, shadow_of(*owner));
}

// ---- tensors ----

void count(const Access &access, InterpRegion *region)
{
    count_sectors(region, access.at - region->start, access.bytes, access.write);
    if (host->launch >= INTERP_MAX_LAUNCHES)
        return;
    RuntimeTraffic *traffic = &host->traffic[host->launch];
    (access.write ? traffic->written_bytes : traffic->read_bytes) += access.bytes;
    unsigned char *seen = access.write ? region->written_sectors : region->read_sectors;
    int64_t *sectors = access.write ? &traffic->written_sectors : &traffic->read_sectors;
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

// The program's own memory.
bool is_own(const Access &access)
{
    for (int i = 0; i < host->own_count; i++)
        if (access.at >= host->own[i].start && access.at < host->own[i].end)
            return true;
    return false;
}

// Threads go from tensor to tensor, and there may be hundreds: the last one found at a place is tried first. The
// program's own memory is asked for as often, and has only a few regions.
InterpRegion *find_region(const Access &access)
{
    enum { PLACES = 64, PLACE_BYTES = 1 << 14 };
    static InterpRegion *last[PLACES];
    InterpRegion *&found = last[reinterpret_cast<size_t>(access.at) / PLACE_BYTES % PLACES];
    if (found && is_inside(found, access))
        return found;
    if (is_own(access))
        return nullptr;
    for (int i = 0; i < host->region_count; i++)
        if (is_inside(&host->regions[i], access))
            return found = &host->regions[i];
    return nullptr;
}

// All but tensors and the program's own memory is wrong.
void check_elsewhere(const Access &access)
{
    if (is_own(access))
        return;
    host->pc = access.pc;
    host->outside(access.at, access.write);
}

bool is_on_stack(const unsigned char *at)
{
    const unsigned char *frame = static_cast<unsigned char *>(__builtin_frame_address(0));
    return at >= frame && at < frame + STACK_BYTES;
}

void open_wanted(const Errand &wanted) { host->open(wanted.region->first_page + wanted.offset); }

// What of the region is not there yet is made before it is accessed.
void open_pieces(const InterpRegion *region, unsigned char *at, size_t bytes)
{
    if (!region->opened)
        return;
    const long long first = (at - region->first_page) / INTERP_PIECE_BYTES;
    const long long last = (at + bytes - 1 - region->first_page) / INTERP_PIECE_BYTES;
    for (long long piece = first; piece <= last; piece++)
        if (!region->opened[piece])
            run_on_deep_stack({open_wanted, region, piece * INTERP_PIECE_BYTES, INTERP_PIECE_BYTES});
}

void fill_wanted(const Errand &wanted)
{
    host->fill(static_cast<int>(wanted.region - host->regions), wanted.offset, wanted.bytes);
}

// Of the stretch that the byte lies in. Tensors of terabytes are touched in a few places.
InterpShadow shadow_at(const InterpRegion *region, long long byte)
{
    InterpShadow *shadow = &region->shadows[byte / INTERP_STRETCH_BYTES];
    if (!shadow->words)
        host->cast_shadow(shadow);
    return *shadow;
}

// The cell of the word that the byte lies in.
Cell *word_at(const InterpRegion *region, long long byte)
{
    return &shadow_at(region, byte).words[byte % INTERP_STRETCH_BYTES / WORD];
}

void visit_tensor(const Access &access, const InterpRegion *region)
{
    const long long first = access.at - region->start, end = first + access.bytes;
    for (long long at = first; at < end;) {
        const long long stretch = at / INTERP_STRETCH_BYTES * INTERP_STRETCH_BYTES;
        const long long next = end < stretch + INTERP_STRETCH_BYTES ? end : stretch + INTERP_STRETCH_BYTES;
        Access part = access;
        part.at = region->start + at;
        part.bytes = static_cast<int>(next - at);
        visit(part, region->start + stretch, shadow_at(region, at));
        at = next;
    }
}

// Has the cells of an access filled that nothing was known of, two at a time: the largest element has 8 bytes.
void fill(const Access &access, const InterpRegion *region)
{
    enum { FILLED = 2 * WORD };
    const long long at = access.at - region->start, end = at + access.bytes;
    for (long long first = at / FILLED * FILLED; first < end; first += FILLED) {
        Cell *cell = word_at(region, first);
        const long long left = region->bytes - first;
        if (cell->known)
            continue;
        cell[0].known = cell[1].known = true;
        run_on_deep_stack({fill_wanted, region, first, left < FILLED ? static_cast<int>(left) : FILLED});
    }
}

// Of what NAME_prepare has made: no call is ordered with it, and none may change it.
void check_sealed(const Access &access, const InterpRegion *region)
{
    if (access.write)
        fail_access(access, 0, "writes to what was prepared");
    const long long first = access.at - region->start;
    for (long long at = first; at < first + access.bytes; at++)
        if (!is_known(region, at))
            fail_access(access, 0, "reads what was not prepared");
}

void check_access(const Access &access)
{
    if (!current || is_on_stack(access.at))
        return;
    if (Block *owner = shared_owner(access))
        return visit_shared(access, owner);
    InterpRegion *region = find_region(access);
    if (!region)
        return check_elsewhere(access);
    open_pieces(region, access.at, static_cast<size_t>(access.bytes));
    count(access, region);
    if (is_too_early(access.at))
        fail_access(access, 0, "touches what an earlier launch writes, without waiting for it");
    if (region->sealed)
        check_sealed(access, region);
    else if (region->written) {
        if (region->costly)
            fill(access, region);
        visit_tensor(access, region);
    } else if (access.write)
        fail_access(access, 0, "writes to a tensor that it may only read");
    else if (region->costly)
        fill(access, region);
}

}   // namespace

// The one that speaks for the byte.
Cell &cell_of(const InterpRegion *region, long long byte)
{
    const InterpShadow shadow = shadow_at(region, byte);
    Cell &word = shadow.words[byte % INTERP_STRETCH_BYTES / WORD];
    const long long at = byte % INTERP_STRETCH_BYTES, half = at / HALF * HALF;
    return word.is_split ? shadow.bytes[word.split_halves >> byte % WORD / HALF & 1 ? at : half] : word;
}

bool is_known(const InterpRegion *region, long long byte) { return cell_of(region, byte).known; }

// By the host: bytes of a tensor, from a word on.
void note_copied(unsigned char *to, long long bytes)
{
    InterpRegion *region = host->region_count ? find_region({to, 1, true, 0}) : nullptr;
    for (long long at = 0; region && at < bytes; at += WORD)
        word_at(region, to - region->start + at)->known = true;
}

cudaError_t settle()
{
    settled_epoch = epoch;
    return cudaSuccess;
}

void forget_shared()
{
    if (host->region_count)
        for (int b = 0; b < team_blocks; b++)
            __builtin_memset(shadow_of(blocks[b]).words, 0, (shared_bytes + WORD - 1) / WORD * sizeof(Cell));
}

// Of a block whose last thread has ended.
void note_end(const Block &block)
{
    if (block.touched <= current->waits)
        return;
    host->pc = block.touched_pc;
    host->fail("touches the shared memory of a block that may have ended: no barrier of the cluster follows");
}

// Sectors are counted anew in each launch.
void start_traffic()
{
    launch_epoch = ++epoch;
    for (int i = 0; i < host->region_count && host->launch > 0; i++) {
        const InterpRegion &region = host->regions[i];
        const size_t bytes = static_cast<size_t>(region.bytes / SECTOR / 8 + 1);
        if (host->job->only_launch >= 0)
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

void note_flight(void *shared, int bytes, bool under_way)
{
    const Access access = {static_cast<unsigned char *>(shared), bytes, true, 0};
    const Block *owner = host->region_count ? shared_owner(access) : nullptr;
    if (!owner)
        return;
    for (int i = 0; i < access.bytes / WORD; i++)
        shadow_of(*owner).words[(access.at - owner->shared) / WORD + i].in_flight = under_way;
}

void note_received(const Block *block, unsigned char *global, int bytes)
{
    count_received(block);
    note_access(global, bytes, false);
    count_received(nullptr);
}

// What threads had there before must be behind them.
void note_box(void *shared, bool under_way)
{
    const Access access = {static_cast<unsigned char *>(shared), 16, true, 0};
    const Block *owner = host->region_count ? shared_owner(access) : nullptr;
    if (!owner)
        return;
    for (int i = 0; i < access.bytes / WORD; i++) {
        Cell &cell = shadow_of(*owner).words[(access.at - owner->shared) / WORD + i];
        if (under_way && cell.boxed && cell.in_flight)
            fail_access(access, 0, "a bulk copy onto the target of another that is under way");
        if (under_way && !cell.boxed)
            check_write(access, cell);
        cell = Cell();
        cell.known = cell.boxed = true;
        cell.in_flight = under_way;
    }
}

// Of a word that was written in parts the first one speaks for all.
void note_operand(void *shared)
{
    const Access access = {static_cast<unsigned char *>(shared), 16, false, 0};
    const Block *owner = host->region_count ? shared_owner(access) : nullptr;
    if (!owner)
        return;
    const Cell &first = shadow_of(*owner).words[(access.at - owner->shared) / WORD];
    if (first.boxed) {
        count_shared(access.bytes, false);
        if (first.in_flight)
            fail_access(access, 0, "a tensor core reads the target of a bulk copy that is under way");
        return;
    }
    check_access(access);
    for (int i = 0; i < access.bytes / WORD; i++) {
        const InterpShadow shadow = shadow_of(*owner);
        const long long word = (access.at - owner->shared) / WORD + i;
        const InterpAccess &write = (shadow.words[word].is_split ? shadow.bytes[word * WORD] : shadow.words[word]).write;
        if ((threads[write.thread].shown & SHOWN_MASK) == write.shown)
            fail_access(access, write.pc, "a tensor core reads what its writer has not shown by show_operands()");
    }
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

void interp_take_back(InterpRegion *region, int poison)
{
    using namespace rollerc_interp;
    for (long long at = 0; at < region->bytes; at++) {
        if (!region->shadows[at / INTERP_STRETCH_BYTES].words)
            at += INTERP_STRETCH_BYTES - 1;   // nothing of it was accessed
        else if (cell_of(region, at).known && !cell_of(region, at).write.epoch)
            region->start[at] = static_cast<unsigned char>(poison);
    }
}

int interp_written(const InterpRegion *region, long long byte)
{
    return rollerc_interp::cell_of(region, byte).write.epoch != 0;
}
