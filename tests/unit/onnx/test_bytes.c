// Bytes that are no model: refused with a message, whatever they are.
#include <check.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "front/onnx/onnx.h"

static jmp_buf on_error;
static char said[4096];

static void leave(int exit_code, const char *message, void *context)
{
    (void)context;
    ck_assert_int_eq(exit_code, EXIT_INPUT);
    strncpy(said, message, sizeof said - 1);
    longjmp(on_error, 1);
}

static const char *refusal_of(const char *bytes, size_t length)
{
    Arena *arena = arena_new();
    diag_configure((DiagOptions){.quiet = true, .on_fatal = leave});
    said[0] = '\0';
    if (!setjmp(on_error))
        onnx_import_bytes(arena, "test.onnx", bytes, length, &(OnnxOptions){0});
    arena_free(arena);
    return said;
}

#define ck_refused(bytes, what) ck_assert_ptr_nonnull(strstr(refusal_of(bytes, sizeof bytes - 1), what))

START_TEST(what_is_no_message_is_refused)
{
    ck_refused("", "no graph");
    ck_refused("\x3a\x7f", "beyond what holds it");
    ck_refused("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "more than 64 bits");
    ck_refused("\x08\x80", "cut off");
    ck_refused("\x3b", "a kind that the format does not have");
    ck_refused("\x02\x00", "no number");
}
END_TEST

START_TEST(a_field_that_is_not_known_is_refused_and_metadata_is_not)
{
    ck_refused("\x3a\x05\x0a\x03\x42\x01v", "field 8 of NodeProto");          // overload
    ck_refused("\x3a\x02\x0a\x00\xca\x01\x03\x5a\x01z", "field 11 of FunctionProto");
    ck_refused("\x3a\x05\x0a\x03\x4a\x01v", "has no output");                 // metadata_props
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("bytes");
    TCase *tests = tcase_create("bytes");
    tcase_add_test(tests, what_is_no_message_is_refused);
    tcase_add_test(tests, a_field_that_is_not_known_is_refused_and_metadata_is_not);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
