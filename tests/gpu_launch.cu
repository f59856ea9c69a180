// Calls emitted launchers on buffers of exactly the tensors' sizes: what compute-sanitizer watches.
//
//   gpu_launch LIST      each line of LIST: library name workspace-bytes input-count bytes…
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <cuda_runtime.h>

static void check(cudaError_t status, const std::string &what)
{
    if (status != cudaSuccess) {
        std::fprintf(stderr, "%s: %s\n", what.c_str(), cudaGetErrorString(status));
        std::exit(1);
    }
}

// A launcher takes n pointers, the workspace and the stream.
static int call(void *launcher, std::vector<void *> &p)
{
    p.resize(16);   // more than the longest example has; what a function does not take it does not see
    using Launcher = int (*)(void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *,
                             void *, void *, void *, void *);
    return reinterpret_cast<Launcher>(launcher)(p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8], p[9], p[10], p[11],
                                                p[12], p[13], p[14], p[15]);
}

static void launch(const std::string &line)
{
    std::istringstream words(line);
    std::string library, name;
    size_t workspace_bytes, input_count, bytes;
    words >> library >> name >> workspace_bytes >> input_count;
    std::vector<void *> pointers;
    while (words >> bytes) {
        void *buffer = nullptr;
        check(cudaMalloc(&buffer, bytes), name);
        if (pointers.size() < input_count)
            check(cudaMemset(buffer, 0x3c, bytes), name);   // a small positive number in every real type
        pointers.push_back(buffer);
    }
    void *workspace = nullptr;
    if (workspace_bytes)
        check(cudaMalloc(&workspace, workspace_bytes), name);
    std::vector<void *> arguments = pointers;
    arguments.push_back(workspace);
    arguments.push_back(nullptr);

    void *handle = dlopen(library.c_str(), RTLD_NOW);
    void *launcher = handle ? dlsym(handle, (name + "_launch").c_str()) : nullptr;
    if (!launcher) {
        std::fprintf(stderr, "%s: %s\n", name.c_str(), dlerror());
        std::exit(1);
    }
    check(static_cast<cudaError_t>(call(launcher, arguments)), name);
    check(cudaDeviceSynchronize(), name);
    for (void *pointer : pointers)
        cudaFree(pointer);
    cudaFree(workspace);
}

int main(int argc, char **argv)
{
    std::ifstream list(argc > 1 ? argv[1] : "/dev/stdin");
    for (std::string line; std::getline(list, line);)
        launch(line);
    std::puts("all launched");
}
