"""Counting, number tables, the alphabet and small sums."""

from collections.abc import Callable, Sequence
from random import Random

from tools.demo_model.dialogue import Exchange, as_typed

COUNT = (
    "Count from {a} to {b}.",
    "Please count from {a} to {b}.",
    "Can you count from {a} to {b}?",
    "Count from {a} up to {b}.",
    "Write the numbers from {a} to {b}.",
    "List the numbers from {a} to {b}.",
    "Say the numbers from {a} to {b}.",
)
COUNT_TO = ("Count to {b}.", "Can you count to {b}?", "Please count to {b}.", "Count up to {b}.")
DOWN = (
    "Count down from {a}.",
    "Count backwards from {a}.",
    "Count down from {a} to {b}.",
    "Count backwards from {a} to {b}.",
)
STEPS = (
    "Count in steps of {k} from {a} to {b}.",
    "Count from {a} to {b} in steps of {k}.",
    "Count by {k} from {a} to {b}.",
)
MULTIPLES = (
    "List the first {n} multiples of {k}.",
    "Write the first {n} multiples of {k}.",
    "What are the first {n} multiples of {k}?",
)
EVEN = (
    "List the {kind} numbers from {a} to {b}.",
    "Write the {kind} numbers between {a} and {b}.",
    "What are the {kind} numbers from {a} to {b}?",
)
TABLE = (
    "Write the multiplication table of {k}.",
    "Show me the times table of {k}.",
    "What is the {k} times table?",
    "Multiplication table for {k}.",
    "Write the {k} times table.",
    "Show the multiplication table of {k}.",
)
SQUARES = (
    "Make a table of the squares from {a} to {b}.",
    "Show a table with the squares of {a} to {b}.",
    "Write the squares of the numbers from {a} to {b} as a table.",
)
DOUBLES = ("Make a table of the doubles from {a} to {b}.", "Show a table with the doubles of {a} to {b}.")
LETTERS = ("Say the alphabet.", "Write the alphabet.", "List the letters of the alphabet.")
LETTERS_FROM = (
    "Write the letters from {a} to {b}.",
    "Say the alphabet from {a} to {b}.",
    "List the letters from {a} to {b}.",
)
SUM = ("What is {a} + {b}?", "What is {a} plus {b}?", "Add {a} and {b}.", "How much is {a} + {b}?")
DIFFERENCE = ("What is {a} - {b}?", "What is {a} minus {b}?", "How much is {a} - {b}?")
BACKWARDS = ("And backwards?", "Now backwards.", "The same backwards, please.", "Backwards?")
GO_ON = ("Go on.", "Continue.", "And then?", "Keep going.", "More, please.")
UP_TO = ("Now to {b}.", "And to {b}?", "Up to {b}, please.")
OTHER = ("And for {k}?", "Now for {k}.", "The same for {k}, please.", "And {k}?")
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def write(rng: Random) -> list[Exchange]:
    """A task with numbers and what follows from it."""
    tasks: Sequence[Callable[[Random], list[Exchange]]] = (
        _count,
        _count,
        _count,
        _down,
        _steps,
        _multiples,
        _even_or_odd,
        _times_table,
        _times_table,
        _squares,
        _letters,
        _sum,
    )
    return rng.choice(tasks)(rng)


def row(numbers: Sequence[int] | str) -> str:
    """Numbers or letters in one line."""
    return ", ".join(map(str, numbers)) + "."


def times_table(k: int) -> str:
    lines = "\n".join(f"{i} x {k} = {i * k}" for i in range(1, 11))
    return f"Here is the multiplication table of {k}:\n{lines}"


def _ask(rng: Random, forms: Sequence[str], answer: str, **values: object) -> Exchange:
    return Exchange(as_typed(rng.choice(forms).format(**values), rng), answer)


