"""GGUF files unpacked by transformers: the tokens of the same weights in safetensors, or one sentence why not."""

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import gguf
import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType as Kind
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ladechat.decoder.loop import Decoder
from ladechat.engine.chat_format import ChatFormat
from ladechat.model.checkpoint.fetch import UNPACKING_PACKAGES, fetch
from ladechat.model.checkpoint.files import LoadErrorCode, in_words
from ladechat.model.load import load
from ladechat.model.loaded import LoadedModel
from ladechat.model.loading import needed_memory
from ladechat.model.loading.gguf_file import read_gguf
from ladechat.model.loading.gguf_tokenizer import gguf_tokenizer
from ladechat.protocol import Message
from ladechat.registry import lookahead
from tests.checkpoints import load_on_cpu, save
from tests.engine.tokenizers import RESERVED, TEXTS, byte_level, encoded, sentencepiece, token_id
from tests.gguf_files import TEMPLATE, packed_and_unpacked, write_gguf
from tests.model.refusals import assert_refused
from tests.tiny import new_model, random_model, run, tokens_of

QUESTION = [{"role": "user", "content": "the dog and the name of the river"}]
TALK = [*QUESTION, {"role": "assistant", "content": "the Rhine"}, {"role": "user", "content": "Größe? 你"}]
LLAMA_3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}


@cache
def model_of(model_type: str = "llama", **changes: Any) -> PreTrainedModel:
    """With fewer heads for keys than for queries, and rows that the blocks of Q8_0 divide."""
    wide = {"hidden_size": 64, "intermediate_size": 96, "head_dim": 128 if model_type == "qwen3" else 16}
    return random_model(0, model_type, vocab_size=len(tokenizer_of(model_type)), **wide, **changes)


def tokenizer_of(model_type: str) -> PreTrainedTokenizerBase:
    return sentencepiece() if model_type == "llama" else byte_level()


def from_safetensors(folder: Path, model: PreTrainedModel, weights: dict[str, torch.Tensor] | None = None) -> Path:
    """The checkpoint in the usual format, with the same chat template."""
    save(folder, model, tokenizer_of(str(model.config.model_type)), state_dict=weights or model.state_dict())
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    return folder


def written(folder: Path, model_type: str = "llama", **changes: Any) -> Path:
    """A file of the model of this type; the changes are those of `write_gguf`."""
    return write_gguf(folder / "tiny.gguf", model_of(model_type), tokenizer_of(model_type), **changes)


def loaded(path: Path, dtype: str = "auto", **options: Any) -> LoadedModel:
    return load_on_cpu(path, dtype, path.name, packed=False if path.suffix == ".gguf" else None, **options)


def tokenizer_in(path: Path) -> PreTrainedTokenizerBase:
    return gguf_tokenizer(read_gguf(path, path.name))


def prompt_of(model: LoadedModel, talk: list[dict[str, str]]) -> list[int]:
    text = model.tokenizer.apply_chat_template(talk, tokenize=False)
    return encoded(model.tokenizer, str(text))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return written(tmp_path)


@pytest.fixture(scope="module", autouse=True)
def _names_are_mapped_once() -> Iterator[None]:
    """transformers asks for the names of a type's tensors again for each module of a model."""
    with patch("gguf.get_tensor_name_map", cache(gguf.get_tensor_name_map)):
        yield


# --- the same model ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Kind.F32, Kind.Q8_0], ids=lambda kind: kind.name)
@pytest.mark.parametrize("model_type", ["llama", "qwen2", "qwen3"])
def test_every_decoder_writes_the_tokens_of_the_same_weights_in_safetensors(
    tmp_path: Path, model_type: str, kind: Kind
) -> None:
    model = model_of(model_type)
    packed = loaded(written(tmp_path, model_type, kind=kind))
    weights = model.state_dict() if kind == Kind.F32 else packed_and_unpacked(model, kind)
    usual = loaded(from_safetensors(tmp_path / "usual", model, weights))
    for talk in (QUESTION, TALK):
        prompt = prompt_of(usual, talk)
        assert prompt_of(packed, talk) == prompt
        expected = tokens_of(run(Decoder(usual.runner), prompt))
        assert len(set(expected)) > 3
        assert tokens_of(run(Decoder(packed.runner), prompt)) == expected
        assert tokens_of(run(lookahead(packed.runner), prompt)) == expected


