// A manifest is a YAML file of many kernels: expressions × defines × devices. Each of them is an entry: one
// command line of rollerc, which is all that is known of it from here on. doc/batch.md describes the file.
#pragma once
#include "base/source.h"
#include "front/lower.h"
#include "options.h"

enum { MAX_ENTRIES = 100000 };   // a few minutes; more are a slip in a list of defines

typedef struct Entry {
    const char *expr, *device, *name;
    const char *device_file;   // NULL: a built-in device
    const char *templates;     // a folder, or NULL: the built-in ones
    ParamOverride *defines;
    int define_count;
    const char *output;        // the main artefact, which no two entries share: what an entry is known by
    const char **files;        // all artefacts, the output first, ended by NULL
    int file_count;
    bool machine_code;         // is made by NVRTC
    bool profiled;             // is timed on the GPU
    char **words;              // the command line; words[0] is "rollerc"
    int word_count;
    Loc loc;                   // in the manifest
} Entry;

typedef struct Manifest {
    Entry *entries;   // in the order of the file
    int count;
} Manifest;

/* What is wrong with the manifest, the command lines it stands for, or the files that it names is an error
   with EXIT_INPUT. */
Manifest manifest_read(Arena *arena, const char *path);
