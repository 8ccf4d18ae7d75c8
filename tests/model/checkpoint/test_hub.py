"""What comes from a hub, and what is said when it does not, against a hub that speaks the protocol."""

import shutil
import socketserver
import threading
from collections import namedtuple
from pathlib import Path

import pytest
from huggingface_hub import close_session, constants

from ladechat.model.checkpoint.files import LoadErrorCode
from ladechat.model.checkpoint.hub import download
from tests.hub_server import HubServer
from tests.model.checkpoint.hub_model import (
    FILES,
    NAME,
    SHARDED,
    SMALL,
    WEIGHTS,
    Seen,
    assert_not_fetched,
    fetched,
    fetched_weights,
    partial,
)


def go_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)


# --- what is fetched -------------------------------------------------------------------------------------------------


def test_only_configuration_tokenizer_and_safetensors_are_fetched(hub: HubServer) -> None:
    others = ["pytorch_model.bin", "README.md", "tokenizer_code.py", "onnx/model.onnx", "original/params.json"]
    others += ["consolidated.safetensors", "original/model.safetensors", "pytorch_model.bin.index.json", "a.gguf"]
    hub.add(NAME, {**FILES, **dict.fromkeys(others, b"x")})
    folder = fetched()
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == FILES
    assert sorted(hub.fetched()) == sorted(FILES)


def test_of_a_sharded_model_the_files_that_its_index_names_are_fetched(hub: HubServer) -> None:
    hub.add(NAME, {**SHARDED, "model-00003-of-00002.safetensors": b"not of it"})
    folder = fetched()
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == SHARDED


def test_a_shard_that_the_hub_does_not_have_is_told_of_before_the_others_are_fetched(hub: HubServer) -> None:
    hub.add(NAME, {file: data for file, data in SHARDED.items() if file != "model-00002-of-00002.safetensors"})
    assert_not_fetched("no_safetensors", "model-00002-of-00002.safetensors")
    assert hub.fetched(".safetensors") == []


@pytest.mark.parametrize(("file", "says"), [("pytorch_model.bin", "can run code"), ("model.gguf", "gguf")])
def test_a_model_without_safetensors_is_refused_and_nothing_is_fetched(hub: HubServer, file: str, says: str) -> None:
    hub.add(NAME, {**SMALL, file: b"x"})
    assert_not_fetched("no_safetensors", says)
    assert hub.fetched() == []


def test_the_bytes_are_counted_up_to_all_of_them(hub: HubServer) -> None:
    hub.add(NAME, SHARDED)
    seen: Seen = []
    fetched(seen)
    assert seen == sorted(seen)
    assert seen[-1] == (len(WEIGHTS), len(WEIGHTS))


def test_what_is_cached_is_not_fetched_again(hub: HubServer) -> None:
    hub.add(NAME, SHARDED)
    folder = fetched()
    asked = len(hub.log)
    seen: Seen = []
    assert fetched(seen) == folder
    assert (len(hub.log), seen) == (asked + 1, [])


