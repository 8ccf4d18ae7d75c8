"""Recordings as damage, a bug or an attacker would leave them: seeded mutations of whole ones."""

import json
from copy import deepcopy
from random import Random
from typing import Any

HOSTILE: list[Any] = [
    None, True, False, 0, -1, 1, 2**31, 2**63, 10**30, -(10**30), 10**400, 0.5, -0.5, 1e308, -1e308, 1e-320,
    "", "a", "\x1b]0;title\x07\x1b[31m\x9b1m", "\u202e\u2066\u2028", "x" * 5000, "\n" * 300, "漢" * 700, "\ufffd\u200d",
    [], [[]], [0], ["a"] * 50, {}, {"a": 1}, [1, "a", None],
]  # fmt: skip


def mutated(data: bytes, seed: int) -> bytes:
    """The recording with one to four mutations, the same for the same seed."""
    random = Random(seed)
    for _ in range(random.randint(1, 4)):
        data = random.choice(MUTATIONS)(data, random)
    return data


def _cut(data: bytes, random: Random) -> bytes:
    return data[: random.randrange(len(data) + 1)]


def _cut_at_a_line(data: bytes, random: Random) -> bytes:
    """Before, at or behind the end of a line."""
    ends = [place for place, byte in enumerate(data) if byte == 10]
    return data[: random.choice(ends) + random.randint(-1, 1)] if ends else data


def _bytes(data: bytes, random: Random) -> bytes:
    changed = bytearray(data)
    for _ in range(random.randint(1, 8) if data else 0):
        changed[random.randrange(len(changed))] = random.randrange(256)
    return bytes(changed)


def _lines(data: bytes, random: Random) -> bytes:
    """Lines lost, doubled, in another order, or from elsewhere."""
    lines = data.splitlines(keepends=True)
    for _ in range(random.randint(1, 3) if lines else 0):
        first, second = (random.randrange(len(lines)) for _ in range(2))
        match random.randrange(5):
            case 0:
                lines[first : first + random.randint(1, 3)] = []
            case 1:
                lines.insert(second, lines[first])
            case 2:
                lines[first], lines[second] = lines[second], lines[first]
            case 3:
                random.shuffle(lines)
            case _:
                lines.insert(first, random.choice(JUNK))
        if not lines:
            break
    return b"".join(lines)


JUNK = [
    b"\n",
    b"[" * 5000 + b"\n",
    b'{"event":"step","turn":1,"mood":' + b"[" * 5000 + b"\n",
    b'{"event":"conversation_cleared","seq":1,"t":0.5}\n',
    b'{"event":"conversation_opened","seq":1,"t":0.5,"exchanges":[]}\n',
    b'{"event":"exchange_removed","seq":1,"t":0.5}\n',
    b'{"event":"exchange_restored","seq":1,"t":0.5,"exchange":{"question":"","answer":"","token_ids":[],"model":"","decoder":""}}\n',
    b'{"event":"closed","seq":1,"t":0.5}\n',
    b'{"event":"asked","seq":1,"t":0.5,"turn":1,"text":"again?"}\n',
    b'{"event":"failed","seq":1,"t":1e9,"code":"internal","message":"\\u001b[31m","hint":"","fatal":true}\n',
    b'{"event":"hologram","seq":1,"t":0.5}\n',
    b"\xff\xfe\x00\n",
]


def _values(data: bytes, random: Random) -> bytes:
    """Fields of one line, however deep, with values of other kinds, sizes and signs; lists longer or shorter."""
    lines = data.splitlines(keepends=True)
    if not lines:
        return data
    number = random.randrange(len(lines))
    try:
        message = json.loads(lines[number])
    except (ValueError, RecursionError):
        return data
    for _ in range(random.randint(1, 3)):
        places = list(_places(message))
        if places:
            owner, key = random.choice(places)
            if isinstance(owner[key], list) and random.random() < 0.5:
                owner[key] = owner[key][: random.randrange(len(owner[key]) + 1)] + owner[key][: random.randint(0, 1)]
            else:
                owner[key] = deepcopy(random.choice(HOSTILE))
    lines[number] = json.dumps(message).encode() + b"\n"
    return b"".join(lines)


def _places(value: Any) -> Any:
    """Where something stands in a message: what holds it, and under which key or number."""
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from _places(value[key])


MUTATIONS = [_cut, _cut_at_a_line, _bytes, _lines, *[_values] * 5]
