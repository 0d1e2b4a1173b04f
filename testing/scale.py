"""The model of docs/scale.md: what a cluster holds, and how many of them a number of messages needs.

    python3 testing/scale.py            prints the tables
    python3 testing/scale.py --write    writes them into docs/scale.md
    python3 testing/scale.py --check    fails if docs/scale.md has others
"""

import math
import pathlib
import sys

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs" / "scale.md"

# Measured, on two cores that the load shared (docs/scale.md says how).
ACCEPTS_OF_A_CLUSTER = 9_000  # whole accepts a second with a synchronous standby, batches of 100: the lowest of several runs
INSERTS_UNBATCHED = 1_000  # the same, one message in a transaction, 16 connections: the lowest
CLAIMS_OF_A_CLUSTER = 12_000  # deliveries claimed with SKIP LOCKED a second, 4 workers: the lowest
FAIL_OVER = 27  # seconds until every sender was served again: the longest of a campaign, rounded up

# Assumed.
MESSAGES_A_DAY = 10_000_000_000
PEAK = 3  # the busiest second, in means of the day
UTILISATION = 0.5  # how much of the measured rate is planned for
MESSAGE_BYTES = 1_100
BYTES_ON_DISK = 2.5  # bytes in a database for each byte of a message, indexes included
COPIES = 3
DAYS = 30  # how long messages are kept
SLOTS = 16_384
MACHINES = {"database": 3, "relay": 3}  # of a cluster
FAILURES_A_YEAR = 4  # fail-overs of a cluster, planned ones included


def number(value):
    return f"{value:,.0f}"


def rows():
    """The model itself: what follows from what."""
    mean = MESSAGES_A_DAY / 86_400
    peak = mean * PEAK
    planned = min(ACCEPTS_OF_A_CLUSTER, CLAIMS_OF_A_CLUSTER) * UTILISATION
    clusters = math.ceil(peak / planned)
    share = peak / clusters
    # A queue with one server and batches that take as long as their messages (M/D/1): waiting messages at the peak.
    load = share / min(ACCEPTS_OF_A_CLUSTER, CLAIMS_OF_A_CLUSTER)
    waiting = load * load / (2 * (1 - load))
    backlog = share * FAIL_OVER
    spare = min(ACCEPTS_OF_A_CLUSTER, CLAIMS_OF_A_CLUSTER) - share
    stored = MESSAGES_A_DAY * DAYS * MESSAGE_BYTES * BYTES_ON_DISK * COPIES
    down = FAILURES_A_YEAR * FAIL_OVER
    return [
        ("messages a second, mean", number(mean), "10,000,000,000 ÷ 86,400"),
        ("messages a second, peak", number(peak), f"× {PEAK}"),
        ("planned for a cluster", number(planned), f"{number(ACCEPTS_OF_A_CLUSTER)} × {UTILISATION}"),
        ("clusters", number(clusters), "peak ÷ planned, rounded up"),
        ("machines", number(clusters * sum(MACHINES.values())), "3 nodes and 3 relays for each cluster"),
        ("slots of a cluster", number(SLOTS / clusters), f"{number(SLOTS)} ÷ clusters"),
        ("load of a cluster at the peak", f"{load:.0%}", "its share of the peak ÷ its measured rate"),
        ("messages that wait at the peak, beside the batch that is written", f"{waiting:.2f}", "load² ÷ (2 × (1 − load)), M/D/1"),
        ("the same, with one message in a transaction", "grows without end" if share >= INSERTS_UNBATCHED else "-", f"{number(share)} > {number(INSERTS_UNBATCHED)}: the group committer is needed"),
        ("backlog after a fail-over at the peak", number(backlog), f"share × {FAIL_OVER} s; it is at the senders, which try again"),
        ("seconds until the backlog is gone", f"{backlog / spare:.0f}", "backlog ÷ (measured − share)"),
        ("messages a second that wait in a fail-over, of all", f"{1 / clusters:.1%}", "1 ÷ clusters: one cluster fails alone"),
        ("seconds a year in which a recipient is not served", number(down), f"{FAILURES_A_YEAR} × {FAIL_OVER} s"),
        ("availability for a recipient", f"{1 - down / (365 * 86_400):.5%}", ""),
        ("bytes written a second in a cluster at the peak, before copies", f"{share * MESSAGE_BYTES * BYTES_ON_DISK / 1e6:.0f} MB", f"share × {number(MESSAGE_BYTES)} × {BYTES_ON_DISK}"),
        (f"on the disks of all nodes after {DAYS} days", f"{stored / 1e15:.1f} PB", f"× {COPIES} copies"),
        ("on the disk of one node", f"{stored / COPIES / clusters / 1e12:.1f} TB", "÷ copies ÷ clusters"),
    ]


def hot():
    """Recipients that get more than others: what one address may get before its cluster has to be left to it."""
    mean = MESSAGES_A_DAY / 86_400
    peak = mean * PEAK
    measured = min(ACCEPTS_OF_A_CLUSTER, CLAIMS_OF_A_CLUSTER)
    clusters = math.ceil(peak / (measured * UTILISATION))
    share = peak / clusters
    for part in (0.0001, 0.001, 0.01, 0.05):
        rate = peak * part
        load = (share + rate) / measured
        alone = rate / measured
        answer = "nothing" if load <= 0.8 else ("move its slot to a cluster of its own" if alone <= 0.8 else "split: several addresses behind one directory entry")
        yield (f"{part:.2%}", number(rate), f"{load:.0%}", answer)


def tables():
    lines = ["| figure | value | from |", "|---|---:|---|"]
    lines += [f"| {name} | {value} | {source} |" for name, value, source in rows()]
    lines += ["", "| part of all messages that goes to one address | a second, at the peak | load of its cluster | what to do |"]
    lines += ["|---:|---:|---:|---|"]
    lines += [f"| {a} | {b} | {c} | {d} |" for a, b, c, d in hot()]
    return "\n".join(lines)


BEGIN, END = "<!-- testing/scale.py writes this -->\n\n", "\n\n<!-- until here -->"


def main(words):
    if words == []:
        print(tables())
        return 0
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    fresh = before + BEGIN + tables() + END + after
    if words == ["--write"]:
        PAGE.write_text(fresh, encoding="utf-8")
        return 0
    if words == ["--check"]:
        if fresh != page:
            print("docs/scale.md has other tables: python3 testing/scale.py --write", file=sys.stderr)
        return int(fresh != page)
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
