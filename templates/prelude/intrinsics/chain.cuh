// ---- launches that begin while the one before them ends ----

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
// Blocks of a launch that begins early come as those before it in the stream end. What those wrote is there behind this.
DEVICE void wait_for_earlier() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

// A launch may begin early: its blocks take what room there is as soon as all blocks of the one before it have ended or
// called this. How far the earlier launches are, nobody knows until wait_for_earlier() returns:
//
//   launch 0   wait_for_earlier();  let_next_begin();  …  write a            // all that the stream did before has ended
//   launch 1   wait_for_earlier();  let_next_begin();  …  read a, write b    // launch 0 has ended: its results are there
//   launch 2   wait_for_earlier();                     …  read a and b       // launch 1 has ended, so launch 0 has, too
//
// A launch that touches nothing of those before it in its program waits at its end instead: whoever waits for it relies
// on its having waited. It may touch what earlier calls used: launch 0 let it begin when those had ended.
// Where a launch did not begin early (begins_early(), the launcher's), nobody waits.
DEVICE void let_next_begin() { asm volatile("griddepcontrol.launch_dependents;"); }
#else
DEVICE void wait_for_earlier() {}
DEVICE void let_next_begin() {}
#endif
