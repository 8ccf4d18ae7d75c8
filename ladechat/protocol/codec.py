"""Encodes messages as lines, and decodes them. Lines of earlier versions too: see `ladechat.protocol.earlier`."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

import ladechat.protocol.recorded  # noqa: F401  # makes its events known as subclasses of `Event`
from ladechat.protocol.checks import check
from ladechat.protocol.commands import Command
from ladechat.protocol.contract import ProtocolError
from ladechat.protocol.earlier import is_earlier, upgraded
from ladechat.protocol.events import Event

COMMANDS: dict[str, type[Command]] = {cls.__struct_config__.tag: cls for cls in Command.__subclasses__()}  # type: ignore[misc]  # our tags are names
EVENTS: dict[str, type[Event]] = {cls.__struct_config__.tag: cls for cls in Event.__subclasses__()}  # type: ignore[misc]  # as above


class _CommandTag(Struct):
    kind: str = msgspec.field(name="command")


class _EventTag(Struct):
    kind: str = msgspec.field(name="event")


_decode_command_tag = msgspec.json.Decoder(_CommandTag).decode
_decode_event_tag = msgspec.json.Decoder(_EventTag).decode
_command_decoders = {tag: msgspec.json.Decoder(cls) for tag, cls in COMMANDS.items()}
_event_decoders = {tag: msgspec.json.Decoder(cls) for tag, cls in EVENTS.items()}
_encoder = msgspec.json.Encoder()
_M = TypeVar("_M")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")


def encode(message: Struct) -> bytes:
    """Return one line, with its newline, in ASCII: no character of a model's text can split it or upset a reader."""
    try:
        line = _encoder.encode(message)
    except UnicodeEncodeError:  # half a surrogate pair: Python's form of bytes in a name that are not UTF-8
        line = _encoder.encode(_mended(msgspec.to_builtins(message)))
    if not line.isascii():
        # In JSON only strings have characters outside ASCII, and there an escape means the same character.
        line = _NOT_ASCII.sub(lambda match: json.dumps(match[0])[1:-1], line.decode()).encode()
    return line + b"\n"


def _mended(value: Any) -> Any:
    """Return the same value with U+FFFD for each half of a surrogate pair."""
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case dict():
            return {_mended(key): _mended(item) for key, item in value.items()}
        case list():
            return [_mended(item) for item in value]
    return value


def decode_command(line: bytes) -> Command | None:
    """Return the command in one line, or None for a kind that this version does not know.

    Raises:
        ProtocolError: the line is not JSON, or not a command, or a known field has another type or is out of range.
    """
    return _decode(line, _decode_command_tag, _command_decoders)


def decode_event(line: bytes) -> Event | None:
    """Return the event in one line, or None for a kind that this version does not know.

    Raises:
        ProtocolError: the line is not JSON, or not an event, or a known field has another type, is out of range or does
            not fit the others.
    """
    event = _decode(line, _decode_event_tag, _event_decoders)
    if event is not None:
        check(event)
    return event


def _decode(
    line: bytes,
    decode_tag: Callable[[bytes], _CommandTag | _EventTag],
    decoders: Mapping[str, msgspec.json.Decoder[_M]],
) -> _M | None:
    try:
        decoder = decoders.get(decode_tag(line).kind)
        if decoder is None:
            return None
        if b'"settings"' in line:  # few lines have settings, and only those differ from earlier versions
            message = msgspec.json.decode(line)
            if is_earlier(message):
                line = msgspec.json.encode(upgraded(message))
        return decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ProtocolError(str(error)) from error
    except RecursionError:  # its trace is as long as the line is deep
        raise ProtocolError("it is nested too deeply") from None
