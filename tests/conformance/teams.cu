// Blocks that run together, as the prelude has them: the interpreter and a GPU run this file. Each launch has 16 blocks
// of 64 threads, and writes for thread i, in that order, what team_output() of teams.h says.
#include "../../templates/prelude.cuh"

#define BOTH static __host__ __device__ inline
#include "teams.h"

namespace teams {
using namespace rollerc;

// Every block adds up what its cluster holds, twice, in shared memory that starts at byte OFFSET.
template <int OFFSET> DEVICE void add_up_cluster(const int *table, int *out)
{
    SHARED_AT(OFFSET, int, part, [TEAM_THREADS]);
    const int t = static_cast<int>(threadIdx.x), i = static_cast<int>(blockIdx.x) * TEAM_THREADS + t;
    for (int round = 0; round < 2; round++) {
        part[t] = table[i] + round;
        cluster_sync();
        int sum = 0;
        for (int r = 0; r < cluster_size(); r++)
            sum += cluster_map(part, r)[t];
        cluster_arrive();
        out[round * TEAM_SIZE + i] = sum * 16 + cluster_rank();
        cluster_wait();
    }
    cluster_map(part, (cluster_rank() + 1) % cluster_size())[t] = i;   // and tells its neighbour who it is
    cluster_sync();
    out[2 * TEAM_SIZE + i] = part[t];
}

// Every block adds up what all blocks wrote, twice.
DEVICE void add_up_grid(const int *table, int *out)
{
    const int i = static_cast<int>(blockIdx.x) * TEAM_THREADS + static_cast<int>(threadIdx.x);
    for (int round = 0; round < 2; round++) {
        out[i] = table[i] + round;
        grid_sync();
        int sum = 0;
        for (int b = 0; b < TEAM_BLOCKS; b++)
            sum += out[b * TEAM_THREADS + static_cast<int>(threadIdx.x)];
        out[(round + 1) * TEAM_SIZE + i] = sum;
        grid_sync();
    }
}

// Boxes of 16 lines of 128 bytes: of two blocks each brings half to both, in the last round each brings all to itself.
DEVICE void copy_boxes(int *out, const TensorMap *half)
{
    SHARED_AT(0, unsigned char, memory, [3 * 1024 + 64]);
    unsigned char *const tile = memory + (0u - shared_address(memory)) % 1024;
    unsigned long long *const full = reinterpret_cast<unsigned long long *>(tile + 2048), *const free = full + 1;
    const int t = static_cast<int>(threadIdx.x), block = static_cast<int>(blockIdx.x), rank = cluster_rank();
    if (t == 0) {
        mbarrier_init(full, 1);
        mbarrier_init(free, 2 * TEAM_THREADS / WARP);
    }
    cluster_sync();
    for (int round = 0; round < 3; round++) {
        if (t == 0) {
            mbarrier_wait(free, (round & 1) ^ 1);
            mbarrier_expect(full, 2048);
            for (int part = 0; part < 2; part++)
                if (round == 2)
                    copy_box(tile + part * 1024, half, 8 * round, part * 8, block / 4, full);
                else if (part == rank)
                    copy_box_to(3, tile + part * 1024, half, 8 * round, part * 8, block / 4, full);
        }
        mbarrier_wait(full, round & 1);
        int sum = 0;
        for (int e = t * 8; e < t * 8 + 8; e++) {
            const int line = e / 32, piece = e % 32 / 4 ^ line % 8;
            sum += (reinterpret_cast<const int *>(tile)[line * 32 + piece * 4 + e % 4] % 4096) * (e % 8 + 1);
        }
        warp_sync();
        if (lane_id() < 2)
            mbarrier_arrive_at(free, lane_id());
        out[round * TEAM_SIZE + block * TEAM_THREADS + t] = sum;
    }
    cluster_sync();
}

// Eight lines of floats, on their way through shared memory rounded to tf32.
DEVICE void round_floats(unsigned *out, const TensorMap *floats)
{
    SHARED_AT(0, unsigned char, memory, [2 * 1024 + 8]);
    unsigned char *const tile = memory + (0u - shared_address(memory)) % 1024;
    unsigned long long *const full = reinterpret_cast<unsigned long long *>(tile + 1024);
    if (threadIdx.x == 0)
        mbarrier_init(full, 1);
    block_sync();
    if (threadIdx.x == 0) {
        mbarrier_expect(full, 1024);
        copy_box(tile, floats, 0, 0, 0, full);
    }
    mbarrier_wait(full, 0);
    for (int i = static_cast<int>(threadIdx.x); i < ROUNDED; i += TEAM_THREADS)
        out[ROUNDED + i] = reinterpret_cast<const unsigned *>(tile)[i ^ i / 32 % 8 * 4];
}

// A box of a tensor of RANK dimensions, eight lines at most; behind its last one zeros.
template <int RANK> __global__ void teams_ranks(int *out, const __grid_constant__ TensorMap map)
{
    SHARED_AT(0, unsigned char, memory, [2 * 1024 + 8]);
    unsigned char *const tile = memory + (0u - shared_address(memory)) % 1024;
    unsigned long long *const full = reinterpret_cast<unsigned long long *>(tile + 1024);
    const BoxShape shape = box_shape(RANK);
    int at[RANK], elements = 1;
    for (int d = 0; d < RANK; d++) {
        at[d] = shape.at[d];
        elements *= shape.box[d];
    }
    if (threadIdx.x == 0)
        mbarrier_init(full, 1);
    block_sync();
    if (threadIdx.x == 0) {
        mbarrier_expect(full, elements * 4);
        copy_box_at(tile, &map, at, full);
    }
    mbarrier_wait(full, 0);
    for (int i = static_cast<int>(threadIdx.x); i < 256 && blockIdx.x == 0; i += TEAM_THREADS)
        out[i] = i < elements ? reinterpret_cast<const int *>(tile)[i ^ i / 32 % 8 * 4] : 0;
}

// Sixteen pixels; see pixel_output().
template <int AXES> DEVICE void copy_walk(int *out, const TensorMap *images)
{
    SHARED_AT(0, unsigned char, memory, [3 * 1024 + 8]);
    unsigned char *const tile = memory + (0u - shared_address(memory)) % 1024;
    unsigned long long *const full = reinterpret_cast<unsigned long long *>(tile + 2048);
    if (threadIdx.x == 0)
        mbarrier_init(full, 1);
    block_sync();
    if (threadIdx.x == 0) {
        int at[AXES + 2] = {0, 1}, offset[AXES] = {1};
        at[AXES + 1] = 1;
        if (AXES > 1)
            offset[AXES > 1 ? 1 : 0] = 1;
        mbarrier_expect(full, 2048);
        copy_pixels(tile, images, at, offset, full);
    }
    mbarrier_wait(full, 0);
    for (int i = static_cast<int>(threadIdx.x); i < PIXELS; i += TEAM_THREADS)
        out[i] = reinterpret_cast<const int *>(tile)[i ^ i / 32 % 8 * 4];
}

extern "C" __global__ void teams_lines(int *out, const __grid_constant__ TensorMap images)
{
    if (blockIdx.x == 0)
        copy_walk<1>(out, &images);
}
extern "C" __global__ void teams_planes(int *out, const __grid_constant__ TensorMap images)
{
    if (blockIdx.x == 0)
        copy_walk<2>(out, &images);
}
extern "C" __global__ void teams_solids(int *out, const __grid_constant__ TensorMap images)
{
    if (blockIdx.x == 0)
        copy_walk<3>(out, &images);
}

extern "C" __global__ void teams_floats(unsigned *out)
{
    for (int i = static_cast<int>(threadIdx.x); i < ROUNDED && blockIdx.x == 0; i += TEAM_THREADS)
        out[i] = float_bits(i);
}
extern "C" __global__ void teams_rounded(unsigned *out, const __grid_constant__ TensorMap floats)
{
    if (blockIdx.x == 0)
        round_floats(out, &floats);
}
extern "C" __global__ void teams_boxes(int *out, const __grid_constant__ TensorMap half) { copy_boxes(out, &half); }
extern "C" __global__ void teams_clusters(const int *table, int *out) { add_up_cluster<0>(table, out); }
extern "C" __global__ void teams_far(const int *table, int *out) { add_up_cluster<FAR_BYTES>(table, out); }
extern "C" __global__ void teams_grid(const int *table, int *out) { add_up_grid(table, out); }
extern "C" __global__ void teams_both(const int *table, int *out)
{
    add_up_cluster<0>(table, out);
    grid_sync();
    add_up_grid(table, out + 3 * TEAM_SIZE);
}

}   // namespace teams

