"""Draws the app for a browser tab: packets on standard input and output, in the format of Textual's web driver."""

from textual import events, messages
from textual.driver import Driver
from textual.drivers._byte_stream import ByteStream
from textual.drivers.web_driver import WebDriver

from ladechat.terminal import STANDARD_INPUT
from ladechat.terminal_input import InputReader, chunks
from ladechat.widgets.cells import drawn

KEYS = "D"
"""The type of a packet with a terminal's input."""


class PageDriver(WebDriver):
    """A web driver whose app ends with its input, so that no app outlives the server, however the server ends."""

    deliver_binary = Driver.deliver_binary
    """Saves a picture of the screen on this machine, as in a terminal; nothing is sent to the browser."""

    def write(self, data: str) -> None:
        """Write output that every page draws in the same cells."""
        super().write(drawn(data))

    def start_application_mode(self) -> None:
        """Start with the focus, as in a terminal: the page reports it before the app listens."""
        super().start_application_mode()
        self._app.call_later(self._app.post_message, events.AppFocus())

    def run_input_thread(self) -> None:
        """Process input, read as from a terminal, and exit the app when the input ends."""
        stream, reader = ByteStream(), InputReader(self._debug)
        try:
            for data in chunks(STANDARD_INPUT, self.exit_event):
                packets = stream.feed(data) if data else [(KEYS, b"")]
                for kind, payload in packets:
                    if kind != KEYS:
                        self._on_meta(kind, payload)
                        continue
                    for message in reader.read(payload):
                        self.process_message(message)
        finally:
            self._app.post_message(messages.ExitApp())

    def open_url(self, url: str, new_tab: bool = True) -> None:
        """Open nothing: links in a model's text are inactive."""
