"""Tell steady growth of memory from a single step, by samples over minutes, as growth in an hour."""

import ctypes
import statistics
import sys
from collections.abc import Sequence
from itertools import combinations, pairwise
from pathlib import Path

HOUR = 3600.0
WINDOWS = 24
"""Their medians are compared: a single sample may fall into the middle of an answer."""
PAGES = 2 * 1024 * 1024
"""What no run tells from nothing: Python takes memory from the system by 1 MiB at a time, and a heap of C by less."""
BYTES_AN_HOUR = 8 * 1024 * 1024
"""So little that a day of chatting costs less than half of what an engine with the bundled model starts with."""

MEAN_BLOCK = 89
"""Bytes, as `sys._debugmallocstats` has it of the app."""

Sample = tuple[float, float]
"""Seconds, and what was measured then."""


def growth_in_an_hour(samples: Sequence[Sample]) -> float:
    """What is added in an hour if it goes on as in these samples; 0 or so where they made one step, or rise and fall.

    It is the median of the slopes between all pairs of windows (Theil–Sen), which a few odd ones do not move. One step,
    wherever it is, counts for nothing: the least is taken of the slopes without the change from one window to the next.
    A straight leak has the same slope without any one of its changes.

    Args:
        samples: in order, four or more.
    """
    windows = _medians(samples)
    values = [value for _, value in windows]
    least = _slope(windows)
    for step in range(1, len(windows)):
        height = values[step] - values[step - 1]
        without = [(at, value - height * (place >= step)) for place, (at, value) in enumerate(windows)]
        least = min(least, _slope(without))
    return least * HOUR


def most_growth_in_an_hour(samples: Sequence[Sample]) -> float:
    """The bytes up to which that is no leak: the shorter the run, the less it can tell."""
    seconds = samples[-1][0] - samples[0][0]
    return BYTES_AN_HOUR + PAGES * HOUR / seconds


def added(samples: Sequence[Sample]) -> float:
    """What was added from the first sample to the last, one step left out. Of things that are counted, 2 are a leak."""
    return growth_in_an_hour(samples) * (samples[-1][0] - samples[0][0]) / HOUR


def said_of(samples: Sequence[Sample]) -> str:
    """What a run prints: from where to where, and what that makes in an hour of how much."""
    (_, first), *_, (_, last) = samples
    growth, most = growth_in_an_hour(samples), most_growth_in_an_hour(samples)
    return f"{first / 1e6:.1f} to {last / 1e6:.1f} MB, {growth / 1e6:+.1f} MB an hour (a leak from {most / 1e6:.1f} on)"


def _medians(samples: Sequence[Sample]) -> list[Sample]:
    count = min(WINDOWS, len(samples))
    edges = [len(samples) * number // count for number in range(count + 1)]
    windows = [samples[start:end] for start, end in pairwise(edges)]
    return [(statistics.median(at for at, _ in one), statistics.median(value for _, value in one)) for one in windows]


def _slope(points: Sequence[Sample]) -> float:
    return statistics.median((b - a) / (later - at) for (at, a), (later, b) in combinations(points, 2) if later > at)


def private_bytes(process: int | str = "self") -> int:
    """The memory of a process, without what it shares with others."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Private"))


class _MallocInfo(ctypes.Structure):
    """What glibc's `mallinfo2` gives."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    ]


def bytes_in_use() -> int:
    """What this process holds in Python's heap and in C's, without what these keep to give out again.

    A heap never becomes smaller than in its largest moment, and large moments come for hours, so private memory rises
    by a few MB without a leak. Python's blocks are counted by their mean size.
    """
    mallinfo = ctypes.CDLL(None).mallinfo2
    mallinfo.restype = _MallocInfo
    info = mallinfo()
    return int(info.uordblks + info.hblkhd) + MEAN_BLOCK * sys.getallocatedblocks()


def descriptors(process: int | str = "self") -> int:
    """How many files, pipes and sockets a process has open."""
    return sum(1 for _ in Path(f"/proc/{process}/fd").iterdir())
