#include "codegen/cuda/names.h"

#include <ctype.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/words.h"
#include "codegen/cuda/token.h"

/* Words of C, C++ and CUDA, and macros that headers define in lower case. */
static const char WORDS[] = "alignas alignof and and_eq asm assert auto bitand bitor bool break case catch "
                            "char char16_t char32_t char8_t class "
                            "co_await co_return co_yield compl concept const const_cast consteval constexpr "
                            "constinit continue decltype default "
                            "delete do double dynamic_cast else enum errno explicit export extern false "
                            "float for friend goto if inline int linux "
                            "long mutable namespace new noexcept not not_eq nullptr operator or or_eq "
                            "private protected public register "
                            "reinterpret_cast requires restrict return short signed sizeof static "
                            "static_assert static_cast struct switch template "
                            "this thread_local throw true try typedef typeid typename union unix unsigned "
                            "using virtual void volatile wchar_t while "
                            "xor xor_eq NULL NAN INFINITY EOF main std blockDim blockIdx dim3 gridDim "
                            "threadIdx warpSize rollerc rollerc_shared";

/* Macros of the headers that nvcc reads before any file and that a kernel's file includes: <limits.h>, <stdint.h>,
   <float.h>, <math.h>, <stdio.h>, <stdlib.h>, <time.h>, <endian.h>. */
static const char MACROS[] = "CHAR_BIT CHAR_MAX CHAR_MIN INT_MAX INT_MIN LLONG_MAX LLONG_MIN LONG_BIT LONG_MAX LONG_MIN MB_LEN_MAX "
                             "SCHAR_MAX SCHAR_MIN SHRT_MAX SHRT_MIN SSIZE_MAX UCHAR_MAX UINT_MAX ULLONG_MAX ULONG_MAX USHRT_MAX "
                             "WORD_BIT LINE_MAX NAME_MAX PATH_MAX PIPE_BUF "
                             "INT8_MAX INT8_MIN UINT8_MAX INT16_MAX INT16_MIN UINT16_MAX INT32_MAX INT32_MIN UINT32_MAX INT64_MAX "
                             "INT64_MIN UINT64_MAX SIZE_MAX "
                             "FLT_EPSILON FLT_MAX FLT_MIN DBL_EPSILON DBL_MAX DBL_MIN "
                             "M_1_PI M_2_PI M_2_SQRTPI M_E M_LN10 M_LN2 M_LOG10E M_LOG2E M_PI M_PI_2 M_PI_4 M_SQRT1_2 M_SQRT2 "
                             "FP_INFINITE FP_NAN FP_NORMAL FP_SUBNORMAL FP_ZERO HUGE_VAL HUGE_VALF MAXFLOAT SNAN OVERFLOW UNDERFLOW "
                             "DOMAIN SING math_errhandling "
                             "BUFSIZ FILENAME_MAX FOPEN_MAX SEEK_CUR SEEK_END SEEK_SET TMP_MAX L_tmpnam P_tmpdir stderr stdin stdout "
                             "EXIT_FAILURE EXIT_SUCCESS MB_CUR_MAX RAND_MAX CLOCKS_PER_SEC TIMER_ABSTIME TIME_UTC "
                             "BIG_ENDIAN BYTE_ORDER LITTLE_ENDIAN PDP_ENDIAN";

struct Names {
    Arena *arena;
    const Names *outer;   // whose words are known, too
    WordTable words;   // of whatever is not NULL: they are known
    WordTable given;   // numbered ones, and their names
};

static bool has(const Names *names, Slice word)
{
    while (names && !word_find(&names->words, word))
        names = names->outer;
    return names != NULL;
}

void names_avoid_word(Names *names, Slice word) { *word_place(&names->words, word) = names; }

Names *names_new(Arena *arena)
{
    enum { CAPACITY = 2048 };   // more than twice C++, the headers and the prelude, which are 600
    Names *names = NEW(arena, Names);
    *names = (Names){.arena = arena, .words = word_table_new(arena, CAPACITY), .given = {.arena = arena}};
    names_avoid(names, WORDS);
    names_avoid(names, MACROS);
    return names;
}

Names *names_within(const Names *outer)
{
    Names *names = NEW(outer->arena, Names);
    *names = (Names){
        .arena = outer->arena, .outer = outer, .words = {.arena = outer->arena}, .given = {.arena = outer->arena}};
    return names;
}

void names_avoid(Names *names, const char *text)
{
    Slice rest = slice_of(text), token;
    bool is_member = false;   // x of threadIdx.x
    while (token_read(&rest, &token)) {
        if (is_name(token) && !is_member)
            names_avoid_word(names, token);
        is_member = *token.start == '.';
    }
}

bool names_has(const Names *names, const char *word) { return has(names, slice_of(word)); }

/* A temporary that rollerc made is called "y.1". */
static char *as_word(Arena *arena, const char *name)
{
    char *word = arena_strdup(arena, name);
    for (char *c = word; *c; c++)
        if (!isalnum((unsigned char)*c))
            *c = '_';
    return word;
}

void names_give(Names *names, const char *numbered, const char *wanted)
{
    char *name = as_word(names->arena, wanted);
    while (has(names, slice_of(name)))
        name = arena_printf(names->arena, "%s_", name);
    names_avoid_word(names, slice_of(name));
    void **given = word_place(&names->given, slice_of(numbered));
    *given = *given ? *given : name;
}

const char *names_find(const Names *names, const char *numbered)
{
    return word_find(&names->given, slice_of(numbered));
}

const char *names_put(const Names *names, const char *text)
{
    StrBuf out = strbuf_new(names->arena);
    Slice rest = slice_of(text), token;
    const char *written = text;
    while (token_read(&rest, &token)) {
        bool is_numbered = is_name(token) && isdigit((unsigned char)token.end[-1]);
        const char *name = is_numbered ? word_find(&names->given, token) : NULL;
        if (!name)
            continue;
        strbuf_write(&out, written, (size_t)(token.start - written));
        strbuf_puts(&out, name);
        written = token.end;
    }
    strbuf_puts(&out, written);
    return out.text;
}
