"""No byte of a large file is fetched twice, whatever breaks off, and what comes is what the hub says."""

import threading
from pathlib import Path

import pytest

from ladechat.model.checkpoint import transfer
from ladechat.model.checkpoint.hub import download
from ladechat.model.checkpoint.hub_answers import httpx
from tests.hub_server import HubServer
from tests.model.checkpoint.hub_model import (
    NAME,
    WEIGHTS,
    assert_not_fetched,
    blob,
    fetched_weights,
    partial,
)
from tests.waiting import patience


def test_a_transfer_that_breaks_off_goes_on_where_it_ended(served: HubServer) -> None:
    served.faults.break_after = [50_000, 60_000]
    assert fetched_weights() == WEIGHTS
    assert served.ranges() == [None, "bytes=50000-", "bytes=110000-"]


def test_a_transfer_that_always_breaks_off_is_given_up_and_what_came_is_kept(served: HubServer) -> None:
    served.faults.break_after = [50_000, 0, 0, 0]
    error = assert_not_fetched("hub_unreachable", "cannot be reached")
    assert "goes on where it ended" in error.hint
    assert partial().read_bytes() == WEIGHTS[:50_000]
    served.faults.break_after = []
    assert fetched_weights() == WEIGHTS
    assert served.ranges()[-1] == "bytes=50000-"


def test_a_transfer_in_which_nothing_comes_any_more_is_given_up(
    served: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "TIMEOUT", httpx.Timeout(0.2))
    served.faults.hold_after = 0
    assert_not_fetched("hub_unreachable", "cannot be reached")


def test_a_host_that_sends_all_of_a_file_again_is_understood(served: HubServer) -> None:
    served.faults.break_after, served.faults.ignore_range = [50_000], True
    assert fetched_weights() == WEIGHTS


@pytest.mark.parametrize("kept", [b"x" * 50_000, b"x" * len(WEIGHTS), b"x" * (len(WEIGHTS) + 1)], ids=len)
def test_a_damaged_part_of_an_earlier_transfer_is_found_and_replaced(served: HubServer, kept: bytes) -> None:
    partial().write_bytes(kept)
    assert fetched_weights() == WEIGHTS
    assert not partial().exists()


def test_a_transfer_that_was_cut_off_when_all_bytes_had_come_fetches_none_again(served: HubServer) -> None:
    partial().write_bytes(WEIGHTS)
    assert fetched_weights() == WEIGHTS
    assert served.ranges() == [] and not partial().exists()


def test_a_file_that_is_not_what_the_hub_lists_is_refused_and_not_kept(served: HubServer) -> None:
    served.faults.garble = bytes([WEIGHTS[0] ^ 1])
    assert_not_fetched("hub_unreachable", "something else than the hub says")
    assert not blob().exists() and not partial().exists()


def test_two_that_want_the_same_model_at_once_fetch_it_once(served: HubServer) -> None:
    served.faults.hold_after = 50_000
    halfway = threading.Barrier(3, timeout=patience())
    folders: list[Path] = []

    def want() -> None:
        told = False

        def progress(done: int, total: int) -> None:
            nonlocal told
            if done == 50_000 and not told:
                told = True
                halfway.wait()

        folders.append(download(NAME, progress))

    both = [threading.Thread(target=want) for _ in range(2)]
    for one in both:
        one.start()
    halfway.wait()
    served.faults.release.set()
    for one in both:
        one.join()
    assert len(folders) == 2 and folders[0] == folders[1]
    assert served.ranges() == [None]
