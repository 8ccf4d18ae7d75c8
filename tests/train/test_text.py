"""The text to train on: what the model writes, kept batch by batch; or a file."""

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch

from ladechat.model.loaded import LoadedModel
from ladechat.train.chunks import Text
from ladechat.train.options import TrainRefused
from ladechat.train.text import TextFile, Writer, read_text, up_to, write_text

MADE_BY: dict[str, Any] = {"base": "b", "seed": 0}
VOCABULARY = 10**5


def writer(loaded: LoadedModel, **changes: Any) -> Writer:
    return Writer(**{"loaded": loaded, "longest": 12, "temperature": 0.7, "seed": 1, **changes})


def write(path: Path, by: Writer, tokens: int) -> TextFile:
    file = TextFile(path, MADE_BY, VOCABULARY)
    write_text(file, by, tokens, lambda count: None)
    return file


def test_a_chat_model_writes_a_message_and_answers_it(loaded: LoadedModel) -> None:
    texts = writer(loaded).batch(0, 4)
    assert texts
    for one in texts:
        prompt = str(loaded.tokenizer.decode(one.tokens[: one.answer]))
        assert prompt.startswith("<s>") and "[INST]" in prompt and prompt.rstrip().endswith("[/INST]")
        assert 0 < len(one.tokens) - one.answer <= 12


def test_a_batch_is_the_same_again_and_another_number_another(loaded: LoadedModel) -> None:
    batch = writer(loaded).batch(3, 3)
    assert writer(loaded).batch(3, 3) == batch
    assert writer(loaded).batch(4, 3) != batch
    assert writer(loaded, seed=2).batch(3, 3) != batch


def test_numbers_that_others_draw_while_a_batch_is_written_do_not_come_again(loaded: LoadedModel) -> None:
    torch.manual_seed(0)
    expected = torch.rand(1000).tolist()
    torch.manual_seed(0)
    drawn: list[float] = []
    watching = loaded.model.register_forward_pre_hook(lambda *given: drawn.append(float(torch.rand(()))))
    batch = writer(loaded).batch(3, 3)
    watching.remove()
    assert len(drawn) > 10
    drawn += torch.rand(1000 - len(drawn)).tolist()
    assert drawn == expected
    assert batch == writer(loaded).batch(3, 3)


def test_how_a_model_would_sample_by_itself_changes_nothing(
    loaded: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = writer(loaded).batch(3, 3)
    for name, value in (("top_p", 0.01), ("top_k", 2), ("temperature", 0.1), ("do_sample", True)):
        monkeypatch.setattr(loaded.model.generation_config, name, value)
    assert writer(loaded).batch(3, 3) == batch


def test_answers_without_temperature_are_those_of_plain_decoding(loaded: LoadedModel) -> None:
    for one in writer(loaded, temperature=0.0).batch(0, 3):
        prompt = torch.tensor([one.tokens[: one.answer]])
        expected = loaded.model.generate(
            prompt, do_sample=False, max_new_tokens=12, eos_token_id=sorted(loaded.eos_ids)
        )
        assert one.tokens == expected[0].tolist()[: len(one.tokens)]


def test_a_model_without_template_goes_on_from_its_beginning(
    loaded: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loaded.tokenizer, "chat_template", None)
    texts = writer(loaded).batch(0, 3)
    assert texts and all(one.tokens[0] == loaded.tokenizer.bos_token_id and one.answer == 1 for one in texts)


@pytest.mark.parametrize("cut", [*(pytest.param(cut, marks=pytest.mark.full) for cut in (0, 1, 2000)), 30])
def test_text_goes_on_after_a_kill_as_if_there_had_been_none(loaded: LoadedModel, tmp_path: Path, cut: int) -> None:
    whole = write(tmp_path / "whole", writer(loaded), 6000)
    part = tmp_path / "part"
    write(part, writer(loaded), 3000)
    part.write_bytes(part.read_bytes()[: -cut or None])
    assert write(part, writer(loaded), 6000).texts == whole.texts
    assert part.read_bytes() == (tmp_path / "whole").read_bytes()


def test_a_full_disk_keeps_what_was_written(
    loaded: LoadedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "text"
    first = write(path, writer(loaded), 300).texts

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", full)
        with pytest.raises(OSError, match="No space"):
            write(path, writer(loaded), 10_000)
    assert TextFile(path, MADE_BY, VOCABULARY).texts[: len(first)] == first


def test_text_of_another_model_or_seed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "text"
    TextFile(path, MADE_BY, VOCABULARY).add([Text([1, 2, 3], 1)])
    with pytest.raises(TrainRefused, match="another seed"):
        TextFile(path, {**MADE_BY, "seed": 1}, VOCABULARY)
    assert TextFile(path, MADE_BY, VOCABULARY).texts == [Text([1, 2, 3], 1)]


@pytest.mark.parametrize(
    "line",
    [b"garbage\n", b"[]\n", b'{"format": "other"}\n', b"\xff\xfe\n", b"[" * 100_000 + b"\n", b"9" * 5000 + b"\n"],
)
def test_a_file_of_something_else_is_refused(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "text"
    path.write_bytes(line)
    with pytest.raises(TrainRefused):
        TextFile(path, MADE_BY, VOCABULARY)
    TextFile(tmp_path / "own", MADE_BY, VOCABULARY)
    (tmp_path / "own").open("ab").write(b'{"texts": [[0, ["a"]]]}\n')
    with pytest.raises(TrainRefused, match="damaged"):
        TextFile(tmp_path / "own", MADE_BY, VOCABULARY)


@pytest.mark.parametrize(
    "texts",
    [[[0, []]], [[0, [5, 6]], [0, []]], [[0, [5, -1]]], [[-1, [5, 6]]], [[3, [5, 6]]]],
    ids=["all empty", "one empty", "negative id", "answer before the text", "answer after the text"],
)
def test_texts_that_nobody_wrote_are_damage(loaded: LoadedModel, tmp_path: Path, texts: list[Any]) -> None:
    path = tmp_path / "own.jsonl"
    TextFile(path, MADE_BY, VOCABULARY)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"texts": texts}) + "\n")
    for again in (lambda: TextFile(path, MADE_BY, VOCABULARY), lambda: read_text(path, loaded.tokenizer, 20)):
        with pytest.raises(TrainRefused, match=r"own\.jsonl is damaged"):
            again()


