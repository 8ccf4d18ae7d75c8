"""What a screen relies on in an event holds when it has been decoded."""

import json
from typing import Any

import pytest

from ladechat import protocol
from ladechat.protocol import Event, Message, ProtocolError, Settings, decode_event, encode
from tests.widgets.sample_steps import candidate, lens_view, pool_view, step, window_view

STEP = step(
    ["a", "b"],
    window=window_view([["a", "b"], ["b", "c"]], ["x", "y"]),
    pool=pool_view("z", [candidate(["a", "b"], "window", 1), candidate(["c"], "prompt", tried=False)]),
    lens=lens_view("z", [["x"], ["a", "y"], ["a", "b"]]),
)
CHOICE = protocol.PolicyChoice(
    turn=1,
    slots=2.0,
    tokens=1.5,
    window=False,
    costs=[protocol.PassCost(slots=1, ms=9.5), protocol.PassCost(slots=2, ms=10.0)],
    expected=[protocol.ExpectedTokens(slots=1, tokens=1.0), protocol.ExpectedTokens(slots=2, tokens=1.5)],
)
COSTS = protocol.PassCosts(turn=1, costs=CHOICE.costs)
STARTED = protocol.TurnStarted(
    turn=1,
    messages=[Message(role="user", content="a")],
    prompt_ids=[1, 2],
    cached_tokens=1,
    max_new_tokens=8,
    settings=Settings(),
)


def test_a_row_that_lacks_positions_of_the_one_below_it_is_refused() -> None:
    wire = json.loads(encode(STEP))
    wire["lens"]["rows"][1], wire["lens"]["row_ids"][1] = [], []
    with pytest.raises(ProtocolError, match=r"lens\.rows"):
        decode_event(json.dumps(wire).encode())


@pytest.mark.parametrize(
    ("event", "place", "lie"),
    [
        (COSTS, ["costs", 1, "slots"], 1),
        (COSTS, ["costs", 0, "ms"], 0.0),
        (STEP, ["token_ids"], []),
        (STEP, ["pieces"], ["a"]),
        (STEP, ["logprobs"], [-0.5, -0.5, -0.5]),
        (STEP, ["pieces", 0], "x" * 50_000_000),
        (STEP, ["draft", "verdicts"], ["accepted"]),
        (STEP, ["draft", "pieces"], []),
        (STEP, ["draft", "parents", 1], 7),
        (STEP, ["draft", "parents", 1], -2),
        (STEP, ["draft", "parents", 1], 1),
        (STEP, ["window", "row_ids"], [[1, 2]]),
        (STEP, ["window", "row_ids", 1], [1]),
        (STEP, ["window", "fresh_ids"], []),
        (STEP, ["pool", "hits"], 10**6),
        (STEP, ["pool", "candidates", 0, "matched"], 10**30),
        (STEP, ["pool", "candidates", 0, "matched"], 3),
        (STEP, ["pool", "candidates", 0, "matched"], -1),
        (STEP, ["pool", "candidates", 1, "pieces"], []),
        (STEP, ["lens", "rows"], []),
        (STEP, ["lens", "rows"], [["x"], ["a", "y"]]),
        (STEP, ["lens", "row_ids", 1], [1]),
        (STEP, ["lens", "row_ids", 0, 0], -1),
        (STEP, ["lens", "layers"], [1, 2]),
        (STEP, ["lens", "layers", 2], 3),
        (STEP, ["lens", "layers", 0], 10**30),
        (STEP, ["lens", "rows", 0, 0], "x" * 200_000),
        (STEP, ["lens", "after"], "x" * 200_000),
        (STEP, ["timing", "step_ms"], -1.0),
        (STEP, ["timing", "step_ms"], 1e308),
        (STEP, ["timing", "slots"], 0),
        (STEP, ["timing", "cache_length"], 10**400),
        (STEP, ["seq"], 10**30),
        (STEP, ["t"], 1e308),
        (CHOICE, ["costs", 0, "ms"], 0),
        (CHOICE, ["costs", 0, "ms"], 1e-320),
        (CHOICE, ["costs", 1, "slots"], 1),
        (CHOICE, ["expected", 1, "slots"], 1),
        (CHOICE, ["expected", 1, "tokens"], 1e300),
        (STARTED, ["messages"], []),
        (STARTED, ["cached_tokens"], 3),
        (STARTED, ["continued_tokens"], 3),
    ],
    ids=lambda value: "-".join(map(str, value)) if isinstance(value, list) else type(value).__name__,
)
def test_what_does_not_fit_the_rest_of_an_event_is_refused_by_its_name(
    event: Event, place: list[Any], lie: Any
) -> None:
    assert decode_event(encode(event)) == event
    wire = json.loads(encode(event))
    part = wire
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = lie
    with pytest.raises(ProtocolError, match=[key for key in place if isinstance(key, str)][-1]):
        decode_event(json.dumps(wire).encode())
