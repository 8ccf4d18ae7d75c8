"""Conversations are kept whole, for their user alone, whatever else lies in the folder or writes into it."""

import itertools
import os
import shutil
import tempfile
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ladechat import files
from ladechat.protocol import Exchange, encode
from ladechat.session.conversations.conversation import Conversation
from ladechat.session.conversations.folder import ConversationInUse
from ladechat.session.conversations.saved import (
    Answered,
    Begun,
    Continued,
    Renamed,
    SavedConversation,
    read,
)
from ladechat.session.conversations.store import ConversationStore
from tests.session.conversations import answered, exchange, questions, take_away, write

TEXTS = st.text(max_size=20)
EXCHANGES = st.builds(
    Exchange,
    question=TEXTS,
    answer=TEXTS,
    token_ids=st.lists(st.integers(0, 40_000), max_size=4),
    model=TEXTS,
    decoder=st.just("auto"),
)


def test_a_conversation_has_its_file_from_the_first_answer_on(tmp_path: Path) -> None:
    store = ConversationStore(tmp_path / "data" / "talks")
    assert store.conversations() == []
    store.add(exchange("What is W?", "Its width."))
    store.add(exchange("And N?"))
    (kept,) = ConversationStore(tmp_path / "data" / "talks").conversations()
    assert kept.exchanges == [exchange("What is W?", "Its width."), exchange("And N?")]
    assert (kept.title, kept.path) == ("What is W?", store.path) and store.is_saved


def test_only_its_user_can_read_a_conversation(tmp_path: Path) -> None:
    folder = tmp_path / "talks"
    folder.mkdir(mode=0o755)
    store = ConversationStore(folder)
    store.add(exchange())
    assert store.path is not None
    assert store.path.stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700


