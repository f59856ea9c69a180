// ---- outside of the namespace: the header of HIP programs ----

#if defined(__HIP__) && !defined(__HIPCC_RTC__)
#include <hip/hip_runtime.h>
#endif
