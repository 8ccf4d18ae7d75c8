"""Which model types are decoded exactly: each asked of a tiny random model, against transformers' own `generate`.

``python -m tools.support_matrix`` prints a table of all types (some minutes on one core), ``--only gemma2`` of one, and
``--write`` makes docs/model-types.md of it.
"""

import argparse
import multiprocessing
import random
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal

import torch
import transformers
from transformers import CONFIG_MAPPING, PreTrainedModel
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from ladechat.decoder.drafters.ngram_pool import NGramPool
from ladechat.decoder.loop import Decoder
from ladechat.decoder.step import Limits, Step
from ladechat.model.kernels.build import Build, BuildError
from ladechat.model.kernels.library import Library
from ladechat.model.kernels.swap import swap
from ladechat.model.loading.self_check import choose_runner, uses_alibi
from ladechat.model.runners.cache_probe import UnsupportedModel
from ladechat.model.runners.cpu_layers import fuse_layers
from ladechat.registry import lookahead
from tools.tiny_models import VOCABULARY, WINDOW, tiny_config, tiny_model

PAGE = Path(__file__).parent.parent / "docs" / "model-types.md"
PROMPT_LENGTH = 20
NEW_TOKENS = 40
CONTEXT = 256
W, N, G = 5, 4, 5
PATIENCE_SECONDS = 120.0

Verdict = Literal["exact", "plain", "refused", "different", "untested"]
HEADINGS: dict[Verdict, str] = {
    "exact": "Exact",
    "plain": "Plain decoding only",
    "refused": "Refused",
    "different": "Different from generate",
    "untested": "Not tried",
}

ABOUT = """
Of the {types} model types that transformers {version} maps to a causal language model, {exact} are decoded exactly by
lookahead decoding, and {plain} more by plain decoding only. `python -m tools.support_matrix --write` makes this page;
[models.md](models.md) says how to choose and load a model.

For each type a tiny random model is built in float32, with windows and chunks of {window} tokens where it has them. It
reads {prompt} tokens and writes {new}. *Exact*: plain decoding and lookahead decoding ({settings}, with n-grams of the
text in the pool, so that guesses are accepted) both write the tokens of transformers' greedy `generate`, computed by
torch and by the kernels. Each checkpoint is checked again when it is loaded. Where the scores of attention have a soft
cap (`gemma2`, `vaultgemma`), models are loaded with eager attention, here and in the app: torch's own ignores the cap.

Models whose rotary angles depend on the length of the text (`longrope`, `dynamic`) are exact on both sides of the
boundary; no pass crosses it (`tests/model/runners/test_rope.py`). For phi3, phimoe and phi4_multimodal beyond it the
reference is `generate(use_cache=False)`: with its cache, transformers 5.17 loses the text there.
"""


@dataclass(frozen=True)
class Finding:
    """What was found out about a model type; `reason` is empty for exact ones."""

    model_type: str
    verdict: Verdict
    attention: str = ""
    reason: str = ""


def examine(model_type: str) -> Finding:
    """Decode with a tiny model of a type in every way, and compare."""
    if CONFIG_MAPPING[model_type].is_encoder_decoder or "text_encoder" in CONFIG_MAPPING[model_type].sub_configs:
        return Finding(model_type, "refused", reason="an encoder-decoder")
    try:
        config = tiny_config(model_type)
        if not hasattr(config.get_text_config(), "num_hidden_layers"):
            return Finding(model_type, "refused", reason="its configuration has no layers of a language model")
        model = tiny_model(model_type)
    except Exception as error:  # building what others wrote, the libraries raise anything
        return Finding(model_type, "untested", reason=f"no tiny model of it could be built: {_in_a_line(error)}")
    attention = describe_attention(model)
    dice = random.Random(1)
    prompt = [dice.randrange(3, VOCABULARY) for _ in range(PROMPT_LENGTH)]
    try:
        expected = generated(model, prompt)
    except Exception as error:  # as above
        return Finding(model_type, "untested", attention, f"transformers' generate fails: {_in_a_line(error)}")
    try:
        runner = choose_runner(model, CONTEXT)
    except UnsupportedModel as error:
        return Finding(model_type, "refused", attention, _reason(str(error)))
    tree_attention = runner.capabilities.tree_attention
    for computed_by in ("torch", "the kernels"):
        if computed_by == "the kernels":
            if not _use_kernels(model):
                break
            runner = choose_runner(model, CONTEXT)
            if runner.capabilities.tree_attention != tree_attention:
                return Finding(model_type, "different", attention, "another kind of runner with the kernels")
        decoders = [Decoder(runner)]
        if tree_attention:
            pool = NGramPool()
            pool.add_all(prompt[-1:] + expected, N, "prompt")  # so that guesses come true
            decoders.append(lookahead(choose_runner(model, CONTEXT), W, N, G, pool))
        steps: list[Step] = []
        for decoder in decoders:
            steps = list(decoder.run(prompt, Limits(NEW_TOKENS)))
            if [token for step in steps for token in step.tokens] != expected:
                reason = f"{'lookahead' if decoder.drafters else 'plain'} decoding differs, computed by {computed_by}"
                return Finding(model_type, "different", attention, reason)
        if tree_attention and len(steps) == NEW_TOKENS:
            return Finding(model_type, "different", attention, "no guess was accepted, though its pool had the text")
    if runner.capabilities.single_token is not None:
        return Finding(model_type, "plain", attention, _reason(runner.capabilities.single_token))
    return Finding(model_type, "exact", attention)


