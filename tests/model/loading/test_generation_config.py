"""What a checkpoint says of its own generation is read as far as it makes sense, and what is left out is said."""

import json
from pathlib import Path

import pytest

from ladechat.model.loading.generation_config import GenerationDefaults, read_generation_config


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            '{"do_sample": true, "temperature": 0.6, "top_p": 0.9, "eos_token_id": 2}',
            GenerationDefaults(do_sample=True, temperature=0.6, top_p=0.9, top_k=None),
        ),
        ('{"do_sample": false, "top_k": 20}', GenerationDefaults(False, None, None, 20)),
        ('{"temperature": 1}', GenerationDefaults(False, 1.0, None, None)),
        (
            '{"do_sample": "yes", "temperature": "hot", "top_p": NaN, "top_k": true}',
            None,
        ),
        ('{"eos_token_id": 2}', None),
        ("[]", None),
        ("{", None),
    ],
)
def test_what_the_file_says_is_what_is_shown(tmp_path: Path, text: str, found: GenerationDefaults | None) -> None:
    (tmp_path / "generation_config.json").write_text(text)
    assert read_generation_config(tmp_path).sampling == found


def test_a_checkpoint_without_the_file_says_nothing(tmp_path: Path) -> None:
    assert read_generation_config(tmp_path).sampling is None


@pytest.mark.parametrize("text", ["[]", "7", '"a"', "null", "", "{", "[" * 100_000, '{"a": ' + "1" * 5000 + "}"])
def test_a_file_that_is_no_object_is_left_out_and_said(tmp_path: Path, text: str) -> None:
    (tmp_path / "generation_config.json").write_text(text)
    file = read_generation_config(tmp_path)
    assert file.values is None and file.sampling is None
    (notice,) = file.left_out
    assert "generation_config.json" in notice and notice.endswith("it is left out.")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("temperature", "hot"), ("temperature", -1), ("temperature", float("inf")), ("do_sample", 1),
        ("top_p", 7), ("top_p", 0), ("top_k", -3), ("top_k", 2.5), ("top_k", 10**30), ("min_p", 1),
        ("repetition_penalty", 0), ("eos_token_id", "</s>"), ("eos_token_id", {}), ("bos_token_id", [1]),
    ],
)  # fmt: skip
def test_a_value_that_cannot_be_is_left_out_and_said_and_the_others_count(
    tmp_path: Path, key: str, value: object
) -> None:
    others = {"temperature": 0.6, "top_p": 0.9, "top_k": 5, "eos_token_id": [2, 3], "max_length": 9}
    (tmp_path / "generation_config.json").write_text(json.dumps({**others, key: value}))
    file = read_generation_config(tmp_path)
    assert file.values == {name: one for name, one in others.items() if name != key}
    (notice,) = file.left_out
    assert key in notice and json.dumps(value) in notice


def test_of_several_ends_those_that_are_ids_count(tmp_path: Path) -> None:
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": [2, "</s>", 3]}')
    file = read_generation_config(tmp_path)
    assert file.values == {"eos_token_id": [2, 3]}
    assert len(file.left_out) == 1 and "</s>" in file.left_out[0]


@pytest.mark.parametrize(
    "values", [{}, {"temperature": None, "top_k": None}, {"top_k": 0, "top_p": 1, "temperature": 0}]
)
def test_what_can_be_is_not_spoken_of(tmp_path: Path, values: dict[str, object]) -> None:
    (tmp_path / "generation_config.json").write_text(json.dumps(values))
    assert read_generation_config(tmp_path).left_out == ()
