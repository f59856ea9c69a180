// A graph of launches: nodes as NAME_graph adds them, run in an order that its edges allow.
extern "C" void *calloc(size_t count, size_t bytes);
extern "C" void *realloc(void *memory, size_t bytes);

namespace rollerc_interp {

namespace {

struct Node {
    Invocation what;
    LaunchShape shape;
    unsigned char *pack;   // its arguments
    const size_t *sizes;   // the program's
    const int *after;    // ended by -1
    bool done;
} *nodes;                  // in the order in which they were added
int node_count;

size_t places_of(size_t bytes) { return (bytes + 63) / 64 * 64; }   // tensor maps lie at multiples of 64

// The caller's stack is gone when the graph runs, so arguments are copied, as by CUDA.
unsigned char *packed(void **args, const size_t *sizes)
{
    size_t bytes = 0;
    for (int i = 0; sizes[i]; i++)
        bytes += places_of(sizes[i]);
    unsigned char *pack = static_cast<unsigned char *>(calloc(bytes + 1, 1));
    for (size_t i = 0, at = 0; sizes[i]; at += places_of(sizes[i++]))
        __builtin_memcpy(pack + at, args[i], sizes[i]);
    return pack;
}

const int *copied(const int *after)
{
    int count = 0;
    while (after[count] >= 0)
        count++;
    int *copy = static_cast<int *>(calloc(static_cast<size_t>(count) + 1, sizeof *copy));
    __builtin_memcpy(copy, after, (static_cast<size_t>(count) + 1) * sizeof *copy);
    return copy;
}

int successors(int number)
{
    int count = 0;
    for (int i = 0; i < node_count; i++)
        for (const int *before = nodes[i].after; *before >= 0; before++)
            count += *before == number;
    return count;
}

// The edges are those of the file's first line. Only an edge between two launches that have no others may be
// programmatic: with several edges a launch would not wait for all, and one that waits at its end (waits_last)
// guarantees nothing of those before it.
void check_edges(int number, const Node &node)
{
    const Launch *said = host->source->launches && host->launch < host->source->launch_count ? &host->source->launches[host->launch] : nullptr;
    int count = 0;
    for (; node.after[count] >= 0; count++)
        if (node.after[count] >= number || (said && (count >= said->after_count || node.after[count] != said->after[count])))
            host->fail("the graph has other edges than the file's first line says");
    if (said && count != said->after_count)
        host->fail("the graph has other edges than the file's first line says");
    if (node.shape.early && (count != 1 || successors(node.after[0]) != 1 || nodes[node.after[0]].shape.cooperative))
        host->fail("the launch begins early behind one that it may not begin early behind");
    if (node.shape.early && said && !said->early)
        host->fail("the launch begins early, and its kernel does not wait");
}

// In all else it is the launch that the first line says, but for whether it begins early: that holds for a stream
// alone.
void check_node(const Invocation &what, LaunchShape shape)
{
    if (host->source->launches && host->launch < host->source->launch_count)
        shape.early = host->source->launches[host->launch].early;
    check_record(shape, what.args);
}

// What programs read of it lies on the launcher's stack.
void run_node(Node *node)
{
    enum { MOST = MAX_LAUNCH_ARGS + MAX_TENSOR_MAPS };
    alignas(64) unsigned char room[MOST * 64];
    void *args[MOST];
    size_t at = 0;
    for (int i = 0; node->sizes[i]; at += places_of(node->sizes[i++])) {
        args[i] = room + at;
        __builtin_memcpy(args[i], node->pack + at, node->sizes[i]);
    }
    Invocation what = node->what;
    what.args = args;
    check_node(what, node->shape);
    run_launch(what, node->shape);
    node->done = true;
}

bool is_free(const Node &node)
{
    bool free = !node.done;
    for (const int *before = node.after; *before >= 0 && free; before++)
        free = nodes[*before].done;
    return free;
}

// The latest that is free: at each step as far from the stream's order as possible.
int latest_free()
{
    int number = node_count - 1;
    while (!is_free(nodes[number]))
        number--;
    return number;
}

}   // namespace

cudaError_t add_node(int number, const int *after, const Invocation &what, const size_t *sizes, const LaunchShape &shape)
{
    if (number != node_count)
        host->fail("the graph's node %d is added as number %d", node_count, number);
    nodes = static_cast<Node *>(realloc(nodes, sizeof *nodes * static_cast<size_t>(number + 1)));
    nodes[node_count++] = {what, shape, packed(what.args, sizes), sizes, copied(after), false};
    return cudaSuccess;
}

cudaError_t run_nodes()
{
    for (int i = 0; i < node_count; i++) {
        const int number = latest_free();
        host->launch = host->source->prepare_count + number;   // behind those of NAME_prepare
        check_edges(number, nodes[number]);
        run_node(&nodes[number]);
    }
    host->launches += node_count;
    node_count = 0;
    return cudaSuccess;
}

}   // namespace rollerc_interp
