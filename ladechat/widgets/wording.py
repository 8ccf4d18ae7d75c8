"""Events that the conversation mentions, in words."""

from ladechat.protocol import Failed, HistoryTrimmed, Ready, TurnFinished

REASONS = {
    "stopped": "stopped",
    "max_new_tokens": "the token limit was reached",
    "context": "the model's context is full",
    "failed": "broken off",
}


def describe_finish(event: TurnFinished) -> str:
    """One line below an answer: what it took, and why it ended if it did not end by itself."""
    tokens = len(event.token_ids)
    parts = [f"{tokens} tokens"]
    if event.steps:
        parts += [f"{event.steps} steps", f"S {tokens / event.steps:.2f}"]
    if event.decode_seconds:
        parts.append(f"{tokens / event.decode_seconds:.0f} tok/s")
    if event.reason in REASONS:
        parts.append(REASONS[event.reason])
    return " · ".join(parts)


def describe_trimming(event: HistoryTrimmed) -> str:
    """What was left out of the prompt, and why."""
    turns = "the oldest turn was" if event.dropped_turns == 1 else f"the oldest {event.dropped_turns} turns were"
    return (
        f"The conversation outgrew the context of {event.context_length:,} tokens: {turns} left out of this prompt "
        f"({event.tokens_before:,} → {event.tokens_after:,} tokens)."
    )


def describe_failure(event: Failed) -> str:
    """What went wrong, and what to do."""
    return f"{event.message} {event.hint}"


def describe_model(event: Ready) -> str:
    """The facts that the status line has room for: size and context."""
    millions = event.parameters / 1e6
    size = f"{millions / 1000:.1f}B" if millions >= 1000 else f"{millions:.1f}M"
    return f"{size} parameters · context {event.context_length:,}"
