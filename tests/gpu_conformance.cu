// Every intrinsic of the prelude on this GPU is what tests/conformance says.
//
//   nvcc -arch=native tests/gpu_conformance.cu tests/conformance/kernel.cu tests/conformance/teams.cu && ./a.out
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#include "conformance/expected.h"
#include "conformance/teams.h"

using Launcher = int(const void *table, void *out, void *workspace, void *stream);
extern "C" Launcher conformance_launch;
extern "C" Launcher teams_launch;

static void require(cudaError_t status)
{
    if (status != cudaSuccess) {
        std::printf("%s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

template <class In, class Out> static std::vector<Out> run(Launcher *launcher, const std::vector<In> &table, int out_count)
{
    std::vector<Out> out(out_count);
    const size_t in_bytes = table.size() * sizeof(In), out_bytes = out.size() * sizeof(Out);
    void *in_memory, *out_memory;
    require(cudaMalloc(&in_memory, in_bytes));
    require(cudaMalloc(&out_memory, out_bytes));
    require(cudaMemcpy(in_memory, table.data(), in_bytes, cudaMemcpyHostToDevice));
    require(cudaMemset(out_memory, 0xff, out_bytes));
    require(static_cast<cudaError_t>(launcher(in_memory, out_memory, nullptr, nullptr)));
    require(cudaMemcpy(out.data(), out_memory, out_bytes, cudaMemcpyDeviceToHost));
    require(cudaFree(in_memory));
    require(cudaFree(out_memory));
    return out;
}

static int failed_intrinsics()
{
    std::vector<unsigned char> table(TABLE_BYTES);
    for (int i = 0; i < TABLE_BYTES; i++)
        table[i] = byte_of(i);
    return failed_checks(run<unsigned char, uint64_t>(conformance_launch, table, (int)output_count()).data());
}

static int failed_teams()
{
    std::vector<int> table(TEAM_SIZE);
    for (int i = 0; i < TEAM_SIZE; i++)
        table[i] = team_value(i);
    const std::vector<int> seen = run<int, int>(teams_launch, table, TEAM_OUTPUTS);
    int wrong = 0;
    for (int n = 0; n < TEAM_OUTPUTS; n++)
        wrong += seen[n] != team_output(n);
    if (wrong)
        std::printf("clusters and cooperative grids: %d of %d numbers are wrong\n", wrong, TEAM_OUTPUTS);
    return wrong != 0;
}

int main()
{
    int capability = 0;
    require(cudaDeviceGetAttribute(&capability, cudaDevAttrComputeCapabilityMajor, 0));
    const bool has_clusters = capability >= 9;
    const int failed = failed_intrinsics() + (has_clusters ? failed_teams() : 0);
    std::printf("%d passed, %d failed\n", CHECK_COUNT + has_clusters - failed, failed);
    return failed ? 1 : 0;
}