def test_the_facts_are_those_of_the_model_and_how_its_file_is_packed(tmp_path: Path, file: Path) -> None:
    usual = loaded(from_safetensors(tmp_path / "usual", model_of()))
    plain, packed = loaded(file), loaded(write_gguf(tmp_path / "q.gguf", model_of(), sentencepiece(), Kind.Q8_0))
    facts = ("model_type", "parameters", "layers", "vocabulary", "context_length", "device", "dtype", "eos_ids")
    for fact in facts:
        assert getattr(plain, fact) == getattr(packed, fact) == getattr(usual, fact), fact
    assert (plain.quantization, packed.quantization) == (None, "Q8_0, unpacked")
    assert plain.tokenizer_fingerprint == packed.tokenizer_fingerprint
    assert plain.runner.capabilities.tree_attention


def test_another_vocabulary_has_another_fingerprint(tmp_path: Path, file: Path) -> None:
    other = write_gguf(
        tmp_path / "other.gguf", model_of(), sentencepiece(), facts={"tokenizer.ggml.eot_token_id": ("add_uint32", 9)}
    )
    assert read_gguf(other, "other").tokenizer_fingerprint != read_gguf(file, "tiny").tokenizer_fingerprint


def test_an_answer_ends_where_the_file_says_and_not_where_transformers_would_guess(tmp_path: Path) -> None:
    ends = {"tokenizer.ggml.eot_token_id": ("add_uint32", 300), "tokenizer.ggml.eom_token_id": ("add_uint32", 301)}
    model = loaded(written(tmp_path, facts=ends))
    assert model.eos_ids == {sentencepiece().eos_token_id, 300, 301}


def test_an_answer_of_a_file_ends_where_its_template_ends_a_turn(tmp_path: Path) -> None:
    template = "{% for m in messages %}{{ m.role + m.content + '" + RESERVED + "' }}{% endfor %}"
    model = loaded(written(tmp_path, "qwen2", template=template))
    assert model.eos_ids == {byte_level().eos_token_id, token_id(byte_level(), RESERVED)}
    assert [notice for notice in model.notices if RESERVED in notice]


MARKED = (
    "{% for m in messages %}{{ '<|reserved|>' + m.role + '\n' + m.content + '[END]\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|reserved|>assistant\n' }}{% endif %}"
)


def test_marks_that_a_file_takes_for_usual_tokens_are_marks_by_their_text(tmp_path: Path) -> None:
    tokenizer = byte_level.__wrapped__()
    tokenizer.add_tokens(["[END]", "[WORD]", "<|of_no_template|>"])
    kinds = [gguf.TokenType.CONTROL if n < 3 else gguf.TokenType.NORMAL for n in range(len(tokenizer))]
    facts = {"tokenizer.ggml.token_type": ("add_array", [int(kind) for kind in kinds])}
    model = random_model(0, "qwen2", vocab_size=len(tokenizer), hidden_size=64, head_dim=16)
    model_of_file = loaded(write_gguf(tmp_path / "tiny.gguf", model, tokenizer, facts=facts, template=MARKED))
    built, end = model_of_file.tokenizer, token_id(tokenizer, "[END]")
    marks = {str(token) for token in built.added_tokens_decoder.values()}
    assert {RESERVED, "[END]", "<|of_no_template|>"} <= marks and "[WORD]" not in marks
    assert end in model_of_file.eos_ids
    prompt = ChatFormat(built).encode([Message(role="user", content="the cat [END]")])
    assert prompt.count(end) == 1 and prompt.count(token_id(tokenizer, RESERVED)) == 2


@pytest.mark.parametrize("end", [None, 10**6])
def test_where_no_end_is_named_that_the_model_has_answers_end_at_the_known_ones(
    tmp_path: Path, end: int | None
) -> None:
    facts: Any = {} if end is None else {"tokenizer.ggml.eos_token_id": ("add_uint32", end)}
    named = "eos_token_id" if end is None else "nothing"
    model = loaded(written(tmp_path, facts=facts, without=[named]))
    assert token_id(sentencepiece(), "</s>") in model.eos_ids
    assert end is None or [notice for notice in model.notices if "1000000 is named" in notice]


def test_the_generation_config_of_another_model_beside_a_file_is_not_its_own(tmp_path: Path) -> None:
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": 5}')
    model = loaded(written(tmp_path))
    assert model.eos_ids == {sentencepiece().eos_token_id}


