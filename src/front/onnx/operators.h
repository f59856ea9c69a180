// Mappings of operators, which operators.def names.
#pragma once
#include "front/onnx/map.h"

#define OPERATOR(name, since, map, ...) Mapping map;
#define OPERATOR_OF(domain, name, since, map, ...) Mapping map;
#include "front/onnx/operators.def"
#undef OPERATOR
#undef OPERATOR_OF
