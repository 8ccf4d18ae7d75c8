"""The harness for other people's tests finds what is equal, refused, different and crashed."""

import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import torch
from transformers import GenerationMixin

from ladechat import lookahead_generate
from tests.peers import generate_twice

INI = Path(generate_twice.__file__).with_name("peers.ini")

SOMEBODYS_TESTS = """
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, LogitsProcessor, LogitsProcessorList, StoppingCriteria
from transformers.generation.streamers import BaseStreamer

torch.manual_seed(0)
SHAPE = dict(hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, vocab_size=31)
MODEL = LlamaForCausalLM(LlamaConfig(**SHAPE, max_position_embeddings=64, eos_token_id=None, pad_token_id=0)).eval()
IDS = torch.tensor([[3, 4, 5, 3, 4]])

class Counting(LogitsProcessor):
    calls = 0

    def __call__(self, input_ids, scores):
        self.calls += 1
        return scores if self.calls % 2 else -scores

def test_greedy():
    first = MODEL.generate(IDS, max_new_tokens=8)
    assert torch.equal(first, MODEL.generate(input_ids=IDS, max_new_tokens=8))

def test_a_processor_with_a_state_is_called_as_often_as_without_the_plugin():
    processor = Counting()
    MODEL.generate(IDS, max_new_tokens=8, logits_processor=LogitsProcessorList([processor]))
    assert processor.calls == 8

def test_sampled_text_goes_on_with_the_same_random_numbers():
    torch.manual_seed(1)
    scored = dict(return_dict_in_generate=True, output_scores=True, output_logits=True)
    MODEL.generate(IDS, max_new_tokens=8, do_sample=True, **scored)
    here = torch.rand(1)
    torch.manual_seed(1)
    MODEL.generate(IDS, max_new_tokens=8, do_sample=True)
    assert torch.equal(here, torch.rand(1))

def test_rows():
    MODEL.generate(IDS.repeat(2, 1), max_new_tokens=4, do_sample=True)
    MODEL.generate(IDS.repeat(2, 1), max_new_tokens=4, logits_processor=[Counting()])

def test_attentions():
    MODEL.generate(IDS, max_new_tokens=4, output_attentions=True, return_dict_in_generate=True)

def test_a_token_that_only_this_model_knows():
    model = LlamaForCausalLM(MODEL.config).eval()
    model.model.embed_tokens.forward = lambda ids: torch.zeros(*ids.shape, 16)
    model.generate(-IDS // 3, max_new_tokens=4)

def test_nonsense():
    with pytest.raises(ValueError):
        MODEL.generate(IDS, max_new_tokens=4, no_such_option=1)
"""


def run_them(folder: Path) -> tuple[int, dict[str, int], list[dict[str, str]]]:
    """The exit status, how often each outcome came, and what came of each call."""
    (folder / "test_of_somebody.py").write_text(SOMEBODYS_TESTS)
    summary = folder / "summary.json"
    before = GenerationMixin.generate
    arguments = ["-q", "-c", str(INI), "--rootdir", str(folder), "--import-mode", "importlib", str(folder)]
    arguments += ["--twice-summary", str(summary)]
    status = pytest.main(arguments, plugins=[generate_twice])
    assert GenerationMixin.generate is before
    calls: list[dict[str, str]] = json.loads(summary.read_text())
    counts: dict[str, int] = {}
    for call in calls:
        counts[call["outcome"]] = counts.get(call["outcome"], 0) + 1
    return int(status), counts, calls


@pytest.mark.full
def test_each_call_is_made_twice_and_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, counts, _ = run_them(tmp_path)
    printed = capsys.readouterr().out
    assert status == 0, printed
    assert counts == {"equal": 7, "own loop": 3, "refused": 1, "not compared": 1}
    assert "own loop, 2 times: several rows" in printed
    assert "own loop, 1 times: output_attentions" in printed
    assert "refused, 1 times: ValueError: input_ids has -1" in printed


@pytest.mark.full
def test_what_differs_or_crashes_fails_the_run_and_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    honest: Any = lookahead_generate

    def wrong(model: Any, ids: torch.Tensor, **options: Any) -> Any:
        config = options["generation_config"]
        if config.do_sample and len(ids) == 1:
            torch.rand(1)
        if config.output_attentions:
            raise IndexError("out of range")
        result = honest(model, ids, **options)
        return result if config.do_sample or config.max_new_tokens != 8 else result + 1

    with patch.object(generate_twice, "lookahead_generate", wrong):
        status, counts, calls = run_them(tmp_path)
    assert status == 1
    assert counts["different"] == 6 and counts["crashed"] == 1
    assert [call["detail"] for call in calls if call["outcome"] == "crashed"] == ["IndexError: out of range"]
    assert "different: test_of_somebody.py::test_greedy: sequences" in capsys.readouterr().out
