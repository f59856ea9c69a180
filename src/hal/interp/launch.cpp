// A grid: one team of blocks after the other, and of a large one some.
namespace rollerc_interp {

namespace {

struct Allowance {              // what a kernel was allowed to ask for
    void *kernel;
    long long shared;
    bool large_clusters;
} allowances[MAX_KERNELS];
int allowance_count;
bool only_some;                 // of the launch's blocks are run

void prepare_warps(Block *block)
{
    for (int w = 0; w < warp_count; w++) {
        const int lanes = thread_count - w * warp_size < warp_size ? thread_count - w * warp_size : warp_size;
        block->warps[w].lanes = ~0ull >> (64 - lanes);
    }
}

void prepare_threads(Block *block)
{
    uint3 index = {0, 0, 0};
    for (int i = 0; i < thread_count; i++) {
        Thread &thread = block->threads[i];
        thread = Thread();
        thread.index = index;
        thread.number = i;
        thread.lane = i % warp_size;
        thread.warp = i / warp_size;
        thread.block = block;
        if (++index.x < block_size.x)
            continue;
        index.x = 0;
        if (++index.y < block_size.y)
            continue;
        index.y = 0;
        index.z++;
    }
}

// What stays the same from team to team.
void prepare_team()
{
    for (int b = 0; b < team_blocks; b++) {
        Block &block = blocks[b];
        Cluster &cluster = clusters[b / cluster_blocks];
        block = Block();
        block.threads = &threads[b * thread_count];
        block.warps = &warps[b * warp_count];
        block.cluster = &cluster;
        block.rank = b % cluster_blocks;
        block.shared = host->shared + b * host->shared_stride;
        if (block.rank == 0)
            cluster.blocks = &block;
        prepare_threads(&block);
        prepare_warps(&block);
    }
}

// Cluster `number` of the grid, counted along x, then y, then z; so are its blocks.
void place_cluster(Cluster *cluster, unsigned long long number)
{
    const unsigned wide = grid_size.x / cluster_shape.x, high = grid_size.y / cluster_shape.y;
    const unsigned x = static_cast<unsigned>(number % wide) * cluster_shape.x;
    const unsigned y = static_cast<unsigned>(number / wide % high) * cluster_shape.y;
    const unsigned z = static_cast<unsigned>(number / wide / high) * cluster_shape.z;
    for (unsigned rank = 0; rank < static_cast<unsigned>(cluster_blocks); rank++)
        cluster->blocks[rank].index = {x + rank % cluster_shape.x, y + rank / cluster_shape.x % cluster_shape.y,
                                       z + rank / cluster_shape.x / cluster_shape.y};
}

void start_block(Block *block)
{
    __builtin_memset(block->shared, 0xff, shared_bytes);   // NaN: what no thread of this block wrote
    block->epoch = epoch;
    block->alive = thread_count;
    block->touched = 0;
    block->bulk_count = 0;
    start_counts(block);
    for (int i = 0; i < thread_count; i++) {
        Thread &thread = block->threads[i];
        thread.alive = true;
        thread.waited_for_earlier = false;
        thread.fiber = nullptr;
        thread.arrivals = thread.waits = 0;
    }
    for (int w = 0; w < warp_count; w++)
        make_ready(block, w, block->warps[w].lanes);
}

// A team of blocks that run concurrently: a cluster, or the whole grid of a cooperative launch.
void run_team(unsigned long long team)
{
    team_epoch = grid_epoch = ++epoch;
    forget_shared();
    draw_priorities(host->job->seed + epoch);
    alive = team_blocks * thread_count;
    const int count = team_blocks / cluster_blocks;
    for (int c = 0; c < count; c++) {
        clusters[c].alive = cluster_blocks * thread_count;
        clusters[c].barriers = 0;
        place_cluster(&clusters[c], team * static_cast<unsigned>(count) + static_cast<unsigned>(c));
    }
    for (int b = 0; b < team_blocks; b++)
        start_block(&blocks[b]);
    run_threads();
    current = nullptr;
    host->blocks_run += team_blocks;
}

// The choice of clusters: corners, those next to them along x, then random ones.
unsigned long long chosen_cluster(long long i, unsigned long long count)
{
    const unsigned wide = grid_size.x / cluster_shape.x, high = grid_size.y / cluster_shape.y;
    const unsigned x = i & 1 ? wide - 1 : 0;
    const unsigned y = i & 2 ? high - 1 : 0;
    const unsigned z = i & 4 ? grid_size.z / cluster_shape.z - 1 : 0;
    if (i < 8)
        return x + (y + static_cast<unsigned long long>(z) * high) * wide;
    if (i == 8)
        return 1 % count;
    if (i == 9)
        return count - 1 - 1 % count;
    return hash(host->job->seed + static_cast<unsigned long long>(i)) % count;
}

void run_chosen_clusters(unsigned long long count)
{
    const long long wanted = host->job->max_blocks / cluster_blocks > 2 ? host->job->max_blocks / cluster_blocks : 2;
    for (long long i = 0, run = 0; run < wanted; i++) {
        const unsigned long long cluster = chosen_cluster(i, count);
        bool done = false;   // a row of blocks has two corners; few are chosen: a slow search is fine
        for (long long before = 0; before < i && !done; before++)
            done = chosen_cluster(before, count) == cluster;
        if (!done)
            run_team(cluster), run++;
    }
}

// Those of the blocks that are counted.
void run_counted(unsigned long long count)
{
    run_team(0);
    if (count > 1)
        run_team(count - 1);
}

void run_teams(unsigned long long count)
{
    host->blocks_total += static_cast<long long>(count) * team_blocks;
    if (host->counts)
        return run_counted(count);
    only_some = count > 1 && static_cast<long long>(count) > host->job->max_blocks / team_blocks;
    if (only_some)
        return run_chosen_clusters(count);
    for (unsigned long long i = 0; i < count; i++)
        run_team(host->job->schedule == RUNTIME_HIGHEST_FIRST ? count - 1 - i : i);
}

// ---- limits ----

const RuntimeLimits &limits() { return host->source->limits; }

Allowance allowance_of(void *kernel)
{
    for (int i = 0; i < allowance_count; i++)
        if (allowances[i].kernel == kernel)
            return allowances[i];
    return {kernel, limits().static_shared_bytes, false};
}

unsigned long long volume(dim3 size) { return static_cast<unsigned long long>(size.x) * size.y * size.z; }

void check_block(dim3 block)
{
    const unsigned long long count = volume(block);
    if (count == 0 || block.x > MAX_THREADS || block.y > MAX_THREADS || block.z > 64 ||
        count > static_cast<unsigned long long>(limits().max_threads_per_block) || count > MAX_THREADS)
        host->fail("a block of %u x %u x %u threads", block.x, block.y, block.z);
}

void check_grid(dim3 grid, dim3 block)
{
    const unsigned long long most = static_cast<unsigned long long>(limits().max_threads_per_launch);
    if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > limits().max_blocks_per_launch || grid.y > 65535 || grid.z > 65535)
        host->fail("a grid of %u x %u x %u blocks", grid.x, grid.y, grid.z);
    if (most && volume(grid) > most / volume(block))
        host->fail("a launch of %llu blocks of %llu threads where %llu threads are allowed", volume(grid), volume(block),
                   most);
}

void check_cluster(const LaunchShape &shape, bool large_clusters)
{
    const dim3 cluster = shape.cluster;
    const unsigned long long most = static_cast<unsigned long long>(limits().max_cluster_blocks);
    const unsigned long long count = cluster.x <= most && cluster.y <= most && cluster.z <= most ? volume(cluster) : 0;
    if (cluster.x == 1 && cluster.y == 1 && cluster.z == 1)
        return;
    if (count == 0 || count > most)
        host->fail("a cluster of %u x %u x %u blocks where %d are allowed", cluster.x, cluster.y, cluster.z,
                   limits().max_cluster_blocks);
    if (count > static_cast<unsigned long long>(PORTABLE_CLUSTER_BLOCKS) && !large_clusters)
        host->fail("a cluster of %llu blocks without cudaFuncAttributeNonPortableClusterSizeAllowed", count);
    if (shape.grid.x % cluster.x || shape.grid.y % cluster.y || shape.grid.z % cluster.z)
        host->fail("a grid of %u x %u x %u blocks in clusters of %u x %u x %u", shape.grid.x, shape.grid.y,
                   shape.grid.z, cluster.x, cluster.y, cluster.z);
}

// Registers count too, but only a compiler knows them.
void check_residence(const LaunchShape &shape)
{
    const long long size = static_cast<long long>(volume(shape.block));
    const long long shared = static_cast<long long>(shape.shared) + limits().shared_reserved_per_block;
    const unsigned long long grid = volume(shape.grid);
    long long fit = limits().max_threads_per_sm / size;
    if (!limits().cooperative)
        host->fail("a cooperative launch, which the device does not have");
    fit = fit < limits().max_blocks_per_sm ? fit : limits().max_blocks_per_sm;
    fit = fit * shared <= limits().shared_per_sm ? fit : limits().shared_per_sm / shared;
    if (grid > static_cast<unsigned long long>(fit * limits().sm_count))
        host->fail("a cooperative launch of %llu blocks where %lld can be resident", grid, fit * limits().sm_count);
    if (grid > MAX_TEAM_BLOCKS || grid * static_cast<unsigned long long>(size) > MAX_TEAM_THREADS)
        host->fail("a cooperative launch of %llu blocks of %lld threads, more than the interpreter can hold", grid, size);
}

void check_limits(const LaunchShape &shape, void *kernel)
{
    const Allowance allowance = allowance_of(kernel);
    check_block(shape.block);
    check_grid(shape.grid, shape.block);
    check_cluster(shape, allowance.large_clusters);
    if (static_cast<long long>(shape.shared) > allowance.shared)
        host->fail("%zu bytes of dynamic shared memory where %lld are allowed", shape.shared, allowance.shared);
    if (shape.cooperative)
        check_residence(shape);
}

// ---- the record ----

template <class T> bool is_same(dim3 seen, const T (&said)[3])
{
    return static_cast<long long>(seen.x) == said[0] && static_cast<long long>(seen.y) == said[1] &&
           static_cast<long long>(seen.z) == said[2];
}

bool is_same(const TensorBox &seen, const Launch &launch, const TensorMap &said)
{
    const LaunchArg &arg = launch.args[said.arg];
    bool same = seen.rank == said.rank && seen.element_bytes == said.element_bytes && seen.pixel_axes == said.pixel_axes &&
                seen.tf32 == said.tf32 && seen.start == host->buffers[arg.buffer] + launch_arg_start(&arg) + said.start;
    for (int d = 0; d < said.rank; d++)
        same &= seen.sizes[d] == said.sizes[d] && seen.box[d] == said.box[d] && (d == 0 || seen.strides[d - 1] == said.strides[d - 1]);
    for (int i = 0; i < said.pixel_axes; i++)
        same &= seen.lower[i] == said.lower[i] && seen.upper[i] == said.upper[i] && seen.steps[i] == said.steps[i];
    return same;
}

// The first word in which the first line of the file differs; null: none does.
const char *difference(const Launch &said, const LaunchShape &shape, void **args)
{
    for (int i = 0; i < said.arg_count; i++)
        if (*static_cast<unsigned char **>(args[i]) != host->buffers[said.args[i].buffer] + launch_arg_start(&said.args[i]))
            return "args";
    for (int i = 0; i < said.map_count; i++)
        if (!is_same(*static_cast<const TensorBox *>(args[said.arg_count + i]), said, said.maps[i]))
            return "args";
    return !is_same(shape.grid, said.grid)                                ? "grid"
           : !is_same(shape.block, said.block)                            ? "block"
           : !is_same(shape.cluster, said.cluster)                        ? "cluster"
           : static_cast<long long>(shape.shared) != said.shared_bytes    ? "shared"
           : shape.cooperative != said.cooperative                        ? "cooperative"
           : shape.early != said.early                                    ? "early"
                                                                          : nullptr;
}

// Other loaders launch by the record, so it must say what the launcher does.
void check_record(const LaunchShape &shape, void **args)
{
    if (!host->source->launches)
        return;
    if (host->launch >= host->source->launch_count)
        host->fail("the launcher makes more than the %d launches of the file's first line", host->source->launch_count);
    const char *word = difference(host->source->launches[host->launch], shape, args);
    if (word)
        host->fail("the launcher makes it with another '%s' than the file's first line says", word);
}

}   // namespace

