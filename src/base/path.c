#include "base/path.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_LINKS = 40 };   // as many as Linux follows

/* "out/a.cu" -> 4, "a.cu" -> 0: what stands before the name. */
static int folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (int)(slash - path) + 1 : 0;
}

const char *path_suffix(const char *path)
{
    const char *name = path + folder_length(path), *dot = strrchr(name, '.');
    return dot && dot != name ? dot : name + strlen(name);
}

char *path_stem(Arena *arena, const char *path)
{
    const char *name = path + folder_length(path);
    return arena_strndup(arena, name, (size_t)(path_suffix(path) - name));
}

const char *path_target(Arena *arena, const char *path)
{
    char text[PATH_MAX];
    for (int links = 0; links <= MAX_LINKS; links++) {
        ssize_t length = readlink(path, text, sizeof text - 1);
        if (length < 0)
            return path;   // no link, or nothing
        text[length] = '\0';
        int kept = text[0] == '/' ? 0 : folder_length(path);
        path = arena_printf(arena, "%.*s%s", kept, path, text);
    }
    return NULL;
}

static bool same_inode(const struct stat *left, const struct stat *right)
{
    return left->st_dev == right->st_dev && left->st_ino == right->st_ino;
}

static bool stat_folder(Arena *arena, const char *path, struct stat *status)
{
    return stat(arena_printf(arena, "%.*s.", folder_length(path), path), status) == 0;
}

/* Neither is there: the same name in the same folder. */
static bool same_place(Arena *arena, const char *left, const char *right)
{
    struct stat left_folder, right_folder;
    left = path_target(arena, left);
    right = path_target(arena, right);
    return left && right && strcmp(left + folder_length(left), right + folder_length(right)) == 0 &&
           stat_folder(arena, left, &left_folder) && stat_folder(arena, right, &right_folder) &&
           same_inode(&left_folder, &right_folder);
}

bool path_same(Arena *arena, const char *left, const char *right)
{
    struct stat left_file, right_file;
    if (strcmp(left, right) == 0)
        return true;
    bool left_exists = stat(left, &left_file) == 0, right_exists = stat(right, &right_file) == 0;
    if (!left_exists && !right_exists)
        return same_place(arena, left, right);
    return left_exists && right_exists && same_inode(&left_file, &right_file) &&
           (S_ISREG(left_file.st_mode) || S_ISFIFO(left_file.st_mode));
}

bool path_make_folders(Arena *arena, const char *path)
{
    char *folder = arena_strdup(arena, path);
    for (char *slash = folder + 1; *folder && (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        if (mkdir(folder, 0777) != 0 && errno != EEXIST)
            return false;
        *slash = '/';
    }
    struct stat found;
    return mkdir(folder, 0777) == 0 ||
           (errno == EEXIST && stat(folder, &found) == 0 && S_ISDIR(found.st_mode));
}
