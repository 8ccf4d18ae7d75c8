"""The pool in a file: what went in comes out, nothing half is left behind, and what is no pool is refused."""

import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, strategies as st

from ladechat.decoder.drafters.ngram_pool import NGramPool
from ladechat.engine.pool_file import FORMAT, VERSION, PoolFileError, read, write
from tests.engine.wire import Wire, refused, started

ngrams = st.lists(st.lists(st.integers(0, 50), min_size=2, max_size=6).map(tuple), max_size=30)


@given(ngrams)
def test_what_was_kept_is_guessed_again_as_learnt_earlier(
    tmp_path_factory: pytest.TempPathFactory, added: list[tuple[int, ...]]
) -> None:
    path = tmp_path_factory.mktemp("pool") / "kept"
    pool, again = NGramPool(), NGramPool()
    for ngram in added:
        pool.add(ngram, "window")
    write(path, pool, "here")
    assert read(path, again, "here", vocabulary=51) == len(pool)
    assert list(again.ngrams()) == list(pool.ngrams())
    assert {source for key in range(51) for _, source, _ in again.guesses([key], 9, 99)} <= {"earlier"}
    assert [path] == list(path.parent.iterdir())


@pytest.mark.parametrize("there_before", [False, True])
def test_only_its_user_can_read_the_file_from_which_the_conversation_could_be_decoded(
    there_before: bool, tmp_path: Path
) -> None:
    path = tmp_path / "kept"
    if there_before:
        path.write_bytes(content())
        path.chmod(0o644)
    before = os.umask(0)
    try:
        write(path, NGramPool(), "here")
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o600
    assert [path] == list(tmp_path.iterdir())


def test_a_name_that_another_user_has_taken_beside_the_file_leads_nowhere(tmp_path: Path) -> None:
    """In a folder that others can write to, the file must not be written where their link points."""
    (tmp_path / f"kept.partial-{os.getpid()}").symlink_to(tmp_path / "elsewhere")
    write(tmp_path / "kept", NGramPool(), "here")
    assert (tmp_path / "kept").is_file() and not (tmp_path / "kept").is_symlink()
    assert not (tmp_path / "elsewhere").exists()


def test_a_link_of_the_users_stays_one(tmp_path: Path) -> None:
    link, target = tmp_path / "link", tmp_path / "target"
    link.symlink_to(target)
    for _ in range(2):
        write(link, NGramPool(), "here")
    assert link.is_symlink() and read(target, NGramPool(), "here", vocabulary=9) == 0 and target.is_file()


def test_no_folder_is_made_for_a_pool(tmp_path: Path) -> None:
    with pytest.raises(PoolFileError, match="cannot be written"):
        write(tmp_path / "missing" / "pool", NGramPool(), "here")
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_not_there_is_an_empty_pool(tmp_path: Path) -> None:
    assert read(tmp_path / "none", NGramPool(), "here", vocabulary=9) == 0


def content(**changes: object) -> bytes:
    whole = {"format": FORMAT, "version": VERSION, "tokenizer": "here", "ngrams": [[1, 2]], **changes}
    return msgspec.msgpack.encode(whole)


@pytest.mark.parametrize(
    ("kept", "why"),
    [
        (b"", "no pool"),
        (b"\x80\x04\x95pickle", "no pool"),
        (content()[:-2], "damaged"),
        (content(format="other"), "no pool"),
        (content(version=2), "no pool"),
        (content(tokenizer="there"), "another model"),
        (content(ngrams=[[1]]), "damaged"),
        (content(ngrams=[[1, 9]]), "damaged"),
        (content(ngrams=[[-1, 2]]), "damaged"),
        (content(ngrams="no"), "no pool"),
    ],
)
def test_what_is_no_pool_of_this_model_is_refused_and_left_as_it_is(tmp_path: Path, kept: bytes, why: str) -> None:
    path = tmp_path / "kept"
    path.write_bytes(kept)
    pool = NGramPool()
    with pytest.raises(PoolFileError, match=why):
        read(path, pool, "here", vocabulary=9)
    assert len(pool) == 0 and path.read_bytes() == kept


def test_a_folder_can_neither_be_read_nor_written(tmp_path: Path) -> None:
    with pytest.raises(PoolFileError, match="cannot be read"):
        read(tmp_path, NGramPool(), "here", vocabulary=9)
    with pytest.raises(PoolFileError, match="cannot be written"):
        write(tmp_path, NGramPool(), "here")
    assert not list(tmp_path.iterdir())


@pytest.mark.full
def test_an_engine_goes_on_with_the_pool_of_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "pool"

    def sources(wire: Wire) -> list[str]:
        steps, _ = wire.ask("What is the n-gram pool?", max_new_tokens=24)
        return [candidate.source for step in steps if step.pool for candidate in step.pool.candidates]

    found = []
    for _ in range(2):
        wire, _ = started("--model", "demo", "--pool", str(path))
        found.append(sources(wire))
        wire.close()
    assert "earlier" not in found[0]
    assert "earlier" in found[1]


@pytest.mark.full
def test_an_engine_with_a_file_that_is_no_pool_says_so_and_ends(tmp_path: Path) -> None:
    path = tmp_path / "pool"
    path.write_text("not a pool")
    failed = refused("--model", "demo", "--pool", str(path))
    assert failed.code == "pool_file" and str(path) in failed.message


@pytest.mark.full
def test_a_file_in_a_folder_that_is_not_there_is_told_at_the_start(tmp_path: Path) -> None:
    failed = refused("--model", "demo", "--pool", str(tmp_path / "missing" / "pool"))
    assert failed.code == "pool_file" and "cannot be written" in failed.message


def test_a_tokenizer_without_a_fingerprint_has_no_pool_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(PoolFileError, match="cannot be told from others"):
        read(tmp_path / "pool", NGramPool(), "unknown", vocabulary=9)
