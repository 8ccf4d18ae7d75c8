"""Every kind of file that ladechat saves, with every kind of damage: nothing fails, nothing waits, nothing is lost."""

import contextlib
import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ladechat.decoder.drafters.ngram_pool import NGramPool
from ladechat.engine import pool_file
from ladechat.engine.pool_file import PoolFileError
from ladechat.layer_search import read_skipped, write_skipped
from ladechat.lessons.progress import Progress, ProgressFile
from ladechat.model.llama_cpp.trial import Trial
from ladechat.preferences import Preferences, SettingsFile, SettingsRefused
from ladechat.session.conversations import saved as conversation_file
from ladechat.session.conversations.prompt_history import PromptHistory
from ladechat.tuning.costs import read_costs
from ladechat.tuning.saved import read_value, write_value

HUGE = b"9" * 400
DEEP = b"[" * 100_000

Damage = Callable[[Path], object]


def _bytes(content: bytes) -> Damage:
    return lambda path: path.write_bytes(content)


def _too_large(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2**30)


DAMAGES: dict[str, Damage] = {
    "text": _bytes(b"not at all\n"),
    "no UTF-8": _bytes(b"\xff\xfe\x80\n"),
    "zeros": _bytes(bytes(100)),
    "another value": _bytes(b"null\n"),
    "nesting": _bytes(DEEP),
    "a long number": _bytes(HUGE),
    "a number too long to be read": _bytes(b"9" * 5000),
    "too large": _too_large,
    "pipe": os.mkfifo,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "folder": Path.mkdir,
    "loop of links": lambda path: path.symlink_to(path),
}


class Kind(NamedTuple):
    """A kind of file: how it is read, what that gives where there is none, and how something is saved in it."""

    read: Callable[[Path], Any]
    without: Any
    write: Callable[[Path, Any], object]
    saved: Any


def _add_questions(path: Path, questions: list[str]) -> None:
    for question in questions:
        PromptHistory(path).add(question)


KINDS = {
    "lessons": Kind(
        lambda path: ProgressFile(path).read()[0],
        Progress(),
        lambda path, progress: ProgressFile(path).write(progress),
        Progress("pool", 3, [1]),
    ),
    "questions": Kind(
        lambda path: PromptHistory(path).read()[0],
        [],
        _add_questions,
        ["What?", "Why?"],
    ),
    "costs": Kind(read_costs, None, lambda path, costs: write_value(path, {"seconds": costs}), {1: 0.01, 4: 0.02}),
    "trials": Kind(
        lambda path: read_value(path, Trial.from_json),
        None,
        lambda path, trial: write_value(path, asdict(trial)),
        Trial(slots=7, moved=0.5, seconds={1: 0.01, 4: 0.02}, cost=1.2),
    ),
    "skipped layers": Kind(lambda path: read_skipped(path, 8), None, write_skipped, frozenset({2, 5})),
}

OF_A_KIND = {
    "lessons": [b'{"card": %b}' % HUGE, b'{"choices": [1, %b]}' % HUGE, b'{"card": 1e999}', b'{"scores": %b' % DEEP],
    "questions": [b"1\n2\n", b'"half', b'{"a": %b\n' % DEEP],
    "costs": [
        b'{"seconds": {"1": 0.01, "4": %b}}' % HUGE,
        b'{"seconds": {"1": 0.01, "%b": 0.02}}' % HUGE,
        b'{"seconds": {"1": 0.01, "4": 1e999}}',
        b'{"seconds": %b' % DEEP,
    ],
    "trials": [
        b'{"slots": %b, "seconds": {}}' % HUGE,
        b'{"slots": 7, "seconds": {"1": 1e999}}',
        b'{"slots": "7", "seconds": {}}',
        b'{"slots": 7, "seconds": {}, "cost": 0}',
        b'{"slots": 7, "seconds": {}, "age": 3}',
    ],
    "skipped layers": [b'{"skipped": [1, %b]}' % HUGE, b'{"skipped": [0, 1, 2, 3, 4, 5, 6, 7]}', b'{"skipped": [[1]]}'],
}

