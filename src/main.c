// Arguments in, exit code out.
#include <string.h>

#include "base/diag.h"
#include "base/output.h"
#include "batch/batch.h"
#include "calibrate.h"
#include "driver.h"
#include "import.h"
#include "options.h"

int main(int argc, char **argv)
{
    output_install_signals();
    if (argc > 1 && strcmp(argv[1], "batch") == 0)
        return batch(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "import") == 0)
        return import_main(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "calibrate") == 0)
        return calibrate_main(argc - 1, argv + 1);
    Arena *arena = arena_new();
    Options *options = options_parse(arena, argc, argv);
    diag_configure(
        (DiagOptions){.quiet = options->quiet, .verbose = options->verbose, .colour = options->colour});
    int exit_code = options->explains_file ? explain(options) : compile(options, NULL);
    arena_free(arena);
    return exit_code;
}
