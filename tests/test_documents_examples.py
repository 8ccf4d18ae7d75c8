"""The examples of the documents run as they stand, and show what the documents say."""

import doctest
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers import AutoTokenizer

from ladechat import catalog, registry
from ladechat.decoder.drafters.drafter import ROOT, Node, Proposal
from ladechat.tuning.adaptive import AdaptivePolicy
from tests.made_up_costs import MadeUpCosts
from tests.tiny import DEMO, demo_model

DOCS = Path(__file__).parents[1] / "docs"


def pieces_of(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), flags=re.S)


@pytest.fixture
def decoders_as_they_are() -> Iterator[None]:
    """Take away what an example registers."""
    tables: list[dict[str, Any]] = [catalog.DECODERS, registry.DECODERS]
    kept = [(table, dict(table)) for table in tables]
    yield
    for table, entries in kept:
        table.clear()
        table.update(entries)


@pytest.mark.usefixtures("decoders_as_they_are")
def test_the_tour_runs_as_it_stands() -> None:
    names: dict[str, Any] = {}
    report: list[str] = []
    tried = 0
    for piece in pieces_of("tour.md"):
        if ">>>" in piece:
            example = doctest.DocTestParser().get_doctest(piece, names, "docs/tour.md", None, None)
            tried += len(example.examples)
            doctest.DocTestRunner().run(example, out=report.append, clear_globs=False)
            names.update(example.globs)
        else:
            exec(piece, names)
    assert not report, "".join(report)
    assert tried > 20 and "echo" in catalog.DECODERS


def test_code_for_other_programs_runs_and_writes_what_generate_writes() -> None:
    model: Any = demo_model()
    tokenizer = AutoTokenizer.from_pretrained(DEMO)
    messages = [{"role": "user", "content": "What is the n-gram pool?"}]
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    inputs = tokenizer(text, return_tensors="pt", add_special_tokens=False, return_token_type_ids=False)
    names: dict[str, Any] = {"model": model, "tokenizer": tokenizer, "inputs": inputs}
    pieces = pieces_of("in-your-own-code.md")
    assert any("lookahead_generate(" in piece for piece in pieces) and any(
        "lookahead_steps(" in piece for piece in pieces
    )
    expected = model.generate(**inputs, max_new_tokens=64, do_sample=False)
    for piece in pieces:
        names.pop("output", None)
        exec(piece, names)
        output = names.get("output")
        if output is not None:
            cut = "stop_strings" in piece
            assert output[0].tolist() == (expected[0, : output.shape[1]] if cut else expected[0]).tolist()
            assert output.shape[1] > inputs.input_ids.shape[1]


def table_after(heading: str) -> list[list[str]]:
    """The cells of the first table below a heading of docs/speed.md, without its head."""
    below = (DOCS / "speed.md").read_text(encoding="utf-8").split(f"{heading}\n")[1]
    rows = re.findall(r"^\|(.+)\|$", below.split("\n\n## ")[0], flags=re.M)
    return [[cell.strip(" *") for cell in row.split("|")] for row in rows[2:]]


@pytest.mark.parametrize("machine", [1, 2])
def test_the_worked_example_of_speed_is_what_the_policy_chooses(machine: int) -> None:
    rows = table_after("## A worked example")
    chances = [0.8, 0.75, 0.7, 0.13]
    tree = [Node(ROOT, 1, "", 1, chances[0]), Node(0, 2, "", 2, chances[1]), Node(1, 3, "", 3, chances[2])]
    tree.append(Node(ROOT, 4, "", 4, chances[3]))
    costs, ratios = ([float(row[column]) for row in rows] for column in (2 * machine, 2 * machine + 1))
    expected = [float(row[1]) for row in rows]
    assert [round(tokens / cost, 2) for tokens, cost in zip(expected, costs, strict=True)] == ratios
    policy = AdaptivePolicy(MadeUpCosts(lambda slots: costs[slots - 1]))
    choice = policy.choose(0, [Proposal(tree)])
    assert len(choice.tree) == 1 + ratios.index(max(ratios))
    likeliest = np.cumsum([1.0, 0.8, 0.8 * 0.75, 0.8 * 0.75 * 0.7, 0.13])
    assert [round(float(tokens), 2) for tokens in likeliest] == expected
