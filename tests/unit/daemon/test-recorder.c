/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* daemon/recorder.c with a real store: the life of a recording, the bounded queue, and a disk that fails. */
#include "recorder.h"
#include "daemon-unit.h"

#include <sched.h>
#include <sys/mount.h>

/* What the recorder told its owner. */
typedef struct Heard {
        unsigned changed, removed, expired, failed, recovered, answers;
        int r; /* of the last answer */
        char sentence[256], removed_name[64];
} Heard;

typedef struct Fixture {
        sd_event *event;
        Losses losses;
        Recorder *recorder;
        Heard heard;
        int64_t ts_ns;
} Fixture;

static void on_changed(Recording *recording, void *userdata) {
        ((Fixture *) userdata)->heard.changed++;
}

static void on_removed(Recording *recording, void *userdata) {
        Fixture *f = userdata;

        f->heard.removed++;
        (void) snprintf(f->heard.removed_name, sizeof(f->heard.removed_name), "%s", recording->name);
}

static void on_expired(Recording *recording, void *userdata) {
        ((Fixture *) userdata)->heard.expired++;
}

static void on_failed(int r, const char *error, void *userdata) {
        Fixture *f = userdata;

        if (r < 0) {
                f->heard.failed++;
                (void) snprintf(f->heard.sentence, sizeof(f->heard.sentence), "%s", error ?: "");
        } else
                f->heard.recovered++;
}

static void on_answer(Recording *recording, int r, const char *error, void *userdata) {
        Fixture *f = userdata;

        f->heard.answers++;
        f->heard.r = r;
        (void) snprintf(f->heard.sentence, sizeof(f->heard.sentence), "%s", error ?: "");
}

static void open_recorder(Fixture *f) {
        RecorderHooks hooks = { on_changed, on_removed, on_expired, on_failed, f };

        assert_done(recorder_new(
                        f->event, in_directory("prism.db"), &test_machine, &f->losses, &hooks, &f->recorder, &error));
}

static Fixture fixture_new(void) {
        Fixture f = { .ts_ns = 100 * SECOND };

        ck_assert_int_ge(sd_event_new(&f.event), 0);
        return f;
}

static void fixture_done(Fixture *f) {
        f->recorder = recorder_free(f->recorder);
        f->event = sd_event_unref(f->event);
}

