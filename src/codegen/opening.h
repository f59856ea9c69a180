// The first comment of an emitted file: its expression and origin.
#pragma once
#include "codegen/codegen.h"

void write_opening(StrBuf *out, const CodegenRequest *request);
