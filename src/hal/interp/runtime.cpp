// Runs a grid: one block after the other, a block's threads as fibers that change places at
// barriers and shuffles.
//
// It is compiled together with the generated file, after twin.h. A thread runs on the stack of the
// one that ended before it as long as nobody waits; a kernel without barriers switches not at all:
//
//   fiber 0   thread 0 ------ thread 1 ------ thread 2 ...           no barrier: one stack
//
//   fiber 0   thread 0 --| waits               |-- goes on -- end    a barrier: a stack for
//   fiber 1              |-- thread 1 --| waits     |-- ...          each thread that waits
//
// The first thing that is wrong ends the process (host->fail): what follows would prove nothing.
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace rollerc_interp {

Thread *current;
uint3 block_index;
dim3 block_size, grid_size;
unsigned char *shared_memory;

namespace {

enum {
    MAX_THREADS = 1024,         // a block, on every GPU
    MAX_WARPS = 32,
    MAX_KERNELS = 64,           // launches of one program that raise their shared memory limit
    STACK_BYTES = 256 << 10
};

using rollerc::LaneMask;
using rollerc::WARP;

struct Meeting {                // of a warp's lanes at a shuffle or ballot
    LaneMask arrived;
    Place place;
    unsigned long long bits[WARP];
    int source[WARP];           // -1: a ballot
};

struct Warp {
    LaneMask lanes, ready;      // that exist; that can run
    Meeting meeting;
};

InterpHost *host;
const Invocation *invocation;
Thread threads[MAX_THREADS];
Warp warps[MAX_WARPS];
unsigned ready_warps;           // bit i: warp i has a ready lane
int thread_count, warp_count, alive, at_barrier;
Place barrier_place;

struct SharedLimit {
    void *kernel;
    long long bytes;
} shared_limits[MAX_KERNELS];
int shared_limit_count;

[[noreturn]] void fail_at(Place place, const char *what)
{
    host->file = place.file;
    host->line = place.line;
    host->fail("%s", what);
    __builtin_unreachable();
}

}   // namespace

// ---- fibers ----

#if defined(__x86_64__)

struct Fiber {
    void *stack_pointer;
    Fiber *next_free;
};

extern "C" void rollerc_interp_swap(void **save, void *resume) __attribute__((visibility("hidden")));
asm(R"(
    .text
    .globl rollerc_interp_swap
    .hidden rollerc_interp_swap
    .type rollerc_interp_swap, @function
rollerc_interp_swap:
    push %rbp; push %rbx; push %r12; push %r13; push %r14; push %r15
    mov %rsp, (%rdi)
    mov %rsi, %rsp
    pop %r15; pop %r14; pop %r13; pop %r12; pop %rbx; pop %rbp
    ret
    .size rollerc_interp_swap, . - rollerc_interp_swap
)");

static void fiber_swap(Fiber *from, Fiber *to)
{
    rollerc_interp_swap(&from->stack_pointer, to->stack_pointer);
}

static void fiber_prepare(Fiber *fiber, void (*body)())
{
    void **top = static_cast<void **>(host->map_stack(STACK_BYTES));
    *--top = nullptr;                          // `body` then sees the alignment of a called function
    *--top = reinterpret_cast<void *>(body);   // where the swap returns to
    fiber->stack_pointer = top - 6;            // six registers, all zero
}

#else

struct Fiber {
    ucontext_t context;
    Fiber *next_free;
};

static void fiber_swap(Fiber *from, Fiber *to) { swapcontext(&from->context, &to->context); }

static void fiber_prepare(Fiber *fiber, void (*body)())
{
    getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = static_cast<char *>(host->map_stack(STACK_BYTES)) - STACK_BYTES;
    fiber->context.uc_stack.ss_size = STACK_BYTES;
    fiber->context.uc_link = nullptr;
    makecontext(&fiber->context, body, 0);
}

#endif

namespace {

Fiber fibers[MAX_THREADS], scheduler;
Fiber *running = &scheduler, *free_fibers;
int fiber_count;

void switch_to(Fiber *to)
{
    Fiber *from = running;
    running = to;
    if (from != to)
        fiber_swap(from, to);
}

// ---- who runs ----

int lowest_bit(unsigned long long mask) { return __builtin_ctzll(mask); }
int highest_bit(unsigned long long mask) { return 63 - __builtin_clzll(mask); }

void make_ready(int warp, LaneMask lanes)
{
    warps[warp].ready |= lanes;
    ready_warps |= 1u << warp;
}

// One warp goes as far as it can, then the next.
Thread *pick()
{
    if (!ready_warps)
        return nullptr;
    const bool low = host->schedule == INTERP_LOWEST_FIRST;
    const int w = low ? lowest_bit(ready_warps) : highest_bit(ready_warps);
    const int lane = low ? lowest_bit(warps[w].ready) : highest_bit(warps[w].ready);
    warps[w].ready &= ~(LaneMask(1) << lane);
    if (!warps[w].ready)
        ready_warps &= ~(1u << w);
    return &threads[w * WARP + lane];
}

[[noreturn]] void fail_deadlock()
{
    for (int i = 0; i < thread_count; i++)
        if (threads[i].alive) {
            current = &threads[i];
            fail_at(current->place, "deadlock: this thread waits for others that will never come");
        }
    __builtin_unreachable();
}

void finish(Thread *thread)
{
    thread->alive = false;
    alive--;
    const Meeting &meeting = warps[thread->warp].meeting;
    if (meeting.arrived)
        fail_at(meeting.place, "a lane ended while the others of its warp meet");
    if (at_barrier)
        fail_at(barrier_place, "a thread ended while others wait at the barrier");
}

// The life of a fiber: a thread, then the next that has not started, and rest until it is needed again.
void work()
{
    for (;;) {
        invocation->call(*invocation);
        finish(current);
        Thread *next = pick();
        if (!next && alive)
            fail_deadlock();
        current = next;
        if (next && !next->fiber) {
            next->fiber = running;
            continue;
        }
        running->next_free = free_fibers;
        free_fibers = running;
        switch_to(next ? next->fiber : &scheduler);
    }
}

void resume(Thread *thread)
{
    current = thread;
    if (!thread->fiber && free_fibers) {
        thread->fiber = free_fibers;
        free_fibers = free_fibers->next_free;
    } else if (!thread->fiber) {
        thread->fiber = &fibers[fiber_count++];
        fiber_prepare(thread->fiber, work);
    }
    switch_to(thread->fiber);
}

void wait_at(Place place)
{
    current->place = place;
    Thread *next = pick();
    if (!next)
        fail_deadlock();
    resume(next);
}

}   // namespace

// ---- where threads meet ----

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
    warps[current->warp].ready &= ~(LaneMask(1) << current->lane);   // goes on at once
    if (!warps[current->warp].ready)
        ready_warps &= ~(1u << current->warp);
}

