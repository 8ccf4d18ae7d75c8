"""The authors' implementation as a program that answers prompts: `benchmarks.speed --reference PYTHON` talks to it.

It runs in an environment of its own, since it needs transformers 4.36: `pip install "transformers==4.36.2" einops`, and
the package `lade` of github.com/hao-ai-lab/LookaheadDecoding. Nothing of ladechat is imported here.

Run as `PYTHON benchmarks/reference.py CHECKPOINT plain|lookahead W N G`: each line of standard input is a JSON list of
token ids with the most new tokens before them, each line of standard output a JSON object with `tokens`, `passes`,
`first_seconds` (to the first token) and `seconds` (to the last one).
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

os.environ["USE_LADE"] = str(int(sys.argv[2] == "lookahead"))

import torch
from safetensors.torch import load_file
from transformers import LlamaConfig, LlamaForCausalLM

KNOWN_TO_436 = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                "num_key_value_heads", "max_position_embeddings", "rms_norm_eps", "tie_word_embeddings",
                "bos_token_id", "eos_token_id", "pad_token_id", "hidden_act")  # fmt: skip


def main() -> None:
    """Answer until the input ends."""
    folder, way, *numbers = sys.argv[1:]
    made_of: type = LlamaForCausalLM
    if way == "lookahead":
        import lade  # type: ignore[import-not-found]  # only in that environment
        from lade.models.modeling_llama import LlamaForCausalLM as OfTheirs  # type: ignore[import-not-found]  # as above
        from lade.utils import augment_generate  # type: ignore[import-not-found]  # as above

        window, ngram, guesses = map(int, numbers)
        # Its own classes as they are: with what `augment_all` puts into those of transformers, this torch raises.
        augment_generate()
        made_of = OfTheirs
        lade.config_lade(WINDOW_SIZE=window, LEVEL=ngram, GUESS_SET_SIZE=guesses, POOL_FROM_PROMPT=True, DEBUG=0)
    model = _load(Path(folder), made_of)
    lines, sys.stdout = sys.stdout, sys.stderr  # it prints
    for line in sys.stdin:
        most, *prompt = json.loads(line)
        first, _, _ = _answer(model, prompt, 1)
        seconds, tokens, passes = _answer(model, prompt, most)
        answer = {"tokens": tokens, "passes": passes, "first_seconds": first, "seconds": seconds}
        print(json.dumps(answer), file=lines, flush=True)


def _load(folder: Path, made_of: type) -> Any:
    """The checkpoint in float32, as ladechat runs it on a CPU, with attention as this version computes it."""
    config = json.loads((folder / "config.json").read_text())
    kept = {key: config[key] for key in KNOWN_TO_436}
    rope = config.get("rope_parameters", {})
    if rope.get("rope_type", "default") != "default":
        raise SystemExit("This checkpoint stretches its positions; transformers 4.36 would read it otherwise.")
    kept["rope_theta"] = rope.get("rope_theta", 10000.0)
    kept["attn_implementation"] = "eager"
    model: Any = made_of(LlamaConfig(**kept))
    model.eval()
    weights = {name: tensor.float() for name, tensor in load_file(folder / "model.safetensors").items()}
    missing, unexpected = model.load_state_dict(weights, strict=False)
    if set(missing) - {"lm_head.weight"} or unexpected:
        raise SystemExit(f"Weights that do not fit: {missing} {unexpected}")
    model.tie_weights()
    return model


@torch.inference_mode()
def _answer(model: Any, prompt: list[int], most: int) -> tuple[float, list[int], int]:
    """The seconds of one greedy answer, its tokens, and the passes through the model."""
    passes = 0

    def count(*_: object) -> None:
        nonlocal passes
        passes += 1

    ids = torch.tensor([prompt])
    hook = model.model.layers[0].register_forward_pre_hook(count)
    began = time.perf_counter()
    output = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=most, do_sample=False)
    seconds = time.perf_counter() - began
    hook.remove()
    return seconds, output[0, len(prompt) :].tolist(), passes


if __name__ == "__main__":
    main()
