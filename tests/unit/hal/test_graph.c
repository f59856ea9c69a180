// Launches as a graph: run in another order than the stream's, and its edges beside those of the file's first line.
#include "hal/launch_order.h"

#include "interp_test.h"

enum { LAUNCHES = 4, ARGS = 3, BYTES = 4 };   // floats

/* c = 2*a + b, each of one thread: k0 reads x, 1 and 2 what it made, 3 what these did. */
#define IN {.buffer = 0, .bytes = BYTES}
#define OUT {.buffer = 1, .bytes = BYTES, .written = true}
#define AT(place) {.buffer = 2, .offset = 256 * (place), .bytes = BYTES}
#define TO(place) {.buffer = 2, .offset = 256 * (place), .bytes = BYTES, .written = true}
static const LaunchArg DIAMOND[LAUNCHES][ARGS] = {
    {IN, IN, TO(0)}, {AT(0), AT(0), TO(1)}, {AT(0), IN, TO(2)}, {AT(1), AT(2), OUT}};

/* Launch 2 writes where 0 did, for 3, and nobody reads that of 0 but 1. */
static const LaunchArg REUSE[LAUNCHES][ARGS] = {
    {IN, IN, TO(0)}, {AT(0), AT(0), TO(1)}, {IN, IN, TO(0)}, {AT(1), AT(0), OUT}};

typedef struct GraphCase {
    const LaunchArg (*args)[ARGS];
    const char *after[LAUNCHES];   // of each node
    int early;                     // the node that begins early; 0: none
    bool reads_first;              // the early one, before it waits
    float result;                  // of x = 1
    const char *what;              // what is wrong; NULL: nothing
} GraphCase;

static const GraphCase CASES[] = {
    /* 3, then 9 and 7, then 25. */
    {DIAMOND, {"", "0, ", "0, ", "1, 2, "}, 0, false, 25, NULL},
    {DIAMOND, {"", "0, ", "", "1, 2, "}, 0, false, 0, "the graph has other edges than the file's first line says"},
    {DIAMOND, {"", "0, ", "0, ", "2, "}, 0, false, 0, "the graph has other edges than the file's first line says"},
    {DIAMOND, {"", "0, ", "0, ", "0, 1, 2, "}, 0, false, 0, "the graph has other edges than the file's first line says"},
    {DIAMOND, {"", "0, ", "0, ", "1, 2, "}, 3, false, 0, "begins early behind one that it may not begin early behind"},
    {DIAMOND, {"", "0, ", "0, ", "1, 2, "}, 1, false, 0, "begins early behind one that it may not begin early behind"},
    /* 3 and 9; then 3 in the place of the first, and 21. */
    {REUSE, {"", "0, ", "1, ", "2, "}, 0, false, 21, NULL},
    {REUSE, {"", "0, ", "1, ", "2, "}, 2, false, 21, NULL},
    {REUSE, {"", "0, ", "1, ", "2, "}, 2, true, 0, "touches what an earlier launch writes, without waiting for it"},
};

static const char *pointer_of(const LaunchArg *arg)
{
    return arg->buffer == 0   ? "in0"
           : arg->buffer == 1 ? "out0"
                              : arena_printf(arena, "(char *)workspace + %lld", (long long)arg->offset);
}

static void write_node(StrBuf *out, const GraphCase *c, int k)
{
    strbuf_puts(out, "    {\n");
    for (int i = 0; i < ARGS; i++)
        strbuf_printf(out, "        const void *a%d = %s;\n", i, pointer_of(&c->args[k][i]));
    strbuf_printf(out,
                  "        void *args[] = {&a0, &a1, &a2};\n"
                  "        const int after[] = {%s-1};\n"
                  "        add_node(made, nodes, %d, after, %s, args, dim3(1), dim3(1), dim3(1), 0, false, %s);\n    }\n",
                  c->after[k], k, c->early == k && c->reads_first ? "t_hasty" : "t_k", k && c->early == k ? "true" : "false");
}

