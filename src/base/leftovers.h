// What must not outlive a process: its temporary files and folders, and its children with the groups that
// they lead.
//
// A process shares the table with all that it forks. So whoever waits for a child removes what it left, also
// if it was killed.
#pragma once
#include <sys/types.h>

/* Makes the table, which the forks after it share; at exit it is cleared. The others do so where it is
   missing. */
void leftovers_share(void);

/* The row of a temporary file or folder: a copy of `path` in it, for mkostemp() or mkdtemp() to complete. */
char *leftovers_add_path(const char *path);

/* By what leftovers_add_path() returned: the path is gone, or no longer temporary. */
void leftovers_drop_path(const char *path);

/* A child that leads a group of its own, or will at once. */
void leftovers_add_child(pid_t child);

/* It has been waited for; what it left is ended and removed. */
void leftovers_drop_child(pid_t child);

/* Ends this process's children, first by SIGTERM, so that they can do the same, and removes its paths. Only
   system calls: signal handlers may call it. */
void leftovers_clear(void);
