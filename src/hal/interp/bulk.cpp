// Bulk copies of boxes of tensors, and the barriers in shared memory that count their bytes: each copy as late as it
// may be.
//
// A copy lands when a thread waits at its barrier and nothing else is missing there; until then its target holds NaNs.
// What is copied over while tensor cores still read it is found when their product ends.
namespace rollerc_interp {

// Into one block.
struct BulkCopy {
    TensorBox map;
    BoxPlace from;
    unsigned char *target;
    BulkCopy *next;             // at the same barrier, or of the free ones
};

namespace {

enum { MAX_BULK_COPIES = 1 << 14, BARRIER_BYTES = 8, PIECE_BYTES = 16, PIECE_LINES = 8 };
BulkCopy all_bulk_copies[MAX_BULK_COPIES], *free_bulk_copies;
int bulk_copy_count;

BulkCopy *take_bulk_copy(Place place)
{
    BulkCopy *copy = free_bulk_copies;
    if (copy)
        free_bulk_copies = copy->next;
    else if (bulk_copy_count < MAX_BULK_COPIES)
        copy = &all_bulk_copies[bulk_copy_count++];
    else
        fail_at(place, "more bulk copies are under way than the interpreter can hold");
    return copy;
}

// ---- boxes ----

int lines_of(const TensorBox &map)
{
    int lines = 1;
    for (int d = 1; d < (map.pixel_axes ? 2 : +TENSOR_BOX_RANK); d++)
        lines *= map.box[d];
    return lines;
}

int bytes_of(const TensorBox &map) { return lines_of(map) * MAP_LINE_BYTES; }

// The line behind this one: of a box along the second dimension, then along those behind it. Pixels go from the lower
// corner to the upper one of each axis, then along the next, and at last to the next image.
void step_line(const TensorBox &map, const BoxPlace &from, BoxPlace &line)
{
    for (int d = 1; d < map.rank - 1; d++) {
        line.at[d] += map.pixel_axes ? map.steps[d - 1] : 1;
        if (line.at[d] < (map.pixel_axes ? map.sizes[d] + map.upper[d - 1] : from.at[d] + map.box[d]))
            return;
        line.at[d] = map.pixel_axes ? map.lower[d - 1] : from.at[d];
    }
    line.at[map.rank - 1]++;
}

// Where a line begins in memory; null: outside of the tensor.
const unsigned char *line_start(const TensorBox &map, const BoxPlace &line)
{
    const unsigned char *start = map.start;
    bool outside = false;
    for (int d = 1; d < map.rank; d++) {
        const long long at = line.at[d] + (d <= map.pixel_axes ? line.offset[d - 1] : 0);
        outside |= at < 0 || at >= map.sizes[d];
        start += at * map.strides[d - 1];
    }
    return outside ? nullptr : start;
}

// Calls visit(16-byte vector of the target, source), the latter null where the box leaves the tensor. Vectors are
// swizzled within a line as tensor cores expect them.
template <class Visit> void visit_box(const BulkCopy &copy, const unsigned char *shared, Visit visit)
{
    const TensorBox &map = copy.map;
    const int elements = PIECE_BYTES / map.element_bytes;
    BoxPlace at = copy.from;
    for (int line = 0; line < lines_of(map); line++, step_line(map, copy.from, at)) {
        const unsigned char *start = line_start(map, at);
        for (int piece = 0; piece < MAP_LINE_BYTES / PIECE_BYTES; piece++) {
            const long long x = at.at[0] + piece * elements;
            const long long straight = SHARED_START + (copy.target - shared) + line * MAP_LINE_BYTES + piece * PIECE_BYTES;
            const long long turned = straight ^ (straight / MAP_LINE_BYTES % PIECE_LINES) * PIECE_BYTES;
            const unsigned char *source = start && x >= 0 && x < map.sizes[0] ? start + x * map.element_bytes : nullptr;
            const long long left = (map.sizes[0] - x) * map.element_bytes;
            visit(const_cast<unsigned char *>(shared) + turned - SHARED_START, source,
                  left < PIECE_BYTES ? static_cast<int>(left) : +PIECE_BYTES);
        }
    }
}

// To the nearest that have ten bits of a fraction, of two the even one; what is no number becomes one and the same.
void round_floats(unsigned *floats)
{
    const unsigned left_out = 0x1fffu, sign = 0x80000000u, infinity = 0x7f800000u, no_number = 0x7fffe000u;
    for (int i = 0; i < PIECE_BYTES / 4; i++) {
        const unsigned rounded = (floats[i] + left_out / 2 + (floats[i] / (left_out + 1) & 1)) & ~left_out;
        floats[i] = (floats[i] & ~sign) > infinity ? no_number : rounded;
    }
}

// The copy begins: what it reads is known, and nobody may touch its target.
void begin_copy(Block *block, const BulkCopy &copy)
{
    visit_box(copy, block->shared, [block](unsigned char *piece, const unsigned char *source, int bytes) {
        if (source)
            note_received(block, const_cast<unsigned char *>(source), bytes);
        note_box(piece, true);
        __builtin_memset(piece, 0xff, PIECE_BYTES);
    });
    if (block->counts)
        block->counts->shared_written += bytes_of(copy.map);
}

void end_copy(Block *block, const BulkCopy &copy)
{
    visit_box(copy, block->shared, [&copy](unsigned char *piece, const unsigned char *source, int bytes) {
        note_box(piece, false);
        __builtin_memset(piece, 0, PIECE_BYTES);
        if (source)
            __builtin_memcpy(piece, source, static_cast<size_t>(bytes));
        if (copy.map.tf32)
            round_floats(reinterpret_cast<unsigned *>(piece));
    });
}

// ---- barriers ----

// Null: none was made there.
BulkBarrier *find_barrier(Block *block, const void *address)
{
    for (int i = 0; i < block->bulk_count; i++)
        if (block->shared + block->bulk[i].at == address)
            return &block->bulk[i];
    return nullptr;
}

// A thread that uses a barrier must know that it was made.
BulkBarrier &barrier_at(Block *block, unsigned char *address, Place place)
{
    host->file = place.file;
    host->line = place.line;
    note_access(address, BARRIER_BYTES, false);
    count_shared(-BARRIER_BYTES, false);
    host->file = nullptr;
    BulkBarrier *barrier = find_barrier(block, address);
    if (!barrier)
        fail_at(place, "no barrier was made there");
    return *barrier;
}

BulkBarrier &own_barrier(void *address, Place place)
{
    return barrier_at(current->block, static_cast<unsigned char *>(address), place);
}

void land_all(Block *block, BulkBarrier &barrier)
{
    while (BulkCopy *copy = barrier.first) {
        end_copy(block, *copy);
        barrier.bytes -= bytes_of(copy->map);
        barrier.first = copy->next;
        copy->next = free_bulk_copies;
        free_bulk_copies = copy;
    }
}

void wake_all(Block *block, BulkBarrier &barrier)
{
    for (int i = 0; i < thread_count && barrier.waiting > 0; i++)
        if (block->threads[i].waits_for == &barrier) {
            block->threads[i].waits_for = nullptr;
            make_ready(&block->threads[i]);
            barrier.waiting--;
        }
}

// When all have arrived copies land, if anybody waits for them.
void advance(Block *block, BulkBarrier &barrier, bool wanted)
{
    if (barrier.missing == 0 && (wanted || barrier.waiting > 0))
        land_all(block, barrier);
    if (barrier.missing > 0 || barrier.bytes != 0)
        return;
    barrier.missing = barrier.expected;
    barrier.phases++;
    wake_all(block, barrier);
}

void arrive(Block *block, BulkBarrier &barrier, long long bytes, Place place)
{
    if (barrier.missing == 0)
        fail_at(place, "more threads arrive at a barrier than it expects");
    barrier.missing--;
    barrier.bytes += bytes;
    advance(block, barrier, false);
    preempt(place);
}

}   // namespace

void mbarrier_init(void *address, int arrivals, Place place)
{
    Block *block = current->block;
    if (block->bulk_count == MAX_BULK_BARRIERS)
        fail_at(place, "more barriers in shared memory than the interpreter can hold");
    if (find_barrier(block, address))
        fail_at(place, "a barrier is made where there is one");
    note_access(address, BARRIER_BYTES, true);
    count_shared(-BARRIER_BYTES, true);
    BulkBarrier &barrier = block->bulk[block->bulk_count++];
    barrier = BulkBarrier();
    barrier.at = static_cast<unsigned char *>(address) - block->shared;
    barrier.expected = barrier.missing = arrivals;
}

void mbarrier_expect(void *address, int bytes, Place place)
{
    arrive(current->block, own_barrier(address, place), bytes, place);
}

void mbarrier_arrive(void *address, int rank, Place place)
{
    unsigned char *there = static_cast<unsigned char *>(cluster_map(address, rank, place));
    Block *block = &current->block->cluster->blocks[rank];
    arrive(block, barrier_at(block, there, place), 0, place);
}

void mbarrier_wait(void *address, unsigned parity, Place place)
{
    Block *block = current->block;
    BulkBarrier &barrier = own_barrier(address, place);
    if (parity > 1)
        fail_at(place, "the parity of a barrier's phase is 0 or 1");
    count_turn();
    if (barrier.phases % 2 == parity)
        advance(block, barrier, true);
    if (barrier.phases % 2 == parity) {
        barrier.waiting++;
        current->waits_for = &barrier;
        wait_at(place);
    }
    preempt(place);
}

// What tensors of three, four and five dimensions allow in im2col mode.
static const struct {
    int corner;   // from -corner to corner - 1
    int offset;   // at most
} pixel_limits[] = {{}, {32768, 65535}, {128, 255}, {16, 31}};

// A walk begins at one of its pixels, and offsets have so many bits. From beside the bounding box on a device ends with
// an illegal instruction.
static void check_pixels(const TensorBox &map, const BoxPlace &from, Place place)
{
    for (int i = 0; i < map.pixel_axes; i++) {
        const long long first = from.at[i + 1] - map.lower[i];
        if (first < 0 || from.at[i + 1] >= map.sizes[i + 1] + map.upper[i] || first % map.steps[i])
            fail_at(place, "pixels are copied from beside the bounding box on");
        if (from.offset[i] < 0 || from.offset[i] > pixel_limits[map.pixel_axes].offset)
            fail_at(place, "pixels are copied from farther away than the instruction can say");
    }
    const int image = map.pixel_axes + 1;
    if (map.pixel_axes && (from.at[image] < 0 || from.at[image] >= map.sizes[image]))
        fail_at(place, "pixels are copied from beside all images on");
}

void bulk_copy(void *target, const void *map, const BoxPlace &from, void *address, unsigned blocks_of_cluster, Place place)
{
    const TensorBox *box = static_cast<const TensorBox *>(map);
    const long long offset = static_cast<unsigned char *>(target) - current->block->shared;
    count_copying_warp();
    if (blocks_of_cluster >> cluster_blocks)
        fail_at(place, "a bulk copy to blocks that the cluster does not have");
    if (box->magic != TENSOR_BOX_MAGIC)
        fail_at(place, "a bulk copy without a tensor map");
    if (!box->pixel_axes != !from.pixel_axes)
        fail_at(place, "a bulk copy in another mode than its tensor map has");
    if (box->rank != from.rank)
        fail_at(place, "a bulk copy along other dimensions than its tensor map has");
    check_pixels(*box, from, place);
    if (is_too_early(box->start))   // it lands while others run, who may have waited
        fail_at(place, "touches what an earlier launch writes, without waiting for it");
    if (offset < 0 || (SHARED_START + offset) % (PIECE_LINES * MAP_LINE_BYTES) ||
        offset + bytes_of(*box) > static_cast<long long>(shared_bytes))
        fail_at(place, "a bulk copy to where no eight lines begin, or beside shared memory");
    for (int rank = 0; rank < cluster_blocks; rank++) {
        if (!(blocks_of_cluster >> rank & 1))
            continue;
        Block *block = &current->block->cluster->blocks[rank];
        BulkBarrier &barrier = barrier_at(block, static_cast<unsigned char *>(cluster_map(address, rank, place)), place);
        BulkCopy *copy = take_bulk_copy(place);
        *copy = {*box, from, block->shared + offset, nullptr};
        host->file = place.file;
        host->line = place.line;
        begin_copy(block, *copy);
        host->file = nullptr;
        (barrier.first ? barrier.last->next : barrier.first) = copy;
        barrier.last = copy;
        advance(block, barrier, false);
    }
    preempt(place);
}

// Corners, and a bounding box with something in it.
static bool has_legal_pixels(const TensorBox &map)
{
    const int corner = pixel_limits[map.pixel_axes].corner;
    bool legal = map.box[1] > 0 && map.box[1] <= 1024;
    for (int i = 0; i < map.pixel_axes; i++) {
        legal &= map.lower[i] >= -corner && map.lower[i] < corner && map.upper[i] >= -corner && map.upper[i] < corner;
        legal &= map.steps[i] >= 1 && map.steps[i] <= 8 && map.sizes[i + 1] + map.upper[i] > map.lower[i];
    }
    return legal;
}

static bool has_legal_box(const TensorBox &map)
{
    bool legal = true;
    for (int d = 0; d < TENSOR_BOX_RANK; d++)
        legal &= map.box[d] > 0 && map.box[d] <= 256;
    return legal;
}

// What a launcher describes, as the driver would check it.
static_assert(sizeof(TensorBox) <= 128, "it lies in a TensorMap");
static cudaError_t encode_map(void *map, const TensorBox &what)
{
    const long long inner = static_cast<long long>(what.box[0]) * what.element_bytes;
    TensorBox box = what;
    box.magic = TENSOR_BOX_MAGIC;
    bool legal = reinterpret_cast<size_t>(what.start) % 16 == 0 && reinterpret_cast<size_t>(map) % 64 == 0 && inner == MAP_LINE_BYTES;
    for (int d = 0; d < TENSOR_BOX_RANK; d++)
        legal &= what.sizes[d] > 0 && what.sizes[d] < 1ll << 32;
    for (int d = 0; d + 1 < what.rank; d++)
        legal &= what.strides[d] > 0 && what.strides[d] % 16 == 0 && what.strides[d] < 1ll << 40;
    if (!legal || !(what.pixel_axes ? has_legal_pixels(what) : has_legal_box(what)))
        return cudaErrorInvalidValue;
    __builtin_memcpy(map, &box, sizeof box);
    return cudaSuccess;
}

// What is more than any tensor map takes stays so.
static short short_of(unsigned x) { return static_cast<short>(x > 0x7fff ? 0x7fff : x); }
static signed char byte_of(int x) { return static_cast<signed char>(x > 0x7f ? 0x7f : x < 0 ? 0 : x); }

static TensorBox box_of(const void *start, int rank, int element_bytes, bool tf32, const unsigned long long *sizes,
                        const unsigned long long *strides)
{
    TensorBox what = {0, byte_of(rank), byte_of(element_bytes), 0, tf32, static_cast<const unsigned char *>(start),
                      {1, 1, 1, 1, 1}, {}, {}, {}, {}, {1, 1, 1, 1, 1}};
    for (int d = 0; d < rank; d++)
        what.sizes[d] = static_cast<long long>(sizes[d]);
    for (int d = 0; d + 1 < rank; d++)
        what.strides[d] = static_cast<long long>(strides[d]);
    return what;
}

cudaError_t encode_boxes(void *map, const void *start, int rank, int element_bytes, bool tf32, const unsigned long long *sizes,
                         const unsigned long long *strides, const unsigned *box)
{
    TensorBox what = box_of(start, rank, element_bytes, tf32, sizes, strides);
    for (int d = 0; d < rank; d++)
        what.box[d] = short_of(box[d]);
    return encode_map(map, what);
}

cudaError_t encode_pixels(void *map, const void *start, int rank, int element_bytes, bool tf32, const unsigned long long *sizes,
                          const unsigned long long *strides, const int *lower, const int *upper, const unsigned *steps,
                          unsigned pixels)
{
    TensorBox what = box_of(start, rank, element_bytes, tf32, sizes, strides);
    what.pixel_axes = byte_of(rank - 2);
    for (int i = 0; i < what.pixel_axes; i++) {
        what.lower[i] = lower[i];
        what.upper[i] = upper[i];
        what.steps[i] = short_of(steps[i]);
    }
    const short box[TENSOR_BOX_RANK] = {short_of(128u / static_cast<unsigned>(element_bytes)), short_of(pixels)};
    __builtin_memcpy(what.box, box, sizeof box);
    return encode_map(map, what);
}

void finish_bulk(const Block &block)
{
    for (int i = 0; i < block.bulk_count; i++)
        if (block.bulk[i].first)
            host->fail("a block ends before copies into its shared memory have landed");
}

}   // namespace rollerc_interp
