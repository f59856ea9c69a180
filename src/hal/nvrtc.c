#include "hal/nvrtc.h"

#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hal/shared_library.h"

static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", NULL};

static const LibrarySymbol symbols[] = {
    LIBRARY_SYMBOL(Nvrtc, version, "nvrtcVersion"),
    LIBRARY_SYMBOL(Nvrtc, error_string, "nvrtcGetErrorString"),
    LIBRARY_SYMBOL(Nvrtc, create, "nvrtcCreateProgram"),
    LIBRARY_SYMBOL(Nvrtc, compile, "nvrtcCompileProgram"),
    LIBRARY_SYMBOL(Nvrtc, log_size, "nvrtcGetProgramLogSize"),
    LIBRARY_SYMBOL(Nvrtc, log, "nvrtcGetProgramLog"),
    LIBRARY_SYMBOL(Nvrtc, ptx_size, "nvrtcGetPTXSize"),
    LIBRARY_SYMBOL(Nvrtc, ptx, "nvrtcGetPTX"),
    LIBRARY_SYMBOL(Nvrtc, cubin_size, "nvrtcGetCUBINSize"),
    LIBRARY_SYMBOL(Nvrtc, cubin, "nvrtcGetCUBIN"),
    LIBRARY_SYMBOL(Nvrtc, arch_count, "nvrtcGetNumSupportedArchs"),
    LIBRARY_SYMBOL(Nvrtc, archs, "nvrtcGetSupportedArchs"),
};

/* The last toolkit for which an architecture compiles (CUDA release notes, "deprecated and dropped
   features"). */
static const struct {
    int arch, last_toolkit;
} dropped[] = {{21, 8}, {30, 10}, {37, 11}, {72, 12}};

enum { MAX_ARCHS = 64 };

bool nvrtc_open(Nvrtc *nvrtc, char *reason, size_t reason_bytes)
{
    char missing[500];
    if (library_open(names, symbols, sizeof symbols / sizeof *symbols, nvrtc, missing, sizeof missing))
        return true;
    snprintf(reason, reason_bytes, "this needs NVRTC, the CUDA compiler library: %s", missing);
    return false;
}

static void say_unknown(const Nvrtc *nvrtc, int number, int lowest, const char *arch, char *reason,
                        size_t bytes)
{
    int major = 0, minor = 0;
    nvrtc->version(&major, &minor);
    for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++)
        if (number <= dropped[i].arch && number < lowest) {
            snprintf(reason, bytes, "NVRTC %d.%d compiles for sm_%d and later; %s needs CUDA <= %d", major,
                     minor, lowest, arch, dropped[i].last_toolkit);
            return;
        }
    snprintf(reason, bytes, "NVRTC %d.%d does not know %s", major, minor, arch);
}

bool nvrtc_knows(const Nvrtc *nvrtc, const char *arch, char *reason, size_t reason_bytes)
{
    int archs[MAX_ARCHS], count = 0, lowest = 0;
    if (strncmp(arch, "sm_", 3) != 0) {
        snprintf(reason, reason_bytes, "NVRTC compiles for CUDA devices; %s is none", arch);
        return false;
    }
    if (nvrtc->arch_count(&count) != 0 || count > MAX_ARCHS || nvrtc->archs(archs) != 0)
        return true;   // the compiler will say
    int number = atoi(arch + 3);
    for (int i = 0; i < count; i++) {
        if (archs[i] == number)
            return true;
        if (lowest == 0 || archs[i] < lowest)
            lowest = archs[i];
    }
    say_unknown(nvrtc, number, lowest, arch, reason, reason_bytes);
    return false;
}

// ---- which build ----

typedef struct BuildSearch {
    uintptr_t inside;   // an address of the library
    char *digits;
    size_t bytes;
} BuildSearch;

static bool holds_address(const struct dl_phdr_info *library, uintptr_t address)
{
    for (int i = 0; i < library->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &library->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && address - (library->dlpi_addr + part->p_vaddr) < part->p_memsz)
            return true;
    }
    return false;
}

/* A note is a header, its owner's name and its content, each filled up to four bytes. */
static void read_notes(const char *note, const char *end, const BuildSearch *search)
{
    while (note + sizeof(ElfW(Nhdr)) <= end) {
        const ElfW(Nhdr) *head = (const void *)note;
        const char *owner = note + sizeof *head;
        const unsigned char *content = (const unsigned char *)owner + (head->n_namesz + 3) / 4 * 4;
        if (head->n_type == NT_GNU_BUILD_ID && strcmp(owner, "GNU") == 0)
            for (size_t i = 0; i < head->n_descsz && 2 * i + 3 <= search->bytes; i++)
                snprintf(search->digits + 2 * i, 3, "%02x", content[i]);
        note = (const char *)content + (head->n_descsz + 3) / 4 * 4;
    }
}

static int search_library(struct dl_phdr_info *library, size_t size, void *context)
{
    const BuildSearch *search = context;
    (void)size;
    if (!holds_address(library, search->inside))
        return 0;
    for (int i = 0; i < library->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &library->dlpi_phdr[i];
        const char *notes = (const char *)library->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_NOTE)
            read_notes(notes, notes + part->p_memsz, search);
    }
    return 1;
}

void nvrtc_build(const Nvrtc *nvrtc, char *digits, size_t bytes)
{
    digits[0] = '\0';
    dl_iterate_phdr(search_library, &(BuildSearch){(uintptr_t)nvrtc->version, digits, bytes});
}
