# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the database says about one recording, and whether it adds up."""

import collections
import os

NS = 1_000_000_000
MS = 1_000_000

# A thread that cannot run yet has a start time already; it gets its first row when it is first seen.
EDGE_NS = 5 * MS

# Some virtual machines do not deliver every switch (here: none away from threads that ran before the machine was resumed
# from a snapshot), whoever listens. prismd infers and counts these; they must be few, and so must the inferred time.
INFERRED = ("kernel/missed-switch", "kernel/missed-wake")

# Counted, and no time is missing: a futex whose mapping was gone before /proc could be asked about it is a resource of its
# own; a process that could not be announced is found by the next tick.
HARMLESS = ("kernel/futex-key", "kernel/event-buffer-full")

Wait = collections.namedtuple("Wait", "resource kind ident name op count total_ns max_ns histogram")
Wake = collections.namedtuple("Wake", "kind thread tid comm resource count total_ns")

STATES = ("run_ns", "runqueue_ns", "sleep_ns", "block_ns")


class Recording:
    """All numbers of rows that reach over an end of the recording are cut proportionally."""

    def __init__(self, prismd, name):
        self.db = prismd.database()
        self.by_thread = {}
        row = self.db.execute("SELECT * FROM recording WHERE name = ?", (name,)).fetchone()
        if row is None:
            raise AssertionError(f"no recording {name} in the database")
        self.name, self.start_ns, self.end_ns, self.state = name, row["start_ns"], row["end_ns"], row["state"]
        if self.end_ns is None:
            raise AssertionError(f"recording {name} has no end")

    def close(self):
        self.db.close()

    @property
    def length_ns(self):
        return self.end_ns - self.start_ns

    def rows(self, table, thread=None):
        """Rows of a measurement table that lie in the recording, at least in part, in order of time."""
        if table not in self.by_thread:
            found = self.db.execute(f"SELECT * FROM {table} WHERE ts_ns > ? AND ts_ns - dt_ns < ? ORDER BY ts_ns",
                                    (self.start_ns, self.end_ns)).fetchall()
            self.by_thread[table] = collections.defaultdict(list)
            for row in found:
                self.by_thread[table][row["thread_id"]].append(row)
        if thread is not None:
            return self.by_thread[table][thread["id"]]
        return [row for rows in self.by_thread[table].values() for row in rows]

    def inside(self, row, column="total_ns"):
        """The part of a row's number that lies in the recording."""
        begin, end = max(row["ts_ns"] - row["dt_ns"], self.start_ns), min(row["ts_ns"], self.end_ns)
        return row[column] if row["dt_ns"] <= end - begin else row[column] * (end - begin) / row["dt_ns"]

    def threads(self):
        """Every thread that has rows here: thread row, with pid, host_pid, target and comm of the process."""
        ids = {row["thread_id"] for row in self.rows("thread_time")}
        found = self.db.execute("""SELECT t.*, p.pid, p.host_pid, p.comm AS process_comm, p.found_by
                                   FROM thread t JOIN process p ON p.id = t.process_id""").fetchall()
        return [t for t in found if t["id"] in ids]

    def thread(self, tid):
        found = [t for t in self.threads() if t["tid"] == tid]
        if len(found) != 1:
            raise AssertionError(f"thread {tid} is {len(found)} times in recording {self.name}")
        return found[0]

    def times(self, thread):
        rows = self.rows("thread_time", thread)
        columns = (*STATES, "iowait_ns", "throttled_ns", "healed_ns", "dt_ns")
        return {column: sum(self.inside(row, column) for row in rows) for column in columns}

    def waits(self, thread, kind=None, op=None):
        rows = collections.defaultdict(list)
        for row in self.rows("wait", thread):
            rows[row["resource_id"], row["op"]].append(row)
        waits = []
        for (resource_id, operation), group in rows.items():
            resource = self.db.execute("SELECT * FROM resource WHERE id = ?", (resource_id,)).fetchone()
            waits.append(Wait(resource_id, resource["kind"], resource["ident"], resource["name"], operation,
                              sum(row["count"] for row in group), sum(self.inside(row) for row in group),
                              max(row["max_ns"] for row in group),
                              [sum(row[f"hist{i}"] for row in group) for i in range(8)]))
        return [w for w in waits if kind in (None, w.kind) and op in (None, w.op)]

    def wakes(self, thread, resource=None):
        """Who ended the waits. Wakes that were not delivered are left out, if each of them was counted as a loss."""
        sums = collections.defaultdict(lambda: (0, 0))
        for row in self.rows("wake", thread):
            key = (row["waker_kind"], row["waker_thread_id"], row["resource_id"])
            count, total = sums[key]
            sums[key] = (count + row["count"], total + row["total_ns"])
        wakes = []
        for (kind, waker, resource_id), (count, total) in sums.items():
            row = self.db.execute("SELECT tid, comm FROM thread WHERE id = ?", (waker,)).fetchone()
            wakes.append(Wake(kind, waker, row["tid"] if row else 0, row["comm"] if row else None, resource_id, count,
                              total))
        unseen = sum(w.count for w in wakes if w.kind == "unseen")
        if unseen > self.losses().get("kernel/missed-wake", 0):
            raise AssertionError(f"{unseen} wakes were not seen, which is not counted: {self.losses()}")
        return [w for w in wakes if w.kind != "unseen" and resource in (None, w.resource)]

    def ran_instead(self, thread):
        """{pid or None: ns}"""
        sums = collections.Counter()
        for row in self.rows("ran_instead", thread):
            process = self.db.execute("SELECT pid FROM process WHERE id = ?", (row["process_id"],)).fetchone()
            sums[process["pid"] if process else None] += self.inside(row)
        return sums

    def losses(self):
        """Noted from its start until one tick after its end."""
        rows = self.db.execute("SELECT part, reason, sum(count) AS n FROM loss WHERE ts_ns > ? AND ts_ns <= ? GROUP BY 1, 2",
                               (self.start_ns, self.end_ns + 2 * NS)).fetchall()
        return {f"{row['part']}/{row['reason']}": row["n"] for row in rows}


