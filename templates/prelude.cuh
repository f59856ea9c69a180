// The prelude of every generated kernel: element types, scalar operations, and the few machine
// instructions in use.
//
// No headers: it compiles in milliseconds, with nvcc (sm_75 and later), NVRTC, HIP (gfx906 and later)
// and, when ROLLERC_INTERP is defined, as host C++: threadIdx, shuffles and barriers then come from a
// stand-in included before. Everything is static: two generated files link into one program.
//
// A kernel's file holds what stands between the marker lines, and of each #include the parts that the kernel uses. A part
// is what stands between two blank lines outside of braces and #if. It is taken where a name that it declares occurs in the
// kernel or in a part that is taken; an overload or a specialisation for a type of the prelude, only where that type
// occurs, too. Hence the parts of a file use what stands above them, and in the files named above.
#ifndef ROLLERC_PRELUDE
#define ROLLERC_PRELUDE

// <rollerc: prelude>
#if defined(__HIP__) && !defined(__HIPCC_RTC__)
#include <hip/hip_runtime.h>
#endif

#include "prelude/language.cuh"

namespace rollerc {

#include "prelude/threads.cuh"
#include "prelude/cluster.cuh"
#include "prelude/types.cuh"
#include "prelude/half.cuh"
#include "prelude/memory.cuh"
#include "prelude/words.cuh"
#include "prelude/bits.cuh"
#include "prelude/arithmetic.cuh"
#include "prelude/functions.cuh"
#include "prelude/async.cuh"
#include "prelude/reductions.cuh"

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