// Its number is host->launch.
static cudaError_t run_launch(const Invocation &what, const LaunchShape &shape)
{
    check_limits(shape, what.kernel);
    invocation = &what;
    grid_size = shape.grid;
    block_size = shape.block;
    here.grid_size = {grid_size.x, grid_size.y, grid_size.z};
    here.block_size = {block_size.x, block_size.y, block_size.z};
    cluster_shape = shape.cluster;
    cooperative = shape.cooperative;
    early = shape.early;
    thread_count = static_cast<int>(volume(shape.block));
    warp_count = (thread_count + warp_size - 1) / warp_size;
    cluster_blocks = static_cast<int>(volume(shape.cluster));
    team_blocks = cooperative ? static_cast<int>(volume(shape.grid)) : cluster_blocks;
    shared_bytes = shape.shared;
    note_earlier();
    start_traffic();
    host->map_shared(static_cast<long long>(shared_bytes), team_blocks);
    prepare_team();
    run_teams(volume(shape.grid) / static_cast<unsigned long long>(team_blocks));
    host->check_shared();
    host->launch = -1;
    return cudaSuccess;
}

cudaError_t launch(const Invocation &what, const LaunchShape &shape)
{
    host->launch = host->launches++;
    check_record(shape, what.args);
    if (host->job->only_launch >= 0 && host->launch != host->job->only_launch)
        return cudaSuccess;
    return run_launch(what, shape);
}

