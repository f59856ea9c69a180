#include "calibrate.h"

#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/output.h"
#include "clock/find_gpu.h"
#include "clock/micro.h"
#include "hal/device_fields.h"
#include "option_error.h"
#include "option_parts.h"

// ---- the command line ----

enum { KEY_DEVICE = 256, KEY_FORCE, KEY_COLOUR, KEY_USAGE };

// clang-format off
static const struct argp_option table[] = {
    {0, 0, 0, 0, "Input and output:", 1},
    {"device", KEY_DEVICE, "NAME", 0,
     "The built-in device that the GPU here is: its limits, and all that is not measured, are taken "
     "from there", 1},
    {"output", 'o', "FILE", 0, "The device file; - is stdout. Default: NAME.yaml in the current folder", 1},
    {"force-device", KEY_FORCE, 0, 0, "Measure a GPU that does not match the device file", 1},

    {0, 0, 0, 0, "Messages:", 2},
    {"quiet", 'q', 0, 0, "Say nothing but errors", 2},
    {"color", KEY_COLOUR, "WHEN", 0, "auto (default), always or never", 2},

    {0, 0, 0, 0, "Help:", -1},
    {"help", 'h', 0, 0, "Give this help", -1},
    {"usage", KEY_USAGE, 0, 0, "Give a short usage message", -1},
    {0},
};
// clang-format on

static const char manual[] = "Measure the GPU of this machine with kernels that each do one thing, and write "
                             "what they show as a device file.\v"
                             "It takes less than a minute; nothing else should run on the GPU. The file says "
                             "`like: NAME' and what was measured, each number "
                             "with its spread; `rollerc EXPR.te --device ./FILE.yaml' takes it.\n\n"
                             "Exit codes: 0 done, 1 the device file is wrong, 2 wrong usage, 4 the machine "
                             "lacks something: a GPU, NVRTC.";

