-- SPDX-License-Identifier: LGPL-2.1-or-later
-- The store, version 2. One file, written by one prismd at a time; everyone else reads.
--
-- Times named *_ns are nanoseconds. ts_ns, start_ns, end_ns, exit_ns, first_ns and last_ns are Unix time; *_boot_ns is the
-- boot clock (CLOCK_BOOTTIME), which is never stepped and therefore carries identity; all others are lengths.
-- A measurement row covers the interval (ts_ns - dt_ns, ts_ns]. The intervals of one thread's thread_time rows tile its
-- tracked life, and its wait, mux_wait, wake and ran_instead rows carry the ts_ns and dt_ns of its thread_time row, so that
-- for each (thread_id, ts_ns)
--     run_ns + runqueue_ns + sleep_ns + block_ns = dt_ns
--     sum(wait.total_ns)        = sleep_ns + block_ns
--     sum(mux_wait.total_ns)    = wait.total_ns, for each resource_id and op that are an epoll, poll or select
--     sum(ran_instead.total_ns) = runqueue_ns
-- A thread that stays in one state gets one row when it leaves it, when a recording ends, or after 60 s: spread it evenly.
-- histN counts what ended in the interval (waits, calls, requests), by full length, with the inclusive upper bounds
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

-- What is known of a socket, from the kernel's own structures when it was last waited on, used or listed. Columns are NULL
-- while they are not known; what was known once stays after it is closed.
CREATE TABLE socket (
        resource_id      INTEGER PRIMARY KEY REFERENCES resource (id),
        family           INTEGER NOT NULL,        -- AF_* of sys/socket.h: 1 unix, 2 inet, 10 inet6
        type             INTEGER NOT NULL,        -- SOCK_* of sys/socket.h: 1 stream, 2 datagram, 5 seqpacket
        protocol         INTEGER NOT NULL,        -- IPPROTO_* of netinet/in.h: 6 tcp, 17 udp; 0 for unix
        netns            INTEGER,                 -- inode number of its network namespace
        local_addr       TEXT,                    -- as inet_ntop() writes it, without a port
        local_port       INTEGER,
        remote_addr      TEXT,
        remote_port      INTEGER,
        state            INTEGER,                 -- TCP_* of netinet/tcp.h: 1 connected, 7 not connected, 10 listens, ...
        path             TEXT,                    -- unix sockets with a name; an abstract one begins with '@'
        cookie           INTEGER,                 -- the kernel's number for it (SO_COOKIE), once it has made one
        peer_resource_id INTEGER REFERENCES resource (id), -- the other end, when it is on this machine and known
        peer_machine_id  INTEGER,                 -- machine.id of the other end, when another prism runs there
        peer_cookie      INTEGER                  -- and the cookie that it has there
) STRICT;

-- One row a tick for a socket that was in use: what it counted itself.
CREATE TABLE socket_sample (
        ts_ns          INTEGER NOT NULL,
        dt_ns          INTEGER NOT NULL,
        resource_id    INTEGER NOT NULL REFERENCES resource (id),
        bytes_in       INTEGER NOT NULL,          -- received in the interval
        bytes_out      INTEGER NOT NULL,          -- sent in the interval; tcp: acknowledged by the other end
        retransmits    INTEGER NOT NULL,          -- segments sent again in the interval
        srtt_ns        INTEGER,                   -- tcp's smoothed round-trip time at ts_ns; NULL: none measured yet
        send_queue     INTEGER,                   -- bytes that are not acknowledged, or not read by the peer, at ts_ns
        receive_queue  INTEGER,                   -- bytes that wait to be read at ts_ns; a listener: connections to accept
        PRIMARY KEY (ts_ns, resource_id)
) STRICT, WITHOUT ROWID;

