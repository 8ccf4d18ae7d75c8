"""An engine in this process, which has torch already: the same service over the same kind of pipe, in a thread."""

import contextlib
import faulthandler
import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn
from unittest.mock import patch

from ladechat.engine import server
from ladechat.engine.loading_events import ready
from ladechat.engine.preparing import prepare
from ladechat.engine.service import Service
from ladechat.engine_process.stream import EventStream, Inbox
from ladechat.protocol import FORMAT, VERSION, Command, Header, ProtocolError, Ready, Settings, Shutdown
from tests.checkpoints import LOOKAHEAD, load_on_cpu
from tests.engine.wire import Line
from tests.waiting import patience


class _Stream(EventStream):
    """One whose end is that of the thread, and not of the process."""

    def end_process(self, exit_code: int = 0) -> NoReturn:
        raise SystemExit


class _Inbox(Inbox):
    """One whose end ends the engine's thread as soon as that looks for commands."""

    def wait(self) -> Command | ProtocolError:
        return self._or_end(super().wait())

    def poll(self, seconds: float | None = 0.0) -> Command | ProtocolError | None:
        command = super().poll(seconds)
        return command if command is None else self._or_end(command)

    @staticmethod
    def _or_end(command: Command | ProtocolError) -> Command | ProtocolError:
        if isinstance(command, Shutdown):
            raise SystemExit
        return command

    def _read(self) -> None:
        with contextlib.suppress(SystemExit):
            super()._read()
        self._queue.put(Shutdown())


class Inside(Line):
    """An engine in a thread, for a checkpoint in float32 on a CPU.

    Args:
        folder: the checkpoint.
        settings: what it begins with.
        maps: files of what was trained for the model.
        warm_start: whether it drafts from earlier answers.

    Attributes:
        service: what its turns work with.
        inbox: where its commands come in.
        ready: what it said when it was.
    """

    def __init__(
        self, folder: Path, settings: Settings = LOOKAHEAD, maps: Sequence[Path] = (), warm_start: bool = False
    ) -> None:
        self.service = Service.of(load_on_cpu(folder, name=folder.name, maps=maps), settings, warm_start)
        from_here, commands = os.pipe()
        events, to_here = os.pipe()
        self._stream = _Stream(to_here)
        self.inbox = _Inbox(from_here, self._stream)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._ends = (from_here, to_here)
        super().__init__(os.fdopen(commands, "wb"), os.fdopen(events, "rb"))
        self._thread.start()
        self.ready = self.until(Ready)

    def _serve(self) -> None:
        loaded = self.service.loaded
        header = Header(
            format=FORMAT,
            version=VERSION,
            program="tests",
            model=loaded.name,
            tokenizer=loaded.tokenizer_fingerprint,
            device=loaded.device,
            dtype=loaded.dtype,
            settings=self.service.decoders.settings,
            seed=None,
            started="2026-01-02T03:04:05",
        )
        self._stream.emit(header, ready(self.service))
        prepare(self.service, self._stream.emit)
        with contextlib.suppress(SystemExit):
            server.Engine(self.service, self._stream, self.inbox).run()

    def where(self) -> None:
        """The stacks of all threads, on standard error."""
        faulthandler.dump_traceback()

    def end(self) -> None:
        """End its input, and wait until it has seen that."""
        self._commands.close()
        self._thread.join(patience())
        assert not self._thread.is_alive()
        for end in self._ends:
            os.close(end)


@contextlib.contextmanager
def inside(
    folder: Path, settings: Settings = LOOKAHEAD, maps: Sequence[Path] = (), warm_start: bool = False
) -> Iterator[Inside]:
    """An engine in this process, ended behind it. The garbage collection of the tests stays as it is."""
    with patch.object(server, "collect_rarely", lambda: None):
        engine = Inside(folder, settings, maps, warm_start)
        try:
            yield engine
        finally:
            engine.end()
