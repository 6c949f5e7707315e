-- SPDX-License-Identifier: LGPL-2.1-or-later
-- The views of the store: names and columns of the published tool, so that its queries can be asked of this database,
-- and four of our own that they stand on (thread_second, wait_second, resource_file, resource_futex). docs/views.md
-- says what each column is. They hold no data and are made anew when the version of the store changes. linux-consts.sh
-- adds linux_consts.
--
-- A row longer than 1.5 s is cut into pieces of a second (3600 at most) that share it evenly. A piece is the difference
-- of two running totals: the pieces add up to the row, and a count of one falls to the last, where what it counts
-- ended. Rows that need no cutting have a half of the union of their own; there a condition on ts_ns uses the key.
--
-- CROSS JOIN fixes the order, along the time and then to the names, whatever statistics an ANALYZE may have left. What
-- is made of identities is MATERIALIZED: once a query, not once a row. It is never grouped, because SQLite takes a
-- grouped table for a small one, gives it no index, and reads it through for each row.

-- What thread_time says of each second.
CREATE VIEW thread_second AS
        WITH RECURSIVE sixty (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM sixty WHERE i < 59)
        SELECT tt.ts_ns AS ts_ns, tt.dt_ns AS dt_ns, tt.thread_id AS thread_id, p.machine_id AS machine_id,
               p.pid AS pid, t.tid AS tid, t.comm AS comm, tt.run_ns AS run_ns, tt.runqueue_ns AS runqueue_ns,
               tt.sleep_ns AS sleep_ns, tt.block_ns AS block_ns, tt.iowait_ns AS iowait_ns,
               tt.throttled_ns AS throttled_ns, tt.healed_ns AS healed_ns, tt.switches AS switches,
               tt.preemptions AS preemptions
        FROM thread_time tt CROSS JOIN thread t ON t.id = tt.thread_id CROSS JOIN process p ON p.id = t.process_id
        WHERE tt.dt_ns <= 1500000000
        UNION ALL
        SELECT ts_ns - dt_ns + dt_ns * k / n, dt_ns * k / n - dt_ns * (k - 1) / n, thread_id, machine_id, pid, tid,
               comm, run_ns * k / n - run_ns * (k - 1) / n, runqueue_ns * k / n - runqueue_ns * (k - 1) / n,
               sleep_ns * k / n - sleep_ns * (k - 1) / n, block_ns * k / n - block_ns * (k - 1) / n,
               iowait_ns * k / n - iowait_ns * (k - 1) / n, throttled_ns * k / n - throttled_ns * (k - 1) / n,
               healed_ns * k / n - healed_ns * (k - 1) / n, switches * k / n - switches * (k - 1) / n,
               preemptions * k / n - preemptions * (k - 1) / n
        FROM (SELECT tt.*, p.machine_id, p.pid, t.tid, t.comm, minute.i * 60 + second.i + 1 AS k
              FROM (SELECT *, min((dt_ns + 500000000) / 1000000000, 3600) AS n
                    FROM thread_time
                    WHERE dt_ns > 1500000000) tt
              CROSS JOIN thread t ON t.id = tt.thread_id CROSS JOIN process p ON p.id = t.process_id
              CROSS JOIN sixty AS minute ON minute.i * 60 < tt.n
              CROSS JOIN sixty AS second ON minute.i * 60 + second.i < tt.n);

CREATE VIEW taskstats_view AS
        SELECT machine_id,
               strftime('%Y-%m-%d %H:%M:%S', ts_ns / 1000000000, 'unixepoch')
                       || printf('.%06d', ts_ns / 1000 % 1000000) AS ts,
               dt_ns AS time_diff, pid, tid, comm, CAST(run_ns AS REAL) / dt_ns AS run_share,
               CAST(runqueue_ns AS REAL) / dt_ns AS rq_share, CAST(block_ns AS REAL) / dt_ns AS uninterruptible_share,
               CAST(iowait_ns AS REAL) / dt_ns AS blkio_share, CAST(sleep_ns AS REAL) / dt_ns AS interruptible_share,
               ts_ns
        FROM thread_second;

