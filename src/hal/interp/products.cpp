// Tensor cores that read shared memory while the threads go on, each product as late as it may be.
//
// A product reads its operands when its warp waits for it and not before; until then the warp's sums are NaNs. Operands
// must have been shown by the threads that wrote them, both when the product begins and when it ends.
namespace rollerc_interp {

enum { GROUP_WARPS = 4, PRODUCT_ROWS = 16, PRODUCT_BYTES = 32, PIECE_BYTES = 16, MAX_COLUMNS = 256, HELD_WORDS = 4 };   // rows: of one of the warps

// What the lanes of a warp add to, floats or ints. The values are those of the products that are done.
struct Sums {
    unsigned *registers[32];
    unsigned values[32][MAX_COLUMNS / 2];
    int pending;                // products in flight
    Sums *next;                 // of the same warp, or of the free ones
};

struct Product {
    SharedProduct what;
    Sums *sums;
    bool held;                  // a lies in registers: where those of each lane are, and what they held
    const unsigned *at[32];
    unsigned words[32][HELD_WORDS];
    unsigned group;             // it belongs to its warp's group of this number
    Product *next;
};

namespace {

enum { MAX_SUMS = 256, MAX_PRODUCTS = 1 << 14 };
Sums all_sums[MAX_SUMS], *free_sums;
Product all_products[MAX_PRODUCTS], *free_products;
int sums_count, product_count;

const unsigned UNTOUCHED = 0x7fc0beefu;   // a NaN in place of a sum

struct Brought {                // by a lane
    const SharedProduct *what;
    unsigned *sums;
    const unsigned *held;       // a, if it lies in registers
};

[[noreturn]] void fail_here(const char *what) { fail_at(warp_of(current).meeting.place, what); }

// One of the free ones, or one that was never used.
template <class Node, int MOST> Node *take(Node *&free_ones, Node (&all)[MOST], int &count)
{
    Node *node = free_ones;
    if (node)
        free_ones = node->next;
    else if (count < MOST)
        node = &all[count++];
    else
        fail_here("more products are under way than the interpreter can hold");
    return node;
}

template <class Node> void give_back(Node *&free_ones, Node *node)
{
    node->next = free_ones;
    free_ones = node;
}

// ---- operands ----

struct Operand {
    long long start, leading, stride;
    int bytes;                  // of an element
    bool turned;                // lies along its rows
};

Operand read_operand(TileElement element, unsigned long long word, bool turned)
{
    const auto bytes = [word](int first) { return static_cast<long long>(word >> first & 0x3fff) << 4; };
    const int element_bytes = PRODUCT_BYTES / SHAPES[element].k;
    const Operand operand = {bytes(0), bytes(16), bytes(32), element_bytes, turned};
    if (turned && element_bytes != 2)
        fail_here("an operand that is turned, of elements that are not of 16 bits");
    if (word >> 46 != 1ull << 16)
        fail_here("an operand that is not of lines of 128 bytes whose pieces change places");
    return operand;
}

// The 16-byte vector that begins with (row, k).
unsigned char *find_piece(const Operand &operand, int row, int k)
{
    const int line = operand.turned ? k : row, along = operand.turned ? row % 64 : k;
    const long long further = operand.turned ? row / 64 * operand.leading : 0;
    const long long straight = operand.start + further + line / 8 * operand.stride + line % 8 * 128 + along * operand.bytes;
    const long long at = (straight ^ (straight >> 7 & 7) << 4) - SHARED_START;
    if (at < 0 || at + 16 > static_cast<long long>(shared_bytes))
        fail_here("an operand that ends outside of the block's shared memory");
    return current->block->shared + at;
}

// Calls visit(vector, row, k) for every 16-byte vector of rows [first, first + rows).
template <class Visit> void visit_pieces(const Operand &operand, int first, int rows, Visit visit)
{
    const int piece = PIECE_BYTES / operand.bytes;
    for (int row = first; row < first + rows; row += operand.turned ? piece : 1)
        for (int k = 0; k < PRODUCT_BYTES / operand.bytes; k += operand.turned ? 1 : piece)
            visit(find_piece(operand, row, k), row - first, k);
}

int first_row() { return current->warp % GROUP_WARPS * PRODUCT_ROWS; }

void check_operands(const Product &product)
{
    const SharedProduct &what = product.what;
    const auto check = [](unsigned char *piece, int, int) { note_operand(piece); };
    if (!product.held)
        visit_pieces(read_operand(what.element, what.a, what.turn_a), first_row(), PRODUCT_ROWS, check);
    visit_pieces(read_operand(what.element, what.b, what.turn_b), 0, what.columns, check);
}

// Calls put(row, k, value) for every element of rows [first, first + rows).
template <class Put> void read_values(const Operand &operand, TileElement element, int first, int rows, Put put)
{
    visit_pieces(operand, first, rows, [&](unsigned char *piece, int row, int k) {
        for (int i = 0; i < PIECE_BYTES / operand.bytes; i++)
            put(row + (operand.turned ? i : 0), k + (operand.turned ? 0 : i), value_at(element, piece, i));
    });
}

// ---- products ----

Sums *find_sums(const Warp &warp, const unsigned *registers)
{
    Sums *sums = warp.sums;
    while (sums && sums->registers[0] != registers)
        sums = sums->next;
    return sums;
}

Sums *begin_sums(Warp &warp, void *const *lanes, int count)
{
    Sums *sums = take(free_sums, all_sums, sums_count);
    if (!warp.products_open)
        fail_here("a product of sums for which open_products() was not called");
    for (int lane = 0; lane < 32; lane++) {
        sums->registers[lane] = static_cast<const Brought *>(lanes[lane])->sums;
        for (int i = 0; i < count; i++) {
            sums->values[lane][i] = sums->registers[lane][i];
            sums->registers[lane][i] = UNTOUCHED;
        }
    }
    sums->pending = 0;
    sums->next = warp.sums;
    return warp.sums = sums;
}

void end_sums(Warp &warp, Sums *sums, int count)
{
    for (int lane = 0; lane < 32; lane++)
        for (int i = 0; i < count; i++) {
            if (sums->registers[lane][i] != UNTOUCHED)
                fail_here("sums are changed while products are added to them");
            sums->registers[lane][i] = sums->values[lane][i];
        }
    Sums **link = &warp.sums;
    while (*link != sums)
        link = &(*link)->next;
    *link = sums->next;
    give_back(free_sums, sums);
}

void begin_product(void *const *lanes)
{
    Warp &warp = warp_of(current);
    const Brought *mine = static_cast<const Brought *>(lanes[0]);
    const SharedProduct &what = *mine->what;
    if (current->warp / GROUP_WARPS * GROUP_WARPS + GROUP_WARPS > warp_count)
        fail_here("a product by less than four warps");
    for (int lane = 1; lane < 32; lane++)
        if (!(*static_cast<const Brought *>(lanes[lane])->what == what))
            fail_here("lanes of one warp multiply different operands");
    Sums *sums = find_sums(warp, mine->sums);
    if (!sums)
        sums = begin_sums(warp, lanes, what.columns / 2);
    Product *product = take(free_products, all_products, product_count);
    product->what = what;
    product->sums = sums;
    product->held = mine->held;
    product->group = warp.product_groups;
    product->next = nullptr;
    for (int lane = 0; lane < 32 && product->held; lane++) {
        product->at[lane] = static_cast<const Brought *>(lanes[lane])->held;
        __builtin_memcpy(product->words[lane], product->at[lane], sizeof product->words[lane]);
    }
    (warp.first_product ? warp.last_product->next : warp.first_product) = product;
    warp.last_product = product;
    sums->pending++;
    warp.products = hash(warp.products ^ hash(what.a) ^ hash(what.b + 1));
    count_tensor_products(PRODUCT_ROWS * what.columns * SHAPES[what.element].k);
    check_operands(*product);
    // It is counted when the product ends, and b, which four warps share, for one of them.
    count_shared(-((product->held ? 0 : PRODUCT_ROWS) + what.columns * (current->warp % GROUP_WARPS ? 2 : 1)) * PRODUCT_BYTES, false);
}

// A lane has two adjacent elements along k in each of four matrices: rows l / 4 and eight further down, of each half of
// k.
void read_held(const Product &product, double (*values)[MOST_K])
{
    for (int lane = 0; lane < 32; lane++)
        for (int i = 0; i < HELD_WORDS; i++) {
            if (product.at[lane][i] != product.words[lane][i])
                fail_here("an operand in registers is changed while it is multiplied");
            for (int e = 0; e < 2; e++)
                values[lane / 4 + i % 2 * 8][lane % 4 * 2 + i / 2 * 8 + e] =
                    value_at(product.what.element, &product.words[lane][i], e);
        }
}

// Of rows 16 w … of c: of every 8 columns a lane has two in row l / 4, and two eight rows further down.
template <class Sum> void add_to_sums(const Product &product)
{
    const SharedProduct &what = product.what;
    Sums *const sums = product.sums;
    double a[PRODUCT_ROWS][MOST_K];
    Reals b[MAX_COLUMNS / 2][MOST_K];
    check_operands(product);
    if (product.held)
        read_held(product, a);
    else
        read_values(read_operand(what.element, what.a, what.turn_a), what.element, first_row(), PRODUCT_ROWS,
                    [&](int row, int k, double value) { a[row][k] = value; });
    read_values(read_operand(what.element, what.b, what.turn_b), what.element, 0, what.columns,
                [&](int column, int k, double value) { b[column / 2][k][column % 2] = value; });
    for (int m = 0; m < PRODUCT_ROWS; m++)
        for (int n = 0; n < what.columns; n += 2) {
            unsigned *words = &sums->values[m % 8 * 4 + n % 8 / 2][n / 8 * 4 + m / 8 * 2];
            Sum both[2];
            __builtin_memcpy(both, words, sizeof both);
            add_products(both, a[m], b[n / 2], what.element);
            __builtin_memcpy(words, both, sizeof both);
        }
}

void add_product(const Product &product)
{
    if (product.what.element == TILE_I8 || product.what.element == TILE_U8)
        add_to_sums<int>(product);
    else
        add_to_sums<float>(product);
}

void end_product(Warp &warp)
{
    Product *product = warp.first_product;
    add_product(*product);
    if (--product->sums->pending == 0)
        end_sums(warp, product->sums, product->what.columns / 2);
    warp.first_product = product->next;
    give_back(free_products, product);
}

void open_group(void *const *) { warp_of(current).products_open = true; }
void close_group(void *const *) { warp_of(current).product_groups++; }

void wait_for_groups(void *const *lanes)
{
    Warp &warp = warp_of(current);
    const unsigned groups = *static_cast<const unsigned *>(lanes[0]);
    while (warp.first_product && warp.product_groups - warp.first_product->group > groups)
        end_product(warp);
    warp.products_open = false;
}

}   // namespace

void show_operands(Place place)
{
    current->shown++;
    preempt(place);
}

void open_products(Place place) { together(nullptr, open_group, place); }
void close_products(Place place) { together(nullptr, close_group, place); }
void wait_products(unsigned groups, Place place) { together(&groups, wait_for_groups, place); }

void multiply_held(const SharedProduct &what, const unsigned *held, void *sums, Place place)
{
    Brought mine = {&what, static_cast<unsigned *>(sums), held};
    together(&mine, begin_product, place);
}

void multiply_shared(const SharedProduct &what, void *sums, Place place)
{
    multiply_held(what, nullptr, sums, place);
}

// Of a block whose last thread has ended.
void finish_products(const Block &block)
{
    for (int w = 0; w < warp_count; w++) {
        const Warp &warp = block.warps[w];
        if (warp.first_product)
            host->fail("a warp ends before its products are done");
        if (warp.products != block.warps[w / GROUP_WARPS * GROUP_WARPS].products)
            host->fail("four warps that multiply together have multiplied different operands");
    }
    for (int w = 0; w < warp_count; w++) {
        block.warps[w].products = 0;
        block.warps[w].products_open = false;
    }
}

}   // namespace rollerc_interp
