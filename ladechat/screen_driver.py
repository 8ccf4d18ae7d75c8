"""Textual's driver for terminals, as it has to be for any terminal: what comes from it, and what it is sent."""

import asyncio
import os
import select
import signal
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable
from time import monotonic
from typing import Any

from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message

from ladechat.widgets.cells import drawn

TERMINAL_GONE = 128 + signal.SIGHUP
"""The exit code where the system does not say so with that signal."""
BYTES_AT_ONCE = 4096
SECONDS_BETWEEN_LOOKS = 0.1
"""Between two looks at whether the app ends, and whether an escape character was a key of its own."""
PASTE_BEGINS, PASTE_ENDS = "\x1b[200~", "\x1b[201~"
LEAVING_KEYS = ("\x03", "\x11", "\x1b[99;5u", "\x1b[113;5u")
"""Ctrl+C and Ctrl+Q, as terminals send them."""


class ScreenDriver(LinuxDriver):
    """Draws on a terminal and reads its keys.

    Whatever bytes come, keys go on: what is not UTF-8 is replaced, and what means nothing is left out. Each message has
    the time at which its bytes were read: an app that is busy handles keys later, and farther apart, than they came.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._on_screen = False
        # Textual's handlers would run in the middle of anything, also of the writing of a frame, and wait for its lock.
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTSTP, signal.SIGCONT):
            if callable(handler := signal.getsignal(number)):
                loop.add_signal_handler(number, handler, number, None)

    def write(self, data: str) -> None:
        """Write what every terminal draws in the same cells."""
        super().write(drawn(data))

    def start_application_mode(self) -> None:
        """Take the terminal."""
        super().start_application_mode()  # type: ignore[no-untyped-call]  # Textual's has no types
        self._on_screen = True

    def stop_application_mode(self) -> None:
        """Give the terminal back."""
        self._on_screen = False
        super().stop_application_mode()

    def resume_application_mode(self) -> None:
        """Take the terminal again, and have everything drawn. SIGSTOP, unlike SIGTSTP, gave nothing back before.

        Continued in the background, it stops again until it is brought to the front.
        """
        if os.tcgetpgrp(self.fileno) != os.getpgrp():
            os.kill(os.getpid(), signal.SIGSTOP)
            return
        if self._on_screen:
            self.suspend_application_mode()
        super().resume_application_mode()
        self.send_message(self.SignalResume())

    def run_input_thread(self) -> None:
        """Read what comes from the terminal, and pass it on as messages, until the app ends."""
        reader = Reader(self._debug)
        while not self.exit_event.is_set():
            come, _, _ = select.select([self.fileno], [], [], SECONDS_BETWEEN_LOOKS)
            data = self._read() if come else b""
            if come and not data:
                self._app.call_later(self._app.exit, return_code=TERMINAL_GONE)
                return
            read_at = monotonic()
            for message in reader.read(data) if come else reader.wait():
                message.time = read_at
                self.process_message(message)

    def _read(self) -> bytes:
        """Return what has come from the terminal; nothing where that is gone."""
        try:
            return os.read(self.fileno, BYTES_AT_ONCE)
        except OSError:
            return b""


class Reader:
    """Makes messages of the bytes of a terminal, whatever they are."""

    def __init__(self, debug: bool = False) -> None:
        self._debug = debug
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._parser = XTermParser(debug)
        self._last = ""
        self._pasting = False

    def read(self, data: bytes) -> Iterable[Message]:
        """Yield what these bytes mean; less of what goes on in the next ones.

        A paste that the terminal never ends would take all keys: Ctrl+C and Ctrl+Q end it, and act.
        """
        text = self._decoder.decode(data)
        if not text:
            return
        seen = self._last + text
        begun, ended = seen.rfind(PASTE_BEGINS), seen.rfind(PASTE_ENDS)
        if max(begun, ended) >= 0:
            self._pasting = begun > ended
        self._last = seen[1 - len(PASTE_ENDS) :]
        if self._pasting and (key := next(filter(text.endswith, LEAVING_KEYS), "")):
            self._pasting = False
            text = text.removesuffix(key) + PASTE_ENDS + key
        yield from self._meaning(lambda: self._parser.feed(text))

    def wait(self) -> Iterable[Message]:
        """Yield what was waited for to go on, and did not: Esc."""
        yield from self._meaning(self._parser.tick)

    def _meaning(self, parse: Callable[[], Iterable[Message]]) -> Iterable[Message]:
        """Yield what the parser makes of it; after a sequence that it fails over, such as a key's number out of range,
        begin anew.
        """
        try:
            yield from parse()
        except Exception:
            self._parser = XTermParser(self._debug)