-- Counters that grow from the first row of the thread in the database. The stalls on memory are rows of wait; they
-- enter the sums and leave no row here.
CREATE VIEW taskstats AS
        SELECT machine_id,
               strftime('%Y-%m-%d %H:%M:%S', ts_ns / 1000000000, 'unixepoch')
                       || printf('.%06d', ts_ns / 1000 % 1000000) AS ts,
               pid, tid, comm, nvcsw, nivcsw, run_time_total, rq_time_total, nvcsw + nivcsw AS rq_count,
               blkio_time_total, NULL AS blkio_count, uninterruptible_total, freepages_time_total, freepages_count,
               NULL AS thrashing_time_total, NULL AS thrashing_count, swapin_time_total, swapin_count, ts_ns
        FROM (SELECT *, sum(switches) OVER life AS nvcsw, sum(preemptions) OVER life AS nivcsw,
                     sum(run_ns) OVER life AS run_time_total, sum(runqueue_ns) OVER life AS rq_time_total,
                     sum(iowait_ns) OVER life AS blkio_time_total, sum(block_ns) OVER life AS uninterruptible_total,
                     sum(reclaim_ns) OVER life AS freepages_time_total, sum(reclaims) OVER life AS freepages_count,
                     sum(swap_ns) OVER life AS swapin_time_total, sum(swaps) OVER life AS swapin_count
              FROM (SELECT 1 AS is_row, ts_ns, thread_id, machine_id, pid, tid, comm, switches, preemptions, run_ns,
                           runqueue_ns, iowait_ns, block_ns, 0 AS reclaim_ns, 0 AS reclaims, 0 AS swap_ns, 0 AS swaps
                    FROM thread_second
                    UNION ALL
                    SELECT 0, w.ts_ns, w.thread_id, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0,
                           iif(r.kind = 'reclaim', w.total_ns, 0), iif(r.kind = 'reclaim', w.count, 0),
                           iif(w.op = 'swap', w.total_ns, 0), iif(w.op = 'swap', w.count, 0)
                    FROM wait w CROSS JOIN resource r ON r.id = w.resource_id
                    WHERE r.kind = 'reclaim' OR r.kind = 'page-fault' AND w.op = 'swap')
              WINDOW life AS (PARTITION BY thread_id ORDER BY ts_ns, is_row ROWS UNBOUNDED PRECEDING))
        WHERE is_row;