def test_a_new_version_with_the_same_weights_costs_no_transfer_of_them(
    hub: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add(NAME, FILES)
    old = fetched()
    hub.add(NAME, {**FILES, "tokenizer.json": b"[]"})
    new = fetched()
    assert new != old and (new / "tokenizer.json").read_bytes() == b"[]"
    assert len(hub.ranges()) == 1
    go_offline(monkeypatch)
    assert fetched() == new


def test_a_version_that_is_pushed_during_a_download_does_not_take_its_place_offline(
    hub: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add(NAME, FILES)

    def push(done: int, total: int) -> None:
        hub.add(NAME, {**FILES, "config.json": b'{"new": 1}'})

    folder = download(NAME, push)
    assert (folder / "config.json").read_bytes() == b"{}"
    go_offline(monkeypatch)
    assert fetched() == folder


def test_a_model_is_there_also_where_its_version_cannot_be_noted(served: HubServer) -> None:
    refs = fetched().parents[1] / "refs"
    shutil.rmtree(refs)
    refs.write_text("a file where the folder should be")
    assert fetched_weights() == WEIGHTS


# --- the token -------------------------------------------------------------------------------------------------------


def test_the_token_of_the_environment_opens_a_gated_model_and_goes_to_the_hub_only(
    hub: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add(NAME, FILES, token="secret", gated=True)
    monkeypatch.setenv("HF_TOKEN", "secret")
    fetched()
    tokens = {asked.path.startswith("/cdn/"): asked.token for asked in hub.log}
    assert tokens == {False: "secret", True: None}


def test_the_token_of_a_login_opens_a_private_model(hub: HubServer) -> None:
    hub.add(NAME, FILES, token="secret")
    assert_not_fetched("model_not_found", f"no model {NAME}")
    Path(constants.HF_TOKEN_PATH).write_text("secret")
    assert fetched_weights() == WEIGHTS


def test_a_gated_model_is_told_of_with_where_to_ask_before_any_weight_is_fetched(hub: HubServer) -> None:
    hub.add(NAME, FILES, token="secret", gated=True)
    error = assert_not_fetched("gated", "granted by its owners")
    assert f"{hub.url}/{NAME}" in error.hint and "hf auth login" in error.hint
    assert hub.fetched(".safetensors") == []


# --- what a hub may answer -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "message", "code", "says"),
    [
        (401, "Invalid credentials in Authorization header", "model_not_found", "did not accept the access token"),
        (403, "Your token may not read gated models.", "gated", "Your token may not read gated models"),
        (404, None, "model_not_found", "does not find owner/model"),
        (407, None, "hub_unreachable", "the proxy in front of http"),
        (429, None, "hub_unreachable", "error 429"),
        (500, None, "hub_unreachable", "error 500"),
    ],
)
def test_what_the_hub_answers_is_told_in_one_sentence(
    hub: HubServer, status: int, message: str | None, code: LoadErrorCode, says: str
) -> None:
    hub.faults.status, hub.faults.message = status, message
    assert_not_fetched(code, says)


def test_an_unknown_model_is_not_found(hub: HubServer) -> None:
    error = assert_not_fetched("model_not_found", f"no model {NAME}")
    assert "spelling" in error.hint


@pytest.mark.parametrize("page", [b"<html>Log in to the hotel's network</html>", b"[]", b"{}"])
def test_what_is_no_hub_is_told_of(hub: HubServer, page: bytes) -> None:
    hub.faults.page = page
    assert_not_fetched("hub_unreachable", "is no hub")


@pytest.mark.parametrize("name", ["owner/has space", "owner/-x-", "a--b/c"])
def test_a_name_that_no_hub_allows_is_refused(hub: HubServer, name: str) -> None:
    assert_not_fetched("model_not_found", f"no model {name}", name)
    assert hub.log == []


# --- without the hub -------------------------------------------------------------------------------------------------


def test_a_hub_that_cannot_be_reached_is_told_of_with_its_address(
    hub: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody = "http://127.0.0.1:9"
    monkeypatch.setattr(constants, "ENDPOINT", nobody)
    assert_not_fetched("hub_unreachable", f"the hub at {nobody} cannot be reached")


@pytest.mark.parametrize(
    ("answer", "hint"),
    [("407 Proxy Authentication Required", "http://NAME:PASSWORD@HOST:PORT"), ("403 Forbidden", "NO_PROXY")],
)
def test_a_proxy_that_lets_nothing_through_is_told_of_with_what_it_wants(
    hub: HubServer, answer: str, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Proxy(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while self.rfile.readline().strip():
                pass
            self.wfile.write(f"HTTP/1.1 {answer}\r\nContent-Length: 0\r\n\r\n".encode())

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Proxy) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setattr(constants, "ENDPOINT", "https://hub.invalid")
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{server.server_address[1]}")
        monkeypatch.setenv("NO_PROXY", "")
        close_session()  # its client has read the environment
        says = f"the proxy in front of https://hub.invalid refuses ({answer})"
        error = assert_not_fetched("hub_unreachable", says)
        close_session()
        server.shutdown()
    assert hint in error.hint


@pytest.mark.parametrize("files", [FILES, SHARDED], ids=["one file", "shards"])
def test_a_cached_model_is_there_while_the_hub_is_switched_off(
    hub: HubServer, files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add(NAME, files)
    folder = fetched()
    asked = len(hub.log)
    go_offline(monkeypatch)
    assert (fetched(), len(hub.log)) == (folder, asked)


@pytest.mark.parametrize("status", [500, 401, 404])
def test_a_cached_model_is_there_whatever_the_hub_answers(served: HubServer, status: int) -> None:
    folder = fetched()
    served.faults.status = status
    assert fetched() == folder


def test_a_model_of_which_a_part_is_cached_is_told_of_with_what_is_missing(
    hub: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add(NAME, SHARDED)
    (fetched() / "model-00002-of-00002.safetensors").unlink()
    go_offline(monkeypatch)
    assert_not_fetched("hub_unreachable", "only partly on this machine (model-00002-of-00002.safetensors is missing)")


def test_a_model_that_is_not_cached_is_told_of_while_the_hub_is_switched_off(
    hub: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_offline(monkeypatch)
    error = assert_not_fetched("hub_unreachable", "owner/model is not on this machine")
    assert "HF_HUB_OFFLINE" in error.hint


# --- the disk --------------------------------------------------------------------------------------------------------

Usage = namedtuple("Usage", ["total", "used", "free"])


def test_a_model_that_does_not_fit_the_disk_is_refused_before_its_weights_are_fetched(
    served: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda place: Usage(10**6, 10**6 - 149_999, 149_999))
    error = assert_not_fetched("disk_full", "200.0 kB more are needed, 150.0 kB are free")
    assert constants.HF_HUB_CACHE in str(error) and "HF_HOME" in error.hint
    assert served.fetched(".safetensors") == []


def test_what_has_come_already_needs_no_room_any_more(served: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda place: Usage(10**6, 10**6 - 150_000, 150_000))
    partial().write_bytes(WEIGHTS[:50_000])
    assert fetched_weights() == WEIGHTS


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no disk that is always full")
def test_a_disk_that_fills_up_on_the_way_is_told_of(served: HubServer) -> None:
    partial().symlink_to("/dev/full")
    assert_not_fetched("disk_full", "not enough room")


def test_a_cache_that_cannot_be_written_is_told_of(served: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    Path(constants.HF_HUB_CACHE).write_text("a file where the folder should be")
    error = assert_not_fetched("load_failed", f"cannot be kept in {constants.HF_HUB_CACHE}")
    assert "HF_HOME" in error.hint
