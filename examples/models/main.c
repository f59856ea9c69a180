// A model on one image: rollerc digits.onnx --bind batch=1 --device h200 -o digits.cu --emit header
//     nvcc -arch=sm_90a digits.cu main.c -o digits && ./digits digits.weights image.bin
#include <cuda_runtime.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "digits.h"

enum { CLASSES = digits_shares_bytes / sizeof(float), BEST = 5 };

/* A file of at least so many bytes, on the GPU. */
static void *load(const char *path, size_t bytes)
{
    void *here = malloc(bytes), *there = NULL;
    FILE *file = fopen(path, "rb");
    if (!here || !file || fread(here, 1, bytes, file) != bytes || cudaMalloc(&there, bytes) != cudaSuccess)
        exit(fprintf(stderr, "cannot load %zu bytes of %s\n", bytes, path) != 0);
    cudaMemcpy(there, here, bytes, cudaMemcpyHostToDevice);
    return fclose(file), free(here), there;
}

int main(int argc, char **argv)
{
    float shares[CLASSES];
    void *prepared, *workspace, *out;
    if (argc != 3)
        return fprintf(stderr, "usage: %s WEIGHTS IMAGE\n", argv[0]), 2;
    void *weights = load(argv[1], digits_weights()), *image = load(argv[2], digits_image_bytes);
    cudaMalloc(&prepared, digits_prepared() + 1), cudaMalloc(&workspace, digits_workspace() + 1);
    cudaMalloc(&out, sizeof shares);
    int status = digits_prepare(weights, prepared, workspace, NULL);   // once; the weights are not needed again
    if (!status)
        status = digits_launch(image, prepared, out, workspace, NULL);   // as often as there are images
    if (status || (status = cudaMemcpy(shares, out, sizeof shares, cudaMemcpyDeviceToHost)))
        return fprintf(stderr, "%s\n", cudaGetErrorString((cudaError_t)status)), 1;
    for (int n = 0; n < BEST; n++) {
        int best = 0;
        for (int i = 1; i < CLASSES; i++)
            best = shares[i] > shares[best] ? i : best;
        printf("%d: %.4f\n", best, shares[best]);
        shares[best] = -INFINITY;
    }
    return 0;
}