-- Which files an epoll set watches: one row for each pair, from the first time it was seen to the last.
CREATE TABLE epoll_watch (
        resource_id    INTEGER NOT NULL REFERENCES resource (id), -- the set
        watched_id     INTEGER NOT NULL REFERENCES resource (id), -- the file in it
        first_ns       INTEGER NOT NULL,
        last_ns        INTEGER NOT NULL,
        PRIMARY KEY (resource_id, watched_id)
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

-- The division of the waits on epoll sets, polls and selects by the watched file that ended them. For each (ts_ns,
-- thread_id, resource_id, op) of such a wait sum(mux_wait.total_ns) = wait.total_ns.
CREATE TABLE mux_wait (
        ts_ns          INTEGER NOT NULL,
        dt_ns          INTEGER NOT NULL,
        thread_id      INTEGER NOT NULL REFERENCES thread (id),
        resource_id    INTEGER NOT NULL REFERENCES resource (id), -- the epoll set, or the poll
        watched_id     INTEGER NOT NULL,          -- resource.id; 0: a timeout, a signal, still waiting, or not seen
        op             TEXT NOT NULL,             -- that of the wait row
        count          INTEGER NOT NULL,          -- waits that it ended in the interval
        total_ns       INTEGER NOT NULL,          -- their part inside the interval
        PRIMARY KEY (ts_ns, thread_id, resource_id, op, watched_id)
) STRICT, WITHOUT ROWID;

-- System calls that ended in the interval, blocking or not. They are counted only while coverage has a row of the part
-- 'calls' (under calls = sampled 1 s in 10): what that says of a longer time is an estimate. Kind reclaim, and submit and
-- complete of io_uring, are counted always. A call row may stand
-- without a thread_time row: a thread that never left its CPU has calls and no change of state.
CREATE TABLE call (
        ts_ns          INTEGER NOT NULL,
        dt_ns          INTEGER NOT NULL,
        thread_id      INTEGER NOT NULL REFERENCES thread (id),
        resource_id    INTEGER NOT NULL REFERENCES resource (id),
        op             TEXT NOT NULL,             -- the same words as in wait
        count          INTEGER NOT NULL,
        errors         INTEGER NOT NULL,          -- those that failed, but for EAGAIN, EINTR and the like
        bytes          INTEGER NOT NULL,          -- that they moved; 0 for those that move none
        total_ns       INTEGER NOT NULL,          -- from entry to exit, at full length, also what lay before the interval
        max_ns         INTEGER NOT NULL,          -- the longest of them
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

-- Block requests that ended in the interval, of all processes, by who submitted them: those of tracked threads thread by
-- thread, of all others process by process (found_by 'observed'). Kernel threads are processes too: what they write back
-- is theirs, and cgroup says for whom where the kernel knows it. So a thread's share of a device is its sectors by the sum
-- of all with that device.
CREATE TABLE disk (
        ts_ns          INTEGER NOT NULL,
        dt_ns          INTEGER NOT NULL,
        device         INTEGER NOT NULL,          -- the whole disk: major << 20 | minor
        partition      INTEGER NOT NULL,          -- its number on that disk; 0: the whole disk
        process_id     INTEGER NOT NULL REFERENCES process (id),
        thread_id      INTEGER NOT NULL,          -- thread.id; 0: the thread is not tracked
        cgroup         TEXT NOT NULL,             -- path below the cgroup root; '': not known
        op             TEXT NOT NULL,             -- read, write, flush, discard, other
        requests       INTEGER NOT NULL,
        sectors        INTEGER NOT NULL,          -- of 512 bytes
        total_ns       INTEGER NOT NULL,          -- from start to end of each request, at full length, added up
        max_ns         INTEGER NOT NULL,          -- the longest of them
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

-- What a cgroup with tracked processes used and was denied, from its cpu and memory files. NULL: this system does not say.
CREATE TABLE cgroup_time (
        ts_ns             INTEGER NOT NULL,
        dt_ns             INTEGER NOT NULL,
        cgroup            TEXT NOT NULL,          -- path below the cgroup root
        usage_ns          INTEGER,                -- CPU time in the interval
        throttled_ns      INTEGER,                -- time in the interval that it was kept from running by its CPU limit
        throttled_periods INTEGER,                -- periods of the CPU limit in which that happened
        memory_bytes      INTEGER,                -- memory in use at ts_ns
        memory_events     INTEGER,                -- times in the interval that it ran into its memory limit
        PRIMARY KEY (ts_ns, cgroup)
) STRICT, WITHOUT ROWID;

-- When a part that is not always on was on: the whole of (ts_ns - dt_ns, ts_ns].
-- The key first: with dt_ns between its columns PRAGMA integrity_check of SQLite 3.40 takes a row for damaged that is not.
CREATE TABLE coverage (
        ts_ns          INTEGER NOT NULL,
        part           TEXT NOT NULL,             -- calls: the rows of call
        dt_ns          INTEGER NOT NULL,
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
