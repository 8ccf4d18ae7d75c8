"""A conversation as JSON, for programs: turns, steps, each token with its source, and the figures."""

import json
from typing import Any

import msgspec

from ladechat.export.conversation import ExportedTurn, Talk
from ladechat.protocol import ServerInfo, Step
from ladechat.widgets.units import PASS

FORMAT, VERSION = "ladechat-conversation", 1


def as_json(talk: Talk) -> str:
    """Return the document, escaped to ASCII."""
    document = {
        "format": FORMAT,
        "version": VERSION,
        "title": talk.title,
        "program": talk.program,
        "model": talk.model,
        "started": talk.started,
        "notices": talk.notices,
        "turns": [_turn(number, turn) for number, turn in enumerate(talk.turns, start=1)],
    }
    return json.dumps(document, indent=1) + "\n"


def _turn(number: int, turn: ExportedTurn) -> dict[str, Any]:
    return {
        "number": number,
        "begins_anew": turn.begins_anew,
        "model": turn.model or None,
        "system": turn.system,
        "question": turn.question,
        "thoughts": turn.thoughts or None,
        "answer": turn.answer,
        "decoder": turn.settings or None,
        "settings": _settings(turn),
        "figures": _figures(turn),
        "notices": turn.notices,
        "steps": [_step(number, step, turn.server) for number, step in enumerate(turn.steps, start=1)],
    }


def _settings(turn: ExportedTurn) -> dict[str, Any] | None:
    """Return the decoder, its parameters and the sampling settings; None if they are unknown."""
    if turn.started is None:
        return None
    drawn: dict[str, Any] = msgspec.to_builtins(turn.started.settings)
    return {**drawn, "seed": turn.started.seed, "max_new_tokens": turn.started.max_new_tokens}


def _figures(turn: ExportedTurn) -> dict[str, Any]:
    passes, finished = len(turn.steps), turn.finished
    known = not turn.earlier_answer  # else its first tokens come from an earlier session, whose passes are unknown
    tokens, passes_known = turn.tokens, known and turn.unit == PASS
    return {
        "tokens": tokens if known else None,
        "passes": passes if passes_known else None,
        "tokens_per_pass": tokens / passes if tokens is not None and passes and passes_known else None,
        "prefill_seconds": finished and finished.prefill_seconds,
        "decode_seconds": finished and finished.decode_seconds,
        "estimated_speedup": finished and finished.estimated_speedup,
        "reason": finished and finished.reason,
        **({"server": msgspec.to_builtins(finished.server)} if finished and finished.server else {}),
    }


def _step(number: int, step: Step, server: ServerInfo | None) -> dict[str, Any]:
    drafted = len(step.draft.token_ids) if step.draft else 0
    ids_known = server is None or server.token_ids
    return {
        "step": number,
        "slots": step.timing.slots if server is None else None,
        "drafted": drafted if server is None else step.drafted,
        "step_ms": step.timing.step_ms,
        "tokens": [
            {"id": token if ids_known else None, "text": piece, "source": origin}
            for token, piece, origin in zip(step.token_ids, step.pieces, step.origins, strict=True)
        ],
    }
