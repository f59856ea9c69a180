// Files that appear whole or not at all.
//
// Every artefact of a run is first staged in a temporary file beside its target; when all are on the disk
// they are renamed into place. A failure or a signal before that leaves every target as it was, and no
// temporary file behind. A target that already holds the same bytes is not touched, so build tools see that
// nothing changed.
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/file_parts.h"

typedef struct OutputSet OutputSet;

OutputSet *output_set_new(Arena *arena);

/* Stages one file; `bytes` must live until the commit. "-" is stdout. Stdout and what is not a regular file
   (/dev/null, a FIFO) are written at the commit, before the first rename. A symbolic link stays: its target
   is written. */
void output_stage(OutputSet *set, const char *path, const char *bytes, size_t length);
void output_stage_parts(OutputSet *set, const char *path, FileParts parts);

/* Any failure here or while staging: a message and EXIT_MACHINE. */
void output_commit(OutputSet *set);

/* A set of one. */
void output_write(const char *path, const char *bytes, size_t length);

/* One file that may be lost, such as one of a cache, with its temporary file in the same folder. It is old,
   new or missing, and need not be on the disk when this returns. False: it could not be written. */
bool output_try_write(const char *path, const char *bytes, size_t length);

/* To be called first in main(): SIGINT, SIGTERM and SIGHUP clear what must not outlive the process
   (leftovers.h) and exit with 128 + signal, a failed assert() with EXIT_BUG; a crash clears it, too; and a
   failed write to stdout is noticed at exit (EXIT_MACHINE). A write to a pipe that is closed or past
   `ulimit -f` fails as any other, but of stdout's pipe nothing is said: `| head` has read enough. */
void output_install_signals(void);

/* A fresh private folder below $TMPDIR (or /tmp), which leftovers.h removes with all it holds. */
char *temp_dir_make(Arena *arena);
