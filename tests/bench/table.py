# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tables in Markdown of what `overhead` measured."""

import statistics

# CPUs that are busy with something else than load and watcher: from there on a window is disturbed and not used.
DISTURBED = 0.15


def spread(values):
    """Median, and the middle half of the values."""
    values = sorted(values)
    return f"{statistics.median(values):.3f} ({values[len(values) // 4]:.3f} to {values[-1 - len(values) // 4]:.3f})"


def ratio(pair, figure):
    """Of the window that was watched to the two beside it: what drifts in a straight line cancels out."""
    return pair["on"][figure] / statistics.mean((pair["before"][figure], pair["after"][figure]))


def disturbed(pair):
    """A busy watcher's own work is not all on its account, part of it is the kernel's: then the windows around it say."""
    windows = [pair["before"], pair["after"]] + ([pair["on"]] if pair["watcher"] < 0.1 else [])
    return max(window["others"] for window in windows) > DISTURBED


def undisturbed(way):
    return [pair for pair in way["pairs"] if not disturbed(pair)]


def line(*cells):
    return f"| {' | '.join(map(str, cells))} |"


def ratios(measured):
    yield line("load", "watched by", "throughput", "its CPU time per operation", "CPU of the watcher", "windows")
    yield line(*["---"] * 6)
    for load in measured["loads"].values():
        if not load["rounds"]:
            continue
        title = load["title"]
        for way in load["ways"].values():
            pairs = undisturbed(way)
            if pairs:
                left_out = len(way["pairs"]) - len(pairs)
                yield line(title, way["title"], spread([ratio(p, "rate") for p in pairs]),
                           spread([ratio(p, "cpu_ns") for p in pairs]),
                           f"{statistics.median(p['watcher'] for p in pairs):.1%}",
                           f"{len(pairs)}, {left_out} disturbed" if left_out else len(pairs))
            else:
                reason = "each was disturbed" if way["pairs"] else "not measured"
                yield line(title, way["title"], way.get("cannot", reason), "", "", 0)
            title = ""


def bases(measured):
    """What the loads do when nobody watches."""
    yield line("load", "operations a second", "CPU time of one", "CPUs it keeps busy")
    yield line(*["---"] * 4)
    for load in measured["loads"].values():
        off = [pair["before"] for way in load["ways"].values() for pair in undisturbed(way)]
        if off:
            yield line(load["title"], f"{statistics.median(w['rate'] for w in off):,.0f}",
                       f"{statistics.median(w['cpu_ns'] for w in off) / 1000:.1f} us",
                       f"{statistics.median(w['busy'] for w in off):.2f}")


def prismd(measured):
    yield line("load", "watched by", "CPU", "memory", "kernel maps", "losses")
    yield line(*["---"] * 6)
    for load in measured["loads"].values():
        for way in load["ways"].values():
            pairs = [p for p in undisturbed(way) if "resident" in p]
            if not pairs:
                continue
            losses = {}
            for pair in pairs:
                for reason, count in pair["losses"].items():
                    losses[reason] = losses.get(reason, 0) + count
            yield line(load["title"], way["title"], f"{statistics.median(p['watcher'] for p in pairs):.2%}",
                       *(f"{max(p[figure] for p in pairs) / 2**20:.1f} MiB" for figure in ("resident", "maps")),
                       ", ".join(f"{reason} {count}" for reason, count in losses.items()) or "none")


def tables(measured):
    options = measured["options"]
    yield f"{measured['machine']}, windows of {options['seconds']:g} s, {measured['date']}"
    for title, table in (("Unwatched", bases), ("Watched, against the windows before and after", ratios), ("prismd", prismd)):
        yield ""
        yield f"{title}:"
        yield ""
        yield from table(measured)
