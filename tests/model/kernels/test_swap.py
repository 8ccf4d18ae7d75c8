"""A model with the kernels in it computes what it computes without, and its weights are there once."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from ladechat.decoder.loop import Decoder
from ladechat.model.kernels.build import Build, BuildError
from ladechat.model.kernels.library import Library
from ladechat.model.kernels.packing import FLOATS, pack
from ladechat.model.kernels.swap import ATTENTION, PackedEmbedding, PackedLinear, RMSNorm, swap, use_kernels
from ladechat.model.runners.llama_form import GEMMAS, LLAMAS
from ladechat.registry import lookahead
from tests.checkpoints import load_on_cpu
from tests.llama2 import save_checkpoint
from tests.tiny import VOCABULARY, demo_model, demo_prompt, generated, random_model, run, runner_for, tokens_of
from tools.tiny_models import tiny_model

ARCHITECTURES: dict[str, dict[str, Any]] = {
    "llama": {"num_key_value_heads": 4},
    "llama, tied": {"tie_word_embeddings": True, "attention_bias": True, "mlp_bias": True},
    "gemma3": {"model_type": "gemma3_text", "sliding_window": 6, "num_hidden_layers": 6, "tie_word_embeddings": True},
    "gemma2": {"model_type": "gemma2", "attn_logit_softcapping": 2.0, "attn_implementation": "eager"},
    "gpt2": {"model_type": "gpt2", "n_head": 4, "n_layer": 2, "tie_word_embeddings": True},
    "stablelm": {"model_type": "stablelm"},
    "qwen3_moe": {"model_type": "qwen3_moe"},
}


def swapped(model: PreTrainedModel, library: Library) -> PreTrainedModel:
    """A copy of a model with the kernels in it."""
    ours = copy.deepcopy(model)
    swap(ours, library)
    return ours


def is_packed(model: PreTrainedModel) -> bool:
    return any(isinstance(part, PackedLinear) for part in model.modules())


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("kind", [nn.Linear, Conv1D])
def test_a_packed_layer_computes_what_the_layer_did(kind: Any, bias: bool, library: Library) -> None:
    layer = nn.Linear(20, 45, bias=bias) if kind is nn.Linear else Conv1D(45, 20)
    weight = layer.weight if kind is nn.Linear else layer.weight.t()
    x = torch.randn(1, 6, 20, generator=torch.Generator().manual_seed(1))
    packed = PackedLinear(pack(weight.detach()), layer, library)
    with torch.inference_mode():
        torch.testing.assert_close(packed(x), layer(x), atol=1e-5, rtol=1e-5)
    assert torch.equal(packed.weight, layer.weight)
    assert (packed.in_features, packed.out_features) == (20, 45)


@torch.inference_mode()
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_model_computes_the_same_with_the_kernels(architecture: str, library: Library) -> None:
    model = random_model(3, **ARCHITECTURES[architecture])
    ours = swapped(model, library)
    tokens = torch.tensor([[5, 9, 3, 17, 4, 8, 11, 30]])
    mask = torch.ones(1, 1, 8, 8, dtype=torch.bool).tril()
    kinds = set(getattr(model.config, "layer_types", None) or ["full_attention"])
    added = torch.zeros(mask.shape).masked_fill(~mask, -1e30) if model.config._attn_implementation == "eager" else mask
    found, expected = (
        one(input_ids=tokens, attention_mask=own if len(kinds) == 1 else dict.fromkeys(kinds, own), use_cache=False)
        for one, own in ((ours, mask), (model, added))
    )
    torch.testing.assert_close(found.logits, expected.logits, atol=1e-4, rtol=1e-4)
    assert is_packed(ours)
    assert not any(type(part) in (nn.Linear, Conv1D) for part in ours.modules())
    assert {type(part) for part in ours.modules() if type(part).__name__.endswith("RMSNorm")} <= {RMSNorm}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_text_is_what_generate_writes_with_the_model_as_it_was(architecture: str, library: Library) -> None:
    model = random_model(3, **ARCHITECTURES[architecture])
    ours, prompt = swapped(model, library), [5, 8, 13, 21, 34, 55, 8, 13, 21]
    expected = generated(model, prompt, 40)
    assert tokens_of(run(Decoder(runner_for(ours)), prompt, 40)) == expected
    assert tokens_of(run(lookahead(runner_for(ours), 6, 4, 6), prompt, 40)) == expected


def test_the_bundled_model_writes_the_same_text(library: Library) -> None:
    ours, prompt = swapped(demo_model(), library), demo_prompt("What is the n-gram pool?")
    assert tokens_of(run(lookahead(runner_for(ours)), prompt, 60)) == generated(demo_model(), prompt, 60)


@pytest.mark.parametrize("architecture", ["llama, tied", "gemma3", "gpt2"])
def test_tied_weights_are_there_once(architecture: str, library: Library) -> None:
    ours = swapped(random_model(3, **ARCHITECTURES[architecture]), library)
    embedding, head = ours.get_input_embeddings(), ours.get_output_embeddings()
    assert isinstance(embedding, PackedEmbedding) and isinstance(head, PackedLinear)
    assert embedding.packed is head.packed
    assert torch.equal(embedding.weight, head.weight)
    assert not any(parameter.dim() > 1 and "wpe" not in name for name, parameter in ours.named_parameters())


@pytest.mark.parametrize("kept_in", FLOATS.values(), ids=list(FLOATS))
def test_an_embedding_of_its_own_has_its_vectors_in_the_type_of_the_checkpoint(
    kept_in: torch.dtype, library: Library
) -> None:
    model, tokens = copy.deepcopy(random_model(3)), torch.arange(VOCABULARY)[None]
    model.to(kept_in)  # type: ignore[arg-type]  # of transformers' wrapper
    embedding = swapped(model, library).get_input_embeddings()
    assert isinstance(embedding, PackedEmbedding) and embedding.packed.dtype is kept_in
    assert torch.equal(embedding(tokens), model.get_input_embeddings()(tokens).float())
    with pytest.raises(IndexError, match="embeddings"):
        embedding(torch.tensor([VOCABULARY]))


def test_attention_is_only_swapped_where_the_model_asks_for_it_by_name(library: Library) -> None:
    assert swapped(random_model(3), library).config._attn_implementation == ATTENTION
    eager = swapped(random_model(3, attn_implementation="eager"), library)
    assert eager.config._attn_implementation == "eager"
    assert swapped(tiny_model("deepseek_v32"), library).config._attn_implementation == "sdpa"
    assert swapped(tiny_model("gemma2"), library).config._attn_implementation == ATTENTION
    capped = random_model(3, "gemma2")
    ignored = capped.config._attn_implementation == "sdpa"  # some versions let it have one that ignores its cap
    assert swapped(capped, library).config._attn_implementation == ("sdpa" if ignored else ATTENTION)


@pytest.mark.parametrize(
    ("make", "threads"),
    [
        (lambda: copy.deepcopy(random_model(3)).float(), 1),
        (lambda: tiny_model("mixtral", intermediate_size=400).float(), 3),
    ],
    ids=["one that the kernels compute", "a mixture"],
)
def test_torch_has_one_thread_beside_the_kernels_unless_it_computes_most_of_the_model(
    make: Callable[[], PreTrainedModel], threads: int, library: Library
) -> None:
    """The experts of a mixture lie in one tensor each, no linear layers; quantised layers are left to torch as well."""
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        use_kernels(make(), library)
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)


def processor_has() -> set[str]:
    """The features of this machine's processor, as Linux names them."""
    cpuinfo = Path("/proc/cpuinfo")
    return set(cpuinfo.read_text(encoding="utf-8").split()) if cpuinfo.exists() else set()


