#include "hal/worker.h"

#include <check.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/leftovers.h"
#include "base/output.h"

// A worker leaves nothing behind, however it ends.

static Arena *arena;
static char *folder;   // where workers make theirs

static void set_up(void)
{
    arena = arena_new();
    output_install_signals();
    folder = temp_dir_make(arena);
    setenv("TMPDIR", folder, 1);
}

static void tear_down(void) { arena_free(arena); }

static int count_files(void)
{
    DIR *entries = opendir(folder);
    int count = -2;   // "." and ".."
    while (readdir(entries))
        count++;
    closedir(entries);
    return count;
}

static const WorkerLimits limits = {.seconds = 1};

/* A folder with a file in it, and a file that is to become an output. */
static void litter(void)
{
    const char *own = temp_dir_make(arena);
    fclose(fopen(arena_printf(arena, "%s/program.cpp", own), "wb"));
    OutputSet *set = output_set_new(arena);
    output_stage(set, arena_printf(arena, "%s/k.cu", folder), "kernel", 6);
    ck_assert_int_eq(count_files(), 2);
}

static void return_from(void *ignored) { litter(), (void)ignored; }
static void exit_from(void *ignored) { litter(), (void)ignored, exit(3); }
static void be_killed(void *ignored) { litter(), (void)ignored, raise(SIGKILL); }
static void hang(void *ignored)
{
    (void)ignored;
    litter();
    for (;;)
        pause();
}

static void overflow_stack(void *ignored)
{
    volatile char frame[4096];
    frame[0] = 1;
    if (frame[0])
        overflow_stack(ignored);
    frame[1] = frame[0];   // no tail call
}

static void crash(void *ignored)
{
    output_install_signals();   // as a kernel of a batch does
    litter();
    overflow_stack(ignored);
}

static Worker end_of(void (*work)(void *))
{
    Worker worker;
    ck_assert(worker_start(&worker, &limits, work, NULL));
    ck_assert_int_eq(worker_wait(&worker, 1), 0);
    return worker;
}

START_TEST(a_worker_leaves_nothing_however_it_ends)
{
    ck_assert_int_eq(end_of(return_from).state, WORKER_DONE);
    ck_assert_int_eq(count_files(), 0);
    ck_assert_int_eq(end_of(exit_from).exit_code, 3);
    ck_assert_int_eq(count_files(), 0);
    ck_assert_int_eq(end_of(be_killed).signal, SIGKILL);
    ck_assert_int_eq(count_files(), 0);
    ck_assert_int_eq(end_of(crash).state, WORKER_CRASHED);   // by a signal, or as a sanitizer has it
    ck_assert_int_eq(count_files(), 0);
    ck_assert_int_eq(end_of(hang).state, WORKER_TIMEOUT);
    ck_assert_int_eq(count_files(), 0);
}
END_TEST

/* As a kernel starts a C++ compiler, which leads a group of its own. */
static void start_compiler_and_be_killed(void *number)
{
    litter();
    pid_t compiler = fork();
    if (compiler == 0) {
        setpgid(0, 0);
        execlp("sleep", "sleep", "60", NULL);
        _exit(127);
    }
    setpgid(compiler, compiler);
    leftovers_add_child(compiler);
    *(pid_t *)number = compiler;
    raise(SIGKILL);
}

static bool can_map(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory != MAP_FAILED)
        munmap(memory, bytes);
    return memory != MAP_FAILED;
}

static const size_t MEBIBYTE = (size_t)1 << 20;

/* 64 MiB more, and not 1 GiB more. */
static void map_little(void *ignored)
{
    (void)ignored;
    exit(can_map(64 * MEBIBYTE) && !can_map(1024 * MEBIBYTE) ? 3 : 4);
}

/* Answers of hundreds of kernels are mapped before their workers start. */
START_TEST(what_the_parent_has_mapped_does_not_count_as_the_workers)
{
#ifdef __SANITIZE_ADDRESS__
    return;   // there is no limit
#endif
    const WorkerLimits narrow = {.seconds = 1, .memory_bytes = 512 * (int64_t)MEBIBYTE};
    const size_t bytes = 4096 * MEBIBYTE;
    void *answers = worker_share(bytes);
    Worker worker;
    ck_assert_ptr_nonnull(answers);
    ck_assert(worker_start(&worker, &narrow, map_little, NULL));
    ck_assert_int_eq(worker_wait(&worker, 1), 0);
    ck_assert_int_eq(worker.exit_code, 3);
    worker_unshare(answers, bytes);
}
END_TEST

START_TEST(what_a_killed_worker_has_started_ends_with_it)
{
    Worker worker;
    prctl(PR_SET_CHILD_SUBREAPER, 1);   // whose parent is gone is this process's
    pid_t *compiler = worker_share(sizeof *compiler);
    ck_assert(worker_start(&worker, &limits, start_compiler_and_be_killed, compiler));
    ck_assert_int_eq(worker_wait(&worker, 1), 0);
    ck_assert_int_eq(worker.state, WORKER_CRASHED);
    ck_assert_int_eq(count_files(), 0);
    int status;
    ck_assert_int_eq(waitpid(*compiler, &status, 0), *compiler);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}
END_TEST

/* Waits for a word that its parent puts into memory that was shared before. */
static void wait_for_word(void *memory)
{
    const SharedMemory *shared = memory;
    worker_alive();
    while (!*(volatile const char *)shared->start)
        usleep(1000);
    _exit(strcmp(shared->start, "a word") == 0 ? 3 : 4);
}

START_TEST(a_worker_sees_what_its_parent_hands_out_later)
{
    SharedMemory shared = {worker_share(200), 200, 0};
    Worker worker;
    ck_assert(worker_start(&worker, &limits, wait_for_word, &shared));
    ck_assert_int_eq(worker_wait(&worker, 1), 0);   // a sign of life
    worker_hear(&worker);                           // does not wait
    ck_assert_int_eq(worker.state, WORKER_RUNNING);
    strcpy(shared_take(&shared, 7), "a word");
    while (worker.state == WORKER_RUNNING)
        worker_hear(&worker);
    ck_assert_int_eq(worker.exit_code, 3);
    ck_assert_ptr_nonnull(shared_take(&shared, 100));   // 64 and 128 bytes are taken
    ck_assert_ptr_null(shared_take(&shared, 1));
    worker_unshare(shared.start, shared.bytes);
}
END_TEST

START_TEST(a_worker_that_hangs_is_found_without_waiting)
{
    Worker worker;
    ck_assert(worker_start(&worker, &limits, hang, NULL));
    while (worker.state == WORKER_RUNNING)
        worker_hear(&worker);
    ck_assert_int_eq(worker.state, WORKER_TIMEOUT);
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("worker");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_test(cases, a_worker_leaves_nothing_however_it_ends);
    tcase_add_test(cases, a_worker_sees_what_its_parent_hands_out_later);
    tcase_add_test(cases, a_worker_that_hangs_is_found_without_waiting);
    tcase_add_test(cases, what_the_parent_has_mapped_does_not_count_as_the_workers);
    tcase_add_test(cases, what_a_killed_worker_has_started_ends_with_it);
    Suite *suite = suite_create("worker");
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
