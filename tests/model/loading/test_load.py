"""A checkpoint in a folder becomes a model that runs, with the facts that it states."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.integrations import peft as transformers_peft
from transformers.models.auto import auto_factory

from ladechat.decoder.loop import Decoder
from ladechat.engine.chat_format import ChatFormat
from ladechat.model.checkpoint.files import tokenizer_fingerprint
from ladechat.model.load import load
from ladechat.model.loading.device import choose_dtype
from ladechat.model.loading.progress import CHECK_STAGE, WEIGHTS_STAGE
from ladechat.protocol import Message
from tests.checkpoints import save, save_recurrent
from tests.engine.tokenizers import encoded, sentencepiece
from tests.model.loading.llama import LAYERS, assert_not_loaded, loaded, tiny_llama
from tests.scripted_checkpoint import change
from tests.tiny import DEMO, SHAPE, enlarged, generated, run, tokens_of


def test_a_checkpoint_is_loaded_with_the_facts_that_it_states(checkpoint: Path) -> None:
    model = loaded(checkpoint)
    assert (model.name, model.model_type, model.device, model.dtype) == ("the model", "llama", "cpu", "float32")
    assert (model.layers, model.vocabulary) == (LAYERS, len(sentencepiece()))
    assert (model.context_length, model.parameters) == (512, tiny_llama().num_parameters())
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


def test_a_padding_token_beyond_the_vocabulary_is_no_reason_to_refuse_a_model(checkpoint: Path) -> None:
    change(checkpoint / "config.json", pad_token_id=10**6)
    assert loaded(checkpoint).eos_ids == {2, 7}


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


def test_a_checkpoint_in_shards_is_the_same_model(in_shards: Path) -> None:
    assert len(list(in_shards.glob("*.safetensors"))) > 2
    weights = loaded(in_shards).model.state_dict()
    assert all(torch.equal(weights[name], value) for name, value in tiny_llama().state_dict().items())


def test_the_stages_are_reported_as_they_begin_and_how_many_of_the_weights_are_read(checkpoint: Path) -> None:
    stages, told = list[str](), list[float]()
    load(checkpoint, "the model", "cpu", "auto", stages.append, told.append)
    assert stages == [WEIGHTS_STAGE, CHECK_STAGE]
    assert told == sorted(told) and (told[0], told[-1]) == (0.0, 1.0) and len(told) > LAYERS


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
    model = loaded(save(tmp_path, AutoModelForCausalLM.from_config(config), sentencepiece()))
    assert (model.model_type, model.layers, model.vocabulary) == ("gemma3", 2, len(sentencepiece()))
    assert model.context_length == SHAPE["max_position_embeddings"]


def test_a_cap_of_scores_that_the_checkpoint_names_is_computed(tmp_path: Path) -> None:
    """The attention of torch, in which models are loaded, ignores it."""
    torch.manual_seed(0)
    config = AutoConfig.for_model("gemma2", **{**SHAPE, "vocab_size": len(sentencepiece())}, attn_logit_softcapping=0.5)
    right = enlarged(AutoModelForCausalLM.from_config(config, attn_implementation="eager"))
    found, tokens = loaded(save(tmp_path, right, sentencepiece())).model, torch.arange(3, 40)[None]
    with torch.inference_mode():
        torch.testing.assert_close(found(tokens).logits, right(tokens).logits)


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
        ("cuda", torch.bfloat16, torch.bfloat16),
        ("an older cuda", torch.bfloat16, torch.float16),
    ],
)
def test_the_type_is_chosen_for_the_device(
    device: str, own: torch.dtype | None, chosen: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: "older" not in device)
    config = AutoConfig.for_model("llama", dtype=own)
    assert choose_dtype("auto", torch.device(device.split()[-1]), config) is chosen


def test_a_model_without_a_kv_cache_is_loaded_for_plain_decoding_and_says_why(tmp_path: Path) -> None:
    model = loaded(save_recurrent(tmp_path))
    reason = model.runner.capabilities.single_token
    assert reason is not None and "recurrent state" in reason and "mamba" in reason
    saved, prompt = AutoModelForCausalLM.from_pretrained(tmp_path).eval(), encoded(model.tokenizer, "the cat")
    assert tokens_of(run(Decoder(model.runner), prompt, limit=10)) == generated(saved, prompt, 10)


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


def test_code_that_comes_with_a_checkpoint_is_not_run_and_what_is_only_in_it_is_refused(
    checkpoint: Path, tmp_path: Path
) -> None:
    trace = tmp_path / "trace"
    bring_code(checkpoint, trace, "llama")
    assert type(loaded(checkpoint).model).__module__.startswith("transformers.")
    bring_code(checkpoint, trace, "theirs")
    assert_not_loaded(checkpoint, "unsupported_architecture", "the model")
    assert not trace.exists()
