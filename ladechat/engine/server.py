"""The engine as a process: commands in on standard input, events out on standard output."""

import faulthandler
import sys
import time
import traceback
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import msgspec

from ladechat import __version__, protocol
from ladechat.engine.failures import bad_command, busy, follower_ended, pool_file, unexpected
from ladechat.engine.loading_events import LoadingReport
from ladechat.engine.stream import EventStream, Inbox
from ladechat.garbage import collect_seldom
from ladechat.model.checkpoint import LoadError, fetch, local_folder, local_gguf, tokenizer_fingerprint
from ladechat.model.followers import Followers
from ladechat.protocol import Command, Configure, Failed, Generate, ProtocolError, Settings, Stop

if TYPE_CHECKING:
    from ladechat.engine.turn import Emit, Service
    from ladechat.model.compiler import Compiling
    from ladechat.model.loading import LoadedModel


SECONDS_FOR_THE_REASON = 2.0
"""A pass fails at once where another process that shares the model has died: time to see that it was this."""


def serve(
    model: str,
    device: str,
    dtype: str,
    settings: Settings,
    pool: Path | None = None,
    passes: str = "eager",
    tensor_parallel: int = 1,
    quantize: str | None = None,
) -> int:
    """Load a model, then answer commands until the input ends.

    Args:
        model: "demo", a folder, or a hub id.
        device: where it runs, or "auto".
        dtype: the type it computes in, or "auto".
        settings: what the decoder starts with.
        pool: a file that the n-gram pool comes from, and is kept in after every answer.
        passes: see `ladechat.model.compiler.use_compiled`.
        tensor_parallel: how many processes share the model, this one included.
        quantize: how the model's weights are quantised while they are read, see `ladechat.model.loading.load`.

    Returns:
        The exit code: 1 if the model could not be loaded, or the file is no pool of this model.
    """
    faulthandler.register(protocol.WHERE)
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
    followers = _followers(tensor_parallel, stream) if tensor_parallel > 1 else None
    try:
        loaded = _load(model, device, dtype, stream, followers, quantize)
        _check_window(settings, loaded.context_length)
    except LoadError as error:
        stream.emit(Failed(code=error.code, message=str(error), hint=error.hint, fatal=True))
        return 1
    except Exception as error:  # whatever a checkpoint may provoke: the stream says so before the process ends
        traceback.print_exc()
        stream.emit(unexpected(error, turn=None, fatal=True))
        return 1
    from ladechat.engine.pool_file import PoolFileError, read, write
    from ladechat.engine.turn import Service

    service = Service.of(loaded, settings, passes)
    if pool is not None:
        try:
            read(pool, service.decoders.pool, loaded.tokenizer_fingerprint, loaded.vocabulary)
            write(pool, service.decoders.pool, loaded.tokenizer_fingerprint)  # if it cannot be, say so now
        except PoolFileError as error:
            stream.emit(pool_file(error, fatal=True))
            return 1
    stream.emit(_ready(service))
    compiling = _make_fast(service, passes, stream)
    collect_seldom()
    Engine(service, stream, inbox, pool, compiling).run()
    return 0


def _make_fast(service: "Service", passes: str, stream: EventStream) -> "Compiling | None":
    """What may be done before the first answer so that it is a fast one. Where that fails, the model runs as it is."""
    from ladechat.engine.turn import save_memory
    from ladechat.model.compiler import use_compiled
    from ladechat.model.memory import memory_is_used_up

    runner, compiling, used_up = service.loaded.runner, None, False
    try:
        compiling = use_compiled(runner, service.loaded.folder, passes)
        service.decoders.measure_at_rest()
    except Exception as error:  # whatever it is, the model answers as it is
        traceback.print_exc()
        used_up = memory_is_used_up(error)
        runner.compiled = None
        if not used_up:
            stream.emit(unexpected(error, turn=None, fatal=False))
    if used_up:  # not before: while an error is handled, it holds what had been allocated
        save_memory(service, None, stream.emit)
    return compiling