-- What each thread waited for (wait) and called (call) in each second: one row for a thread, resource and operation.
-- calls, errors, bytes and call_ns are NULL where calls were not counted. The histogram is that of the calls where they
-- were, else that of the waits. Its four parts are written out, because SQLite takes a condition down only one level.
CREATE VIEW wait_second AS
        WITH RECURSIVE sixty (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM sixty WHERE i < 59)
        SELECT w.ts_ns AS ts_ns, w.dt_ns AS dt_ns, w.thread_id AS thread_id, w.resource_id AS resource_id, w.op AS op,
               p.machine_id AS machine_id, p.pid AS pid, t.tid AS tid, t.comm AS comm, r.kind AS kind,
               r.ident AS ident, r.name AS name, w.total_ns AS total_ns, w.count AS waits, c.count AS calls,
               c.errors AS errors, c.bytes AS bytes, c.total_ns AS call_ns, ifnull(c.hist0, w.hist0) AS hist0,
               ifnull(c.hist1, w.hist1) AS hist1, ifnull(c.hist2, w.hist2) AS hist2,
               ifnull(c.hist3, w.hist3) AS hist3, ifnull(c.hist4, w.hist4) AS hist4,
               ifnull(c.hist5, w.hist5) AS hist5, ifnull(c.hist6, w.hist6) AS hist6, ifnull(c.hist7, w.hist7) AS hist7
        FROM wait w
        CROSS JOIN resource r ON r.id = w.resource_id CROSS JOIN thread t ON t.id = w.thread_id
        CROSS JOIN process p ON p.id = t.process_id
        LEFT JOIN call c
                ON (c.ts_ns, c.thread_id, c.resource_id, c.op) = (w.ts_ns, w.thread_id, w.resource_id, w.op)
        WHERE w.dt_ns <= 1500000000
        UNION ALL
        SELECT c.ts_ns AS ts_ns, c.dt_ns AS dt_ns, c.thread_id AS thread_id, c.resource_id AS resource_id, c.op AS op,
               p.machine_id AS machine_id, p.pid AS pid, t.tid AS tid, t.comm AS comm, r.kind AS kind,
               r.ident AS ident, r.name AS name, 0 AS total_ns, 0 AS waits, c.count AS calls, c.errors AS errors,
               c.bytes AS bytes, c.total_ns AS call_ns, c.hist0 AS hist0, c.hist1 AS hist1, c.hist2 AS hist2,
               c.hist3 AS hist3, c.hist4 AS hist4, c.hist5 AS hist5, c.hist6 AS hist6, c.hist7 AS hist7
        FROM call c
        CROSS JOIN resource r ON r.id = c.resource_id CROSS JOIN thread t ON t.id = c.thread_id
        CROSS JOIN process p ON p.id = t.process_id
        WHERE c.dt_ns <= 1500000000
          AND NOT EXISTS (SELECT 1
                          FROM wait w
                          WHERE (c.ts_ns, c.thread_id, c.resource_id, c.op)
                               = (w.ts_ns, w.thread_id, w.resource_id, w.op))
        UNION ALL
        SELECT ts_ns - dt_ns + dt_ns * k / n, dt_ns * k / n - dt_ns * (k - 1) / n, thread_id, resource_id, op,
               machine_id, pid, tid, comm, kind, ident, name, total_ns * k / n - total_ns * (k - 1) / n,
               waits * k / n - waits * (k - 1) / n, calls * k / n - calls * (k - 1) / n,
               errors * k / n - errors * (k - 1) / n, bytes * k / n - bytes * (k - 1) / n,
               call_ns * k / n - call_ns * (k - 1) / n, hist0 * k / n - hist0 * (k - 1) / n,
               hist1 * k / n - hist1 * (k - 1) / n, hist2 * k / n - hist2 * (k - 1) / n,
               hist3 * k / n - hist3 * (k - 1) / n, hist4 * k / n - hist4 * (k - 1) / n,
               hist5 * k / n - hist5 * (k - 1) / n, hist6 * k / n - hist6 * (k - 1) / n,
               hist7 * k / n - hist7 * (k - 1) / n
        FROM (SELECT w.ts_ns AS ts_ns, w.dt_ns AS dt_ns, w.thread_id AS thread_id, w.resource_id AS resource_id,
                     w.op AS op, p.machine_id AS machine_id, p.pid AS pid, t.tid AS tid, t.comm AS comm,
                     r.kind AS kind, r.ident AS ident, r.name AS name, w.total_ns AS total_ns, w.count AS waits,
                     c.count AS calls, c.errors AS errors, c.bytes AS bytes, c.total_ns AS call_ns,
                     ifnull(c.hist0, w.hist0) AS hist0, ifnull(c.hist1, w.hist1) AS hist1,
                     ifnull(c.hist2, w.hist2) AS hist2, ifnull(c.hist3, w.hist3) AS hist3,
                     ifnull(c.hist4, w.hist4) AS hist4, ifnull(c.hist5, w.hist5) AS hist5,
                     ifnull(c.hist6, w.hist6) AS hist6, ifnull(c.hist7, w.hist7) AS hist7, w.n AS n,
                     minute.i * 60 + second.i + 1 AS k
              FROM (SELECT *, min((dt_ns + 500000000) / 1000000000, 3600) AS n
                    FROM wait
                    WHERE dt_ns > 1500000000) w
              CROSS JOIN resource r ON r.id = w.resource_id CROSS JOIN thread t ON t.id = w.thread_id
              CROSS JOIN process p ON p.id = t.process_id
              LEFT JOIN call c
                      ON (c.ts_ns, c.thread_id, c.resource_id, c.op) = (w.ts_ns, w.thread_id, w.resource_id, w.op)
              CROSS JOIN sixty AS minute ON minute.i * 60 < w.n
              CROSS JOIN sixty AS second ON minute.i * 60 + second.i < w.n)
        UNION ALL
        SELECT ts_ns - dt_ns + dt_ns * k / n, dt_ns * k / n - dt_ns * (k - 1) / n, thread_id, resource_id, op,
               machine_id, pid, tid, comm, kind, ident, name, total_ns * k / n - total_ns * (k - 1) / n,
               waits * k / n - waits * (k - 1) / n, calls * k / n - calls * (k - 1) / n,
               errors * k / n - errors * (k - 1) / n, bytes * k / n - bytes * (k - 1) / n,
               call_ns * k / n - call_ns * (k - 1) / n, hist0 * k / n - hist0 * (k - 1) / n,
               hist1 * k / n - hist1 * (k - 1) / n, hist2 * k / n - hist2 * (k - 1) / n,
               hist3 * k / n - hist3 * (k - 1) / n, hist4 * k / n - hist4 * (k - 1) / n,
               hist5 * k / n - hist5 * (k - 1) / n, hist6 * k / n - hist6 * (k - 1) / n,
               hist7 * k / n - hist7 * (k - 1) / n
        FROM (SELECT c.ts_ns AS ts_ns, c.dt_ns AS dt_ns, c.thread_id AS thread_id, c.resource_id AS resource_id,
                     c.op AS op, p.machine_id AS machine_id, p.pid AS pid, t.tid AS tid, t.comm AS comm,
                     r.kind AS kind, r.ident AS ident, r.name AS name, 0 AS total_ns, 0 AS waits, c.count AS calls,
                     c.errors AS errors, c.bytes AS bytes, c.total_ns AS call_ns, c.hist0 AS hist0, c.hist1 AS hist1,
                     c.hist2 AS hist2, c.hist3 AS hist3, c.hist4 AS hist4, c.hist5 AS hist5, c.hist6 AS hist6,
                     c.hist7 AS hist7, c.n AS n, minute.i * 60 + second.i + 1 AS k
              FROM (SELECT *, min((dt_ns + 500000000) / 1000000000, 3600) AS n
                    FROM call
                    WHERE dt_ns > 1500000000) c
              CROSS JOIN resource r ON r.id = c.resource_id CROSS JOIN thread t ON t.id = c.thread_id
              CROSS JOIN process p ON p.id = t.process_id
              CROSS JOIN sixty AS minute ON minute.i * 60 < c.n
              CROSS JOIN sixty AS second ON minute.i * 60 + second.i < c.n
              WHERE NOT EXISTS (SELECT 1
                                FROM wait w
                                WHERE (c.ts_ns, c.thread_id, c.resource_id, c.op)
                                     = (w.ts_ns, w.thread_id, w.resource_id, w.op)));

