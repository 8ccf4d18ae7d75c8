"""Work gets so much memory, and what comes after it gets what there was before."""

import mmap
import resource
import sys
import threading
from pathlib import Path
from types import FrameType

import pytest

from ladechat.engine.interruptible import GivenUp
from ladechat.model.checkpoint import memory_limit
from ladechat.model.checkpoint.memory_limit import within_memory

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits memory")
MOST_BYTES = 100_000_000


def limit() -> str:
    """Bytes that this process may take."""
    return str(resource.getrlimit(resource.RLIMIT_AS)[0])


def test_more_than_the_work_may_take_is_refused_and_given_afterwards() -> None:
    before = limit()
    with pytest.raises(OSError, match="allocate"):
        within_memory(ask, MOST_BYTES)
    assert ask() == "given"
    assert limit() == before


def ask() -> str:
    """Ask for more than that; no page of it is touched."""
    mmap.mmap(-1, 2 * MOST_BYTES).close()
    return "given"


def test_a_lower_limit_that_was_there_stays() -> None:
    _, hard = before = resource.getrlimit(resource.RLIMIT_AS)
    lower = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() + MOST_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (lower, hard))
    try:
        assert within_memory(limit, 2 * MOST_BYTES) == limit() == str(lower)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def test_the_limit_lasts_until_the_last_of_two_works_ends() -> None:
    """One that was given up may still run when the next one begins."""
    before, began, end = limit(), threading.Event(), threading.Event()

    def wait() -> str:
        began.set()
        return str(end.wait(60))

    def limit_after_the_first() -> str:
        end.set()
        first.join(60)
        assert not first.is_alive()
        return limit()

    first = threading.Thread(target=within_memory, args=(wait, MOST_BYTES))
    first.start()
    assert began.wait(60)
    assert within_memory(limit_after_the_first, MOST_BYTES) != before
    assert limit() == before


def test_work_that_is_given_up_at_any_moment_leaves_no_limit_behind() -> None:
    before, moment = limit(), 0
    while is_given_up_at(moment):
        assert limit() == before, moment
        moment += 1
    assert moment > 10


def is_given_up_at(moment: int) -> bool:
    """Give work up after so many moments at which a thread hears of that: where a function of Python begins, and behind
    one of C. False where there are fewer.
    """
    left = moment

    def give_up(frame: FrameType, event: str, _: object) -> None:
        nonlocal left
        if frame.f_code.co_filename == memory_limit.__file__ and event in ("call", "c_return"):
            left -= 1
            if left < 0:
                sys.setprofile(None)  # a thread is told once
                raise GivenUp

    sys.setprofile(give_up)
    try:
        within_memory(limit, MOST_BYTES)
    except GivenUp:
        return True
    finally:
        sys.setprofile(None)
    return False
