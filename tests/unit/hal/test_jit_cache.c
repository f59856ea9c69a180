// Machine code that is kept: what comes back, what counts as missing, what goes. No compiler is needed.
#include "hal/jit_cache.h"

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/hash.h"
#include "base/output.h"
#include "base/strbuf.h"

static Arena *arena;
static char *folder;
static JitCache *cache;

static const unsigned char cubin[] = "\177ELF\0code";

static const char log_text[] = "ptxas info    : Compiling entry function 'k' for 'sm_80'\n"
                               "ptxas info    : Used 20 registers, used 0 barriers\n";

static JitResult result = {
    .status = JIT_DONE,
    .compiler = "NVRTC 13.0",
    .log = log_text,
    .ptx = ".version 9.0",
    .ptx_length = 12,
    .cubin = cubin,
    .cubin_length = sizeof cubin,
};

static void set_up(void)
{
    arena = arena_new();
    folder = temp_dir_make(arena);   // goes with the test's process
    cache = jit_cache_open(arena, folder, 1 << 20);
}

static void tear_down(void) { arena_free(arena); }

static const char *key(int number)
{
    const char *text = arena_printf(arena, "%d", number);
    return hash_of(arena, text, strlen(text));
}

static char *file_of(const char *entry) { return arena_printf(arena, "%s/%s", cache->folder, entry); }

static bool is_known(const char *entry)
{
    JitResult loaded;
    return jit_cache_load(arena, cache, entry, &loaded);
}

static int entries(void)
{
    DIR *all = opendir(cache->folder);
    int count = -2;   // "." and ".."
    while (readdir(all))
        count++;
    closedir(all);
    return count;
}

START_TEST(what_is_kept_comes_back)
{
    JitResult loaded;
    ck_assert(!is_known(key(1)));
    jit_cache_store(cache, key(1), &result);
    ck_assert(jit_cache_load(arena, cache, key(1), &loaded));
    ck_assert_int_eq(loaded.status, JIT_DONE);
    ck_assert_str_eq(loaded.compiler, "NVRTC 13.0");
    ck_assert_str_eq(loaded.log, log_text);
    ck_assert_str_eq(loaded.ptx, ".version 9.0");
    ck_assert_uint_eq(loaded.cubin_length, sizeof cubin);
    ck_assert_mem_eq(loaded.cubin, cubin, sizeof cubin);
    ck_assert_int_eq(loaded.kernel_count, 1);
    ck_assert_int_eq(loaded.kernels[0].registers, 20);
    ck_assert(!is_known(key(2)));
}
END_TEST

START_TEST(a_damaged_byte_anywhere_is_noticed_and_mended_by_the_next_writer)
{
    jit_cache_store(cache, key(1), &result);
    struct stat status;
    stat(file_of(key(1)), &status);
    for (off_t at = 0; at < status.st_size; at++) {
        int fd = open(file_of(key(1)), O_RDWR);
        char byte;
        ck_assert_int_eq(pread(fd, &byte, 1, at), 1);
        byte ^= 1;
        ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
        close(fd);
        ck_assert_msg(!is_known(key(1)), "byte %d", (int)at);
        jit_cache_store(cache, key(1), &result);
        ck_assert(is_known(key(1)));
    }
}
END_TEST

START_TEST(an_entry_that_was_cut_off_or_renamed_is_none)
{
    for (int kept = 0; kept < 300; kept += 7) {
        jit_cache_store(cache, key(1), &result);
        ck_assert_int_eq(truncate(file_of(key(1)), kept), 0);
        ck_assert_msg(!is_known(key(1)), "%d bytes", kept);
    }
    jit_cache_store(cache, key(1), &result);
    ck_assert_int_eq(rename(file_of(key(1)), file_of(key(2))), 0);
    ck_assert(!is_known(key(2)));
    ck_assert_int_eq(symlink(key(2), file_of(key(1))), 0);   // a link is followed nowhere
    ck_assert(!is_known(key(1)));
}
END_TEST

START_TEST(what_was_used_longest_ago_goes)
{
    for (int i = 0; i < 4; i++) {
        jit_cache_store(cache, key(i), &result);
        usleep(20000);   // the clock of files ticks every 4 ms
    }
    ck_assert(is_known(key(0)));
    struct stat status;
    stat(file_of(key(0)), &status);
    jit_cache_trim(cache);
    ck_assert_int_eq(entries(), 4);
    cache->max_bytes = 2 * status.st_size;
    jit_cache_trim(cache);
    ck_assert_int_eq(entries(), 2);
    ck_assert(is_known(key(0)) && is_known(key(3)));
}
END_TEST

START_TEST(any_number_of_processes_may_write)
{
    for (int child = 0; child < 8; child++)
        if (fork() == 0) {
            for (int i = 0; i < 200; i++) {
                jit_cache_store(cache, key(i % 5), &result);
                if (i % 20 == 0)
                    jit_cache_trim(cache);
                JitResult loaded;
                if (jit_cache_load(arena, cache, key(i % 5), &loaded) &&
                    memcmp(loaded.cubin, cubin, sizeof cubin) != 0)
                    _exit(1);
            }
            _exit(0);
        }
    for (int status; wait(&status) > 0;)
        ck_assert_int_eq(status, 0);
    ck_assert_int_eq(entries(), 5);   // and nothing temporary
}
END_TEST

