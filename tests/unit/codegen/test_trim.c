// Which definitions of a prelude a kernel's file carries, and what is settled in it; and that every template finds all that it uses.
#include "codegen/cuda/trim.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/embedded.h"
#include "codegen/cuda/fold.h"
#include "hal/runtime.h"

static Arena *arena;
static char folder[] = "/tmp/rollerc-prelude-XXXXXX";

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(arena_printf(arena, "%s/%s", folder, name), "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

/* A prelude of two files. */
static const char ROOT[] = "// Not emitted.\n"
                           "// <rollerc: prelude>\n"
                           "#include \"prelude/types.cuh\"\n"
                           "\n"
                           "namespace rollerc {\n"
                           "#include \"prelude/rest.cuh\"\n\n"
                           "}\n"
                           "// </rollerc>\n";
static const char TYPES[] = "// ---- types ----\n"
                            "\n"
                            "struct alignas(4) half { int bits; };\n"
                            "\n"
                            "// Wide ones.\n"
                            "template <class T> DEVICE T wide(T x) { return x; }\n"
                            "DEVICE double wide(double x) { return x; }\n"
                            "// Of halves.\n"
                            "DEVICE float wide(half x)\n"
                            "{\n"
                            "    const float y = x.bits;\n"
                            "\n"
                            "    return y;\n"
                            "}\n";
static const char REST[] = "#define WORDS(x) \\\n"
                           "    wide(x)\n"
                           "\n"
                           "#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900\n"
                           "constexpr int ONE = 1, OTHER = 9;\n"
                           "#elif !defined(UNKNOWN)\n"
                           "constexpr int ONE = 2;\n"
                           "#else\n"
                           "constexpr int ONE = 3;\n"
                           "#endif\n"
                           "\n"
                           "// Not wide: \"TWO\" it is.\n"
                           "template <int N = (ONE > 0), class T = Pair<int>> DEVICE Pair<T> two(T x[ONE])\n"
                           "{\n"
                           "    return x.wide + 'a' + 0xhalf;\n"
                           "}\n"
                           "template <class T, int N> struct Many {};\n"
                           "DEVICE int many(Many<int, 4>) { return 4; }\n"
                           "DEVICE int many(Many<int, 8>) { return 8; }\n"
                           "DEVICE int three(int x) { return two<1>(x); }\n"
                           "DEVICE half three(half x) { return x; }\n";

static void setup(void)
{
    arena = arena_new();
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    mkdir(arena_printf(arena, "%s/prelude", folder), 0700);
    write_file("prelude.cuh", ROOT);
    write_file("prelude/types.cuh", TYPES);
    write_file("prelude/rest.cuh", REST);
}

static void teardown(void)
{
    for (const char **name = (const char *[]){"prelude.cuh", "prelude/types.cuh", "prelude/rest.cuh", NULL}; *name; name++)
        unlink(arena_printf(arena, "%s/%s", folder, *name));
    rmdir(arena_printf(arena, "%s/prelude", folder));
    rmdir(folder);
    arena_free(arena);
}

static Trim *trimmed(const char *from, int arch, const char *text)
{
    static TemplateStore store;
    static TextTarget target;
    store = (TemplateStore){.arena = arena, .folder = from};
    target = (TextTarget){.arch = arch};
    Trim *trim = trim_new(&store, target, "t", 0);
    trim_add_user(trim, text);
    trim_take(trim);
    return trim;
}

/* What is emitted for the text; NULL: of the prelude in the binary. */
static const char *emitted(const char *from, int arch, const char *text)
{
    StrBuf out = strbuf_new(arena);
    trim_write_prelude(&out, trimmed(from, arch, text));
    return out.text;
}

static void check_emitted(int arch, const char *text, const char *before, const char *within)
{
    ck_assert_str_eq(emitted(folder, arch, text),
                     arena_printf(arena, "%snamespace t_prelude {   // what the kernels use of templates/prelude/\n%s}   // namespace t_prelude\n\n",
                                  before, within));
}

START_TEST(a_text_that_uses_nothing_gets_nothing)
{
    check_emitted(900, "// wide\nconst char *s = \"two \\\" wide\"; int c = 'w', n = 1wide, wider, awide, x.wide, p->wide, T::wide;\n", "", "");
}
END_TEST

START_TEST(a_definition_comes_with_the_comment_of_its_paragraph)
{
    check_emitted(900, "wide(1)", "// Wide ones.\ntemplate <class T> DEVICE T wide(T x) { return x; }\n", "");
}
END_TEST

/* By name, or as the type of a number. */
START_TEST(an_overload_for_a_type_comes_with_the_type)
{
    static const char all[] = "// Wide ones.\ntemplate <class T> DEVICE T wide(T x) { return x; }\n"
                              "DEVICE double wide(double x) { return x; }\n";
    check_emitted(900, "half x", "struct alignas(4) half { int bits; };\n", "");
    check_emitted(900, "wide(1.5)", all, "");
    check_emitted(900, "wide(1e3)", all, "");
    check_emitted(900, "double x = wide(1)", all, "");
    check_emitted(900, "wide(1.5f + 0x1e)", "// Wide ones.\ntemplate <class T> DEVICE T wide(T x) { return x; }\n", "");
    ck_assert_ptr_nonnull(strstr(emitted(folder, 900, "wide(half())"), "// Of halves.\nDEVICE float wide(half x)\n{"));
}
END_TEST

/* name<…>() calls no function that is no template. */
START_TEST(an_overload_that_is_no_template_comes_with_a_plain_call)
{
    ck_assert_ptr_null(strstr(emitted(folder, 900, "wide<double>(1)"), "wide(double x)"));
    ck_assert_ptr_nonnull(strstr(emitted(folder, 900, "wide<double>(1), wide(2)"), "wide(double x)"));
}
END_TEST

/* That the last argument of a template is, or may be. */
START_TEST(an_overload_for_a_number_comes_with_the_number)
{
    static const char *const four = "many(Many<int, 4>)", *const eight = "many(Many<int, 8>)";
    const char *some = emitted(folder, 900, "many(Many<int, 2 * 4>())");
    ck_assert(!strstr(some, four) && strstr(some, eight));
    const char *all = emitted(folder, 900, "many(Many<int, 2 * size>())");
    ck_assert(strstr(all, four) && strstr(all, eight));
    const char *none = emitted(folder, 900, "many(Many<int, 5>())");
    ck_assert(!strstr(none, four) && !strstr(none, eight));
}
END_TEST

START_TEST(what_is_taken_takes_what_it_uses)
{
    check_emitted(900, "three(x)", "",
                  "[[maybe_unused]] constexpr int ONE = 1, OTHER = 9;\n"
                  "// Not wide: \"TWO\" it is.\n"
                  "template <int N = (ONE > 0), class T = Pair<int>> DEVICE Pair<T> two(T x[ONE])\n{\n"
                  "    return x.wide + 'a' + 0xhalf;\n}\n"
                  "DEVICE int three(int x) { return two<1>(x); }\n");
    check_emitted(900, "WORDS", "// Wide ones.\ntemplate <class T> DEVICE T wide(T x) { return x; }\n",
                  "#define WORDS(x) \\\n    wide(x)\n");
    check_emitted(900, "OTHER", "", "[[maybe_unused]] constexpr int ONE = 1, OTHER = 9;\n");
}
END_TEST

START_TEST(a_device_settles_conditions_on_it)
{
    check_emitted(800, "ONE", "", "#ifndef UNKNOWN\nconstexpr int ONE = 2;\n#else\nconstexpr int ONE = 3;\n#endif\n");
    ck_assert_int_eq(trim_arch(trimmed(folder, 900, "ONE")), 900);
    ck_assert_int_eq(trim_arch(trimmed(folder, 800, "ONE")), 0);
    ck_assert_int_eq(trim_arch(trimmed(folder, 900, "wide(1)")), 0);
}
END_TEST

// ---- branches ----

static const char *folded(const char *text)
{
    static const Slice none = {0};
    Constants constants = {.table = {.arena = arena}};
    constants_read(&constants, "constexpr int A = 3, B = 2 * A + 1;");
    constants_read(&constants, "constexpr bool FEW = B <= 7 && A != 2;");
    constants_read(&constants, "constexpr float REAL = 1.5f, C = unknown(A);");
    return fold_branches(arena, arena_new(), &constants, &none, text, false);
}

START_TEST(branches_by_constants_are_settled)
{
    ck_assert_str_eq(folded("int f(int x)\n{\n    // Why.\n    if (A > 3)\n        x++;   // never\n    return x;\n}\n"),
                     "int f(int x)\n{\n    return x;\n}\n");
    ck_assert_str_eq(folded("int f(int x)\n{\n    if (x)\n        return 1;\n    else if (A > 3)\n        g();\n    return 2;\n}\n"),
                     "int f(int x)\n{\n    if (x)\n        return 1;\n    return 2;\n}\n");
    ck_assert_str_eq(folded("int f(int x)\n{\n    if (FEW)\n        return x;\n    g(x);\n    return 2;\n}\n"),
                     "int f(int x)\n{\n    return x;\n}\n");
    ck_assert_str_eq(folded("void f()\n{\n    if (B % 2 == 0) {\n        g();\n    } else {\n        h();\n        i();\n    }\n}\n"),
                     "void f()\n{\n    h();\n    i();\n}\n");
    ck_assert_str_eq(folded("void f()\n{\n    if (A == 3) {\n        const int y = 1;\n        g(y);\n    }\n}\n"),
                     "void f()\n{\n    const int y = 1;\n    g(y);\n}\n");
    ck_assert_str_eq(folded("void f()\n{\n    if (A == 3) {\n        const int y = 1;\n        g(y);\n    }\n    const int y = 2;\n    g(y);\n}\n"),
                     "void f()\n{\n    {\n        const int y = 1;\n        g(y);\n    }\n    const int y = 2;\n    g(y);\n}\n");
    ck_assert_str_eq(folded("void f()\n{\n    for (;;)\n        if (A == 2)\n            g();\n    h();\n}\n"),
                     "void f()\n{\n    for (;;)\n        ;\n    h();\n}\n");
    ck_assert_str_eq(folded("void f(int x)\n{\n    if (A == 2 && (g() || P::B) && x)\n        g();\n    h();\n}\n"),
                     "void f(int x)\n{\n    h();\n}\n");
    ck_assert_str_eq(folded("void f(int x)\n{\n    if (A == 2 && x > 1 || FEW || x)\n        g();\n}\n"),
                     "void f(int x)\n{\n    g();\n}\n");
    ck_assert_str_eq(folded("struct S {\n    void f() const\n    {\n        if (A == 3)\n            g();\n    }\n};\n"),
                     "struct S {\n    void f() const\n    {\n        g();\n    }\n};\n");
}
END_TEST

START_TEST(constants_that_nothing_reads_go)
{
    static const char *const texts[][2] = {
        {"const int y = (int)x + 1, z = 2;\n    [[maybe_unused]] const int u = x;\n    [[maybe_unused]] const int v = x;\n    g(s.w, v);",
         "const int y = (int)x + 1, z = 2;\n    const int v = x;\n    g(s.w, v);"},
        {"const int y = g(x);\n    g(x, s.y);", NULL},
        {"float w[A];\n    g(x);", NULL},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *text = arena_printf(arena, "void f(int x)\n{\n    %s\n}\n", texts[i][0]);
        ck_assert_str_eq(folded(text), texts[i][1] ? arena_printf(arena, "void f(int x)\n{\n    %s\n}\n", texts[i][1]) : text);
    }
}
END_TEST

START_TEST(choices_by_constants_are_made)
{
    static const char *const choices[][2] = {
        {"A > 1 ? x : y", "x"},
        {"x + (A < 1 ? 0 : y * 2) + 1", "x + y * 2 + 1"},
        {"x * (A < 1 ? 0 : y + 2)", "x * (y + 2)"},
        {"g<A == 1 ? 4 : A == 3 ? 8 : 2>(A < 1 || x > y)", "g<8>(A < 1 || x > y)"},   // an int is no truth
        {"A == 3 && x && y ? x : y", "x && y ? x : y"},
        {"x && A == 2 ? g() : y", "y"},
        {"x = A == 3 && x, y = FEW && x || y && A > 2 && x", "x = A == 3 && x, y = x || y && x"},
        {"x ? A > 1 ? 1 : 2 : x ? S::y : 4", "x ? 1 : x ? S::y : 4"},
        {"g(x) && A == 2 ? 1 : 2", NULL},
        {"x > A ? 1 : 2", NULL},
    };
    Constants constants = {.table = {.arena = arena}};
    constants_read(&constants, "constexpr int A = 3, FEW = 1;");
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        const char *text = arena_printf(arena, "int f(int x)\n{\n    return %s;\n}\n", choices[i][0]);
        const char *wanted = choices[i][1] ? arena_printf(arena, "int f(int x)\n{\n    return %s;\n}\n", choices[i][1]) : text;
        ck_assert_str_eq(fold_expressions(arena, arena_new(), &constants, text, false), wanted);
    }
}
END_TEST

