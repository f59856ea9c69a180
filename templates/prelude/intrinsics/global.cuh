// ---- outside of the namespace: the header of HIP programs, and a block's dynamic shared memory ----

#if defined(__HIP__) && !defined(__HIPCC_RTC__)
#include <hip/hip_runtime.h>
#endif

extern __shared__ __align__(16) unsigned char rollerc_shared[];