#define run_until(f, condition)                                                                                 \
        do {                                                                                                    \
                while (!(condition))                                                                            \
                        ck_assert_msg(sd_event_run((f)->event, 20 * USEC_PER_SEC) > 0, "waited in vain for %s", \
                                        #condition);                                                            \
        } while (0)

/* A batch of the next second with one row of thread_time and n - 1 of wait, which describes what it uses if `described` is older than
 * the recorder's epoch. */
static void give(Fixture *f, unsigned n, uint64_t *described) {
        _cleanup_(batch_unrefp) Batch *b = batch_new();

        f->ts_ns += SECOND;
        if (described && *described != recorder_epoch(f->recorder)) {
                *described = recorder_epoch(f->recorder);
                assert_done(batch_add_process(b,
                                &(BatchProcess){ .key = 1,
                                                .pid = 7,
                                                .host_pid = 7,
                                                .comm = "p",
                                                .found_by = "target" }));
                assert_done(batch_add_thread(
                                b, &(BatchThread){ .key = 1, .process_key = 1, .tid = 7, .host_tid = 7, .comm = "t" }));
                for (unsigned i = 1; i < n; i++) {
                        char ident[32];

                        (void) snprintf(ident, sizeof(ident), "private:1:0x%x", i);
                        assert_done(batch_add_resource(
                                        b, &(BatchResource){ .key = i, .kind = "futex", .ident = ident }));
                }
        }
        assert_done(batch_add_thread_time(
                        b, &(BatchThreadTime){ .ts_ns = f->ts_ns, .dt_ns = SECOND, .thread_key = 1 }));
        for (unsigned i = 1; i < n; i++)
                assert_done(batch_add_wait(b,
                                &(BatchWait){ .ts_ns = f->ts_ns,
                                                .dt_ns = SECOND,
                                                .thread_key = 1,
                                                .resource_key = i,
                                                .op = "w" }));
        recorder_give(f->recorder, b);
}

static Recording *begin(Fixture *f, const char *name, uint64_t duration_ns) {
        Recording *recording = NULL;
        unsigned answers = f->heard.answers;

        ck_assert_int_eq(recorder_begin(f->recorder, name, "none", duration_ns, boot_now(), f->ts_ns, on_answer, f,
                                         &recording),
                        0);
        ck_assert_int_eq(recording->state, RECORDING_STARTING);
        ck_assert_ptr_eq(recorder_find(f->recorder, name), recording);
        run_until(f, f->heard.answers > answers);
        ck_assert_int_eq(f->heard.r, 0);
        ck_assert_int_eq(recording->state, RECORDING_RUNNING);
        ck_assert_int_gt(recording->id, 0);
        return recording;
}

static void end(Fixture *f, Recording *recording, bool interrupted) {
        unsigned answers = f->heard.answers;

        recorder_end_begin(recording, boot_now(), f->ts_ns);
        ck_assert_int_eq(recording->state, RECORDING_ENDING);
        ck_assert_int_eq(recorder_end_finish(recording, interrupted, on_answer, f), 0);
        run_until(f, f->heard.answers > answers);
        ck_assert_int_eq(f->heard.r, 0);
        ck_assert_int_eq(recording->state, interrupted ? RECORDING_INTERRUPTED : RECORDING_FINISHED);
}

/* What another program reads in the database while the recorder has it open. */
static int64_t stored(const char *sql) {
        Store *s = NULL;
        int64_t n;

        assert_done(store_open_readonly(in_directory("prism.db"), &s, &error));
        n = number(s, sql);
        store_close(s);
        return n;
}

static void assert_integrity(void) {
        Store *s = NULL;

        assert_done(store_open_readonly(in_directory("prism.db"), &s, &error));
        assert_text(s, "PRAGMA integrity_check", "ok");
        store_close(s);
}

START_TEST(test_life) {
        Fixture f = fixture_new();
        uint64_t described = 0;
        Recording *recording;

        open_recorder(&f);
        ck_assert(!recorder_is_recording(f.recorder));
        ck_assert_str_eq(recorder_store_state(f.recorder), "ok");
        recording = begin(&f, "slow", 0);
        ck_assert_uint_eq(f.heard.changed, 1);
        ck_assert(recorder_is_recording(f.recorder));
        ck_assert_uint_eq(recorder_n_running(f.recorder), 1);
        ck_assert_ptr_eq(recorder_by_number(f.recorder, recording->number), recording);
        ck_assert_int_eq(stored("SELECT count(*) FROM recording WHERE name = 'slow' AND state = 'running'"), 1);

        for (unsigned i = 0; i < 40; i++)
                give(&f, 5, &described);
        ck_assert_uint_eq(recorder_queue_length(f.recorder), 40);
        /* Jobs keep their order: when the end is answered, all rows are in. */
        end(&f, recording, false);
        ck_assert_uint_eq(recorder_queue_length(f.recorder), 0);
        ck_assert_int_eq(stored("SELECT count(*) FROM thread_time"), 40);
        ck_assert_int_eq(stored("SELECT count(*) FROM wait"), 160);
        ck_assert_int_eq(stored("SELECT end_ns FROM recording WHERE state = 'finished'"), f.ts_ns);
        ck_assert_uint_eq(losses_total(&f.losses), 0);
        ck_assert_uint_gt(recorder_store_bytes(f.recorder), 4096);
        ck_assert(!recorder_is_recording(f.recorder));

        ck_assert_int_eq(recorder_delete(recording, on_answer, &f), 0);
        ck_assert(recording->deleting);
        run_until(&f, f.heard.removed == 1);
        ck_assert_int_eq(f.heard.r, 0);
        ck_assert_str_eq(f.heard.removed_name, "slow");
        ck_assert_ptr_null(recorder_recordings(f.recorder));
        ck_assert_int_eq(stored("SELECT count(*) FROM thread_time"), 0);
        ck_assert_int_eq(stored("SELECT count(*) FROM recording"), 0);
        fixture_done(&f);
        assert_integrity();
}
END_TEST

START_TEST(test_name_taken) {
        Fixture f = fixture_new();
        Recording *first, *again = NULL;

        open_recorder(&f);
        first = begin(&f, "a 'b'", 0);
        ck_assert_int_eq(recorder_begin(f.recorder, "a 'b'", "none", 0, boot_now(), f.ts_ns, on_answer, &f, &again), 0);
        ck_assert_uint_ne(again->number, first->number);
        run_until(&f, f.heard.answers == 2);
        ck_assert_int_eq(f.heard.r, -EEXIST);
        assert_contains(f.heard.sentence, "a 'b'");
        ck_assert_uint_eq(f.heard.removed, 1);
        ck_assert_ptr_eq(recorder_recordings(f.recorder), first);
        ck_assert_ptr_null(first->next);
        ck_assert_int_eq(first->state, RECORDING_RUNNING);
        /* That is not the store's fault. */
        ck_assert_str_eq(recorder_store_state(f.recorder), "ok");
        ck_assert_uint_eq(f.heard.failed, 0);

        /* Deleting one that runs is refused, and it stays. */
        ck_assert_int_eq(recorder_delete(first, on_answer, &f), 0);
        run_until(&f, f.heard.answers == 3);
        ck_assert_int_eq(f.heard.r, -EINPROGRESS);
        ck_assert(!first->deleting);
        ck_assert_ptr_eq(recorder_recordings(f.recorder), first);
        fixture_done(&f);
}
END_TEST

START_TEST(test_loaded_again) {
        Fixture f = fixture_new();
        Recording *finished, *interrupted;

        open_recorder(&f);
        end(&f, begin(&f, "finished", 0), false);
        end(&f, begin(&f, "ended early", 0), true);
        begin(&f, "running", 0);
        f.recorder = recorder_free(f.recorder); /* as after a crash: nobody ended it */

        open_recorder(&f);
        finished = recorder_find(f.recorder, "finished");
        interrupted = recorder_find(f.recorder, "running");
        ck_assert_ptr_nonnull(finished);
        ck_assert_ptr_nonnull(interrupted);
        ck_assert_int_eq(finished->state, RECORDING_FINISHED);
        ck_assert_str_eq(finished->calls, "none");
        ck_assert_int_eq(interrupted->state, RECORDING_INTERRUPTED);
        ck_assert_int_eq(recorder_find(f.recorder, "ended early")->state, RECORDING_INTERRUPTED);
        ck_assert_uint_ne(finished->number, interrupted->number);
        ck_assert(!recorder_is_recording(f.recorder));
        ck_assert(!recorder_wanted(f.recorder, 0, UINT64_MAX));
        /* It is one among the others. */
        ck_assert_int_eq(recorder_delete(interrupted, on_answer, &f), 0);
        run_until(&f, f.heard.removed == 1);
        ck_assert_ptr_null(recorder_find(f.recorder, "running"));
        fixture_done(&f);
}
END_TEST

START_TEST(test_expired) {
        Fixture f = fixture_new();
        Recording *recording, *stopped;

        open_recorder(&f);
        recording = begin(&f, "short", 20 * NSEC_PER_MSEC);
        stopped = begin(&f, "stopped", 300 * NSEC_PER_MSEC);
        end(&f, stopped, false);
        run_until(&f, f.heard.expired == 1);
        ck_assert_int_eq(recording->state, RECORDING_RUNNING); /* ending it is the owner's work */
        end(&f, recording, false);
        /* The other one's time comes and nothing happens: it was ended before. */
        while (sd_event_run(f.event, 400 * 1000) > 0)
                ;
        ck_assert_uint_eq(f.heard.expired, 1);
        fixture_done(&f);
}
END_TEST

START_TEST(test_wanted) {
        Fixture f = fixture_new();
        Recording *recording = NULL;

        open_recorder(&f);
        ck_assert(!recorder_wanted(f.recorder, 0, UINT64_MAX));
        ck_assert_int_eq(recorder_begin(f.recorder, "a", "none", 0, 1000, f.ts_ns, on_answer, &f, &recording), 0);
        ck_assert(recorder_wanted(f.recorder, 1000, 2000));
        ck_assert(recorder_wanted(f.recorder, 500, 1001));
        ck_assert(!recorder_wanted(f.recorder, 500, 1000)); /* they touch */
        run_until(&f, f.heard.answers == 1);
        recorder_end_begin(recording, 3000, f.ts_ns);
        ck_assert(recorder_wanted(f.recorder, 2999, 4000));
        ck_assert(!recorder_wanted(f.recorder, 3000, 4000));
        fixture_done(&f);
}
END_TEST

START_TEST(test_full_queue) {
        Fixture f = fixture_new();
        const size_t limit = recorder_queue_limit(), more = 10;
        uint64_t described = 0, epoch;

        open_recorder(&f);
        /* The loop does not run meanwhile, so that nothing leaves the queue. */
        for (size_t i = 0; i < limit; i++)
                give(&f, 5, &described);
        ck_assert_uint_eq(losses_total(&f.losses), 0);
        epoch = recorder_epoch(f.recorder);
        for (size_t i = 0; i < more; i++)
                give(&f, 5, &described);
        ck_assert_uint_eq(recorder_queue_length(f.recorder), limit);
        ck_assert_uint_eq(f.losses.n, 1);
        ck_assert_str_eq(f.losses.entries[0].part, "store");
        ck_assert_str_eq(f.losses.entries[0].reason, "queue-full");
        ck_assert_uint_eq(f.losses.entries[0].total, 5 * more);
        /* What the lost batches described must be described again. */
        ck_assert_uint_gt(recorder_epoch(f.recorder), epoch);

        run_until(&f, recorder_queue_length(f.recorder) == 0);
        give(&f, 5, &described);
        run_until(&f, recorder_queue_length(f.recorder) == 0);
        ck_assert_uint_eq(losses_total(&f.losses), 5 * more);
        ck_assert_int_eq(stored("SELECT count(*) FROM thread_time"), (int64_t) limit + 1);
        ck_assert_uint_eq(f.heard.failed, 0);
        fixture_done(&f);
}
END_TEST

/* The store forgets at a new epoch what it was told before: its table of keys does not grow for ever, and a producer that does not
 * describe again is found out. */
START_TEST(test_epoch) {
        Fixture f = fixture_new();
        uint64_t described = 0;

        open_recorder(&f);
        give(&f, 2, &described);
        give(&f, 2, NULL);
        run_until(&f, recorder_queue_length(f.recorder) == 0);
        ck_assert_uint_eq(losses_total(&f.losses), 0);

        for (size_t i = 0; i <= recorder_queue_limit(); i++)
                give(&f, 2, NULL);
        ck_assert_uint_ne(recorder_epoch(f.recorder), described);
        run_until(&f, recorder_queue_length(f.recorder) == 0);
        ck_assert_uint_eq(losses_total(&f.losses), 2);
        give(&f, 2, NULL);
        run_until(&f, f.heard.failed == 1);
        ck_assert_uint_eq(losses_total(&f.losses), 4);
        give(&f, 2, &described);
        run_until(&f, f.heard.recovered == 1);
        ck_assert_uint_eq(losses_total(&f.losses), 4);
        fixture_done(&f);
}
END_TEST

/* The queue is bounded in bytes, too; a batch without rows is left out. */
START_TEST(test_queue_memory) {
        Fixture f = fixture_new();
        _cleanup_(batch_unrefp) Batch *huge = batch_new(), *empty = batch_new();
        unsigned rows = 0;

        open_recorder(&f);
        recorder_give(f.recorder, empty);
        ck_assert_uint_eq(recorder_queue_length(f.recorder), 0);
        while (batch_bytes(huge) <= 32 * 1024 * 1024)
                assert_done(batch_add_thread_time(huge,
                                &(BatchThreadTime){ .ts_ns = SECOND + rows++, .dt_ns = SECOND, .thread_key = 1 }));
        recorder_give(f.recorder, huge);
        ck_assert_uint_eq(recorder_queue_length(f.recorder), 0);
        ck_assert_str_eq(f.losses.entries[0].reason, "queue-full");
        ck_assert_uint_eq(losses_total(&f.losses), rows);
        fixture_done(&f);
}
END_TEST

/* A batch that the store refuses is a counted loss, and the next good one is written. */
START_TEST(test_refused_batch) {
        Fixture f = fixture_new();
        uint64_t described = 0, before;

        open_recorder(&f);
        before = recorder_epoch(f.recorder);
        give(&f, 3, NULL); /* describes nothing */
        run_until(&f, f.heard.failed == 1);
        assert_contains(f.losses.entries[0].reason, "write-failed");
        ck_assert_uint_eq(losses_total(&f.losses), 3);
        ck_assert_uint_gt(recorder_epoch(f.recorder), before);
        ck_assert_str_ne(recorder_store_state(f.recorder), "ok");
        ck_assert_str_ne(f.heard.sentence, "");

        give(&f, 3, &described);
        run_until(&f, f.heard.recovered == 1);
        ck_assert_str_eq(recorder_store_state(f.recorder), "ok");
        ck_assert_int_eq(stored("SELECT count(*) FROM thread_time"), 1);
        ck_assert_uint_eq(losses_total(&f.losses), 3);
        fixture_done(&f);
}
END_TEST

/* A deletion goes in pieces, so that batches get their turn; prismd may end in the middle of it, and its owner still gets an answer. */
START_TEST(test_delete_in_pieces) {
        Fixture f = fixture_new();
        uint64_t described = 0;
        unsigned answers;
        Recording *recording;

        open_recorder(&f);
        recording = begin(&f, "long", 0);
        for (unsigned i = 0; i < 100; i++)
                give(&f, 3, &described);
        end(&f, recording, false);
        answers = f.heard.answers;
        ck_assert_int_eq(recorder_delete(recording, on_answer, &f), 0);
        ck_assert_int_gt(sd_event_run(f.event, 20 * USEC_PER_SEC), 0); /* the first piece */
        give(&f, 3, &described);
        f.recorder = recorder_free(f.recorder);
        ck_assert_uint_eq(f.heard.answers, answers + 1);
        ck_assert_int_eq(stored("SELECT count(*) FROM thread_time"), 1);

        /* Whatever is left of it can be deleted again. */
        open_recorder(&f);
        recording = recorder_find(f.recorder, "long");
        if (recording) {
                answers = f.heard.answers;
                ck_assert_int_eq(recorder_delete(recording, on_answer, &f), 0);
                run_until(&f, f.heard.answers > answers);
                ck_assert_int_eq(f.heard.r, 0);
        }
        ck_assert_ptr_null(recorder_recordings(f.recorder));
        fixture_done(&f);
        assert_integrity();
}
END_TEST

/* What was given is written before recorder_free() returns. */
START_TEST(test_free_writes) {
        Fixture f = fixture_new();
        uint64_t described = 0;

        open_recorder(&f);
        for (unsigned i = 0; i < 100; i++)
                give(&f, 3, &described);
        fixture_done(&f);
        ck_assert_int_eq(stored("SELECT count(*) FROM thread_time"), 100);
        ck_assert_int_eq(stored("SELECT count(*) FROM wait"), 200);
        assert_integrity();
}
END_TEST

START_TEST(test_unusable_store) {
        RecorderHooks hooks = { on_changed, on_removed, on_expired, on_failed, NULL };
        Fixture f = fixture_new();

        write_file(in_directory("other.db"), "this is no database, it is a text that is long enough", 53);
        ck_assert_int_eq(mkdir(in_directory("directory.db"), 0755), 0);
        assert_fails(recorder_new(f.event, in_directory("missing/prism.db"), &test_machine, &f.losses, &hooks,
                                     &f.recorder, &error),
                        -ENOENT, "missing/prism.db");
        for (unsigned i = 0; i < 2; i++) {
                char *error = NULL;
                int r = recorder_new(f.event, in_directory(i ? "directory.db" : "other.db"), &test_machine, &f.losses,
                                &hooks, &f.recorder, &error);

                ck_assert_int_lt(r, 0);
                ck_assert_ptr_nonnull(error);
                ck_assert_ptr_null(f.recorder);
                free(error);
        }
        fixture_done(&f);
}
END_TEST

/* A file system that fills while it records: said once, counted in full, and over when there is room again. */
START_TEST(test_full_disk) {
        Fixture f = fixture_new();
        uint64_t described = 0, lost;
        _cleanup_free_ char *filler = calloc(1, 1024 * 1024);
        unsigned given = 0, failed;
        Recording *recording;

        if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
                        mount("tmpfs", directory, "tmpfs", 0, "size=2m") < 0)
                skip_test("no file system can be mounted here: %s", strerror(errno));
        ck_assert_ptr_nonnull(filler);
        write_file(in_directory("filler"), filler, 1024 * 1024);
        open_recorder(&f);
        recording = begin(&f, "full", 0);
        while (f.heard.failed == 0) {
                ck_assert_uint_lt(given, 5000);
                give(&f, 100, &described);
                given++;
                run_until(&f, recorder_queue_length(f.recorder) == 0);
        }
        lost = 100;
        ck_assert_uint_eq(losses_total(&f.losses), lost);
        assert_contains(f.losses.entries[0].reason, "write-failed");
        ck_assert_str_ne(recorder_store_state(f.recorder), "ok");
        ck_assert_str_ne(f.heard.sentence, "");
        assert_contains(f.heard.sentence, "prism.db");

        /* As long as it lasts, each batch is counted. */
        for (unsigned i = 0; i < 5; i++) {
                give(&f, 100, &described);
                given++;
                run_until(&f, recorder_queue_length(f.recorder) == 0);
        }
        failed = (unsigned) (losses_total(&f.losses) / 100);
        ck_assert_uint_ge(failed, 2);
        ck_assert_uint_eq(losses_total(&f.losses) % 100, 0);

        ck_assert_int_eq(unlink(in_directory("filler")), 0);
        f.heard.recovered = 0;
        give(&f, 100, &described);
        given++;
        run_until(&f, recorder_queue_length(f.recorder) == 0);
        ck_assert_str_eq(recorder_store_state(f.recorder), "ok");
        ck_assert_uint_eq(f.heard.recovered, 1);
        end(&f, recording, false);
        /* What is not there was counted. */
        ck_assert_int_eq(stored("SELECT count(*) FROM thread_time"), given - failed);
        ck_assert_int_eq(stored("SELECT count(*) FROM wait"), 99 * (int64_t) (given - failed));
        ck_assert_uint_eq(losses_total(&f.losses), 100 * failed);
        fixture_done(&f);
        assert_integrity();
        ck_assert_int_eq(umount(directory), 0);
}
END_TEST