// Of NAME_prepare. Programs that are run launch by launch find what it would have made.
cudaError_t copy(void *to, const void *from, size_t bytes)
{
    const RuntimeSource &source = *host->source;
    const int index = host->copies++;
    if (source.launches && index < source.copy_count) {
        const LaunchCopy &said = source.copies[index];
        if (to != host->buffers[source.arg_count + BUFFER_PREPARED] + said.to ||
            from != host->buffers[source.arg_count + BUFFER_WEIGHTS] + said.from || static_cast<long long>(bytes) != said.bytes)
            host->fail("the preparation makes copy %d otherwise than the file's first line says", index);
    }
    if (host->job->only_launch >= 0)
        return cudaSuccess;
    __builtin_memcpy(to, from, bytes);
    note_copied(static_cast<unsigned char *>(to), static_cast<long long>(bytes));
    return cudaSuccess;
}

cudaError_t allow(void *kernel, cudaFuncAttribute attribute, int value)
{
    Allowance *allowance = allowances;
    while (allowance < allowances + allowance_count && allowance->kernel != kernel)
        allowance++;
    if (allowance == allowances + MAX_KERNELS)
        return cudaErrorInvalidValue;
    if (allowance == allowances + allowance_count)
        allowances[allowance_count++] = {kernel, limits().static_shared_bytes, false};
    if (attribute == cudaFuncAttributeNonPortableClusterSizeAllowed)
        allowance->large_clusters = value != 0;
    else if (value < 0 || value > limits().shared_bytes)
        return cudaErrorInvalidValue;
    else
        allowance->shared = value;
    return cudaSuccess;
}

