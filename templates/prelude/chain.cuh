// ---- launches that begin while the one before them ends; the interpreter's stand-in has them, too ----

// Of a program of several launches one may begin early: its blocks take what room there is as soon as all blocks of the
// launch before it have called let_next_begin(). How far the earlier launches are, nobody knows until wait_for_earlier()
// returns:
//
//   launch 0   let_next_begin();                       …  write a
//   launch 1   let_next_begin();  wait_for_earlier();  …  read a, write b    // launch 0 has ended: its results are there
//   launch 2                      wait_for_earlier();  …  read a and b       // launch 1 has ended, so launch 0 has, too
//
// A launch that touches nothing of theirs waits at its end instead: whoever waits for it relies on its having waited.
// Where a launch did not begin early (begins_early(), the launcher's), nobody waits.
#ifndef ROLLERC_INTERP
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
DEVICE void let_next_begin() { asm volatile("griddepcontrol.launch_dependents;"); }
DEVICE void wait_for_earlier() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
#else
DEVICE void let_next_begin() {}
DEVICE void wait_for_earlier() {}
#endif
#endif

// However the kernel is left.
struct WaitsAtItsEnd {
    __device__ __forceinline__ ~WaitsAtItsEnd() { wait_for_earlier(); }
};
