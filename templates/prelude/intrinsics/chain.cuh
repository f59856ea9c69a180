// ---- programmatic dependent launch ----
//
// A block must not read what earlier launches wrote before wait_for_earlier() has returned:
//
//   launch 0   wait_for_earlier();  let_next_begin();  …  write a            // all earlier work in the stream has completed
//   launch 1   wait_for_earlier();  let_next_begin();  …  read a, write b    // launch 0 has completed
//   launch 2   wait_for_earlier();                     …  read a and b       // launches 0 and 1 have completed
//
// The next launch may begin once every block of this one has called let_next_begin() or has ended.

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
DEVICE void wait_for_earlier() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
// Behind the wait, in kernels whose loads have addresses that are known early: ptxas moves read-only loads
// (ld.global.nc) above the wait, though its asm is volatile. It moves no load above an exit, since the load
// may fault. No thread takes this exit: no grid is empty.
DEVICE void hold_loads()
{
    asm volatile("{ .reg .pred none;\n  setp.eq.u32 none, %0, 0;\n  @none exit; }" : : "r"(gridDim.x) : "memory");
}
DEVICE void let_next_begin() { asm volatile("griddepcontrol.launch_dependents;"); }
#else
DEVICE void wait_for_earlier() {}
DEVICE void hold_loads() {}
DEVICE void let_next_begin() {}
#endif
