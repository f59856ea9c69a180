// A grid: one block after the other, and of a large one some.
namespace rollerc_interp {

namespace {

struct SharedLimit {
    void *kernel;
    long long bytes;
} shared_limits[MAX_KERNELS];
int shared_limit_count;


void prepare_threads()
{
    thread_count = static_cast<int>(block_size.x * block_size.y * block_size.z);
    warp_count = (thread_count + WARP - 1) / WARP;
    uint3 index = {0, 0, 0};
    for (int i = 0; i < thread_count; i++) {
        threads[i] = Thread{index, i, i % WARP, i / WARP, true, nullptr, {}, 0, nullptr, nullptr, 0};
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

void start_block()
{
    __builtin_memset(shared_memory, 0xff, shared_bytes);   // NaN: what no thread of this block wrote
    block_epoch = ++epoch;
    forget_shared();
    draw_priorities(host->seed + epoch);
    alive = thread_count;
    for (int i = 0; i < thread_count; i++) {
        threads[i].alive = true;
        threads[i].fiber = nullptr;
    }
    for (int w = 0; w < warp_count; w++)
        make_ready(w, warps[w].lanes);
}

void run_block(unsigned long long block)
{
    block_index.x = static_cast<unsigned>(block % grid_size.x);
    block_index.y = static_cast<unsigned>(block / grid_size.x % grid_size.y);
    block_index.z = static_cast<unsigned>(block / grid_size.x / grid_size.y);
    host->block[0] = block_index.x;
    host->block[1] = block_index.y;
    host->block[2] = block_index.z;
    start_block();
    resume(pick());
    current = nullptr;
    host->blocks_run++;
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

void run_chosen_blocks(unsigned long long count)
{
    for (long long i = 0; i < host->max_blocks; i++) {
        const unsigned long long block = chosen_block(i, count);
        bool done = false;   // few are chosen: a slow search is fine
        for (long long before = 0; before < i && !done; before++)
            done = chosen_block(before, count) == block;
        if (!done)
            run_block(block);
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
    host->launch = host->launches++;
    if (host->only_launch >= 0 && host->launch != host->only_launch)
        return cudaSuccess;
    check_limits(grid, block, shared, what.kernel);
    invocation = &what;
    grid_size = grid;
    block_size = block;
    prepare_threads();
    shared_bytes = shared;
    start_traffic();
    shared_memory = host->map_shared(static_cast<long long>(shared));
    const unsigned long long count = static_cast<unsigned long long>(grid.x) * grid.y * grid.z;
    host->blocks_total += static_cast<long long>(count);
    if (count > static_cast<unsigned long long>(host->max_blocks))
        run_chosen_blocks(count);
    else
        for (unsigned long long i = 0; i < count; i++)
            run_block(host->schedule == INTERP_HIGHEST_FIRST ? count - 1 - i : i);
    host->check_shared();
    host->launch = -1;
    return cudaSuccess;
}

cudaError_t allow_shared(void *kernel, long long bytes)
{
    if (bytes < 0 || bytes > host->shared_limit || shared_limit_count == MAX_KERNELS)
        return cudaErrorInvalidValue;
    shared_limits[shared_limit_count++] = {kernel, bytes};
    return cudaSuccess;
}

void trap(Place place, const char *what) { fail_at(place, what); }

cudaError_t clear(void *memory, int byte, size_t count)
{
    note_clear(memory, count);
    __builtin_memset(memory, byte, count);
    return cudaSuccess;
}

}   // namespace rollerc_interp

extern "C" ROLLERC_EXPORT int interp_run(InterpHost *host, InterpLauncher *launcher, void **args)
{
    rollerc_interp::host = host;
    host->launch = -1;
    unsigned char *frame = static_cast<unsigned char *>(__builtin_frame_address(0));
    host->own[host->own_count++] = {frame - rollerc_interp::STACK_BYTES, frame};   // what the launcher passes on
    return launcher(args);
}

extern "C" ROLLERC_EXPORT int interp_thread()
{
    return rollerc_interp::current ? rollerc_interp::current->number : -1;
}
