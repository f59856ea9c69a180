// Masks that are made of positions alone, in whatever way exporters write them.
#pragma once
#include "front/onnx/map.h"

/* A tensor of one value in a triangle of its last two dimensions, and one outside. */
typedef struct Triangle {
    bool upper;               // from column row + diagonal on; else up to it
    int64_t diagonal;
    int64_t rows, columns;
    double inside, outside;   // a bool is 0 or 1
} Triangle;

/* Is it one? Trilu makes them of a constant whose elements are alike, and what is computed of them and of
   such constants point by point is one, too. */
bool triangle_of(const Map *m, const GraphValue *value, Triangle *triangle);

/* `j <= i + 1`, of the letters of both dimensions. */
const char *triangle_condition(const Map *m, const Triangle *triangle, char row, char column);

/* Every row has an element inside. */
bool triangle_meets_rows(const Triangle *triangle);
