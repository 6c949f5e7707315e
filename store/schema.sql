-- SPDX-License-Identifier: LGPL-2.1-or-later
-- The store, version 1. One file, written by one prismd at a time; everyone else reads.
--
-- Times named *_ns are nanoseconds. ts_ns, start_ns, end_ns, exit_ns, first_ns and last_ns are Unix time; *_boot_ns is the
-- boot clock (CLOCK_BOOTTIME), which is never stepped and therefore carries identity; all others are lengths.
-- A measurement row covers the interval (ts_ns - dt_ns, ts_ns]. The intervals of one thread's thread_time rows tile its
-- tracked life, and its wait, call, wake and ran_instead rows carry the ts_ns and dt_ns of its thread_time row, so that
-- for each (thread_id, ts_ns)
--     run_ns + runqueue_ns + sleep_ns + block_ns = dt_ns
--     sum(wait.total_ns)        = sleep_ns + block_ns
--     sum(ran_instead.total_ns) = runqueue_ns
-- A thread that stays in one state gets one row when it leaves it, when a recording ends, or after 60 s: spread it evenly.
-- histN counts waits that ended in the interval, by full length, with the inclusive upper bounds
-- 1 us, 10 us, 100 us, 1 ms, 10 ms, 100 ms, 1 s, above.
-- Measurement tables lead their key with time, which is what makes appending to them cheap.

CREATE TABLE machine (
        id            INTEGER PRIMARY KEY,        -- 32 bits of the application-specific machine id, or prismd --machine-id
        hostname      TEXT NOT NULL,
        kernel        TEXT NOT NULL,              -- uname release
        architecture  TEXT NOT NULL,
        cpus          INTEGER NOT NULL            -- configured processors
) STRICT;

CREATE TABLE boot (
        id            INTEGER PRIMARY KEY,
        machine_id    INTEGER NOT NULL REFERENCES machine (id),
        boot_id       TEXT NOT NULL,              -- /proc/sys/kernel/random/boot_id, 32 hex digits
        UNIQUE (machine_id, boot_id)
) STRICT;

-- How the boot clock maps to Unix time: one row at start and whenever the offset moved by more than 1 ms.
CREATE TABLE clock (
        boot          INTEGER NOT NULL REFERENCES boot (id),
        boot_ns       INTEGER NOT NULL,
        unix_ns       INTEGER NOT NULL,
        PRIMARY KEY (boot, boot_ns)
) STRICT, WITHOUT ROWID;

CREATE TABLE process (
        id             INTEGER PRIMARY KEY,
        machine_id     INTEGER NOT NULL REFERENCES machine (id),
        boot           INTEGER NOT NULL REFERENCES boot (id),
        pid            INTEGER NOT NULL,          -- as prismd's pid namespace numbers it, 0 when it has no number there
        host_pid       INTEGER NOT NULL,          -- the kernel's own number
        start_boot_ns  INTEGER NOT NULL,          -- identity; 0 when unknown (an observed process that was gone already)
        start_ns       INTEGER NOT NULL,
        exit_ns        INTEGER,                   -- NULL while it lives, or when its end was not seen
        ppid           INTEGER,
        uid            INTEGER,
        comm           TEXT NOT NULL,
        exe            TEXT,
        cmdline        TEXT,                      -- arguments joined by single spaces
        cgroup         TEXT,                      -- path below the cgroup root
        unit           TEXT,
        container_id   TEXT,
        container_name TEXT,
        pod            TEXT,
        namespace      TEXT,
        netns          INTEGER,                   -- inode number of its network namespace
        found_by       TEXT NOT NULL,             -- target, child, peer or observed (only named, not followed)
        found_from     INTEGER REFERENCES process (id),
        target         TEXT,                      -- the target that brought it in, as `prismctl targets` prints it
        UNIQUE (machine_id, boot, host_pid, start_boot_ns)
) STRICT;

CREATE TABLE thread (
        id             INTEGER PRIMARY KEY,
        process_id     INTEGER NOT NULL REFERENCES process (id),
        tid            INTEGER NOT NULL,
        host_tid       INTEGER NOT NULL,
        start_boot_ns  INTEGER NOT NULL,
        start_ns       INTEGER NOT NULL,
        exit_ns        INTEGER,
        comm           TEXT NOT NULL,             -- the last name it had
        UNIQUE (process_id, host_tid, start_boot_ns)
) STRICT;

CREATE TABLE resource (
        id             INTEGER PRIMARY KEY,
        machine_id     INTEGER NOT NULL REFERENCES machine (id),
        boot           INTEGER NOT NULL REFERENCES boot (id),
        kind           TEXT NOT NULL,             -- see "Words" in docs/how-it-works.md
        ident          TEXT NOT NULL,             -- what makes it unique within the boot and kind
        name           TEXT,                      -- for people; NULL when nothing better than ident is known
        UNIQUE (machine_id, boot, kind, ident)
) STRICT;