def test_a_text_to_go_on_with_that_holds_ids_beyond_the_vocabulary_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    TextFile(path, MADE_BY, VOCABULARY).add([Text([1, VOCABULARY - 1], 1)])
    assert len(TextFile(path, MADE_BY, VOCABULARY).texts) == 1
    with pytest.raises(TrainRefused, match="damaged"):
        TextFile(path, MADE_BY, VOCABULARY - 1)


@pytest.mark.parametrize("name", ["pipe.txt", "pipe.text.jsonl"])
def test_a_pipe_is_no_text_and_not_waited_for(loaded: LoadedModel, tmp_path: Path, name: str) -> None:
    os.mkfifo(path := tmp_path / name)
    with pytest.raises(TrainRefused, match="cannot be read: it is a named pipe"):
        read_text(path, loaded.tokenizer, 20)


def test_a_model_that_says_nothing_is_not_asked_for_ever(
    loaded: LoadedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Writer, "batch", lambda *given: [])
    with pytest.raises(TrainRefused, match="give --text"):
        write(tmp_path / "text", writer(loaded), 10)


def test_text_of_a_file(loaded: LoadedModel, tmp_path: Path) -> None:
    path = tmp_path / "own.txt"
    path.write_text("one two three " * 50, encoding="utf-8")
    (one,) = read_text(path, loaded.tokenizer, 20)
    assert len(one.tokens) == 20 and one.answer == 0
    ours = tmp_path / "earlier.text.jsonl"
    TextFile(ours, MADE_BY, VOCABULARY).add([Text([5, 6], 1), Text([7, 8, 9], 2)])
    assert read_text(ours, loaded.tokenizer, 100) == [Text([5, 6], 1), Text([7, 8, 9], 2)]
    assert list(up_to(read_text(ours, loaded.tokenizer, 100), 2)) == [Text([5, 6], 1)]


@pytest.mark.parametrize(("content", "why"), [(b"", "no text"), (b"  \n", "no text"), (b"\xff\xfe\x00", "UTF-8")])
def test_a_file_without_text_is_refused(loaded: LoadedModel, tmp_path: Path, content: bytes, why: str) -> None:
    path = tmp_path / "own.txt"
    path.write_bytes(content)
    with pytest.raises(TrainRefused, match=why):
        read_text(path, loaded.tokenizer, 20)
    other = tmp_path / "other.jsonl"
    other.write_text(json.dumps({}) + "\n" + json.dumps({"texts": [[0, [10**6]]]}) + "\n")
    with pytest.raises(TrainRefused, match="does not have"):
        read_text(other, loaded.tokenizer, 20)