def _count(rng: Random) -> list[Exchange]:
    a = 1 if rng.random() < 0.4 else rng.randint(0, 160)
    b = a + rng.randint(4, 34)
    forms = COUNT_TO + COUNT if a == 1 else COUNT
    dialogue = [_ask(rng, forms, row(range(a, b + 1)), a=a, b=b)]
    after = rng.random()
    if after < 0.12:
        dialogue.append(_ask(rng, BACKWARDS, row(range(b, a - 1, -1))))
    elif after < 0.24:
        dialogue.append(_ask(rng, GO_ON, row(range(b + 1, b + 11))))
    elif after < 0.36:
        further = b + rng.randint(2, 12)
        dialogue.append(_ask(rng, UP_TO, row(range(a, further + 1)), b=further))
    return dialogue


def _down(rng: Random) -> list[Exchange]:
    form = rng.choice(DOWN)
    if "{b}" in form:
        a = rng.randint(5, 120)
        b = rng.randint(max(0, a - 30), a - 4)
    else:
        a, b = rng.randint(5, 30), 1
    return [_ask(rng, (form,), row(range(a, b - 1, -1)), a=a, b=b)]


def _steps(rng: Random) -> list[Exchange]:
    k = rng.choice((2, 3, 4, 5, 10, 20))
    a = rng.choice((0, k, rng.randint(0, 40)))
    b = a + k * rng.randint(4, 14)
    return [_ask(rng, STEPS, row(range(a, b + 1, k)), a=a, b=b, k=k)]


def _multiples(rng: Random) -> list[Exchange]:
    k, n = rng.randint(2, 15), rng.randint(4, 12)
    dialogue = [_ask(rng, MULTIPLES, row([k * i for i in range(1, n + 1)]), k=k, n=n)]
    if rng.random() < 0.3:
        k = rng.randint(2, 15)
        dialogue.append(_ask(rng, OTHER, row([k * i for i in range(1, n + 1)]), k=k))
    return dialogue


def _even_or_odd(rng: Random) -> list[Exchange]:
    a, kind = rng.randint(0, 80), rng.choice(("even", "odd"))
    b = a + rng.randint(6, 30)
    numbers = [number for number in range(a, b + 1) if number % 2 == (kind == "odd")]
    return [_ask(rng, EVEN, row(numbers), a=a, b=b, kind=kind)]


def _times_table(rng: Random) -> list[Exchange]:
    k = rng.randint(2, 20)
    dialogue = [_ask(rng, TABLE, times_table(k), k=k)]
    if rng.random() < 0.35:
        k = rng.randint(2, 20)
        dialogue.append(_ask(rng, OTHER, times_table(k), k=k))
    return dialogue


def _squares(rng: Random) -> list[Exchange]:
    a = rng.choice((1, 1, rng.randint(1, 9)))
    b = a + rng.randint(3, 9)
    squares = rng.random() < 0.6
    title, factor = ("square", None) if squares else ("double", 2)
    lines = "\n".join(f"| {i} | {i * (factor or i)} |" for i in range(a, b + 1))
    return [_ask(rng, SQUARES if squares else DOUBLES, f"| number | {title} |\n|---|---|\n{lines}", a=a, b=b)]


def _letters(rng: Random) -> list[Exchange]:
    if rng.random() < 0.4:
        return [_ask(rng, LETTERS, row(ALPHABET))]
    first = rng.randrange(20)
    last = rng.randint(first + 3, 25)
    return [_ask(rng, LETTERS_FROM, row(ALPHABET[first : last + 1]), a=ALPHABET[first], b=ALPHABET[last])]


def _sum(rng: Random) -> list[Exchange]:
    a, b = rng.randint(0, 20), rng.randint(0, 20)
    if rng.random() < 0.6:
        return [_ask(rng, SUM, f"{a} + {b} = {a + b}.", a=a, b=b)]
    a, b = max(a, b), min(a, b)
    return [_ask(rng, DIFFERENCE, f"{a} - {b} = {a - b}.", a=a, b=b)]
