// How the launcher says the way in which bulk copies see a tensor.
#pragma once
#include "base/strbuf.h"
#include "hal/launch.h"

/* `status = describe_tensor(&m0, w1, 2, {64, 64}, {128}, {64, 64});` */
void launcher_write_map(StrBuf *out, const TensorMap *map, int number, const char *pointer);
