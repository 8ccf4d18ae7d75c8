"""Textual's terminal driver, with input and output made safe for any terminal."""

import asyncio
import os
import signal
from typing import Any

from textual.drivers.linux_driver import LinuxDriver

from ladechat.terminal_input import InputReader, chunks
from ladechat.widgets.cells import drawn

TERMINAL_GONE = 128 + signal.SIGHUP
"""The exit code if the terminal is gone and the system sends no SIGHUP."""


class ScreenDriver(LinuxDriver):
    """Draws on a terminal and reads its keys, whatever bytes it sends."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._on_screen = False
        # Textual's handlers could interrupt anything, even the writing of a frame, and wait for its lock.
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTSTP, signal.SIGCONT):
            if callable(handler := signal.getsignal(number)):
                loop.add_signal_handler(number, handler, number, None)

    def write(self, data: str) -> None:
        """Write text such that every terminal draws it in the same cells."""
        super().write(drawn(data))

    def start_application_mode(self) -> None:
        super().start_application_mode()  # type: ignore[no-untyped-call]  # Textual's has no types
        self._on_screen = True

    def stop_application_mode(self) -> None:
        self._on_screen = False
        super().stop_application_mode()

    def resume_application_mode(self) -> None:
        """Set the terminal up again after a suspension, and redraw. SIGSTOP cannot be handled and has left it as it
        was.

        If continued in the background, it stops again until it is in the foreground.
        """
        if os.tcgetpgrp(self.fileno) != os.getpgrp():
            os.kill(os.getpid(), signal.SIGSTOP)
            return
        if self._on_screen:
            self.suspend_application_mode()
        super().resume_application_mode()
        self.send_message(self.SignalResume())

    def run_input_thread(self) -> None:
        """Read the terminal's input and pass it on as messages, until the app ends."""
        reader = InputReader(self._debug)
        for data in chunks(self.fileno, self.exit_event):
            for message in reader.read(data):
                self.process_message(message)
        if not self.exit_event.is_set():
            self._app.call_later(self._app.exit, return_code=TERMINAL_GONE)
