#include "hal/yaml.h"

#include <check.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"

static const YamlForm list_form = {
    .name = "a list of shops", .wanted = "keys", .lists = true, .max_bytes = 1000, .max_events = 100};

static Arena *arena;
static jmp_buf error_exit;
static char error_text[4096];

static void open_arena(void) { arena = arena_new(); }
static void close_arena(void) { arena_free(arena); }

static void catch_error(int exit_code, const char *message, void *context)
{
    (void)exit_code, (void)context;
    snprintf(error_text, sizeof error_text, "%s", message);
    longjmp(error_exit, 1);
}

static const YamlNode *parse(const char *text, const YamlForm *form)
{
    return yaml_parse(arena, source_from_text(arena, "test.yaml", text, strlen(text)), form);
}

/* The first line of what is said of it; NULL: nothing. */
static const char *error_of(const char *text, const YamlForm *form)
{
    const char *volatile error = error_text;
    diag_configure((DiagOptions){.on_fatal = catch_error});
    if (!setjmp(error_exit)) {
        parse(text, form);
        error = NULL;
    }
    error_text[strcspn(error_text, "\n")] = '\0';
    return error;
}

START_TEST(lists_hold_words_mappings_and_lists)
{
    const YamlNode *shops = yaml_child(parse("shops: [a, {b: 1}, [c, d]]\n", &list_form), "shops");
    ck_assert(shops->list && !shops->text);
    const YamlNode *word = shops->children, *mapping = word->next, *list = mapping->next;
    ck_assert_str_eq(word->text, "a");
    ck_assert_uint_eq(word->loc.offset, 8);   // behind "shops: ["
    ck_assert_str_eq(yaml_child(mapping, "b")->text, "1");
    ck_assert(!mapping->list && list->list && !list->next);
    ck_assert_str_eq(list->children->next->text, "d");
    ck_assert_ptr_null(yaml_child(parse("shops: []\n", &list_form), "shops")->children);
}
END_TEST

START_TEST(what_has_no_place_in_a_file_is_refused_by_the_name_of_its_kind)
{
    ck_assert_str_eq(error_of("a: [&x b]\n", &list_form),
                     "test.yaml:1:5: error: anchors (&x) have no place in a list of shops");
    ck_assert_str_eq(error_of("a: [*x]\n", &list_form),
                     "test.yaml:1:5: error: aliases (*x) have no place in a list of shops");
    ck_assert_str_eq(error_of("[a, b]\n", &list_form), "test.yaml:1:1: error: wanted keys, found a list");
    YamlForm plain = list_form;
    plain.lists = false;
    ck_assert_str_eq(error_of("a: [b]\n", &plain), "test.yaml:1:4: error: lists have no place in a list of shops");
}
END_TEST

START_TEST(lists_nest_sixteen_deep_at_most)
{
    ck_assert_ptr_null(error_of("a: [[[[[[[[[[[[[[b]]]]]]]]]]]]]]\n", &list_form));   // 14, the mapping, the word
    ck_assert_str_eq(error_of("a: [[[[[[[[[[[[[[[b]]]]]]]]]]]]]]]\n", &list_form),
                     "test.yaml:1:19: error: nested deeper than 16 levels");
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("yaml");
    tcase_add_checked_fixture(cases, open_arena, close_arena);
    tcase_add_test(cases, lists_hold_words_mappings_and_lists);
    tcase_add_test(cases, what_has_no_place_in_a_file_is_refused_by_the_name_of_its_kind);
    tcase_add_test(cases, lists_nest_sixteen_deep_at_most);
    Suite *suite = suite_create("yaml");
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
