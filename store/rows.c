/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of row kinds and the SQL that it stands for. */
#include "rows.h"

#include <sqlite3.h>

/* What becomes of a column when the row is there already. */
#define SUM "$ + excluded.$"
#define SUM_OF_KNOWN "coalesce($ + excluded.$, excluded.$, $)"
#define LOWEST "min($, excluded.$)"
#define HIGHEST "max($, excluded.$)"
#define NEW "excluded.$"
#define NEW_IF_KNOWN "coalesce(excluded.$, $)"
#define NEW_IF_NOT_0 "coalesce(nullif(excluded.$, 0), $)"
#define NEW_IF_NOT_EMPTY "coalesce(nullif(excluded.$, ''), $)"
#define STAYS NULL

/* The type of a member, so that the table cannot say another; a type that is not listed does not compile. */
#define TYPE_OF(row, member) \
        _Generic(((row *) NULL)->member,   \
                int64_t: COLUMN_I64,       \
                uint64_t: COLUMN_U64,      \
                uint32_t: COLUMN_U32,      \
                const char *: COLUMN_TEXT)

#define FIELD(row, member, type_, ...) \
        { .offset = offsetof(row, member), .type = (type_), .object = OBJECT_NONE, __VA_ARGS__ }

/* Members that are named as their columns are. */
#define IDENTITY(row, member) FIELD(row, member, TYPE_OF(row, member), .name = #member, .identity = true)
#define IDENTITY_OR(row, member, absent_) \
        FIELD(row, member, TYPE_OF(row, member), .name = #member, .identity = true, .absent = (absent_))
#define VALUE(row, member, merge_) FIELD(row, member, TYPE_OF(row, member), .name = #member, .merge = merge_)
#define VALUE_OR(row, member, absent_, merge_) \
        FIELD(row, member, TYPE_OF(row, member), .name = #member, .absent = (absent_), .merge = merge_)
#define HISTOGRAM(row)                                                                            \
        FIELD(row, histogram,                                                                     \
                        _Generic(&((row *) NULL)->histogram, uint32_t(*)[STORE_HISTOGRAM_BUCKETS] \
                                        : COLUMN_HISTOGRAM),                                      \
                        .name = "hist", .merge = SUM)

/* Keys, which have columns of another name. */
#define KEY_TYPE(row, member) _Generic(((row *) NULL)->member, uint64_t : COLUMN_KEY)
#define KEY(row, member, column, object_, ...)                                                                       \
        {                                                                                                            \
                .offset = offsetof(row, member), .type = KEY_TYPE(row, member), .name = column, .object = (object_), \
                __VA_ARGS__                                                                                          \
        }
#define IDENTITY_KEY(row, member, column, object_) KEY(row, member, column, object_, .identity = true)
#define IDENTITY_KEY_OR_0(row, member, column, object_) \
        KEY(row, member, column, object_, .identity = true, .absent = ABSENT_ID_0)

#define OWN(column, type_) \
        { .name = column, .type = (type_), .object = OBJECT_NONE, .identity = true }

/* What is known is never replaced by NULL, nor what was followed by what is only named. The start in Unix time stays as it
 * was first computed, so that it does not follow the clock's corrections. */
static const Column process_columns[] = {
        OWN("machine_id", COLUMN_MACHINE),
        OWN("boot", COLUMN_BOOT),
        VALUE(BatchProcess, pid, NEW_IF_NOT_0),
        IDENTITY(BatchProcess, host_pid),
        IDENTITY(BatchProcess, start_boot_ns),
        VALUE(BatchProcess, start_ns, STAYS),
        VALUE_OR(BatchProcess, exit_ns, ABSENT_NULL_0, NEW_IF_KNOWN),
        VALUE_OR(BatchProcess, ppid, ABSENT_NULL_0, NEW_IF_KNOWN),
        VALUE_OR(BatchProcess, uid, ABSENT_NULL_MAX32,
                        "CASE excluded.found_by WHEN 'observed' THEN coalesce($, excluded.$) "
                        "ELSE coalesce(excluded.$, $) END"),
        VALUE_OR(BatchProcess, comm, ABSENT_EMPTY, NEW_IF_NOT_EMPTY),
        VALUE(BatchProcess, exe, NEW_IF_KNOWN),
        VALUE(BatchProcess, cmdline, NEW_IF_KNOWN),
        VALUE(BatchProcess, cgroup, NEW_IF_KNOWN),
        VALUE(BatchProcess, unit, NEW_IF_KNOWN),
        VALUE_OR(BatchProcess, netns, ABSENT_NULL_0, NEW_IF_KNOWN),
        VALUE(BatchProcess, found_by, "CASE excluded.$ WHEN 'observed' THEN $ ELSE excluded.$ END"),
        KEY(BatchProcess, parent_key, "found_from", OBJECT_PROCESS, .absent = ABSENT_UNDESCRIBED,
                        .merge = NEW_IF_KNOWN),
        VALUE(BatchProcess, target, NEW_IF_KNOWN),
};

static const Column thread_columns[] = {
        IDENTITY_KEY(BatchThread, process_key, "process_id", OBJECT_PROCESS),
        VALUE(BatchThread, tid, NEW_IF_NOT_0),
        IDENTITY(BatchThread, host_tid),
        IDENTITY(BatchThread, start_boot_ns),
        VALUE(BatchThread, start_ns, STAYS),
        VALUE_OR(BatchThread, exit_ns, ABSENT_NULL_0, NEW_IF_KNOWN),
        VALUE_OR(BatchThread, comm, ABSENT_EMPTY, NEW_IF_NOT_EMPTY),
};

static const Column resource_columns[] = {
        OWN("machine_id", COLUMN_MACHINE),
        OWN("boot", COLUMN_BOOT),
        IDENTITY(BatchResource, kind),
        IDENTITY(BatchResource, ident),
        VALUE(BatchResource, name, NEW_IF_KNOWN),
};

/* The last addresses and state that were seen count; a peer that was never described is one that is not known. */
static const Column socket_columns[] = {
        IDENTITY_KEY(BatchSocket, resource_key, "resource_id", OBJECT_RESOURCE),
        VALUE(BatchSocket, family, NEW_IF_NOT_0),
        VALUE(BatchSocket, type, NEW_IF_NOT_0),
        VALUE(BatchSocket, protocol, NEW_IF_NOT_0),
        VALUE_OR(BatchSocket, netns, ABSENT_NULL_0, NEW_IF_KNOWN),
        VALUE(BatchSocket, local_addr, NEW_IF_KNOWN),
        VALUE_OR(BatchSocket, local_port, ABSENT_NULL_0, NEW_IF_KNOWN),
        VALUE(BatchSocket, remote_addr, NEW_IF_KNOWN),
        VALUE_OR(BatchSocket, remote_port, ABSENT_NULL_0, NEW_IF_KNOWN),
        VALUE_OR(BatchSocket, state, ABSENT_NULL_0, NEW_IF_KNOWN),
        VALUE(BatchSocket, path, NEW_IF_KNOWN),
        VALUE_OR(BatchSocket, cookie, ABSENT_NULL_0, NEW_IF_KNOWN),
        KEY(BatchSocket, peer_resource_key, "peer_resource_id", OBJECT_RESOURCE, .absent = ABSENT_UNDESCRIBED,
                        .merge = NEW_IF_KNOWN),
};

static const Column epoll_watch_columns[] = {
        IDENTITY_KEY(BatchEpollWatch, resource_key, "resource_id", OBJECT_RESOURCE),
        IDENTITY_KEY(BatchEpollWatch, watched_key, "watched_id", OBJECT_RESOURCE),
        VALUE(BatchEpollWatch, first_ns, LOWEST),
        VALUE(BatchEpollWatch, last_ns, HIGHEST),
};

static const Column clock_columns[] = {
        OWN("boot", COLUMN_BOOT),
        IDENTITY(BatchClock, boot_ns),
        VALUE(BatchClock, unix_ns, NEW),
};

static const Column thread_time_columns[] = {
        IDENTITY(BatchThreadTime, ts_ns),
        VALUE(BatchThreadTime, dt_ns, SUM),
        IDENTITY_KEY(BatchThreadTime, thread_key, "thread_id", OBJECT_THREAD),
        VALUE(BatchThreadTime, run_ns, SUM),
        VALUE(BatchThreadTime, runqueue_ns, SUM),
        VALUE(BatchThreadTime, sleep_ns, SUM),
        VALUE(BatchThreadTime, block_ns, SUM),
        VALUE(BatchThreadTime, iowait_ns, SUM),
        VALUE(BatchThreadTime, throttled_ns, SUM),
        VALUE(BatchThreadTime, healed_ns, SUM),
        VALUE(BatchThreadTime, switches, SUM),
        VALUE(BatchThreadTime, preemptions, SUM),
};

/* What hangs on a thread_time row keeps its dt_ns: two rows of one interval do not make it longer. Where the intervals
 * themselves were added, write.c sets it. */
static const Column wait_columns[] = {
        IDENTITY(BatchWait, ts_ns),
        VALUE(BatchWait, dt_ns, STAYS),
        IDENTITY_KEY(BatchWait, thread_key, "thread_id", OBJECT_THREAD),
        IDENTITY_KEY(BatchWait, resource_key, "resource_id", OBJECT_RESOURCE),
        IDENTITY(BatchWait, op),
        VALUE(BatchWait, count, SUM),
        VALUE(BatchWait, total_ns, SUM),
        VALUE(BatchWait, max_ns, HIGHEST),
        HISTOGRAM(BatchWait),
};

static const Column mux_wait_columns[] = {
        IDENTITY(BatchMuxWait, ts_ns),
        VALUE(BatchMuxWait, dt_ns, STAYS),
        IDENTITY_KEY(BatchMuxWait, thread_key, "thread_id", OBJECT_THREAD),
        IDENTITY_KEY(BatchMuxWait, resource_key, "resource_id", OBJECT_RESOURCE),
        IDENTITY_KEY_OR_0(BatchMuxWait, watched_key, "watched_id", OBJECT_RESOURCE),
        IDENTITY(BatchMuxWait, op),
        VALUE(BatchMuxWait, count, SUM),
        VALUE(BatchMuxWait, total_ns, SUM),
};

static const Column wake_columns[] = {
        IDENTITY(BatchWake, ts_ns),
        VALUE(BatchWake, dt_ns, STAYS),
        IDENTITY_KEY_OR_0(BatchWake, waker_thread_key, "waker_thread_id", OBJECT_THREAD),
        IDENTITY(BatchWake, waker_kind),
        IDENTITY_KEY(BatchWake, thread_key, "thread_id", OBJECT_THREAD),
        IDENTITY_KEY(BatchWake, resource_key, "resource_id", OBJECT_RESOURCE),
        VALUE(BatchWake, count, SUM),
        VALUE(BatchWake, total_ns, SUM),
};

/* Two rows of one interval stand side by side. */
static const Column ran_instead_columns[] = {
        VALUE(BatchRanInstead, ts_ns, STAYS),
        VALUE(BatchRanInstead, dt_ns, STAYS),
        KEY(BatchRanInstead, thread_key, "thread_id", OBJECT_THREAD),
        KEY(BatchRanInstead, process_key, "process_id", OBJECT_PROCESS, .absent = ABSENT_NULL_0),
        VALUE(BatchRanInstead, total_ns, STAYS),
};

static const Column call_columns[] = {
        IDENTITY(BatchCall, ts_ns),
        VALUE(BatchCall, dt_ns, STAYS),
        IDENTITY_KEY(BatchCall, thread_key, "thread_id", OBJECT_THREAD),
        IDENTITY_KEY(BatchCall, resource_key, "resource_id", OBJECT_RESOURCE),
        IDENTITY(BatchCall, op),
        VALUE(BatchCall, count, SUM),
        VALUE(BatchCall, errors, SUM),
        VALUE(BatchCall, bytes, SUM),
        VALUE(BatchCall, total_ns, SUM),
        VALUE(BatchCall, max_ns, HIGHEST),
        HISTOGRAM(BatchCall),
};

/* A socket has one sample an interval, so a second one of that moment is another interval: lengths and counts add up, and
 * what is true of the moment is taken from the newer. */
static const Column socket_sample_columns[] = {
        IDENTITY(BatchSocketSample, ts_ns),
        VALUE(BatchSocketSample, dt_ns, SUM),
        IDENTITY_KEY(BatchSocketSample, resource_key, "resource_id", OBJECT_RESOURCE),
        VALUE(BatchSocketSample, bytes_in, SUM),
        VALUE(BatchSocketSample, bytes_out, SUM),
        VALUE(BatchSocketSample, retransmits, SUM),
        VALUE_OR(BatchSocketSample, srtt_ns, ABSENT_NULL_0, NEW_IF_KNOWN),
        VALUE(BatchSocketSample, send_queue, NEW),
        VALUE(BatchSocketSample, receive_queue, NEW),
};

/* Several rows of one batch may become one (two cgroups of one name, say). */
static const Column disk_columns[] = {
        IDENTITY(BatchDisk, ts_ns),
        VALUE(BatchDisk, dt_ns, HIGHEST),
        IDENTITY(BatchDisk, device),
        IDENTITY(BatchDisk, partition),
        IDENTITY_KEY(BatchDisk, process_key, "process_id", OBJECT_PROCESS),
        IDENTITY_KEY_OR_0(BatchDisk, thread_key, "thread_id", OBJECT_THREAD),
        IDENTITY_OR(BatchDisk, cgroup, ABSENT_EMPTY),
        IDENTITY(BatchDisk, op),
        VALUE(BatchDisk, requests, SUM),
        VALUE(BatchDisk, sectors, SUM),
        VALUE(BatchDisk, total_ns, SUM),
        VALUE(BatchDisk, max_ns, HIGHEST),
        HISTOGRAM(BatchDisk),
};

static const Column cgroup_time_columns[] = {
        IDENTITY(BatchCgroupTime, ts_ns),
        VALUE(BatchCgroupTime, dt_ns, SUM),
        IDENTITY(BatchCgroupTime, cgroup),
        VALUE_OR(BatchCgroupTime, usage_ns, ABSENT_NULL_MINUS, SUM_OF_KNOWN),
        VALUE_OR(BatchCgroupTime, throttled_ns, ABSENT_NULL_MINUS, SUM_OF_KNOWN),
        VALUE_OR(BatchCgroupTime, throttled_periods, ABSENT_NULL_MINUS, SUM_OF_KNOWN),
        VALUE_OR(BatchCgroupTime, memory_bytes, ABSENT_NULL_MINUS, NEW_IF_KNOWN),
        VALUE_OR(BatchCgroupTime, memory_events, ABSENT_NULL_MINUS, SUM_OF_KNOWN),
};

static const Column coverage_columns[] = {
        IDENTITY(BatchCoverage, ts_ns),
        VALUE(BatchCoverage, dt_ns, SUM),
        IDENTITY(BatchCoverage, part),
};

static const Column loss_columns[] = {
        VALUE(BatchLoss, ts_ns, STAYS),
        VALUE(BatchLoss, part, STAYS),
        VALUE(BatchLoss, reason, STAYS),
        VALUE(BatchLoss, count, STAYS),
};

#define KIND(table_, row, array, ...)                                                                     \
        {                                                                                                 \
                .table = #table_, .columns = table_##_columns, .n_columns = ELEMENTSOF(table_##_columns), \
                .row_size = sizeof(row), .n_offset = offsetof(Batch, n_##array),                          \
                .array_offset = _Generic(((Batch *) NULL)->array, row *                                   \
                                         : offsetof(Batch, array)),                                       \
                __VA_ARGS__                                                                               \
        }
#define MEASUREMENT(table_, row, array) KIND(table_, row, array, .describes = OBJECT_NONE)
#define DESCRIPTION(table_, row, array, object) \
        KIND(table_, row, array, .describes = (object), .key_offset = offsetof(row, key))

const RowKind row_kinds[_ROW_MAX] = {
        [ROW_PROCESS] = DESCRIPTION(process, BatchProcess, processes, OBJECT_PROCESS),
        [ROW_THREAD] = DESCRIPTION(thread, BatchThread, threads, OBJECT_THREAD),
        [ROW_RESOURCE] = DESCRIPTION(resource, BatchResource, resources, OBJECT_RESOURCE),
        [ROW_SOCKET] = MEASUREMENT(socket, BatchSocket, sockets),
        [ROW_EPOLL_WATCH] = MEASUREMENT(epoll_watch, BatchEpollWatch, epoll_watches),
        [ROW_CLOCK] = MEASUREMENT(clock, BatchClock, clocks),
        [ROW_THREAD_TIME] = MEASUREMENT(thread_time, BatchThreadTime, thread_times),
        [ROW_WAIT] = MEASUREMENT(wait, BatchWait, waits),
        [ROW_MUX_WAIT] = MEASUREMENT(mux_wait, BatchMuxWait, mux_waits),
        [ROW_WAKE] = MEASUREMENT(wake, BatchWake, wakes),
        [ROW_RAN_INSTEAD] = MEASUREMENT(ran_instead, BatchRanInstead, ran_instead),
        [ROW_CALL] = MEASUREMENT(call, BatchCall, calls),
        [ROW_SOCKET_SAMPLE] = MEASUREMENT(socket_sample, BatchSocketSample, socket_samples),
        [ROW_DISK] = MEASUREMENT(disk, BatchDisk, disks),
        [ROW_CGROUP_TIME] = MEASUREMENT(cgroup_time, BatchCgroupTime, cgroup_times),
        [ROW_COVERAGE] = MEASUREMENT(coverage, BatchCoverage, coverages),
        [ROW_LOSS] = MEASUREMENT(loss, BatchLoss, losses),
};

/* Writes a rule with the column's name in the place of each $. */
static void append_rule(sqlite3_str *sql, const char *rule, const char *name) {
        for (const char *c = rule; *c; c++)
                if (*c == '$')
                        sqlite3_str_appendall(sql, name);
                else
                        sqlite3_str_appendchar(sql, 1, *c);
}

static size_t column_width(const Column *column) {
        return column->type == COLUMN_HISTOGRAM ? STORE_HISTOGRAM_BUCKETS : 1;
}

static void column_name(const Column *column, size_t i, char ret[static 32]) {
        if (column->type == COLUMN_HISTOGRAM)
                (void) snprintf(ret, 32, "%s%zu", column->name, i);
        else
                (void) snprintf(ret, 32, "%s", column->name);
}

static void append_merge(sqlite3_str *sql, const RowKind *kind) {
        const char *separator = " ON CONFLICT (";
        char name[32];

        for (size_t c = 0; c < kind->n_columns; c++) {
                if (!kind->columns[c].identity)
                        continue;
                sqlite3_str_appendf(sql, "%s%s", separator, kind->columns[c].name);
                separator = ", ";
        }

        separator = ") DO UPDATE SET ";
        for (size_t c = 0; c < kind->n_columns; c++) {
                const Column *column = kind->columns + c;

                for (size_t i = 0; column->merge && i < column_width(column); i++) {
                        column_name(column, i, name);
                        sqlite3_str_appendf(sql, "%s%s = ", separator, name);
                        append_rule(sql, column->merge, name);
                        separator = ", ";
                }
        }
}

char *row_sql(enum row_kind which, bool merge) {
        const RowKind *kind = row_kinds + which;
        sqlite3_str *sql = sqlite3_str_new(NULL);
        const char *separator = " (";
        bool has_identity = false;
        size_t n = 0;
        char name[32];

        sqlite3_str_appendf(sql, "INSERT INTO %s", kind->table);
        for (size_t c = 0; c < kind->n_columns; c++) {
                has_identity |= kind->columns[c].identity;
                for (size_t i = 0; i < column_width(kind->columns + c); i++, n++) {
                        column_name(kind->columns + c, i, name);
                        sqlite3_str_appendf(sql, "%s%s", separator, name);
                        separator = ", ";
                }
        }
        for (size_t i = 1; i <= n; i++)
                sqlite3_str_appendf(sql, i == 1 ? ") VALUES (?%d" : ", ?%d", (int) i);
        sqlite3_str_appendall(sql, ")");
        if (merge && has_identity)
                append_merge(sql, kind);
        if (kind->describes != OBJECT_NONE)
                sqlite3_str_appendall(sql, " RETURNING id");
        return sqlite3_str_finish(sql);
}
