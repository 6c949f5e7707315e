#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What TCP connections moved and sent again, and their round-trip time, against ss, which asks the same connections."""

import collections
import pathlib
import re
import sys
import time

import comparison
import tap
from objects import numbers
from prism import Workload
from tools import run_tool

QUIET = 0.5  # after which nothing is on its way any more
PROGRAM = pathlib.Path(__file__).parent / "connections.py"
FIELDS = {"sent": r"\bbytes_sent:(\d+)", "resent": r"\bbytes_retrans:(\d+)", "acknowledged": r"\bbytes_acked:(\d+)",
          "received": r"\bbytes_received:(\d+)", "retransmits": r"\bretrans:\d+/(\d+)", "rtt_us": r"\brtt:([\d.]+)/"}

# One segment in fifty is lost.
RULES = "table inet loss { chain in { type filter hook input priority 0; meta l4proto tcp numgen random mod 50 == 0 drop; }; }"


def connections(pid):
    """What ss says of each connection in a process's network namespace: {inode: {field: number}}."""
    found = {}
    for line in run_tool("nsenter", f"--net=/proc/{pid}/ns/net", "ss", "--tcp", "--info", "--extended", "--oneline",
                         "--no-header", "state", "established").splitlines():
        inode = re.search(r"\bino:(\d+)", line)
        values = {name: re.search(pattern, line) for name, pattern in FIELDS.items()}
        found[int(inode[1])] = {name: float(match[1]) if match else 0 for name, match in values.items()}
        found[int(inode[1])]["rtt_us"] *= 1000
    return found


class Loopback(comparison.ComparisonTest):
    load = "150 small and 6 big connections over loopback"
    prefix = ("unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")
    lossy = False

    def test_connections(self):
        with Workload("connections", PROGRAM, prefix=self.prefix, program=sys.executable) as running:
            # What was sent before, and is acknowledged only now since a segment was lost, would be sent bytes to one side.
            time.sleep(QUIET)
            before = connections(running.pid)

            def play():
                running.go()
                answer = running.answer()
                time.sleep(QUIET)
                return answer

            recording, truth = self.record([running.pid], play)
            after = connections(running.pid)
        inodes = truth["inodes"]
        self.assertLessEqual(set(inodes), set(after), "connections that ss shows")
        moved = {inode: {name: after[inode][name] - before[inode][name] for name in FIELDS} for inode in inodes}
        samples = self.samples(recording)
        for what, column, unit, theirs in (
                ("bytes received", "bytes_in", "bytes", lambda ss: ss["received"]),
                ("bytes sent and acknowledged", "bytes_out", "bytes", lambda ss: ss["acknowledged"]),
                ("bytes sent", "bytes_out", "bytes", lambda ss: ss["sent"] - ss["resent"]),
                ("retransmits", "retransmits", "count", lambda ss: ss["retransmits"])):
            pairs = {f"socket {inode}": (samples[inode][column], theirs(moved[inode])) for inode in inodes}
            self.compare(what, "ss --info", pairs, unit=unit)
        pairs = {f"socket {inode}": (samples[inode]["srtt_ns"], after[inode]["rtt_us"] * 1000) for inode in inodes}
        self.compare("round-trip time, all added up", "ss --info", pairs)
        if self.lossy:
            self.assertGreater(sum(m["retransmits"] for m in moved.values()), 20, "retransmits of the load")

    def samples(self, recording):
        """{inode: sums, and the last round-trip time}"""
        found = collections.defaultdict(collections.Counter)
        for row in recording.db.execute("""SELECT s.*, r.ident FROM socket_sample s JOIN resource r ON r.id = s.resource_id
                                           WHERE s.ts_ns > ? AND s.ts_ns - s.dt_ns < ? ORDER BY s.ts_ns""",
                                        (recording.start_ns, recording.end_ns)):
            for inode in numbers(row["ident"]):
                for column in ("bytes_in", "bytes_out", "retransmits"):
                    found[inode][column] += row[column]
                found[inode]["srtt_ns"] = row["srtt_ns"] or 0
        return found


class Lossy(Loopback):
    load = "the same, one segment in fifty lost"
    prefix = ("unshare", "--net", "sh", "-c", f'ip link set lo up && nft "{RULES}" && exec "$@"', "sh")
    lossy = True


if __name__ == "__main__":
    tap.main()
