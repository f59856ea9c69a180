// Which file a name leads to: one file may have many names.
#pragma once
#include <stdbool.h>

#include "base/arena.h"

/* "models/softmax.te" -> ".te", "models.d/softmax" -> "": the end of the path from its last dot. */
const char *path_suffix(const char *path);

/* "models/softmax.te" -> "softmax" */
char *path_stem(Arena *arena, const char *path);

/* The path behind symbolic links, also where nothing is there yet; NULL: they go in circles. */
const char *path_target(Arena *arena, const char *path);

/* Do both names lead to one file or pipe, or would they once it is written? A terminal or /dev/null is the
   same only under the very same name, since nothing there is overwritten. */
bool path_same(Arena *arena, const char *left, const char *right);

/* Makes a folder with all those before it that are missing; false, with errno: it cannot be made. */
bool path_make_folders(Arena *arena, const char *path);
