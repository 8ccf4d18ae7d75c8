"""Input from a terminal, as messages, whatever bytes it sends: keys, the mouse, pastes."""

import os
import select
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Iterator
from threading import Event
from time import monotonic

from textual import events
from textual._xterm_parser import XTermParser
from textual.message import Message

BYTES_AT_ONCE = 4096
SECONDS_BETWEEN_LOOKS = 0.1
"""The seconds between two checks whether the app ends, and whether an escape character was a key of its own."""
PASTE_BEGINS, PASTE_ENDS = "\x1b[200~", "\x1b[201~"
"""Both have the same length."""
SURELY_BEGUN = tuple(PASTE_BEGINS[:length] for length in range(3, len(PASTE_BEGINS)))
"""Prefixes after which the rest is waited for, however late. A shorter prefix may be a key: Esc, or Alt and a bracket.
"""
ALT_ENTER, AS_A_CODE = "\x1b\r", "\x1b[13;3u"
"""Alt+Enter as most terminals send it, which the parser takes for Enter, and as it understands it."""
LEAVING_KEYS = ("\x03", "\x11", "\x1b[99;5u", "\x1b[113;5u")
"""Ctrl+C and Ctrl+Q, as terminals send them."""


def chunks(source: int, ended: Event) -> Iterator[bytes]:
    """Yield the bytes read from a file, b"" at each pause, until its end or that of the app."""
    while not ended.is_set():
        come, _, _ = select.select([source], [], [], SECONDS_BETWEEN_LOOKS)
        if not come:
            yield b""
        elif data := _read(source):
            yield data
        else:
            return


def _read(source: int) -> bytes:
    """Return the available bytes; none if the terminal is gone."""
    try:
        return os.read(source, BYTES_AT_ONCE)
    except OSError:
        return b""


class InputReader:
    """Converts the bytes from a terminal to messages.

    Invalid bytes do not stop the keys: what is not UTF-8 is replaced, and unknown sequences are skipped. Everything
    between the two marks of a paste is text, wherever reads split it and even if it looks like keys: Textual's parser,
    which takes what follows an escape character for keys, receives none of it. Each message has the time at which its
    bytes were read: a busy app handles keys later, and farther apart, than they were typed.
    """

    def __init__(self, debug: bool = False) -> None:
        self._debug = debug
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._parser = XTermParser(debug)
        self._pasting = False
        self._pasted: list[str] = []
        self._last = ""
        """The last characters, fewer than a mark: they may be its beginning."""

    def read(self, data: bytes) -> Iterable[Message]:
        """Yield the messages of these bytes, if complete; no bytes are a pause: Esc is a key if nothing follows it."""
        read_at = monotonic()
        for message in self._messages(self._decoder.decode(data)) if data else self._pause():
            message.time = read_at
            yield message

    def _messages(self, text: str) -> Iterable[Message]:
        while text:
            mark = PASTE_ENDS if self._pasting else PASTE_BEGINS
            before, found, rest = (self._last + text).partition(mark)
            part = (before + found)[len(self._last) :]
            self._last = "" if found else before[1 - len(mark) :]
            text = rest
            if self._pasting:
                self._pasted.append(part)
                if found:
                    yield self._paste(mark)
            else:
                # The parser may have received the beginning of the mark: it gets the rest, and the end of the paste.
                yield from self._keys(part + PASTE_ENDS if found else part)
                self._pasting = bool(found)

    def _paste(self, end: str) -> Message:
        """Return the pasted text up to this end."""
        text = "".join(self._pasted).removesuffix(end)
        self._pasting, self._pasted, self._last = False, [], ""
        return events.Paste(text)

    def _pause(self) -> Iterable[Message]:
        """Yield the messages of incomplete input that was not continued.

        A paste without an end would swallow all keys: Ctrl+C and Ctrl+Q before a pause end it, and take effect. Within
        a paste that continues, they are text.
        """
        if self._pasting:
            if key := next(filter("".join(self._pasted).endswith, LEAVING_KEYS), ""):
                yield self._paste(key)
                yield from self._keys(key)
        elif not self._last.endswith(SURELY_BEGUN):
            for message in self._meaning(self._parser.tick):
                self._last = ""
                yield message

    def _keys(self, text: str) -> Iterable[Message]:
        """Yield the messages of a text outside of pastes."""
        for character in text.replace(ALT_ENTER, AS_A_CODE):
            for message in self._meaning(lambda: self._parser.feed(character)):  # noqa: B023 - called at once
                if not isinstance(message, events.Paste):
                    yield message

    def _meaning(self, parse: Callable[[], Iterable[Message]]) -> Iterable[Message]:
        """Yield the parser's messages; replace the parser after a sequence that makes it fail."""
        try:
            yield from parse()
        except Exception:  # the parser raises anything for invalid sequences
            self._parser = XTermParser(self._debug)
