// The prelude as a kernel's file carries it: of the files that templates/prelude.cuh includes only the parts that are used.
#pragma once
#include "codegen/cuda/template.h"

/* The parts that `text` uses, in the order of the files; templates/prelude.cuh says what a part is, and when it is taken. */
void prelude_write(StrBuf *out, const TemplateStore *store, const char *text);

/* Paths of all its files, "templates/prelude.cuh" first; NULL ends the list. */
const char *const *prelude_files(const TemplateStore *store);
