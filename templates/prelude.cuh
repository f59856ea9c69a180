// The prelude of every generated kernel: element types, scalar operations, and the few machine
// instructions in use.
//
// No headers: it compiles in milliseconds, with nvcc (sm_75 and later), NVRTC, HIP (gfx906 and later)
// and, when ROLLERC_INTERP is defined, as host C++: threadIdx, shuffles and barriers then come from a
// stand-in included before. Everything is static: two generated files link into one program.
//
// A kernel's file holds of each #include between the marker lines the definitions that the kernel uses: src/codegen/cuda/trim.h
// says how they are found. What stands between two blank lines is a paragraph; a comment above its first definition is about
// all of it. Definitions use what stands above them, and in the files named above.
#ifndef ROLLERC_PRELUDE
#define ROLLERC_PRELUDE

// <rollerc: prelude>
#include "prelude/language.cuh"

namespace rollerc {

#include "prelude/threads.cuh"
#include "prelude/half.cuh"
#include "prelude/cluster.cuh"
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
#include "prelude/bulk.cuh"
#include "prelude/reductions.cuh"
#include "prelude/planes.cuh"
#include "prelude/strips.cuh"

}   // namespace rollerc

#include "prelude/launch.cuh"
// </rollerc>

#endif   // ROLLERC_PRELUDE

// A template compiles as it stands; rollerc gives each launch its own names.
#ifndef KERNEL
#define KERNEL kernel_default
#endif
#ifndef ENTRY
#define ENTRY entry_default
#endif