def describe(thread):
    return f"thread {thread['tid']} ({thread['comm']}) of {thread['pid']}"


def check_thread(recording, thread, problems):
    rows = recording.rows("thread_time", thread)
    name = describe(thread)

    waits, wakes, instead = ({}, {}, {})
    for table, sums in (("wait", waits), ("ran_instead", instead), ("wake", wakes)):
        for row in recording.rows(table, thread):
            total, count = sums.get((row["ts_ns"], row["dt_ns"]), (0, 0))
            sums[row["ts_ns"], row["dt_ns"]] = (total + row["total_ns"],
                                                count + (row["count"] if table != "ran_instead" else 0))
    for row in recording.rows("wait", thread):
        if sum(row[f"hist{i}"] for i in range(8)) != row["count"]:
            problems.append(f"{name}: histogram of a wait does not add up to its count {row['count']}")
        if row["count"] == 0 and row["max_ns"] != 0:
            problems.append(f"{name}: a longest wait of {row['max_ns']} without a wait")

    previous = None
    for row in rows:
        key = (row["ts_ns"], row["dt_ns"])
        begin = row["ts_ns"] - row["dt_ns"]
        if row["dt_ns"] <= 0:
            problems.append(f"{name}: an interval of {row['dt_ns']} ns")
            continue
        if previous is not None and begin != previous:
            problems.append(f"{name}: intervals do not tile: {begin - previous:+d} ns at {row['ts_ns']}")
        previous = row["ts_ns"]
        missing = row["dt_ns"] - sum(row[s] for s in STATES)
        if abs(missing) > row["dt_ns"] / 1000:
            problems.append(f"{name}: {missing} of {row['dt_ns']} ns are in no state")
        if min(row[s] for s in STATES) < 0:
            problems.append(f"{name}: a negative time")
        if row["iowait_ns"] > row["block_ns"] or row["throttled_ns"] > row["runqueue_ns"]:
            problems.append(f"{name}: a part is larger than the whole")
        waited = waits.pop(key, (0, 0))[0]
        if waited != row["sleep_ns"] + row["block_ns"]:
            problems.append(f"{name}: waits {waited}, sleep + block {row['sleep_ns'] + row['block_ns']}")
        queued = instead.pop(key, (0, 0))[0]
        if queued != row["runqueue_ns"]:
            problems.append(f"{name}: ran instead {queued}, run queue {row['runqueue_ns']}")
        wakes.pop(key, None)
    for table, left in (("wait", waits), ("ran_instead", instead), ("wake", wakes)):
        if left:
            problems.append(f"{name}: {len(left)} rows of {table} belong to no interval of the thread")

    first, last = rows[0]["ts_ns"] - rows[0]["dt_ns"], rows[-1]["ts_ns"]
    begin = max(recording.start_ns, thread["start_ns"])
    end = min(recording.end_ns, thread["exit_ns"] or recording.end_ns)
    if first > begin + EDGE_NS:
        problems.append(f"{name}: its first {(first - begin) / MS:.1f} ms are missing")
    if last < end - EDGE_NS:
        problems.append(f"{name}: its last {(end - last) / MS:.1f} ms are missing")