template <class Kernel>
static cudaError_t launch(Kernel *kernel, int cluster, int cooperative, int shared, void **args, void *stream)
{
    if (shared > 48 * 1024)
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
    if (cluster > 8)
        cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    return rollerc::launch_with(kernel, TEAM_BLOCKS, TEAM_THREADS, args, static_cast<size_t>(shared), static_cast<cudaStream_t>(stream),
                                false, static_cast<unsigned>(cluster), cooperative);
}

template <int RANK> static cudaError_t launch_ranks(const void *table, int *out, void *stream)
{
    const BoxShape shape = box_shape(RANK);
    unsigned long long sizes[RANK], strides[RANK > 1 ? RANK - 1 : 1], step = 4;
    unsigned box[RANK];
    for (int d = 0; d < RANK; d++) {
        if (d > 0)
            strides[d - 1] = step;
        sizes[d] = static_cast<unsigned long long>(shape.sizes[d]);
        box[d] = static_cast<unsigned>(shape.box[d]);
        step *= sizes[d];
    }
    rollerc::TensorMap map;
    void *args[] = {&out, &map};
    const cudaError_t status = rollerc::describe_tensor(&map, table, 2, sizes, strides, box);
    return status == cudaSuccess ? launch(teams::teams_ranks<RANK>, 1, 0, 2 * 1024 + 8, args, stream) : status;
}

