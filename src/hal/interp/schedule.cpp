// Threads as fibers of one process.
//
// A thread runs on the stack of the one that ended before it as long as nobody waits; a kernel without
// barriers switches not at all:
//
//   fiber 0   thread 0 ------ thread 1 ------ thread 2 ...           no barrier: one stack
//
//   fiber 0   thread 0 --| waits               |-- goes on -- end    a barrier: a stack for
//   fiber 1              |-- thread 1 --| waits     |-- ...          each thread that waits
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace rollerc_interp {

// ---- fibers ----

#if defined(__x86_64__)

struct Fiber {
    void *stack_pointer;
    Fiber *next_free;
};

extern "C" void rollerc_interp_swap(void **save, void *resume);
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

Fiber fibers[MAX_TEAM_THREADS], scheduler;
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

enum { BLOCKS_PER_WORD = 64, READY_WORDS = MAX_TEAM_BLOCKS / BLOCKS_PER_WORD };
unsigned long long ready_blocks[READY_WORDS];   // bit i: block i has a ready lane

void make_ready(Block *block, int warp, LaneMask lanes)
{
    const long i = block - blocks;
    block->warps[warp].ready |= lanes;
    block->ready_warps |= 1u << warp;
    ready_blocks[i / BLOCKS_PER_WORD] |= 1ull << i % BLOCKS_PER_WORD;
}

void make_ready(const Thread *thread) { make_ready(thread->block, thread->warp, LaneMask(1) << thread->lane); }

void unready(const Thread *thread)
{
    Block *block = thread->block;
    const long i = block - blocks;
    Warp &warp = warp_of(thread);
    warp.ready &= ~(LaneMask(1) << thread->lane);
    if (!warp.ready)
        block->ready_warps &= ~(1u << thread->warp);
    if (!block->ready_warps)
        ready_blocks[i / BLOCKS_PER_WORD] &= ~(1ull << i % BLOCKS_PER_WORD);
}

namespace {

int lowest_block()
{
    for (int w = 0; w * BLOCKS_PER_WORD < team_blocks; w++)
        if (ready_blocks[w])
            return w * BLOCKS_PER_WORD + lowest_bit(ready_blocks[w]);
    return -1;
}

int highest_block()
{
    for (int w = (team_blocks - 1) / BLOCKS_PER_WORD; w >= 0; w--)
        if (ready_blocks[w])
            return w * BLOCKS_PER_WORD + highest_bit(ready_blocks[w]);
    return -1;
}

// Priorities of blocks and warps that change rarely, as Burckhardt et al. found best at reaching rare orders (PCT,
// ASPLOS'10); lanes in any order.
enum { PICKS_A_CHANGE = 64 };
unsigned long long dice;
unsigned char block_priority[MAX_TEAM_BLOCKS], warp_priority[MAX_TEAM_WARPS];   // beside each other: they are searched at every pick

unsigned roll(unsigned sides)
{
    dice = hash(dice);
    return static_cast<unsigned>(dice % sides);
}

unsigned char new_priority() { return static_cast<unsigned char>(roll(256)); }

int most_important_block()
{
    int best = lowest_block();
    if (team_blocks == 1)
        return best;
    if (roll(PICKS_A_CHANGE) == 0)
        block_priority[roll(static_cast<unsigned>(team_blocks))] = new_priority();
    int most = best < 0 ? 0 : block_priority[best];
    for (int w = 0; w * BLOCKS_PER_WORD < team_blocks; w++)
        for (unsigned long long left = ready_blocks[w]; left; left &= left - 1) {
            const int b = w * BLOCKS_PER_WORD + lowest_bit(left);
            if (block_priority[b] > most)
                best = b, most = block_priority[b];
        }
    return best;
}

int most_important_warp(const Block &block)
{
    unsigned char *priority = &warp_priority[block.warps - warps];
    if (roll(PICKS_A_CHANGE) == 0)
        priority[roll(static_cast<unsigned>(warp_count))] = new_priority();
    int best = lowest_bit(block.ready_warps);
    for (unsigned left = block.ready_warps; left; left &= left - 1)
        if (priority[lowest_bit(left)] > priority[best])
            best = lowest_bit(left);
    return best;
}

int any_lane(LaneMask ready)
{
    for (unsigned skip = roll(static_cast<unsigned>(__builtin_popcountll(ready))); skip > 0; skip--)
        ready &= ready - 1;
    return lowest_bit(ready);
}

}   // namespace

void draw_priorities(unsigned long long seed)
{
    dice = hash(seed);
    for (int w = 0; w < team_blocks * warp_count; w++)
        warp_priority[w] = new_priority();
    for (int b = 0; b < team_blocks && team_blocks > 1; b++)
        block_priority[b] = new_priority();
}

// One warp runs as far as it can, then the next; so do blocks. Null: none can.
Thread *pick()
{
    int warp, lane;
    const RuntimeSchedule schedule = host->job->schedule;
    const int b = schedule == RUNTIME_LOWEST_FIRST    ? lowest_block()
                  : schedule == RUNTIME_HIGHEST_FIRST ? highest_block()
                                                      : most_important_block();
    if (b < 0)
        return nullptr;
    const Block &block = blocks[b];
    switch (schedule) {
    case RUNTIME_LOWEST_FIRST:
        warp = lowest_bit(block.ready_warps);
        lane = lowest_bit(block.warps[warp].ready);
        break;
    case RUNTIME_HIGHEST_FIRST:
        warp = highest_bit(block.ready_warps);
        lane = highest_bit(block.warps[warp].ready);
        break;
    default:
        warp = most_important_warp(block);
        lane = any_lane(block.warps[warp].ready);
    }
    Thread *thread = &block.threads[warp * warp_size + lane];
    unready(thread);
    return thread;
}

void make_current(Thread *thread)
{
    static const Block *entered;
    static unsigned entered_in;   // blocks are used again by the next team
    current = thread;
    if (!thread)
        return;
    here.thread = thread->index;
    here.lane = thread->lane;
    if (entered == thread->block && entered_in == team_epoch)
        return;
    entered = thread->block;
    entered_in = team_epoch;
    here.block = entered->index;
    here.shared_memory = entered->shared;
    count_arithmetic_of(entered);
    host->block[0] = here.block.x;
    host->block[1] = here.block.y;
    host->block[2] = here.block.z;
}

[[noreturn]] void fail_deadlock()
{
    for (int i = 0; i < team_blocks * thread_count; i++)
        if (threads[i].alive) {
            make_current(&threads[i]);
            fail_at(current->place, "deadlock: this thread waits for others that will never come");
        }
    __builtin_unreachable();
}

// What other blocks find there from now on.
void end_block(const Block &block)
{
    note_end(block);
    finish_products(block);
    finish_bulk(block);
    if (cluster_blocks > 1)
        __builtin_memset(block.shared, 0xff, shared_bytes);
}

void finish(Thread *thread)
{
    Block &block = *thread->block;
    Cluster &cluster = *block.cluster;
    const Meeting &meeting = warp_of(thread).meeting;
    finish_copies(thread);
    thread->alive = false;
    alive--;
    cluster.alive--;
    if (early && !thread->waited_for_earlier)   // the launch behind it relies on that
        host->fail("a thread of a launch that begins early ended without waiting for the earlier launches");
    if (meeting.arrived)
        fail_at(meeting.place, "a lane ended while the others of its warp meet");
    if (block.barrier.arrived)
        fail_at(block.barrier.place, "a thread ended while others wait at the barrier");
    if (block.roles.arrived)
        fail_at(block.roles.place, "a thread ended while others wait at the barrier of all roles");
    if (thread->arrivals != thread->waits)
        fail_at(thread->place, "a thread ended after it arrived at the cluster's barrier, without waiting there");
    if (cluster.barrier.arrived)
        fail_at(cluster.barrier.place, "a thread ended while others wait at the cluster's barrier");
    if (grid_gathering.arrived)
        fail_at(grid_gathering.place, "a thread ended while others wait at the grid's barrier");
    if (--block.alive == 0)
        end_block(block);
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
        make_current(next);
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
    make_current(thread);
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
    Thread *self = current, *next = pick();
    if (!next)
        fail_deadlock();
    if (next != self)
        resume(next);
}

// A place where another thread may run, though this one need not wait.
void preempt(Place place)
{
    if (host->job->schedule != RUNTIME_PRIORITY)
        return;
    make_ready(current);
    wait_at(place);
}

// ---- errands ----

namespace {

const Errand *errand;
Fiber *errand_of;

}   // namespace

void run_on_deep_stack(const Errand &what)
{
    if (running == &scheduler)
        return what.run(what);
    errand = &what;
    errand_of = running;
    switch_to(&scheduler);
}

// All of the team, until the last has ended.
void run_threads()
{
    resume(pick());
    while (errand) {
        errand->run(*errand);
        errand = nullptr;
        switch_to(errand_of);
    }
}

}   // namespace rollerc_interp
