"""The `failed` events of the engine, in words."""

import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING

from ladechat import catalog
from ladechat.model.checkpoint.faults import first_sentence, raised_by_a_library
from ladechat.model.checkpoint.files import LoadError
from ladechat.model.parallel.workers import OUT_OF_MEMORY, how_it_ended
from ladechat.protocol import Failed, Settings

if TYPE_CHECKING:
    from ladechat.model.loading.token_ids import UnknownToken

MOST_OF_AN_ERROR = 2000
"""How many characters of a library's error message are shown; the log has all of it."""
LESS_MEMORY = "a smaller model, or --dtype bfloat16"


def unknown_token(error: "UnknownToken", turn: int) -> Failed:
    """Return the event for a prompt with a token that the model does not know."""
    return Failed(code="bad_command", message=str(error), hint=error.hint, turn=turn)


def bad_settings(error: Exception) -> Failed:
    """Return the event for settings, given at the start, that do not fit the model."""
    hint = "Start with another --decoder, or without that option."
    message = f"{error}."
    return Failed(code="load_failed", message=message[:1].upper() + message[1:], hint=hint, fatal=True)


def pool_file(error: Exception, fatal: bool) -> Failed:
    """Return the event for a pool file that is invalid or cannot be written."""
    hint = (
        "Without --pool, the n-grams of a session are forgotten at its end."
        if fatal
        else "It is not kept from here on."
    )
    return Failed(code="pool_file", message=str(error), hint=hint, fatal=fatal)


def worker_ended(exit_code: int, *, whole_models: bool) -> Failed:
    """Return the event for the end of a worker process, one of those that hold the whole model or a part of it."""
    if exit_code == OUT_OF_MEMORY:
        more = "--tensor-parallel in place of --lookahead-parallel" if whole_models else "a larger --tensor-parallel"
        hint = f"Start with {more}, a smaller W and G, or --dtype bfloat16."
        return Failed(code="out_of_memory", message=how_it_ended(exit_code), hint=hint, fatal=True)
    hint = "The engine's log may say why."
    return Failed(code="internal", message=how_it_ended(exit_code), hint=hint, fatal=True)


def passes_made_smaller(settings: Settings, turn: int | None) -> Failed:
    """Return the event for memory that was used up in an answer; `settings` are the smaller ones used from now on."""
    info = catalog.DECODERS[settings.decoder]
    values = [
        f"{one.label} {settings.parameters[one.name]}" for one in info.parameters if not isinstance(one.default, bool)
    ]
    now = ", ".join([info.label, *values])
    message = f"The memory is used up. The cache was given back, and passes are smaller from here on: {now}."
    hint = f"Ask again; if it comes again, start a new conversation, or use {LESS_MEMORY}."
    return Failed(code="out_of_memory", message=message, hint=hint, turn=turn)


def memory_used_up(turn: int | None, fatal: bool) -> Failed:
    """Return the event for memory that was used up, where no setting changes."""
    hint = f"Use {LESS_MEMORY}." if fatal else f"Start a new conversation, or use {LESS_MEMORY}."
    return Failed(code="out_of_memory", message="The memory is used up.", hint=hint, turn=turn, fatal=fatal)


def ends_the_process(error: BaseException) -> bool:
    """Return whether this is meant to end the process. Any other error is reported, also one that is no `Exception`,
    such as a panic of the tokenizers.
    """
    return isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit)


def unexpected(error: BaseException, turn: int | None, fatal: bool) -> Failed:
    """Return the event for memory that was used up, or for an unexpected error."""
    from ladechat.model.runners.out_of_memory import memory_is_used_up

    if memory_is_used_up(error):
        return memory_used_up(turn, fatal)
    if isinstance(error, FloatingPointError):
        hint = "In float16 large models overflow; try --dtype bfloat16 or float32."
        return Failed(code="internal", message=f"The answer was broken off: {error}", hint=hint, turn=turn, fatal=fatal)
    if raised_by_a_library(error):
        message = f"The model, or what reads its text, failed: {first_sentence(error)}"
        hint = "Try plain decoding (F3), or use another copy of the model; the engine's log has the details."
        return Failed(code="internal", message=message, hint=hint, turn=turn, fatal=fatal)
    message = f"Something went wrong that should not have: {type(error).__name__}: {str(error)[:MOST_OF_AN_ERROR]}"
    hint = "The engine's log has the details; please report it with them."
    return Failed(code="internal", message=message, hint=hint, turn=turn, fatal=fatal)


def or_say_why_not(work: Callable[[], int], emit: Callable[[Failed], None]) -> int:
    """Return the exit code of `work`; where it fails, emit the reason and return 1."""
    try:
        return work()
    except LoadError as error:
        if error.__cause__ is not None:
            traceback.print_exc()
        emit(Failed(code=error.code, message=str(error), hint=error.hint, fatal=True))
    except BaseException as error:  # whatever a checkpoint may raise: the stream says so before the process ends
        if ends_the_process(error):
            raise
        traceback.print_exc()
        emit(unexpected(error, turn=None, fatal=True))
    return 1
