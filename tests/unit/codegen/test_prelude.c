// Which parts of a prelude a kernel's file carries; and that every template finds in them all that it uses.
#include "codegen/cuda/prelude.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/embedded.h"
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
static const char TYPES[] = "// Types.\n"
                            "\n"
                            "struct alignas(4) half { int bits; };\n"
                            "\n"
                            "template <class T> DEVICE T wide(T x) { return x; }\n"
                            "\n"
                            "DEVICE float wide(half x)\n"
                            "{\n"
                            "    const float y = x.bits;\n"
                            "\n"
                            "    return y;\n"
                            "}\n";
static const char REST[] = "#define WORDS(x) \\\n"
                           "    wide(x)\n"
                           "\n"
                           "#if defined(A)\n"
                           "constexpr int ONE = 1;\n"
                           "\n"
                           "#else\n"
                           "constexpr int ONE = 2;\n"
                           "#endif\n"
                           "\n"
                           "// Not wide: \"TWO\" it is.\n"
                           "template <int N = (ONE > 0), class T = Pair<int>> DEVICE Pair<T> two(T x[ONE])\n"
                           "{\n"
                           "    return 'a' + 0xhalf;\n"
                           "}\n";

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

/* What is emitted for the text; NULL: of the prelude in the binary. */
static const char *emitted(const char *from, const char *text)
{
    StrBuf out = strbuf_new(arena);
    prelude_write(&out, &(TemplateStore){.arena = arena, .folder = from}, text);
    return out.text;
}

#define NAMESPACE "// templates/prelude.cuh:5\nnamespace rollerc {\n"
#define END "\n// templates/prelude.cuh:8\n}\n"

START_TEST(a_text_that_uses_nothing_gets_nothing)
{
    const char *text = "// wide\nconst char *s = \"two \\\" wide\"; int c = 'w', n = 1wide, wider, awide;\n";
    ck_assert_str_eq(emitted(folder, text), NAMESPACE END);
}
END_TEST

START_TEST(a_part_is_taken_with_the_heading_of_its_file)
{
    ck_assert_str_eq(emitted(folder, "wide(1)"), "// templates/prelude/types.cuh:1\n// Types.\n\n"
                     "// templates/prelude/types.cuh:5\ntemplate <class T> DEVICE T wide(T x) { return x; }\n\n"
                     NAMESPACE END);
}
END_TEST

/* wide(half) stands in a part of its own: it comes with `half` and `wide`. Parts in a row are cited once. */
START_TEST(an_overload_for_a_type_comes_with_the_type)
{
    ck_assert_str_eq(emitted(folder, "half x"), "// templates/prelude/types.cuh:1\n// Types.\n\n"
                     "struct alignas(4) half { int bits; };\n\n" NAMESPACE END);
    ck_assert_str_eq(emitted(folder, "wide(half())"),
                     arena_printf(arena, "// templates/prelude/types.cuh:1\n%s\n" NAMESPACE END, TYPES));
}
END_TEST

START_TEST(taken_parts_take_what_they_use)
{
    ck_assert_str_eq(emitted(folder, "two(x)"),
                     arena_printf(arena, NAMESPACE "\n// templates/prelude/rest.cuh:4\n%s" END, strstr(REST, "#if")));
    ck_assert_str_eq(emitted(folder, "WORDS"), "// templates/prelude/types.cuh:1\n// Types.\n\n"
                     "// templates/prelude/types.cuh:5\ntemplate <class T> DEVICE T wide(T x) { return x; }\n\n"
                     NAMESPACE "\n// templates/prelude/rest.cuh:1\n#define WORDS(x) \\\n    wide(x)\n" END);
}
END_TEST

START_TEST(all_files_are_listed)
{
    const char *const *files = prelude_files(&(TemplateStore){.arena = arena, .folder = folder});
    ck_assert_str_eq(files[0], "templates/prelude.cuh");
    ck_assert_str_eq(files[1], "templates/prelude/types.cuh");
    ck_assert_str_eq(files[2], "templates/prelude/rest.cuh");
    ck_assert_ptr_null(files[3]);
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
        const char *include = strstr(file->text, INCLUDE), *prelude = emitted(NULL, file->text), *reason = NULL;
        ck_assert_ptr_nonnull(include);
        ck_assert_str_eq(emitted(NULL, arena_printf(arena, "%s%s", prelude, file->text)), prelude);
        const char *text = arena_printf(
            arena, "%s#define KERNEL t_scope\n#define ENTRY t_k0\n%.*s%s\nextern \"C\" int t_launch(void *, void *) { return 0; }\n",
            prelude, (int)(include - file->text), file->text, include + strlen(INCLUDE));
        RuntimeSource source = {
            .name = "t", .text = text, .length = strlen(text), .limits = {.warp_size = 32, .shared_bytes = 48 << 10}};
        RuntimeModule *module;
        ck_assert_msg(runtime_interp.load(arena, &source, &module, &reason) == RUNTIME_DONE, "%s: %s", file->path, reason);
        seen++;
    }
    ck_assert_int_ge(seen, 9);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("prelude");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, a_text_that_uses_nothing_gets_nothing);
    tcase_add_test(tests, a_part_is_taken_with_the_heading_of_its_file);
    tcase_add_test(tests, an_overload_for_a_type_comes_with_the_type);
    tcase_add_test(tests, taken_parts_take_what_they_use);
    tcase_add_test(tests, all_files_are_listed);
    tcase_add_test(tests, templates_find_all_that_they_use);
    Suite *suite = suite_create("prelude");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
