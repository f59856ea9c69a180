// Compiles an emitted .cu together with the host's twin of CUDA into a shared object, with the C++ compiler at hand.
#pragma once
#include "hal/runtime.h"

/* RUNTIME_WRONG: the compiler refuses the text, and `reason` quotes it. */
RuntimeStatus interp_compile(Arena *arena, const RuntimeSource *source, const char **object, const char **reason);
