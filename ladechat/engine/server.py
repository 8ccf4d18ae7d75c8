"""The engine as a process: commands in on standard input, events out on standard output."""

import contextlib
import gc
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from ladechat import protocol
from ladechat.engine.failures import (
    bad_settings,
    ends_the_process,
    or_say_why_not,
    pool_file,
    unexpected,
    unknown_token,
    worker_ended,
)
from ladechat.engine.loading_events import STAGES, LoadingReport, ready
from ladechat.engine_options import EngineOptions
from ladechat.engine_process.opening import begin_stream
from ladechat.engine_process.pace import StepPace
from ladechat.engine_process.refusals import bad_command, busy
from ladechat.engine_process.stream import EventStream, Inbox
from ladechat.garbage import collect_rarely
from ladechat.model.checkpoint.fetch import fetch, start_libraries
from ladechat.model.checkpoint.files import local_folder, local_gguf, tokenizer_fingerprint
from ladechat.model.kernels.build import Build
from ladechat.model.parallel.workers import SECONDS_FOR_THE_REASON, Workers
from ladechat.private_folder import keep_torch_caches_private
from ladechat.protocol import Command, Configure, Failed, Generate, ProtocolError, Stop, Watch

if TYPE_CHECKING:
    from ladechat.engine.service import Service
    from ladechat.engine.turn import Emit
    from ladechat.model.loaded import LoadedModel


def serve(options: EngineOptions) -> int:
    """Load a model, then answer commands until the input ends.

    Returns:
        The exit code: 1 if the model cannot be loaded, the pool file is invalid, or the model does not support the
            decoder of the settings.
    """
    folder = local_folder(options.model)
    stream, inbox = begin_stream(options, _fingerprint(folder) if folder else None)
    workers = _workers(options, stream) if options.processes > 1 else None

    def load_and_serve() -> int:
        report = LoadingReport(stream, STAGES + (options.layer_search > 0))
        loaded = _load(options, report, workers)
        return _serve_model(loaded, options, report, stream, inbox)

    return or_say_why_not(load_and_serve, stream.emit)


def _fingerprint(folder: Path) -> str | None:
    """Return the fingerprint of the tokenizer in a folder; None where it cannot be read, which loading will report."""
    with contextlib.suppress(OSError):
        return tokenizer_fingerprint(folder)
    return None


def _serve_model(
    loaded: "LoadedModel", options: EngineOptions, report: LoadingReport, stream: EventStream, inbox: Inbox
) -> int:
    """Answer commands with a model until the input ends. Return the exit code: 1 if the pool file is invalid, or the
    model does not support the decoder of the settings.
    """
    from ladechat.engine.decoders import RefusedSettings
    from ladechat.engine.pool_file import PoolFileError, read, write
    from ladechat.engine.preparing import prepare, search_layers
    from ladechat.engine.service import Service

    try:
        service = Service.of(loaded, options.settings, bool(options.warm_start))
    except RefusedSettings as error:
        stream.emit(bad_settings(error))
        return 1
    pool = Path(options.pool) if options.pool else None
    if pool is not None:
        try:
            read(pool, service.decoders.shared.pool, loaded.tokenizer_fingerprint, loaded.vocabulary)
            write(pool, service.decoders.shared.pool, loaded.tokenizer_fingerprint)  # if this fails, report it now
        except PoolFileError as error:
            stream.emit(pool_file(error, fatal=True))
            return 1
    if options.layer_search:
        search_layers(service, options.layer_search, report, lambda: inbox.stop_came, stream.emit)
    stream.emit(ready(service))
    prepare(service, stream.emit)
    collect_rarely()
    Engine(service, stream, inbox, pool).run()
    return 0