def conservation(recording):
    """Everything that promise 1 and the tiling rules of the store say, on every thread: a list of what is broken."""
    problems = []
    threads = recording.threads()
    if not threads:
        problems.append("no thread has a row")
    for thread in threads:
        check_thread(recording, thread, problems)

    total, healed, switches = 0, 0, 0
    for row in recording.rows("thread_time"):
        total += row["dt_ns"]
        healed += row["healed_ns"]
        switches += row["switches"] + row["preemptions"]
    if healed > total / 1000:
        problems.append(f"{healed} of {total} ns are inferred ({healed / total:.2%})")
    for reason, count in recording.losses().items():
        if reason not in INFERRED + HARMLESS:
            problems.append(f"loss: {reason}: {count}")
        elif count > max(10, switches / 100):
            problems.append(f"loss: {reason}: {count} in {switches} switches")

    ended = collections.Counter()
    for row in recording.rows("wait"):
        ended[row["thread_id"], row["ts_ns"], row["resource_id"]] += row["count"]
    for row in recording.rows("wake"):
        ended[row["thread_id"], row["ts_ns"], row["resource_id"]] -= row["count"]
    unequal = [key for key, count in ended.items() if count != 0]
    if unequal:
        problems.append(f"{len(unequal)} times the number of wakes is not that of the waits that ended")
    check_sets(recording, problems)
    return problems


def check_sets(recording, problems):
    """A wait on many files is divided by the file that ended it, and nothing else is."""
    kinds = {row["id"]: row["kind"] for row in recording.db.execute("SELECT id, kind FROM resource")}
    parts = collections.defaultdict(lambda: (0, 0))
    for row in recording.rows("mux_wait"):
        key = (row["ts_ns"], row["dt_ns"], row["thread_id"], row["resource_id"], row["op"])
        total, count = parts[key]
        parts[key] = (total + row["total_ns"], count + row["count"])
    for row in recording.rows("wait"):
        key = (row["ts_ns"], row["dt_ns"], row["thread_id"], row["resource_id"], row["op"])
        if kinds[row["resource_id"]] not in ("epoll", "poll"):
            continue
        if parts.pop(key, (0, 0)) != (row["total_ns"], row["count"]):
            problems.append(f"a wait on set {row['resource_id']} of thread {row['thread_id']} is not the sum of its files")
    if parts:
        problems.append(f"{len(parts)} parts of waits on sets belong to no wait")


def tolerance(true_ns):
    """2 %, or 1 ms where the truth is below 50 ms. An emulated machine may say another percentage in PRISM_TOLERANCE; the
    least that is allowed grows with it."""
    return float(os.environ.get("PRISM_TOLERANCE", 2)) / 100 * max(true_ns, 50 * MS)


def explain(what, recorded_ns, true_ns):
    return f"{what}: recorded {recorded_ns / MS:.3f} ms, truth {true_ns / MS:.3f} ms ({(recorded_ns - true_ns) / MS:+.3f})"
