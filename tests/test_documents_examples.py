"""The code of docs/in-your-own-code.md runs as it stands, on the bundled model."""

import re
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from tests.tiny import DEMO

PAGE = Path(__file__).parents[1] / "docs" / "in-your-own-code.md"


def test_every_piece_of_code_runs_and_writes_what_generate_writes() -> None:
    model = AutoModelForCausalLM.from_pretrained(DEMO, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(DEMO)
    messages = [{"role": "user", "content": "What is the n-gram pool?"}]
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    inputs = tokenizer(text, return_tensors="pt", add_special_tokens=False, return_token_type_ids=False)
    names: dict[str, Any] = {"model": model, "tokenizer": tokenizer, "inputs": inputs}
    pieces = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.S)
    assert len(pieces) == 4
    expected = model.generate(**inputs, max_new_tokens=64, do_sample=False)
    for piece in pieces:
        names.pop("output", None)
        exec(piece, names)
        output = names.get("output")
        if output is not None:
            cut = "stop_strings" in piece
            assert output[0].tolist() == (expected[0, : output.shape[1]] if cut else expected[0]).tolist()
            assert output.shape[1] > inputs.input_ids.shape[1]
