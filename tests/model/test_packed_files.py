"""GGUF files that stay packed: everything comes from the file, and a damaged one is refused in a sentence."""

import os
import random
import signal
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gguf
import numpy as np
import pytest
from gguf import GGMLQuantizationType as Kind

from ladechat.decoder.loop import Decoder
from ladechat.engine.chat_format import ChatFormat
from ladechat.engine.detokenizer import Detokenizer, TokenTexts
from ladechat.model import load_packed
from ladechat.model.checkpoint.fetch import fetch, local_files
from ladechat.model.llama_cpp import library
from ladechat.model.llama_cpp.model import PackedModel, bytes_of
from ladechat.model.llama_cpp.trial import EXACT, run_trial
from ladechat.model.loaded import LoadedModel, pass_facts
from ladechat.model.loading.packed_tokenizer import PackedTokenizer
from ladechat.protocol import Message
from tests.checkpoints import load_on_cpu
from tests.engine.tokenizers import RESERVED, TEXTS, byte_level, encoded, sentencepiece, token_id
from tests.gguf_files import TEMPLATE, write_gguf
from tests.model.refusals import assert_refused
from tests.packed import greedy_loop, opened, tiny_file, tiny_model
from tests.tiny import random_model, run, tokens_of

QUESTION = [Message(role="user", content="the dog and the name of the river")]


def loaded(path: Path, **options: Any) -> LoadedModel:
    return load_on_cpu(path, "auto", path.name, **options)


def of_sentencepiece(folder: Path, **changes: Any) -> Path:
    tokenizer = sentencepiece()
    return write_gguf(folder / "spm.gguf", random_model(0, vocab_size=len(tokenizer)), tokenizer, **changes)


def of_bytes(folder: Path, kind: Kind = Kind.Q8_0, **changes: Any) -> Path:
    return write_gguf(folder / "bytes.gguf", tiny_model(0, wide=True), byte_level(), kind, **changes)


# --- what is loaded ---------------------------------------------------------------------------------------------------


def test_a_folder_with_one_model_in_gguf_is_that_model(tmp_path: Path) -> None:
    file = of_bytes(tmp_path)
    (tmp_path / "mmproj-F16.gguf").write_bytes(b"of pictures")
    assert fetch(str(tmp_path), lambda done, total: None) == file
    part = tmp_path / "bytes-00001-of-00002.gguf"
    (tmp_path / "bytes-00002-of-00002.gguf").write_bytes(b"")
    file.rename(part)
    assert fetch(str(tmp_path), lambda done, total: None) == part


