"""The token limit of an answer, and the events before its first step."""

from collections.abc import Iterator

from ladechat import protocol
from ladechat.engine.chat_format import EncodedPrompt
from ladechat.model.loaded import LoadedModel


def limit_of_answer(tokens: int, most: int) -> int:
    """Return the token limit of an answer that has `tokens` already: with `most` 512, 100 → 512, 512 → 1024."""
    return (tokens // most + 1) * most


def opening(
    turn: int, prompt: EncodedPrompt, loaded: LoadedModel, settings: protocol.Settings, most: int, seed: int
) -> Iterator[protocol.Event]:
    """Yield the events of a prompt: what was left out of it or moved in it; its answer of `most` tokens begins."""
    if prompt.dropped_turns:
        yield protocol.HistoryTrimmed(
            turn=turn,
            dropped_turns=prompt.dropped_turns,
            dropped_messages=prompt.dropped_messages,
            tokens_before=prompt.tokens_before,
            tokens_after=len(prompt.token_ids),
            context_length=loaded.context_length,
        )
    if prompt.system_folded:
        yield protocol.SystemFolded(turn=turn)
    yield protocol.TurnStarted(
        turn=turn,
        messages=prompt.messages,
        prompt_ids=prompt.all_ids,
        cached_tokens=loaded.runner.cached_prefix(prompt.all_ids),
        max_new_tokens=min(most - len(prompt.answer), loaded.context_length - len(prompt.all_ids)),
        settings=settings,
        seed=seed,
        continued_tokens=len(prompt.answer),
    )


def stopped_before_it_began(
    command: protocol.Generate, most: int, settings: protocol.Settings
) -> tuple[protocol.Event, ...]:
    """Return the first and the last event of an answer that was stopped before its prompt was made."""
    turn = command.turn
    return (
        protocol.TurnStarted(
            turn=turn, messages=command.messages, prompt_ids=[], cached_tokens=0, max_new_tokens=most, settings=settings
        ),
        protocol.TurnFinished(
            turn=turn, reason="stopped", text="", token_ids=[], steps=0, prefill_seconds=0.0, decode_seconds=0.0
        ),
    )
