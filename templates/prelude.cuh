// The prelude of every generated kernel: element types, scalar operations, and wrappers of machine instructions.
//
// It includes no headers and compiles in milliseconds with nvcc (sm_75 and later), NVRTC and HIP (gfx906 and later).
// Device code is in intrinsics/; the other parts are plain C++. The interpreter defines ROLLERC_INTERP, replaces the
// intrinsics and compiles the rest unchanged. Everything is static, and an emitted file names the namespace
// NAME_prelude, so that objects of several emitted files link; macros are the same in all of them.
//
// An emitted file has only the definitions that its kernels use, from each #include between the marker lines;
// src/codegen/cuda/trim.h says how they are found. Lines between two blank lines are a paragraph; a comment above its
// first definition belongs to all of it. A definition uses only what precedes it, in its file or in files above.
#ifndef ROLLERC_PRELUDE
#define ROLLERC_PRELUDE

// <rollerc: prelude>
#ifndef ROLLERC_INTERP
#include "prelude/intrinsics/global.cuh"
#endif
#include "prelude/language.cuh"

namespace rollerc {

#ifndef ROLLERC_INTERP   // src/hal/interp/intrinsics.h
#include "prelude/intrinsics/threads.cuh"
#include "prelude/intrinsics/half.cuh"
#include "prelude/intrinsics/cluster.cuh"
#include "prelude/intrinsics/chain.cuh"
#include "prelude/intrinsics/memory.cuh"
#include "prelude/intrinsics/async.cuh"
#include "prelude/intrinsics/mma.cuh"
#include "prelude/intrinsics/wgmma.cuh"
#include "prelude/intrinsics/bulk.cuh"
#include "prelude/intrinsics/launch.cuh"
#endif
#include "prelude/half.cuh"
#include "prelude/chain.cuh"
#include "prelude/types.cuh"
#include "prelude/memory.cuh"
#include "prelude/words.cuh"
#include "prelude/bits.cuh"
#include "prelude/arithmetic.cuh"
#include "prelude/functions.cuh"
#include "prelude/async.cuh"
#include "prelude/mma.cuh"
#include "prelude/wgmma.cuh"
#include "prelude/reductions.cuh"
#include "prelude/row_tiles.cuh"
#include "prelude/streams.cuh"
#include "prelude/planes.cuh"
#include "prelude/strips.cuh"
#include "prelude/launches.cuh"

}   // namespace rollerc
// </rollerc>

#endif   // ROLLERC_PRELUDE

// A template compiles as it stands; rollerc gives each launch its own names.
#ifndef KERNEL
#define KERNEL kernel_default
#endif
#ifndef ENTRY
#define ENTRY entry_default
#endif
#ifndef BOUNDS
#define BOUNDS THREADS
#endif
