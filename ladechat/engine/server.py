"""The engine as a process: commands in on standard input, events out on standard output."""

import sys
import traceback
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from ladechat import __version__, protocol
from ladechat.engine.failures import bad_command, busy, unexpected
from ladechat.engine.loading_events import LoadingReport
from ladechat.engine.stream import EventStream, Inbox
from ladechat.model.checkpoint import LoadError, fetch, local_folder, tokenizer_fingerprint
from ladechat.protocol import Configure, Failed, Generate, ProtocolError, Settings, Stop

if TYPE_CHECKING:
    from ladechat.engine.turn import Service
    from ladechat.model.loading import LoadedModel


def serve(model: str, device: str, dtype: str, settings: Settings) -> int:
    """Load a model, then answer commands until the input ends. The exit code: 1 if the model could not be loaded."""
    stream = EventStream.take_over_stdout()
    folder = local_folder(model)
    stream.emit(
        protocol.Header(
            format=protocol.FORMAT,
            version=protocol.VERSION,
            program=f"ladechat {__version__}",
            model=model,
            tokenizer=tokenizer_fingerprint(folder) if folder else None,
            device=device,
            dtype=dtype,
            settings=settings,
            seed=settings.seed,
            started=datetime.now(UTC).isoformat(timespec="milliseconds"),
        )
    )
    inbox = Inbox(sys.stdin.fileno(), stream)
    try:
        loaded = _load(model, device, dtype, stream)
    except LoadError as error:
        stream.emit(Failed(code=error.code, message=str(error), hint=error.hint, fatal=True))
        return 1
    except Exception as error:  # whatever a checkpoint may provoke: the stream says so before the process ends
        traceback.print_exc()
        stream.emit(unexpected(error, turn=None, fatal=True))
        return 1
    from ladechat.engine.turn import Service

    stream.emit(_ready(loaded, settings))
    Engine(Service.of(loaded, settings), stream, inbox).run()
    return 0


class Engine:
    """Carries out commands, one after another. While a turn runs it is the turn's `Listener`."""

    def __init__(self, service: "Service", stream: EventStream, inbox: Inbox) -> None:
        self._service = service
        self._stream = stream
        self._inbox = inbox
        self._changes: list[Configure] = []
        self._stop = False

    def run(self) -> None:
        """Serve for as long as the process lives: the inbox ends it."""
        while True:
            command = self._inbox.wait()
            if isinstance(command, Generate):
                self._answer(command)
            elif isinstance(command, Configure):
                self._changes.append(command)
            elif isinstance(command, ProtocolError):
                self._stream.emit(bad_command(command))
            self.apply_changes()

    def stop_wanted(self) -> bool:
        """See `ladechat.engine.turn.Listener`."""
        while (command := self._inbox.poll()) is not None:
            if isinstance(command, Stop):
                self._stop = True
            elif isinstance(command, Configure):
                self._changes.append(command)
            elif isinstance(command, Generate):
                self._stream.emit(busy(command.turn))
            elif isinstance(command, ProtocolError):
                self._stream.emit(bad_command(command))
        return self._stop

    def apply_changes(self) -> None:
        """See `ladechat.engine.turn.Listener`."""
        for change in self._changes:
            given = {name: value for name, value in msgspec.structs.asdict(change).items() if value is not None}
            settings = msgspec.structs.replace(self._service.decoders.settings, **given)
            self._service.decoders.apply(settings)
            self._stream.emit(protocol.SettingsApplied(settings=settings))
        self._changes.clear()

    def _answer(self, command: Generate) -> None:
        from ladechat.engine.conversation import MessageTooLong, NothingToAnswer
        from ladechat.engine.turn import answer

        self._stop = False
        try:
            answer(self._service, command, self._stream.emit, self)
        except MessageTooLong as error:
            hint = "Shorten the message, or use a model with a longer context."
            self._stream.emit(Failed(code="message_too_long", message=str(error), hint=hint, turn=command.turn))
        except NothingToAnswer as error:
            self._stream.emit(bad_command(error, turn=command.turn))
        except Exception as error:  # the conversation is not lost because one answer was
            traceback.print_exc()
            self._stream.emit(unexpected(error, turn=command.turn, fatal=False))


def _load(model: str, device: str, dtype: str, stream: EventStream) -> "LoadedModel":
    report = LoadingReport(stream)
    # The checkpoint before the libraries: a mistyped name is answered at once, not after ten seconds of imports.
    report.begin("looking for the checkpoint" if local_folder(model) else f"fetching {model}")
    folder = fetch(model, report.bytes_done)
    report.begin("starting PyTorch and transformers")
    from ladechat.model.loading import load

    return load(folder, model, device, dtype, report.begin, report.fraction_done)


def _ready(loaded: "LoadedModel", settings: Settings) -> protocol.Ready:
    sampling = loaded.sampling_defaults
    return protocol.Ready(
        model=loaded.name,
        model_type=loaded.model_type,
        tokenizer=loaded.tokenizer_fingerprint,
        parameters=loaded.parameters,
        layers=loaded.layers,
        vocabulary=loaded.vocabulary,
        context_length=loaded.context_length,
        device=loaded.device,
        dtype=loaded.dtype,
        chat_template="checkpoint" if loaded.tokenizer.chat_template else "llama-2 (built in)",
        eos_ids=sorted(loaded.eos_ids),
        load_seconds=loaded.load_seconds,
        settings=settings,
        quantization=loaded.quantization,
        sampling_defaults=protocol.SamplingDefaults(**asdict(sampling)) if sampling else None,
    )
