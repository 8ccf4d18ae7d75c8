"""The folder of saved conversations: what is read of its files, titles, and what was deleted."""

import os
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from msgspec.structs import replace

from ladechat.protocol import encode
from ladechat.session.conversations import folder as conversation_folder, saved as conversation_file
from ladechat.session.conversations.saved import (
    Answered,
    Begun,
    Branch,
    Continued,
    FileLine,
    Instructed,
    Removed,
    shortened,
    title_of_copy,
)
from ladechat.session.conversations.store import ConversationStore
from tests.session.conversations import answered, exchange, questions, write


def test_the_latest_stands_first_and_each_conversation_has_a_file_of_its_own(tmp_path: Path) -> None:
    write(tmp_path, "b", exchange("Old?"), when="2029-01-01T12:00:00")
    write(tmp_path, "a", exchange("Newer?"), when="2030-01-01T12:00:00")
    write(tmp_path, "c", exchange("Oldest?"), when="2028-01-01T12:00:00")
    store = ConversationStore(tmp_path)
    assert questions(store) == [["Newer?"], ["Old?"], ["Oldest?"]]
    store.add(exchange("One?"))
    store.begin_new()
    store.add(exchange("Two?"))
    assert len(questions(store)) == 5


@given(content=st.one_of(st.binary(max_size=80), st.just(b"[" * 100_000), st.just(b'{"line":"exchange"}\n')))
def test_foreign_files_in_the_folder_are_left_alone(content: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("foreign")
    write(folder, "ours", exchange())
    (folder / "theirs.jsonl").write_bytes(content)
    os.mkfifo(folder / "pipe.jsonl")
    (folder / "folder.jsonl").mkdir()
    (folder / "nowhere.jsonl").symlink_to(folder / "gone")
    store = ConversationStore(folder)
    assert questions(store) == [["One?"]]
    assert (folder / "theirs.jsonl").read_bytes() == content


@pytest.mark.parametrize("damage", [b"{", b"\xff\xfe", b"[" * 100_000, b'{"line":"hologram"}', b'{"line":"title"}'])
def test_a_line_that_cannot_be_read_costs_nothing_else(tmp_path: Path, damage: bytes) -> None:
    lines = list(map(encode, [Begun(), *answered(exchange("One?"), exchange("Two?"))]))
    (tmp_path / "a.jsonl").write_bytes(b"".join([*lines[:2], damage + b"\n", *lines[2:]]))
    assert questions(ConversationStore(tmp_path)) == [["One?", "Two?"]]


def test_a_file_of_a_later_version_or_without_end_is_not_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[FileLine] = [Begun(version=2), *answered(exchange())]
    (tmp_path / "later.jsonl").write_bytes(b"".join(map(encode, lines)))
    assert ConversationStore(tmp_path).conversations() == []
    write(tmp_path, "long", exchange(answer="x" * 1000))
    assert questions(ConversationStore(tmp_path)) == [["One?"]]
    monkeypatch.setattr(conversation_file, "MOST_BYTES", 500)
    assert ConversationStore(tmp_path).conversations() == []


@pytest.mark.parametrize(
    "when",
    [
        "soon", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59.999999+00:00",
    ],
)  # fmt: skip
def test_a_time_that_is_none_costs_nothing_else(tmp_path: Path, when: str) -> None:
    write(tmp_path, "a", exchange(), when=when)
    assert questions(ConversationStore(tmp_path)) == [["One?"]]
    for _ in range(2):
        assert [one.title for one in ConversationStore(tmp_path).listing().all] == ["One?"]


@pytest.mark.parametrize("damaged", range(4))
def test_an_exchange_that_cannot_be_read_leaves_the_others_in_their_places(tmp_path: Path, damaged: int) -> None:
    said = [Answered(when="2030-01-01T12:00:00", exchange=exchange(f"{n}?"), after=n - 1) for n in range(3)]
    variant = Answered(when="2030-01-01T12:00:00", exchange=exchange("3?"), after=1)
    after = [
        Branch(number=2),
        Continued(when="2030-01-01T12:00:00", exchange=exchange("2?", "Yes, and more."), number=2),
    ]
    lines = list(map(encode, [Begun(), *said, variant, *after]))
    lines[1 + damaged] = lines[1 + damaged].replace(b'"question"', b'"quest\xffion"')
    (tmp_path / "a.jsonl").write_bytes(b"".join(lines))
    store = ConversationStore(tmp_path)
    (kept,) = store.conversations()
    assert kept.questions == [2, 2, 3, 3][damaged], "the last question, or its variant, stands where it stood"
    answers = {one.question: one.answer for one in (kept.tree.exchanges[number] for number in kept.searched)}
    expected = {"0?": "Yes.", "1?": "Yes.", "2?": "Yes, and more.", "3?": "Yes."}  # the new state of 2 has all of it
    gone = "" if damaged == 2 else f"{damaged}?"
    assert answers == {question: answer for question, answer in expected.items() if question != gone}
    assert kept.unread == (damaged != 2) and not kept.tree.deleted
    store.open(kept)
    store.add(exchange("4?"), after=kept.tree.path[-1])
    (longer,) = ConversationStore(tmp_path).conversations()
    assert [one.question for one in longer.exchanges] == [*(one.question for one in kept.exchanges), "4?"]


def test_the_title_of_a_copy_has_room_for_saying_so() -> None:
    title = title_of_copy("word " * 15)
    assert title == shortened(title) and title.endswith("… (copy)") and title.startswith("word word ")


def test_exchanges_of_earlier_versions_have_the_system_prompt_of_the_lines_before_them(tmp_path: Path) -> None:
    path = write(tmp_path, "a", exchange("One?"), system="Be brief.")
    lines: list[FileLine] = [
        *answered(exchange("Two?"), replace(exchange("Three?"), system="")),
        Instructed(text="Rhyme."),
        Continued(when="", exchange=exchange("Three?")),
        *answered(exchange("Four?")),
    ]
    path.write_bytes(path.read_bytes() + b"".join(map(encode, lines)))
    (kept,) = ConversationStore(tmp_path).conversations()
    assert [one.system for one in kept.exchanges] == [None, "Be brief.", "", "Rhyme."]


def test_a_title_can_be_given_and_taken_back(tmp_path: Path) -> None:
    store = ConversationStore(tmp_path)
    store.add(exchange("  What\n is   W?  "))
    assert [kept.title for kept in store.conversations()] == ["What is W?"]
    store.rename(store.conversations()[0], " On\nwindows ")
    assert [kept.title for kept in store.conversations()] == ["On windows"]
    store.rename(store.conversations()[0], "")
    assert [kept.title for kept in store.conversations()] == ["What is W?"]


@given(question=st.text(min_size=1))
def test_a_title_is_one_short_line(question: str) -> None:
    title = conversation_file.shortened(question)
    assert len(title) <= 80 and len(title.splitlines()) <= 1


def test_a_deleted_conversation_can_be_brought_back_until_the_store_is_closed(tmp_path: Path) -> None:
    write(tmp_path, "a", exchange())
    store = ConversationStore(tmp_path)
    (kept,) = store.conversations()
    store.delete(kept)
    assert store.conversations() == []
    assert store.restore() == kept
    assert store.conversations() == [kept]
    store.delete(kept)
    store.close()
    assert list(tmp_path.iterdir()) == []


def test_what_a_program_left_as_deleted_is_removed_after_an_hour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "a", exchange())
    store = ConversationStore(tmp_path)
    store.delete(store.conversations()[0])
    store.conversations()
    assert len(list(tmp_path.iterdir())) == 1
    monkeypatch.setattr(conversation_folder, "SECONDS_TO_UNDO", -1.0)
    store.conversations()
    ConversationStore(tmp_path).conversations()
    assert len(list(tmp_path.iterdir())) == 1, "this program can still bring it back"
    os.close(store._locked.pop())  # as the end of the program would
    ConversationStore(tmp_path).conversations()
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_brought_back_now_can_be_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "talks", "a", exchange())
    store = ConversationStore(tmp_path / "talks")
    (kept,) = store.conversations()
    store.delete(kept)
    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", refused)
        with pytest.raises(PermissionError):
            store.restore()
    assert store.restore() == kept and questions(store) == [["One?"]]


def refused(path: Path, target: Path) -> Path:
    raise PermissionError(13, "Permission denied")


def test_a_file_of_an_earlier_version_that_replaced_in_two_lines_is_read_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    lines: list[FileLine] = [Begun(), *answered(exchange("One?")), Removed(), *answered(exchange("Two?"))]
    content = b"".join(map(encode, lines))
    path.write_bytes(content)
    store = ConversationStore(tmp_path)
    assert [one.question for one in store.open(store.conversations()[0]).exchanges] == ["Two?"]
    assert path.read_bytes() == content
    store.replace_last(exchange("Three?"))
    assert path.read_bytes().startswith(content) and questions(store) == [["Three?"]]
