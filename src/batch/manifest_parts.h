// Between the two files that read a manifest: manifest.c its kernels, manifest_options.c what becomes words
// of their command lines.
#pragma once
#include "batch/manifest.h"
#include "hal/yaml.h"

enum {
    MAX_WORDS = MAX_PARAMS + 32   // of one command line: the defines and a dozen others
};

/* What is being read, down to the entry that comes next. */
typedef struct ManifestReader {
    Arena *arena;
    Arena *scratch;   // for command lines that are only checked
    Manifest *manifest;
    int capacity;
    int folder_length;   // of the manifest's path, before its name
    const char *path;
    const YamlNode *root, *kernel;
    const char *expr;
    ParamOverride defines[MAX_PARAMS];
    int define_count;
} ManifestReader;

/* A command line in the making. */
typedef struct Words {
    Arena *arena;
    char *list[MAX_WORDS];
    int count;
} Words;

/* As it is from the current folder; no path looks like an option. */
const char *beside_manifest(const ManifestReader *reader, const char *path);

/* An expression that is an ONNX model. */
bool is_model(const char *expr);

/* A size of it: of a model that of a symbolic dimension. */
const char *define_word(Arena *arena, const char *expr, const char *name, const char *text);

/* As rollerc tells a file from the name of a built-in device. */
bool is_device_file(const char *device);

void add_word(Words *words, const char *word);
Words begin_words(Arena *arena, const char *expr, const char *device);

/* Wrong words are an error at the place that they come from. */
const Options *check_words(Arena *arena, Words *words, Loc loc);

/* One word alone, for an error that points at it. */
void check_word(ManifestReader *reader, const char *word, Loc loc);

/* The `options:` of the manifest or of a kernel. */
void check_options(ManifestReader *reader, const YamlNode *mapping);

/* Each by itself: the kernel's, or else the manifest's. */
void add_options(ManifestReader *reader, Words *words, Entry *entry);
