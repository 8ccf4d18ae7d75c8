"""A checkpoint in a folder becomes a model that runs, or one sentence that says why it does not."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM, PreTrainedModel
from transformers.integrations import peft as transformers_peft
from transformers.models.auto import auto_factory

from ladechat.decoder.loop import Decoder
from ladechat.engine.chat_format import ChatFormat
from ladechat.model.checkpoint.files import LoadError, LoadErrorCode, tokenizer_fingerprint
from ladechat.model.load import CHECK_STAGE, WEIGHTS_STAGE, LoadedModel, load
from ladechat.model.loading.device import choose_device, choose_dtype
from ladechat.protocol import Message
from tests.engine.tokenizers import encoded, sentencepiece
from tests.model.refusals import assert_told
from tests.tiny import DEMO, SHAPE, generated, run, tokens_of


def quiet(stage: str) -> None:
    """For tests that do not look at the stages."""


def far(fraction: float) -> None:
    """For tests that do not look at how far it is."""


def loaded(folder: Path, device: str = "cpu", dtype: str = "auto") -> LoadedModel:
    return load(folder, "the model", device, dtype, quiet, far)


def refusal(folder: Path, device: str = "cpu", dtype: str = "auto") -> LoadError:
    with pytest.raises(LoadError) as caught:
        loaded(folder, device, dtype)
    return caught.value


@cache
@torch.random.fork_rng(devices=[])
def tiny_llama() -> PreTrainedModel:
    """A random Llama with the vocabulary of the SentencePiece-style tokenizer, and two ends of text."""
    torch.manual_seed(0)
    config = AutoConfig.for_model("llama", **{**SHAPE, "vocab_size": len(sentencepiece())})
    model: PreTrainedModel = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    assert model.generation_config is not None
    model.generation_config.eos_token_id = [2, 7]
    return model


def save(folder: Path, model: Any, **options: Any) -> Path:
    """The folder of a model's checkpoint with a tokenizer."""
    model.save_pretrained(folder, **options)
    sentencepiece().save_pretrained(folder)
    return folder


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return save(tmp_path / "checkpoint", tiny_llama())


def change(file: Path, **changes: Any) -> None:
    """Change entries of a JSON file."""
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


# --- what loads ------------------------------------------------------------------------------------------------------


def test_a_checkpoint_is_loaded_with_the_facts_that_it_states(checkpoint: Path) -> None:
    model = loaded(checkpoint)
    assert model.name == "the model"
    assert model.model_type == "llama"
    assert model.layers == SHAPE["num_hidden_layers"]
    assert model.vocabulary == len(sentencepiece())
    assert model.context_length == SHAPE["max_position_embeddings"]
    assert model.parameters == tiny_llama().num_parameters()
    assert (model.device, model.dtype) == ("cpu", "float32")
    assert model.tokenizer_fingerprint == tokenizer_fingerprint(checkpoint)
    assert model.load_seconds > 0
    assert list(model.runner.tokens) == []


def test_every_end_of_text_that_a_part_of_the_checkpoint_names_counts(checkpoint: Path) -> None:
    assert loaded(checkpoint).eos_ids == {2, 7}
    change(checkpoint / "config.json", eos_token_id=9)
    assert loaded(checkpoint).eos_ids == {2, 7, 9}
    (checkpoint / "generation_config.json").unlink()
    assert loaded(checkpoint).eos_ids == {2, 9}


@pytest.mark.parametrize("content", ["[]", "{", '{"eos_token_id": [2, "x"], "num_beams": "many"}'])
def test_a_generation_config_that_makes_no_sense_is_used_as_far_as_it_does_and_that_is_said(
    checkpoint: Path, content: str
) -> None:
    (checkpoint / "generation_config.json").write_text(content)
    model = loaded(checkpoint)
    assert model.eos_ids == {2}
    assert [notice for notice in model.notices if "generation_config.json" in notice]


@pytest.mark.parametrize(
    ("entry", "value", "says"),
    [
        ("vocab_size", -1, "says that it has -1 tokens (vocab_size)"),
        ("vocab_size", 10**30, "tokens (vocab_size)"),
        ("hidden_size", 4 * 10**25, "numbers in a hidden state (hidden_size)"),
        ("num_attention_heads", 0, "not of the kind that belongs there"),
        ("max_position_embeddings", -4, "says that it has -4 positions (max_position_embeddings)"),
        ("max_position_embeddings", "many", "its max_position_embeddings is not of the kind that belongs there"),
        ("sliding_window", "x", "says that it has x positions in a sliding window (sliding_window)"),
        ("quantization_config", [1], "not of the kind that belongs there"),
        ("rope_parameters", "x", "its rope_parameters is not of the kind that belongs there"),
    ],
)
def test_an_entry_of_config_json_that_no_model_has_is_named(
    checkpoint: Path, entry: str, value: object, says: str
) -> None:
    change(checkpoint / "config.json", **{entry: value})
    assert_told(refusal(checkpoint), "unsupported_architecture", says)