static const char *text_of(const GraphCase *c)
{
    char *prelude = realpath("templates/prelude.cuh", NULL);
    StrBuf out = strbuf_new(arena);
    strbuf_printf(&out, "#include \"%s\"\nusing namespace rollerc;\n", prelude);
    free(prelude);
    strbuf_puts(&out,
                "__global__ void t_k(const float *a, const float *b, float *c) { wait_for_earlier(); *c = 2 * *a + *b; }\n"
                "__global__ void t_hasty(const float *a, const float *b, float *c) { *c = 2 * *a + *b; wait_for_earlier(); }\n"
                "extern \"C\" int t_launch(const void *, void *, void *, void *) { return 1; }\n"
                "extern \"C\" int t_graph(void **graph, const void *in0, void *out0, void *workspace)\n{\n"
                "    cudaGraph_t made;\n    cudaGraphNode_t nodes[4];\n    cudaGraphCreate(&made, 0);\n");
    for (int k = 0; k < LAUNCHES; k++)
        write_node(&out, c, k);
    strbuf_puts(&out, "    *graph = made;\n    return 0;\n}\n");
    return out.text;
}

static void set_launches(const GraphCase *c, Launch *launches, LaunchArg (*args)[ARGS])
{
    memcpy(args, c->args, sizeof(LaunchArg[LAUNCHES][ARGS]));
    for (int k = 0; k < LAUNCHES; k++)
        launches[k] = (Launch){.entry = "t_k", .grid = {1, 1, 1}, .block = {1, 1, 1}, .cluster = {1, 1, 1},
                               .early = true, .args = args[k], .arg_count = ARGS};
    launches_order(arena, launches, LAUNCHES);
}

static RuntimeStatus load(const GraphCase *c, const Launch *launches, RuntimeModule **module, const char **reason)
{
    const char *text = text_of(c);
    const RuntimeSource source = {
        .name = "t", .text = text, .length = strlen(text), .arg_count = 2, .graph = true, .limits = test_limits(32),
        .launches = launches, .launch_count = LAUNCHES, .builds = RUNTIME_CHECKED,
    };
    return runtime_interp.load(arena, &source, module, reason);
}

START_TEST(a_graph_is_run_as_its_edges_allow)
{
    const GraphCase *c = &CASES[_i];
    Launch launches[LAUNCHES];
    LaunchArg args[LAUNCHES][ARGS];
    arena = arena_new();
    set_launches(c, launches, args);
    RuntimeModule *module;
    const char *reason = NULL;
    ck_assert_msg(load(c, launches, &module, &reason) == RUNTIME_DONE, "%s", reason);
    const float one = 1;
    memcpy(input, &one, sizeof one);
    const RuntimeTensor tensors[] = {{.name = "x", .buffer = 0, .bytes = BYTES},
                                     {.name = "y", .buffer = 1, .bytes = BYTES, .written = true},
                                     {.name = "workspace", .buffer = 2, .bytes = 768, .written = true}};
    RuntimeResult result = runtime_interp.run(
        arena, module,
        &(RuntimeJob){.buffer_bytes = (int64_t[]){BYTES, BYTES, 768}, .tensors = tensors, .tensor_count = 3, .fill = fill,
                      .only_launch = -1, .graph = true, .max_blocks = INT64_MAX, .checked = true, .seconds = 5});
    ck_assert_msg(result.status == (c->what ? RUNTIME_WRONG : RUNTIME_DONE), "%s", result.reason);
    ck_assert_msg(!c->what || strstr(result.reason, c->what), "'%s' lacks '%s'", result.reason, c->what);
    if (!c->what)
        ck_assert_float_eq(*(float *)result.buffers[1], c->result);
    runtime_interp.release(&result);
    arena_free(arena);
}
END_TEST

/* The edge from 1 to 2 is there for the place alone. */
START_TEST(launches_that_nothing_orders_are_found)
{
    Launch launches[LAUNCHES];
    LaunchArg args[LAUNCHES][ARGS];
    arena = arena_new();
    set_launches(&CASES[6], launches, args);
    launches[2].after_count = 0;
    RuntimeModule *module;
    const char *reason = NULL;
    ck_assert_int_eq(load(&CASES[6], launches, &module, &reason), RUNTIME_WRONG);
    ck_assert_msg(strstr(reason, "launches 0 and 2 touch the same memory, one of them writes it, and nothing orders them"), "%s",
                  reason);
    arena_free(arena);
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("graph");
    tcase_set_timeout(cases, 60);
    tcase_add_loop_test(cases, a_graph_is_run_as_its_edges_allow, 0, sizeof CASES / sizeof *CASES);
    tcase_add_test(cases, launches_that_nothing_orders_are_found);
    Suite *suite = suite_create("graph");
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
