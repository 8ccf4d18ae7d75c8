"""Questions of earlier sessions: a private file of bounded length, that several programs may add to."""

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from ladechat.session.conversations import prompt_history
from ladechat.session.conversations.prompt_history import PromptHistory


@given(questions=st.lists(st.text(min_size=1), max_size=8))
def test_what_was_asked_comes_back_in_order_also_from_two_writers(
    questions: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("history") / "data" / "questions.jsonl"
    writers = PromptHistory(path), PromptHistory(path)
    for place, question in enumerate(questions):
        writers[place % 2].add(question)
    alike = [one for place, one in enumerate(questions) if place == 0 or questions[place - 1] != one]
    assert PromptHistory(path).read() == (alike, "")


def test_only_its_user_can_read_it(tmp_path: Path) -> None:
    history = PromptHistory(tmp_path / "questions.jsonl")
    history.add("One?")
    assert (tmp_path / "questions.jsonl").stat().st_mode & 0o777 == 0o600


def test_it_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prompt_history, "MOST_QUESTIONS", 3)
    path = tmp_path / "questions.jsonl"
    for number in range(8):
        PromptHistory(path).add(f"{number}?")
    assert PromptHistory(path).read() == (["5?", "6?", "7?"], "")
    assert path.read_bytes().count(b"\n") == 3 and path.stat().st_mode & 0o777 == 0o600
    PromptHistory(path).add("x" * (prompt_history.MOST_CHARACTERS + 1))
    assert PromptHistory(path).read()[0][-1] == "7?"


def test_a_file_that_is_a_link_is_shortened_where_the_link_leads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prompt_history, "MOST_QUESTIONS", 3)
    real, link = tmp_path / "real.jsonl", tmp_path / "questions.jsonl"
    real.write_text("".join(f'"{number}?"\n' for number in range(8)))
    link.symlink_to(real)
    assert PromptHistory(link).read() == (["5?", "6?", "7?"], "")
    assert link.is_symlink() and real.read_bytes().count(b"\n") == 3


@pytest.mark.parametrize("damage", [b"\xff\n", b"{}\n", b"[" * 100_000 + b"\n", b'"half'])
def test_damage_costs_nothing_else(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_bytes(b'"One?"\n' + damage)
    assert PromptHistory(path).read() == (["One?"], "")


def test_a_last_line_without_its_end_swallows_no_question(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_bytes(b'"One?"')
    PromptHistory(path).add("Two?")
    assert PromptHistory(path).read() == (["One?", "Two?"], "")


def test_a_history_that_cannot_be_written_or_read_is_empty(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    history = PromptHistory(tmp_path / "taken" / "questions.jsonl")
    history.add("One?")
    assert history.read() == ([], "")