/* A recording that cannot begin is no recording. */
START_TEST(test_begin_fails) {
        Fixture f = fixture_new();
        sqlite3 *other = NULL;
        Recording *recording = NULL;

        open_recorder(&f);
        /* Somebody takes the lock and keeps it for longer than a writer waits. */
        ck_assert_int_eq(sqlite3_open(in_directory("prism.db"), &other), SQLITE_OK);
        ck_assert_int_eq(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
        ck_assert_int_eq(recorder_begin(f.recorder, "late", "none", 0, boot_now(), f.ts_ns, on_answer, &f, &recording),
                        0);
        run_until(&f, f.heard.answers == 1);
        ck_assert_int_eq(f.heard.r, -EBUSY);
        ck_assert_uint_eq(f.heard.removed, 1);
        ck_assert_uint_eq(f.heard.failed, 1);
        ck_assert_ptr_null(recorder_recordings(f.recorder));
        ck_assert_str_ne(recorder_store_state(f.recorder), "ok");

        ck_assert_int_eq(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
        sqlite3_close(other);
        begin(&f, "late", 0);
        ck_assert_uint_eq(f.heard.recovered, 1);
        ck_assert_str_eq(recorder_store_state(f.recorder), "ok");
        fixture_done(&f);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("recorder");
        TCase *tests = tcase_create("recorder");

        tcase_add_checked_fixture(tests, directory_make, directory_remove);
        tcase_set_timeout(tests, 60);
        tcase_add_test(tests, test_life);
        tcase_add_test(tests, test_name_taken);
        tcase_add_test(tests, test_loaded_again);
        tcase_add_test(tests, test_expired);
        tcase_add_test(tests, test_wanted);
        tcase_add_test(tests, test_full_queue);
        tcase_add_test(tests, test_epoch);
        tcase_add_test(tests, test_queue_memory);
        tcase_add_test(tests, test_refused_batch);
        tcase_add_test(tests, test_delete_in_pieces);
        tcase_add_test(tests, test_free_writes);
        tcase_add_test(tests, test_unusable_store);
        tcase_add_test(tests, test_begin_fails);
        /* Last: it goes into a mount namespace of its own. */
        tcase_add_test(tests, test_full_disk);
        suite_add_tcase(suite, tests);
        return run_suite(suite);
}
