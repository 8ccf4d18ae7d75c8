"""A tokenizer does what tokenizer.json says, whatever class its checkpoint names."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer
from transformers import AutoTokenizer, PreTrainedTokenizerBase, PreTrainedTokenizerFast

from ladechat.engine.detokenizer import joins_texts
from ladechat.model.loading.tokenizer import TELLING, checkpoint_tokenizer
from tests.engine.tokenizers import ALL, byte_level, sentencepiece
from tests.model.refusals import assert_refused
from tests.scripted_checkpoint import CHATML, change
from tests.tiny import DEMO

CLASSES = ["LlamaTokenizerFast", "LlamaTokenizer", "GemmaTokenizerFast", "T5TokenizerFast", "BertTokenizer"]
CLASSES += ["Qwen2Tokenizer"]
"""Some that transformers builds anew, and some that it cannot build from this vocabulary at all."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of a byte-level tokenizer with a template."""
    byte_level().save_pretrained(tmp_path)
    (tmp_path / "chat_template.jinja").write_text(CHATML)
    return tmp_path


def assert_is_that_of_the_file(tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    file = Tokenizer.from_file(str(folder / "tokenizer.json"))
    for text in (*TELLING, "", "<s> a </s>b", " ".join(file.get_vocab())):
        token_ids = file.encode(text, add_special_tokens=False).ids
        assert tokenizer.encode(text, add_special_tokens=False) == token_ids
        decoded = tokenizer.decode(token_ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)
        assert decoded == file.decode(token_ids, skip_special_tokens=False)


@pytest.mark.parametrize("name", CLASSES)
def test_a_byte_level_vocabulary_under_the_name_of_another_class_keeps_its_spaces(name: str, folder: Path) -> None:
    change(folder / "tokenizer_config.json", tokenizer_class=name)
    tokenizer = checkpoint_tokenizer(folder, "the model")
    assert_is_that_of_the_file(tokenizer, folder)
    assert tokenizer.decode(tokenizer.encode("Hello world, how are you?")) == "Hello world, how are you?"
    assert tokenizer.chat_template == CHATML
    assert tokenizer.special_tokens_map == byte_level().special_tokens_map
    assert joins_texts(tokenizer)


def test_a_class_that_transformers_builds_anew_really_loses_them(folder: Path) -> None:
    """Or the test above would hold without any of this."""
    change(folder / "tokenizer_config.json", tokenizer_class="LlamaTokenizerFast")
    made = AutoTokenizer.from_pretrained(folder)
    if made.decode(made.encode("the cat", add_special_tokens=False)) == "the cat":
        pytest.skip("this transformers takes the file, whatever class is named")


@pytest.mark.parametrize("name", ["LlamaTokenizerFast", "GPT2Tokenizer", "PreTrainedTokenizerFast", "NoSuchTokenizer"])
def test_a_sentencepiece_vocabulary_is_read_as_its_file_has_it(name: str, tmp_path: Path) -> None:
    sentencepiece().save_pretrained(tmp_path)
    change(tmp_path / "tokenizer_config.json", tokenizer_class=name)
    assert_is_that_of_the_file(checkpoint_tokenizer(tmp_path, "the model"), tmp_path)


@pytest.mark.parametrize("kind", ALL)
def test_where_transformers_makes_what_the_file_says_its_tokenizer_is_taken(kind: str, tmp_path: Path) -> None:
    ALL[kind]().save_pretrained(tmp_path)
    tokenizer = checkpoint_tokenizer(tmp_path, "the model")
    assert_is_that_of_the_file(tokenizer, tmp_path)
    assert type(tokenizer) is type(AutoTokenizer.from_pretrained(tmp_path))


@pytest.mark.parametrize(
    "changes",
    [
        {"normalizer": {"type": "Lowercase"}},
        {"normalizer": {"type": "NFKC"}},
        {"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}},
        {"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}},
        {"truncation": {"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0}},
    ],
    ids=["lower case", "composed", "a space in front", "one part", "cut off"],
)
@pytest.mark.parametrize("name", ["GPT2Tokenizer", "Qwen2Tokenizer", "LlamaTokenizerFast"])
def test_each_part_of_the_file_counts(name: str, changes: dict[str, Any], folder: Path) -> None:
    change(folder / "tokenizer_config.json", tokenizer_class=name)
    file = folder / "tokenizer.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))
    tokenizer = checkpoint_tokenizer(folder, "the model")
    if "truncation" in changes:
        assert len(tokenizer.encode("the cat sat on the mat")) > 3
        file.write_text(json.dumps({**json.loads(file.read_text()), "truncation": None}))
    assert_is_that_of_the_file(tokenizer, folder)


def test_a_space_in_front_that_tokenizer_config_asks_for_is_not_added(folder: Path) -> None:
    change(folder / "tokenizer_config.json", tokenizer_class="GPT2Tokenizer", add_prefix_space=True)
    assert_is_that_of_the_file(checkpoint_tokenizer(folder, "the model"), folder)


def test_an_added_token_is_cut_out_as_the_file_says_and_not_as_tokenizer_config_does(folder: Path) -> None:
    flags = ("lstrip", "rstrip", "normalized", "single_word", "special")
    strips = {"content": "<s>", **dict.fromkeys(flags, True)}
    change(folder / "tokenizer_config.json", added_tokens_decoder={"1": strips})
    assert_is_that_of_the_file(checkpoint_tokenizer(folder, "the model"), folder)


@pytest.mark.parametrize("name", ["LlamaTokenizerFast", "PreTrainedTokenizerFast"])
def test_tokens_that_other_files_add_are_there_behind_those_of_the_file(name: str, folder: Path) -> None:
    size = Tokenizer.from_file(str(folder / "tokenizer.json")).get_vocab_size()
    change(folder / "tokenizer_config.json", tokenizer_class=name, eos_token="<stop>")
    tokenizer = checkpoint_tokenizer(folder, "the model")
    assert_is_that_of_the_file(tokenizer, folder)
    assert tokenizer.eos_token == "<stop>" and tokenizer.encode("<stop>", add_special_tokens=False) == [size]


def test_the_bundled_model_s_tokenizer_is_that_of_its_file() -> None:
    assert_is_that_of_the_file(checkpoint_tokenizer(DEMO, "demo"), DEMO)


def test_a_checkpoint_without_the_file_has_what_transformers_makes_of_its_others(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of tokenizer.model alone."""
    (folder / "tokenizer.json").unlink()
    monkeypatch.setattr(AutoTokenizer, "from_pretrained", lambda *_, **__: byte_level())
    assert checkpoint_tokenizer(folder, "the model") is byte_level()


def assert_no_tokenizer(folder: Path, says: str) -> None:
    assert_refused(lambda: checkpoint_tokenizer(folder, "the model"), "load_failed", says)


@pytest.mark.parametrize("content", ["[]", "7", "", "{", "\0", '{"model": {"type": "Nonsense"}}'])
def test_a_file_that_is_no_tokenizer_is_named(content: str, folder: Path) -> None:
    (folder / "tokenizer.json").write_text(content)
    assert_no_tokenizer(folder, "The tokenizer.json of the model cannot be read")


@pytest.mark.parametrize("changes", [{"eos_token": 5}, {"added_tokens_decoder": []}, {"extra_special_tokens": 3}])
def test_entries_that_no_tokenizer_can_have_are_refused_without_python_s_words(
    changes: dict[str, Any], folder: Path
) -> None:
    change(folder / "tokenizer_config.json", **changes)
    says = "cannot be built from its tokenizer.json"
    error = assert_refused(lambda: checkpoint_tokenizer(folder, "the model"), "load_failed", says)
    assert "class" not in str(error) and "object" not in str(error)


def test_a_tokenizer_that_cannot_be_made_what_the_file_says_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a later version of transformers does to the one that it is given."""
    monkeypatch.setattr(PreTrainedTokenizerFast, "encode", lambda *_, **__: [1, 2, 3])
    assert_no_tokenizer(folder, "asks for another tokenizer than its tokenizer.json holds")


def test_no_tokenizer_at_all_is_said(tmp_path: Path) -> None:
    shutil.copy(DEMO / "config.json", tmp_path)
    assert_no_tokenizer(tmp_path, "has no tokenizer that can be read")
