"""The first line of an engine, and what ends it from outside."""

import faulthandler
import sys
from datetime import UTC, datetime

from ladechat import __version__, protocol
from ladechat.engine_options import EngineOptions
from ladechat.engine_process.stream import EventStream, Inbox
from ladechat.engine_process.watcher import watch_input


def begin_stream(options: EngineOptions, tokenizer: str | None = None) -> tuple[EventStream, Inbox]:
    """Write the header, with the fingerprint of the model's tokenizer, if it is known already; and begin to read
    commands. A watcher ends the process if it does not see its input end.
    """
    faulthandler.enable()  # a crash of compiled code writes the stacks into the log
    faulthandler.register(protocol.WHERE)
    stream = EventStream.take_over_stdout()
    stream.emit(
        protocol.Header(
            format=protocol.FORMAT,
            version=protocol.VERSION,
            program=f"ladechat {__version__}",
            model=options.named,
            tokenizer=tokenizer,
            device=options.device,
            dtype=options.dtype,
            settings=options.settings,
            seed=options.settings.seed,
            started=datetime.now(UTC).isoformat(timespec="milliseconds"),
        )
    )
    inbox = Inbox(sys.stdin.fileno(), stream)
    watch_input(sys.stdin.fileno())
    return stream, inbox