-- The numbers in the identity of a file, pipe or socket; NULL where there are none.
CREATE VIEW resource_file AS
        SELECT id, machine_id, kind, ident, name,
               CASE WHEN kind = 'pipe'
                    THEN (SELECT value FROM linux_consts WHERE const_name = 'PIPEFS_MAGIC')
                    WHEN kind IN ('unix', 'inet', 'socket')
                    THEN (SELECT value FROM linux_consts WHERE const_name = 'SOCKFS_MAGIC')
                    WHEN kind IN ('epoll', 'eventfd', 'timerfd', 'signalfd', 'inotify', 'io_uring')
                    THEN (SELECT value FROM linux_consts WHERE const_name = 'ANON_INODE_FS_MAGIC') END AS fs_magic,
               CASE WHEN ident GLOB 'inode:[0-9]*' THEN 0
                    WHEN ident GLOB '[0-9]*:[0-9]*'
                    THEN CAST(ident AS INTEGER) << 20 | CAST(after_major AS INTEGER) END AS device_id,
               CASE WHEN ident GLOB 'inode:[0-9]*' THEN CAST(after_major AS INTEGER)
                    WHEN ident GLOB '[0-9]*:[0-9]*:[0-9]*'
                    THEN CAST(substr(after_major, instr(after_major, ':') + 1) AS INTEGER) END AS inode_id
        FROM (SELECT *, substr(ident, instr(ident, ':') + 1) AS after_major FROM resource);

-- The same of a futex, as the kernel makes its key: address space and page of a private one; inode sequence and page
-- number of a shared one, whose offset has bit 0 set.
CREATE VIEW resource_futex AS
        WITH RECURSIVE digit (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM digit WHERE i < 16)
        SELECT id, machine_id, ident, name, space AS futex_key_addr,
               iif(shared, address >> 12, address & ~4095) AS futex_key_word,
               address & 4095 | shared AS futex_key_offset
        FROM (SELECT *, iif(is_key, CAST(substr(ident, instr(ident, ':') + 1) AS INTEGER), NULL) AS space,
                     ident GLOB 'shared:*' AS shared,
                     (SELECT sum(instr('123456789abcdef', substr(ident, -i, 1)) << 4 * (i - 1))
                      FROM digit
                      WHERE is_key AND i <= length(ident) - instr(ident, 'x')) AS address
              FROM (SELECT *, kind = 'futex' AND ident GLOB '*:[0-9]*[:+]0x*' AS is_key FROM resource));