int next_turn(int turn, int turns) { return only_some && turn + 2 < turns ? turns - 1 : turn + 1; }

void trap(Place place, const char *what) { fail_at(place, what); }

}   // namespace rollerc_interp

namespace rollerc_interp {

namespace {

// Launches, of NAME_prepare or of all, that the program has made when it says that it is done.
void check_count(const char *who, int wanted)
{
    if (host->source->launches && host->launches != wanted)
        host->fail("the %s makes %d of the %d launches of the file's first line", who, host->launches, wanted);
}

int prepare_once(InterpLauncher *prepare, void **args)
{
    const int result = prepare(args);
    if (result != 0)
        return result;
    check_count("preparation", host->source->prepare_count);
    if (host->source->launches && host->copies != host->source->copy_count)
        host->fail("the preparation makes %d of the %d copies of the file's first line", host->copies, host->source->copy_count);
    if (host->job->only_launch < 0)
        host->seal();
    return 0;
}

// A call on other inputs, before the one that is looked at.
int call_before(InterpLauncher *launcher, void **args)
{
    host->refill(1);
    const int result = launcher(args);
    host->launches = host->source->prepare_count;
    host->blocks_run = host->blocks_total = 0;
    host->refill(0);
    return result;
}

}   // namespace

}   // namespace rollerc_interp

int interp_run(InterpHost *host, InterpLauncher *prepare, InterpLauncher *launcher, void **args)
{
    rollerc_interp::host = host;
    rollerc_interp::warp_size = host->source->limits.warp_size;
    host->launch = -1;
    unsigned char *seen = reinterpret_cast<unsigned char *>(&rollerc_interp::here);
    unsigned char *frame = static_cast<unsigned char *>(__builtin_frame_address(0));
    host->own[host->own_count++] = {seen, seen + sizeof rollerc_interp::here};   // some compilers announce it
    host->own[host->own_count++] = {frame - rollerc_interp::STACK_BYTES, frame};   // what the launcher passes on
    int result = prepare ? rollerc_interp::prepare_once(prepare, args) : 0;
    if (result == 0 && prepare && host->job->fill_before && host->job->only_launch < 0)
        result = rollerc_interp::call_before(launcher, args);
    if (result == 0)
        result = launcher(args);
    if (result == 0)
        rollerc_interp::check_count("launcher", host->source->launch_count);
    return result;
}

int interp_thread()
{
    return rollerc_interp::current ? rollerc_interp::current->number : -1;
}