namespace {

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
    meeting.arrived = 0;
    const LaneMask others = warp.lanes & ~(LaneMask(1) << self->lane);
    if (others)
        make_ready(self->warp, others);
    return self->result;
}

}   // namespace

unsigned long long exchange(unsigned long long bits, int source, Place place)
{
    return meet(bits, source, place);
}
unsigned long long ballot(bool vote, Place place) { return meet(vote, -1, place); }

void async_copy16(void *shared, const void *global, int valid_bytes, Place place)
{
    if ((reinterpret_cast<size_t>(shared) | reinterpret_cast<size_t>(global)) % 16 != 0)
        fail_at(place, "an asynchronous copy from or to an address that is not aligned to 16 bytes");
    __builtin_memcpy(shared, global, static_cast<size_t>(valid_bytes));
    __builtin_memset(static_cast<char *>(shared) + valid_bytes, 0, static_cast<size_t>(16 - valid_bytes));
}

// ---- a launch ----

namespace {

void prepare_threads()
{
    thread_count = static_cast<int>(block_size.x * block_size.y * block_size.z);
    warp_count = (thread_count + WARP - 1) / WARP;
    uint3 index = {0, 0, 0};
    for (int i = 0; i < thread_count; i++) {
        threads[i] = Thread{index, i, i % WARP, i / WARP, true, nullptr, {}, 0};
        if (++index.x < block_size.x)
            continue;
        index.x = 0;
        if (++index.y < block_size.y)
            continue;
        index.y = 0;
        index.z++;
    }
    for (int w = 0; w < warp_count; w++) {
        const int lanes = thread_count - w * WARP < WARP ? thread_count - w * WARP : WARP;
        warps[w].lanes = static_cast<LaneMask>(~0ull >> (64 - lanes));
    }
}

void run_block(unsigned long long block, size_t shared)
{
    block_index.x = static_cast<unsigned>(block % grid_size.x);
    block_index.y = static_cast<unsigned>(block / grid_size.x % grid_size.y);
    block_index.z = static_cast<unsigned>(block / grid_size.x / grid_size.y);
    host->block[0] = block_index.x;
    host->block[1] = block_index.y;
    host->block[2] = block_index.z;
    __builtin_memset(shared_memory, 0xff, shared);   // NaN: what no thread of this block wrote
    alive = thread_count;
    for (int i = 0; i < thread_count; i++) {
        threads[i].alive = true;
        threads[i].fiber = nullptr;
    }
    for (int w = 0; w < warp_count; w++)
        make_ready(w, warps[w].lanes);
    resume(pick());
    current = nullptr;
    host->blocks_run++;
}

unsigned long long hash(unsigned long long x)   // splitmix64
{
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

// The choice of blocks: corners, their neighbours along x, then random ones.
unsigned long long chosen_block(long long i, unsigned long long count)
{
    const unsigned x = i & 1 ? grid_size.x - 1 : 0;
    const unsigned y = i & 2 ? grid_size.y - 1 : 0;
    const unsigned z = i & 4 ? grid_size.z - 1 : 0;
    if (i < 8)
        return x + (y + static_cast<unsigned long long>(z) * grid_size.y) * grid_size.x;
    if (i == 8)
        return 1 % count;
    if (i == 9)
        return count - 1 - 1 % count;
    return hash(host->seed + static_cast<unsigned long long>(i)) % count;
}

void run_chosen_blocks(unsigned long long count, size_t shared)
{
    for (long long i = 0; i < host->max_blocks; i++) {
        const unsigned long long block = chosen_block(i, count);
        bool done = false;   // few are chosen: a slow search is fine
        for (long long before = 0; before < i && !done; before++)
            done = chosen_block(before, count) == block;
        if (!done)
            run_block(block, shared);
    }
}

long long allowed_shared(void *kernel)
{
    for (int i = 0; i < shared_limit_count; i++)
        if (shared_limits[i].kernel == kernel)
            return shared_limits[i].bytes;
    return host->static_shared_limit;
}

void check_limits(dim3 grid, dim3 block, size_t shared, void *kernel)
{
    const unsigned long long count = static_cast<unsigned long long>(block.x) * block.y * block.z;
    if (count == 0 || block.x > MAX_THREADS || block.y > MAX_THREADS || block.z > 64 ||
        count > static_cast<unsigned long long>(host->max_threads) || count > MAX_THREADS)
        host->fail("a block of %u x %u x %u threads", block.x, block.y, block.z);
    if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > 2147483647u || grid.y > 65535 || grid.z > 65535)
        host->fail("a grid of %u x %u x %u blocks", grid.x, grid.y, grid.z);
    if (static_cast<long long>(shared) > allowed_shared(kernel))
        host->fail("%zu bytes of dynamic shared memory where %lld are allowed", shared, allowed_shared(kernel));
}

}   // namespace