class NoBuild(Build):
    """A build that has failed."""

    def __init__(self) -> None:
        pass

    def start(self) -> None:
        pass

    def library(self) -> Any:
        raise BuildError("There is no C++ compiler.")


@pytest.mark.parametrize("dtype", ["bfloat16", "float64"])
def test_a_model_in_another_type_is_left_alone(dtype: str, build: Build, tmp_path: Path) -> None:
    loaded = load_on_cpu(save_checkpoint(tmp_path), dtype, kernels=build)
    assert not is_packed(loaded.model) and loaded.threads.kernels == 0


@pytest.mark.parametrize("own", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("model_type", LLAMAS + GEMMAS)
def test_weights_read_in_their_own_16_bits_compute_what_they_compute_when_read_in_32(
    model_type: str, own: torch.dtype, library: Library
) -> None:
    short: Any = copy.deepcopy(random_model(3, model_type))
    short = short.to(own)
    whole = copy.deepcopy(short).float()
    for one in (short, whole):
        use_kernels(one, library)
    assert short.dtype == torch.float32 and {one.dtype for one in short.parameters()} == {torch.float32}
    tokens = torch.tensor([[5, 9, 3, 17, 4, 8, 11, 30]])
    with torch.inference_mode():
        assert torch.equal(short(tokens).logits, whole(tokens).logits)


def test_the_memory_asked_for_is_that_of_16_bits_if_the_weights_are_packed_at_once(
    build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[torch.dtype] = []

    def ask(folder: Path, name: str, device: torch.device, dtype: torch.dtype, *_: object) -> None:
        asked.append(dtype)

    monkeypatch.setattr("ladechat.model.load_checkpoint.check_memory", ask)
    folder = save_checkpoint(tmp_path)
    for kernels in (build, None, NoBuild()):
        load_on_cpu(folder, "auto", kernels=kernels)
    assert asked == [torch.float16, torch.float32, torch.float32]


def test_weights_are_read_in_the_type_that_the_files_have_and_not_in_the_one_that_config_json_names(
    build: Build, tmp_path: Path
) -> None:
    folder, weights = save_checkpoint(tmp_path), tmp_path / "model.safetensors"
    tensors = {name: tensor.float() for name, tensor in load_file(weights).items()}
    tensors["model.layers.0.self_attn.q_proj.weight"][0, 0] = 1e5  # which float16 does not hold
    save_file(tensors, weights, {"format": "pt"})
    layer: Any = load_on_cpu(folder, "auto", kernels=build).model.get_decoder().layers[0]
    assert torch.equal(layer.self_attn.q_proj.weight, tensors["model.layers.0.self_attn.q_proj.weight"])


def test_the_device_of_a_model_names_the_instructions_by_which_it_is_multiplied(build: Build, tmp_path: Path) -> None:
    folder = save_checkpoint(tmp_path)  # in float16, which AMX does not multiply
    device = load_on_cpu(folder, kernels=build).device
    assert load_on_cpu(folder).device == "cpu"
    assert device in ("cpu (NEON)", "cpu (128-bit vectors)") or device.startswith("cpu (AVX")
    has = processor_has()
    assert ("512" in device, "VNNI" in device) == ("avx512f" in has, bool({"avx512_vnni", "avx_vnni"} & has))


@pytest.mark.parametrize("fault", ["no library", "one that computes something else"])
def test_without_kernels_torch_computes_the_model_and_that_is_said_when_it_is_loaded(
    fault: str, build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ladechat.model.kernels.library.Library.is_right", lambda _: False)
    used = NoBuild() if fault == "no library" else build
    loaded = load_on_cpu(save_checkpoint(tmp_path), kernels=used)
    assert not is_packed(loaded.model)
    assert loaded.threads.kernels == 0
    says = "There is no C++ compiler." if fault == "no library" else "kernels that compute something else"
    assert [notice for notice in loaded.notices if "without ladechat's kernels" in notice and says in notice]
