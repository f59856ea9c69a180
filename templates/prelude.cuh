// The prelude of every generated kernel: element types, scalar operations, and the few machine
// instructions in use.
//
// No headers: it compiles in milliseconds, with nvcc (sm_75 and later), NVRTC and HIP (gfx906 and later).
// What only these have is in intrinsics/; the other parts are plain C++. The interpreter defines
// ROLLERC_INTERP, has intrinsics of its own and compiles the rest as it stands. Everything is static, and an
// emitted file calls the namespace NAME_prelude: several of them may be included by one file, and link.
//
// A kernel's file holds of each #include between the marker lines the definitions that the kernel uses: src/codegen/cuda/trim.h
// says how they are found. What stands between two blank lines is a paragraph; a comment above its first definition is about
// all of it. Definitions use what stands above them, and in the files named above.
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
