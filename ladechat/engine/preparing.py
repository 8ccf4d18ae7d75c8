"""The work of an engine before its first answer, so that no answer waits for it."""

import traceback
from collections.abc import Callable

from ladechat import catalog, protocol
from ladechat.engine.chat_format import MessageTooLong, NothingToAnswer, RefusedByTemplate
from ladechat.engine.failures import ends_the_process, unexpected
from ladechat.engine.loading_events import LoadingReport
from ladechat.engine.service import Service
from ladechat.engine.turn import Emit
from ladechat.layer_search import JUDGED_QUESTION, JUDGED_TOKENS, budget
from ladechat.model.checkpoint.files import LoadError
from ladechat.model.loading.token_ids import UnknownToken, check_ids
from ladechat.model.runners.out_of_memory import memory_is_used_up
from ladechat.registry import why_unusable

LAYER_SKIP = "layer_skip"
SEARCH_STAGE = "searching for layers to skip"


def prepare(service: Service, emit: Emit) -> None:
    """Make the decoder before the first answer, which would otherwise wait for it."""
    _attempt(service.decoders.prepare, service, emit)


def search_layers(
    service: Service, seconds: float, report: LoadingReport, stop_wanted: Callable[[], bool], emit: Emit
) -> None:
    """Search for better layers to skip than the ones that are known, before the first answer, and save them. After
    every verifying pass `stop_wanted` returns whether the user wants to end it. Failures are emitted: the model can
    answer all the same.

    Raises:
        LoadError: the model's layers cannot be run one by one.
    """
    why = why_unusable(catalog.DECODERS[LAYER_SKIP], service.loaded.runner, {}, {})
    if why is not None:
        message = f"No layer of {service.loaded.name} can be skipped: {why}"
        raise LoadError("load_failed", message, "Leave --layer-search out.")
    report.begin(SEARCH_STAGE, stoppable=True)
    question = [protocol.Message(role="user", content=JUDGED_QUESTION)]
    try:
        prompt = service.chat.fit(question, service.loaded.context_length, JUDGED_TOKENS).token_ids
        check_ids(prompt, service.loaded.embeddings, service.loaded.tokenizer)
    except (MessageTooLong, NothingToAnswer, RefusedByTemplate, UnknownToken):  # every question will report it
        return
    over = budget(seconds, report.fraction_done, stop_wanted)
    _attempt(lambda: service.decoders.search_layers(prompt, over), service, emit)


def _attempt(work: Callable[[], None], service: Service, emit: Emit) -> None:
    """Run `work`. If it fails, emit the reason: the model answers all the same."""
    used_up = False
    try:
        work()
    except BaseException as error:  # whatever it is, the model can still answer
        if ends_the_process(error):
            raise
        traceback.print_exc()
        used_up = memory_is_used_up(error)
        if not used_up:
            emit(unexpected(error, turn=None, fatal=False))
    if used_up:  # not before: an error that is being handled holds the memory of its pass
        emit(*service.save_memory(None))