CREATE TABLE socket (
        resource_id      INTEGER PRIMARY KEY REFERENCES resource (id),
        family           INTEGER NOT NULL,        -- AF_*
        type             INTEGER NOT NULL,        -- SOCK_*
        protocol         INTEGER NOT NULL,        -- IPPROTO_*
        netns            INTEGER,
        local_addr       TEXT,
        local_port       INTEGER,
        remote_addr      TEXT,
        remote_port      INTEGER,
        state            INTEGER,
        path             TEXT,                    -- unix sockets with a name
        cookie           INTEGER,
        peer_resource_id INTEGER REFERENCES resource (id),
        peer_machine_id  INTEGER,
        peer_cookie      INTEGER
) STRICT;

CREATE TABLE socket_sample (
        ts_ns          INTEGER NOT NULL,
        dt_ns          INTEGER NOT NULL,
        resource_id    INTEGER NOT NULL REFERENCES resource (id),
        bytes_in       INTEGER NOT NULL,
        bytes_out      INTEGER NOT NULL,
        retransmits    INTEGER NOT NULL,
        srtt_ns        INTEGER,
        send_queue     INTEGER,
        receive_queue  INTEGER,
        PRIMARY KEY (ts_ns, resource_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE epoll_watch (
        resource_id    INTEGER NOT NULL REFERENCES resource (id),
        watched_id     INTEGER NOT NULL REFERENCES resource (id),
        first_ns       INTEGER NOT NULL,
        last_ns        INTEGER NOT NULL,
        PRIMARY KEY (resource_id, watched_id, first_ns)
) STRICT, WITHOUT ROWID;

CREATE TABLE thread_time (
        ts_ns          INTEGER NOT NULL,
        dt_ns          INTEGER NOT NULL,
        thread_id      INTEGER NOT NULL REFERENCES thread (id),
        run_ns         INTEGER NOT NULL,
        runqueue_ns    INTEGER NOT NULL,
        sleep_ns       INTEGER NOT NULL,          -- interruptible
        block_ns       INTEGER NOT NULL,          -- uninterruptible
        iowait_ns      INTEGER NOT NULL,          -- part of block_ns
        throttled_ns   INTEGER NOT NULL,          -- part of runqueue_ns
        healed_ns      INTEGER NOT NULL,          -- part of the four states that a missing switch or wake left to be inferred
        switches       INTEGER NOT NULL,          -- times it left the CPU by its own will (to sleep or block)
        preemptions    INTEGER NOT NULL,          -- times it left the CPU while it could have run
        PRIMARY KEY (ts_ns, thread_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE wait (
        ts_ns          INTEGER NOT NULL,
        dt_ns          INTEGER NOT NULL,
        thread_id      INTEGER NOT NULL REFERENCES thread (id),
        resource_id    INTEGER NOT NULL REFERENCES resource (id),
        op             TEXT NOT NULL,
        count          INTEGER NOT NULL,          -- waits that ended in the interval
        total_ns       INTEGER NOT NULL,          -- waiting inside the interval, also of waits that have not ended
        max_ns         INTEGER NOT NULL,          -- longest wait that ended in it, at full length
        hist0 INTEGER NOT NULL, hist1 INTEGER NOT NULL, hist2 INTEGER NOT NULL, hist3 INTEGER NOT NULL,
        hist4 INTEGER NOT NULL, hist5 INTEGER NOT NULL, hist6 INTEGER NOT NULL, hist7 INTEGER NOT NULL,
        PRIMARY KEY (ts_ns, thread_id, resource_id, op)
) STRICT, WITHOUT ROWID;

CREATE TABLE call (
        ts_ns          INTEGER NOT NULL,
        dt_ns          INTEGER NOT NULL,
        thread_id      INTEGER NOT NULL REFERENCES thread (id),
        resource_id    INTEGER NOT NULL REFERENCES resource (id),
        op             TEXT NOT NULL,
        count          INTEGER NOT NULL,
        bytes          INTEGER NOT NULL,
        total_ns       INTEGER NOT NULL,
        max_ns         INTEGER NOT NULL,
        hist0 INTEGER NOT NULL, hist1 INTEGER NOT NULL, hist2 INTEGER NOT NULL, hist3 INTEGER NOT NULL,
        hist4 INTEGER NOT NULL, hist5 INTEGER NOT NULL, hist6 INTEGER NOT NULL, hist7 INTEGER NOT NULL,
        PRIMARY KEY (ts_ns, thread_id, resource_id, op)
) STRICT, WITHOUT ROWID;

CREATE TABLE wake (
        ts_ns            INTEGER NOT NULL,
        dt_ns            INTEGER NOT NULL,
        waker_thread_id  INTEGER NOT NULL,        -- thread.id, 0 unless waker_kind is 'thread'
        waker_kind       TEXT NOT NULL,           -- thread, irq, timer, or unseen (the wake itself was missed)
        thread_id        INTEGER NOT NULL REFERENCES thread (id),
        resource_id      INTEGER NOT NULL REFERENCES resource (id),
        count            INTEGER NOT NULL,
        total_ns         INTEGER NOT NULL,        -- the waiting that these wakes ended, at full length
        PRIMARY KEY (ts_ns, thread_id, resource_id, waker_kind, waker_thread_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE disk (
        ts_ns          INTEGER NOT NULL,
        dt_ns          INTEGER NOT NULL,
        device         INTEGER NOT NULL,          -- major << 20 | minor
        partition      INTEGER NOT NULL,
        process_id     INTEGER NOT NULL,
        thread_id      INTEGER NOT NULL,          -- 0 for threads that are not tracked
        cgroup         TEXT NOT NULL,
        op             TEXT NOT NULL,
        requests       INTEGER NOT NULL,
        sectors        INTEGER NOT NULL,          -- of 512 bytes
        total_ns       INTEGER NOT NULL,
        hist0 INTEGER NOT NULL, hist1 INTEGER NOT NULL, hist2 INTEGER NOT NULL, hist3 INTEGER NOT NULL,
        hist4 INTEGER NOT NULL, hist5 INTEGER NOT NULL, hist6 INTEGER NOT NULL, hist7 INTEGER NOT NULL,
        PRIMARY KEY (ts_ns, device, partition, process_id, thread_id, cgroup, op)
) STRICT, WITHOUT ROWID;

-- Who ran on the CPU while the thread stood in its run queue. Not a unique key: process_id is NULL for the part that
-- could not be named (the queue was longer than the kernel side remembers, or the CPU was busy with interrupts).
CREATE TABLE ran_instead (
        ts_ns          INTEGER NOT NULL,
        dt_ns          INTEGER NOT NULL,
        thread_id      INTEGER NOT NULL REFERENCES thread (id),
        process_id     INTEGER REFERENCES process (id),
        total_ns       INTEGER NOT NULL
) STRICT;
CREATE INDEX ran_instead_by_time ON ran_instead (ts_ns);

CREATE TABLE cgroup_time (
        ts_ns             INTEGER NOT NULL,
        dt_ns             INTEGER NOT NULL,
        cgroup            TEXT NOT NULL,
        usage_ns          INTEGER,
        throttled_ns      INTEGER,
        throttled_periods INTEGER,
        memory_bytes      INTEGER,
        memory_events     INTEGER,
        PRIMARY KEY (ts_ns, cgroup)
) STRICT, WITHOUT ROWID;

CREATE TABLE coverage (
        ts_ns          INTEGER NOT NULL,
        dt_ns          INTEGER NOT NULL,
        part           TEXT NOT NULL,
        PRIMARY KEY (ts_ns, part)
) STRICT, WITHOUT ROWID;

CREATE TABLE recording (
        id             INTEGER PRIMARY KEY,
        name           TEXT NOT NULL UNIQUE,
        start_ns       INTEGER NOT NULL,
        end_ns         INTEGER,                   -- NULL while running
        state          TEXT NOT NULL,             -- running, finished, interrupted (prismd ended without ending it)
        pinned         INTEGER NOT NULL DEFAULT 1,
        note           TEXT,
        options        TEXT NOT NULL DEFAULT '{}' -- JSON: what StartRecording was given
) STRICT;

CREATE TABLE kpi (
        name           TEXT NOT NULL,
        ts_ns          INTEGER NOT NULL,
        value          REAL NOT NULL,
        PRIMARY KEY (name, ts_ns)
) STRICT, WITHOUT ROWID;

-- Every failed insertion, full buffer, skipped probe or dropped batch, as it was noticed.
CREATE TABLE loss (
        ts_ns          INTEGER NOT NULL,
        part           TEXT NOT NULL,             -- kernel, collector, store
        reason         TEXT NOT NULL,
        count          INTEGER NOT NULL
) STRICT;
CREATE INDEX loss_by_time ON loss (ts_ns);

CREATE TABLE meta (
        key            TEXT PRIMARY KEY,
        value          TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The published tool's names. One row a thread (and resource) and interval; ts is ISO text in UTC.
CREATE VIEW taskstats_view AS
        SELECT strftime('%Y-%m-%d %H:%M:%S', tt.ts_ns / 1000000000, 'unixepoch')
                       || printf('.%06d', tt.ts_ns / 1000 % 1000000)          AS ts,
               tt.dt_ns                                                         AS time_diff,
               p.pid                                                            AS pid,
               t.tid                                                            AS tid,
               t.comm                                                           AS comm,
               CAST(tt.run_ns AS REAL) / tt.dt_ns                               AS run_share,
               CAST(tt.runqueue_ns AS REAL) / tt.dt_ns                          AS rq_share,
               CAST(tt.block_ns AS REAL) / tt.dt_ns                             AS uninterruptible_share,
               CAST(tt.iowait_ns AS REAL) / tt.dt_ns                            AS blkio_share,
               CAST(tt.sleep_ns AS REAL) / tt.dt_ns                             AS interruptible_share,
               p.machine_id                                                     AS machine_id
        FROM thread_time tt JOIN thread t ON t.id = tt.thread_id JOIN process p ON p.id = t.process_id;
