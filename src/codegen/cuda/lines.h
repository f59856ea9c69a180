// The lines of CUDA text as one device sees them. A kernel is made for one device, so most conditions of the
// prelude are settled when its file is written: `#if __CUDA_ARCH__ >= 800` stays as its branch alone, and the
// branch remembers what it asked for. What only the compiler knows stays a directive:
//
//   #if defined(__CUDACC_RDC__)               #if defined(__CUDACC_RDC__)
//       a                                         a
//   #elif __CUDA_ARCH__ >= 900                #else
//       b                            sm_90:       b          asks for 900
//   #else                                     #endif
//       c
//   #endif
#pragma once
#include "base/arena.h"
#include "codegen/cuda/token.h"
#include "hal/device.h"

/* What a file is written for. */
typedef struct TextTarget {
    bool hip;
    int arch;   // as __CUDA_ARCH__ has it: 900; 0 for HIP
    bool fast_math;
    bool keeps_lines;   // what is skipped inside of a definition leaves blank lines
} TextTarget;

TextTarget target_of(const DeviceSpec *device, bool fast_math);

typedef struct Line {
    Slice text;
    int number;          // in the file
    bool is_directive;   // an #if that is not settled, its #else or #endif
    int arch;            // what its settled conditions asked for; 0: nothing
} Line;

enum { MAX_CONDITIONS = 8 };   // inside of each other

typedef struct Condition {
    bool was_live;           // the lines around it
    bool settled;            // a branch that is taken has been seen: no other one is
    bool open;               // a branch that is not settled has been written
    const char *text;        // of the branch; NULL: it is settled and the first one
    const char *otherwise;   // what holds in the branches that follow; NULL: anything
    int arch;
} Condition;

typedef struct LineReader {
    Arena *arena;
    const TextTarget *target;
    Slice rest;
    int number;
    bool live;
    int depth;
    Condition conditions[MAX_CONDITIONS];
} LineReader;

LineReader lines_of(Arena *arena, const TextTarget *target, Slice text);

/* The next line that is not known to be skipped; false at the end. */
bool line_next(LineReader *reader, Line *line);

/* What must hold where the reader is, of what is not settled: "!defined(__CUDACC_RTC__)"; NULL: nothing. */
const char *line_condition(const LineReader *reader);

/* `#ifndef __CUDACC_RTC__` */
const char *condition_opening(Arena *arena, const char *condition);
