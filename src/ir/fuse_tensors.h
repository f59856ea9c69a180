// How many tensors a kernel touches: they are its arguments, and each takes a pointer.
#pragma once
#include "ir/fuse.h"

/* 4096 bytes of arguments are what every CUDA takes: 512 pointers. Some are left for what kernels leave for
   each other when they are cut. */
enum { MAX_KERNEL_TENSORS = 480 };

typedef struct KernelTensors {
    const TensorOp *const *definition;   // by tensor id
    const bool *inlined;                 // by tensor id: folded into its readers
    struct TensorList *touched;          // by kernel
    int *marks;                          // by tensor id: the last count that met it
    int counts;                          // so far
    int *room;                           // for the ids of one count
} KernelTensors;

KernelTensors tensors_new(Arena *arena, const Program *program, const TensorOp *const *definition,
                          const bool *inlined);

/* The kernel has arguments left for what the definition makes and reads. */
bool tensors_fit(KernelTensors *tensors, int kernel, const TensorOp *op);

/* Takes the definition into the kernel. One that touches too many tensors by itself is an error of the
   user's. */
void tensors_add(Arena *arena, KernelTensors *tensors, int kernel, const TensorOp *op);