-- Of wait alone: most calls on a futex wake or do not wait.
CREATE VIEW futex_wait AS
        WITH RECURSIVE sixty (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM sixty WHERE i < 59),
        futex AS MATERIALIZED (SELECT id, futex_key_addr, futex_key_word, futex_key_offset FROM resource_futex),
        waited AS (
                SELECT w.ts_ns AS ts_ns, w.thread_id AS thread_id, w.resource_id AS resource_id, r.name AS name,
                       sum(w.count) AS count, sum(w.total_ns) AS total_ns,
                       sum(w.hist0) AS hist0, sum(w.hist1) AS hist1, sum(w.hist2) AS hist2, sum(w.hist3) AS hist3,
                       sum(w.hist4) AS hist4, sum(w.hist5) AS hist5, sum(w.hist6) AS hist6, sum(w.hist7) AS hist7
                FROM wait w CROSS JOIN resource r ON r.id = w.resource_id
                WHERE r.kind = 'futex' AND w.dt_ns <= 1500000000
                GROUP BY w.ts_ns, w.thread_id, w.resource_id
                UNION ALL
                SELECT ts_ns - dt_ns + dt_ns * k / n, thread_id, resource_id, name,
                       count * k / n - count * (k - 1) / n, total_ns * k / n - total_ns * (k - 1) / n,
                       hist0 * k / n - hist0 * (k - 1) / n, hist1 * k / n - hist1 * (k - 1) / n,
                       hist2 * k / n - hist2 * (k - 1) / n, hist3 * k / n - hist3 * (k - 1) / n,
                       hist4 * k / n - hist4 * (k - 1) / n, hist5 * k / n - hist5 * (k - 1) / n,
                       hist6 * k / n - hist6 * (k - 1) / n, hist7 * k / n - hist7 * (k - 1) / n
                FROM (SELECT w.*, minute.i * 60 + second.i + 1 AS k
                      FROM (SELECT w.ts_ns AS ts_ns, w.dt_ns AS dt_ns, w.thread_id AS thread_id,
                                   w.resource_id AS resource_id, r.name AS name,
                                   min((w.dt_ns + 500000000) / 1000000000, 3600) AS n,
                                   sum(w.count) AS count, sum(w.total_ns) AS total_ns,
                                   sum(w.hist0) AS hist0, sum(w.hist1) AS hist1, sum(w.hist2) AS hist2,
                                   sum(w.hist3) AS hist3, sum(w.hist4) AS hist4, sum(w.hist5) AS hist5,
                                   sum(w.hist6) AS hist6, sum(w.hist7) AS hist7
                            FROM wait w CROSS JOIN resource r ON r.id = w.resource_id
                            WHERE r.kind = 'futex' AND w.dt_ns > 1500000000
                            GROUP BY w.ts_ns, w.thread_id, w.resource_id) w
                      CROSS JOIN sixty AS minute ON minute.i * 60 < w.n
                      CROSS JOIN sixty AS second ON minute.i * 60 + second.i < w.n))
        SELECT p.machine_id AS machine_id,
               strftime('%Y-%m-%d %H:%M:%S', w.ts_ns / 1000000000, 'unixepoch')
                       || printf('.%06d', w.ts_ns / 1000 % 1000000) AS ts_s,
               p.pid AS pid, t.tid AS tid, f.futex_key_addr AS futex_key_addr, f.futex_key_word AS futex_key_word,
               f.futex_key_offset AS futex_key_offset, w.count AS total_requests, w.total_ns AS total_time,
               w.hist0 AS hist0, w.hist1 AS hist1, w.hist2 AS hist2, w.hist3 AS hist3, w.hist4 AS hist4,
               w.hist5 AS hist5, w.hist6 AS hist6, w.hist7 AS hist7, w.ts_ns AS ts_ns, w.name AS name,
               w.resource_id AS resource_id
        FROM waited w CROSS JOIN thread t ON t.id = w.thread_id CROSS JOIN process p ON p.id = t.process_id
        CROSS JOIN futex f ON f.id = w.resource_id;

-- By the thread that woke; other wakers have thread 0. Each row of wake has the time of the woken thread's row: the
-- second is what they share.
CREATE VIEW futex_wake AS
        WITH futex AS MATERIALIZED (SELECT id, futex_key_addr, futex_key_word, futex_key_offset FROM resource_futex)
        SELECT p.machine_id AS machine_id,
               strftime('%Y-%m-%d %H:%M:%S', max(w.ts_ns) / 1000000000, 'unixepoch')
                       || printf('.%06d', max(w.ts_ns) / 1000 % 1000000) AS ts_s,
               p.pid AS pid, t.tid AS tid, f.futex_key_addr AS futex_key_addr, f.futex_key_word AS futex_key_word,
               f.futex_key_offset AS futex_key_offset, sum(w.count) AS total_requests,
               sum(w.count) AS successful_count, max(w.ts_ns) AS ts_ns, r.name AS name, r.id AS resource_id
        FROM wake w CROSS JOIN resource r ON r.id = w.resource_id CROSS JOIN thread t ON t.id = w.waker_thread_id
        CROSS JOIN process p ON p.id = t.process_id CROSS JOIN futex f ON f.id = r.id
        WHERE r.kind = 'futex'
        GROUP BY w.ts_ns / 1000000000, w.waker_thread_id, w.resource_id;

