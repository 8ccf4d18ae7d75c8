"""The steps of an answer, packed to be saved with it: JSON lines, compressed. Damaged ones are as good as none."""

import zlib
from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from ladechat.protocol.codec import decode_event, encode
from ladechat.protocol.contract import ProtocolError
from ladechat.protocol.events import Step
from ladechat.protocol.values import MOST_PACKED, Count, Milliseconds, Piece


class Took(msgspec.Struct, frozen=True):
    """The time of a step."""

    step_ms: Milliseconds = 0.0


class DrawnStep(msgspec.Struct, frozen=True):
    """What the colours of an answer need of a step, and the line above thoughts."""

    pieces: list[Piece]
    origins: list[Piece]
    reasoning: Count = 0
    timing: Took = Took()


_decode_drawn = msgspec.json.Decoder(DrawnStep).decode_lines


def packed(steps: Iterable[Step]) -> bytes:
    """Return steps packed; b"" if they are too many to be saved."""
    data = zlib.compress(b"".join(map(encode, steps)))
    return data if len(data) <= MOST_PACKED else b""


def unpacked(data: bytes, turn: int) -> list[Step]:
    """Return packed steps, numbered from 0, as those of a turn."""
    try:
        steps = [step for line in _lines(data).splitlines() if isinstance(step := decode_event(line), Step)]
    except ProtocolError:
        return []
    return [replace(step, turn=turn, index=place) for place, step in enumerate(steps)]


def drawn(data: bytes) -> list[DrawnStep]:
    """Return what colours need of packed steps: that takes a quarter of the time."""
    try:
        return _decode_drawn(_lines(data))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return []


def _lines(data: bytes) -> bytes:
    try:
        return zlib.decompressobj().decompress(data, 100 * MOST_PACKED)  # damaged ones could stand for very many
    except zlib.error:
        return b""