START_TEST(what_is_not_known_stays)
{
    static const char *const texts[] = {
        "void f(int x)\n{\n    if (x > A)\n        g();\n}\n",
        "void f(int x)\n{\n    if (A == 2 && x || x)\n        g();\n}\n",
        "void f()\n{\n    if (g() && A == 2)\n        g();\n}\n",
        "void f()\n{\n    if (C == 3)\n        g();\n}\n",
        "void f()\n{\n    if (REAL > 1)\n        g();\n}\n",
        "void f()\n{\n    if (A / 0 == 3)\n        g();\n}\n",
        "void f()\n{\n    const int A = g();\n    if (A == 3)\n        h();\n}\n",   // another A
        "struct S {\n    int at[2] = {A};\n};\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        ck_assert_str_eq(folded(texts[i]), texts[i]);
}
END_TEST

START_TEST(calls_of_what_does_nothing_go)
{
    const Slice idle[] = {slice_of("rest"), {0}};
    const Constants constants = {.table = {.arena = arena}};
    ck_assert(fold_is_idle("DEVICE void rest(int x)\n{\n}\n"));
    ck_assert(!fold_is_idle("DEVICE void rest(int x)\n{\n    g(x);\n}\n"));
    ck_assert(!fold_is_idle("DEVICE int rest(int x) { }\n"));
    ck_assert_str_eq(fold_branches(arena, arena_new(), &constants, idle, "void f(int x)\n{\n    rest(x, y + 1);\n    rest(x++);\n}\n", false),
                     "void f(int x)\n{\n    rest(x++);\n}\n");
    ck_assert_str_eq(fold_branches(arena, arena_new(), &constants, idle,
                                   "void f(int x)\n{\n    if (x % 4 == 0 && y <= x)\n        rest(x);\n    g(x);\n}\n", false),
                     "void f(int x)\n{\n    g(x);\n}\n");
    static const char *const asks[] = {"g(x)", "x = y", "x++"};
    for (size_t i = 0; i < sizeof asks / sizeof *asks; i++) {
        const char *text = arena_printf(arena, "void f(int x)\n{\n    if (%s)\n        rest(x);\n}\n", asks[i]);
        ck_assert_str_eq(fold_branches(arena, arena_new(), &constants, idle, text, false), text);
    }
}
END_TEST

START_TEST(lines_that_are_cited_stay)
{
    const Slice idle[] = {slice_of("rest"), {0}}, none = {0};
    Constants constants = {.table = {.arena = arena}};
    constants_read(&constants, "constexpr int A = 3;");
    const char *text = "void f(int x)\n{\n    // Why.\n    if (A > 3) {\n        h();\n    }\n    (void)x;\n    rest(x,\n         1);\n    g(x);\n}\n";
    text = fold_branches(arena, arena_new(), &constants, idle, fold_branches(arena, arena_new(), &constants, &none, text, true), true);
    ck_assert_ptr_null(strstr(text, "h()"));
    ck_assert_ptr_null(strstr(text, "rest"));
    int line = 1;
    for (const char *at = text; at < strstr(text, "g(x)"); at++)
        line += *at == '\n';
    ck_assert_int_eq(line, 10);
}
END_TEST

// ---- names ----

START_TEST(names_are_those_of_the_expression_unless_they_are_taken)
{
    Names *names = names_new(arena);
    names_avoid(names, "for (int e = 0; e < at.x; e++)");
    names_give(names, "in0", "x");
    names_give(names, "v1", "e");
    names_give(names, "v2", "float");
    names_give(names, "out0", "y.1");
    names_give(names, "v3", "x");
    names_give(names, "v4", "M_PI");   // which <math.h> says is 3.14
    ck_assert_str_eq(names_put(names, "t.in0[e] = v1 + v2 * v10; out0(v3, v4); // in0"), "t.x[e] = e_ + float_ * v10; y_1(x_, M_PI_); // in0");
}
END_TEST

START_TEST(all_files_are_listed)
{
    const char *const *files = prelude_files(&(TemplateStore){.arena = arena, .folder = folder});
    ck_assert_str_eq(files[0], "templates/prelude.cuh");
    ck_assert_str_eq(files[1], "templates/prelude/types.cuh");
    ck_assert_str_eq(files[2], "templates/prelude/rest.cuh");
    ck_assert_str_eq(files[3], "templates/main.cuh");
    ck_assert_ptr_null(files[4]);
}
END_TEST

static bool is_template(const EmbeddedFile *file)
{
    size_t length = strlen(file->path);
    return strncmp(file->path, "templates/", 10) == 0 && strcmp(file->path + length - 3, ".cu") == 0;
}

/* With its parts of the prelude each template compiles as it stands; and what these parts use is among them. */
START_TEST(templates_find_all_that_they_use)
{
    static const char INCLUDE[] = "#include \"prelude.cuh\"\n";
    int seen = 0;
    for (const EmbeddedFile *file = embedded_files; file->path; file++) {
        if (!is_template(file))
            continue;
        const char *include = strstr(file->text, INCLUDE), *prelude = emitted(NULL, 800, file->text), *reason = NULL;
        ck_assert_ptr_nonnull(include);
        const char *text = arena_printf(
            arena, "%s#define KERNEL t_scope\n#define ENTRY t_k0\n%.*s%s\nextern \"C\" int t_launch(void *, void *) { return 0; }\n",
            prelude, (int)(include - file->text), file->text, include + strlen(INCLUDE));
        RuntimeSource source = {
            .name = "t", .text = text, .length = strlen(text), .limits = {.warp_size = 32, .shared_bytes = 48 << 10},
            .builds = RUNTIME_PLAIN};
        RuntimeModule *module;
        ck_assert_msg(runtime_interp.load(arena, &source, &module, &reason) == RUNTIME_DONE, "%s: %.1500s", file->path, reason);
        seen++;
    }
    ck_assert_int_ge(seen, 9);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("trim");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, a_text_that_uses_nothing_gets_nothing);
    tcase_add_test(tests, a_definition_comes_with_the_comment_of_its_paragraph);
    tcase_add_test(tests, an_overload_for_a_type_comes_with_the_type);
    tcase_add_test(tests, an_overload_that_is_no_template_comes_with_a_plain_call);
    tcase_add_test(tests, an_overload_for_a_number_comes_with_the_number);
    tcase_add_test(tests, what_is_taken_takes_what_it_uses);
    tcase_add_test(tests, a_device_settles_conditions_on_it);
    tcase_add_test(tests, branches_by_constants_are_settled);
    tcase_add_test(tests, constants_that_nothing_reads_go);
    tcase_add_test(tests, choices_by_constants_are_made);
    tcase_add_test(tests, what_is_not_known_stays);
    tcase_add_test(tests, calls_of_what_does_nothing_go);
    tcase_add_test(tests, lines_that_are_cited_stay);
    tcase_add_test(tests, names_are_those_of_the_expression_unless_they_are_taken);
    tcase_add_test(tests, all_files_are_listed);
    tcase_add_test(tests, templates_find_all_that_they_use);
    Suite *suite = suite_create("trim");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
