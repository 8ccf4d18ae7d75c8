"""Questions: those that come along, and files of the same form."""

import os
from pathlib import Path

import pytest

from ladechat.bench.options import KINDS, BenchRefused
from ladechat.bench.questions import read_questions


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_eight_questions_of_the_turns_that_it_is_named_for(kind: str) -> None:
    questions = read_questions([kind])
    assert len(questions) >= 8 and {question.kind for question in questions} == {kind}
    turns = (3, 4) if kind == "multi_turn" else (1,)
    assert all(len(question.turns) in turns for question in questions)
    assert len({question.turns for question in questions}) == len(questions)


def test_the_texts_to_sum_up_have_100_to_200_words() -> None:
    for question in read_questions(["summary"]):
        task, _, text = question.turns[0].partition("\n\n")
        assert 100 <= len(text.split()) <= 200, task


def test_a_file_holds_questions_and_conversations_of_the_kind_that_it_is_named(tmp_path: Path) -> None:
    path = tmp_path / "letters.toml"
    path.write_text('prompts = ["Dear?", ["Who?", "Why?"]]', encoding="utf-8")
    first, second = read_questions([str(path)])
    assert (first.kind, first.name, first.turns) == ("letters", "letters 1", ("Dear?",))
    assert second.turns == ("Who?", "Why?")


OF_ANOTHER_FORM: dict[str, tuple[bytes | None, str]] = {
    "torn": (b"prompts = [", "not TOML"),
    "empty": (b"prompts = []", "no list named prompts"),
    "other name": (b'questions = ["a"]', "no list named prompts"),
    "text": (b'prompts = "a"', "no list named prompts"),
    "number": (b'prompts = ["a", 5]', "Question 2"),
    "empty turn": (b'prompts = ["a", []]', "Question 2"),
    "blank turn": (b'prompts = ["a", ["b", " "]]', "Question 2"),
    "bytes": (b"prompts = ['\xff']", "not UTF-8"),
    "nested": (b"prompts = " + b"[" * 100_000, "nested too deeply"),
    "long number": (b"a = 1\nprompts = " + b"9" * 5000, "too many digits .at line 2"),
    "list without an end": (b"prompts = [\n" + b"  [],\n" * 5_000, "not TOML.*at line 1"),
    "large": (b"#" * 10_000_001, "larger than 10 MB"),
    "none": (None, "No such file"),
}


@pytest.mark.parametrize("form", OF_ANOTHER_FORM)
def test_a_file_of_another_form_is_refused_with_what_is_wrong(tmp_path: Path, form: str) -> None:
    path, (content, named) = tmp_path / "questions.toml", OF_ANOTHER_FORM[form]
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BenchRefused, match=named) as caught:
        read_questions([str(path)])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("sources", [["poems"], []])
def test_questions_that_do_not_exist_are_refused_with_those_that_do(sources: list[str]) -> None:
    with pytest.raises(BenchRefused, match="multi_turn"):
        read_questions(sources)


def test_a_device_in_place_of_a_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    with pytest.raises(BenchRefused, match="a device or a pipe"):
        read_questions([str(tmp_path / "pipe.toml")])


def test_a_byte_order_mark_is_no_part_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_bytes(b'\xef\xbb\xbfprompts = ["Why?"]\r\n')
    assert [question.turns for question in read_questions([str(tmp_path / "mine.toml")])] == [("Why?",)]
