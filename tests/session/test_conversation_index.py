"""The index of conversations: what it finds, and that the files stay the truth whatever becomes of it."""

import os
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from ladechat.session.conversations import index
from ladechat.session.conversations.index import NAME, ConversationIndex
from ladechat.session.conversations.saved import SavedConversation, read
from ladechat.session.conversations.search import Listing, ScannedConversations
from ladechat.session.conversations.store import ConversationStore
from tests.session.conversations import exchange, forbid, write


def titles(listing: Listing, typed: str = "") -> list[str]:
    return [one.title for one in listing.find(typed)]


def three(folder: Path) -> ConversationStore:
    """Three conversations, the latest first: Phrase, Words, Other."""
    write(folder, "a", exchange("?", "It is the n-gram pool."), title="Phrase", when="2030-01-03T12:00:00")
    write(
        folder,
        "b",
        exchange("A pool?", "Of n-grams, von der Straße: 窓は広い。"),
        title="Words",
        when="2030-01-02T12:00:00",
    )
    write(folder, "c", exchange("Hello?", "Hi."), title="Other", when="2030-01-01T12:00:00")
    return ConversationStore(folder)


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("", ["Phrase", "Words", "Other"]),
        ("N-GRAM POOL", ["Phrase", "Words"]),
        ("po", ["Phrase", "Words"]),
        ("pool of", ["Words"]),
        ("oth", ["Other"]),
        ("strasse", ["Words"]),
        ("広い", ["Words"]),
        ("hi hello", ["Other"]),
        ('"hi" AND', []),
        ("?", ["Phrase", "Words", "Other"]),
        ("nowhere", []),
    ],
)
def test_the_phrase_comes_first_and_then_all_words_that_begin_so(typed: str, found: list[str], tmp_path: Path) -> None:
    assert titles(three(tmp_path).listing(), typed) == found


def test_no_phrase_is_found_across_two_messages(tmp_path: Path) -> None:
    write(tmp_path, "a", exchange("One two", "three four"), when="2030-01-02T12:00:00", title="Apart")
    write(tmp_path, "b", exchange("?", "two three"), when="2030-01-01T12:00:00", title="Together")
    assert titles(ConversationStore(tmp_path).listing(), "two three") == ["Together", "Apart"]


def test_what_changes_in_the_files_is_found_and_what_is_gone_is_not(tmp_path: Path) -> None:
    store, other = three(tmp_path), ConversationStore(tmp_path)
    assert titles(store.listing(), "lighthouse") == []
    other.open(other.conversations()[2])
    other.add(exchange("A lighthouse?"))
    (tmp_path / "a.jsonl").unlink()
    write(tmp_path, "d", exchange("Another lighthouse?"), when="2020-01-01T12:00:00")
    assert titles(store.listing(), "lighthouse") == ["Other", "Another lighthouse?"]
    assert sorted(titles(other.listing())) == ["Another lighthouse?", "Other", "Words"]


def test_pinned_conversations_come_first(tmp_path: Path) -> None:
    store = three(tmp_path)
    last = store.listing().all[-1]
    store.pin(last, True)
    assert titles(store.listing()) == ["Other", "Phrase", "Words"]
    assert ScannedConversations(store.conversations()).all[0].title == "Other"
    assert [one.title for one in store.conversations()] == ["Phrase", "Words", "Other"], (
        "the latest is another question"
    )
    store.pin(last, False)
    assert titles(store.listing()) == ["Phrase", "Words", "Other"]