@given(exchanges=st.lists(EXCHANGES, min_size=1, max_size=4), cut=st.integers(min_value=0))
def test_a_file_cut_anywhere_is_read_up_to_its_last_whole_line_and_goes_on(
    exchanges: list[Exchange], cut: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("cut")
    lines = list(map(encode, [Begun(), *answered(*exchanges)]))
    data = b"".join(lines)
    end = len(lines[0]) + len(lines[1]) + cut % (len(data) - len(lines[0]) - len(lines[1]) + 1)
    path = folder / "a.jsonl"
    path.write_bytes(data[:end])
    whole = [line for line in data[:end].split(b"\n")[1:] if line + b"\n" in lines]
    store = ConversationStore(folder)
    (kept,) = store.conversations()
    assert kept.exchanges == exchanges[: len(whole)]
    store.open(kept)
    store.add(exchange("On?"))
    assert questions(store)[0][-1] == "On?"
    assert len(questions(store)[0]) == len(whole) + 1


# --- two at once ------------------------------------------------------------------------------------------------------


def test_what_is_open_elsewhere_goes_on_as_a_copy(tmp_path: Path) -> None:
    here, there = ConversationStore(tmp_path), ConversationStore(tmp_path)
    here.add(exchange("One?"))
    (kept,) = there.conversations()
    there.rename(kept, "Ours")
    (kept,) = there.conversations()
    there.open(kept)
    assert there.path is None and there.why_copied == "is open in another ladechat"
    here.add(exchange("Here?"))
    there.add(exchange("There?"))
    assert there.why_copied, "as long as it is under way"
    assert sorted(questions(here)) == [["One?", "Here?"], ["One?", "There?"]]
    titles = {kept.title: kept for kept in here.conversations()}
    assert set(titles) == {"Ours", "Ours (copy)"}
    elsewhere = ConversationStore(tmp_path)
    elsewhere.open(titles["Ours (copy)"])
    elsewhere.add(exchange("Elsewhere?"))
    assert sorted(kept.title for kept in here.conversations()) == ["Ours", "Ours (copy)", "Ours (copy)"]
    there.begin_new()
    assert not there.why_copied


def test_what_was_closed_elsewhere_goes_on_where_it_ended(tmp_path: Path) -> None:
    here, there = ConversationStore(tmp_path), ConversationStore(tmp_path)
    here.add(exchange("One?"))
    (seen,) = there.conversations()
    here.add(exchange("Two?"))
    here.begin_new()
    assert [one.question for one in there.open(seen).exchanges] == ["One?", "Two?"]
    there.add(exchange("Three?"))
    assert questions(here) == [["One?", "Two?", "Three?"]]


def test_a_conversation_whose_file_is_gone_goes_on_in_another(tmp_path: Path) -> None:
    store = ConversationStore(tmp_path)
    kept = read(write(tmp_path, "a", exchange("One?")))
    assert kept is not None
    kept.path.unlink()
    store.open(kept)
    store.replace_last(exchange("Two?"))
    assert questions(store) == [["Two?"]]


WAYS = ("file", "folder", "emptied", "another")


@pytest.mark.parametrize("how", WAYS)
def test_a_conversation_whose_file_is_taken_away_is_not_called_kept_and_the_next_answer_writes_all_of_it(
    tmp_path: Path, how: str
) -> None:
    store = ConversationStore(tmp_path / "talks")
    store.instruct("Be brief.")
    store.add(exchange("One?"))
    store.add(exchange("Two?"))
    store.replace_last(exchange("Two?", "Yes, and more."))
    store.rename(store.conversations()[0], "Title")
    assert store.path is not None and store.is_saved
    take_away(store.path, how)
    assert (store.is_saved, store.removed) == (False, True)
    store.add(exchange("Three?"))
    (kept,) = ConversationStore(tmp_path / "talks").conversations()
    assert (store.is_saved, store.removed, store.path) == (True, False, kept.path)
    assert [one.question for one in kept.exchanges] == ["One?", "Two?", "Three?"]
    assert (kept.exchanges[1].answer, kept.given_title, kept.system) == ("Yes, and more.", "Title", "Be brief.")


@pytest.mark.parametrize("how", WAYS)
def test_an_opened_conversation_whose_file_is_taken_away_goes_on_whole(tmp_path: Path, how: str) -> None:
    path = write(tmp_path / "talks", "a", exchange("One?"), title="Title")
    store = ConversationStore(tmp_path / "talks")
    store.open(store.conversations()[0])
    take_away(path, how)
    assert not store.is_saved
    store.add(exchange("Two?"))
    (kept,) = ConversationStore(tmp_path / "talks").conversations()
    assert [one.question for one in kept.exchanges] == ["One?", "Two?"] and kept.title == "Title"


@pytest.mark.parametrize("content", [b"", b"my notes\n"])
def test_a_file_that_was_emptied_or_replaced_before_it_is_opened_goes_on_as_a_copy(
    tmp_path: Path, content: bytes
) -> None:
    path = write(tmp_path, "a", exchange("One?"), title="Title")
    store = ConversationStore(tmp_path)
    (kept,) = store.conversations()
    path.write_bytes(content)
    assert store.open(kept) == kept and "replaced" in store.why_copied
    store.add(exchange("Two?"))
    (copy,) = ConversationStore(tmp_path).conversations()
    assert [one.question for one in copy.exchanges] == ["One?", "Two?"] and copy.path != path
    assert path.read_bytes() == content


def test_what_its_user_has_removed_comes_back_with_nothing_but_another_answer(tmp_path: Path) -> None:
    store = ConversationStore(tmp_path / "talks")
    store.add(exchange("One?"))
    shutil.rmtree(tmp_path / "talks")
    assert not store.save()
    store.begin_new()
    store.close()
    assert not (tmp_path / "talks").exists()


@pytest.mark.parametrize("system", [None, "", "Be brief."])
def test_opening_a_conversation_writes_nothing(tmp_path: Path, system: str | None) -> None:
    path = write(tmp_path, "a", exchange("One?"), system=system)
    before = path.read_bytes()
    conversation = Conversation("Rhyme.", store=ConversationStore(tmp_path))
    conversation.open(ConversationStore(tmp_path).conversations()[0])
    assert conversation.system == (system or "")
    conversation.begin_new()
    assert path.read_bytes() == before and conversation.system == "Rhyme."


class TwoPrograms(RuleBasedStateMachine):
    """Two stores over one folder, in any order: what each has kept is there, whatever the other does."""

    def __init__(self) -> None:
        super().__init__()
        names = (f"{number:08}" for number in itertools.count())
        self._names = mock.patch("secrets.token_hex", side_effect=names)
        self._names.start()
        self._temporary = tempfile.TemporaryDirectory()
        folder = Path(self._temporary.name)
        self.stores = [ConversationStore(folder), ConversationStore(folder)]
        self.said: list[list[str]] = [[], []]
        self.asked = 0

    def teardown(self) -> None:
        for store in self.stores:
            store.begin_new()
        self._names.stop()
        self._temporary.cleanup()

    def found(self, which: int, place: int) -> SavedConversation:
        """One of those that are kept, by the order in which they were begun."""
        found = sorted(self.stores[which].conversations(), key=lambda kept: kept.path.stem[-8:])
        return found[place % len(found)]

    @rule(which=st.sampled_from([0, 1]))
    def ask(self, which: int) -> None:
        self.asked += 1
        self.stores[which].add(exchange(f"{self.asked}?"))
        self.said[which].append(f"{self.asked}?")

    @rule(which=st.sampled_from([0, 1]))
    def begin_new(self, which: int) -> None:
        self.stores[which].begin_new()
        self.said[which] = []

    @rule(which=st.sampled_from([0, 1]))
    def replace(self, which: int) -> None:
        if self.said[which]:
            self.asked += 1
            self.stores[which].replace_last(exchange(f"{self.asked}?"))
            self.said[which][-1:] = [f"{self.asked}?"]

    @precondition(lambda self: self.stores[0].conversations())
    @rule(which=st.sampled_from([0, 1]), place=st.integers(0, 3))
    def open(self, which: int, place: int) -> None:
        kept = self.stores[which].open(self.found(which, place))
        self.said[which] = [one.question for one in kept.exchanges]

    @precondition(lambda self: self.stores[0].conversations())
    @rule(which=st.sampled_from([0, 1]), place=st.integers(0, 3))
    def delete(self, which: int, place: int) -> None:
        kept = self.found(which, place)
        in_use = kept.path in (self.stores[0].path, self.stores[1].path)
        try:
            self.stores[which].delete(kept)
        except ConversationInUse:
            assert in_use
        else:
            assert not in_use
            assert kept.path not in [one.path for one in self.stores[which].conversations()]
            self.stores[which].close()

    @invariant()
    def what_each_has_written_is_there(self) -> None:
        there = {kept.path: [one.question for one in kept.exchanges] for kept in self.stores[0].conversations()}
        for store, said in zip(self.stores, self.said, strict=True):
            if store.path is not None and said:
                assert there[store.path] == said


TestTwoPrograms = TwoPrograms.TestCase


# --- failures ---------------------------------------------------------------------------------------------------------


def test_an_exchange_is_replaced_in_one_line_and_one_cut_off_leaves_it_as_it_was(tmp_path: Path) -> None:
    store = ConversationStore(tmp_path / "talks")
    store.add(exchange("One?"))
    assert store.path is not None
    before = store.path.read_bytes()
    store.replace_last(exchange("Two?"))
    after = store.path.read_bytes()
    cut = tmp_path / "cut.jsonl"
    for end in range(len(before), len(after) + 1):
        cut.write_bytes(after[:end])
        kept = read(cut)
        assert kept is not None
        assert [one.question for one in kept.exchanges] == ["Two?" if end >= len(after) - 1 else "One?"]


def test_whether_a_conversation_is_the_latest_is_known_without_reading_all(tmp_path: Path) -> None:
    def latest() -> list[bool]:
        return [store.latest for store in (one, other)]

    one, other = ConversationStore(tmp_path), ConversationStore(tmp_path)
    assert latest() == [False, False]
    one.add(exchange("One?"))
    assert latest() == [True, False]
    for path in tmp_path.iterdir():
        os.utime(path, (1, 1))
    other.add(exchange("Two?"))
    assert latest() == [False, True]
    other.open(other.conversations()[0])
    assert latest() == [False, False], "nothing was asked in it"


def test_a_failure_is_told_once_and_what_was_not_written_follows_later(tmp_path: Path) -> None:
    folder = tmp_path / "talks"
    folder.write_text("in the way")
    store = ConversationStore(folder)
    told: list[OSError] = []
    store.failed = told.append
    assert store.conversations() == []
    store.add(exchange("One?"))
    assert not store.is_saved
    store.add(exchange("Two?"))
    assert len(told) == 1
    folder.unlink()
    store.add(exchange("Three?"))
    assert questions(store) == [["One?", "Two?", "Three?"]]


def test_a_disk_that_fills_in_the_middle_of_a_line_costs_nothing_once_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ConversationStore(tmp_path)
    store.add(exchange("One?"))

    def half(descriptor: int, line: bytes) -> None:
        os.write(descriptor, line[: len(line) // 2])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(files, "write_whole", half)
        store.add(exchange("Two?"))
    assert questions(store) == [["One?"]]
    store.add(exchange("Three?"))
    assert questions(store) == [["One?", "Two?", "Three?"]]


def test_lines_are_never_changed(tmp_path: Path) -> None:
    store = ConversationStore(tmp_path)
    store.add(exchange("One?"))
    assert store.path is not None
    before = store.path.read_bytes()
    store.replace_last(exchange("Two?"))
    store.rename(store.conversations()[0], "Title")
    assert store.path.read_bytes().startswith(before)
    kinds = [Begun, Answered, Continued, Renamed]
    assert store.path.read_bytes().count(b"\n") == len(kinds)
