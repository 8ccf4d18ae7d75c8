"""Values inside JSON that another program has made: each may be missing, or of another type."""

from typing import Any

import msgspec

from ladechat.protocol import MOST
from ladechat.protocol.values import LEAST_LOGPROB


class NotJson(ValueError):
    """Bytes that are no JSON in UTF-8."""


def decoded(data: bytes) -> Any:
    """Return the value of a JSON text.

    Raises:
        NotJson: it is none.
    """
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NotJson(str(error)) from None


def at(value: Any, *path: str | int) -> Any:
    """Return what is at a path of keys and indices; None where there is nothing."""
    for step in path:
        if isinstance(step, str) and isinstance(value, dict):
            value = value.get(step)
        elif isinstance(step, int) and isinstance(value, list) and -len(value) <= step < len(value):
            value = value[step]
        else:
            return None
    return value


def text_at(value: Any, *path: str | int) -> str:
    """Return the text at a path; "" where there is none."""
    found = at(value, *path)
    return found if isinstance(found, str) else ""


def count_at(value: Any, *path: str | int) -> int | None:
    """Return the whole number from 0 at a path; None where there is none."""
    return _count(at(value, *path))


def counts_at(value: Any, *path: str | int) -> list[int]:
    """Return the whole numbers from 0 in the list at a path; none unless all of it are such."""
    found = at(value, *path)
    counts = [_count(one) for one in found] if isinstance(found, list) else []
    return [one for one in counts if one is not None] if None not in counts else []


def number_at(value: Any, *path: str | int) -> float | None:
    """Return the number from 0 at a path; None where there is none."""
    found = at(value, *path)
    return (
        float(found) if isinstance(found, int | float) and not isinstance(found, bool) and 0 <= found <= MOST else None
    )


def list_at(value: Any, *path: str | int) -> list[Any]:
    """Return the list at a path; an empty one where there is none."""
    found = at(value, *path)
    return found if isinstance(found, list) else []


def logprob_at(value: Any, *path: str | int) -> float:
    """Return the log-probability at a path, at least `LEAST_LOGPROB`; 0 where there is none."""
    found = at(value, *path)
    return max(min(float(found), 0.0), LEAST_LOGPROB) if isinstance(found, int | float) else 0.0


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST else None
