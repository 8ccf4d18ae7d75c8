"""A hub cannot make us write outside its cache, or more than it lists."""

import contextlib
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import close_session, hf_hub_download

from ladechat.model.checkpoint import hub as module, hub_answers
from ladechat.model.checkpoint.hub_answers import UntrustedAnswer, check_answers
from tests.hub_server import HubServer
from tests.model.checkpoint.hub_model import FILES, NAME, SMALL, WEIGHTS, assert_not_fetched, blob, fetched, partial

MUCH = 5_000_000


def files_below(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("header", ["ETag", "X-Linked-Etag", "X-Repo-Commit", "X-Xet-Hash"])
@pytest.mark.parametrize("value", ["../../../../planted", "{folder}/planted", "..", "a/b", "a\\x1fb"])
def test_a_header_with_parts_of_a_path_is_refused_and_nothing_lands_outside_the_cache(
    served: HubServer, header: str, value: str, tmp_path: Path
) -> None:
    value = value.format(folder=tmp_path)
    served.faults.headers = {header: f'"{value}"' if "etag" in header.lower() else value}
    error = assert_not_fetched("hub_unreachable", header)
    assert "HF_ENDPOINT" in error.hint
    assert all(path.is_relative_to(tmp_path / "cache") for path in files_below(tmp_path))
    assert not any("planted" in str(path) for path in files_below(tmp_path))


@pytest.mark.parametrize(("header", "value"), [("ETag", "W.."), ("X-Repo-Commit", "/x"), ("X-Repo-Commit", "W/x")])
def test_a_header_is_judged_by_what_huggingface_hub_makes_of_it(served: HubServer, header: str, value: str) -> None:
    served.faults.headers = {header: value}
    assert_not_fetched("hub_unreachable", f"sends '{value}' as {header}")


def test_answers_are_checked_also_after_a_connection_has_failed(served: HubServer) -> None:
    check_answers()
    close_session()  # as huggingface_hub does then
    served.faults.headers = {"ETag": '".."'}
    with pytest.raises(UntrustedAnswer):
        hf_hub_download(NAME, "config.json")


def test_files_in_xet_storage_come_through_the_client_whose_answers_are_checked(served: HubServer) -> None:
    served.faults.headers = {"X-Xet-Hash": "0" * 64, "X-Xet-Refresh-Route": f"{served.url}/refresh"}
    assert {path.name: path.read_bytes() for path in fetched().iterdir()} == FILES


@pytest.mark.parametrize("sha", ["../../../planted", "/planted", "..", "x" * 500])
def test_a_commit_that_is_no_name_is_refused(served: HubServer, sha: str, tmp_path: Path) -> None:
    served.faults.sha = sha
    assert_not_fetched("hub_unreachable", "commit")
    assert not any("planted" in str(path) for path in tmp_path.rglob("*"))


@pytest.mark.parametrize(
    ("listed", "says"),
    [
        ({"rfilename": 3}, "lists 3 as the name of a file"),
        ({"rfilename": None}, "lists None as the name of a file"),
        ({"size": -5}, "lists -5 bytes as the size of config.json"),
        ({"size": "many"}, "lists many bytes as the size of config.json"),
        ({"size": 10**30}, "bytes as the size of config.json"),
        ({"lfs": {"size": -5}}, "lists -5 bytes as the size of model.safetensors"),
        ({"lfs": {"size": 10**30}}, "bytes as the size of model.safetensors"),
    ],
)
def test_a_list_of_files_that_no_hub_has_is_refused(served: HubServer, listed: dict[str, Any], says: str) -> None:
    served.faults.listed = listed
    assert_not_fetched("hub_unreachable", says)


def test_weights_without_a_byte_are_fetched_and_all_of_nothing_is_there(hub: HubServer) -> None:
    hub.add(NAME, {**FILES, "model.safetensors": b""})
    assert (fetched() / "model.safetensors").read_bytes() == b""


def test_entity_tags_as_hubs_send_them_are_taken(hub: HubServer) -> None:
    hub.add(NAME, {**FILES, "config.json": b"{}"})
    hub.faults.headers = {"ETag": 'W/"5d41402abc4b2a76b9719d911017c592-12"'}
    assert (fetched() / "config.json").read_bytes() == b"{}"


@pytest.mark.parametrize("how", ["surplus", "compressed"])
def test_of_a_small_file_no_more_comes_than_the_hub_lists(hub: HubServer, how: str, tmp_path: Path) -> None:
    hub.add(NAME, SMALL | {"model.safetensors": WEIGHTS})
    setattr(hub.faults, how, MUCH)
    assert_not_fetched("hub_unreachable", "more bytes")
    assert sum(path.stat().st_size for path in files_below(tmp_path)) < MUCH / 5


def test_of_a_file_without_weights_no_more_comes_than_it_can_need_whatever_the_hub_lists(
    hub: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 1000)
    hub.add(NAME, {**FILES, "tokenizer.json": bytes(1001)})
    assert_not_fetched("hub_unreachable", "more bytes than the 1.0 kB")


@pytest.mark.parametrize("status", [302, 403, 500])
def test_errors_and_redirects_have_a_limit_too(hub: HubServer, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_answers, "MOST_BYTES", 1_000_000)
    hub.faults.status, hub.faults.headers, hub.faults.compressed = status, {"Location": f"{hub.url}/there"}, MUCH
    assert_not_fetched("hub_unreachable", "more bytes than the 1.0 MB")


@pytest.mark.parametrize("encoding", ["gzip, gzip", "zstd"])
def test_what_a_few_bytes_could_unpack_to_gigabytes_is_not_unpacked(served: HubServer, encoding: str) -> None:
    served.faults.headers = {"Content-Encoding": encoding}
    assert_not_fetched("hub_unreachable", f"compressed as '{encoding}'")


def test_of_a_large_file_no_more_comes_than_the_hub_lists(served: HubServer, tmp_path: Path) -> None:
    fetched()
    blob().unlink()
    served.faults.surplus = MUCH
    largest = 0

    def look(done: int, total: int) -> None:
        nonlocal largest
        for path in files_below(tmp_path):
            with contextlib.suppress(FileNotFoundError):  # what is refused is removed meanwhile
                largest = max(largest, path.stat().st_size)

    assert_not_fetched("hub_unreachable", "something else than the hub says", progress=look)
    look(0, 0)
    assert not partial().exists()
    assert largest <= len(WEIGHTS) + 1_000_000
