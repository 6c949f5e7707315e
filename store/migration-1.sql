-- SPDX-License-Identifier: LGPL-2.1-or-later
-- Version 1 to 2. Version 1 had the tables call, disk, socket_sample and epoll_watch without anything that wrote them; should
-- somebody have, their rows are kept. Tables are made anew where a column is added, so that columns stand in one order.

ALTER TABLE call RENAME TO call_1;
CREATE TABLE call (
        ts_ns          INTEGER NOT NULL,
        dt_ns          INTEGER NOT NULL,
        thread_id      INTEGER NOT NULL REFERENCES thread (id),
        resource_id    INTEGER NOT NULL REFERENCES resource (id),
        op             TEXT NOT NULL,
        count          INTEGER NOT NULL,
        errors         INTEGER NOT NULL,
        bytes          INTEGER NOT NULL,
        total_ns       INTEGER NOT NULL,
        max_ns         INTEGER NOT NULL,
        hist0 INTEGER NOT NULL, hist1 INTEGER NOT NULL, hist2 INTEGER NOT NULL, hist3 INTEGER NOT NULL,
        hist4 INTEGER NOT NULL, hist5 INTEGER NOT NULL, hist6 INTEGER NOT NULL, hist7 INTEGER NOT NULL,
        PRIMARY KEY (ts_ns, thread_id, resource_id, op)
) STRICT, WITHOUT ROWID;
INSERT INTO call SELECT ts_ns, dt_ns, thread_id, resource_id, op, count, 0, bytes, total_ns, max_ns,
        hist0, hist1, hist2, hist3, hist4, hist5, hist6, hist7 FROM call_1;
DROP TABLE call_1;

-- The longest request of an old row is not known; its mean is the least that it can be.
ALTER TABLE disk RENAME TO disk_1;
CREATE TABLE disk (
        ts_ns          INTEGER NOT NULL,
        dt_ns          INTEGER NOT NULL,
        device         INTEGER NOT NULL,
        partition      INTEGER NOT NULL,
        process_id     INTEGER NOT NULL REFERENCES process (id),
        thread_id      INTEGER NOT NULL,
        cgroup         TEXT NOT NULL,
        op             TEXT NOT NULL,
        requests       INTEGER NOT NULL,
        sectors        INTEGER NOT NULL,
        total_ns       INTEGER NOT NULL,
        max_ns         INTEGER NOT NULL,
        hist0 INTEGER NOT NULL, hist1 INTEGER NOT NULL, hist2 INTEGER NOT NULL, hist3 INTEGER NOT NULL,
        hist4 INTEGER NOT NULL, hist5 INTEGER NOT NULL, hist6 INTEGER NOT NULL, hist7 INTEGER NOT NULL,
        PRIMARY KEY (ts_ns, device, partition, process_id, thread_id, cgroup, op)
) STRICT, WITHOUT ROWID;
INSERT INTO disk SELECT ts_ns, dt_ns, device, partition, process_id, thread_id, cgroup, op, requests, sectors, total_ns,
        total_ns / max(requests, 1), hist0, hist1, hist2, hist3, hist4, hist5, hist6, hist7 FROM disk_1;
DROP TABLE disk_1;

ALTER TABLE epoll_watch RENAME TO epoll_watch_1;
CREATE TABLE epoll_watch (
        resource_id    INTEGER NOT NULL REFERENCES resource (id),
        watched_id     INTEGER NOT NULL REFERENCES resource (id),
        first_ns       INTEGER NOT NULL,
        last_ns        INTEGER NOT NULL,
        PRIMARY KEY (resource_id, watched_id)
) STRICT, WITHOUT ROWID;
INSERT INTO epoll_watch SELECT resource_id, watched_id, min(first_ns), max(last_ns) FROM epoll_watch_1
        GROUP BY resource_id, watched_id;
DROP TABLE epoll_watch_1;

ALTER TABLE coverage RENAME TO coverage_1;
CREATE TABLE coverage (
        ts_ns          INTEGER NOT NULL,
        part           TEXT NOT NULL,
        dt_ns          INTEGER NOT NULL,
        PRIMARY KEY (ts_ns, part)
) STRICT, WITHOUT ROWID;
INSERT INTO coverage SELECT ts_ns, part, dt_ns FROM coverage_1;
DROP TABLE coverage_1;

CREATE TABLE mux_wait (
        ts_ns          INTEGER NOT NULL,
        dt_ns          INTEGER NOT NULL,
        thread_id      INTEGER NOT NULL REFERENCES thread (id),
        resource_id    INTEGER NOT NULL REFERENCES resource (id),
        watched_id     INTEGER NOT NULL,
        op             TEXT NOT NULL,
        count          INTEGER NOT NULL,
        total_ns       INTEGER NOT NULL,
        PRIMARY KEY (ts_ns, thread_id, resource_id, op, watched_id)
) STRICT, WITHOUT ROWID;