def _use_kernels(model: PreTrainedModel) -> bool:
    """Swap the kernels into a model, where a C++ compiler can build them."""
    try:
        library = Library(Build().library(), threads=1)
        swap(model, library)
        fuse_layers(model, library)
    except BuildError:
        return False
    return True


def generated(model: PreTrainedModel, prompt: list[int]) -> list[int]:
    """What transformers' own greedy `generate` writes, whatever the end of text is."""
    options: dict[str, Any] = {"do_sample": False, "eos_token_id": None, "pad_token_id": 0}
    output = model.generate(torch.tensor([prompt]), max_new_tokens=NEW_TOKENS, **options)  # type: ignore[operator]  # of a mixin, not seen by mypy
    tokens: list[int] = output[0, len(prompt) :].tolist()
    return tokens


def describe_attention(model: PreTrainedModel) -> str:
    """In words, from the configuration of the tiny model: kinds of layers, heads, experts."""
    config = model.config.get_text_config(decoder=True)
    listed = (getattr(config, name, None) for name in ("layer_types", "attention_layers", "attn_layers"))
    kinds = sorted(set(next((layers for layers in listed if layers), [])))
    if not kinds and getattr(model, "_is_stateful", False):
        kinds = ["recurrent"]
    elif not kinds:
        kinds = ["sliding_attention" if getattr(config, "sliding_window", None) else "full_attention"]
    words = [" + ".join(kind.removesuffix("_attention").replace("_", " ") for kind in kinds)]
    if getattr(config, "kv_lora_rank", None):
        words.append("latent (MLA)")
    elif getattr(config, "multi_query", False) or getattr(config, "num_kv_heads", None) == 1:
        words.append("multi-query")
    elif (heads := getattr(config, "num_key_value_heads", None)) and heads < config.num_attention_heads:
        words.append("grouped heads")
    if any(name.endswith("sinks") for name, _ in model.named_parameters()):
        words.append("sinks")
    if any("expert" in name for name, _ in model.named_parameters()):
        words.append("experts")
    if uses_alibi(config):
        words.append("ALiBi")
    return ", ".join(words)


def all_types() -> list[str]:
    """Every type that transformers maps to a causal language model, by name."""
    return sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)


def examine_apart(model_types: list[str]) -> Iterator[Finding]:
    """Each type in a process of its own: one that crashes or never ends costs one row."""
    fork = multiprocessing.get_context("fork")
    for model_type in model_types:
        receiving, sending = fork.Pipe(duplex=False)
        process = fork.Process(target=_report, args=(model_type, sending))
        process.start()
        sending.close()
        try:
            answered = receiving.poll(PATIENCE_SECONDS)
            yield receiving.recv() if answered else Finding(model_type, "untested", reason="took too long")
        except EOFError:
            yield Finding(model_type, "untested", reason="its process ended without an answer")
        process.kill()
        process.join()


def _report(model_type: str, sending: Connection) -> None:
    try:
        sending.send(examine(model_type))
    except Exception as error:  # of one type, whatever it is: the others are still worth their while
        sending.send(Finding(model_type, "different", reason=f"decoding fails: {_in_a_line(error)}"))


def page(findings: list[Finding]) -> str:
    """docs/model-types.md."""
    exact = sum(finding.verdict == "exact" for finding in findings)
    plain = sum(finding.verdict == "plain" for finding in findings)
    about = ABOUT.format(
        types=len(findings),
        version=transformers.__version__,
        exact=exact,
        plain=plain,
        prompt=PROMPT_LENGTH,
        window=WINDOW,
        new=NEW_TOKENS,
        settings=f"W {W}, N {N}, G {G}",
    )
    lines = ["# Model types", ""]
    lines += ["\n\n".join(textwrap.fill(paragraph, 120) for paragraph in about.strip().split("\n\n"))]
    for verdict, heading in HEADINGS.items():
        rows = [finding for finding in findings if finding.verdict == verdict]
        if rows:
            lines += ["", f"## {heading}: {len(rows)}", "", *_table(rows)]
    return "\n".join(lines) + "\n"


def _table(rows: list[Finding]) -> list[str]:
    """Return rows of types that share their attention, or the reason why they are not exact; the longest first."""
    exact = rows[0].verdict == "exact"
    types: dict[str, list[str]] = {}
    for row in rows:
        types.setdefault(row.attention if exact else row.reason, []).append(f"`{row.model_type}`")
    largest_first = sorted(types.items(), key=lambda item: (-len(item[1]), item[0]))
    lines = [f"| {common} | {', '.join(names)} |" for common, names in largest_first]
    return ["| attention | types |" if exact else "| why | types |", "|---|---|", *lines]


def _reason(sentence: str) -> str:
    """The reason within a sentence of ours: what follows the model's name."""
    return sentence.split(") ", 1)[-1].removesuffix(", so it writes one token a pass.").removesuffix(".")


def _in_a_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:120].replace("|", "/")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="TYPE", help="examine this type; may be given repeatedly")
    parser.add_argument("--write", action="store_true", help="write docs/model-types.md")
    options = parser.parse_args()
    if unknown := sorted(set(options.only or []) - set(all_types())):
        parser.error(f"transformers has no causal language model of type {', '.join(unknown)}")
    if options.write and options.only:
        parser.error("docs/model-types.md has all types, so --write goes without --only")
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    findings = []
    for finding in examine_apart(options.only or all_types()):
        findings.append(finding)
        print(f"{finding.model_type:28} {finding.verdict:10} {finding.attention:36} {finding.reason}", flush=True)
    if options.write:
        PAGE.write_text(page(findings))


if __name__ == "__main__":
    main()