cudaError_t launch(const Invocation &what, dim3 grid, dim3 block, size_t shared)
{
    host->launch++;
    if (host->only_launch >= 0 && host->launch != host->only_launch)
        return cudaSuccess;
    check_limits(grid, block, shared, what.kernel);
    invocation = &what;
    grid_size = grid;
    block_size = block;
    prepare_threads();
    shared_memory = host->map_shared(static_cast<long long>(shared));
    const unsigned long long count = static_cast<unsigned long long>(grid.x) * grid.y * grid.z;
    host->blocks_total += static_cast<long long>(count);
    if (count > static_cast<unsigned long long>(host->max_blocks))
        run_chosen_blocks(count, shared);
    else
        for (unsigned long long i = 0; i < count; i++)
            run_block(host->schedule == INTERP_LOWEST_FIRST ? i : count - 1 - i, shared);
    host->check_shared();
    return cudaSuccess;
}

cudaError_t allow_shared(void *kernel, long long bytes)
{
    if (bytes < 0 || bytes > host->shared_limit || shared_limit_count == MAX_KERNELS)
        return cudaErrorInvalidValue;
    shared_limits[shared_limit_count++] = {kernel, bytes};
    return cudaSuccess;
}

}   // namespace rollerc_interp

// ---- the way in: call_launcher() is generated, since only it knows how many arguments there are ----

int call_launcher(void **args);

extern "C" __attribute__((visibility("default"))) int interp_run(InterpHost *host, void **args)
{
    rollerc_interp::host = host;
    host->launch = -1;
    return call_launcher(args);
}

extern "C" __attribute__((visibility("default"))) int interp_thread()
{
    return rollerc_interp::current ? rollerc_interp::current->number : -1;
}
