"""Draws the app for a browser tab: packets on standard input and output, as Textual's web driver has them."""

from textual import events, messages
from textual.driver import Driver
from textual.drivers._byte_stream import ByteStream
from textual.drivers.web_driver import WebDriver

from ladechat.terminal import STANDARD_INPUT
from ladechat.terminal_input import Reader, chunks
from ladechat.widgets.cells import drawn

KEYS = "D"
"""The kind of a packet with what a terminal would send."""


class PageDriver(WebDriver):
    """A web driver whose app ends with its input, so that no app outlives the server, however that ends."""

    deliver_binary = Driver.deliver_binary
    """A picture of the screen is saved on this machine, as in a terminal; nothing is sent to the browser."""

    def write(self, data: str) -> None:
        """Write what every page draws in the same cells."""
        super().write(drawn(data))

    def start_application_mode(self) -> None:
        """Begin with keys for the app, as a terminal does: the page says so before anybody listens."""
        super().start_application_mode()
        self._app.call_later(self._app.post_message, events.AppFocus())

    def run_input_thread(self) -> None:
        """Pass on what comes, read as from a terminal, and leave when nothing can come any more."""
        stream, reader = ByteStream(), Reader(self._debug)
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
        """Open nothing: a link in what a model writes leads nowhere from here."""