@pytest.mark.parametrize("damage", ["gone", "no database", "cut off", "of another version"])
def test_an_index_that_is_missing_or_damaged_is_made_anew(damage: str, tmp_path: Path) -> None:
    three(tmp_path).listing()
    path = tmp_path / NAME
    match damage:
        case "gone":
            path.unlink()
        case "no database":
            path.write_bytes(b"no database" * 1000)
        case "cut off":
            os.truncate(path, path.stat().st_size // 2)
        case _:
            content = bytearray(path.read_bytes())
            content[63] += 1  # of user_version
            path.write_bytes(content)
    listing = ConversationStore(tmp_path).listing()
    assert not isinstance(listing, ScannedConversations)
    assert titles(listing, "n-gram") == ["Phrase", "Words"] and len(listing.all) == 3


def go_on(done: int, count: int) -> bool:
    return True


def test_an_index_that_another_program_has_made_anew_is_used(tmp_path: Path) -> None:
    three(tmp_path)
    files = list[str]()

    def read_file(path: Path) -> SavedConversation | None:
        files.append(path.name)
        return read(path)

    one, other = ConversationIndex(tmp_path, read_file), ConversationIndex(tmp_path, read_file)
    one.update(go_on)
    (tmp_path / NAME).unlink()
    other.update(go_on)
    for number, program in enumerate((one, other, one)):
        write(tmp_path, f"new{number}", exchange("An n-gram?"))
        files.clear()
        program.update(go_on)
        assert files == [f"new{number}.jsonl"] and len(program.find("n-gram")) == 3 + number


def test_two_programs_may_read_the_same_files_at_the_same_time(tmp_path: Path) -> None:
    three(tmp_path)
    one, other = ConversationIndex(tmp_path, read), ConversationIndex(tmp_path, read)

    def meanwhile(done: int, count: int) -> bool:
        other.update(go_on)
        return True

    one.update(meanwhile)
    made = (tmp_path / NAME).stat()
    for program in (one, other):
        assert titles(program, "n-gram") == ["Phrase", "Words"] and len(program.all) == 3
        program.update(go_on)
    assert os.path.samestat(made, (tmp_path / NAME).stat())


def test_a_file_with_a_name_that_is_no_text_takes_down_nothing(tmp_path: Path) -> None:
    store = three(tmp_path)
    write(tmp_path, "caf\udce9", exchange("n-gram pool?"))
    assert titles(store.listing(), "n-gram") == ["Phrase", "Words"]


def test_an_index_that_is_damaged_while_it_is_used_still_finds(tmp_path: Path) -> None:
    store = three(tmp_path)
    listing = store.listing()
    (tmp_path / NAME).write_bytes(b"no database" * 100)
    assert titles(listing, "n-gram pool") == ["Phrase", "Words"]
    store.delete(listing.all[0])
    assert titles(store.listing(), "n-gram") == ["Words"]


@pytest.mark.parametrize("without", ["full-text search", "a place"])
def test_without_an_index_all_files_are_searched(without: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = three(tmp_path)
    if without == "a place":
        (tmp_path / NAME).mkdir()
    else:
        monkeypatch.setattr(index, "SCHEMA", "CREATE VIRTUAL TABLE said USING no_such_search (text);")
    listing = store.listing()
    assert isinstance(listing, ScannedConversations)
    assert titles(listing, "n-gram pool") == ["Phrase", "Words"] and titles(listing) == ["Phrase", "Words", "Other"]
    store.delete(listing.all[0])
    assert titles(store.listing(), "n-gram pool") == ["Words"]


def test_only_its_user_can_read_the_index_and_what_is_deleted_leaves_it(tmp_path: Path) -> None:
    store = three(tmp_path)
    assert (tmp_path / NAME).exists() is False
    listing = store.listing()
    assert (tmp_path / NAME).stat().st_mode & 0o777 == 0o600
    assert b"hello" in (tmp_path / NAME).read_bytes()
    store.delete(listing.all[-1])
    store.close()
    ConversationStore(tmp_path).listing()
    assert b"hello" not in (tmp_path / NAME).read_bytes()


def test_reading_that_is_ended_goes_on_the_next_time(tmp_path: Path) -> None:
    store = three(tmp_path)
    assert store.listing(lambda done, count: False).all == []
    assert titles(store.listing()) == ["Phrase", "Words", "Other"]


def test_a_file_that_may_not_be_read_any_more_is_not_said_to_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = three(tmp_path)
    assert len(store.listing().all) == 3
    forbid(tmp_path / "a.jsonl", monkeypatch)
    assert store.read(tmp_path / "a.jsonl") is None and "a.jsonl cannot be read" in store.problem
    forbid(tmp_path, monkeypatch)
    assert store.listing().all == [] and "cannot be read" in store.problem


def test_an_empty_folder_and_none_have_no_conversations_and_no_index(tmp_path: Path) -> None:
    assert ConversationStore(tmp_path / "none").listing().all == []
    assert not (tmp_path / "none").exists()


words = st.text("abß -\n", max_size=6)


@given(said=st.lists(st.lists(st.tuples(words, words), min_size=1, max_size=3), max_size=4), typed=words)
def test_a_conversation_is_found_if_each_typed_word_begins_one_of_its_words(
    said: list[list[tuple[str, str]]], typed: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("talks")
    for number, talk in enumerate(said):
        write(folder, str(number), *(exchange(*one) for one in talk), title=f"t{number}")
    wanted = typed.casefold().replace("-", " ").split()
    found = set()
    for number, talk in enumerate(said):
        spoken = " ".join(f"{question} {answer}" for question, answer in talk).casefold().replace("-", " ").split()
        if all(any(word.startswith(one) for word in spoken) for one in wanted):
            found.add(f"t{number}")
    store = ConversationStore(folder)
    assert set(titles(store.listing(), typed)) == found
    store.close()
