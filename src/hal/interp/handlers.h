// What -fsanitize=signed-integer-overflow,alignment,bounds calls: GPUs wrap and forgive nothing of the kind,
// but an index that overflows 32 bits points elsewhere, a vector access that is not aligned faults, and what
// lies behind an array in registers is nobody's. Most builds trap instead (interp_compile.c) and have none of it.
#ifdef ROLLERC_HANDLERS
namespace rollerc_interp {

struct CheckedPlace {        // how the compiler describes a place; its type follows
    const char *file;
    unsigned line, column;
};

}   // namespace rollerc_interp

#define ROLLERC_TRAP(name, what)                                                                     \
    extern "C" __attribute__((visibility("hidden"), used, noreturn)) void                            \
    __ubsan_handle_##name##_abort(rollerc_interp::CheckedPlace *place)                               \
    {                                                                                                \
        rollerc_interp::trap({place->file, static_cast<int>(place->line)}, what);                    \
        __builtin_unreachable();                                                                     \
    }

ROLLERC_TRAP(add_overflow, "a sum overflows its integer type")
ROLLERC_TRAP(sub_overflow, "a difference overflows its integer type")
ROLLERC_TRAP(mul_overflow, "a product overflows its integer type")
ROLLERC_TRAP(negate_overflow, "a negation overflows its integer type")
ROLLERC_TRAP(divrem_overflow, "a division overflows its integer type")
ROLLERC_TRAP(type_mismatch_v1, "a misaligned access")
ROLLERC_TRAP(out_of_bounds, "an index past the end of an array")
#endif
