// The best five classes: nvcc -arch=sm_90a digits.cu main.c -o digits && ./digits digits.weights < image.bin
#include <cuda_runtime.h>
#include <err.h>
#include <math.h>
#include <stdio.h>
#include "digits.h"   // rollerc digits.onnx --bind batch=1 --device h200 -o digits.cu --emit header

int main(int argc, char **argv)
{
    void *weights, *image, *shares, *prepared, *workspace;
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    if (cudaMallocManaged(&weights, digits_weights(), cudaMemAttachGlobal) ||   // the CPU's and the GPU's
        cudaMallocManaged(&image, digits_image_bytes, cudaMemAttachGlobal) ||
        cudaMallocManaged(&shares, digits_shares_bytes, cudaMemAttachGlobal) ||
        cudaMalloc(&prepared, digits_prepared()) || cudaMalloc(&workspace, digits_workspace()))
        errx(1, "%s", cudaGetErrorString(cudaGetLastError()));
    if (!file || !fread(weights, digits_weights(), 1, file) || !fread(image, digits_image_bytes, 1, stdin))
        errx(1, "usage: %s WEIGHTS < IMAGE", argv[0]);
    int status = digits_prepare(weights, prepared, workspace, NULL);   // once; then any number of images
    status = status ? status : digits_launch(image, prepared, shares, workspace, NULL);
    if (status || (status = cudaDeviceSynchronize()))
        errx(1, "%s", cudaGetErrorString(status));
    for (int n = 0; n < 5; n++) {
        float *best = shares, *end = best + digits_shares_bytes / sizeof *best;
        for (float *share = shares; share < end; share++)
            best = *share > *best ? share : best;
        printf("%td: %.4f\n", best - (float *)shares, *best);
        *best = -INFINITY;
    }
}