CASES = [(kind, name, damage) for kind in KINDS for name, damage in DAMAGES.items()]
CASES += [(kind, f"{place}", _bytes(content)) for kind in KINDS for place, content in enumerate(OF_A_KIND[kind])]


@pytest.mark.parametrize(("kind", "damage"), [case[::2] for case in CASES], ids=[f"{one[0]}-{one[1]}" for one in CASES])
def test_a_damaged_file_is_set_aside_and_begun_anew(kind: str, damage: Damage, tmp_path: Path) -> None:
    path, one = tmp_path / "saved.json", KINDS[kind]
    damage(path)
    before = path.lstat()
    assert one.read(path) == one.without
    [aside] = tmp_path.iterdir()
    assert aside.name == "saved.json.damaged" and os.path.samestat(aside.lstat(), before)
    one.write(path, one.saved)
    assert one.read(path) == one.saved
    assert os.path.samestat(aside.lstat(), before)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_damaged_again_does_not_take_the_place_of_what_was_set_aside(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "saved.json"
    for content in (b"first", b"second"):
        path.write_bytes(content)
        KINDS[kind].read(path)
    assert {one.read_bytes() for one in tmp_path.iterdir()} == {b"first", b"second"}


@pytest.mark.parametrize("kind", KINDS)
def test_what_cannot_be_renamed_is_left_and_nothing_fails(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> Path:
        raise PermissionError(13, "Permission denied")

    path, one = tmp_path / "saved.json", KINDS[kind]
    path.write_bytes(b"damaged")
    monkeypatch.setattr(Path, "rename", refused)
    assert one.read(path) == one.without
    assert path.read_bytes() == b"damaged"


def test_the_sentence_names_the_file_and_what_it_is_called_now(tmp_path: Path) -> None:
    path = tmp_path / "learn.json"
    path.write_bytes(b"damaged")
    sentence = ProgressFile(path).read()[1]
    assert str(path) in sentence and "learn.json.damaged" in sentence and sentence.count("\n") == 0
    assert ProgressFile(path).read() == (Progress(), "")


def test_saved_costs_that_were_set_aside_are_said_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "costs.json"
    path.write_bytes(b"damaged")
    read_costs(path)
    assert [one for one in caplog.messages if str(path) in one]


# --- what a user wrote, or named, stays where it is -------------------------------------------------------------------


def _refuse_settings(path: Path) -> None:
    file = SettingsFile(path)
    assert file.preferences == Preferences()
    assert len(file.problems) == 1 and file.problems[0].sentence.startswith(str(path))
    with pytest.raises(SettingsRefused, match="settings"):
        file.save({"theme": "nord"})


def _refuse_pool(path: Path) -> None:
    with pytest.raises(PoolFileError, match="settings"):
        pool_file.read(path, NGramPool(), "here", vocabulary=9)


def _no_conversation(path: Path) -> None:
    with contextlib.suppress(OSError):  # then it is left out of the list
        assert conversation_file.read(path) is None


def written(path: Path) -> tuple[int, ...]:
    """What changes of a file when it is written or replaced, and not when it is read."""
    status = path.lstat()
    return status.st_dev, status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns


@pytest.mark.parametrize("read", [_refuse_settings, _refuse_pool, _no_conversation])
@pytest.mark.parametrize("damage", [pytest.param(one, id=name) for name, one in DAMAGES.items()])
def test_a_file_of_the_users_is_refused_in_a_sentence_and_left_as_it_is(
    read: Callable[[Path], None], damage: Damage, tmp_path: Path
) -> None:
    path = tmp_path / "settings"
    damage(path)
    before = written(path)
    read(path)
    assert [path] == list(tmp_path.iterdir()) and written(path) == before