def test_a_pipe_or_a_link_to_nothing_is_no_model_in_a_folder(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.gguf")
    assert_refused(lambda: fetch(str(tmp_path), lambda done, total: None), "no_safetensors", "pipe.gguf")
    (tmp_path / "pipe.gguf").unlink()
    (tmp_path / "gone.gguf").symlink_to(tmp_path / "nowhere.gguf")
    assert local_files(str(tmp_path)) == tmp_path


@pytest.mark.parametrize("other", ["other.gguf", "model.safetensors", "bytes-00001-of-00002.gguf"])
def test_a_folder_with_other_weights_beside_a_gguf_file_is_not_guessed_at(tmp_path: Path, other: str) -> None:
    of_bytes(tmp_path)
    (tmp_path / other).write_bytes(b"weights")
    assert local_files(str(tmp_path)) == tmp_path


def test_the_facts_are_those_of_the_file(tmp_path: Path) -> None:
    facts = {"general.file_type": ("add_uint32", int(gguf.LlamaFileType.MOSTLY_Q8_0))}
    model = loaded(of_bytes(tmp_path, facts=facts))
    assert (model.model_type, model.layers, model.context_length) == ("llama", 3, 512)
    assert model.parameters == tiny_model(0, wide=True).num_parameters()
    assert model.vocabulary == len(byte_level()) and model.device == "cpu (llama.cpp)"
    assert model.quantization == "Q8_0, exact" and model.notices == ()
    assert model.runner.capabilities.tree_attention
    assert str(model.runner.capabilities.logits_only).endswith(".")
    assert len(model.maps.missing) == 2


def test_an_answer_is_that_of_llama_cpps_own_loop(tmp_path: Path) -> None:
    path = of_bytes(tmp_path)
    model = loaded(path)
    prompt = ChatFormat(model.tokenizer).encode(QUESTION)
    assert tokens_of(run(Decoder(model.runner), prompt)) == greedy_loop(path, prompt, 40)


@pytest.mark.parametrize(
    ("number", "name"),
    [(0, "F32"), (1, "F16"), (2, "Q4_0"), (15, "Q4_K_M"), (13, "Q3_K_L"), (18, "Q6_K"), (32, "BF16")],
)
def test_a_quantisation_is_named_as_the_file_is(tmp_path: Path, number: int, name: str) -> None:
    facts = {"general.file_type": ("add_uint32", number)}
    found = PackedModel(write_gguf(tmp_path / "a.gguf", tiny_model(), byte_level(), facts=facts))
    assert (found.quantization or "F32") == name


def test_of_a_model_in_parts_the_first_is_named(tmp_path: Path) -> None:
    whole = loaded(of_bytes(tmp_path))
    of_bytes(tmp_path, most_tensors=9)
    first, *others = sorted(tmp_path.glob("bytes-*-of-*.gguf"))
    parts = loaded(first)
    assert parts.parameters == whole.parameters and len(others) > 1
    assert bytes_of(first) == sum(part.stat().st_size for part in (first, *others))
    assert_refused(lambda: loaded(others[0]), "load_failed", "must be loaded with the first split")


def test_a_file_without_a_template_is_asked_in_plain_text_and_says_so(tmp_path: Path) -> None:
    model = loaded(of_bytes(tmp_path, template=None))
    assert model.notices == (load_packed.NO_TEMPLATE,)
    chat = ChatFormat(model.tokenizer, model.eos_ids, model.name)
    text = str(model.tokenizer.decode(chat.encode(QUESTION), skip_special_tokens=True))
    assert "User: the dog" in text and text.endswith("Assistant:") and "[INST]" not in text


def test_an_answer_ends_at_every_token_that_the_file_names(tmp_path: Path) -> None:
    ends: Any = {"tokenizer.ggml.eot_token_id": ("add_uint32", 300), "tokenizer.ggml.eom_token_id": ("add_uint32", 301)}
    assert loaded(of_bytes(tmp_path, facts=ends)).eos_ids == {byte_level().eos_token_id, 300, 301}


def test_saved_costs_are_those_of_a_file_and_of_a_way_of_passes(tmp_path: Path) -> None:
    path = of_bytes(tmp_path)
    facts = [pass_facts(loaded(path, passes=passes)) for passes in ("exact", "fast")]
    assert facts[0] != facts[1] and facts[0]["versions"]["xllamacpp"]


# --- its tokenizer ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("write", [of_bytes, of_sentencepiece], ids=["bytes", "sentencepiece"])
def test_the_tokenizer_is_that_of_the_model(tmp_path: Path, write: Any) -> None:
    original = byte_level() if write is of_bytes else sentencepiece()
    built = PackedTokenizer(opened(write(tmp_path)))
    for text in (*TEXTS, "<s>the cat</s> the\n\n mat<|reserved|>", ""):
        ids = encoded(original, text)
        assert built.encode(text, add_special_tokens=False) == ids
        assert built.decode(ids) == original.decode(ids)
        assert built.decode(ids, skip_special_tokens=True) == original.decode(ids, skip_special_tokens=True)
    assert built.special_tokens_map["bos_token"] == original.bos_token
    assert built.special_tokens_map["eos_token"] == original.eos_token
    assert len(built) == len(original) and built.convert_ids_to_tokens(len(built)) is None


@pytest.mark.parametrize("write", [of_bytes, of_sentencepiece], ids=["bytes", "sentencepiece"])
def test_the_text_of_an_answer_is_shown_as_it_comes(tmp_path: Path, write: Any) -> None:
    built: Any = PackedTokenizer(opened(write(tmp_path)))
    texts, dice = TokenTexts(built), random.Random(1)
    for text in TEXTS:
        ids = [*built.encode(text, add_special_tokens=False), *(dice.randrange(len(built)) for _ in range(20))]
        detokenizer = Detokenizer(texts)
        shown = "".join(piece for token in ids for piece in detokenizer.push([token])) + detokenizer.finish()
        assert shown == built.decode(ids, skip_special_tokens=True)


def test_marks_in_a_question_stay_text(tmp_path: Path) -> None:
    model = loaded(of_bytes(tmp_path, template="{{ '<|reserved|>' }}" + TEMPLATE))
    reserved = token_id(byte_level(), RESERVED)
    asked = [Message(role="user", content=f"the {RESERVED} cat {RESERVED}")]
    assert ChatFormat(model.tokenizer).encode(asked).count(reserved) == 1


def test_marks_that_a_file_takes_for_usual_tokens_are_marks(tmp_path: Path) -> None:
    tokenizer = byte_level.__wrapped__()
    tokenizer.add_tokens(["[END]", "[WORD]"])
    kinds = [gguf.TokenType.CONTROL if n < 3 else gguf.TokenType.NORMAL for n in range(len(tokenizer))]
    facts = {"tokenizer.ggml.token_type": ("add_array", [int(kind) for kind in kinds])}
    template = "{% for m in messages %}{{ '<|reserved|>' + m.role + m.content + '[END]' }}{% endfor %}"
    model = random_model(0, vocab_size=len(tokenizer))
    found = loaded(write_gguf(tmp_path / "a.gguf", model, tokenizer, facts=facts, template=template))
    end = token_id(tokenizer, "[END]")
    assert end in found.eos_ids
    prompt = ChatFormat(found.tokenizer).encode([Message(role="user", content="the cat [END]")])
    assert prompt.count(end) == 1 and prompt.count(token_id(tokenizer, RESERVED)) == 1


# --- what is refused --------------------------------------------------------------------------------------------------


SHARED = SimpleNamespace(option="--tensor-parallel")


@pytest.mark.parametrize(
    ("options", "option"),
    [({"quantize": "int8"}, "--quantize"), ({"workers": SHARED}, "--tensor-parallel"), ({"maps": ["a"]}, "--maps")],
)
def test_options_that_change_what_it_computes_with_are_refused(options: dict[str, Any], option: str) -> None:
    path = tiny_file(0, kind=Kind.Q8_0)
    assert option in assert_refused(lambda: loaded(path, **options), "load_failed", "as it is").hint


CUT_READ = [0, 3, 40, 2000, 12_000, 60_000]


@pytest.mark.parametrize(
    "cut", [*CUT_READ, *(pytest.param(n, marks=pytest.mark.full) for n in range(500, 22_500, 500))]
)
def test_a_file_that_is_cut_off_is_refused(tmp_path: Path, cut: int) -> None:
    content = tiny_file(0, kind=Kind.Q8_0).read_bytes()
    assert cut < len(content)
    path = tmp_path / "cut.gguf"
    path.write_bytes(content[:cut])
    error = assert_refused(lambda: loaded(path), "load_failed", "cut.gguf cannot be read as a GGUF file: ")
    assert "download it again" in error.hint and "\n" not in str(error)


@pytest.mark.parametrize(
    ("facts", "tensors"),
    [
        ({"general.architecture": ("add_string", "rwkv99")}, {}),
        ({"llama.block_count": ("add_uint32", 4_000_000_000)}, {}),
        ({"llama.attention.head_count": ("add_uint32", 0)}, {}),
        ({"llama.attention.head_count": ("add_uint32", 4_000_000_000)}, {}),
        ({"llama.embedding_length": ("add_uint32", 0)}, {}),
        ({"llama.embedding_length": ("add_string", "many")}, {}),
        ({"llama.context_length": ("add_uint32", 0)}, {"blk.1.ffn_up.weight": None}),
        ({"tokenizer.ggml.model": ("add_string", "of-nobody")}, {}),
        ({"tokenizer.ggml.tokens": ("add_array", ["a"])}, {}),
        ({}, {"blk.1.ffn_up.weight": np.ones((8, 32), np.float32)}),
    ],
)
def test_entries_that_cannot_be_are_refused(tmp_path: Path, facts: Any, tensors: Any) -> None:
    path = of_bytes(tmp_path, facts=facts, tensors=tensors)
    assert_refused(lambda: loaded(path), "load_failed", "bytes.gguf cannot be read as a GGUF file: ")


def test_weights_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    path = of_bytes(tmp_path, tensors={"output_norm.weight": np.full(64, np.nan, np.float32)})
    assert_refused(lambda: loaded(path), "load_failed", "logits that are not numbers")


@pytest.mark.parametrize("said", ["", "ops.cpp:7: GGML_ASSERT(x > 0) failed"])
def test_a_file_on_which_the_library_crashes_ends_no_process_but_its_own(
    monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    crash = f"import os, sys; print({said!r}, file=sys.stderr); os.abort()"
    ran = subprocess.run
    monkeypatch.setattr("subprocess.run", lambda command, **options: ran([command[0], "-c", crash], **options))
    refused = str(run_trial(Path("any.gguf"), 1, EXACT, gpu=False, quick=True).refused)
    assert "breaks down" in refused and (said or signal.SIGABRT.name) in refused


def test_a_library_with_other_structures_is_found_before_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(library.CONTEXT_DEFAULTS, "type_v", 7)
    library.load_library.cache_clear()
    error = assert_refused(lambda: loaded(tiny_file()), "missing_package", "have other fields, as type_v shows.")
    assert "llama-cpp" in error.hint or "xllamacpp" in error.hint
    monkeypatch.undo()
    monkeypatch.setitem(library.FUNCTIONS, "llama_of_next_month", (None, []))
    with pytest.raises(library.LibraryMismatch, match="has no function llama_of_next_month"):
        library.load_library()
