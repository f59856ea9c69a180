// How families describe their kernels to the tiling floor: a space of a few axes with data tiles over them.
#pragma once
#include "ir/fuse.h"
#include "rtile/rtile.h"

/* A space with no tiles yet, its arithmetic taken from the expression. The room of those that are not there
   holds anything: what adds one writes all of it. */
TileSpace *space_new(Arena *arena, const Fusion *fusion);

/* A tile of the tensor without dimensions, whose elements lie in whole lines. */
DataTile data_tile_of(const Tensor *tensor);

/* Adds an axis, returns its position. An axis of extent 1 is fine. */
int space_add_axis(TileSpace *space, const char *name, int64_t extent, bool reduction);

/* One size alone; of all register tiles and of all block tiles. */
static inline AxisRule axis_fixed(int64_t size) { return (AxisRule){size, size}; }
void space_fix_axis(TileSpace *space, int axis, int64_t of_registers, int64_t of_block);

/* Flat extents of the fusion's spatial and reduction axes; 1 if there are none. */
int64_t spatial_points(const Fusion *fusion);
int64_t reduction_points(const Fusion *fusion);

/* Row-major position of a point, as a form of the spatial axes. */
Affine flat_position(const Fusion *fusion);

/* Which of the flat positions along the axes have the same element, from the innermost axis, the last one,
   outwards. Axes that are used beyond two gaps count as if they were one with the gap. All are the same:
   cycles of one. */
Repeats axes_repeats(const Fusion *fusion, const Affine *offset, const int *axes, int count);

/* The access goes through its tensor in the order of the points: its offset is the flat position. Whoever
   takes that for an address asks first. */
bool access_is_flat(const Access *access, const Fusion *fusion);

/* The same of every stored tensor of one-bit elements, whose words are packed from neighbouring points. */
bool bits_are_flat(const Fusion *fusion);

/* So many accesses and every output have a data tile each. Whoever stages one asks: shared memory is counted
   by tiles. */
bool tiles_hold(const Fusion *fusion, int accesses);

/* Adds every access and store of the fusion to a space whose axis 0 is the flat spatial position and whose
   axis 1 (if there is one) the flat reduction position. `fast` is the fusion axis along which neighbouring
   threads lie: it decides how much of what moves is used (DataTile.scatter). */
void space_add_flat_tiles(TileSpace *space, const Fusion *fusion, int fast, const DeviceSpec *device);

/* DataTile.lines of the inputs, whose elements adjacent threads read one by one. */
void space_set_lines(TileSpace *space, const Fusion *fusion, const DeviceSpec *device);

/* DataTile.loop_bytes and .lines of the inputs, where each thread makes one point. */
void space_set_loops(TileSpace *space, const Fusion *fusion, const DeviceSpec *device);

/* The same to a space whose axes are the fusion's own; inputs and outputs are staged. What is at computed places is
   taken to go on by one from point to point. */
void space_add_staged_tiles(TileSpace *space, const Fusion *fusion);

/* That of the tensor's element at fused_offset() among them; NULL: there are too many for it to have one. */
DataTile *space_flat_tile(TileSpace *space, const Fusion *fusion, const Tensor *tensor, const Affine *wanted);

/* Bytes moved per byte used when neighbouring threads read the access along the fusion's axis `fast`. */
double access_scatter(const Access *access, const Fusion *fusion, int fast, const DeviceSpec *device);

/* Lines of L1 that an access of a warp touches for each line's worth of bytes (DataTile.lines), where neighbouring
   threads begin `vector` positions apart along the fusion's axes [first, end), flat, and take `together` elements each. */
double access_lines(const Access *access, const Fusion *fusion, int first, int end, int vector, int together,
                    const DeviceSpec *device);

/* The same of elements that L1 has: cycles of a warp, whose threads take one element each, over those of its bytes.
   Threads lie along the spatial axes, each `each` positions of `axis` (-1: none) apart; an access takes `least` cycles at least. */
double access_cycles(const Access *access, const Fusion *fusion, int axis, int64_t each, double least, const DeviceSpec *device);

/* Which tiles of the space, as bits: all that are read, or that are written; those that change along the
   axis; those that are staged. */
uint32_t space_inputs(const TileSpace *space);
uint32_t space_outputs(const TileSpace *space);
uint32_t space_along(const TileSpace *space, int axis);
uint32_t space_staged(const TileSpace *space);