class Engine:
    """Carries out commands, one after another. While a turn runs it is the turn's `TurnListener`."""

    def __init__(self, service: "Service", stream: EventStream, inbox: Inbox, pool: Path | None = None) -> None:
        self._service = service
        self._pool = pool
        self._stream = stream
        self._inbox = inbox
        self._changes: list[Configure] = []
        self._changes_wait = False
        self._stop = False
        self._pace = StepPace()
        self._learning = service.texts.learn(service.loaded.vocabulary)

    def run(self) -> None:
        """Serve as long as the process lives: the inbox ends it."""
        while True:
            command = self._next()
            try:
                if isinstance(command, Generate):
                    self._answer(command)
                else:
                    self._take(command)
                self._apply_changes(self._stream.emit)
            except BaseException as error:  # whatever a command provokes, the next one is carried out
                if ends_the_process(error):
                    raise
                traceback.print_exc()
                self._stream.emit(unexpected(error, turn=None, fatal=False))

    def _next(self) -> Command | ProtocolError:
        """Return the next command. Until it comes, do what no step should wait for: save what drafting has learnt, and
        cache the texts of tokens.
        """
        try:
            if self._service.warm_start is not None:
                self._service.warm_start.save()
            for _ in self._learning:
                if (command := self._inbox.poll()) is not None:
                    return command
        except BaseException as error:  # whatever a tokenizer makes of an id, or a full memory of what is saved
            if ends_the_process(error):
                raise
            traceback.print_exc()
        gc.collect()  # takes a few ms: model and libraries are excluded
        return self._inbox.wait()

    def take_commands(self) -> bool:
        """See `ladechat.engine.turn.TurnListener`."""
        while (command := self._inbox.poll()) is not None:
            self._take(command)
        return self._stop

    def until_due(self, emit: "Emit") -> float | None:
        """See `ladechat.engine.turn.TurnListener`."""
        self._apply_changes(emit)
        waited = 0.0
        while (left := self._pace.seconds_left()) != 0:
            emit()  # steps that are held back are shown while it waits
            began = time.perf_counter()
            command = self._inbox.poll(left)
            waited += time.perf_counter() - began
            if command is not None:
                self._take(command)
            if self.take_commands():
                return None
            self._apply_changes(emit)
        self._pace.begin_step()
        return waited

    def _take(self, command: Command | ProtocolError) -> None:
        """Carry out a command, or save it for later. No answer begins before the running one has ended."""
        match command:
            case Stop():
                self._stop = True
            case Configure():
                self._changes.append(command)
            case Watch():
                self._service.decoders.watch(command.lens, command.costs, command.rivals)
            case protocol.Pace():
                self._pace.change(command)
            case Generate():
                self._stream.emit(busy(command.turn))
            case ProtocolError():
                self._stream.emit(bad_command(command))

    def _apply_changes(self, emit: "Emit") -> None:
        """Apply the changes of settings that have come, and emit the result.

        During an answer with a decoder of its own, as a race has, they wait for its end.
        """
        from ladechat.engine.decoders import RefusedSettings

        if self._changes_wait:
            return
        while self._changes:
            change = self._changes.pop(0)  # before applying: whatever it raises, it is not tried again
            try:
                self._service.decoders.change(change)
            except RefusedSettings as error:
                emit(bad_command(error))
            else:
                emit(protocol.SettingsApplied(settings=self._service.decoders.settings))

    def _answer(self, command: Generate) -> None:
        from ladechat.engine.chat_format import MessageTooLong, NothingToAnswer, RefusedByTemplate
        from ladechat.engine.decoders import RefusedSettings
        from ladechat.engine.turn import answer
        from ladechat.model.loading.token_ids import UnknownToken

        self._stop = False
        self._pace.begin_answer()
        self._changes_wait = command.decoder is not None
        decoders = self._service.decoders
        try:
            with (
                decoders.fresh() if command.fresh else contextlib.nullcontext(),
                contextlib.nullcontext() if command.decoder is None else decoders.using(command.decoder),
            ):
                tokens = answer(self._service, command, self._emit, self)
            if self._service.warm_start is not None and not command.fresh:
                self._service.warm_start.add(tokens)
        except MessageTooLong as error:
            self._stream.emit(Failed(code="message_too_long", message=str(error), hint=error.hint, turn=command.turn))
        except RefusedByTemplate as error:
            self._stream.emit(Failed(code="chat_template", message=str(error), hint=error.hint, turn=command.turn))
        except (NothingToAnswer, RefusedSettings) as error:
            self._stream.emit(bad_command(error, turn=command.turn))
        except UnknownToken as error:
            self._stream.emit(unknown_token(error, command.turn))
        except BaseException as error:  # a failed answer does not end the conversation
            if ends_the_process(error):
                raise
            traceback.print_exc()
            self._stream.emit(unexpected(error, turn=command.turn, fatal=False))
        finally:
            self._changes_wait = False

    def _emit(self, *events: protocol.Event) -> None:
        """Emit events of an answer. The pool is written first: a reader of the last event may end the engine."""
        try:
            if any(isinstance(event, protocol.TurnFinished) for event in events):
                self._keep_pool()
        finally:
            self._stream.emit(*events)

    def _keep_pool(self) -> None:
        from ladechat.engine.pool_file import PoolFileError, write

        if self._pool is not None:
            try:
                write(self._pool, self._service.decoders.shared.pool, self._service.loaded.tokenizer_fingerprint)
            except PoolFileError as error:
                self._pool = None  # report it once
                self._stream.emit(pool_file(error, fatal=False))


def _workers(options: EngineOptions, stream: EventStream) -> Workers:
    """Return the processes that compute with the model beside this one, which ends when one of them does."""

    def ended(exit_code: int) -> None:
        stream.emit(worker_ended(exit_code, whole_models=options.lookahead_parallel > 1))
        stream.end_process(1)

    def failed(error: Exception) -> NoReturn:
        traceback.print_exc()
        time.sleep(SECONDS_FOR_THE_REASON)
        stream.emit(unexpected(error, turn=None, fatal=True))
        stream.end_process(1)

    return Workers(options.processes, options.lookahead_parallel > 1, ended, failed)


def _load(options: EngineOptions, report: LoadingReport, workers: Workers | None = None) -> "LoadedModel":
    model = options.model
    # The checkpoint before the libraries: a mistyped name is answered at once, not after ten seconds of imports.
    here = local_folder(model) or local_gguf(model)
    report.begin("looking for the checkpoint" if here else f"fetching {model}")
    folder = fetch(model, report.bytes_done)
    keep_torch_caches_private()
    start_libraries(folder, report.begin)
    from ladechat.model.load import load
    from ladechat.model.loading.device import leave_a_core_free

    leave_a_core_free(workers.processes if workers else 1)
    loaded = load(
        folder,
        model,
        options.device,
        options.dtype,
        report.begin,
        report.fraction_done,
        workers,
        options.quantize,
        Build(),
        [Path(file) for file in options.maps or ()],
        options.passes,
    )
    loaded.runner.use_graphs()
    return loaded
