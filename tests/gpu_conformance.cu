// Every intrinsic of the prelude on this GPU is what tests/conformance says.
//
//   nvcc -arch=native tests/gpu_conformance.cu tests/conformance/kernel.cu -o gpu_conformance && ./gpu_conformance
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#include "conformance/expected.h"

extern "C" int conformance_launch(const void *table, void *out, void *workspace, void *stream);

static void require(cudaError_t status)
{
    if (status != cudaSuccess) {
        std::printf("%s\n", cudaGetErrorString(status));
        std::exit(1);
    }
}

int main()
{
    std::vector<unsigned char> table(TABLE_BYTES);
    for (int i = 0; i < TABLE_BYTES; i++)
        table[i] = byte_of(i);
    std::vector<uint64_t> out(output_count());
    const size_t out_bytes = out.size() * sizeof out[0];
    void *in_memory, *out_memory;
    require(cudaMalloc(&in_memory, table.size()));
    require(cudaMalloc(&out_memory, out_bytes));
    require(cudaMemcpy(in_memory, table.data(), table.size(), cudaMemcpyHostToDevice));
    require(cudaMemset(out_memory, 0xff, out_bytes));
    require(static_cast<cudaError_t>(conformance_launch(in_memory, out_memory, nullptr, nullptr)));
    require(cudaMemcpy(out.data(), out_memory, out_bytes, cudaMemcpyDeviceToHost));
    const int failed = failed_checks(out.data());
    std::printf("%d passed, %d failed\n", CHECK_COUNT - failed, failed);
    return failed ? 1 : 0;
}