class Engine:
    """Carries out commands, one after another. While a turn runs it is the turn's `Listener`."""

    def __init__(
        self,
        service: "Service",
        stream: EventStream,
        inbox: Inbox,
        pool: Path | None = None,
        compiling: "Compiling | None" = None,
    ) -> None:
        self._service = service
        self._compiling = compiling
        self._pool = pool
        self._stream = stream
        self._inbox = inbox
        self._changes: list[Configure] = []
        self._stop = False
        self._learning = service.texts.learn(service.loaded.vocabulary)

    def run(self) -> None:
        """Serve for as long as the process lives: the inbox ends it."""
        while True:
            command = self._next()
            if isinstance(command, Generate):
                self._answer(command)
            elif isinstance(command, Configure):
                self._changes.append(command)
            elif isinstance(command, ProtocolError):
                self._stream.emit(bad_command(command))
            self.apply_changes(self._stream.emit)

    def _next(self) -> Command | ProtocolError:
        """The next command. Until it comes, what no step shall wait for is done: tokens get their texts."""
        try:
            for _ in self._learning:
                if (command := self._inbox.poll()) is not None:
                    return command
        except Exception:  # whatever a tokenizer makes of an id that no text has: what is met later is asked for then
            traceback.print_exc()
        collect_seldom()
        return self._inbox.wait()

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

    def apply_changes(self, emit: "Emit") -> None:
        """See `ladechat.engine.turn.Listener`."""
        for change in self._changes:
            given = {name: value for name, value in msgspec.structs.asdict(change).items() if value is not None}
            settings = msgspec.structs.replace(self._service.decoders.settings, **given)
            self._service.decoders.apply(settings)
            emit(protocol.SettingsApplied(settings=self._service.decoders.settings))
        self._changes.clear()

    def _answer(self, command: Generate) -> None:
        from ladechat.engine.conversation import MessageTooLong, NothingToAnswer
        from ladechat.engine.turn import answer

        self._stop = False
        if self._compiling is not None:
            self._compiling.poll()  # one that has ended leaves the table of processes
        try:
            answer(self._service, command, self._tell, self)
        except MessageTooLong as error:
            hint = "Shorten the message, or use a model with a longer context."
            self._stream.emit(Failed(code="message_too_long", message=str(error), hint=hint, turn=command.turn))
        except NothingToAnswer as error:
            self._stream.emit(bad_command(error, turn=command.turn))
        except Exception as error:  # the conversation is not lost because one answer was
            traceback.print_exc()
            self._stream.emit(unexpected(error, turn=command.turn, fatal=False))

    def _tell(self, *events: protocol.Event) -> None:
        """Emit events of an answer. Who has heard of its end may end the engine: the pool is kept before."""
        try:
            if any(isinstance(event, protocol.TurnFinished) for event in events):
                self._keep_pool()
        finally:
            self._stream.emit(*events)

    def _keep_pool(self) -> None:
        from ladechat.engine.pool_file import PoolFileError, write

        if self._pool is not None:
            try:
                write(self._pool, self._service.decoders.pool, self._service.loaded.tokenizer_fingerprint)
            except PoolFileError as error:
                self._pool = None  # once is enough
                self._stream.emit(pool_file(error, fatal=False))


def _followers(processes: int, stream: EventStream) -> Followers:
    """The processes that share the model with this one, which ends when one of them does."""

    def ended(exit_code: int) -> None:
        stream.emit(follower_ended(exit_code))
        stream.end_process(1)

    def failed(error: Exception) -> NoReturn:
        traceback.print_exc()
        time.sleep(SECONDS_FOR_THE_REASON)
        stream.emit(unexpected(error, turn=None, fatal=True))
        stream.end_process(1)

    return Followers(processes, ended, failed)


def _load(
    model: str,
    device: str,
    dtype: str,
    stream: EventStream,
    followers: Followers | None = None,
    quantize: str | None = None,
) -> "LoadedModel":
    report = LoadingReport(stream)
    # The checkpoint before the libraries: a mistyped name is answered at once, not after ten seconds of imports.
    here = local_folder(model) or local_gguf(model)
    report.begin("looking for the checkpoint" if here else f"fetching {model}")
    folder = fetch(model, report.bytes_done)
    report.begin("starting PyTorch and transformers")
    from ladechat.model.loading import load

    return load(folder, model, device, dtype, report.begin, report.fraction_done, followers, quantize)


def _check_window(settings: Settings, context_length: int) -> None:
    """Make sure that there is a text behind which the window fits.

    Raises:
        LoadError: there is none.
    """
    ahead = settings.window + settings.ngram - 3
    if ahead >= context_length:
        asked = f"W {settings.window} and N {settings.ngram}"
        message = f"{asked} look {ahead} positions ahead, and the model has {context_length}."
        raise LoadError("load_failed", message, "Start with a smaller --window or --ngram.")


def _ready(service: "Service") -> protocol.Ready:
    loaded = service.loaded
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
        settings=service.decoders.settings,
        quantization=loaded.quantization,
        sampling_defaults=protocol.SamplingDefaults(**asdict(sampling)) if sampling else None,
        plain_only=loaded.plain_only,
        memory=service.memory(),
    )