-- op is 0 for what reads, 1 for what writes, 2 for what does neither.
CREATE VIEW vfs AS
        WITH file AS MATERIALIZED (SELECT id, fs_magic, device_id, inode_id FROM resource_file)
        SELECT s.machine_id AS machine_id,
               strftime('%Y-%m-%d %H:%M:%S', s.ts_ns / 1000000000, 'unixepoch')
                       || printf('.%06d', s.ts_ns / 1000 % 1000000) AS ts_s,
               s.pid AS pid, s.tid AS tid, f.fs_magic AS fs_magic, f.device_id AS device_id, f.inode_id AS inode_id,
               CASE WHEN s.op IN ('read', 'receive', 'accept', 'getdents', 'readlink') THEN 0
                    WHEN s.op IN ('write', 'send', 'connect', 'shutdown', 'sendfile', 'fsync', 'fdatasync',
                                  'sync_file_range', 'truncate', 'fallocate') THEN 1
                    ELSE 2 END AS op,
               s.total_ns AS total_time, ifnull(s.calls, s.waits) AS total_requests, s.hist0 AS hist0,
               s.hist1 AS hist1, s.hist2 AS hist2, s.hist3 AS hist3, s.hist4 AS hist4, s.hist5 AS hist5,
               s.hist6 AS hist6, s.hist7 AS hist7, s.ts_ns AS ts_ns, s.op AS operation,
               s.calls IS NOT NULL AS calls_counted, s.bytes AS bytes, s.name AS name, s.resource_id AS resource_id
        FROM wait_second s CROSS JOIN file f ON f.id = s.resource_id
        WHERE s.kind IN ('pipe', 'fifo', 'chardev', 'file', 'unix', 'inet', 'socket');

CREATE VIEW muxio_wait AS
        SELECT machine_id,
               strftime('%Y-%m-%d %H:%M:%S', ts_ns / 1000000000, 'unixepoch')
                       || printf('.%06d', ts_ns / 1000 % 1000000) AS ts_s,
               pid, tid, kind = 'epoll' AS is_epoll, resource_id AS poll_id, total_ns AS total_time,
               ifnull(calls, waits) AS total_requests, hist0, hist1, hist2, hist3, hist4, hist5, hist6, hist7, ts_ns,
               op AS operation, calls IS NOT NULL AS calls_counted, name
        FROM wait_second
        WHERE kind IN ('epoll', 'poll');

-- The waits on a set that one of its files ended (watched_id is 0 for the others). mean is their mean length in that
-- row, NULL when none ended.
CREATE VIEW muxio_file AS
        WITH RECURSIVE sixty (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM sixty WHERE i < 59),
        file AS MATERIALIZED (SELECT id, fs_magic, device_id, inode_id FROM resource_file),
        watched (ts_ns, dt_ns, thread_id, resource_id, watched_id, op, count, total_ns, mean) AS (
                SELECT ts_ns, dt_ns, thread_id, resource_id, watched_id, op, count, total_ns,
                       total_ns / nullif(count, 0)
                FROM mux_wait
                WHERE dt_ns <= 1500000000
                UNION ALL
                SELECT ts_ns - dt_ns + dt_ns * k / n, dt_ns * k / n - dt_ns * (k - 1) / n, thread_id, resource_id,
                       watched_id, op, count * k / n - count * (k - 1) / n, total_ns * k / n - total_ns * (k - 1) / n,
                       mean
                FROM (SELECT m.*, m.total_ns / nullif(m.count, 0) AS mean, minute.i * 60 + second.i + 1 AS k
                      FROM (SELECT *, min((dt_ns + 500000000) / 1000000000, 3600) AS n
                            FROM mux_wait
                            WHERE dt_ns > 1500000000) m
                      CROSS JOIN sixty AS minute ON minute.i * 60 < m.n
                      CROSS JOIN sixty AS second ON minute.i * 60 + second.i < m.n))
        SELECT p.machine_id AS machine_id,
               strftime('%Y-%m-%d %H:%M:%S', w.ts_ns / 1000000000, 'unixepoch')
                       || printf('.%06d', w.ts_ns / 1000 % 1000000) AS ts_s,
               w.resource_id AS poll_id, f.fs_magic AS fs_magic, f.device_id AS device_id, f.inode_id AS inode_id,
               NULL AS mode, iif(w.mean <= 1000, w.count, 0) AS hist0,
               iif(w.mean > 1000 AND w.mean <= 10000, w.count, 0) AS hist1,
               iif(w.mean > 10000 AND w.mean <= 100000, w.count, 0) AS hist2,
               iif(w.mean > 100000 AND w.mean <= 1000000, w.count, 0) AS hist3,
               iif(w.mean > 1000000 AND w.mean <= 10000000, w.count, 0) AS hist4,
               iif(w.mean > 10000000 AND w.mean <= 100000000, w.count, 0) AS hist5,
               iif(w.mean > 100000000 AND w.mean <= 1000000000, w.count, 0) AS hist6,
               iif(w.mean > 1000000000, w.count, 0) AS hist7, w.ts_ns AS ts_ns, p.pid AS pid, t.tid AS tid,
               w.op AS operation, w.count AS total_requests, w.total_ns AS total_time, r.name AS name,
               w.watched_id AS watched_id
        FROM watched w CROSS JOIN thread t ON t.id = w.thread_id CROSS JOIN process p ON p.id = t.process_id
        CROSS JOIN resource r ON r.id = w.watched_id CROSS JOIN file f ON f.id = w.watched_id;