def test_a_file_of_the_same_name_where_the_program_was_started_is_another_one(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    write_gguf(tmp_path / "here" / file.name, random_model(1, vocab_size=len(sentencepiece())), sentencepiece())
    monkeypatch.chdir(tmp_path / "here")
    assert loaded(file).parameters == model_of().num_parameters()


@pytest.mark.parametrize("factor", [8.0, 32.0])
def test_the_rotary_angles_of_llama_3_are_those_that_the_file_gives(tmp_path: Path, factor: float) -> None:
    rope = {"rope_type": "llama3", "rope_theta": 500_000.0, "factor": factor, **LLAMA_3}
    model = new_model(0, vocab_size=len(sentencepiece()), head_dim=64, rope_parameters=rope)
    plain = 500_000.0 ** -(torch.arange(0, 32) / 32)
    scaled: Any = model.model.rotary_emb.inv_freq
    factors = (plain / scaled).numpy().astype(np.float32)
    path = write_gguf(tmp_path / "tiny.gguf", model, sentencepiece(), tensors={"rope_freqs.weight": factors})
    found: Any = loaded(path).model.model.rotary_emb.inv_freq
    assert torch.equal(found, scaled) and not torch.allclose(scaled, plain)


# --- its tokenizer ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model_type", ["llama", "qwen2"])
def test_the_tokenizer_is_that_of_the_model(tmp_path: Path, model_type: str) -> None:
    original = tokenizer_of(model_type)
    built = tokenizer_in(written(tmp_path, model_type))
    for text in (*TEXTS, "<s>the cat</s> the\n\n mat<|reserved|>", "", " "):
        ids = encoded(original, text)
        assert encoded(built, text) == ids
        assert built.decode(ids) == original.decode(ids)
        assert built.decode(ids, skip_special_tokens=True) == original.decode(ids, skip_special_tokens=True)
    for role in ("bos_token", "eos_token", "unk_token"):
        assert getattr(built, role) == getattr(original, role)
    assert len(built) == len(original)


@pytest.mark.parametrize(
    ("splitting", "parts"),
    [
        ("gpt-2", ["say", " 12345", " (", "don", "'t", ")", "\n", "\n", "x"]),
        ("llama-bpe", ["say", " ", "123", "45", " (", "don", "'t", ")\n\n", "x"]),
        ("qwen2", ["say", " ", "1", "2", "3", "4", "5", " (", "don", "'t", ")\n\n", "x"]),
        ("smollm", ["say", " ", "1", "2", "3", "4", "5", " (", "don", "'t", ")", "\n", "\n", "x"]),
    ],
)
def test_a_text_is_cut_by_the_rule_of_its_model(tmp_path: Path, splitting: str, parts: list[str]) -> None:
    facts = {"tokenizer.ggml.pre": ("add_string", splitting)}
    path = written(tmp_path, "qwen2", facts=facts)
    backend = tokenizer_in(path).backend_tokenizer
    text = "say 12345 (don't)\n\nx"
    assert [text[start:end] for _, (start, end) in backend.pre_tokenizer.pre_tokenize_str(text)] == parts


# --- what is refused --------------------------------------------------------------------------------------------------


ARCHITECTURE, DAMAGED = "unsupported_architecture", "load_failed"
FREQUENCIES = "rope_freqs.weight"


@pytest.mark.parametrize(
    ("model_type", "facts", "tensors", "code", "says"),
    [
        ("llama", {"general.architecture": ("add_string", "rwkv9")}, {}, ARCHITECTURE, "the type 'rwkv9'"),
        ("llama", {"llama.rope.scaling.type": ("add_string", "yarn")}, {}, ARCHITECTURE, "stretched (yarn)"),
        ("llama", {}, {"blk.0.attn_q.lora": np.ones((2, 2), np.float32)}, ARCHITECTURE, "blk.0.attn_q.lora"),
        ("llama", {}, {FREQUENCIES: np.full(8, 2, np.float32)}, ARCHITECTURE, "not those of Llama 3"),
        ("qwen2", {}, {FREQUENCIES: np.full(8, 8, np.float32)}, ARCHITECTURE, "factors for the rotary angles"),
        ("llama", {}, {"blk.1.ffn_up.weight": None}, DAMAGED, "lacks 1 of the weights"),
        (
            "llama",
            {},
            {"blk.1.ffn_up.weight": np.ones((8, 8), np.float32)},
            DAMAGED,
            "1.mlp.up_proj.weight has another",
        ),
        ("llama", {"split.count": ("add_uint16", 3)}, {}, DAMAGED, "one of 3 parts"),
        ("llama", {"tokenizer.ggml.model": ("add_string", "bert")}, {}, DAMAGED, "tokenizer of the kind 'bert'"),
        ("llama", {"tokenizer.ggml.scores": ("add_string", "none")}, {}, DAMAGED, "tokenizer in tiny.gguf is damaged"),
        ("qwen2", {"tokenizer.ggml.pre": ("add_string", "tekken")}, {}, DAMAGED, "'tekken'"),
    ],
)
def test_what_would_be_another_model_is_refused_by_name(
    tmp_path: Path, model_type: str, facts: Any, tensors: Any, code: LoadErrorCode, says: str
) -> None:
    path = written(tmp_path, model_type, facts=facts, tensors=tensors)
    assert_refused(lambda: loaded(path), code, says)


@pytest.mark.parametrize("part", [0.0, 0.001, 0.05, 0.5, 0.99, None])
def test_a_file_that_is_cut_off_or_none_is_refused(file: Path, part: float | None) -> None:
    content = file.read_bytes()
    none = b"<html>not found</html>" * 100
    file.write_bytes(none if part is None else content[: int(part * len(content))])
    assert_refused(lambda: loaded(file), "load_failed", "cannot be read as a GGUF file")


SHARED = SimpleNamespace(option="--lookahead-parallel")


@pytest.mark.parametrize(
    ("options", "option"), [({"quantize": "int8"}, "--quantize"), ({"workers": SHARED}, "--lookahead-parallel")]
)
def test_its_weights_are_neither_quantised_anew_nor_shared(file: Path, options: dict[str, Any], option: str) -> None:
    assert option in assert_refused(lambda: loaded(file, **options), "load_failed", "is a GGUF file").hint


def test_a_type_whose_tensors_have_no_known_names_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gguf.MODEL_ARCH_NAMES", {})
    assert_refused(lambda: loaded(file), "unsupported_architecture", "cannot read the type 'llama'")


@pytest.mark.parametrize(("dtype", "size"), [("float32", 4), ("bfloat16", 2)])
def test_what_it_needs_once_it_is_unpacked_is_known_before_and_how_much_is_unpacked_is_told(
    tmp_path: Path, dtype: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, kind=Kind.Q8_0)
    weights = size * model_of().num_parameters()
    assert weights > path.stat().st_size
    monkeypatch.setattr(needed_memory, "free_memory", lambda device: weights)
    assert_refused(
        lambda: load(path, "it", "cpu", dtype, lambda stage: pytest.fail("too late"), lambda _: None, packed=False),
        "out_of_memory",
        f"weights {in_words(weights)}",
    )
    monkeypatch.setattr(needed_memory, "free_memory", lambda device: 4 * weights)
    told: list[float] = []
    stages: list[str] = []
    assert load(path, "it", "cpu", dtype, stages.append, told.append, packed=False).dtype == dtype
    assert [stage for stage in stages if "llama-cpp" in stage and in_words(weights) in stage]
    assert told == sorted(told) and told[0] == 0 and told[-1] == 1


# --- where it is ------------------------------------------------------------------------------------------------------


def fetched(name: str) -> Path:
    return fetch(name, lambda done, total: None)


def test_a_file_is_found_by_its_path(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert fetched(str(file)) == file
    monkeypatch.chdir(file.parent)
    assert fetched(file.name) == Path(file.name)
    monkeypatch.setenv("HOME", str(file.parent.parent))
    assert fetched(f"~/{file.parent.name}/{file.name}") == file


@pytest.mark.parametrize("name", ["model.gguf", "./folder/model.Q8_0.GGUF"])
def test_a_file_that_is_not_there_is_refused(name: str) -> None:
    assert_refused(lambda: fetched(name), "model_not_found", f"no file {name}")


@pytest.mark.parametrize("package", UNPACKING_PACKAGES)
def test_what_reads_it_is_named_where_it_is_missing(file: Path, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found, missing = importlib.util.find_spec, {"xllamacpp"}
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name in missing else found(name))
    assert fetched(str(file)) == file
    missing.add(package)
    error = assert_refused(lambda: fetched(str(file)), "missing_package", "xllamacpp")
    assert "xllamacpp" in error.hint or "llama-cpp" in error.hint


@pytest.mark.parametrize("config", [True, False])
def test_a_folder_of_such_files_says_how_to_name_one(file: Path, config: bool) -> None:
    if config:
        (file.parent / "config.json").write_text("{}")
    another = file.with_name(f"{file.stem}-2.gguf")
    another.write_bytes(b"")
    error = assert_refused(lambda: fetched(str(file.parent)), "no_safetensors", another.name)
    assert f"--model {another}" in error.hint
    another.unlink()


@pytest.mark.full
def test_one_answer_of_a_file_goes_through_the_whole_program(file: Path) -> None:
    ask = [sys.executable, "-m", "ladechat", "ask", "the dog", "--model", str(file), "--max-new-tokens", "5"]
    done = subprocess.run(ask, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "5 tokens" in done.stderr and "Converting" not in done.stderr