extern "C" int teams_launch(const void *in0, void *out0, void *, void *stream)
{
    int *out = static_cast<int *>(out0);
    void *args[] = {&in0, &out};
    cudaError_t status = cudaSuccess;
    for (int cluster = 1; cluster <= TEAM_BLOCKS && status == cudaSuccess; cluster *= 2, out += 3 * TEAM_SIZE)
        status = launch(teams::teams_clusters, cluster, 0, TEAM_THREADS * 4, args, stream);
    if (status == cudaSuccess)
        status = launch(teams::teams_far, 4, 0, FAR_BYTES + TEAM_THREADS * 4, args, stream);
    out += 3 * TEAM_SIZE;
    if (status == cudaSuccess)
        status = cudaLaunchCooperativeKernel(teams::teams_grid, dim3(TEAM_BLOCKS), dim3(TEAM_THREADS), args, 0,
                                             static_cast<cudaStream_t>(stream));
    out += 3 * TEAM_SIZE;
    if (status == cudaSuccess)
        status = launch(teams::teams_both, 2, 1, TEAM_THREADS * 4, args, stream);
    out += 6 * TEAM_SIZE;
    rollerc::TensorMap half;
    void *boxes[] = {&out, &half};
    if (status == cudaSuccess)
        status = rollerc::describe_tensor(&half, in0, 2, {BOX_X, BOX_Y, BOX_Z}, {BOX_X * 4, BOX_X * BOX_Y * 4}, {32, 8, 1});
    if (status == cudaSuccess)
        status = launch(teams::teams_boxes, 2, 0, 3 * 1024 + 64, boxes, stream);
    out += 3 * TEAM_SIZE;
    void *floats[] = {&out, &half};
    if (status == cudaSuccess)
        status = launch(teams::teams_floats, 1, 0, 0, floats, stream);
    if (status == cudaSuccess)
        status = rollerc::describe_tensor(&half, out, 11, {32, 8, 1}, {128, 1024}, {32, 8, 1});
    if (status == cudaSuccess)
        status = launch(teams::teams_rounded, 1, 0, 2 * 1024 + 8, floats, stream);
    out += 2 * ROUNDED;
    cudaError_t (*const ranks[])(const void *, int *, void *) = {launch_ranks<1>, launch_ranks<2>, launch_ranks<3>, launch_ranks<4>,
                                                                 launch_ranks<5>};
    for (int rank = 1; rank <= RANKS && status == cudaSuccess; rank++, out += 256)
        status = ranks[rank - 1](in0, out, stream);
    if (status == cudaSuccess)
        status = rollerc::describe_pixels<3>(&half, in0, 2, {BOX_X, 5, 8}, {96, 480}, {-1}, {-1}, {2}, 16);
    if (status == cudaSuccess)
        status = launch(teams::teams_lines, 1, 0, 3 * 1024 + 8, boxes, stream);
    out += PIXELS;
    if (status == cudaSuccess)
        status = rollerc::describe_pixels<4>(&half, in0, 2, {BOX_X, 5, 2, 4}, {96, 480, 960}, {-1, 0}, {-1, 0}, {2, 1}, 16);
    if (status == cudaSuccess)
        status = launch(teams::teams_planes, 1, 0, 3 * 1024 + 8, boxes, stream);
    out += PIXELS;
    if (status == cudaSuccess)
        status = rollerc::describe_pixels<5>(&half, in0, 2, {BOX_X, 5, 2, 2, 2}, {96, 480, 960, 1920}, {-1, 0, 0}, {-1, 0, 0}, {2, 1, 1}, 16);
    if (status == cudaSuccess)
        status = launch(teams::teams_solids, 1, 0, 3 * 1024 + 8, boxes, stream);
    return static_cast<int>(status);
}