-- Block requests, of untracked threads too: their tid is 0, and their process is one row.
CREATE VIEW iowait AS
        WITH RECURSIVE sixty (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM sixty WHERE i < 59),
        whole AS NOT MATERIALIZED (
                SELECT ts_ns, dt_ns, device, partition, process_id, thread_id, sum(requests) AS requests,
                       sum(sectors) AS sectors, sum(total_ns) AS total_ns, sum(hist0) AS hist0, sum(hist1) AS hist1,
                       sum(hist2) AS hist2, sum(hist3) AS hist3, sum(hist4) AS hist4, sum(hist5) AS hist5,
                       sum(hist6) AS hist6, sum(hist7) AS hist7
                FROM disk
                GROUP BY ts_ns, device, partition, process_id, thread_id),
        request AS (
                SELECT ts_ns, device, partition, process_id, thread_id, requests, sectors, total_ns, hist0, hist1,
                       hist2, hist3, hist4, hist5, hist6, hist7
                FROM whole
                WHERE dt_ns <= 1500000000
                UNION ALL
                SELECT ts_ns - dt_ns + dt_ns * k / n, device, partition, process_id, thread_id,
                       requests * k / n - requests * (k - 1) / n, sectors * k / n - sectors * (k - 1) / n,
                       total_ns * k / n - total_ns * (k - 1) / n, hist0 * k / n - hist0 * (k - 1) / n,
                       hist1 * k / n - hist1 * (k - 1) / n, hist2 * k / n - hist2 * (k - 1) / n,
                       hist3 * k / n - hist3 * (k - 1) / n, hist4 * k / n - hist4 * (k - 1) / n,
                       hist5 * k / n - hist5 * (k - 1) / n, hist6 * k / n - hist6 * (k - 1) / n,
                       hist7 * k / n - hist7 * (k - 1) / n
                FROM (SELECT d.*, minute.i * 60 + second.i + 1 AS k
                      FROM (SELECT *, min((dt_ns + 500000000) / 1000000000, 3600) AS n
                            FROM whole
                            WHERE dt_ns > 1500000000) d
                      CROSS JOIN sixty AS minute ON minute.i * 60 < d.n
                      CROSS JOIN sixty AS second ON minute.i * 60 + second.i < d.n))
        SELECT p.machine_id AS machine_id,
               strftime('%Y-%m-%d %H:%M:%S', d.ts_ns / 1000000000, 'unixepoch')
                       || printf('.%06d', d.ts_ns / 1000 % 1000000) AS ts_s,
               p.pid AS pid, ifnull(t.tid, 0) AS tid, d.device AS part0, d.device + d.partition AS bdev,
               d.total_ns AS total_time, d.sectors AS sector_cnt, d.requests AS total_requests, d.hist0 AS hist0,
               d.hist1 AS hist1, d.hist2 AS hist2, d.hist3 AS hist3, d.hist4 AS hist4, d.hist5 AS hist5,
               d.hist6 AS hist6, d.hist7 AS hist7, d.ts_ns AS ts_ns, d.partition AS partition,
               ifnull(t.comm, p.comm) AS comm
        FROM request d CROSS JOIN process p ON p.id = d.process_id LEFT JOIN thread t ON t.id = d.thread_id;

CREATE VIEW aio_getevents AS
        SELECT machine_id,
               strftime('%Y-%m-%d %H:%M:%S', ts_ns / 1000000000, 'unixepoch')
                       || printf('.%06d', ts_ns / 1000 % 1000000) AS ts_s,
               pid, tid, resource_id AS aioctx, total_ns AS total_time, ifnull(calls, waits) AS total_requests, ts_ns,
               kind, op AS operation, calls IS NOT NULL AS calls_counted
        FROM wait_second
        WHERE kind IN ('aio', 'io_uring') AND op IN ('io_getevents', 'io_uring_enter');

-- Requests submitted, where calls were counted; else the calls of io_submit that had to wait.
CREATE VIEW aio_submit AS
        SELECT machine_id,
               strftime('%Y-%m-%d %H:%M:%S', ts_ns / 1000000000, 'unixepoch')
                       || printf('.%06d', ts_ns / 1000 % 1000000) AS ts_s,
               pid, tid, resource_id AS aioctx, ifnull(sum(calls), sum(waits)) AS total_requests, ts_ns, kind,
               sum(calls) IS NOT NULL AS calls_counted
        FROM wait_second
        WHERE kind IN ('aio', 'io_uring') AND op IN ('submit', 'io_submit')
        GROUP BY ts_ns, thread_id, resource_id;

