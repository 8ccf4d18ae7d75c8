"""`ladechat conversations`: list, show, export, rename and delete from the shell."""

import json
from pathlib import Path

import pytest

from ladechat.session.conversations.store import ConversationStore
from tests.command_line import check_refused, check_runs
from tests.session.conversations import exchange, write


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder with two conversations, in the user's data folder."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    folder = ConversationStore().folder
    folder.mkdir(parents=True)
    said = exchange("What is the pool?", "A **store** of n-grams.", model="org/Llama")
    write(folder, "2020-01-02-000000-aaaaaaaa", said, exchange("And W?"), when="2020-01-02T12:00:00")
    write(folder, "2020-01-01-000000-bbbbbbbb", exchange("Hello?"), title="Greetings", when="2020-01-01T12:00:00")
    return folder


def titles() -> list[str]:
    return [one.title for one in ConversationStore().conversations()]


def test_the_list_has_names_dates_and_titles(folder: Path) -> None:
    first, second = check_runs("conversations", "list").stdout.splitlines()
    assert first.split()[0] == "aaaaaaaa" and "02 Jan 2020, 12:00" in first and "2 questions" in first
    assert first.endswith("What is the pool?") and second.endswith("1 question  Greetings")


def test_the_list_can_be_searched_and_shows_where_it_was_said(folder: Path) -> None:
    row, excerpt = check_runs("conversations", "list", "store of n").stdout.splitlines()
    assert row.startswith("aaaaaaaa") and "… A **store** of n-grams. …" in excerpt
    assert check_runs("conversations", "list", "nowhere").stdout == ""


def test_json_has_all_of_it(folder: Path) -> None:
    first, second = json.loads(check_runs("conversations", "list", "--json").stdout)
    facts = {"name": "aaaaaaaa", "title": "What is the pool?", "questions": 2, "model": "demo", "pinned": False}
    assert facts.items() <= first.items()
    assert second["file"] == str(folder / "2020-01-01-000000-bbbbbbbb.jsonl")
    shown = json.loads(check_runs("conversations", "show", "aaaaaaaa", "--json").stdout)
    assert [one["question"] for one in shown["exchanges"]] == ["What is the pool?", "And W?"]
    assert shown["exchanges"][0]["answer"] == "A **store** of n-grams."


def test_a_conversation_is_shown_as_it_was_written_in_a_pipe(folder: Path) -> None:
    shown = check_runs("conversations", "show", "what is").stdout
    assert shown.startswith("## You\n\nWhat is the pool?\n\n## Llama\n\nA **store** of n-grams.\n\n## You\n\nAnd W?")


@pytest.mark.parametrize("start", ["aaaa", "2020-01-02", "WHAT"])
def test_the_start_of_a_name_or_title_is_enough_to_show_it(folder: Path, start: str) -> None:
    assert "What is the pool?" in check_runs("conversations", "show", start).stdout


def test_a_conversation_is_made_a_page_markdown_or_json(folder: Path, tmp_path: Path) -> None:
    for ending, words in ((".html", "<h1>Greetings</h1>"), (".md", "# Greetings\n"), (".json", '"title": "Greetings"')):
        check_runs("conversations", "export", "greetings", tmp_path / f"out{ending}")
        text = (tmp_path / f"out{ending}").read_text()
        assert words in text and "Hello?" in text and "What is the pool?" not in text
    check_refused("conversations", "export", "greetings", tmp_path / "out.md", says="exists already")
    check_runs("conversations", "export", "greetings", tmp_path / "out.md", "--force")
    check_refused("conversations", "export", "greetings", tmp_path / "out.gif", says=".html, .md or .json")


def test_a_conversation_is_renamed(folder: Path) -> None:
    assert (
        check_runs("conversations", "rename", "bbbbbbbb", "On the n-gram pool").stdout
        == "Renamed: On the n-gram pool\n"
    )
    assert titles() == ["What is the pool?", "On the n-gram pool"]
    renamed = json.loads(check_runs("conversations", "rename", "On the", "", "--json").stdout)
    assert renamed["title"] == "Hello?" and titles() == ["What is the pool?", "Hello?"]


def test_only_a_whole_name_or_title_deletes_and_nothing_is_left(folder: Path) -> None:
    for start in ("Greet", "bbbb", "2020-01-01"):
        check_refused("conversations", "delete", start, says=f"There is no conversation {start!r}")
    assert check_runs("conversations", "delete", "greetings").stdout == "Deleted: Greetings\n"
    assert titles() == ["What is the pool?"]
    assert not [path for path in folder.iterdir() if "bbbbbbbb" in path.name]
    assert check_runs("conversations", "list", "hello").stdout == ""


def test_what_is_open_is_not_deleted(folder: Path) -> None:
    store = ConversationStore()
    store.open(store.conversations()[0])
    check_refused("conversations", "delete", "aaaaaaaa", says="is open in a ladechat")
    assert len(titles()) == 2


def test_without_conversations_the_list_is_empty(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert check_runs("conversations", "list").stdout == ""
    assert json.loads(check_runs("conversations", "list", "--json").stdout) == []
    check_refused("conversations", "show", "x", says="There is no conversation 'x'")
