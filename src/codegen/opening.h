// What an emitted file begins with, for who finds it without its expression.
#pragma once
#include "codegen/codegen.h"

void write_opening(StrBuf *out, const CodegenRequest *request);