enum { OPENS, IS_REFUSED };   // with a warning, and the compile goes on; or an exit code

static int opens(const char *where)
{
    pid_t child = fork();
    if (child == 0)
        _exit(jit_cache_open(arena, where, 1 << 20) ? OPENS : IS_REFUSED);
    int status;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}

START_TEST(a_folder_that_others_may_write_to_is_refused)
{
    ck_assert_int_eq(opens(arena_printf(arena, "%s/a/b", folder)), OPENS);   // made with what is missing
    static const struct {
        mode_t mode;
        int entries, holder;   // what becomes of the folder of the entries, and of the one that holds it
    } modes[] = {{0755, OPENS, OPENS}, {0775, IS_REFUSED, IS_REFUSED}, {0757, IS_REFUSED, IS_REFUSED},
                 {0700, OPENS, OPENS}, {01777, IS_REFUSED, OPENS}};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        ck_assert_int_eq(chmod(cache->folder, modes[i].mode), 0);
        ck_assert_int_eq(opens(folder), modes[i].entries);
        ck_assert_int_eq(chmod(cache->folder, 0755), 0);
        ck_assert_int_eq(chmod(folder, modes[i].mode), 0);
        ck_assert_int_eq(opens(folder), modes[i].holder);
        ck_assert_int_eq(chmod(folder, 0755), 0);
    }
    output_write(arena_printf(arena, "%s/file", folder), "", 0);
    ck_assert_int_eq(opens(arena_printf(arena, "%s/file", folder)), EXIT_MACHINE);
    if (geteuid() == 0) {
        ck_assert_int_eq(chown(cache->folder, 12345, (gid_t)-1), 0);
        ck_assert_int_eq(opens(folder), IS_REFUSED);
        ck_assert_int_eq(chown(cache->folder, 0, (gid_t)-1), 0);
        ck_assert_int_eq(chown(folder, 12345, (gid_t)-1), 0);
        ck_assert_int_eq(opens(folder), IS_REFUSED);
    }
}
END_TEST

START_TEST(what_is_made_under_an_open_umask_is_closed)
{
    mode_t before = umask(0);
    ck_assert_int_eq(opens(arena_printf(arena, "%s/new/one", folder)), OPENS);
    ck_assert_int_eq(umask(before), 0);
}
END_TEST

/* An entry whose body is this, under the right hash of it. */
static void write_entry(const char *body, size_t length)
{
    StrBuf text = strbuf_new(arena);
    strbuf_printf(&text, "rollerc machine code 2\n%s\n", hash_of(arena, body, length));
    strbuf_write(&text, body, length);
    output_write(file_of(key(1)), text.text, text.length);
}

START_TEST(an_entry_whose_lengths_are_false_is_none)
{
    static const char *const rests[] = {
        "", "\n", "c", "c\n", "c\n\n", "c\n0 0 0\n", "c\n1 1 1 0\n", "c\n1 1 1 0\nab", "c\n1 1 1 0\nabcd",
        "c\n-1 1 1 0\nabc", "c\n18446744073709551615 1 1 0\na", "c\n18446744073709551615 2 2 0\nabc",
        "c\n9223372036854775808 9223372036854775808 3 0\nabc", "c\n99999999999999999999999 1 1 0\nabc",
        "c\n3000000000 0 0 0\nabc", "c\nx y z 0\nabc", "c\n1 1 1\nabc", "c 1 1 1 0 abc"};
    for (size_t i = 0; i < sizeof rests / sizeof *rests; i++) {
        const char *body = arena_printf(arena, "%s\n%s", key(1), rests[i]);
        write_entry(body, strlen(body));
        ck_assert_msg(!is_known(key(1)), "%s", rests[i]);
    }
    const char *body = arena_printf(arena, "%s\nc\n1 1 1 0\nabc", key(1));
    write_entry(body, strlen(body));
    ck_assert(is_known(key(1)));
}
END_TEST

START_TEST(a_pipe_is_no_entry)
{
    ck_assert_int_eq(mkfifo(file_of(key(1)), 0600), 0);
    alarm(5);   // it would wait for a writer
    ck_assert(!is_known(key(1)));
    alarm(0);
    jit_cache_store(cache, key(1), &result);
    ck_assert(is_known(key(1)));
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("jit_cache");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, what_is_kept_comes_back);
    tcase_add_test(cases, a_damaged_byte_anywhere_is_noticed_and_mended_by_the_next_writer);
    tcase_add_test(cases, an_entry_that_was_cut_off_or_renamed_is_none);
    tcase_add_test(cases, what_was_used_longest_ago_goes);
    tcase_add_test(cases, any_number_of_processes_may_write);
    tcase_add_test(cases, a_folder_that_others_may_write_to_is_refused);
    tcase_add_test(cases, what_is_made_under_an_open_umask_is_closed);
    tcase_add_test(cases, an_entry_whose_lengths_are_false_is_none);
    tcase_add_test(cases, a_pipe_is_no_entry);
    Suite *suite = suite_create("jit_cache");
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