def test_a_padding_token_beyond_the_vocabulary_is_no_reason_to_refuse_a_model(checkpoint: Path) -> None:
    change(checkpoint / "config.json", pad_token_id=10**6)
    assert loaded(checkpoint).eos_ids == {2, 7}


@pytest.mark.parametrize("file", ["config.json", "special_tokens_map.json"])
def test_a_file_that_is_no_object_is_refused_by_its_name(checkpoint: Path, file: str) -> None:
    (checkpoint / file).write_text("[]")
    assert_told(refusal(checkpoint), "load_failed", f"The {file} of the model holds a list")


@pytest.mark.parametrize("peft", [False, True], ids=["without peft", "with peft"])
def test_an_adapter_beside_the_weights_is_left_out_and_said_whether_peft_is_installed_or_not(
    checkpoint: Path, peft: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    modules: list[Any] = [auto_factory, transformers_peft]
    for module in modules:
        monkeypatch.setattr(module, "is_peft_available", lambda *_: peft)
    (checkpoint / "adapter_config.json").write_text('{"peft_type": "LORA", "base_model_name_or_path": "owner/base"}')
    (checkpoint / "adapter_model.safetensors").write_bytes(b"whatever")
    model = loaded(checkpoint)
    assert [notice for notice in model.notices if "adapter" in notice and "left out" in notice]
    assert all(torch.equal(model.model.state_dict()[name], one) for name, one in tiny_llama().state_dict().items())
    assert [module.is_peft_available() for module in modules] == [peft, peft]


def test_a_model_whose_positions_are_stretched_has_the_context_that_it_is_stretched_to(checkpoint: Path) -> None:
    rope = {"rope_theta": 1e4, "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 512}
    change(checkpoint / "config.json", rope_parameters=rope)
    assert loaded(checkpoint).context_length == 4 * 512


def test_a_loaded_model_writes_what_the_saved_one_writes(checkpoint: Path) -> None:
    model = loaded(checkpoint)
    prompt = ChatFormat(model.tokenizer).encode([Message(role="user", content="the cat")])
    assert prompt == encoded(sentencepiece(), "User: the cat\nAssistant:")
    written = tokens_of(run(Decoder(model.runner), prompt, limit=20))
    assert written == generated(tiny_llama(), prompt, 20)


def test_a_checkpoint_in_shards_is_the_same_model(tmp_path: Path) -> None:
    folder = save(tmp_path / "shards", tiny_llama(), max_shard_size="50KB")
    assert len(list(folder.glob("*.safetensors"))) > 2
    model = loaded(folder)
    weights = model.model.state_dict()
    assert all(torch.equal(weights[name], value) for name, value in tiny_llama().state_dict().items())


def test_the_stages_are_reported_as_they_begin(checkpoint: Path) -> None:
    stages: list[str] = []
    load(checkpoint, "the model", "cpu", "auto", stages.append, far)
    assert stages == [WEIGHTS_STAGE, CHECK_STAGE]


def test_it_is_told_how_many_of_the_weights_are_read(checkpoint: Path) -> None:
    told: list[float] = []
    load(checkpoint, "the model", "cpu", "auto", quiet, told.append)
    assert told == sorted(told) and (told[0], told[-1]) == (0.0, 1.0)
    assert len(told) > SHAPE["num_hidden_layers"]


def test_the_bundled_model_is_what_it_is_said_to_be() -> None:
    model = loaded(DEMO)
    assert (model.model_type, model.layers, model.vocabulary, model.context_length) == ("llama", 6, 3072, 2048)
    assert 5_000_000 < model.parameters < 5_500_000
    assert model.eos_ids == {2}
    assert model.tokenizer_fingerprint == tokenizer_fingerprint(DEMO)
    assert ChatFormat(model.tokenizer).template.format.origin == "checkpoint"


def test_of_a_model_that_also_sees_the_facts_are_those_of_its_language_part(tmp_path: Path) -> None:
    torch.manual_seed(0)
    text = {**SHAPE, "vocab_size": len(sentencepiece()), "num_hidden_layers": 2, "sliding_window": 64}
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = AutoConfig.for_model(
        "gemma3", text_config=text, vision_config={**sizes, "image_size": 28, "patch_size": 14}, mm_tokens_per_image=4
    )
    model = loaded(save(tmp_path, AutoModelForCausalLM.from_config(config)))
    assert (model.model_type, model.layers, model.vocabulary) == ("gemma3", 2, len(sentencepiece()))
    assert model.context_length == SHAPE["max_position_embeddings"]


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "float16"])
def test_the_type_that_is_asked_for_is_the_type_of_all_weights(checkpoint: Path, dtype: str) -> None:
    model = loaded(checkpoint, dtype=dtype)
    assert model.dtype == dtype
    assert {str(weight.dtype) for weight in model.model.parameters()} == {f"torch.{dtype}"}


