"""A hub cannot make us write outside its cache, or more than it lists."""

import contextlib
from pathlib import Path

import pytest

from tests.hub_server import HubServer
from tests.model.checkpoint.hub_model import FILES, NAME, SMALL, WEIGHTS, blob, fetched, partial, refusal
from tests.model.refusals import assert_told

MUCH = 50_000_000


def files_below(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("header", ["ETag", "X-Linked-Etag", "X-Repo-Commit", "X-Xet-Hash"])
@pytest.mark.parametrize("value", ["../../../../planted", "{folder}/planted", "..", "a/b", "a\\x1fb"])
def test_a_header_with_parts_of_a_path_is_refused_and_nothing_lands_outside_the_cache(
    hub: HubServer, header: str, value: str, tmp_path: Path
) -> None:
    hub.add(NAME, FILES)
    value = value.format(folder=tmp_path)
    hub.faults.headers = {header: f'"{value}"' if "etag" in header.lower() else value}
    error = refusal()
    assert_told(error, "hub_unreachable", header)
    assert "HF_ENDPOINT" in error.hint
    assert all(path.is_relative_to(tmp_path / "cache") for path in files_below(tmp_path))
    assert not any("planted" in str(path) for path in files_below(tmp_path))


@pytest.mark.parametrize("sha", ["../../../planted", "/planted", "..", "x" * 500])
def test_a_commit_that_is_no_name_is_refused(hub: HubServer, sha: str, tmp_path: Path) -> None:
    hub.add(NAME, FILES)
    hub.faults.sha = sha
    assert_told(refusal(), "hub_unreachable", "commit")
    assert not any("planted" in str(path) for path in tmp_path.rglob("*"))


def test_entity_tags_as_hubs_send_them_are_taken(hub: HubServer) -> None:
    hub.add(NAME, {**FILES, "config.json": b"{}"})
    hub.faults.headers = {"ETag": 'W/"5d41402abc4b2a76b9719d911017c592-12"'}
    assert (fetched() / "config.json").read_bytes() == b"{}"


@pytest.mark.parametrize("how", ["surplus", "compressed"])
def test_of_a_small_file_no_more_comes_than_the_hub_lists(hub: HubServer, how: str, tmp_path: Path) -> None:
    hub.add(NAME, SMALL | {"model.safetensors": WEIGHTS})
    setattr(hub.faults, how, MUCH)
    assert_told(refusal(), "hub_unreachable", "more bytes")
    assert sum(path.stat().st_size for path in files_below(tmp_path)) < MUCH / 5


def test_of_a_large_file_no_more_comes_than_the_hub_lists(hub: HubServer, tmp_path: Path) -> None:
    hub.add(NAME, FILES)
    fetched()
    blob().unlink()
    hub.faults.surplus = MUCH
    largest = 0

    def look(done: int, total: int) -> None:
        nonlocal largest
        for path in files_below(tmp_path):
            with contextlib.suppress(FileNotFoundError):  # what is refused is removed meanwhile
                largest = max(largest, path.stat().st_size)

    error = refusal(look)
    look(0, 0)
    assert_told(error, "hub_unreachable", "something else than the hub says")
    assert not partial().exists()
    assert largest <= len(WEIGHTS) + 1_000_000
