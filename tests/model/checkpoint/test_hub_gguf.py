"""GGUF files of the hub: the file of the named quantisation is fetched alone, resumed, checked, and found offline."""

import httpx
import pytest
from gguf import GGMLQuantizationType as Kind
from huggingface_hub import constants

from ladechat.model.checkpoint.fetch import fetch
from ladechat.model.checkpoint.hub_gguf import files_of
from tests.checkpoints import load_on_cpu
from tests.hub_server import HubServer
from tests.model.refusals import assert_refused
from tests.packed import tiny_file

NAME = "owner/tiny-GGUF"


@pytest.fixture
def files() -> dict[str, bytes]:
    """The files of a repository, two of which are models."""
    q8, q4 = (tiny_file(0, kind=kind).read_bytes() for kind in (Kind.Q8_0, Kind.Q4_0))
    return {"tiny-Q8_0.gguf": q8, "tiny-Q4_0.gguf": q4, "mmproj-tiny-Q8_0.gguf": b"x", "README.md": b"x"}


def test_the_file_of_the_quantisation_is_fetched_alone_and_runs(hub: HubServer, files: dict[str, bytes]) -> None:
    hub.add(NAME, files)
    seen, q8 = list[tuple[int, int]](), files["tiny-Q8_0.gguf"]
    path = fetch(f"{NAME}:q8_0", lambda done, total: seen.append((done, total)))
    assert path.read_bytes() == q8 and seen[-1] == (len(q8), len(q8))
    assert hub.fetched() == ["tiny-Q8_0.gguf"]
    assert load_on_cpu(path, "auto", f"{NAME}:q8_0").vocabulary > 0


def test_a_download_goes_on_where_it_was_broken_off(hub: HubServer, files: dict[str, bytes]) -> None:
    hub.add(NAME, files)
    hub.faults.break_after = [100_000]
    assert fetch(f"{NAME}:Q8_0", lambda done, total: None).read_bytes() == files["tiny-Q8_0.gguf"]
    assert hub.ranges(".gguf") == [None, "bytes=100000-"]


def test_a_damaged_download_is_refused(hub: HubServer, files: dict[str, bytes]) -> None:
    hub.add(NAME, files)
    hub.faults.garble = b"?"
    assert_refused(lambda: fetch(f"{NAME}:Q8_0", lambda done, total: None), "hub_unreachable", "came twice")


def test_a_cached_file_is_found_without_the_hub_if_it_is_whole(
    hub: HubServer, files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = {f"tiny-Q8_0-0000{number}-of-00002.gguf": bytes([number]) * 9000 for number in (1, 2)}
    hub.add(NAME, {**files, **parts})
    there = fetch(f"{NAME}:Q4_0", lambda done, total: None)
    hub.faults.status = httpx.codes.SERVICE_UNAVAILABLE
    assert fetch(f"{NAME}:Q4_0", lambda done, total: None) == there
    assert_refused(lambda: fetch(f"{NAME}:Q8_0", lambda done, total: None), "hub_unreachable", "not on this machine")


def test_a_quantisation_that_is_not_there_is_refused_with_those_that_are(
    hub: HubServer, files: dict[str, bytes]
) -> None:
    hub.add(NAME, files)
    error = assert_refused(lambda: fetch(f"{NAME}:Q4_K_M", lambda done, total: None), "model_not_found", "'Q4_K_M'")
    assert error.hint == "It has Q4_0, Q8_0."


def test_a_repository_of_such_files_says_how_to_name_one(hub: HubServer, files: dict[str, bytes]) -> None:
    hub.add(NAME, files)
    error = assert_refused(lambda: fetch(NAME, lambda done, total: None), "no_safetensors", "but GGUF files such as")
    assert f"--model {NAME}:Q4_K_M" in error.hint


def test_without_a_reader_nothing_is_fetched(
    hub: HubServer, files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add(NAME, files)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert_refused(lambda: fetch(f"{NAME}:Q8_0", lambda done, total: None), "missing_package", "xllamacpp")
    assert hub.log == [] and hub.url == constants.ENDPOINT


@pytest.mark.parametrize(
    ("names", "wanted", "found"),
    [
        (["a-Q4_K_M.gguf", "a-Q4_K_S.gguf"], "Q4_K", []),
        (["a.Q4_K_M.gguf", "a-chat.Q4_K_M.gguf"], "q4_k_m", ["a.Q4_K_M.gguf"]),
        (["b-Q8_0-00002-of-00002.gguf", "b-Q8_0-00001-of-00002.gguf"], "Q8_0", None),
        (["Q8_0/b-00001-of-00002.gguf", "Q8_0/b-00002-of-00002.gguf", "Q4_0/b.gguf"], "Q8_0", None),
        (["../a-Q8_0.gguf", "/etc/a-Q8_0.gguf", "x/../../a-Q8_0.gguf"], "Q8_0", []),
        (["imatrix-Q8_0.gguf", "a-Q8_0.safetensors"], "Q8_0", []),
    ],
)
def test_files_are_chosen_by_their_names(names: list[str], wanted: str, found: list[str] | None) -> None:
    expected = sorted(name for name in names if "Q8_0" in name) if found is None else found
    assert files_of(wanted, names) == expected
