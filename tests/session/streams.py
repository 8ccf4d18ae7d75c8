"""What an engine says to questions, numbered and timed as it is; and files of it."""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from ladechat import protocol
from ladechat.protocol import Event, Header, Prefilling, Settings, TurnFinished, TurnStarted, encode
from tests.widgets.sample_steps import answer

GOLDEN = sorted(Path(__file__).parent.glob("golden-*.ladechat.jsonl"))
"""One of each version of the format, as it was written then."""

HEADER = Header(
    format="ladechat",
    version=protocol.VERSION,
    program="ladechat test",
    model="demo",
    tokenizer=None,
    device="cpu",
    dtype="float32",
    settings=Settings(),
    seed=None,
    started="2030-01-01T12:00:00.000+00:00",
)


def turn(number: int, steps: int = 3) -> list[Event]:
    """What an engine says to one question."""
    body = [msgspec.structs.replace(step, turn=number, index=i) for i, step in enumerate(answer(5, 3, 5)[:steps])]
    text = "".join(piece for step in body for piece in step.pieces)
    ids = [token for step in body for token in step.token_ids]
    return [
        TurnStarted(
            turn=number,
            messages=[protocol.Message(role="user", content=f"Question {number}?")],
            prompt_ids=[1, 2, 3],
            cached_tokens=0,
            max_new_tokens=100,
            settings=Settings(),
        ),
        Prefilling(turn=number, done_tokens=2, total_tokens=2),
        *body,
        TurnFinished(
            turn=number, reason="eos", text=text, token_ids=ids, steps=steps, prefill_seconds=0.1, decode_seconds=0.2
        ),
    ]


def stream(*events: Event, pace: float = 0.5) -> list[Event]:
    """The events as an engine numbers and times them, behind a header."""
    return [msgspec.structs.replace(event, seq=i, t=i * pace) for i, event in enumerate((HEADER, *events))]


def untimed(events: Iterable[Event]) -> list[Event]:
    return [msgspec.structs.replace(event, seq=0, t=0.0) for event in events]


def write(path: Path, *lines: bytes) -> Path:
    path.write_bytes(b"".join(lines))
    return path


def recorded(tmp_path: Path, *events: Event) -> Path:
    return write(tmp_path / "talk.jsonl", *map(encode, stream(*events)))