@pytest.mark.parametrize(
    ("device", "own", "chosen"),
    [
        ("cpu", torch.float16, torch.float32),
        ("mps", torch.bfloat16, torch.float16),
        ("cuda", torch.float16, torch.float16),
        ("cuda", torch.float32, torch.float16),
        ("cuda", None, torch.float16),
    ],
)
def test_the_type_is_chosen_for_the_device(device: str, own: torch.dtype | None, chosen: torch.dtype) -> None:
    config = AutoConfig.for_model("llama", dtype=own)
    assert choose_dtype("auto", torch.device(device), config) is chosen


@pytest.mark.parametrize("name", ["complex64", "int8", "nonsense", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn_x2"])
def test_a_type_that_no_model_computes_in_is_refused_in_a_sentence(name: str) -> None:
    with pytest.raises(LoadError, match=f"There is no floating-point type '{name}' that a model computes in") as caught:
        choose_dtype(name, torch.device("cpu"), None)
    assert "float32" in caught.value.hint


@pytest.mark.parametrize(("supported", "chosen"), [(True, torch.bfloat16), (False, torch.float16)])
def test_bfloat16_is_kept_on_a_gpu_that_has_it(
    supported: bool, chosen: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: supported)
    config = AutoConfig.for_model("llama", dtype=torch.bfloat16)
    assert choose_dtype("auto", torch.device("cuda"), config) is chosen


def test_a_model_without_a_kv_cache_is_loaded_for_plain_decoding_and_says_why(tmp_path: Path) -> None:
    sizes = {"hidden_size": 32, "state_size": 8, "num_hidden_layers": 2, "vocab_size": len(sentencepiece())}
    config = AutoConfig.for_model("mamba", **sizes)
    saved = AutoModelForCausalLM.from_config(config).eval()
    model = loaded(save(tmp_path, saved))
    reason = model.runner.capabilities.single_token
    assert reason is not None and "recurrent state" in reason and "mamba" in reason
    prompt = encoded(sentencepiece(), "<s>the cat")
    assert tokens_of(run(Decoder(model.runner), prompt, limit=10)) == generated(saved, prompt, 10)


def test_a_model_that_verifies_drafts_is_not_held_to_plain_decoding(checkpoint: Path) -> None:
    assert loaded(checkpoint).runner.capabilities.tree_attention


# --- what does not ---------------------------------------------------------------------------------------------------


def test_an_encoder_decoder_is_refused_by_its_type(tmp_path: Path) -> None:
    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2, "vocab_size": 50}
    config = AutoConfig.for_model("t5", **sizes)
    folder = save(tmp_path, AutoModelForSeq2SeqLM.from_config(config))
    assert_told(refusal(folder), "unsupported_architecture", "'t5'")


def test_an_encoder_decoder_is_refused_though_its_decoder_could_be_loaded_alone(tmp_path: Path) -> None:
    AutoConfig.for_model("bart").save_pretrained(tmp_path)
    assert_told(refusal(tmp_path), "unsupported_architecture", "'bart'")


def test_an_encoder_is_refused_though_it_can_be_loaded_with_a_head(tmp_path: Path) -> None:
    config = AutoConfig.for_model("distilbert", vocab_size=50)
    config.save_pretrained(tmp_path)
    assert_told(refusal(tmp_path), "unsupported_architecture", "'distilbert'")


@pytest.mark.parametrize("config", [{"model_type": "not_yet_invented"}, {}, {"model_type": None}, {"model_type": 3}])
def test_an_architecture_that_transformers_does_not_know_is_refused(checkpoint: Path, config: dict[str, Any]) -> None:
    (checkpoint / "config.json").write_text(json.dumps(config))
    assert_told(refusal(checkpoint), "unsupported_architecture", "the model")


@pytest.mark.parametrize("content", [b"", b"not safetensors at all", b"\xff" * 64], ids=["empty", "text", "junk"])
def test_weights_that_cannot_be_read_are_refused(checkpoint: Path, content: bytes) -> None:
    (checkpoint / "model.safetensors").write_bytes(content)
    assert_told(refusal(checkpoint), "load_failed", "the model cannot be loaded")


def test_weights_that_end_too_early_are_refused(checkpoint: Path) -> None:
    file = checkpoint / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    assert_told(refusal(checkpoint), "load_failed", "the model cannot be loaded")


def test_weights_of_another_shape_are_refused(checkpoint: Path) -> None:
    change(checkpoint / "config.json", intermediate_size=64)
    assert_told(refusal(checkpoint), "load_failed", "the model lacks 9 of the weights")  # of a layer


def test_a_missing_shard_is_refused(tmp_path: Path) -> None:
    folder = save(tmp_path, tiny_llama(), max_shard_size="50KB")
    max(folder.glob("*.safetensors")).unlink()
    assert_told(refusal(folder), "load_failed", "the model cannot be loaded")


def test_missing_weights_are_refused_and_not_made_up(checkpoint: Path) -> None:
    change(checkpoint / "config.json", num_hidden_layers=SHAPE["num_hidden_layers"] + 1)
    assert_told(refusal(checkpoint), "load_failed", "the model lacks 9 of the weights")  # of a layer


def test_a_context_that_is_no_number_is_refused(checkpoint: Path) -> None:
    change(checkpoint / "config.json", max_position_embeddings="long")
    assert_told(refusal(checkpoint), "unsupported_architecture", "max_position_embeddings")


def test_a_missing_tokenizer_is_refused(checkpoint: Path) -> None:
    for file in checkpoint.glob("tokenizer*"):
        file.unlink()
    error = refusal(checkpoint)
    assert_told(error, "load_failed", "no tokenizer")
    assert "tokenizer.json" in error.hint


def test_a_broken_tokenizer_is_refused(checkpoint: Path) -> None:
    (checkpoint / "tokenizer.json").write_text("{}")
    assert_told(refusal(checkpoint), "load_failed", "The tokenizer.json of the model cannot be read")


@pytest.mark.parametrize("device", ["abacus", "", "cpu:x", "cuda:99", "xpu", "meta:7:1"])
def test_a_device_that_is_not_here_is_refused(checkpoint: Path, device: str) -> None:
    error = refusal(checkpoint, device=device)
    assert_told(error, "load_failed", repr(device))
    assert "--device" in error.hint


@given(st.text(max_size=12))
def test_any_name_of_a_device_is_a_device_or_refused(name: str) -> None:
    try:
        choose_device(name)
    except LoadError as error:
        assert_told(error, "load_failed", repr(name))


@pytest.mark.parametrize("dtype", ["", "float31", "int8", "bool", "nn", "Tensor", "__name__"])
def test_a_type_that_is_no_floating_point_is_refused(checkpoint: Path, dtype: str) -> None:
    error = refusal(checkpoint, dtype=dtype)
    assert_told(error, "load_failed", repr(dtype))
    assert "--dtype" in error.hint


@pytest.mark.parametrize(
    ("raised", "code", "hint"),
    [
        (torch.OutOfMemoryError("CUDA out of memory.\nTried"), "out_of_memory", "--dtype bfloat16"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), "out_of_memory", "--dtype bfloat16"),
        (RuntimeError("MPS backend out of memory (allocated)"), "out_of_memory", "--dtype bfloat16"),
        (RuntimeError("first line\nsecond line"), "load_failed", "files of the checkpoint"),
    ],
)
def test_what_torch_raises_on_the_way_to_the_device_is_told_in_one_sentence(
    checkpoint: Path, raised: Exception, code: LoadErrorCode, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def to(self: PreTrainedModel, device: torch.device) -> PreTrainedModel:
        raise raised

    monkeypatch.setattr(PreTrainedModel, "to", to)
    error = refusal(checkpoint)
    assert_told(error, code, "the model")
    assert hint in error.hint


# --- code that comes with a checkpoint -------------------------------------------------------------------------------

CODE = """
from pathlib import Path
Path({trace!r}).write_text("this code has run")
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
class TheirConfig(LlamaConfig):
    model_type = {model_type!r}
class TheirModel(LlamaForCausalLM):
    config_class = TheirConfig
class TheirTokenizer(PreTrainedTokenizerFast):
    pass
"""


def bring_code(folder: Path, trace: Path, model_type: str) -> None:
    """Let a checkpoint name Python code of its own for everything that transformers looks up."""
    (folder / "theirs.py").write_text(CODE.format(trace=str(trace), model_type=model_type))
    auto_map = {"AutoConfig": "theirs.TheirConfig", "AutoModelForCausalLM": "theirs.TheirModel"}
    change(folder / "config.json", auto_map=auto_map, model_type=model_type)
    change(folder / "tokenizer_config.json", auto_map={"AutoTokenizer": [None, "theirs.TheirTokenizer"]})


def test_code_that_comes_with_a_known_architecture_is_not_run(checkpoint: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    bring_code(checkpoint, trace, "llama")
    model = loaded(checkpoint)
    assert type(model.model).__module__.startswith("transformers.")
    assert not trace.exists()


def test_an_architecture_that_is_only_in_its_own_code_is_refused_and_the_code_not_run(
    checkpoint: Path, tmp_path: Path
) -> None:
    trace = tmp_path / "trace"
    bring_code(checkpoint, trace, "theirs")
    assert_told(refusal(checkpoint), "unsupported_architecture", "the model")
    assert not trace.exists()