static error_t read_option(int key, char *value, struct argp_state *state)
{
    CommandLine *line = state->input;
    switch (key) {
    case ARGP_KEY_ARG: usage_error("calibrate takes no file: '%s' is given", value);
    case KEY_DEVICE: line->options->device = value; break;
    case 'o': line->output = value; break;
    case KEY_FORCE: line->options->force_device = true; break;
    case 'q': line->options->quiet = true; break;
    case KEY_COLOUR: line->colour = option_colour(line->arena, value); break;
    case 'h': option_print_help(state, ARGP_HELP_STD_HELP);
    case KEY_USAGE: option_print_help(state, ARGP_HELP_USAGE);
    case ARGP_KEY_ERROR: option_error(line->arena, table, state);
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static void parse_line(CommandLine *line, int argc, char **argv)
{
    diag_configure((DiagOptions){.colour = options_want_colour(NULL)});
    argv[0] = "rollerc calibrate";
    const struct argp argp = {.options = table, .parser = read_option, .doc = manual};
    error_t error = argp_parse(&argp, argc, argv, ARGP_NO_HELP | ARGP_NO_ERRS, NULL, line);
    if (error)
        fatal(error == ENOMEM ? EXIT_MACHINE : EXIT_USAGE, "%s", strerror(error));
    if (!line->options->device)
        usage_error("no --device; `rollerc calibrate --help' shows the options, `rollerc --list-devices' the "
                    "built-in devices");
    diag_configure((DiagOptions){.quiet = line->options->quiet, .colour = options_want_colour(line->colour)});
}

// ---- the file ----

typedef struct Calibrated {
    const DeviceSpec *device;
    const char *base;   // as in --device
    const GpuInfo *gpu;
    const MicroReport *report;
    const char *date;   // 2026-11-28
} Calibrated;

/* Three digits are more than the spread leaves. */
static const char *number_text(Arena *arena, double value)
{
    return value >= 100 ? arena_printf(arena, "%.0f", value) : arena_printf(arena, "%.3g", value);
}

static void write_head(StrBuf *out, const Calibrated *of)
{
    strbuf_printf(
        out,
        "# yaml-language-server: $schema=../schema/device.schema.json\n#\n"
        "# Measured %s on one %s, %s, with micro-kernels: `rollerc calibrate' of rollerc %s.\n"
        "# Each number is a median; behind it half of the range of the middle half of its samples.\n\n"
        "like: %s\n\ndevice:\n  name: %s\n",
        of->date, of->gpu->name, gpu_driver_text(out->arena, of->gpu), ROLLERC_VERSION, of->base,
        of->device->name);
}

/* The key's line, and that of its group where it is another one than the last. */
static void write_key(StrBuf *out, const Calibrated *of, const MicroValue *value, const char **group)
{
    size_t length = strcspn(value->path, ".");
    if (!*group || strncmp(*group, value->path, length + 1) != 0)
        strbuf_printf(out, "\n%.*s:\n", (int)length, value->path);
    *group = value->path;
    const char *line = arena_printf(out->arena, "  %s: %s", value->path + length + 1,
                                    number_text(out->arena, value->median));
    strbuf_printf(out, "%-40s # measured %s: +- %.1f %%; %s before\n", line, of->date, 100 * value->spread,
                  number_text(out->arena, device_number(of->device, value->path)));
}

/* In the order of the table of keys, so that those of a group stand together. */
static void write_keys(StrBuf *out, const Calibrated *of)
{
    const char *group = NULL;
    for (const DeviceField *field = device_fields; field->path; field++)
        for (int i = 0; i < of->report->count; i++)
            if (of->report->values[i].path && strcmp(of->report->values[i].path, field->path) == 0)
                write_key(out, of, &of->report->values[i], &group);
}

static void write_table(StrBuf *out, const Calibrated *of)
{
    strbuf_puts(out, "\n# Beside the keys:\n#\n");
    for (int i = 0; i < of->report->count; i++) {
        const MicroValue *value = &of->report->values[i];
        if (!value->path)
            strbuf_printf(out, "#   %-36s %10s %-7s +- %.1f %%\n", value->what,
                          number_text(out->arena, value->median), value->unit, 100 * value->spread);
    }
}

static const char *today(Arena *arena)
{
    enum { LENGTH = sizeof "2026-11-28" };
    time_t now = time(NULL);
    struct tm parts;
    char *text = arena_alloc(arena, LENGTH);
    gmtime_r(&now, &parts);
    strftime(text, LENGTH, "%Y-%m-%d", &parts);
    return text;
}

// ---- the whole ----

static const JitResult *compile(Arena *arena, const DeviceSpec *device)
{
    JitRequest request = micro_kernels();
    JitResult *kernels = NEW(arena, JitResult);
    jit_compile(arena, &request, 1, &(JitOptions){.arch = device->arch}, kernels);
    if (kernels->status != JIT_DONE)
        fatal(EXIT_MACHINE, "cannot compile the micro-kernels: %s", kernels->reason);
    return kernels;
}

int calibrate_main(int argc, char **argv)
{
    Arena *arena = arena_new();
    CommandLine line = {.arena = arena, .options = NEW(arena, Options)};
    parse_line(&line, argc, argv);
    const DeviceSpec *device = device_read(arena, line.options->device);
    if (!device_text(line.options->device))
        usage_error("--device wants the name of a built-in device, which the new file is like: '%s' is a "
                    "file; --force-device measures "
                    "a GPU that is none of them",
                    line.options->device);
    if (device->dialect != DIALECT_CUDA)
        fatal(EXIT_MACHINE, "'%s' is no CUDA device: the micro-kernels are CUDA", device->name);
    GpuInfo gpu = find_gpu("calibrate", device, line.options->force_device);
    MicroReport *report = NEW(arena, MicroReport);
    if (!micro_measure(device, &gpu, compile(arena, device), report))
        fatal(EXIT_MACHINE, "cannot measure: %s", report->reason);
    Calibrated of = {
        .device = device, .base = line.options->device, .gpu = &gpu, .report = report, .date = today(arena)};
    StrBuf text = strbuf_new(arena);
    write_head(&text, &of);
    write_keys(&text, &of);
    write_table(&text, &of);
    const char *path = line.output ? line.output : arena_printf(arena, "%s.yaml", device->name);
    device_parse(arena, source_from_text(arena, path, text.text,
                                         text.length));   // what contradicts itself is not written
    output_write(path, text.text, text.length);
    talk("measured %d numbers of a %s", report->count, gpu.name);
    arena_free(arena);
    return EXIT_DONE;
}