-- Which file a request is for is not recorded: it has the columns and never a row.
CREATE VIEW aio_file AS
        SELECT NULL AS machine_id, NULL AS ts_s, NULL AS aioctx, NULL AS isreg, NULL AS fs_magic, NULL AS device_id,
               NULL AS inode_id, NULL AS part0, NULL AS bdev, NULL AS mode, NULL AS hist0, NULL AS hist1,
               NULL AS hist2, NULL AS hist3, NULL AS hist4, NULL AS hist5, NULL AS hist6, NULL AS hist7
        WHERE 0;

CREATE VIEW socket_context AS
        SELECT r.machine_id AS machine_id, r.inode_id AS inode_id, s.family AS family, s.type AS type,
               s.protocol AS protocol, r.name AS name, r.id AS resource_id
        FROM socket s JOIN resource_file r ON r.id = s.resource_id;

-- An address that is not set is '0' for IPv4 in dst_address, which is what the queries look for.
CREATE VIEW socket_inet AS
        SELECT r.machine_id AS machine_id, r.inode_id AS inode_id, s.netns AS netns_cookie,
               ifnull(s.local_addr, iif(s.family = 2, '0.0.0.0', '::')) AS src_address,
               ifnull(s.local_port, 0) AS src_port,
               ifnull(nullif(s.remote_addr, '0.0.0.0'), iif(s.family = 2, '0', '::')) AS dst_address,
               ifnull(s.remote_port, 0) AS dst_port, s.state AS state, r.id AS resource_id
        FROM socket s JOIN resource_file r ON r.id = s.resource_id
        WHERE s.family IN (2, 10);

-- Both directions of each pair of unix sockets.
CREATE VIEW socket_map AS
        SELECT a.machine_id AS machine_id, a.inode_id AS sock1_inode_id, b.inode_id AS sock2_inode_id
        FROM socket s JOIN resource_file a ON a.id = s.resource_id JOIN resource_file b ON b.id = s.peer_resource_id
        WHERE s.family = 1
        UNION
        SELECT b.machine_id, b.inode_id, a.inode_id
        FROM socket s JOIN resource_file a ON a.id = s.resource_id JOIN resource_file b ON b.id = s.peer_resource_id
        WHERE s.family = 1;

-- The TCP connections whose other end is known, on this machine or another one. Its inode is 0 when this database does
-- not hold it.
CREATE VIEW tcp_discovery AS
        SELECT machine_id, machine_id AS local_machine_id, local_inode_id, remote_machine_id, remote_inode_id,
               strftime('%Y-%m-%d %H:%M:%S', ts_ns / 1000000000, 'unixepoch')
                       || printf('.%06d', ts_ns / 1000 % 1000000) AS inserted_at,
               ts_ns
        FROM (SELECT a.machine_id AS machine_id, a.inode_id AS local_inode_id,
                     ifnull(b.machine_id, s.peer_machine_id) AS remote_machine_id,
                     ifnull(b.inode_id, 0) AS remote_inode_id, min(x.ts_ns) AS ts_ns
              FROM socket s JOIN resource_file a ON a.id = s.resource_id
              LEFT JOIN (SELECT o.resource_id, o.cookie, r.machine_id
                         FROM socket o JOIN resource r ON r.id = o.resource_id) other
                      ON other.machine_id = s.peer_machine_id AND other.cookie = s.peer_cookie
              LEFT JOIN resource_file b ON b.id = ifnull(s.peer_resource_id, other.resource_id)
              LEFT JOIN socket_sample x ON x.resource_id = s.resource_id
              WHERE s.family IN (2, 10) AND s.protocol = 6
                AND (s.peer_resource_id IS NOT NULL OR s.peer_machine_id IS NOT NULL)
              GROUP BY s.resource_id);

CREATE VIEW process_context AS
        SELECT machine_id, pid, cgroup, cmdline AS argv, exe, unit, start_ns, exit_ns
        FROM process
        WHERE found_by <> 'observed';

CREATE VIEW docker AS
        SELECT DISTINCT machine_id, cgroup, container_id AS id, container_name AS name, NULL AS image_name,
                        NULL AS image_hash
        FROM process
        WHERE container_id IS NOT NULL AND pod IS NULL;

CREATE VIEW k8s AS
        SELECT DISTINCT machine_id, cgroup, container_id AS id, namespace, pod AS pod_name, container_name,
                        NULL AS image_name
        FROM process
        WHERE container_id IS NOT NULL AND pod IS NOT NULL;
