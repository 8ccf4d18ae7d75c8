"""Ranks that share a model (FSDP, ZeRO) run the same number of passes: none waits for another for ever."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import torch
from transformers import GenerationMixin

from tests.generate.requests import PROMPT, asked, generate, handed_on
from tests.generate.sharded import LENGTHS
from tests.tiny import random_model

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("door", [True, False])
def test_ranks_that_wait_for_each_other_go_on_doing_so(door: bool) -> None:
    own: Any = GenerationMixin._has_unfinished_sequences
    synced: list[bool] = []

    def watched(self: Any, this_peer_finished: bool, synced_gpus: bool, device: torch.device) -> Any:
        synced.append(synced_gpus)
        return own(self, this_peer_finished, False, device)

    request: dict[str, Any] = {"max_new_tokens": 5, "synced_gpus": True}
    with patch.object(GenerationMixin, "_has_unfinished_sequences", watched):
        expected = generate(random_model(1), PROMPT, **request)
        synced.clear()
        with handed_on("ranks that share the model"):
            result = asked(random_model(1), PROMPT, door=door, **request)
    assert torch.equal(result, expected)
    assert synced and all(synced)


@pytest.mark.full
def test_two_processes_that_share_a_model_write_texts_of_different_lengths(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.generate.sharded"]
    ranks = [
        subprocess.Popen([*command, str(rank), str(tmp_path / "store")], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        for rank in range(len(LENGTHS))
    ]
    try:
        outputs = [json.loads(rank.communicate(timeout=240)[0].splitlines()[-1]) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    for length, output in zip(LENGTHS, outputs, strict=True):
        expected = generate(random_model(1), PROMPT, max_new_tokens=length, eos_token_id=[])
        assert output["text"] == expected[0].tolist()
        assert len(output["said"]) == 2
        assert all("ranks that share the model" in sentence for sentence in output["said"])
