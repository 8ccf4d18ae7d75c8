"""The token limit of an answer, and the events before its first step."""

from ladechat import protocol
from ladechat.engine.chat_format import EncodedPrompt


def limit_of_answer(tokens: int, most: int) -> int:
    """Return the token limit of an answer that has `tokens` already: with `most` 512, 100 → 512, 512 → 1024."""
    return (tokens // most + 1) * most


def history_trimmed(turn: int, prompt: EncodedPrompt, context_length: int) -> protocol.HistoryTrimmed:
    """Return the event that says how much of the conversation was left out of the prompt."""
    return protocol.HistoryTrimmed(
        turn=turn,
        dropped_turns=prompt.dropped_turns,
        dropped_messages=prompt.dropped_messages,
        tokens_before=prompt.tokens_before,
        tokens_after=len(prompt.token_ids),
        context_length=context_length,
    )


def stopped_before_it_began(
    command: protocol.Generate, most: int, settings: protocol.Settings
) -> tuple[protocol.Event, ...]:
    """Return the first and the last event of an answer that was stopped before its prompt was made."""
    started = protocol.TurnStarted(
        turn=command.turn,
        messages=command.messages,
        prompt_ids=[],
        cached_tokens=0,
        max_new_tokens=most,
        settings=settings,
    )
    finished = protocol.TurnFinished(
        turn=command.turn, reason="stopped", text="", token_ids=[], steps=0, prefill_seconds=0.0, decode_seconds=0.0
    )
    return started, finished
